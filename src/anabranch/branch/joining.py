"""The step join of two streams in columns: what `joins.py` does item by item, a few thousand items at a time.

It stands before the operator and works on its state.
Whenever something was fed, it takes all it can of what may be taken, and leaves the rest to the operator: punctuations,
items that columns cannot show, everything where the query or its streams are not made for it.
So which way an item takes never shows in an answer, nor who had the state before.

Made for it are joins that `columnar.pairs` compiles, of streams of one partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from anabranch.branch.ahead import SAMPLE, Entries, Sight
from anabranch.branch.answers import Answers
from anabranch.branch.arrivals import NOWHERE, Order, limit, order_of
from anabranch.branch.batches import Batch, BatchReader
from anabranch.branch.joining_units import JoinSide, Shown, shown, unit_of
from anabranch.branch.joins import StepJoin
from anabranch.branch.keeping import Held, Kept, Shelf
from anabranch.branch.merge import Merge
from anabranch.columnar import joining
from anabranch.columnar.joining import Lane, PairAnswers
from anabranch.columnar.kernels import Indices
from anabranch.columnar.pairs import CompiledJoin, compile_join
from anabranch.columnar.template import Template
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.reference.standing import Standing


class JoinColumns:
    """The fast way of one step join; changes the merge, the operator and the shelf as they themselves would."""

    def __init__(self, standing: Standing, merge: Merge, operator: StepJoin, shelf: Shelf, answers: Answers) -> None:
        self._merge = merge
        self._shelf = shelf
        self._answers = answers
        self._flwor = standing.plain_hole
        self._sides = [
            JoinSide(source, judge, window, BatchReader(source.stream, number, shelf.units))
            for number, (judge, window) in enumerate(zip(operator.judges, operator.sides, strict=True))
            for source in [merge.sources[judge.stream, 0]]
        ]
        streams = [side.source.stream for side in self._sides]
        self._able = (
            len(streams) == 2
            and tuple(each.name for each in streams) == standing.streams
            and all(each.partitions == 1 and not each.root.namespaces for each in streams)
        )
        self._templates: list[Template | None] = [None, None]
        self._join: CompiledJoin | None = None
        self._sights = [Sight() for _ in self._sides]

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
        entries = [Entries.ahead(side.source.backlog, sight.most) for side, sight in seen]
        if not (ended or self._may_go_on(entries)) or not all(each.plain for each in entries):
            return False
        held = [side.window.all() for side in self._sides]
        join = self._compiled(entries, held)
        if join is None:
            return False
        batches = [
            side.reader.batch(compiled, mine, given)
            for side, compiled, mine, given in zip(self._sides, join.sides, held, entries, strict=True)
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
        lanes = [self._arrive(*each) for each in zip(self._sides, batches, found, items, strict=True)]
        self._pair(join, batches, lanes, items, order, ended=ended)
        for side, count, now in zip(self._sides, taken, order.now, strict=True):
            side.source.skip(count, now)
        return True

    def _order(self, batches: Sequence[Batch], entries: Sequence[Entries]) -> Order:
        moments = [batch.moments(given) for batch, given in zip(batches, entries, strict=True)]
        return order_of(self._merge, [side.source for side in self._sides], moments)

    def _may_go_on(self, entries: Sequence[Entries]) -> bool:
        """Whether there is something, and no input that has nothing holds it back."""
        silent = [side.source for side, given in zip(self._sides, entries, strict=True) if not given]
        return len(silent) < 2 and all(limit(self._merge, each, 1) != NOWHERE for each in silent)

    # --- the look of items --------------------------------------------------------------------------------

    def _compiled(self, entries: Sequence[Entries], held: Sequence[Sequence[Held]]) -> CompiledJoin | None:
        """The join for items of the usual look; None where they have none, or it is not made for columns."""
        if self._join is not None:
            return self._join
        for number, (given, mine) in enumerate(zip(entries, held, strict=True)):
            if self._templates[number] is None:
                sample = given.first(SAMPLE) or [each.kept.entry for each in mine[:SAMPLE]]
                self._templates[number] = self._sides[number].reader.template(sample)
        first, second = self._templates
        if first is None or second is None:
            return None
        if isinstance(self._flwor, ast.Flwor):
            a, b = (side.source.stream for side in self._sides)
            roots = a.root.name.local, b.root.name.local
            self._join = compile_join(self._flwor, roots, (first, second), (a.time, b.time))
        self._able = self._join is not None
        return self._join

    def _are_stale(self, batches: Sequence[Batch], entries: Sequence[Entries]) -> bool:
        """Whether most entries of a side no longer fit; then another look is learned, if there is one."""
        for number, (batch, given) in enumerate(zip(batches, entries, strict=True)):
            if 2 * np.count_nonzero(batch.shredded.fits[batch.before :]) < len(given):
                template = self._sides[number].reader.template(given.first(SAMPLE))
                self._able = template is not None and template != self._templates[number]
                self._templates[number], self._join = template, None
                return True
        return False

    # --- at work ------------------------------------------------------------------------------------------

    def _arrive(self, side: JoinSide, batch: Batch, found: Shown, items: _Items) -> Lane:
        """Let the items of a side arrive: from here on there is no way back."""
        for number, error in batch.errors.items():
            if number < len(found.values):
                self._answers.bury(items.held(number).kept, error)
        for each in items.all(found.late.tolist()):
            self._answers.late(each.kept)
        for value in (found.first, found.largest):  # what all of them show is what these two do
            if value is not None:
                side.judge.progress.is_late(0, value)
        held = len(side.window.held)
        start = max(side.window.next, side.judge.first_window)
        return Lane(found.size, found.step, found.slack, start, held, batch.before - held, found.values, found.status)

    def _pair(
        self,
        join: CompiledJoin,
        batches: Sequence[Batch],
        lanes: Sequence[Lane],
        items: Sequence[_Items],
        order: Order,
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
        for x, y in moving.pairs(order.inputs, ended=ended):
            for laid in answers.answer(x, y):
                self._answers.extend(laid.data, laid.entries, laid.first)
        for number, (side, mine) in enumerate(zip(self._sides, items, strict=True)):
            side.window.next = moving.next(number)
            side.window.held = mine.all(moving.held(number).tolist())
            side.window.waiting = {}
            for each in mine.all(moving.waiting(number).tolist()):
                side.window.wait(each)


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
        return self.all([number])[0]

    def all(self, numbers: Sequence[int]) -> list[Held]:
        """The same for some items."""
        new = sorted(number for number in numbers if number not in self._held)
        arrivals = [number - self._before for number in new]
        for number, arrival, entry in zip(new, arrivals, self._entries.some(arrivals), strict=True):
            kept = Kept(self._shelf, int(self._numbers[arrival]), entry)
            self._held[number] = Held(Fraction(int(self._values[number]), self._unit), kept, self._clause, 0)
        return [self._held[number] for number in numbers]
