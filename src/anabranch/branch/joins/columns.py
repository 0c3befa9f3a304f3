"""Step joins in columns: the work of `step_join.py`, a few thousand items at a time.

It stands in front of the operator and works on its state.
When fed, it takes as many entries as it can, and leaves the rest to the operator: punctuations, items that columns
cannot represent, and everything where no query or stream compiles.
So the path that an item takes never shows in an answer.

The entries of each stream are parsed into columns once for all queries, for each `for` that reads it; each pairing then
moves its own windows over them, unless a wider one has all its tuples, and each query answers the tuples
(`answers.py`).

It serves joins that `columnar/joins/compiling.py` compiles, over streams of one partition.

All values, sizes and steps of time windows are integers of one unit; larger ones raise OverflowError, and are left to
the operator.
Count windows have the numbers of selected items for values, and move with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.branch.held_items import HeldItem, HeldNode, Shelf
from anabranch.branch.intake.batches import BatchReader, EntryBatch
from anabranch.branch.intake.lookahead import NOWHERE, SAMPLE, ArrivalOrder, NextEntries, ReadAhead, limit, order_of
from anabranch.branch.intake.merge import Merge
from anabranch.branch.joins.answers import CompiledJoins, InWindow, Leaders, LedPairing, PairingAnswers
from anabranch.branch.joins.step_join import JoinWindow, StepJoin
from anabranch.branch.ports import InputStream
from anabranch.branch.windows.selection import WindowSelection
from anabranch.columnar.joins.answering import TupleColumns
from anabranch.columnar.joins.step_join import Lane, StepJoinLanes
from anabranch.columnar.scan.entries import SELECTED, SHOWN, VOID, common_unit, in_unit
from anabranch.columnar.scan.kernels import Bytes, Indices
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.template import is_plain_root


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side of the joins: its input, its `for`, its windows, and the reader of its entries."""

    input: int
    """The number of its input in the merge."""
    stream: InputStream
    judge: WindowSelection
    windows: Sequence[JoinWindow]
    """One for each pairing."""
    reader: BatchReader


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


class JoinColumns:
    """The column path of step joins; it changes the merge, the operator and the shelf as the operator would."""

    def __init__(self, merge: Merge, operator: StepJoin, shelf: Shelf) -> None:
        self._merge = merge
        self._shelf = shelf
        self._everyone = operator.everyone
        self._leaders = Leaders(operator)
        self._numbers = {pairing.name: number for number, pairing in enumerate(operator.pairings)}
        self._inputs = list(merge.sources.values())
        places = {source.stream.name: place for place, source in enumerate(self._inputs)}
        self._sides = [
            JoinSide(places[judge.stream], stream, judge, windows, BatchReader(stream, number, shelf.units))
            for number, judge in enumerate(operator.judges)
            for windows in [[pairing.sides[number] for pairing in operator.pairings]]
            for stream in [shelf.inputs[judge.stream]]
        ]
        self._able = all(not each.stream.source.is_divided and is_plain_root(each.stream.root) for each in self._inputs)
        self._joins: CompiledJoins | None = None
        # each query has texts of its own for the whole batch; and after a short first batch windows have settled
        self._read_aheads = [ReadAhead(len(self._everyone.askers)) for _ in self._inputs]

    def take(self) -> bool:
        """Take some of the released entries; False where there are none, or none for columns."""
        return self._able and self._take(ended=False)

    def finish(self) -> None:
        """All inputs have ended, and all entries were taken: close the windows with items that still wait."""
        if self._able:
            self._take(ended=True)

    def _take(self, *, ended: bool) -> bool:
        """Take some released entries; False where there are none, or none for columns."""
        seen = zip(self._inputs, self._read_aheads, strict=True)
        entries = [NextEntries.ahead(source.backlog, read_ahead.most) for source, read_ahead in seen]
        if not (ended or self._may_go_on(entries)) or not all(each.plain for each in entries):
            return False
        held = [_distinct(side.windows) for side in self._sides]
        joins = self._compiled(entries, held)
        if joins is None:
            return False
        batches = [
            side.reader.batch(compiled, mine, entries[side.input])
            for side, compiled, mine in zip(self._sides, joins.sides, held, strict=True)
        ]
        if self._are_stale(batches, entries):
            return self._able
        if any(batch.has_overrun for batch in batches):
            return False
        try:
            shortest = self._shortest(batches)
            order = self._order(shortest, entries)
            unit = unit_of(self._sides, batches)
            taken = [len(each) for each in order.places]
            found = [
                positions_of(side, batch, mine, taken[side.input], unit)
                for side, batch, mine in zip(self._sides, batches, held, strict=True)
            ]
        except OverflowError:
            return False
        for read_ahead, count, given in zip(self._read_aheads, taken, entries, strict=True):
            read_ahead.after(count, len(given))
        if not (ended or len(order.inputs)):
            return False
        arriving = order.spread([each.items for each in shortest])
        numbers: Indices = self._shelf.taken + np.cumsum(arriving) - 1
        inputs = [
            _ArrivedItems(self._shelf, given, numbers[mine]) for given, mine in zip(entries, order.places, strict=True)
        ]
        items = [
            _Items(number, each.unit, mine, inputs[side.input], each.values)
            for number, (side, mine, each) in enumerate(zip(self._sides, held, found, strict=True))
        ]
        self._shelf.taken += int(np.count_nonzero(arriving))
        self._arrive(batches, found, items)
        columns = TupleColumns([each.shredded for each in batches])
        for leader in self._leaders.apart() if ended else self._leaders.led():
            number = self._numbers[leader.pairing.name]
            lanes = [_Lane.of(*given, number) for given in zip(self._sides, batches, found, items, strict=True)]
            windows = [InWindow(side.values, side.extents[number][1]) for side in found]
            _pair(leader, lanes, PairingAnswers(leader, joins, columns, items, windows), order.inputs, ended=ended)
        for source, count, now in zip(self._inputs, taken, order.now, strict=True):
            source.skip(count, now)
        return True

    def _shortest(self, batches: Sequence[EntryBatch]) -> list[EntryBatch]:
        """By input: the batch of the side that covers the fewest entries."""
        sides = list(zip(self._sides, batches, strict=True))
        return [
            min((batch for side, batch in sides if side.input == number), key=lambda each: len(each) - each.before)
            for number in range(len(self._inputs))
        ]

    def _order(self, batches: Sequence[EntryBatch], entries: Sequence[NextEntries]) -> ArrivalOrder:
        moments = [batch.moments(given) for batch, given in zip(batches, entries, strict=True)]
        return order_of(self._merge, self._inputs, moments)

    def _may_go_on(self, entries: Sequence[NextEntries]) -> bool:
        """Whether there are entries, and no input without entries holds them back."""
        silent = [source for source, given in zip(self._inputs, entries, strict=True) if not given]
        return len(silent) < len(entries) and all(limit(self._merge, each, 1) != NOWHERE for each in silent)

    # --- the look of items --------------------------------------------------------------------------------

    def _compiled(self, entries: Sequence[NextEntries], held: Sequence[Sequence[HeldNode]]) -> CompiledJoins | None:
        """The joins for items of the learned looks; None where there is no look, or no join compiles."""
        if self._joins is not None:
            return self._joins
        for side, mine in zip(self._sides, held, strict=True):
            if side.reader.look is None:
                sample = entries[side.input].first(SAMPLE) or [each.kept.entry for each in mine[:SAMPLE]]
                side.reader.learn(sample, lambda look: True)
        looks = [side.reader.look for side in self._sides]
        if None in looks:
            return None
        self._able = self._use(looks)
        return self._joins

    def _use(self, looks: Sequence[Look | None]) -> bool:
        """Compile for the looks of all sides; whether a join compiles."""
        known = [each for each in looks if each is not None]
        streams = [side.stream for side in self._sides]
        joins = CompiledJoins.of(self._everyone.askers, streams, known) if len(known) == len(streams) else None
        self._joins = joins or self._joins
        return joins is not None

    def _are_stale(self, batches: Sequence[EntryBatch], entries: Sequence[NextEntries]) -> bool:
        """Whether many entries of a side do not fit and a new look was learned; or most do not, and none was."""
        for side, batch in zip(self._sides, batches, strict=True):
            fits = batch.shredded.fits[batch.before :]
            given = entries[side.input]

            def use(look: Look, mine: JoinSide = side) -> bool:
                return self._use([look if side is mine else side.reader.look for side in self._sides])

            if side.reader.grow(given.some, fits, use):
                return True
            if 2 * np.count_nonzero(fits) < len(given):
                self._able = False
                return True
        return False

    # --- at work ------------------------------------------------------------------------------------------

    def _arrive(self, batches: Sequence[EntryBatch], found: Sequence[SidePositions], items: Sequence[_Items]) -> None:
        """Let the items of all sides arrive: from here on there is no way back."""
        late: dict[int, HeldItem] = {}
        for side, batch, positions, mine in zip(self._sides, batches, found, items, strict=True):
            for number, error in batch.errors.items():
                if number < len(positions.values):
                    self._everyone.bury(mine.held(number).kept, error)
            late |= {each.kept.number: each.kept for each in mine.all(positions.late.tolist())}
            for value in (positions.first, positions.largest):  # the progress of all values is that of these two
                if value is not None:
                    side.judge.progress.is_late(0, value)
            side.judge.count(positions.selected)
        for _, kept in sorted(late.items()):
            self._everyone.late(kept)


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

    def __init__(self, window: JoinWindow, lane: Lane, numbers: Indices | None, items: _Items) -> None:
        self.lane = lane
        self._window = window
        self._numbers = numbers
        """The numbers of its items on the side; None where it has them all, in order."""
        self._items = items

    @staticmethod
    def of(side: JoinSide, batch: EntryBatch, found: SidePositions, items: _Items, pairing: int) -> _Lane:
        window, (size, step) = side.windows[pairing], found.extents[pairing]
        before = window.all()
        numbers, values, reached, status = None, found.values, found.reached, found.status
        if len(side.windows) > 1:
            numbers = np.concatenate([items.numbers_of(before), np.arange(batch.before, len(found.values))])
            values, reached, status = values[numbers], reached[numbers], status[numbers]
        start = max(window.next, side.judge.first_window(window.extent), 0)
        held = len(window.held)
        waiting = len(before) - held
        lane = Lane(side.input, size, step, start, held, waiting, values, reached, status, timed=side.judge.timed)
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


class _ArrivedItems:
    """The arriving items of an input, created lazily: the same for all sides that read it."""

    def __init__(self, shelf: Shelf, entries: NextEntries, numbers: Indices) -> None:
        """`numbers` are their numbers among all items of the branch."""
        self._shelf = shelf
        self._entries = entries
        self._numbers = numbers
        self._made: dict[int, HeldItem] = {}

    def all(self, arrivals: Sequence[int]) -> list[HeldItem]:
        """The items of some entries."""
        new = sorted(arrival for arrival in set(arrivals) if arrival not in self._made)
        for arrival, entry in zip(new, self._entries.some(new), strict=True):
            self._made[arrival] = HeldItem(self._shelf, int(self._numbers[arrival]), entry)
        return [self._made[arrival] for arrival in arrivals]


class _Items:
    """The items of a side as held nodes, created lazily."""

    def __init__(
        self, clause: int, unit: int, held: Sequence[HeldNode], arrived: _ArrivedItems, values: Indices
    ) -> None:
        self._clause = clause
        self._unit = unit
        self._held = dict(enumerate(held))
        self._places = {each.key: number for number, each in self._held.items()}
        self._before = len(held)
        self._arrived = arrived
        self._values = values

    def numbers_of(self, held: Sequence[HeldNode]) -> Indices:
        """The numbers of items that were held before."""
        return np.fromiter((self._places[each.key] for each in held), np.int64, len(held))

    def held(self, number: int) -> HeldNode:
        """The only node of an item."""
        return self.all([number])[0]

    def all(self, numbers: Sequence[int]) -> list[HeldNode]:
        """The nodes of some items."""
        new = [number for number in numbers if number not in self._held]
        for number, kept in zip(new, self._arrived.all([number - self._before for number in new]), strict=True):
            self._held[number] = HeldNode(Fraction(int(self._values[number]), self._unit), kept, self._clause, 0)
        return [self._held[number] for number in numbers]
