"""Windows that need their items: LAWS 3.1 to 3.3, as the items come.

Held are the nodes that an open window has, and no other.
A window is answered when the stream has reached its end, in the order of the windows, and only if it holds something;
so a jump of the values over a million windows costs nothing.
A count window is one over the numbers of the selected nodes: the window with the nodes `[j*M, j*M + D)` is full when
that many have come, and at the end of the input those that are not full give nothing.

Several queries over the same source are one operator: items are judged once, all windows refer to the same ones, and
queries with equal windows have their content together.

Items come one by one, or a few thousand at a time in columns: there it is found which are selected, where they stand
and which are late; the operator holds the selected ones, unread, and answers its windows.
Items that columns cannot show, and everything where the query or its stream is not made for it, are left to the
operator, in their place; so which way an item takes never shows in an answer, nor who had the state before.
Made for columns are windows over a stream of one partition that `columnar/items/query.py` compiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.algebra.window import Extent
from anabranch.branch.evolution.following import Following
from anabranch.branch.held_items import HeldItem, HeldNode, Shelf, placed_tables
from anabranch.branch.intake.batches import BatchReader, EntryBatch
from anabranch.branch.intake.lookahead import NOWHERE, SAMPLE, NextEntries, ReadAhead, order_of
from anabranch.branch.intake.merge import Merge, StreamSignal
from anabranch.branch.members import Asker, Everyone
from anabranch.branch.windows.selection import WindowSelection
from anabranch.columnar.items.query import CompiledFor, compile_for
from anabranch.columnar.scan.entries import SELECTED, VOID, common_unit, in_unit
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.template import is_plain_root
from anabranch.law.rounds.windows import Reach, extent_of


class _Sequence:
    """The windows of one size and step, one behind the other, and the queries that have exactly these."""

    def __init__(self, extent: Extent, askers: Sequence[Asker]) -> None:
        self.extent = extent
        self.held: list[HeldNode] = []
        self.next = 0  # the first window that is not answered yet
        self._askers = askers
        self._due: int | None = None  # the first of them that holds something

    @property
    def name(self) -> str:
        """Tells its windows from others."""
        return f"{self.extent.size}:{self.extent.step}"

    def hold(self, held: HeldNode, first: int) -> None:
        """Take a node into the windows that have it and are still to come; `first` is the first that counts."""
        self.next = max(self.next, first)
        k = max(self.next, self.extent.first(held.value))
        if self.extent.start(k) <= held.value:
            self.held.append(held)
            self._due = k if self._due is None else min(k, self._due)

    def close(self, reached: Reach) -> None:
        """Answer all windows that end at or before `reached`."""
        while self._due is not None and self.extent.end(self._due) <= reached:
            start, end = self.extent.start(self._due), self.extent.end(self._due)
            content = [each for each in self.held if start <= each.value < end]
            nodes = [each.node for each in content]
            for asker in self._askers:
                asker.answers.give(content[0].kept, content, partial(asker.window, content, nodes))
            self.next = self._due + 1
            start = self.extent.start(self.next)
            self.restore(self.next, [each for each in self.held if each.value >= start])

    def restore(self, following: int, held: list[HeldNode]) -> None:
        """Go on with the window `following`."""
        self.next, self.held = following, held
        least = min((each.value for each in held), default=None)
        self._due = None if least is None else max(following, self.extent.first(least))


class Windows:
    """The operator for one windowed `for`."""

    def __init__(self, askers: Sequence[Asker], shelf: Shelf) -> None:
        self.everyone = Everyone(askers)
        self.judge = WindowSelection(0, askers[0].standing, shelf, self.everyone)
        self._shelf = shelf
        found: dict[Extent, list[Asker]] = {}
        for asker in askers:
            window = asker.standing.fors[0].window
            assert window is not None
            found.setdefault(extent_of(window), []).append(asker)
        self._sequences = [_Sequence(extent, those) for extent, those in found.items()]

    def item(self, kept: HeldItem) -> None:
        """Take the next item."""
        for held in self.judge.item(kept):
            if held is not None:
                self.hold(held)
            self.close(self.judge.reached)

    def signal(self, signal: StreamSignal) -> None:
        """Take a punctuation or the end of a partition."""
        self.judge.signal(signal)
        self.close(self.judge.reached)

    def finish(self) -> None:
        """The input has ended; a count window that is not full gives nothing."""
        if self.judge.timed:
            self.close(math.inf)

    def hold(self, held: HeldNode) -> None:
        """Take a node that is selected."""
        for each in self._sequences:
            each.hold(held, self.judge.first_window(each.extent))

    def close(self, reached: Reach | None) -> None:
        """Answer all windows that end at or before `reached`."""
        if reached is not None:
            for each in self._sequences:
                each.close(reached)

    # --- between epochs -----------------------------------------------------------------------------------

    def held(self) -> list[HeldNode]:
        """All that the branch must be able to show again."""
        return [held for each in self._sequences for held in each.held]

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """What must be remembered beside that."""
        meta = {"next": {each.name: each.next for each in self._sequences}, "progress": self.judge.save()}
        return meta, placed_tables((each.name, held, None) for each in self._sequences for held in each.held)

    def restore(self, meta: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        """Take in what `save` gave; what only those have held who are gone is forgotten."""
        self.judge.restore(meta["progress"])
        held: dict[str, list[HeldNode]] = {each.name: [] for each in self._sequences}
        for name, each, _ in self._shelf.placed(tables):
            if name in held:
                held[name].append(each)
        for sequence in self._sequences:
            sequence.restore(meta["next"].get(sequence.name, 0), held[sequence.name])


class HeldWindowColumns:
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
        self._compiled: CompiledFor | None = None
        self._sight = ReadAhead()

    def take(self) -> bool:
        """Take some of what may be taken; False where there is nothing, or nothing for columns."""
        return self._able and self._take()

    def _take(self) -> bool:
        entries = NextEntries.ahead(self._source.backlog, self._sight.most)
        if not entries or not entries.plain:
            return False
        if self._compiled is None and not self._reader.learn(entries.first(SAMPLE), self._use):
            return False
        assert self._compiled is not None
        batch = self._reader.batch(self._compiled, (), entries)
        if self._reader.grow(entries.some, batch.shredded.fits, self._use):
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

    def _use(self, look: Look) -> bool:
        """Compile for a look; whether it is made for columns."""
        compiled = compile_for(self._clause, self._stream.root.name.local, look, self._stream.source.time)
        self._compiled = compiled or self._compiled
        self._able = self._compiled is not None
        return compiled is not None

    # --- time windows -------------------------------------------------------------------------------------

    def _shown(self, batch: EntryBatch) -> _WindowValues:
        """Where entries stand, and which of them are late (LAWS 3.2)."""
        slack, origin = self._stream.source.slack, self._stream.source.origin
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
        return _WindowValues(unit, values, tops, late, int(values[judged[0]]) if len(judged) else None)

    def _place(self, batch: EntryBatch, entries: NextEntries, shown: _WindowValues) -> None:
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
                self._operator.hold(HeldNode(Fraction(int(shown.values[number]), shown.unit), kept, 0, 0))
        if (reached := self._reached(shown, len(batch))) is not None:
            progress.passed(0, reached)
        self._operator.close(reached)

    def _reached(self, shown: _WindowValues, number: int) -> Fraction | None:
        """How far the stream is when an entry comes."""
        top = int(shown.tops[number])
        return None if top == NOWHERE else Fraction(top, shown.unit) - self._stream.source.slack

    # --- count windows ------------------------------------------------------------------------------------

    def _count(self, batch: EntryBatch, entries: NextEntries) -> None:
        """Let selected items arrive, each with the next number."""
        seen = batch.status == SELECTED
        seen[list(batch.errors)] = True
        for number, kept in self._kept(batch, entries, seen):
            if number in batch.errors:
                self._everyone.bury(kept, batch.errors[number])
            else:
                self._operator.hold(HeldNode(self._judge.next_number(), kept, 0, 0))
                self._operator.close(self._judge.reached)

    def _kept(self, batch: EntryBatch, entries: NextEntries, seen: Flags) -> Iterator[tuple[int, HeldItem]]:
        """The entries that are seen, each with its number as an item."""
        chosen = np.flatnonzero(seen)
        numbers = self._shelf.taken + np.cumsum(batch.items)[chosen] - 1
        found = zip(chosen.tolist(), numbers.tolist(), entries.some(chosen), strict=True)
        return ((entry, HeldItem(self._shelf, number, each)) for entry, number, each in found)


@dataclass(frozen=True, slots=True)
class _WindowValues:
    """What entries show of the stream, in units."""

    unit: int
    values: Indices
    tops: Indices
    """The largest value before each entry, and behind the last."""
    late: Flags
    first: int | None
    """The first value of all."""
