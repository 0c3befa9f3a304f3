"""Thousands of conditions judged together: an index over predicates.

A `Matcher` is built for some conditions and asked batch by batch which of them take which entries.
Its cost follows the items and their matches, hardly the number of conditions:

* each value is ranked once among all constants it is compared with (`kernels_matching.py`);
* each clause of a condition lies in the cells of a *grid* that it touches, over the one or two axes on which it is
  narrowest, so an entry is only tried with the clauses of its cell;
* conditions of one form (`forms.py`) are laid out together, and differ in numbers only.

What is unclear for a value that is not known concerns only the conditions that look at it; they are judged in three
values.
The answer is that of `condition.judge` for every condition and entry, with one difference that cannot be seen: an entry
that does not fit is never taken, only left open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar import kernels_matching as kernels
from anabranch.columnar.condition import NO, UNCLEAR, YES, Condition, judge
from anabranch.columnar.forms import Axis, Constant, Fixed, Form, Test, formed
from anabranch.columnar.grids import Grids
from anabranch.columnar.kernels import Indices, Places
from anabranch.columnar.shred import Shredded, Wanted

_ROOM, _MOST_PAIRS = 1 << 12, 1 << 20
"""Room for pairs: to begin with, and at most, unless there is but one entry."""
_EDGE = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Matches:
    """What some conditions make of the entries of a batch."""

    count: int
    """How many conditions there are."""
    conditions: Places
    pairs: Places
    """Each pair of a condition and an entry that it takes, in the order of entries."""
    open_conditions: Indices
    open_entries: Indices
    """The pairs that are left to the law, in the order of entries."""

    def part(self, first: int, last: int) -> Matches:
        """What some of the conditions make of them, which are numbered from 0 on then."""
        taken = (self.conditions >= first) & (self.conditions < last)
        opened = (self.open_conditions >= first) & (self.open_conditions < last)
        return Matches(
            last - first,
            self.conditions[taken] - np.int32(first),
            self.pairs[taken],
            self.open_conditions[opened] - first,
            self.open_entries[opened],
        )

    @cached_property
    def bounds(self) -> Indices:
        """The entries that condition `c` takes are `entries[bounds[c] : bounds[c + 1]]`."""
        return self._by_condition[0]

    @cached_property
    def entries(self) -> Indices:
        return self.pairs[self._by_condition[1]].astype(np.int64)

    @cached_property
    def _by_condition(self) -> tuple[Indices, Indices]:
        bounds, turn = np.zeros(self.count + 1, np.int64), np.empty(len(self.pairs), np.int64)
        kernels.by_condition(self.conditions, bounds, turn)
        return bounds, turn

    def taken(self, condition: int) -> Indices:
        """The entries that a condition takes."""
        return self.entries[self.bounds[condition] : self.bounds[condition + 1]]


_NONE = np.empty(0, np.int64)
NO_MATCHES = Matches(0, np.empty(0, np.int32), np.empty(0, np.int32), _NONE, _NONE)


@dataclass(frozen=True, slots=True)
class Alike:
    """Conditions of one form: their numbers, and for each its constants."""

    form: Form
    numbers: Sequence[int]
    constants: Sequence[tuple[Constant, ...]]


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The constants that the values on one axis are ranked among."""

    axis: Axis
    row: int
    constants: NDArray[np.float64] | tuple[bytes, ...]

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return 2 * len(self.constants) + 1

    def places(self, given: Sequence[Constant]) -> Places:
        """The numbers of some of the constants."""
        if self.axis.is_text:
            known = {each: number for number, each in enumerate(self.constants)}
            return np.array([known[each] for each in given], np.int32)
        return np.searchsorted(np.asarray(self.constants), np.array(given, np.float64)).astype(np.int32)


class Matcher:
    """Conditions ready to be matched; they are numbered from 0 on."""

    def __init__(self, count: int, groups: Sequence[Alike], others: Sequence[tuple[int, Condition]], wanted: Wanted):
        """`others` are conditions without a form, by number; `wanted` says which leaf is in which row."""
        self._count = count
        self._others = others
        self._rankings = _rankings(groups, wanted)
        self._laid = _Laid(self._rankings, groups)
        numbers = np.array([*chain.from_iterable(each.numbers for each in groups)], np.int64)
        self._numbers = numbers
        self._is_ordered = bool((numbers == np.arange(len(numbers))).all())
        self._seen = np.empty(len(numbers), np.int64)
        self._room = _ROOM

    @staticmethod
    def of(conditions: Sequence[Condition], wanted: Wanted) -> Matcher:
        """The matcher of some conditions."""
        return Matcher(len(conditions), *gathered(enumerate(conditions)), wanted)

    def match(self, shredded: Shredded) -> Matches | None:
        """Judge the entries of a batch, which was cut for the same `wanted`; None where fewer must be shown at once."""
        pairs = self._pairs(shredded)
        if pairs is None:
            return None
        conditions, entries, open_conditions, open_entries = pairs
        for number, condition in self._others:
            verdicts = judge(condition, shredded)
            verdicts = np.where(shredded.fits | (verdicts == NO), verdicts, np.uint8(UNCLEAR))
            for outcome, found, entered in ((YES, conditions, entries), (UNCLEAR, open_conditions, open_entries)):
                these = np.flatnonzero(verdicts == outcome)
                found.append(np.full(len(these), number, np.int32))
                entered.append(these.astype(np.int32))
        taken, at = np.concatenate(conditions), np.concatenate(entries)
        opened, where = np.concatenate(open_conditions), np.concatenate(open_entries)
        if self._others:
            turn = np.argsort(at, kind="stable")
            taken, at = taken[turn], at[turn]
            turn = np.argsort(where, kind="stable")
            opened, where = opened[turn], where[turn]
        return Matches(self._count, taken, at, opened.astype(np.int64), where.astype(np.int64))

    def _pairs(self, shredded: Shredded) -> tuple[list[Places], list[Places], list[Places], list[Places]] | None:
        """The pairs of conditions that have a form; None if they are too many for one batch."""
        most = _MOST_PAIRS if len(shredded.fits) > 1 else _EDGE
        ranks = np.empty((len(self._rankings), len(shredded.fits)), np.int32)
        for row, ranking in enumerate(self._rankings):
            self._rank(ranking, shredded, ranks[row])
        while True:
            room = np.empty((4, self._room), np.int32)
            self._seen.fill(-1)
            given = (shredded.fits, ranks, *self._laid.arrays, self._seen, *room)
            taken, opened, done = kernels.match(*given)
            if done:
                break
            if self._room >= most:
                return None
            self._room *= 2
        cut = (room[0, :taken], room[1, :taken], room[2, :opened], room[3, :opened])
        if self._is_ordered:
            return tuple([each] for each in cut)  # type: ignore[return-value]
        return [self._numbers[cut[0]].astype(np.int32)], [cut[1]], [self._numbers[cut[2]].astype(np.int32)], [cut[3]]

    def _rank(self, ranking: _Ranking, shredded: Shredded, ranks: Places) -> None:
        row = ranking.row
        if not ranking.axis.is_text:
            kernels.rank_numbers(shredded.values[row], np.asarray(ranking.constants, np.float64), ranks)
            return
        texts = [each for each in ranking.constants if isinstance(each, bytes)]
        joined = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
        bounds = np.cumsum([0, *map(len, texts)])
        spans = shredded.starts[row], shredded.ends[row]
        kernels.rank_texts(shredded.data, *spans, shredded.fits, joined, bounds, ranks)


def gathered(conditions: Iterable[tuple[int, Condition]]) -> tuple[list[Alike], list[tuple[int, Condition]]]:
    """Conditions with their numbers, those of one form together; and those without a form."""
    alike: dict[Form, tuple[list[int], list[tuple[Constant, ...]]]] = {}
    others: list[tuple[int, Condition]] = []
    for number, condition in conditions:
        found = formed(condition)
        if found is None:
            others.append((number, condition))
            continue
        form, constants = found
        numbers, rows = alike.setdefault(form, ([], []))
        numbers.append(number)
        rows.append(constants)
    return [Alike(form, *each) for form, each in alike.items()], others


def _rankings(groups: Sequence[Alike], wanted: Wanted) -> list[_Ranking]:
    """All constants, by the axis they are compared with."""
    found: dict[Axis, set[Constant]] = {}
    for group in groups:
        for stage in group.form.stages:
            for test in chain.from_iterable(stage):
                if isinstance(test, Test):
                    found.setdefault(test.axis, set()).update(each[test.constant] for each in group.constants)
    rankings = []
    for axis in sorted(found):
        row = wanted.leaves.index(axis.leaf)
        if axis.is_text:
            rankings.append(_Ranking(axis, row, tuple(sorted(each for each in found[axis] if isinstance(each, bytes)))))
        else:
            rankings.append(_Ranking(axis, row, np.array(sorted(map(float, found[axis])))))
    return rankings


class _Laid:
    """Conditions as the kernel takes them; within a form they differ in `lows` and `highs` only."""

    def __init__(self, rankings: Sequence[_Ranking], groups: Sequence[Alike]) -> None:
        self._rankings = rankings
        self._axes = {each.axis: number for number, each in enumerate(rankings)}
        self._stage_bounds, self._clause_bounds, self._test_bounds = [0], [0], [0]
        self._tests: list[int] = []
        self._test_axes: list[int] = []
        self._negated: list[bool] = []
        self._first_tests: list[int] = []
        self._lows: list[Places] = []
        self._highs: list[Places] = []
        self._grids = Grids([each.size for each in rankings])
        forms: list[int] = []
        bases: list[Indices] = []
        users: list[list[Indices]] = [[] for _ in rankings]
        settled: list[Indices] = []
        first = size = 0
        whole: list[tuple[int, int, list[list[tuple[int, ...]]]]] = []
        for number, group in enumerate(groups):
            count = len(group.numbers)
            mine = np.arange(first, first + count)
            for axis in group.form.axes:
                users[self._axes[axis]].append(mine)
            if group.form.is_settled:
                settled.append(mine)
            stages = self._form(group)
            whole.append((first, count, stages))
            tests = len(self._test_axes) - self._first_tests[-1]
            forms += [number] * count
            bases.append(size + tests * np.arange(count))
            first, size = first + count, size + tests * count
        for number, (first, count, stages) in enumerate(whole):
            for clauses in product(*stages):
                self._index(number, first, count, [*chain.from_iterable(clauses)])
        numbers = [self._stage_bounds, self._clause_bounds, self._test_bounds, self._tests, self._test_axes]
        self.arrays: tuple[Any, ...] = (
            *(np.array(each, np.int64) for each in numbers),
            np.array(self._negated, np.bool_),
            np.array(forms, np.int64),
            np.array(self._first_tests, np.int64),
            _joined(bases, np.int64),
            _joined([each.ravel() for each in self._lows], np.int32),
            _joined([each.ravel() for each in self._highs], np.int32),
            np.cumsum([0, *(sum(map(len, each)) for each in users)]),
            _joined([*chain.from_iterable(users)], np.int64),
            _joined(settled, np.int64),
            *self._grids.arrays(),
        )

    def _form(self, group: Alike) -> list[list[tuple[int, ...]]]:
        """Lay out the tests of a form; gives the numbers of those in each clause of each stage."""
        self._first_tests.append(len(self._test_axes))
        columns: list[tuple[Places, Places]] = []
        found: list[list[tuple[int, ...]]] = []
        for stage in group.form.stages:
            found.append([])
            for clause in stage:
                numbers = []
                for axis, tests in _by_axis(clause):
                    for low, high, negated in self._intervals(axis, tests, group):
                        numbers.append(len(columns))
                        columns.append((low, high))
                        self._test_axes.append(self._axes[axis] if isinstance(axis, Axis) else axis)
                        self._negated.append(negated)
                self._tests += numbers
                self._test_bounds.append(len(self._tests))
                found[-1].append(tuple(numbers))
            self._clause_bounds.append(len(self._test_bounds) - 1)
        self._stage_bounds.append(len(self._clause_bounds) - 1)
        shape = (len(group.numbers), len(columns))
        self._lows.append(np.stack([low for low, _ in columns], 1) if columns else np.zeros(shape, np.int32))
        self._highs.append(np.stack([high for _, high in columns], 1) if columns else np.zeros(shape, np.int32))
        return found

    def _intervals(self, axis: Axis | int, tests: Sequence[Test], group: Alike) -> list[tuple[Places, Places, bool]]:
        """Tests of one axis that must all hold: one interval, and one for each that must be left out."""
        count = len(group.numbers)
        low, high = np.zeros(count, np.int32), np.full(count, _EDGE, np.int32)
        found: list[tuple[Places, Places, bool]] = []
        for test in tests:
            ranking = self._rankings[self._axes[test.axis]]
            at = 2 * ranking.places([each[test.constant] for each in group.constants]) + 1
            match test.operator:
                case "!=":
                    found.append((at, at, True))
                case "=":
                    low, high = np.maximum(low, at), np.minimum(high, at)
                case ">=" | ">":
                    low = np.maximum(low, at if test.operator == ">=" else at + 1)
                case "<=" | "<":
                    high = np.minimum(high, at if test.operator == "<=" else at - 1)
        if len(found) < len(tests) or not tests:
            found.insert(0, (low, high, False))
        return found

    def _index(self, number: int, first: int, count: int, tests: list[int]) -> None:
        """Put one clause of a form, all stages together, into the grid where it is narrowest."""
        begin = self._first_tests[number]
        if any(self._test_axes[begin + test] == kernels.NEVER for test in tests):
            return
        tests = [test for test in tests if self._test_axes[begin + test] >= 0]
        clause = len(self._test_bounds) - 1
        self._tests += tests
        self._test_bounds.append(len(self._tests))
        spans: dict[int, tuple[Places, Places]] = {}
        for test in tests:
            axis = self._test_axes[begin + test]
            if not self._negated[begin + test]:
                last = self._rankings[axis].size - 1
                low, high = self._lows[number][:, test], np.minimum(self._highs[number][:, test], last)
                if axis in spans:
                    low, high = np.maximum(spans[axis][0], low), np.minimum(spans[axis][1], high)
                spans[axis] = low, high
        self._grids.add(first + np.arange(count, dtype=np.int32), clause, spans)


def _by_axis(clause: Sequence[Test | Fixed]) -> list[tuple[Axis | int, list[Test]]]:
    """The tests of a clause, those of one axis together; what the template decides has an axis of its own."""
    found: dict[Axis | int, list[Test]] = {}
    for test in clause:
        if isinstance(test, Fixed):
            found.setdefault(kernels.ALWAYS if test.holds else kernels.NEVER, [])
        else:
            found.setdefault(test.axis, []).append(test)
    return list(found.items())


def _joined(arrays: Sequence[NDArray[np.generic]], kind: type[np.generic]) -> NDArray[np.generic]:
    return np.concatenate(arrays).astype(kind) if arrays else np.empty(0, kind)
