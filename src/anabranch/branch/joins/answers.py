"""The answers of queries to the tuples of a join, in columns.

All queries of a branch read the same items, once.
Queries of one pairing see the same tuples: a condition that is weaker than all of theirs first drops most tuples that
none of them selects, then each applies its own condition and result (full join result sharing: sharing paper, 5.3.2).
A query that does not compile gets its tuples one by one.

A narrower pairing has the tuples of a wider one that stand in its windows (SELECTJOINRESULT, selective join result
sharing).
The paper takes the first units of the wider windows; under step semantics the items that enter are the last of them, so
a narrower window holds the *last* D units.
Its window ends where the wider one does only if they have the same step and their sizes differ by a multiple of it.
And it must have settled: until the wider windows are first full, the narrower ones move at other times, and items
within the slack may have entered in another order.
From then on a narrower window is the wider one without what is below its start, in the same order, for good; until
then, and at the end of streams, where windows close in the order of waiting items, each moves on its own.

Windows that no query has are not made: where neither of two joins is the wider one on both sides, a third that is
would have more tuples than it saves.
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
from anabranch.branch.held_items import HeldItem, HeldNode
from anabranch.branch.joins.step_join import JoinWindow, Pairing, StepJoin
from anabranch.branch.members import Asker
from anabranch.branch.ports import InputStream
from anabranch.branch.windows.selection import WindowSelection
from anabranch.columnar.items.query import CompiledFor
from anabranch.columnar.joins.answering import TupleAnswers, TupleColumns
from anabranch.columnar.joins.compiling import CompiledJoin, compile_join, read_together
from anabranch.columnar.joins.condition import relaxed
from anabranch.columnar.joins.kernels import Guards
from anabranch.columnar.joins.step_join import Picks
from anabranch.columnar.match.condition import NO, UNCLEAR, Settled
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.look import Look
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.steps import Exhausted

_LOOKED_AT = 16
"""The number of wide pairings that are tried for each, so that the cost stays linear in the pairings."""


@dataclass(frozen=True, slots=True)
class Narrower:
    """A pairing that is contained in a wider one."""

    pairing: Pairing
    shifts: tuple[int, ...]
    """By side: by how many positions its window is ahead; it starts that much later and ends at the same place."""


@dataclass(frozen=True, slots=True)
class LedPairing:
    """A pairing that moves on its own, and the pairings that it contains."""

    pairing: Pairing
    narrower: list[Narrower]


class Leaders:
    """Finds for each pairing the widest one that contains it; settled pairings are cached."""

    def __init__(self, operator: StepJoin) -> None:
        self._pairings = operator.pairings
        self._judges = operator.judges
        self._settled: set[tuple[str, str]] = set()
        self._grids: dict[tuple[tuple[Fraction, Fraction], ...], list[Pairing]] = {}
        """Pairings whose windows end at the same places, widest first."""
        for pairing in sorted(self._pairings, key=lambda each: [-side.extent.size for side in each.sides]):
            extents = (side.extent for side in pairing.sides)
            grid = tuple((extent.step, extent.size % extent.step) for extent in extents)
            self._grids.setdefault(grid, []).append(pairing)

    def apart(self) -> list[LedPairing]:
        """All pairings, each on its own."""
        return [LedPairing(each, []) for each in self._pairings]

    def led(self) -> list[LedPairing]:
        """All pairings, each behind a wide one that contains it, where there is one."""
        return [each for pairings in self._grids.values() for each in self._led(pairings)]

    def _led(self, pairings: Sequence[Pairing]) -> list[LedPairing]:
        found: list[LedPairing] = []
        for pairing in pairings:
            for wider in found[:_LOOKED_AT]:
                shifts = self._shifts(pairing, wider.pairing)
                if shifts is not None:
                    wider.narrower.append(Narrower(pairing, shifts))
                    break
            else:
                found.append(LedPairing(pairing, []))
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
    """By how many positions windows are ahead of wider ones with the same ends; None where the ends differ."""
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
    """The joins of a branch, compiled for the looks of its sides."""

    sides: tuple[CompiledFor, ...]
    """The compiled `for`s that all of them share."""
    joins: Mapping[str, CompiledJoin]
    """By key of the query, for those that compile."""

    @staticmethod
    def of(askers: Sequence[Asker], streams: Sequence[InputStream], looks: Sequence[Look]) -> CompiledJoins | None:
        """Compile the queries that can be; None where none can."""
        roots = [each.root.name.local for each in streams]
        times = [each.source.time for each in streams]
        found: dict[str, CompiledJoin] = {}
        for asker in askers:
            flwor = asker.standing.plain_hole if asker.standing.separate else None
            join = compile_join(flwor, roots, looks, times) if isinstance(flwor, ast.Flwor) else None
            if join is not None:
                found[asker.key] = join
        if not found:
            return None
        joins = dict(zip(found, read_together(list(found.values())), strict=True))
        return CompiledJoins(next(iter(joins.values())).sides, joins)


_Answer: TypeAlias = Callable[[Picks], None]


class Items(Protocol):
    """The items of a side by their numbers."""

    def held(self, number: int) -> HeldNode: ...


@dataclass(frozen=True, slots=True)
class InWindow:
    """The values of a side's items by their numbers, and the step of its window."""

    values: Indices
    step: int


_NOWHERE = np.empty((0, 0), np.int64)


class PairingAnswers:
    """Answers the tuples of a pairing, for its queries and those of narrower pairings."""

    def __init__(
        self,
        askers: Sequence[Asker],
        narrower: Sequence[tuple[Sequence[int], Sequence[Asker]]],
        joins: CompiledJoins,
        columns: TupleColumns,
        items: Sequence[Items],
        lanes: Sequence[InWindow],
        named: int = 0,
    ) -> None:
        """`narrower` are the queries of narrower pairings, each behind the shifts of its windows.

        `named` is the side whose item names a tuple that is set aside for no fault of its items.
        """
        self._items = items
        self._lanes = lanes
        self._columns = columns
        self._named = named
        every = [*askers, *(asker for _, those in narrower for asker in those)]
        found = {asker.key: joins.joins.get(asker.key) for asker in every}
        self._answers = [self._answer_of(asker, found[asker.key]) for asker in askers]
        self._narrower = [
            (shifts, [self._answer_of(asker, found[asker.key]) for asker in those]) for shifts, those in narrower
        ]
        self._wanted = relaxed([Settled(UNCLEAR) if join is None else join.condition for join in found.values()])
        is_worth_it = len(every) > 1 and not isinstance(self._wanted, Settled)
        self._weakest = columns.judge(self._wanted) if is_worth_it else None

    def guards(self, lanes: Sequence[Indices]) -> Guards:
        """Conditions that hold for all tuples that may be answered; `lanes` are the items of each side by number."""
        return self._columns.guards(self._wanted, lanes)

    def answer(self, picks: Picks, places: NDArray[np.int64] = _NOWHERE) -> None:
        """Answer some tuples, in order; `places` are the positions of all windows, for narrower pairings."""
        if self._weakest is not None:
            possible = np.flatnonzero(self._weakest.verdicts(picks) != NO)
            picks = picks.take(possible, axis=1)
            places = places.take(possible, axis=1) if self._narrower else places
        for each in self._answers:
            each(picks)
        for shifts, answers in self._narrower:
            inside = picks.take(np.flatnonzero(self._are_inside(picks, places, shifts)), axis=1)
            for each in answers:
                each(inside)

    def _are_inside(self, picks: Picks, places: NDArray[np.int64], shifts: Sequence[int]) -> Flags:
        """Which tuples belong to a narrower pairing: those whose items all stand behind the start of its windows."""
        found = np.ones(picks.shape[1], np.bool_)
        for items, lane, at, shift in zip(picks, self._lanes, places, shifts, strict=True):
            if shift:
                found &= lane.values.take(items) >= (at + shift) * lane.step
        return found

    def _answer_of(self, asker: Asker, join: CompiledJoin | None) -> _Answer:
        return partial(self._one_by_one, asker) if join is None else self._in_columns(asker, join)

    def _in_columns(self, asker: Asker, join: CompiledJoin) -> _Answer:
        failures: list[tuple[HeldItem, DynamicError, list[HeldNode]]] = []
        answers = TupleAnswers(join, self._columns, partial(self._piece, asker, failures))

        def answer(picks: Picks) -> None:
            failures.clear()
            try:
                found = [*answers.answer(picks)]
            except Exhausted:  # which may end the query, and then just behind this tuple
                self._one_by_one(asker, picks)
                return
            for laid in found:
                asker.answers.extend(laid.data, laid.entries, laid.first)
            for failure in failures:
                asker.answers.bury(*failure)

        return answer

    def _held(self, picks: Sequence[int]) -> list[HeldNode]:
        return [items.held(number) for items, number in zip(self._items, picks, strict=True)]

    def _piece(
        self, asker: Asker, failures: list[tuple[HeldItem, DynamicError, list[HeldNode]]], picks: Sequence[int]
    ) -> bytes:
        """The piece of one tuple, by the law; nothing for one that fails, which is noted."""
        found = self._held(picks)
        try:
            return asker.tuple(found, [each.node for each in found]).text.encode()
        except Exhausted:
            raise
        except DynamicError as error:
            failures.append((found[self._named].kept, error, found))
            return b""

    def _one_by_one(self, asker: Asker, picks: Picks) -> None:
        for each in picks.T.tolist():
            found = self._held(each)
            make = partial(asker.tuple, found, [held.node for held in found])
            asker.answers.give(found[self._named].kept, found, make)
