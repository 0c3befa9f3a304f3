"""What queries make of the pairs of a join, in columns.

All queries of a branch read the same items, once.
Those of one pairing see the same pairs: a condition that is weaker than all of theirs leaves out most of what none of
them wants, then each has its own condition and result (full join result sharing: sharing paper, 5.3.2).
A query that is not made for columns gets its pairs one by one.

A narrower pairing has those of the pairs of a wider one that stand in its windows (SELECTJOINRESULT, selective join
result sharing).
The paper takes the first units of the wider windows; under step semantics the items that enter are the last of them, so
it is the *last* D units that a narrower window holds.
Its window ends where the wider one does only if they have the same step and their sizes differ by a multiple of it.
And it must have settled: until the wider windows are first full, the narrower ones have moved when those had not, and
items that come within the slack may have entered in another order.
From then on a narrower window is the wider one with what is below its start left out, in the same order, for good;
until then, and where the streams end and windows close in the order of what still waits, each moves on its own.

Windows that nobody has asked for are not made: where neither of two joins is the wider one on both sides, a third that
is would have more pairs than it saves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.algebra.window import Extent
from anabranch.branch.held_items import HeldNode
from anabranch.branch.joins.step_join import JoinWindow, Pairing, StepJoin
from anabranch.branch.members import Asker
from anabranch.branch.ports import InputStream
from anabranch.branch.windows.selection import WindowSelection
from anabranch.columnar.items.query import CompiledFor
from anabranch.columnar.joins.condition import relaxed
from anabranch.columnar.joins.pairs import CompiledJoin, compile_join, read_together
from anabranch.columnar.joins.step_join import PairAnswers, PairColumns
from anabranch.columnar.match.condition import NO, UNCLEAR, Settled
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.look import Look
from anabranch.errors import DynamicError
from anabranch.language import ast

_LOOKED_AT = 16
"""How many wide pairings are looked at for each, so that thousands cost no more than thousands of times one."""


@dataclass(frozen=True, slots=True)
class Narrower:
    """A pairing that a wider one contains."""

    pairing: Pairing
    shifts: tuple[int, ...]
    """By side: how many positions its window is ahead, which starts that much later and ends at the same place."""


@dataclass(frozen=True, slots=True)
class Led:
    """A pairing that moves on its own, and those that it contains."""

    pairing: Pairing
    narrower: list[Narrower]


class Leaders:
    """Finds for each pairing the wide one that contains it; who has settled once need not be looked at again."""

    def __init__(self, operator: StepJoin) -> None:
        self._pairings = operator.pairings
        self._judges = operator.judges
        self._settled: set[tuple[str, str]] = set()
        self._grids: dict[tuple[tuple[Fraction, Fraction], ...], list[Pairing]] = {}
        """Pairings whose windows end at the same places, the wide ones first."""
        for pairing in sorted(self._pairings, key=lambda each: [-side.extent.size for side in each.sides]):
            extents = (side.extent for side in pairing.sides)
            grid = tuple((extent.step, extent.size % extent.step) for extent in extents)
            self._grids.setdefault(grid, []).append(pairing)

    def apart(self) -> list[Led]:
        """All pairings, each on its own."""
        return [Led(each, []) for each in self._pairings]

    def led(self) -> list[Led]:
        """All pairings, each behind a wide one that contains it."""
        return [each for pairings in self._grids.values() for each in self._led(pairings)]

    def _led(self, pairings: Sequence[Pairing]) -> list[Led]:
        found: list[Led] = []
        for pairing in pairings:
            for wider in found[:_LOOKED_AT]:
                shifts = self._shifts(pairing, wider.pairing)
                if shifts is not None:
                    wider.narrower.append(Narrower(pairing, shifts))
                    break
            else:
                found.append(Led(pairing, []))
        return found

    def _shifts(self, narrow: Pairing, wide: Pairing) -> tuple[int, ...] | None:
        found = shifts([side.extent for side in narrow.sides], [side.extent for side in wide.sides])
        names = narrow.name, wide.name
        if found is not None and names not in self._settled:
            sides = zip(narrow.sides, wide.sides, self._judges, found, strict=True)
            if not all(_has_settled(*each) for each in sides):
                return None
            self._settled.add(names)
        return found


def shifts(narrow: Sequence[Extent], wide: Sequence[Extent]) -> tuple[int, ...] | None:
    """By how many positions windows are ahead of wider ones that end where they do; None where those do not."""
    found: list[int] = []
    for one, other in zip(narrow, wide, strict=True):
        shift = (other.size - one.size) / one.step
        if one.step != other.step or shift < 0 or shift.denominator != 1:
            return None
        found.append(int(shift))
    return tuple(found)


def _has_settled(side: JoinWindow, other: JoinWindow, judge: WindowSelection, shift: int) -> bool:
    following = max(side.next, judge.first_window(side.extent))
    if following != max(other.next, judge.first_window(other.extent)) + shift:
        return False
    start = side.extent.start(following - 1)
    if [each.key for each in side.held] != [each.key for each in other.held if each.value >= start]:
        return False
    waiting: dict[int, list[tuple[int, int]]] = {}
    for position, items in other.waiting.items():
        start = side.extent.start(position + shift)
        if keys := [each.key for each in items if each.value >= start]:
            waiting[position + shift] = keys
    return waiting == {position: [each.key for each in items] for position, items in side.waiting.items()}


# --- answers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CompiledJoins:
    """The joins of a branch for items of two looks."""

    sides: tuple[CompiledFor, CompiledFor]
    """What all of them take and read."""
    joins: Mapping[str, CompiledJoin]
    """By the key of the query, for those that are made for columns."""

    @staticmethod
    def of(
        askers: Sequence[Asker], streams: tuple[InputStream, InputStream], looks: tuple[Look, Look]
    ) -> CompiledJoins | None:
        """Compile what can be; None where that is nothing."""
        roots = streams[0].root.name.local, streams[1].root.name.local
        times = streams[0].source.time, streams[1].source.time
        found: dict[str, CompiledJoin] = {}
        for asker in askers:
            flwor = asker.standing.plain_hole
            join = compile_join(flwor, roots, looks, times) if isinstance(flwor, ast.Flwor) else None
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

    def answer(self, x: Indices, y: Indices, places: NDArray[np.int64]) -> None:
        """Answer some pairs, in order; the positions of both windows are needed where there are narrower ones."""
        if self._weakest is not None:
            possible = np.flatnonzero(self._weakest.verdicts(x, y) != NO)
            x, y = x.take(possible), y.take(possible)
            places = places.take(possible, axis=1) if self._narrower else places
        for each in self._answers:
            each(x, y)
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
