"""What queries make of the pairs of a join, in columns.

All queries of a branch read the same items, once.
Those of one pairing see the same pairs: a condition that is weaker than all of theirs leaves out most of what none of
them wants, then each has its own condition and result (full join result sharing: sharing paper, 5.3.2).
A narrower pairing has those of the pairs that stand in its windows (SELECTJOINRESULT).
A query that is not made for columns gets its pairs one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.branch.held_items import HeldNode
from anabranch.branch.joins.nested import Led
from anabranch.branch.members import Asker
from anabranch.branch.ports import InputStream
from anabranch.columnar.joins.pairs import CompiledJoin, compile_join, read_together
from anabranch.columnar.joins.relaxing import relaxed
from anabranch.columnar.joins.step_join import PairAnswers, PairColumns
from anabranch.columnar.match.condition import NO, UNCLEAR, Settled
from anabranch.columnar.match.selecting import CompiledFor
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.template import Template
from anabranch.errors import DynamicError
from anabranch.language import ast


@dataclass(frozen=True, slots=True)
class CompiledJoins:
    """The joins of a branch for items that fit two templates."""

    sides: tuple[CompiledFor, CompiledFor]
    """What all of them take and read."""
    joins: Mapping[str, CompiledJoin]
    """By the key of the query, for those that are made for columns."""

    @staticmethod
    def of(
        askers: Sequence[Asker], streams: tuple[InputStream, InputStream], templates: tuple[Template, Template]
    ) -> CompiledJoins | None:
        """Compile what can be; None where that is nothing."""
        roots = streams[0].root.name.local, streams[1].root.name.local
        times = streams[0].time, streams[1].time
        found: dict[str, CompiledJoin] = {}
        for asker in askers:
            flwor = asker.standing.plain_hole
            join = compile_join(flwor, roots, templates, times) if isinstance(flwor, ast.Flwor) else None
            if join is not None:
                found[asker.key] = join
        if not found:
            return None
        joins = dict(zip(found, read_together(list(found.values())), strict=True))
        return CompiledJoins(next(iter(joins.values())).sides, joins)


_Answer: TypeAlias = Callable[[Indices, Indices], None]


class Items(Protocol):
    """The items of a side by their numbers."""

    def held(self, number: int) -> HeldNode: ...


@dataclass(frozen=True, slots=True)
class InWindow:
    """The values of a side's items by their numbers, and the step of its window."""

    values: Indices
    step: int


class PairingAnswers:
    """Answers the pairs of a pairing, for its queries and those of narrower ones."""

    def __init__(
        self, led: Led, joins: CompiledJoins, columns: PairColumns, items: Sequence[Items], lanes: Sequence[InWindow]
    ) -> None:
        self._items = items
        self._lanes = lanes
        askers = [*led.pairing.askers, *(asker for each in led.narrower for asker in each.pairing.askers)]
        found = {asker.key: joins.joins.get(asker.key) for asker in askers}
        self._answers = [self._answer_of(asker, found[asker.key], columns) for asker in led.pairing.askers]
        self._narrower = [
            (each.shifts, [self._answer_of(asker, found[asker.key], columns) for asker in each.pairing.askers])
            for each in led.narrower
        ]
        weakest = relaxed([Settled(UNCLEAR) if join is None else join.condition for join in found.values()])
        is_worth_it = len(askers) > 1 and not isinstance(weakest, Settled)
        self._weakest = columns.judge(weakest) if is_worth_it else None

    def answer(self, x: Indices, y: Indices, places: NDArray[np.int64] | None = None) -> None:
        """Answer some pairs, in order; the positions of both windows are needed where there are narrower ones."""
        if self._weakest is not None:
            possible = np.flatnonzero(self._weakest.verdicts(x, y) != NO)
            x, y = x.take(possible), y.take(possible)
            places = None if places is None else places.take(possible, axis=1)
        for each in self._answers:
            each(x, y)
        if places is not None:
            for shifts, answers in self._narrower:
                inside = np.flatnonzero(self._are_inside((x, y), places, shifts))
                a, b = x.take(inside), y.take(inside)
                for each in answers:
                    each(a, b)

    def _are_inside(self, pair: tuple[Indices, Indices], places: NDArray[np.int64], shifts: Sequence[int]) -> Flags:
        """Which pairs a narrower pairing has: those of which both items stand behind the start of its windows."""
        found = np.ones(len(pair[0]), np.bool_)
        for items, lane, at, shift in zip(pair, self._lanes, places, shifts, strict=True):
            if shift:
                found &= lane.values.take(items) >= (at + shift) * lane.step
        return found

    def _answer_of(self, asker: Asker, join: CompiledJoin | None, columns: PairColumns) -> _Answer:
        return partial(self._one_by_one, asker) if join is None else self._in_columns(asker, join, columns)

    def _in_columns(self, asker: Asker, join: CompiledJoin, columns: PairColumns) -> _Answer:
        answers = PairAnswers(join, columns, partial(self._piece, asker))

        def answer(x: Indices, y: Indices) -> None:
            for laid in answers.answer(x, y):
                asker.answers.extend(laid.data, laid.entries, laid.first)

        return answer

    def _piece(self, asker: Asker, x: int, y: int) -> bytes:
        """The piece of one pair, by the law."""
        pair = self._items[0].held(x), self._items[1].held(y)
        try:
            return asker.tuple(pair, [each.node for each in pair]).text.encode()
        except DynamicError as error:
            asker.answers.bury(pair[0].kept, error, pair)
            return b""

    def _one_by_one(self, asker: Asker, x: Indices, y: Indices) -> None:
        for first, second in zip(x.tolist(), y.tolist(), strict=True):
            pair = self._items[0].held(first), self._items[1].held(second)
            asker.answers.give(pair[0].kept, pair, partial(asker.tuple, pair, [each.node for each in pair]))
