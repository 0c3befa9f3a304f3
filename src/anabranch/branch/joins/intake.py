"""The next entries of the inputs of a join, in columns, as all of its `for`s read them.

A column path of a join stands in front of its operator and works on its state.
When fed, it takes as many entries as it can, and leaves the rest to the operator: punctuations, items that columns
cannot represent, and everything where no query or stream compiles.
So the path that an item takes never shows in an answer.

It serves joins that `columnar/joins/compiling.py` compiles, over streams of one partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.branch.held_items import HeldItem, HeldNode, Shelf
from anabranch.branch.intake.batches import BatchReader, EntryBatch
from anabranch.branch.intake.lookahead import NOWHERE, SAMPLE, ArrivalOrder, NextEntries, ReadAhead, limit, order_of
from anabranch.branch.intake.merge import Merge
from anabranch.branch.joins.answers import CompiledJoins
from anabranch.branch.members import Everyone
from anabranch.branch.ports import InputStream
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.template import is_plain_root
from anabranch.values.placing import Moment


@dataclass(frozen=True, slots=True)
class JoinInput:
    """What one `for` of the joins reads: its input, by its number in the merge, and the reader of its entries."""

    input: int
    stream: InputStream
    reader: BatchReader


@dataclass(frozen=True, slots=True)
class JoinBatch:
    """Entries that can be taken."""

    entries: list[NextEntries]
    """By input."""
    batches: list[EntryBatch]
    """By side: the items that it held before, then its entries."""
    joins: CompiledJoins
    order: ArrivalOrder
    shortest: list[EntryBatch]
    """By input: the batch of the side that covers the fewest entries."""

    @property
    def taken(self) -> list[int]:
        """By input: how many entries are taken."""
        return [len(each) for each in self.order.places]


class JoinIntake:
    """Reads the inputs of a join."""

    def __init__(self, merge: Merge, shelf: Shelf, everyone: Everyone, readers: Sequence[tuple[str, BatchReader]]):
        """`readers` are those of all `for`s, each with the name of its stream."""
        self._merge = merge
        self._shelf = shelf
        self._everyone = everyone
        self._inputs = list(merge.sources.values())
        places = {source.stream.name: place for place, source in enumerate(self._inputs)}
        self.sides = [JoinInput(places[name], shelf.inputs[name], reader) for name, reader in readers]
        self.able = all(not each.stream.source.is_divided and is_plain_root(each.stream.root) for each in self._inputs)
        """Whether columns can represent what comes."""
        self._joins: CompiledJoins | None = None
        # each query has texts of its own for the whole batch; and after a short first batch windows have settled
        self._read_aheads = [ReadAhead(len(everyone.askers)) for _ in self._inputs]

    def read(self, held: Sequence[Sequence[HeldNode]], *, ended: bool = False) -> JoinBatch | None:
        """The released entries, behind what each side holds; None where there are none, or none for columns.

        With `ended`, there may be no entries.
        """
        while self.able:
            seen = zip(self._inputs, self._read_aheads, strict=True)
            entries = [NextEntries.ahead(source.backlog, read_ahead.most) for source, read_ahead in seen]
            if not (ended or self._may_go_on(entries)) or not all(each.plain for each in entries):
                return None
            joins = self._compiled(entries, held)
            if joins is None:
                return None
            batches = [
                side.reader.batch(compiled, mine, entries[side.input])
                for side, compiled, mine in zip(self.sides, joins.sides, held, strict=True)
            ]
            if self._are_stale(batches, entries):
                continue
            if any(batch.has_overrun for batch in batches):
                return None
            shortest = self._shortest(batches)
            try:
                order = self._order(shortest, entries)
            except OverflowError:
                return None
            return JoinBatch(entries, batches, joins, order, shortest)
        return None

    def arrive(
        self, batch: JoinBatch, held: Sequence[Sequence[HeldNode]], placed: Sequence[Placed], *, ended: bool = False
    ) -> list[SideItems] | None:
        """The items of all sides, held and arriving, with their values; None where nothing arrives.

        With `ended`, nothing need arrive.
        """
        for read_ahead, count, given in zip(self._read_aheads, batch.taken, batch.entries, strict=True):
            read_ahead.after(count, len(given))
        if not (ended or len(batch.order.inputs)):
            return None
        arriving = batch.order.spread([each.items for each in batch.shortest])
        numbers: Indices = self._shelf.taken + np.cumsum(arriving) - 1
        inputs = [
            _ArrivedItems(self._shelf, given, numbers[mine])
            for given, mine in zip(batch.entries, batch.order.places, strict=True)
        ]
        self._shelf.taken += int(np.count_nonzero(arriving))
        return [
            SideItems(number, mine, inputs[side.input], each)
            for number, (side, mine, each) in enumerate(zip(self.sides, held, placed, strict=True))
        ]

    def set_aside(self, batch: JoinBatch, items: Sequence[SideItems], late: Sequence[Indices]) -> None:
        """Set items with errors aside, and log the late ones, which are given by side."""
        found: dict[int, HeldItem] = {}
        for each, mine, those in zip(batch.batches, items, late, strict=True):
            for number, error in each.errors.items():
                if number < len(mine):
                    self._everyone.bury(mine.held(number).kept, error)
            found |= {held.kept.number: held.kept for held in mine.all(those.tolist())}
        for _, kept in sorted(found.items()):
            self._everyone.late(kept)

    def skip(self, batch: JoinBatch) -> None:
        """Advance the inputs behind what was taken."""
        for source, count, now in zip(self._inputs, batch.taken, batch.order.now, strict=True):
            source.skip(count, now)

    def _shortest(self, batches: Sequence[EntryBatch]) -> list[EntryBatch]:
        sides = list(zip(self.sides, batches, strict=True))
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
        for side, mine in zip(self.sides, held, strict=True):
            if side.reader.look is None:
                sample = entries[side.input].first(SAMPLE) or [each.kept.entry for each in mine[:SAMPLE]]
                side.reader.learn(sample, lambda look: True)
        looks = [side.reader.look for side in self.sides]
        if None in looks:
            return None
        self.able = self._use(looks)
        return self._joins

    def _use(self, looks: Sequence[Look | None]) -> bool:
        """Compile for the looks of all sides; whether a join compiles."""
        known = [each for each in looks if each is not None]
        streams = [side.stream for side in self.sides]
        joins = CompiledJoins.of(self._everyone.askers, streams, known) if len(known) == len(streams) else None
        self._joins = joins or self._joins
        return joins is not None

    def _are_stale(self, batches: Sequence[EntryBatch], entries: Sequence[NextEntries]) -> bool:
        """Whether many entries of a side do not fit and a new look was learned; or most do not, and none was."""
        for side, batch in zip(self.sides, batches, strict=True):
            fits = batch.shredded.fits[batch.before :]
            given = entries[side.input]

            def use(look: Look, mine: JoinInput = side) -> bool:
                return self._use([look if side is mine else side.reader.look for side in self.sides])

            if side.reader.grow(given.some, fits, use):
                return True
            if 2 * np.count_nonzero(fits) < len(given):
                self.able = False
                return True
        return False


# --- items -----------------------------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class Placed:
    """The values of a side's items by their numbers, in units of which so many make one."""

    values: Indices
    unit: int
    are_times: Flags | None = None
    """Which values are times; None where that makes no difference."""

    def value(self, number: int) -> Fraction:
        """The exact value of an item."""
        found = Fraction(int(self.values[number]), self.unit)
        return Moment(found) if self.are_times is not None and self.are_times[number] else found


class SideItems:
    """The items of a side as held nodes, by their numbers, created lazily."""

    def __init__(self, clause: int, held: Sequence[HeldNode], arrived: _ArrivedItems, placed: Placed) -> None:
        self._clause = clause
        self._held = dict(enumerate(held))
        self._places = {each.key: number for number, each in self._held.items()}
        self._before = len(held)
        self._arrived = arrived
        self._placed = placed

    def __len__(self) -> int:
        return len(self._placed.values)

    def numbers_of(self, held: Sequence[HeldNode]) -> Indices:
        """The numbers of items that were held before."""
        return np.fromiter((self._places[each.key] for each in held), np.int64, len(held))

    def held(self, number: int) -> HeldNode:
        """The only node of an item."""
        return self.all([number])[0]

    def all(self, numbers: Iterable[int]) -> list[HeldNode]:
        """The nodes of some items."""
        wanted = list(numbers)
        new = [number for number in wanted if number not in self._held]
        for number, kept in zip(new, self._arrived.all([number - self._before for number in new]), strict=True):
            self._held[number] = HeldNode(self._placed.value(number), kept, self._clause, 0)
        return [self._held[number] for number in wanted]
