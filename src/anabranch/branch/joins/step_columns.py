"""Step joins in columns: the work of `step_join.py`, a few thousand items at a time (`intake.py`).

The entries of each stream are parsed into columns once for all queries, for each `for` that reads it; each pairing then
moves its own windows over them, unless a wider one has all its tuples, and each query answers the tuples
(`answers.py`).

All values, sizes and steps of time windows are integers of one unit; larger ones raise OverflowError, and are left to
the operator.
Count windows have the numbers of selected items for values, and move with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.branch.held_items import HeldNode, Shelf
from anabranch.branch.intake.batches import BatchReader, EntryBatch
from anabranch.branch.intake.lookahead import NOWHERE
from anabranch.branch.intake.merge import Merge
from anabranch.branch.joins.answers import InWindow, Leaders, LedPairing, PairingAnswers
from anabranch.branch.joins.intake import JoinBatch, JoinInput, JoinIntake, Placed, SideItems
from anabranch.branch.joins.step_join import JoinWindow, StepJoin
from anabranch.branch.windows.selection import WindowSelection
from anabranch.columnar.joins.answering import TupleColumns
from anabranch.columnar.joins.step_join import Lane, StepJoinLanes
from anabranch.columnar.scan.entries import SELECTED, SHOWN, VOID, common_unit, in_unit
from anabranch.columnar.scan.kernels import Bytes, Indices


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side of the joins: what it reads, and its windows."""

    input: JoinInput
    judge: WindowSelection
    windows: Sequence[JoinWindow]
    """One for each pairing."""


@dataclass(frozen=True, slots=True)
class SidePositions:
    """A side in units: the values of its items, and the progress that arriving items show."""

    unit: int
    extents: Sequence[tuple[int, int]]
    """The sizes and steps of its windows."""
    values: Indices
    reached: Indices
    """By arrival: how far windows may move."""
    status: Bytes
    late: Indices
    """The numbers of late items."""
    first: Fraction | None = None
    largest: Fraction | None = None
    """The first and the largest arriving value."""
    selected: int = 0
    """The number of selected items, for count windows."""


def unit_of(sides: Sequence[JoinSide], batches: Sequence[EntryBatch]) -> int:
    """The unit of all values and sizes of time windows."""
    exact: list[Fraction] = []
    timed = [(side, batch) for side, batch in zip(sides, batches, strict=True) if side.judge.timed]
    for side, _ in timed:
        exact += [each for window in side.windows for each in (window.extent.size, window.extent.step)]
        exact += [side.judge.scale.slack, side.judge.scale.origin]
        largest = side.judge.progress.largest(0)
        if isinstance(largest, float):
            raise OverflowError  # infinity: a punctuation has closed everything
        exact += [] if largest is None else [largest]
    return common_unit([batch.values for _, batch in timed], exact)


def positions_of(side: JoinSide, batch: EntryBatch, held: Sequence[HeldNode], taken: int, unit: int) -> SidePositions:
    """The positions of items, and which arriving ones are late (LAWS 3.2)."""
    if not side.judge.timed:
        return _counted(side, batch, held, taken)
    scale = side.judge.scale
    slack = in_unit(scale.slack, unit)
    extents = _extents(side, unit)
    values = batch.values.in_units(unit)[: batch.before + taken] - in_unit(scale.origin, unit)
    status = batch.status[: len(values)].copy()
    are_times = batch.are_times(scale)[: len(values)] & (status != VOID)
    if (values[are_times] < max(size for size, _ in extents)).any():
        raise OverflowError  # windows of times lie before the first window of numbers
    reached = np.full(len(values), NOWHERE)
    numbers = batch.before + np.flatnonzero(status[batch.before :] != VOID)
    if not len(numbers):
        return SidePositions(unit, extents, values, reached, status, numbers)
    new = values[numbers]
    largest = side.judge.progress.largest(0)
    start = new[0] if largest is None else in_unit(Fraction(largest), unit)
    running = np.maximum.accumulate(np.concatenate([[start], new]))
    late = numbers[new < running[:-1] - slack]
    status[late] = VOID
    reached[numbers] = running[1:] - slack
    first, last = Fraction(int(new[0]), unit), Fraction(int(running[-1]), unit)
    return SidePositions(unit, extents, values, reached, status, late, first, last)


def _counted(side: JoinSide, batch: EntryBatch, held: Sequence[HeldNode], taken: int) -> SidePositions:
    """The positions of a side in count windows, in which nothing is late."""
    arrived = side.judge.reached
    assert arrived is not None, "what is counted is known"
    status = batch.status[: batch.before + taken].copy()
    status[status == SHOWN] = VOID
    new = status[batch.before :] == SELECTED
    before = np.fromiter((int(each.value) for each in held), np.int64, len(held))
    values = np.concatenate([before, int(arrived) + np.cumsum(new) - 1])
    nothing = np.empty(0, np.int64)
    selected = int(np.count_nonzero(new))
    return SidePositions(1, _extents(side, 1), values, values + 1, status, nothing, selected=selected)


def _extents(side: JoinSide, unit: int) -> list[tuple[int, int]]:
    for window in side.windows:
        in_unit(window.extent.start(max(window.next, 0)), unit)  # positions may overflow, too
    return [(in_unit(each.extent.size, unit), in_unit(each.extent.step, unit)) for each in side.windows]


# --- columns ---------------------------------------------------------------------------------------------------


class StepJoinColumns:
    """The column path of step joins; it changes the merge, the operator and the shelf as the operator would."""

    def __init__(self, merge: Merge, operator: StepJoin, shelf: Shelf) -> None:
        self._leaders = Leaders(operator)
        self._numbers = {pairing.name: number for number, pairing in enumerate(operator.pairings)}
        judges = operator.judges
        readers = [
            (judge.stream, BatchReader(shelf.inputs[judge.stream], number, shelf.units))
            for number, judge in enumerate(judges)
        ]
        self._intake = JoinIntake(merge, shelf, operator.everyone, readers)
        self._sides = [
            JoinSide(given, judge, [pairing.sides[number] for pairing in operator.pairings])
            for number, (given, judge) in enumerate(zip(self._intake.sides, judges, strict=True))
        ]

    def take(self) -> bool:
        """Take some of the released entries; False where there are none, or none for columns."""
        return self._take(ended=False)

    def finish(self) -> None:
        """All inputs have ended, and all entries were taken: close the windows with items that still wait."""
        self._take(ended=True)

    def _take(self, *, ended: bool) -> bool:
        held = [_distinct(side.windows) for side in self._sides]
        batch = self._intake.read(held, ended=ended)
        if batch is None:
            return False
        try:
            unit = unit_of(self._sides, batch.batches)
            found = [
                positions_of(side, each, mine, batch.taken[side.input.input], unit)
                for side, each, mine in zip(self._sides, batch.batches, held, strict=True)
            ]
        except OverflowError:
            return False
        items = self._intake.arrive(batch, held, [Placed(each.values, each.unit) for each in found], ended=ended)
        if items is None:
            return False
        self._arrive(batch, found, items)
        columns = TupleColumns([each.shredded for each in batch.batches])
        for leader in self._leaders.apart() if ended else self._leaders.led():
            number = self._numbers[leader.pairing.name]
            lanes = [_Lane.of(*given, number) for given in zip(self._sides, batch.batches, found, items, strict=True)]
            windows = [InWindow(side.values, side.extents[number][1]) for side in found]
            answers = PairingAnswers(
                leader.pairing.askers,
                [(each.shifts, each.pairing.askers) for each in leader.narrower],
                batch.joins,
                columns,
                items,
                windows,
            )
            _pair(leader, lanes, answers, batch.order.inputs, ended=ended)
        self._intake.skip(batch)
        return True

    def _arrive(self, batch: JoinBatch, found: Sequence[SidePositions], items: Sequence[SideItems]) -> None:
        """Let the items of all sides arrive: from here on there is no way back."""
        for side, positions in zip(self._sides, found, strict=True):
            for value in (positions.first, positions.largest):  # the progress of all values is that of these two
                if value is not None:
                    side.judge.progress.is_late(0, value)
            side.judge.count(positions.selected)
        self._intake.set_aside(batch, items, [each.late for each in found])


def _distinct(windows: Sequence[JoinWindow]) -> list[HeldNode]:
    """The items that some windows hold or wait for, each once; those of a single window in its order."""
    return list({each.key: each for window in windows for each in window.all()}.values())


def _pair(
    leader: LedPairing, lanes: Sequence[_Lane], answers: PairingAnswers, arrivals: Indices, *, ended: bool
) -> None:
    """Move the windows, answer the tuples, and write back what each side holds."""
    moving = StepJoinLanes([each.lane for each in lanes])
    guards = answers.guards([each.numbered(np.arange(len(each.lane.values))) for each in lanes])
    for found, places in moving.tuples(arrivals, ended=ended, placed=bool(leader.narrower), guards=guards):
        answers.answer(np.stack([lane.numbered(mine) for lane, mine in zip(lanes, found, strict=True)]), places)
    for number, lane in enumerate(lanes):
        lane.leave(moving.next(number), moving.held(number), moving.waiting(number))
        for each in leader.narrower:
            lane.leave_narrower(each.pairing.sides[number], each.shifts[number], moving.held(number))


class _Lane:
    """One side of one pairing: its window, and its held, waiting and arriving items, by number."""

    def __init__(self, window: JoinWindow, lane: Lane, numbers: Indices | None, items: SideItems) -> None:
        self.lane = lane
        self._window = window
        self._numbers = numbers
        """The numbers of its items on the side; None where it has them all, in order."""
        self._items = items

    @staticmethod
    def of(side: JoinSide, batch: EntryBatch, found: SidePositions, items: SideItems, pairing: int) -> _Lane:
        window, (size, step) = side.windows[pairing], found.extents[pairing]
        before = window.all()
        numbers, values, reached, status = None, found.values, found.reached, found.status
        if len(side.windows) > 1:
            numbers = np.concatenate([items.numbers_of(before), np.arange(batch.before, len(found.values))])
            values, reached, status = values[numbers], reached[numbers], status[numbers]
        start = max(window.next, side.judge.first_window(window.extent), 0)
        held = len(window.held)
        waiting = len(before) - held
        lane = Lane(side.input.input, size, step, start, held, waiting, values, reached, status, timed=side.judge.timed)
        return _Lane(window, lane, numbers, items)

    def numbered(self, items: Indices) -> Indices:
        """Items of the lane, by their numbers on the side."""
        return items if self._numbers is None else self._numbers.take(items)

    def leave(self, following: int, held: Indices, waiting: Indices) -> None:
        """Write back what the window holds, and what waits for it."""
        if following > self.lane.next:  # a window that has not moved may still have times before the first
            self._window.next = following
        self._window.held = self._items.all(self.numbered(held).tolist())
        self._window.waiting = {}
        for each in self._items.all(self.numbered(waiting).tolist()):
            self._window.wait(each)

    def leave_narrower(self, window: JoinWindow, shift: int, held: Indices) -> None:
        """Write back a window that starts `shift` positions later and ends where this one does."""
        window.next = self._window.next + shift
        inside = held[self.lane.values.take(held) >= (max(window.next, 0) - 1) * self.lane.step]
        window.held = self._items.all(self.numbered(inside).tolist())
        window.waiting = {}
        for position, items in self._window.waiting.items():
            start = window.extent.start(position + shift)
            if kept := [each for each in items if each.value >= start]:
                window.waiting[position + shift] = kept
