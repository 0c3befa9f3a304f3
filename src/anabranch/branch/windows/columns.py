"""Windows in columns: what `items.py` does item by item, a few thousand items at a time.

It stands before the operator and works on its state: in columns it finds which items are selected, where they stand
and which are late; the operator holds the selected ones, unread, and answers its windows.
Items that columns cannot show, and everything where the query or its stream is not made for it, are left to the
operator, in their place.
So which way an item takes never shows in an answer, nor who had the state before.

Made for it are windows over a stream of one partition that `columnar.selecting` compiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.branch.evolution.following import Following
from anabranch.branch.held_items import Held, Kept, Shelf
from anabranch.branch.intake.arrivals import NOWHERE, order_of
from anabranch.branch.intake.batches import Batch, BatchReader
from anabranch.branch.intake.lookahead import SAMPLE, Entries, Sight
from anabranch.branch.intake.merge import Merge
from anabranch.branch.windows.items import Windows
from anabranch.columnar.match.selecting import CompiledFor, compile_for
from anabranch.columnar.scan.entries import SELECTED, VOID, common_unit, in_unit
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.template import Template, is_plain_root


class WindowColumns:
    """The fast way of one window; changes the merge, the operator and the shelf as they themselves would."""

    def __init__(self, merge: Merge, operator: Windows, shelf: Shelf, following: Following) -> None:
        standing = operator.everyone.askers[0].standing
        self._clause = standing.fors[0]
        self._merge = merge
        self._source = next(iter(merge.sources.values()))
        self._stream = self._source.stream
        self._operator = operator
        self._judge = operator.judge
        self._shelf = shelf
        self._following = following
        self._everyone = operator.everyone
        self._reader = BatchReader(self._stream, 0, shelf.units, signals=True)
        self._able = len(merge.sources) == 1 and is_plain_root(self._stream.root) and standing.plain_hole is not None
        self._template: Template | None = None
        self._compiled: CompiledFor | None = None
        self._sight = Sight()

    def take(self) -> bool:
        """Take some of what may be taken; False where there is nothing, or nothing for columns."""
        return self._able and self._take()

    def finish(self) -> None:
        """The input has ended: the operator closes what is open."""

    def _take(self) -> bool:
        entries = Entries.ahead(self._source.backlog, self._sight.most)
        if not entries or not entries.plain or not (self._compiled or self._learn(entries)):
            return False
        assert self._compiled is not None
        batch = self._reader.batch(self._compiled, (), entries)
        if 2 * np.count_nonzero(batch.shredded.fits) < len(entries) and self._learn(entries):
            return True
        try:
            order = order_of(self._merge, [self._source], [batch.moments(entries)])
            shown = self._shown(batch) if self._judge.timed else None
        except OverflowError:
            return False
        self._sight.after(len(batch), len(entries))
        if not len(batch):
            return False
        if shown is None:
            self._count(batch, entries)
        else:
            self._place(batch, entries, shown)
        self._shelf.taken += int(np.count_nonzero(batch.items))
        for each in batch.signals.values():
            self._following.punctuation(self._stream.name, 0, each)
        self._source.skip(len(batch), order.now[0])
        return True

    def _learn(self, entries: Entries) -> bool:
        """Learn how items look; False where nothing came of it that is new and made for columns."""
        template = self._reader.template(entries.first(SAMPLE))
        if template is None or template == self._template:
            return False
        compiled = compile_for(self._clause, self._stream.root.name.local, template, self._stream.time)
        if compiled is not None:
            self._template, self._compiled = template, compiled
        self._able = self._compiled is not None
        return compiled is not None

    # --- time windows -------------------------------------------------------------------------------------

    def _shown(self, batch: Batch) -> _Shown:
        """Where entries stand, and which of them are late (LAWS 3.2)."""
        slack, origin = self._stream.slack, self._stream.origin
        largest = self._judge.progress.largest(0)
        covered = {number: self._judge.covered(self._stream, each) for number, each in batch.signals.items()}
        known = [each for each in (largest, *covered.values()) if each is not None]
        exact = [Fraction(each) for each in known]  # OverflowError for infinity: nothing follows at all
        unit = common_unit([batch.values], [slack, origin, *exact])
        values = batch.values.in_units(unit) - in_unit(origin, unit)
        shows = batch.status != VOID
        judged = np.flatnonzero(shows)
        for number, value in covered.items():
            if value is not None:
                shows[number] = True
                values[number] = in_unit(Fraction(value) + slack, unit)
        start = NOWHERE if largest is None else in_unit(Fraction(largest), unit)
        tops = np.maximum.accumulate(np.concatenate([[start], np.where(shows, values, NOWHERE)]))
        late = np.zeros(len(batch), np.bool_)
        late[judged] = values[judged] < tops[judged] - in_unit(slack, unit)
        return _Shown(unit, values, tops, late, int(values[judged[0]]) if len(judged) else None)

    def _place(self, batch: Batch, entries: Entries, shown: _Shown) -> None:
        """Let entries arrive, as far as they show anything at all."""
        progress = self._judge.progress
        if shown.first is not None:
            progress.is_late(0, Fraction(shown.first, shown.unit))
        seen = shown.late | (batch.status == SELECTED)
        seen[list(batch.errors)] = True
        for number, kept in self._kept(batch, entries, seen):
            self._operator.close(self._reached(shown, number))
            if number in batch.errors:
                self._everyone.bury(kept, batch.errors[number])
            if shown.late[number]:
                self._everyone.late(kept)
            elif batch.status[number] == SELECTED:
                self._operator.hold(Held(Fraction(int(shown.values[number]), shown.unit), kept, 0, 0))
        if (reached := self._reached(shown, len(batch))) is not None:
            progress.passed(0, reached)
        self._operator.close(reached)

    def _reached(self, shown: _Shown, number: int) -> Fraction | None:
        """How far the stream is when an entry comes."""
        top = int(shown.tops[number])
        return None if top == NOWHERE else Fraction(top, shown.unit) - self._stream.slack

    # --- count windows ------------------------------------------------------------------------------------

    def _count(self, batch: Batch, entries: Entries) -> None:
        """Let selected items arrive, each with the next number."""
        seen = batch.status == SELECTED
        seen[list(batch.errors)] = True
        for number, kept in self._kept(batch, entries, seen):
            if number in batch.errors:
                self._everyone.bury(kept, batch.errors[number])
            else:
                self._operator.hold(Held(self._judge.next_number(), kept, 0, 0))
                self._operator.close(self._judge.reached)

    def _kept(self, batch: Batch, entries: Entries, seen: Flags) -> Iterator[tuple[int, Kept]]:
        """The entries that are seen, each with its number as an item."""
        chosen = np.flatnonzero(seen)
        numbers = self._shelf.taken + np.cumsum(batch.items)[chosen] - 1
        found = zip(chosen.tolist(), numbers.tolist(), entries.some(chosen), strict=True)
        return ((entry, Kept(self._shelf, number, each)) for entry, number, each in found)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What entries show of the stream, in units."""

    unit: int
    values: Indices
    tops: Indices
    """The largest value before each entry, and behind the last."""
    late: Flags
    first: int | None
    """The first value of all."""
