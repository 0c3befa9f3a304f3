"""The step join of two streams in columns: what `joins.py` does item by item, a few thousand items at a time.

It stands before the operator and works on its state.
Whenever something was fed, it takes all it can of what may be taken, and leaves the rest to the operator: punctuations,
items that columns cannot show, everything where the query or its streams are not made for it.
So which way an item takes never shows in an answer, nor who had the state before.

Made for it are joins that `columnar.pairs` compiles, of streams of one partition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.branch.answers import Answers
from anabranch.branch.joining_batch import Batch, BatchReader, Entries
from anabranch.branch.joins import StepJoin
from anabranch.branch.keeping import Held, Kept, Shelf
from anabranch.branch.merge import Merge, Source
from anabranch.columnar import joining
from anabranch.columnar.joining import Lane, PairAnswers, merged
from anabranch.columnar.joining_entries import common_unit, in_unit
from anabranch.columnar.kernels import Bytes, Indices
from anabranch.columnar.kernels_joins import VOID
from anabranch.columnar.pairs import CompiledJoin, compile_join
from anabranch.columnar.template import Template
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.reference.standing import Standing

AHEAD = 4 << 20
"""How many bytes of each input are looked at at a time."""
_SAMPLE = 5
_WORTH_IT, _LONGEST_PAUSE = 64, 1_023
_NOWHERE, _FOREVER = -(1 << 62), 1 << 62


class JoinColumns:
    """The fast way of one step join; changes the merge, the operator and the shelf as they themselves would."""

    def __init__(self, standing: Standing, merge: Merge, operator: StepJoin, shelf: Shelf, answers: Answers) -> None:
        self._sides = operator.sides
        self._judges = operator.judges
        self._streams = [shelf.inputs[judge.stream] for judge in operator.judges]
        self._sources = [merge.sources[each.name, 0] for each in self._streams]
        self._merge = merge
        self._shelf = shelf
        self._answers = answers
        self._flwor = standing.plain_hole
        self._able = (
            len(self._streams) == 2
            and tuple(each.name for each in self._streams) == standing.streams
            and all(each.partitions == 1 and not each.root.namespaces for each in self._streams)
        )
        self._readers = [BatchReader(each, number, shelf.units) for number, each in enumerate(self._streams)]
        self._templates: list[Template | None] = [None, None]
        self._join: CompiledJoin | None = None
        self._pause = self._rest = 0

    def run(self) -> None:
        """Take what may be taken."""
        while self._able and self._take(ended=False):
            pass

    def try_again(self) -> None:
        """The operator has taken an element: go on behind it, unless that has hardly been worth it of late."""
        if self._rest:
            self._rest -= 1
            return
        before = self._shelf.taken
        self.run()
        self._pause = 0 if self._shelf.taken - before >= _WORTH_IT else min(2 * self._pause + 1, _LONGEST_PAUSE)
        self._rest = self._pause

    def finish(self) -> None:
        """All inputs have ended, and what they brought was taken: close the windows with items that still wait."""
        if self._able:
            self._take(ended=True)

    def _take(self, *, ended: bool) -> bool:
        """Take some of it; False where there is nothing, or nothing for columns."""
        entries = [Entries.ahead(source.backlog, AHEAD) for source in self._sources]
        if not (ended or any(map(len, entries))) or not all(each.plain for each in entries):
            return False
        if not ended and any(
            not given and self._limit(source, 1) == _NOWHERE
            for source, given in zip(self._sources, entries, strict=True)
        ):
            return False  # it holds the other back
        held = [side.all() for side in self._sides]
        join = self._compiled(entries, held)
        if join is None:
            return False
        batches = [
            reader.batch(side, mine, given)
            for reader, side, mine, given in zip(self._readers, join.sides, held, entries, strict=True)
        ]
        if self._are_stale(batches, entries):
            return self._able
        try:
            order = self._order(batches, entries)
            unit = self._unit(batches)
            shown = [self._shown(side, batches[side], order.taken[side], unit) for side in range(2)]
        except OverflowError:
            return False
        if not (ended or len(order.arrivals)):
            return False
        items = [
            _Items(self._shelf, side, unit, held[side], entries[side], shown[side].values, order.numbers(side))
            for side in range(2)
        ]
        self._shelf.taken += len(order.arrivals)
        lanes = [self._arrive(side, batches[side], shown[side], items[side]) for side in range(2)]
        self._pair(join, batches, lanes, items, order.arrivals, ended=ended)
        for source, taken, now in zip(self._sources, order.taken, order.now, strict=True):
            source.skip(taken, now)
        return True

    # --- the look of items --------------------------------------------------------------------------------

    def _compiled(self, entries: Sequence[Entries], held: Sequence[Sequence[Held]]) -> CompiledJoin | None:
        """The join for items of the usual look; None where they have none, or it is not made for columns."""
        if self._join is not None:
            return self._join
        for side, (given, mine) in enumerate(zip(entries, held, strict=True)):
            if self._templates[side] is None:
                sample = given.first(_SAMPLE) or [each.kept.entry for each in mine[:_SAMPLE]]
                self._templates[side] = self._readers[side].learn(sample)
        first, second = self._templates
        if first is None or second is None:
            return None
        a, b = self._streams
        if isinstance(self._flwor, ast.Flwor):
            roots = a.root.name.local, b.root.name.local
            self._join = compile_join(self._flwor, roots, (first, second), (a.time, b.time))
        self._able = self._join is not None
        return self._join

    def _are_stale(self, batches: Sequence[Batch], entries: Sequence[Entries]) -> bool:
        """Whether most entries of a side no longer fit; then another look is learned, if there is one."""
        for side, (batch, given) in enumerate(zip(batches, entries, strict=True)):
            if 2 * np.count_nonzero(batch.shredded.fits[batch.before :]) < len(given):
                template = self._readers[side].learn(given.first(_SAMPLE))
                self._able = template is not None and template != self._templates[side]
                self._templates[side], self._join = template, None
                return True
        return False

    # --- order and values, as integers of one unit --------------------------------------------------------

    def _order(self, batches: Sequence[Batch], entries: Sequence[Entries]) -> _Order:
        """The order in which entries arrive, as far as it is known (LAWS 1.2)."""
        moments = [origin.arrived for each in entries for origin, _ in each.origins if origin.arrived is not None]
        unit = common_unit([each.times for each in batches], [*(each.now for each in self._sources), *moments])
        times: list[Indices] = []
        limits: list[int] = []
        for batch, given, source in zip(batches, entries, self._sources, strict=True):
            times.append(_times(batch, given, source.now, unit))
            limits.append(self._limit(source, unit) if batch.complete else _NOWHERE)
        arrivals = merged(times[0], times[1], (limits[0], limits[1]))
        taken = [int(np.count_nonzero(arrivals == side)) for side in range(2)]
        now = [
            Fraction(int(mine[count - 1]), unit) if count else source.now
            for mine, count, source in zip(times, taken, self._sources, strict=True)
        ]
        return _Order(arrivals, taken, now, self._shelf.taken)

    def _limit(self, source: Source, unit: int) -> int:
        """Up to which time an input brings nothing behind what is there."""
        known = self._merge.known_until((source.stream.name, 0))
        if known is None:
            return _NOWHERE
        return _FOREVER if known == math.inf else in_unit(Fraction(known), unit)

    def _unit(self, batches: Sequence[Batch]) -> int:
        """The unit for all values and sizes of the join."""
        exact: list[Fraction] = []
        for stream, judge in zip(self._streams, self._judges, strict=True):
            exact += [judge.extent.size, judge.extent.step, stream.slack, stream.origin]
            largest = judge.progress.largest(0)
            if isinstance(largest, float):
                raise OverflowError  # a punctuation said that nothing follows at all
            exact += [] if largest is None else [largest]
        return common_unit([each.values for each in batches], exact)

    def _shown(self, side: int, batch: Batch, taken: int, unit: int) -> _Shown:
        """Where items stand, and which of those that arrive are late (LAWS 3.2)."""
        stream, extent, progress = self._streams[side], self._judges[side].extent, self._judges[side].progress
        size, step, slack = (in_unit(each, unit) for each in (extent.size, extent.step, stream.slack))
        in_unit(extent.start(self._sides[side].next), unit)  # no position may be too large either
        count = batch.before + taken
        values = batch.values.in_units(unit)[:count] - in_unit(stream.origin, unit)
        status = batch.status[:count].copy()
        numbers = batch.before + np.flatnonzero(status[batch.before :] != VOID)
        if not len(numbers):
            return _Shown(size, step, slack, values, status, numbers, None, None)
        new = values[numbers]
        largest = progress.largest(0)
        start = new[0] if largest is None else in_unit(Fraction(largest), unit)
        running = np.maximum.accumulate(np.concatenate([[start], new]))
        late = numbers[new < running[:-1] - slack]
        status[late] = VOID
        first, last = Fraction(int(new[0]), unit), Fraction(int(running[-1]), unit)
        return _Shown(size, step, slack, values, status, late, first, last)

    # --- at work ------------------------------------------------------------------------------------------

    def _arrive(self, side: int, batch: Batch, shown: _Shown, items: _Items) -> Lane:
        """Let the items of a side arrive: from here on there is no way back."""
        judge, window = self._judges[side], self._sides[side]
        for number, error in batch.errors.items():
            if number < len(shown.values):
                self._answers.bury(items.held(number).kept, error)
        for number in map(int, shown.late):
            self._answers.late(items.held(number).kept)
        if shown.first is not None and shown.largest is not None:
            judge.progress.is_late(0, shown.first)  # what all of them show is what these two do
            judge.progress.is_late(0, shown.largest)
        return Lane(
            shown.size,
            shown.step,
            shown.slack,
            max(window.next, judge.first_window),
            len(window.held),
            batch.before - len(window.held),
            shown.values,
            shown.status,
        )

    def _pair(
        self,
        join: CompiledJoin,
        batches: Sequence[Batch],
        lanes: Sequence[Lane],
        items: Sequence[_Items],
        arrivals: Bytes,
        *,
        ended: bool,
    ) -> None:
        """Move the windows, answer the pairs, and leave to the operator what its sides then hold."""

        def slow(x: int, y: int) -> bytes:
            pair = items[0].held(x), items[1].held(y)
            try:
                return self._shelf.units.tuple([each.node for each in pair]).text.encode()
            except DynamicError as error:
                self._answers.bury(pair[0].kept, error)
                return b""

        moving = joining.StepJoin(lanes[0], lanes[1])
        answers = PairAnswers(join, (batches[0].shredded, batches[1].shredded), slow)
        for x, y in moving.pairs(arrivals, ended=ended):
            for laid in answers.answer(x, y):
                self._answers.extend(laid.data, laid.entries, laid.first)
        for side, (window, mine) in enumerate(zip(self._sides, items, strict=True)):
            window.next = moving.next(side)
            window.held = [mine.held(int(number)) for number in moving.held(side)]
            window.waiting = {}
            for number in moving.waiting(side):
                window.wait(mine.held(int(number)))


@dataclass(frozen=True, slots=True)
class _Order:
    """The side of each arrival, how many there are of each, and the time of its last."""

    arrivals: Bytes
    taken: list[int]
    now: list[Fraction]
    first: int
    """The number that the first of them gets."""

    def numbers(self, side: int) -> Indices:
        """The numbers of a side's arrivals."""
        return self.first + np.flatnonzero(self.arrivals == side)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A side in units: its window, its items' values, and what those that arrive show of how far the stream is."""

    size: int
    step: int
    slack: int
    values: Indices
    status: Bytes
    late: Indices
    first: Fraction | None
    largest: Fraction | None


class _Items:
    """The items of a side as the operator has them, made when they are asked for."""

    def __init__(
        self,
        shelf: Shelf,
        clause: int,
        unit: int,
        held: Sequence[Held],
        entries: Entries,
        values: Indices,
        numbers: Indices,
    ) -> None:
        self._shelf = shelf
        self._clause = clause
        self._unit = unit
        self._held = dict(enumerate(held))
        self._before = len(held)
        self._entries = entries
        self._values = values
        self._numbers = numbers

    def held(self, number: int) -> Held:
        """The only node of an item."""
        if number not in self._held:
            arrival = number - self._before
            kept = Kept(self._shelf, int(self._numbers[arrival]), self._entries.entry(arrival))
            self._held[number] = Held(Fraction(int(self._values[number]), self._unit), kept, self._clause, 0)
        return self._held[number]


def _times(batch: Batch, entries: Entries, now: Fraction, unit: int) -> Indices:
    """The times of entries: their own, else that of their arrival, else that of the element before (LAWS 1.3)."""
    times = batch.times.in_units(unit)[batch.before :]
    known = batch.timed[batch.before :].copy()
    first = 0
    for origin, rows in entries.origins:
        span = slice(first, first + rows)
        if origin.arrived is not None:
            times[span][~known[span]] = in_unit(origin.arrived, unit)
            known[span] = True
        first += rows
    last = np.maximum.accumulate(np.where(known, np.arange(len(times)), -1))
    return np.where(last >= 0, times[last], in_unit(now, unit))
