"""Answers to tuples of items in columns: the tuples are judged, and their answers laid out in one buffer.

A result is divided into *runs*, each of one side: the text of a run is written once per item, and the answer to a tuple
is a few runs, copied one behind the other.
Only values that are computed from several items are made tuple by tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from anabranch.columnar.expressions.tree import (
    ColumnComparison,
    Expression,
    Fragment,
    Kind,
    Taken,
    Wrapped,
    sides_of,
)
from anabranch.columnar.expressions.values import CLEAR
from anabranch.columnar.expressions.values import UNCLEAR as UNCLEAR_STATE
from anabranch.columnar.items.layout import NO_TEXTS, computed_texts, fragments_of, laid_out, ready_pieces
from anabranch.columnar.items.query import made_in
from anabranch.columnar.joins import kernels
from anabranch.columnar.joins.compiling import CompiledJoin
from anabranch.columnar.joins.condition import OneSided, TupleCondition, TupleTest, conjuncts
from anabranch.columnar.joins.kernels import AT_LEAST, MADE, MORE, SAME, STRIDE, WRAP, Guards, RunTexts
from anabranch.columnar.joins.step_join import Picks
from anabranch.columnar.joins.tuples import SideColumns, TupleEvaluation
from anabranch.columnar.match.condition import UNCLEAR, YES, Settled, Verdicts
from anabranch.columnar.match.judging import greatest, judge, least, opposite
from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Numbers
from anabranch.columnar.scan.shred import Shredded
from anabranch.logic import fold

LONGEST = 16 << 20
"""The bytes of answers that are laid out at a time, unless a single answer is longer."""
SLOW = 64
"""The number of tuples that the law answers before their answers are laid out with the others."""
_NUMERIC = (Kind.UNTYPED, Kind.DOUBLE, Kind.INTEGER)


# --- judging ---------------------------------------------------------------------------------------------------

_Judge: TypeAlias = Callable[[TupleEvaluation, Picks], Verdicts]


class TupleJudge:
    """Judges tuples by one condition."""

    def __init__(self, condition: TupleCondition, sides: Sequence[SideColumns]) -> None:
        self._sides = sides
        self._judge = self._condition(condition)
        self._last: tuple[Picks, Verdicts] | None = None

    def verdicts(self, picks: Picks) -> Verdicts:
        """The verdict on each tuple; a tuple with an item that does not fit is unclear.

        The verdicts on the last array of tuples are cached.
        """
        if self._last is None or self._last[0] is not picks:
            self._last = picks, self._verdicts(picks)
        return self._last[1]

    def _verdicts(self, picks: Picks) -> Verdicts:
        if not all(len(side.fitting) for side in self._sides):
            return np.full(picks.shape[1], UNCLEAR, np.uint8)
        found = self._judge(TupleEvaluation(self._sides, picks), picks)
        for side, mine in zip(self._sides, picks, strict=True):
            if side.unfit is not None:
                found = np.where(side.unfit.take(mine), np.uint8(UNCLEAR), found)
        return found

    def _condition(self, condition: TupleCondition) -> _Judge:
        def test(leaf: Settled | OneSided | TupleTest) -> _Judge:
            match leaf:
                case Settled(verdict):
                    return lambda _, picks: np.full(picks.shape[1], verdict, np.uint8)
                case OneSided(side, inside):
                    verdicts = judge(inside, self._sides[side].shredded)
                    return lambda _, picks: verdicts.take(picks[side])
                case TupleTest(expression):
                    return lambda evaluation, _: evaluation.truth(expression)

        def by(combine: Callable[[Iterator[Verdicts]], Verdicts], parts: Iterator[_Judge]) -> _Judge:
            inside = list(parts)
            return lambda evaluation, picks: combine(part(evaluation, picks) for part in inside)

        def negated(part: _Judge) -> _Judge:
            return lambda evaluation, picks: opposite(part(evaluation, picks))

        return fold(condition, test, lambda parts: by(least, parts), lambda parts: by(greatest, parts), negated)


# --- guards ----------------------------------------------------------------------------------------------------

_TESTS = {">=": (AT_LEAST, 1.0), ">": (MORE, 1.0), "<=": (AT_LEAST, -1.0), "<": (MORE, -1.0), "=": (SAME, 1.0)}
"""By operator: the test of a guard, and the sign by which both numbers are multiplied."""


def _guards(condition: TupleCondition, sides: Sequence[SideColumns]) -> list[tuple[int, int, int, Numbers, Numbers]]:
    """Comparisons of numbers or texts of two items without which a condition is false, whatever the rest raises.

    Each is a test, two sides, and the numbers of both sides by item.
    """
    found: list[tuple[int, int, int, Numbers, Numbers]] = []
    for each in conjuncts(condition):
        match each:
            case TupleTest(ColumnComparison(operator, left, right)) if operator in _TESTS:
                on = sides_of(left), sides_of(right)
                if [len(one) for one in on] != [1, 1] or on[0] == on[1]:
                    continue
                (x,), (y,) = on
                texts = {left.kind, right.kind} <= {Kind.UNTYPED, Kind.STRING} and operator == "="
                if texts or (left.kind in _NUMERIC and right.kind in _NUMERIC):
                    test, sign = _TESTS[operator]
                    a, b = _numbers(sides[x], left, texts), _numbers(sides[y], right, texts)
                    found.append((test, x, y, sign * a, sign * b))
    return found


def _numbers(side: SideColumns, expression: Expression, texts: bool) -> Numbers:
    """By item: the number that is compared, or a hash of its text; NaN where it is unclear."""
    found = np.full(len(side.shredded.fits), np.nan)
    if not len(side.fitting):
        return found
    value = side.evaluation.value(expression)
    numbers = value.numbers
    if texts:
        assert value.texts is not None
        numbers = np.empty(len(value.texts.starts))
        kernels.text_numbers(value.texts, numbers)
    if numbers is not None:
        clear = True if value.state is None else value.state == CLEAR
        found[side.fitting] = np.where(clear, numbers, np.nan)
    return found


# --- runs ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring fragments of one side; or a fragment computed from several sides, or the tag of an element."""

    side: int
    """The side, or `MADE`, or `WRAP`."""
    fragments: tuple[Fragment, ...] = ()
    around: int = 0
    """For `WRAP`: the number of runs in the element."""
    is_end: bool = False
    """Whether it is the end tag of an element, which is left out where the element is empty."""

    @property
    def is_open(self) -> bool:
        """Whether fragments may be appended."""
        return self.side >= 0 and not self.is_end


def runs_of(fragments: Sequence[Fragment], is_filled: Callable[[Wrapped], bool]) -> list[Run]:
    """A result in runs; `is_filled` says whether an element around several sides is never empty.

    Fixed bytes go with the run before them, or else with the one behind.
    """
    runs: list[Run] = []
    fixed: tuple[Fragment, ...] = ()

    def add(*more: Run) -> None:
        nonlocal fixed
        if fixed and runs and runs[-1].is_open:
            runs[-1] = Run(runs[-1].side, (*runs[-1].fragments, *fixed))
        elif fixed:
            runs.append(Run(0, fixed))
        fixed = ()
        runs.extend(more)

    for each in _opened(fragments, is_filled):
        if isinstance(each, bytes):
            fixed = (*fixed, each)
            continue
        on = sides_of(each)
        if len(on) < 2:
            side = next(iter(on), 0)
            if runs and runs[-1].is_open and runs[-1].side == side:
                runs[-1] = Run(side, (*runs[-1].fragments, *fixed, each))
                fixed = ()
            elif runs and runs[-1].is_open:
                add(Run(side, (each,)))
            else:
                runs.append(Run(side, (*fixed, each)))
                fixed = ()
        elif isinstance(each, Wrapped):
            inside = runs_of(each.content, is_filled)
            add(Run(WRAP, around=len(inside)), *inside, Run(0, (each.end_tag,), is_end=True))
        else:
            add(Run(MADE, (each,)))
    add()
    return runs


def _opened(fragments: Sequence[Fragment], is_filled: Callable[[Wrapped], bool]) -> Iterator[Fragment]:
    """Fragments in which elements of several sides that are never empty are replaced by their tags and content."""
    for each in fragments:
        if isinstance(each, Wrapped) and len(sides_of(each)) > 1 and is_filled(each):
            yield b">"
            yield from _opened(each.content, is_filled)
            yield each.end_tag
        else:
            yield each


# --- answers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """Answers in one buffer, their number, and the length of the first."""

    data: bytes
    entries: int
    first: int


@dataclass(frozen=True, slots=True)
class ResultTexts:
    """The texts of a result for all items, and its fragments that are computed from several items."""

    texts: RunTexts
    made: tuple[Fragment, ...]
    unclear: tuple[Flags | None, ...]
    """By side: the items whose texts are unclear."""


class TupleColumns:
    """The items of all sides in columns, with verdicts and texts that are computed once for all queries."""

    def __init__(self, sides: Sequence[Shredded]) -> None:
        self.sides = [SideColumns(each) for each in sides]
        self._judges: dict[TupleCondition, TupleJudge] = {}
        self._texts: dict[tuple[Fragment, ...], ResultTexts] = {}

    def judge(self, condition: TupleCondition) -> TupleJudge:
        """The judge of tuples by a condition."""
        if condition not in self._judges:
            self._judges[condition] = TupleJudge(condition, self.sides)
        return self._judges[condition]

    def guards(self, condition: TupleCondition, lanes: Sequence[Indices]) -> Guards:
        """The guards of a condition, over the items of lanes, which are given by their numbers here."""
        found = _guards(condition, self.sides)
        numbers = np.empty((2 * len(found), max(map(len, lanes))))
        for row, (_, x, y, left, right) in enumerate(found):
            numbers[2 * row, : len(lanes[x])] = left.take(lanes[x])
            numbers[2 * row + 1, : len(lanes[y])] = right.take(lanes[y])
        return Guards(np.array([each[:3] for each in found], np.int64).reshape(-1, 3), numbers)

    def texts(self, join: CompiledJoin) -> ResultTexts:
        """The texts of the result of a join."""
        if join.fragments not in self._texts:
            self._texts[join.fragments] = self._result(join.fragments)
        return self._texts[join.fragments]

    def _result(self, fragments: Sequence[Fragment]) -> ResultTexts:
        edges: list[Indices] = []
        store: list[Bytes] = []
        made: list[Fragment] = []
        unclear: list[Flags | None] = [None for _ in self.sides]
        runs = runs_of(fragments, self._is_filled)
        rows = np.zeros((len(runs), 2), np.int64)
        places = size = 0
        for number, run in enumerate(runs):
            rows[number] = run.side, places
            if run.side == WRAP:
                rows[number, 1] = run.around
            elif run.side == MADE:
                rows[number, 1] = len(made)
                made += run.fragments
            else:
                written, offsets, doubtful = _side_texts(self.sides[run.side].shredded, run.fragments)
                before = unclear[run.side]
                unclear[run.side] = doubtful if before is None else before if doubtful is None else before | doubtful
                edges.append(offsets + size)
                store.append(written)
                places += len(offsets)
                size += len(written)
        texts = RunTexts(
            rows,
            np.concatenate([np.empty(0, np.int64), *edges]),
            np.concatenate([*store, np.empty(STRIDE, np.uint8)]),
            np.empty(0, np.uint8),
            np.empty((0, 0), np.int64),
        )
        return ResultTexts(texts, tuple(made), tuple(unclear))

    def _is_filled(self, wrapped: Wrapped) -> bool:
        """Whether an element has content for all items."""
        for each in wrapped.content:
            if isinstance(each, Taken):
                shredded = self.sides[each.side].shredded
                row = shredded.row(each.column)
                if ((shredded.ends[row] > shredded.starts[row]) | ~shredded.fits).all():
                    return True
        return False


def _side_texts(shredded: Shredded, fragments: Sequence[Fragment]) -> tuple[Bytes, Indices, Flags | None]:
    """The texts of fragments for each item of a side, where each ends, and for which items they are unclear."""
    assert shredded.wanted is not None
    fits = shredded.fits
    items = np.flatnonzero(fits)
    made, unclear = NO_TEXTS, None
    if wanted := tuple(made_in(fragments)):
        made, doubtful = computed_texts(shredded, [wanted], np.zeros(len(items), np.int64), items.astype(np.int32))
        if doubtful.any():
            unclear = np.zeros(len(fits), np.bool_)
            unclear[items[doubtful]] = True
    picks = np.where(fits, np.arange(len(fits)), -1)  # an item that does not fit has the empty piece
    places = np.maximum(np.cumsum(fits) - 1, 0)
    return *laid_out(shredded, fragments_of([fragments], shredded.wanted), picks, [b""], made, places), unclear


class TupleAnswers:
    """Answers tuples of items in columns, for one query."""

    def __init__(self, join: CompiledJoin, columns: TupleColumns, slow: Callable[[Sequence[int]], bytes]) -> None:
        """`slow` is the law: the piece of one tuple, empty where it gives none."""
        self._sides = columns.sides
        self._judge = columns.judge(join.condition)
        self._result = columns.texts(join)
        self._slow = slow

    def answer(self, picks: Picks) -> Iterator[AnswerBlock]:
        """The answers to some tuples, in order."""
        verdicts = self._judge.verdicts(picks)
        for doubtful, mine in zip(self._result.unclear, picks, strict=True):
            if doubtful is not None:
                verdicts = np.where((verdicts == YES) & doubtful.take(mine), np.uint8(UNCLEAR), verdicts)
        texts = self._result.texts
        if self._result.made:
            texts, verdicts = self._made(picks, verdicts)
        unclear = np.flatnonzero(verdicts == UNCLEAR)
        taken = np.flatnonzero(verdicts == YES) if len(texts.runs) else np.empty(0, np.int64)
        for start, end in pairwise([0, *unclear[SLOW::SLOW], len(verdicts)]):
            fast = taken[np.searchsorted(taken, start) : np.searchsorted(taken, end)]
            slow = unclear[np.searchsorted(unclear, start) : np.searchsorted(unclear, end)]
            yield from self._laid_out(texts, picks, fast, slow)

    def _made(self, picks: Picks, verdicts: Verdicts) -> tuple[RunTexts, Verdicts]:
        """The texts with those that are computed from several items, and the verdicts, unclear where these are."""
        taken = np.flatnonzero(verdicts == YES)
        spans = np.zeros((2 * len(self._result.made), picks.shape[1]), np.int64)
        buffers: list[Bytes] = []
        size = 0
        verdicts = verdicts.copy()
        evaluation = TupleEvaluation(self._sides, picks[:, taken])
        for row, each in enumerate(self._result.made if len(taken) else ()):
            (text,), state = evaluation.fragment(each)
            spans[2 * row, taken], spans[2 * row + 1, taken] = text.starts + size, text.ends + size
            buffers.append(text.data)
            size += len(text.data)
            if state is not None:
                verdicts[taken[state == UNCLEAR_STATE]] = UNCLEAR
        made = np.concatenate([*buffers, np.empty(STRIDE, np.uint8)])
        return self._result.texts._replace(made=made, spans=spans), verdicts

    def _laid_out(self, texts: RunTexts, picks: Picks, taken: Indices, unclear: Indices) -> Iterator[AnswerBlock]:
        pieces: list[tuple[int, bytes]] = []
        for number in unclear.tolist():
            if piece := self._slow(picks[:, number].tolist()):
                pieces.append((number, piece))
        order = taken
        if pieces:
            sorting = np.argsort([*taken, *(number for number, _ in pieces)])
            order = np.concatenate([taken, ~np.arange(len(pieces))])[sorting]
        ready = ready_pieces([piece for _, piece in pieces])
        offsets = np.zeros(len(order) + 1, np.int64)
        kernels.measure_tuples(texts, picks, order, ready, offsets)
        start = 0
        while start < len(order):
            end = max(start + 1, int(np.searchsorted(offsets, offsets[start] + LONGEST, "right")) - 1)
            size = offsets[end] - offsets[start]
            out = np.empty(size + STRIDE, np.uint8)
            kernels.lay_out_tuples(texts, picks, order[start:end], ready, out)
            lengths = np.diff(offsets[start : end + 1])
            lengths = lengths[lengths > 0]  # an empty text is no answer
            if len(lengths):
                yield AnswerBlock(out[:size].tobytes(), len(lengths), int(lengths[0]))
            start = end
