"""Step joins of two streams in columns: what `step_join.py` does item by item, a few thousand items at a time.

It stands before the operator and works on its state.
Whenever something was fed, it takes all it can of what may be taken, and leaves the rest to the operator: punctuations,
items that columns cannot show, everything where no query or its streams are made for it.
So which way an item takes never shows in an answer, nor who had the state before.

The entries of each stream are taken apart once for all queries of the operator; each pairing then moves its own windows
over them, unless a wider one has all its pairs, and each query makes its own of the pairs
(`answers.py`).

Made for it are joins that `columnar.pairs` compiles, of streams of one partition.

All values, sizes and steps of both sides are integers of one unit; what is too large for that raises OverflowError, and
is left to the operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.branch.held_items import HeldItem, HeldNode, Shelf
from anabranch.branch.intake.batches import BatchReader, EntryBatch
from anabranch.branch.intake.lookahead import NOWHERE, SAMPLE, ArrivalOrder, NextEntries, ReadAhead, limit, order_of
from anabranch.branch.intake.merge import Merge, MergeInput
from anabranch.branch.joins.answers import CompiledJoins, InWindow, Leaders, Led, PairingAnswers
from anabranch.branch.joins.step_join import JoinWindow, StepJoin
from anabranch.branch.windows.selection import WindowSelection
from anabranch.columnar.joins.step_join import Lane, PairColumns, StepJoinLanes
from anabranch.columnar.scan.entries import VOID, common_unit, in_unit
from anabranch.columnar.scan.kernels import Bytes, Indices
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.template import is_plain_root


@dataclass(frozen=True, slots=True)
class JoinSide:
    """What one side of the joins consists of: its input, its `for`, its windows; and who reads its entries."""

    source: MergeInput
    judge: WindowSelection
    windows: Sequence[JoinWindow]
    """One for each pairing."""
    reader: BatchReader


@dataclass(frozen=True, slots=True)
class SidePositions:
    """A side in units: the values of its items, and what those that arrive show of the stream."""

    slack: int
    extents: Sequence[tuple[int, int]]
    """The sizes and steps of its windows."""
    values: Indices
    status: Bytes
    late: Indices
    """The numbers of items that are late."""
    first: Fraction | None
    largest: Fraction | None
    """The first and the largest value that arrive."""


def unit_of(sides: Sequence[JoinSide], batches: Sequence[EntryBatch]) -> int:
    """The unit for all values and sizes."""
    exact: list[Fraction] = []
    for side in sides:
        exact += [each for window in side.windows for each in (window.extent.size, window.extent.step)]
        exact += [side.source.stream.source.slack, side.source.stream.source.origin]
        largest = side.judge.progress.largest(0)
        if isinstance(largest, float):
            raise OverflowError  # infinity: a punctuation said that nothing follows at all
        exact += [] if largest is None else [largest]
    return common_unit([each.values for each in batches], exact)


def shown(side: JoinSide, batch: EntryBatch, taken: int, unit: int) -> SidePositions:
    """Where items stand, and which of those that arrive are late (LAWS 3.2)."""
    stream = side.source.stream
    slack = in_unit(stream.source.slack, unit)
    extents = [(in_unit(each.extent.size, unit), in_unit(each.extent.step, unit)) for each in side.windows]
    for window in side.windows:
        in_unit(window.extent.start(window.next), unit)  # no position may be too large either
    values = batch.values.in_units(unit)[: batch.before + taken] - in_unit(stream.source.origin, unit)
    status = batch.status[: len(values)].copy()
    numbers = batch.before + np.flatnonzero(status[batch.before :] != VOID)
    if not len(numbers):
        return SidePositions(slack, extents, values, status, numbers, None, None)
    new = values[numbers]
    largest = side.judge.progress.largest(0)
    start = new[0] if largest is None else in_unit(Fraction(largest), unit)
    running = np.maximum.accumulate(np.concatenate([[start], new]))
    late = numbers[new < running[:-1] - slack]
    status[late] = VOID
    first, last = Fraction(int(new[0]), unit), Fraction(int(running[-1]), unit)
    return SidePositions(slack, extents, values, status, late, first, last)


# --- columns ---------------------------------------------------------------------------------------------------


class JoinColumns:
    """The fast way of step joins; changes the merge, the operator and the shelf as they themselves would."""

    def __init__(self, merge: Merge, operator: StepJoin, shelf: Shelf) -> None:
        self._merge = merge
        self._shelf = shelf
        self._everyone = operator.everyone
        self._leaders = Leaders(operator)
        self._numbers = {pairing.name: number for number, pairing in enumerate(operator.pairings)}
        self._sides = [
            JoinSide(merge.sources[judge.stream, 0], judge, windows, BatchReader(stream, number, shelf.units))
            for number, judge in enumerate(operator.judges)
            for windows in [[pairing.sides[number] for pairing in operator.pairings]]
            for stream in [shelf.inputs[judge.stream]]
        ]
        streams = [side.source.stream for side in self._sides]
        self._able = (
            len(streams) == 2
            and tuple(each.name for each in streams) == self._everyone.askers[0].standing.streams
            and all(not each.source.more and is_plain_root(each.root) for each in streams)
        )
        self._joins: CompiledJoins | None = None
        # each query has texts of its own for all that is looked at; and behind a short first look windows have settled
        self._sights = [ReadAhead(len(self._everyone.askers)) for _ in self._sides]

    def take(self) -> bool:
        """Take some of what may be taken; False where there is nothing, or nothing for columns."""
        return self._able and self._take(ended=False)

    def finish(self) -> None:
        """All inputs have ended, and what they brought was taken: close the windows with items that still wait."""
        if self._able:
            self._take(ended=True)

    def _take(self, *, ended: bool) -> bool:
        """Take some of it; False where there is nothing, or nothing for columns."""
        seen = zip(self._sides, self._sights, strict=True)
        entries = [NextEntries.ahead(side.source.backlog, sight.most) for side, sight in seen]
        if not (ended or self._may_go_on(entries)) or not all(each.plain for each in entries):
            return False
        held = [_distinct(side.windows) for side in self._sides]
        joins = self._compiled(entries, held)
        if joins is None:
            return False
        batches = [
            side.reader.batch(compiled, mine, given)
            for side, compiled, mine, given in zip(self._sides, joins.sides, held, entries, strict=True)
        ]
        if self._are_stale(batches, entries):
            return self._able
        try:
            order = self._order(batches, entries)
            unit = unit_of(self._sides, batches)
            taken = [len(each) for each in order.places]
            found = [shown(*each, unit) for each in zip(self._sides, batches, taken, strict=True)]
        except OverflowError:
            return False
        for sight, count, given in zip(self._sights, taken, entries, strict=True):
            sight.after(count, len(given))
        if not (ended or len(order.inputs)):
            return False
        arriving = order.spread([each.items for each in batches])
        numbers: Indices = self._shelf.taken + np.cumsum(arriving) - 1
        items = [
            _Items(self._shelf, number, unit, mine, given, each.values, numbers[order.places[number]])
            for number, (mine, given, each) in enumerate(zip(held, entries, found, strict=True))
        ]
        self._shelf.taken += int(np.count_nonzero(arriving))
        for side, batch, each, mine in zip(self._sides, batches, found, items, strict=True):
            self._arrive(side, batch, each, mine)
        columns = PairColumns((batches[0].shredded, batches[1].shredded))
        for leader in self._leaders.apart() if ended else self._leaders.led():
            number = self._numbers[leader.pairing.name]
            lanes = [_Lane.of(*given, number) for given in zip(self._sides, batches, found, items, strict=True)]
            windows = [InWindow(side.values, side.extents[number][1]) for side in found]
            _pair(leader, lanes, PairingAnswers(leader, joins, columns, items, windows), order.inputs, ended=ended)
        for side, count, now in zip(self._sides, taken, order.now, strict=True):
            side.source.skip(count, now)
        return True

    def _order(self, batches: Sequence[EntryBatch], entries: Sequence[NextEntries]) -> ArrivalOrder:
        moments = [batch.moments(given) for batch, given in zip(batches, entries, strict=True)]
        return order_of(self._merge, [side.source for side in self._sides], moments)

    def _may_go_on(self, entries: Sequence[NextEntries]) -> bool:
        """Whether there is something, and no input that has nothing holds it back."""
        silent = [side.source for side, given in zip(self._sides, entries, strict=True) if not given]
        return len(silent) < 2 and all(limit(self._merge, each, 1) != NOWHERE for each in silent)

    # --- the look of items --------------------------------------------------------------------------------

    def _compiled(self, entries: Sequence[NextEntries], held: Sequence[Sequence[HeldNode]]) -> CompiledJoins | None:
        """The joins for items of the usual look; None where they have none, or no join is made for columns."""
        if self._joins is not None:
            return self._joins
        for side, given, mine in zip(self._sides, entries, held, strict=True):
            if side.reader.look is None:
                side.reader.learn(given.first(SAMPLE) or [each.kept.entry for each in mine[:SAMPLE]], lambda look: True)
        first, second = (side.reader.look for side in self._sides)
        if first is None or second is None:
            return None
        self._able = self._use((first, second))
        return self._joins

    def _use(self, looks: tuple[Look, Look]) -> bool:
        """Compile for the looks of both sides; whether that is made for columns."""
        a, b = (side.source.stream for side in self._sides)
        joins = CompiledJoins.of(self._everyone.askers, (a, b), looks)
        self._joins = joins or self._joins
        return joins is not None

    def _are_stale(self, batches: Sequence[EntryBatch], entries: Sequence[NextEntries]) -> bool:
        """Whether many entries of a side do not fit, and more was learned of them; or most, and nothing was."""
        one, other = self._sides
        for side, batch, given in zip(self._sides, batches, entries, strict=True):
            fits = batch.shredded.fits[batch.before :]

            def use(look: Look, mine: JoinSide = side) -> bool:
                looks = (look, other.reader.look) if mine is one else (one.reader.look, look)
                return looks[0] is not None and looks[1] is not None and self._use((looks[0], looks[1]))

            if side.reader.grow(given.some, fits, use):
                return True
            if 2 * np.count_nonzero(fits) < len(given):
                self._able = False
                return True
        return False

    # --- at work ------------------------------------------------------------------------------------------

    def _arrive(self, side: JoinSide, batch: EntryBatch, found: SidePositions, items: _Items) -> None:
        """Let the items of a side arrive: from here on there is no way back."""
        for number, error in batch.errors.items():
            if number < len(found.values):
                self._everyone.bury(items.held(number).kept, error)
        for each in items.all(found.late.tolist()):
            self._everyone.late(each.kept)
        for value in (found.first, found.largest):  # what all of them show is what these two do
            if value is not None:
                side.judge.progress.is_late(0, value)


def _distinct(windows: Sequence[JoinWindow]) -> list[HeldNode]:
    """What some windows hold or wait for, each item once; those of a single window in its order."""
    return list({each.key: each for window in windows for each in window.all()}.values())


def _pair(leader: Led, lanes: Sequence[_Lane], answers: PairingAnswers, arrivals: Indices, *, ended: bool) -> None:
    """Move the windows, answer the pairs, and leave to the operator what its sides then hold."""
    first, second = lanes
    moving = StepJoinLanes(first.lane, second.lane)
    for x, y, places in moving.pairs(arrivals, ended=ended, placed=bool(leader.narrower)):
        answers.answer(first.numbered(x), second.numbered(y), places)
    for number, lane in enumerate(lanes):
        lane.leave(moving.next(number), moving.held(number), moving.waiting(number))
        for each in leader.narrower:
            lane.leave_narrower(each.pairing.sides[number], each.shifts[number], moving.held(number))


class _Lane:
    """One side of one pairing: its window, and the items that it holds or waits for or that arrive, by number."""

    def __init__(self, window: JoinWindow, lane: Lane, numbers: Indices | None, items: _Items) -> None:
        self.lane = lane
        self._window = window
        self._numbers = numbers
        """Those of its items among all that the side has; None where it has them all, in their order."""
        self._items = items

    @staticmethod
    def of(side: JoinSide, batch: EntryBatch, found: SidePositions, items: _Items, pairing: int) -> _Lane:
        window, (size, step) = side.windows[pairing], found.extents[pairing]
        before = window.all()
        numbers, values, status = None, found.values, found.status
        if len(side.windows) > 1:
            numbers = np.concatenate([items.numbers_of(before), np.arange(batch.before, len(found.values))])
            values, status = values[numbers], status[numbers]
        start = max(window.next, side.judge.first_window(window.extent))
        held = len(window.held)
        lane = Lane(size, step, found.slack, start, held, len(before) - held, values, status)
        return _Lane(window, lane, numbers, items)

    def numbered(self, items: Indices) -> Indices:
        """Items of the lane, by their numbers among all that the side has."""
        return items if self._numbers is None else self._numbers.take(items)

    def leave(self, following: int, held: Indices, waiting: Indices) -> None:
        """Leave to the operator what the window then holds, and what waits for it."""
        self._window.next = following
        self._window.held = self._items.all(self.numbered(held).tolist())
        self._window.waiting = {}
        for each in self._items.all(self.numbered(waiting).tolist()):
            self._window.wait(each)

    def leave_narrower(self, window: JoinWindow, shift: int, held: Indices) -> None:
        """The same for a window that starts some positions later and ends where this one does."""
        window.next = self._window.next + shift
        inside = held[self.lane.values.take(held) >= (window.next - 1) * self.lane.step]
        window.held = self._items.all(self.numbered(inside).tolist())
        window.waiting = {}
        for position, items in self._window.waiting.items():
            start = window.extent.start(position + shift)
            if kept := [each for each in items if each.value >= start]:
                window.waiting[position + shift] = kept


class _Items:
    """The items of a side as the operator has them, made when they are asked for."""

    def __init__(
        self,
        shelf: Shelf,
        clause: int,
        unit: int,
        held: Sequence[HeldNode],
        entries: NextEntries,
        values: Indices,
        numbers: Indices,
    ) -> None:
        self._shelf = shelf
        self._clause = clause
        self._unit = unit
        self._held = dict(enumerate(held))
        self._places = {each.key: number for number, each in self._held.items()}
        self._before = len(held)
        self._entries = entries
        self._values = values
        self._numbers = numbers

    def numbers_of(self, held: Sequence[HeldNode]) -> Indices:
        """The numbers of items that were held before."""
        return np.fromiter((self._places[each.key] for each in held), np.int64, len(held))

    def held(self, number: int) -> HeldNode:
        """The only node of an item."""
        return self.all([number])[0]

    def all(self, numbers: Sequence[int]) -> list[HeldNode]:
        """The same for some items."""
        new = sorted(number for number in numbers if number not in self._held)
        arrivals = [number - self._before for number in new]
        for number, arrival, entry in zip(new, arrivals, self._entries.some(arrivals), strict=True):
            kept = HeldItem(self._shelf, int(self._numbers[arrival]), entry)
            self._held[number] = HeldNode(Fraction(int(self._values[number]), self._unit), kept, self._clause, 0)
        return [self._held[number] for number in numbers]
