"""Interval joins in columns: the work of `interval.py`, a few thousand items at a time (`intake.py`).

The items of a batch arrive at once; then each query answers for the items of the first `for` that can meet nothing new,
and what no query needs is dropped.
Values, bounds and margins are integers of one unit; larger ones raise OverflowError, and are left to the operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.branch.held_items import Shelf
from anabranch.branch.intake.batches import BatchReader, EntryBatch, JudgedEntry
from anabranch.branch.intake.lookahead import own_time
from anabranch.branch.intake.merge import Merge
from anabranch.branch.joins.answers import PairingAnswers
from anabranch.branch.joins.intake import JoinBatch, JoinIntake, Placed, SideItems
from anabranch.branch.joins.interval import ROUNDING_BITS, IntervalJoin, IntervalQuery
from anabranch.branch.ports import InputStream
from anabranch.branch.windows.selection import WindowProgress
from anabranch.columnar.joins.answering import TupleColumns
from anabranch.columnar.joins.interval import IntervalLane, Near, interval_tuples
from anabranch.columnar.scan.entries import SELECTED, SHOWN, VOID, common_unit, in_unit
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.errors import DynamicError
from anabranch.law.rounds.joins import declared_time
from anabranch.runtime.units import Candidates, Units
from anabranch.stream.elements import Item
from anabranch.values.placing import Moment

_MOST_SIDES = 4
"""With more sides, margins in units might not fit into an int64."""


class DeclaredReader(BatchReader):
    """Parses the entries of a `for` without a window into columns; their values are their declared times."""

    def __init__(self, stream: InputStream, clause: int, units: Units) -> None:
        super().__init__(stream, clause, units)
        self._origin = Fraction(0)

    def _judged(self, item: Item, found: Candidates) -> JudgedEntry:
        path = self._stream.source.time
        assert path is not None
        own, selected = own_time(item, path), any(each.selected for each in found.nodes)
        try:
            time = declared_time(item.tree, path)
        except DynamicError as error:
            return JudgedEntry(VOID, None, own, found.error or (error if selected else None))
        return JudgedEntry(SELECTED if selected else SHOWN, time, own, found.error)


@dataclass(frozen=True, slots=True)
class _SideTimes:
    """The times of a side's items by their numbers, in units, and what the arriving ones show."""

    placed: Placed
    selected: Indices
    """The numbers of the items that take part, held and arriving, in their order."""
    late: Indices
    shown: tuple[Fraction, ...]
    """The first and the largest of the times that arrive, if there are any."""

    @property
    def values(self) -> Indices:
        return self.placed.values

    @property
    def lane(self) -> IntervalLane:
        return IntervalLane(self.selected, self.values)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """How far the items of each further side may lie from one of the first, in units; where two queries are the same,
    they meet the same tuples.
    """

    reach: tuple[tuple[int, int], ...]
    size: int
    """The sum of the numbers that the condition computes with, which roundings depend on."""
    done: int
    """The number of items of the first side that are answered."""

    def margins(self, values: Indices) -> Indices:
        """By how much an interval is wider for an item, since conditions compute in doubles."""
        return ((len(self.reach) + 1) * (np.abs(values) + self.size)) >> ROUNDING_BITS


class IntervalJoinColumns:
    """The column path of interval joins; it changes the merge, the operator and the shelf as the operator would."""

    def __init__(self, merge: Merge, operator: IntervalJoin, shelf: Shelf) -> None:
        self._operator = operator
        readers = [
            (stream.name, DeclaredReader(stream, number, shelf.units)) for number, stream in enumerate(operator.streams)
        ]
        self._intake = JoinIntake(merge, shelf, operator.everyone, readers)
        if len(readers) > _MOST_SIDES:
            self._intake.able = False

    def take(self) -> bool:
        """Take some of the released entries; False where there are none, or none for columns."""
        operator = self._operator
        batch = self._intake.read(operator.sides)
        if batch is None:
            return False
        try:
            unit = self._unit(batch)
            found = [
                _times_of(each, batch.taken[side.input], side.stream, progress, unit)
                for each, side, progress in zip(batch.batches, self._intake.sides, operator.progress, strict=True)
            ]
            bounds = [_bounds_of(each, unit) for each in operator.asked]
        except OverflowError:
            return False
        items = self._intake.arrive(batch, operator.sides, [each.placed for each in found])
        if items is None:
            return False
        for progress, each in zip(operator.progress, found, strict=True):
            for value in each.shown:  # the progress of all times is that of these two
                progress.is_late(0, value)
        self._intake.set_aside(batch, items, [each.late for each in found])
        self._answer(batch, found, items, bounds, unit)
        self._intake.skip(batch)
        return True

    def _unit(self, batch: JoinBatch) -> int:
        """The unit of all times and bounds."""
        exact: list[Fraction] = []
        for progress, side in zip(self._operator.progress, self._intake.sides, strict=True):
            largest = progress.largest(0)
            if isinstance(largest, float):
                raise OverflowError  # infinity: the input has ended
            exact += [side.stream.source.scale(side.stream.source.time).slack]
            exact += [] if largest is None else [largest]
        for asked in self._operator.asked:
            exact += [asked.size, *(each for both in asked.reach for each in both)]
        return common_unit([each.values for each in batch.batches], exact)

    def _answer(
        self,
        batch: JoinBatch,
        found: Sequence[_SideTimes],
        items: Sequence[SideItems],
        bounds: Sequence[_Bounds],
        unit: int,
    ) -> None:
        """Answer what can be answered, and drop what all queries are done with."""
        operator = self._operator
        columns = TupleColumns([each.shredded for each in batch.batches])
        alike: dict[_Bounds, list[IntervalQuery]] = {}
        for asked, each in zip(operator.asked, bounds, strict=True):
            alike.setdefault(each, []).append(asked)
        reached = [None if each.reached is None else int(each.reached * unit) for each in operator.progress]
        numbers = [np.arange(len(each.values)) for each in found]
        kept: list[Flags] = [np.zeros(len(each.selected), np.bool_) for each in found]
        for each, those in alike.items():
            ready = each.done + _ready(found[0].lane, each, reached[1:])
            if ready > each.done:
                askers = [asked.asker for asked in those]
                answers = PairingAnswers(askers, [], batch.joins, columns, items, [], named=-1)
                first = IntervalLane(found[0].selected[each.done : ready], found[0].values)
                lanes = [first, *(side.lane for side in found[1:])]
                guards = answers.guards(numbers)
                for picks in interval_tuples(lanes, _near(first, each), guards):
                    answers.answer(picks)
            for asked in those:
                asked.done = ready
            _keep(kept, [side.lane for side in found], each, ready, reached[0])
        operator.all_done()
        operator.sides[:] = [
            mine.all(each.selected[those].tolist()) for mine, each, those in zip(items, found, kept, strict=True)
        ]


def _times_of(batch: EntryBatch, taken: int, stream: InputStream, progress: WindowProgress, unit: int) -> _SideTimes:
    """The times of a side's items, and which arriving ones are late (LAWS 3.2)."""
    scale = stream.source.scale(stream.source.time)
    values = batch.values.in_units(unit)[: batch.before + taken]
    status = batch.status[: len(values)].copy()
    numbers = batch.before + np.flatnonzero(status[batch.before :] != VOID)
    late = numbers[:0]
    shown: tuple[Fraction, ...] = ()
    if len(numbers):
        new = values[numbers]
        largest = progress.largest(0)
        start = new[0] if largest is None else in_unit(Fraction(largest), unit)
        running = np.maximum.accumulate(np.concatenate([[start], new]))
        late = numbers[new < running[:-1] - in_unit(scale.slack, unit)]
        status[late] = VOID
        shown = Fraction(int(new[0]), unit), Fraction(int(running[-1]), unit)
    status[: batch.before] = SELECTED
    are_times = np.full(len(values), scale.is_time)
    others = [number for number, each in batch.values.others.items() if isinstance(each, Moment)]
    are_times[[number for number in others if number < len(values)]] = True
    return _SideTimes(Placed(values, unit, are_times), np.flatnonzero(status == SELECTED), late, shown)


def _bounds_of(asked: IntervalQuery, unit: int) -> _Bounds:
    reach = tuple((in_unit(below, unit), in_unit(above, unit)) for below, above in asked.reach)
    return _Bounds(reach, in_unit(asked.size, unit), asked.done)


def _near(first: IntervalLane, bounds: _Bounds) -> list[Near]:
    """By further side, the values that are near to those of the first."""
    values = first.own_values
    margins = bounds.margins(values)
    return [Near(values - below - margins, values + above + margins) for below, above in bounds.reach]


def _ready(first: IntervalLane, bounds: _Bounds, reached: Sequence[int | None]) -> int:
    """How many more items of the first side can meet nothing new."""
    pending = IntervalLane(first.items[bounds.done :], first.values)
    waits = np.zeros(len(pending.items), np.bool_)
    for near, each in zip(_near(pending, bounds), reached, strict=True):
        waits |= near.most >= each if each is not None else True
    return int(np.argmax(waits)) if waits.any() else len(waits)


def _keep(
    kept: Sequence[Flags], lanes: Sequence[IntervalLane], bounds: _Bounds, done: int, reached: int | None
) -> None:
    """Keep the items that may still be met: those of the first side that wait, and what is near to them, or later."""
    kept[0][done:] = True
    if reached is None:
        for each in kept[1:]:
            each[:] = True
        return
    least = min(reached, int(lanes[0].own_values[done:].min(initial=reached)))
    for mine, lane, (below, _) in zip(kept[1:], lanes[1:], bounds.reach, strict=True):
        values = lane.own_values
        mine |= values + below + bounds.margins(values) >= least
