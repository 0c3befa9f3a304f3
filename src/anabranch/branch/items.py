"""Item queries that need an order: that of several partitions, or of adjacent values.

No items are held; the state is the progress of the inputs, and whether each answer so far ends with a value.

Items are taken singly, or a few thousand at a time in columns: the times of all entries are computed in columns, the
inputs merged, and the answers laid out in merge order.
An entry that does not fit the template, or is unclear, is answered by the law, in its place.
Elements that columns cannot represent, and streams or queries without columns, are left to the merge and the operator;
so the path that an item takes never shows in an answer.
Columns serve queries that `columnar/items/query.py` compiles, whose pieces need no separator; other queries of the
branch are answered by the law, item by item, behind the same merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.branch.evolution.following import Following
from anabranch.branch.futures import digest
from anabranch.branch.held_items import HeldItem, HeldNode, Shelf
from anabranch.branch.intake.batches import LIMITS
from anabranch.branch.intake.entries import EntryReader, RawEntry
from anabranch.branch.intake.lookahead import (
    ArrivalOrder,
    EntryTimes,
    MergeAhead,
    NextEntries,
    first_entries,
    own_time,
)
from anabranch.branch.intake.merge import Merge, MergeInput, StreamSignal
from anabranch.branch.members import Asker
from anabranch.columnar.expressions.spots import NotColumnar
from anabranch.columnar.expressions.tree import Column
from anabranch.columnar.items.layout import Laid, computed_texts, laid_out
from anabranch.columnar.items.query import CompiledQuery, compile_query, time_column
from anabranch.columnar.match.condition import NO, UNCLEAR, YES, Verdicts
from anabranch.columnar.match.judging import judge
from anabranch.columnar.match.rows import with_computed
from anabranch.columnar.scan.entries import Decimals, shred_entries
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.template import is_plain_root
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.errors import DynamicError
from anabranch.law.steps import Exhausted
from anabranch.stream.elements import DeadLetter, Item, Punctuation
from anabranch.stream.path import per_second


class ItemOperator:
    """The operator for one `for` without a window, of one query or several."""

    def __init__(self, askers: Sequence[Asker], shelf: Shelf) -> None:
        self.askers = askers

    def item(self, kept: HeldItem) -> None:
        """Take the next item."""
        for asker in self.askers:
            asker.answers.give(kept, (), partial(asker.item, kept))

    def signal(self, signal: StreamSignal) -> None:
        """Ignore punctuations: the query has no state."""

    def finish(self) -> None:
        """Ignore the end of the input."""

    def future(self, asker: Asker) -> str:
        """The future of a query (`branch/futures.py`): nothing has an effect behind its own item."""
        return digest()

    def held(self) -> list[HeldNode]:
        """No nodes are held."""
        return []

    def loads(self) -> Iterator[tuple[Sequence[Asker], int]]:
        """No query holds any."""
        return iter(())

    def save(self) -> tuple[dict[str, Any], dict[str, pa.Table]]:
        """There is no state."""
        return {}, {}

    def restore(self, meta: dict[str, Any], tables: dict[str, pa.Table]) -> None:
        """There is no state."""


_SINGLY = 64
"""So many items are answered singly before their answers are laid out with the others."""


def answer_in_columns(
    asker: Asker,
    laid: Laid,
    shredded: Shredded,
    arrivals: Indices,
    chosen: Indices,
    unclear: Indices,
    kept: Mapping[int, HeldItem],
) -> None:
    """Answer a query; `arrivals` are entries in order, `chosen` and `unclear` places in it.

    Chosen entries are laid out in columns, unclear ones are answered by the law, for which `kept` has them as items.
    """
    if not laid.query.fragments:
        chosen = chosen[:0]
    nothing = np.zeros(len(chosen), np.int64)
    made, _ = computed_texts(shredded, [laid.made], nothing, arrivals[chosen].astype(np.int32))
    places = np.zeros(len(arrivals), np.int64)
    places[chosen] = np.arange(len(chosen))
    end = 0
    while end < len(arrivals):
        slow, unclear = np.split(unclear, [_SINGLY])
        pieces, overrun = _by_law(asker, (kept[entry] for entry in arrivals[slow].tolist()))
        if overrun is not None:  # it may end the query, and then just behind this item
            slow, rest = np.split(slow, [len(pieces)])
            unclear = np.concatenate([rest, unclear])
        end = int(slow[-1]) + 1 if overrun is not None else int(unclear[0]) if len(unclear) else len(arrivals)
        fast, chosen = np.split(chosen, [np.searchsorted(chosen, end)])
        given = np.fromiter(map(bool, pieces), np.bool_, len(pieces))
        order = np.argsort(np.concatenate([fast, slow[given]]))
        picks = np.concatenate([arrivals[fast], ~np.flatnonzero(given)])[order]
        if len(picks):
            at = np.concatenate([places[fast], np.zeros(np.count_nonzero(given), np.int64)])[order]
            data, offsets = laid_out(shredded, laid.fragments, picks, pieces, made, at)
            lengths = np.diff(offsets)
            lengths = lengths[lengths > 0]  # an empty text is no answer
            if len(lengths):
                asker.answers.extend(bytes(data), len(lengths), int(lengths[0]))
        if overrun is not None:
            asker.answers.bury(*overrun)
            if asker.answers.over:
                return


def _leave_unclear(laid: Laid, shredded: Shredded, arrivals: Indices, verdicts: Verdicts) -> None:
    """Mark entries as unclear for which a query's result cannot be computed in columns."""
    chosen = np.flatnonzero(verdicts == YES)
    entries = arrivals[chosen].astype(np.int32)
    _, unclear = computed_texts(shredded, [laid.made], np.zeros(len(chosen), np.int64), entries)
    verdicts[chosen[unclear]] = UNCLEAR


def _by_law(asker: Asker, items: Iterable[HeldItem]) -> tuple[list[bytes], tuple[HeldItem, DynamicError] | None]:
    """The texts that items add to an answer, up to one that takes too many steps, which is given, too.

    A text is empty where an item fails; it is set aside.
    """
    pieces: list[bytes] = []
    for kept in items:
        try:
            pieces.append(asker.item(kept).text.encode())
        except DynamicError as error:
            pieces.append(b"")
            if isinstance(error, Exhausted):
                return pieces, (kept, error)
            asker.answers.bury(kept, error)
    return pieces, None


@dataclass(frozen=True, slots=True)
class _Program:
    """The queries compiled for items of one look."""

    laid: Sequence[Laid | None]
    """None for queries that are not compiled."""
    time: PartColumn | None
    wanted: WantedColumns

    @property
    def missing(self) -> int:
        """The number of queries that are not compiled."""
        return self.laid.count(None)


def _some(entries: Sequence[NextEntries], numbers: Indices) -> Iterator[RawEntry]:
    """Some entries of several inputs, by consecutive numbers."""
    first = 0
    for each in entries:
        yield from each.some(numbers[(numbers >= first) & (numbers < first + len(each))] - first)
        first += len(each)


class PassingColumns:
    """The column path; it changes the merge and the shelf as the operator would."""

    def __init__(self, merge: Merge, operator: ItemOperator, shelf: Shelf, following: Following) -> None:
        self._ahead = MergeAhead(merge)
        self._stream = self._ahead.inputs[0].stream
        self._askers = operator.askers
        self._shelf = shelf
        self._following = following
        given = (asker.standing for asker in self._askers)
        self._holes = [(each.expanded_hole if each.separate else None, each.scope, each.at_top) for each in given]
        self._able = (
            any(hole is not None for hole, _, _ in self._holes)
            and is_plain_root(self._stream.root)
            and all(source.stream is self._stream for source in self._ahead.inputs)
        )
        self._reader = EntryReader(self._stream)
        self._program: _Program | None = None

    def take(self) -> bool:
        """Take some of the released entries; False where there are none, or none for columns."""
        return self._able and self._take()

    def _take(self) -> bool:
        entries = self._ahead.entries()
        if entries is None or (self._program is None and not self._reader.learn(first_entries(entries), self._use)):
            return False
        assert self._program is not None
        batch = self._batch(self._program, entries)
        if self._reader.grow(partial(_some, entries), batch.shredded.fits, self._use):
            batch = self._batch(self._program, entries)
        try:
            order = self._order(batch, entries)
        except OverflowError:
            return False
        if order is None:
            return False
        arrivals = order.spread([np.arange(start, end) for start, end in batch.spans])
        self._answer_all(self._program, batch, arrivals, entries)
        self._tell(batch, order)
        self._ahead.skip(order)
        return True

    def _tell(self, batch: _Batch, order: ArrivalOrder) -> None:
        """Apply the punctuations among the arriving entries, in order."""
        found: list[tuple[int, MergeInput, Punctuation]] = []
        for number, each in batch.signals.items():
            input = next(input for input, (start, end) in enumerate(batch.spans) if start <= number < end)
            place = number - batch.spans[input][0]
            if place < len(order.places[input]):
                found.append((int(order.places[input][place]), self._ahead.inputs[input], each))
        for _, source, each in sorted(found, key=lambda each: each[0]):
            self._following.punctuation(*source.key, each)

    def _use(self, look: Look) -> bool:
        """Compile for a look; False where fewer queries compile than before."""
        program = self._compiled(look)
        if program and (self._program is None or program.missing <= self._program.missing):
            self._program = program
            return True
        self._able = self._program is not None
        return False

    def _compiled(self, look: Look) -> _Program | None:
        root = self._stream.root.name.local
        found = (
            None if hole is None else compile_query(hole, root, look, namespaces=scope, at_top=at_top)
            for hole, scope, at_top in self._holes
        )
        queries = [each if isinstance(each, CompiledQuery) else None for each in found]
        try:
            time = time_column(self._stream.source.time, look)
        except NotColumnar:
            return None
        made = [each for each in queries if each is not None]
        if not made:
            return None
        read: set[Column] = {time} if time is not None else set()
        columns = read.union(*(each.columns for each in made))
        numbers = read.union(*(each.numbers for each in made))
        wanted = WantedColumns.of(look, columns, numbers, [part for each in made for part in each.fragments])
        return _Program([None if each is None else Laid.of(each, wanted) for each in queries], time, wanted)

    # --- the next entries ---------------------------------------------------------------------------------

    def _batch(self, program: _Program, entries: Sequence[NextEntries]) -> _Batch:
        """Parse the next entries of all inputs into columns."""
        raw = [each.raw() for each in entries]
        ends = np.cumsum(np.concatenate([lengths for _, found in raw for lengths in found]))
        data = b"".join(part for parts, _ in raw for part in parts)
        shredded = shred_entries(data, ends, program.wanted, LIMITS)
        shredded.fits[:] &= np.concatenate([each.good for each in entries])
        shredded = with_computed(shredded)
        unclear = ~shredded.fits
        if program.time is not None:
            unclear |= np.isnan(shredded.values[shredded.row(program.time)])
        timed = np.full(len(unclear), program.time is not None)
        items = np.ones(len(unclear), np.bool_)
        times: dict[int, Fraction] = {}
        bad: list[int] = []
        signals: dict[int, Punctuation] = {}
        spans: list[tuple[int, int]] = []
        first = 0
        for given in entries:
            others = np.flatnonzero(unclear[first : first + len(given)])
            end = first + len(given)
            for number, entry in zip((first + others).tolist(), given.some(others), strict=True):
                look = self._look(entry)
                if look is None:
                    end = number
                    break
                own = None if isinstance(look, DeadLetter) else own_time(look, self._stream.source.time)
                timed[number] = own is not None
                if own is not None:
                    times[number] = own
                items[number] = isinstance(look, Item)
                if isinstance(look, Punctuation):
                    signals[number] = look
                if isinstance(look, DeadLetter):
                    bad.append(number)
            spans.append((first, end))
            first += len(given)
        parts = per_second(self._stream.source.time)
        decimals = Decimals.read(shredded, program.time, times, len(unclear), parts)
        return _Batch(shredded, unclear, items, decimals, timed, bad, signals, spans)

    def _look(self, entry: RawEntry) -> Item | Punctuation | DeadLetter | None:
        """One unclear entry, parsed; None where columns cannot represent it."""
        match self._reader.read(entry):
            case Item() | Punctuation() | DeadLetter(doubts=()) as element:
                return element
            case _:
                return None

    def _order(self, batch: _Batch, entries: Sequence[NextEntries]) -> ArrivalOrder | None:
        """The order in which entries arrive; None if none can."""
        moments: list[EntryTimes] = []
        for (start, end), given in zip(batch.spans, entries, strict=True):
            bad = [number - start for number in batch.bad if start <= number < end]
            complete = given.complete and end - start == len(given)
            moments.append(EntryTimes(given, batch.times.part(start, end), batch.timed[start:end], bad, complete))
        return self._ahead.order(moments, entries)

    # --- answers ------------------------------------------------------------------------------------------

    def _answer_all(self, program: _Program, batch: _Batch, arrivals: Indices, entries: Sequence[NextEntries]) -> None:
        """Answer entries, in this order, for all queries."""
        found: list[tuple[Indices, Indices]] = []
        seen = np.zeros(len(arrivals), np.bool_)
        for laid in program.laid:
            verdicts = batch.verdicts(laid)[arrivals]
            if laid is not None and laid.made:
                _leave_unclear(laid, batch.shredded, arrivals, verdicts)
            found.append((np.flatnonzero(verdicts == YES), np.flatnonzero(verdicts == UNCLEAR)))
            seen[found[-1][1]] = True
        numbers = self._shelf.taken + np.cumsum(batch.items[arrivals]) - 1
        kept = self._kept(batch, entries, arrivals[seen], numbers[seen])
        for asker, laid, (chosen, unclear) in zip(self._askers, program.laid, found, strict=True):
            if laid is None:
                for item in (kept[entry] for entry in arrivals[unclear].tolist()):
                    asker.answers.give(item, (), partial(asker.item, item))
            else:
                answer_in_columns(asker, laid, batch.shredded, arrivals, chosen, unclear, kept)
        self._shelf.taken += int(np.count_nonzero(batch.items[arrivals]))

    def _kept(
        self, batch: _Batch, entries: Sequence[NextEntries], asked: Indices, numbers: Indices
    ) -> dict[int, HeldItem]:
        """Some entries as items, with their numbers."""
        by_entry = dict(zip(asked.tolist(), numbers.tolist(), strict=True))
        found: dict[int, HeldItem] = {}
        for (start, end), given in zip(batch.spans, entries, strict=True):
            mine = np.sort(asked[(asked >= start) & (asked < end)])
            for number, entry in zip(mine.tolist(), given.some(mine - start), strict=True):
                found[number] = HeldItem(self._shelf, by_entry[number], entry)
        return found


@dataclass(frozen=True, slots=True)
class _Batch:
    """The next entries of all inputs, concatenated."""

    shredded: Shredded
    unclear: Flags
    """Entries that columns cannot represent."""
    items: Flags
    times: Decimals
    timed: Flags
    """Entries with a time of their own."""
    bad: Sequence[int]
    """Entries that are no elements at all."""
    signals: Mapping[int, Punctuation]
    spans: Sequence[tuple[int, int]]
    """By input: its entries up to the first that columns cannot represent."""

    def verdicts(self, laid: Laid | None) -> Verdicts:
        """Whether a query answers each entry; unclear where the law must decide."""
        found = (
            np.full(len(self.unclear), UNCLEAR, np.uint8)
            if laid is None
            else judge(laid.query.condition, self.shredded)
        )
        found[self.unclear] = UNCLEAR
        found[~self.items] = NO
        return found
