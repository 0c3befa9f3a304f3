"""Windows counted where the items are: each range of a stream becomes a few rows, one for each pane it touches.

A `PaneCounter` counts for one subscription and one range.
Entries that are clear (`pane_query.py`) are judged, placed and added up in columns; the others are *shown* to it one
by one, as the law sees them, and take their turn in the order of the stream, which decides what is late (LAWS 3.2).
All values are exact and counted from the stream's origin: integers in columns (`kernels_panes.py`), fractions else.

A range is counted without knowing the ranges before it.
What it finds late is late whatever came before; if something it did not find late is below what the stream had reached
before (`Counted.low`), the result is void, and the range is counted again from there.

Rows of count windows have the number of the node among those selected in the range for a pane.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa

from anabranch.algebra.aggregate import Partial, merged
from anabranch.columnar import pane_rows
from anabranch.columnar.counted import Counted, Law, Looked, Reach, Seen, Texts
from anabranch.columnar.kernels import Flags, Indices
from anabranch.columnar.kernels_panes import add_up, sums
from anabranch.columnar.pane_batch import Batch, BatchJudge, Column
from anabranch.columnar.pane_query import CompiledPanes, PaneQuery
from anabranch.columnar.pane_rows import Pane, Sums
from anabranch.columnar.shred import Shredded
from anabranch.errors import DynamicError
from anabranch.stream.elements import LONGEST_RAW, DeadLetter, Item, Punctuation
from anabranch.stream.serialize import serialize

_NODES = 20
"""An order is the number of an entry, and in these bits that of a node in it."""
_FAR = 1 << 62
_MOST_BYTES = 4 * LONGEST_RAW


class PaneCounter:
    """Counts the entries of one range; batch by batch: `judge`, then `show` what is unclear, then `take`."""

    def __init__(
        self,
        query: PaneQuery,
        law: Law,
        bury: Callable[[DeadLetter], None],
        *,
        name: str,
        file: str,
        largest: Reach | None = None,
    ) -> None:
        """`largest` is the largest value before the range, where it is known."""
        self._query = query
        self._law = law
        self._bury = bury
        self._name = name
        self._file = file
        self._tables: list[pa.Table] = []
        self._single: dict[int, Pane] = {}
        self._shown: dict[int, tuple[Item, Looked] | Reach] = {}
        self._entries = self._selected = 0
        self._largest = largest
        self._low: Fraction | None = None
        self._first: Fraction | None = None
        self._late: dict[int, None] = {}
        self._judge = BatchJudge(query)
        self._batch: Batch | None = None

    # --- a batch ------------------------------------------------------------------------------------------

    def judge(self, compiled: CompiledPanes | None, shredded: Shredded, known: Flags) -> Flags:
        """Begin a batch; gives the entries that must be shown. `known` are those that are good items for certain."""
        self._batch = self._judge.judge(compiled, shredded, known)
        return self._batch.unclear

    def show(self, entry: int, element: Item | Punctuation) -> None:
        """Show an entry that is unclear; a bad one is not shown."""
        match element:
            case Item():
                self._shown[entry] = element, self._law.item(element)
            case Punctuation():
                if self._query.is_timed and (value := self._law.punctuation(element)) is not None:
                    self._shown[entry] = value

    def take(self) -> None:
        """Count the batch, whose unclear entries have been shown."""
        batch, self._batch = self._batch, None
        assert batch is not None, "a batch is judged before it is taken"
        numbers = np.zeros(len(batch.unclear), np.int64)
        chosen = batch.selected.copy()
        begin = 0
        for entry in (*map(int, np.flatnonzero(batch.unclear)), len(batch.unclear)):
            if begin < entry:
                self._take_clear(batch, slice(begin, entry), chosen, numbers)
            match self._shown.pop(entry, None):
                case None:
                    pass
                case Item() as item, Looked() as looked:
                    self._take_shown(entry, item, looked)
                case value:
                    self._largest = value if self._largest is None else max(self._largest, value)
            begin = entry + 1
        taken = np.flatnonzero(chosen)
        if len(taken) and self._query.is_timed:
            panes = self._query.panes
            taken = taken[(numbers[taken] >= 0) & (numbers[taken] % panes.step < panes.size)]
        if len(taken):
            self._add(batch, taken, numbers)
        self._entries += len(batch.unclear)

    def _take_clear(self, batch: Batch, part: slice, chosen: Flags, numbers: Indices) -> None:
        """Judge what is late in a row of clear entries, and number the panes, or the nodes, of those chosen."""
        if batch.ticks is None:
            count = int(np.count_nonzero(chosen[part]))
            numbers[part][chosen[part]] = np.arange(self._selected, self._selected + count)
            self._selected += count
            return
        unit = 10**batch.places
        slack, origin, width = (int(each * unit) for each in (self._query.slack, self._query.origin, self._width))
        ticks = batch.ticks[part] - origin
        tops = np.maximum.accumulate(ticks)
        bounds = np.full(len(ticks), self._bound(unit))
        bounds[1:] = np.maximum(bounds[1:], tops[:-1] - slack)
        late = ticks < bounds
        chosen[part] &= ~late
        numbers[part] = ticks // width
        for entry in map(int, np.flatnonzero(late)):
            self._late[_offset(batch.shredded, part.start + entry)] = None
        self._note(Fraction(int(ticks[0]), unit), Fraction(int(tops[-1]), unit))
        if not late.all():
            self._note_low(Fraction(int(ticks[~late].min()), unit))

    @property
    def _width(self) -> Fraction:
        return self._query.panes.width

    def _bound(self, unit: int) -> int:
        """The least integer that is not late; beyond all that columns hold where nothing or everything is."""
        if self._largest is None:
            return -_FAR
        if isinstance(self._largest, float):
            return _FAR
        return max(-_FAR, min(_FAR, math.ceil((self._largest - self._query.slack) * unit)))

    def _note(self, first: Fraction, top: Fraction) -> None:
        if self._first is None:
            self._first = first
        self._largest = top if self._largest is None else max(self._largest, top)

    def _note_low(self, low: Fraction) -> None:
        self._low = low if self._low is None else min(self._low, low)

    # --- single items -------------------------------------------------------------------------------------

    def _take_shown(self, entry: int, item: Item, looked: Looked) -> None:
        if looked.error:
            self._set_aside(item, looked.error)
        for number, node in enumerate(looked.nodes):
            pane = self._place(item, node)
            if pane is not None and node.selected:
                order = (self._entries + entry) << _NODES | min(number, (1 << _NODES) - 1)
                partials = tuple(_partial(each, order) for each in node.texts)
                raw = serialize(item.tree)[:LONGEST_RAW]
                here = Pane(order, self._file, item.place.offset, raw, partials)
                self._single[pane] = self._single[pane].merge(here) if pane in self._single else here

    def _place(self, item: Item, node: Seen) -> int | None:
        """The pane of a node; None if it is in none."""
        if not self._query.is_timed:
            self._selected += node.selected
            return self._selected - 1
        if node.value is None:
            if node.selected and node.error:
                self._set_aside(item, node.error)
            return None
        is_late = self._largest is not None and node.value < self._largest - self._query.slack
        self._note(node.value, node.value)
        if is_late:
            self._late[item.place.offset] = None
            return None
        self._note_low(node.value)
        pane = self._query.panes.at(node.value)
        return pane if self._query.panes.is_used(pane) else None

    def _set_aside(self, item: Item, error: DynamicError) -> None:
        raw = serialize(item.tree)[:LONGEST_RAW]
        self._bury(DeadLetter(item.place, error.message, raw, error.code, self._name))

    # --- rows ---------------------------------------------------------------------------------------------

    def _add(self, batch: Batch, taken: Indices, numbers: Indices) -> None:
        """Add up the clear entries that are taken."""
        panes, firsts, rows = np.unique(numbers[taken], return_index=True, return_inverse=True)
        orders = (self._entries + taken) << _NODES
        paths = [_sums(each, taken, rows.astype(np.int64), orders, len(panes)) for each in batch.paths]
        heads = taken[firsts]
        offsets = batch.shredded.base + batch.shredded.begins[heads].astype(np.int64)
        raw = [_raw(batch.shredded, entry) for entry in heads.tolist()]
        self._tables.append(pane_rows.laid_out(panes, orders[firsts], self._file, offsets, raw, paths))

    def result(self) -> Counted:
        """What was counted, at the end of the range."""
        paths = len(self._query.paths)
        table = pa.concat_tables([*self._tables, pane_rows.written(self._single.items(), paths)])
        return Counted(
            table,
            self._entries << _NODES,
            self._selected,
            self._largest,
            self._low,
            self._first,
            tuple(self._late),
            self._file,
        )


def _offset(shredded: Shredded, entry: int) -> int:
    """Where an entry stands in its file."""
    return shredded.cuts[entry].start if entry in shredded.cuts else shredded.base + int(shredded.begins[entry])


def _raw(shredded: Shredded, entry: int) -> str:
    """The text of an item that fits, as far as a dead letter shows it."""
    begin, finish = int(shredded.begins[entry]), int(shredded.finishes[entry])
    data = shredded.data[begin : min(finish, begin + _MOST_BYTES)].tobytes()
    return data.decode("utf-8", "ignore")[:LONGEST_RAW]


def _partial(texts: Texts, order: int) -> Partial:
    if isinstance(texts, DynamicError):
        return Partial.failed(texts, order)
    return merged(Partial.of(text, order) for text in texts)


def _sums(columns: Sequence[Column], taken: Indices, rows: Indices, orders: Indices, count: int) -> Sums:
    """The sums of one aggregated path by row; all its places are brought to the same number of decimal places."""
    places = max((each.places for each in columns), default=0)
    counts, least_at, greatest_at = (np.zeros(count, np.int64) for _ in range(3))
    least, greatest = np.full(count, np.nan), np.full(count, np.nan)
    totals = [0] * count
    for each in columns:
        high, low = np.zeros(count, np.int64), np.zeros(count, np.int64)
        add_up(
            rows,
            orders,
            each.counts[taken],
            each.ticks[taken],
            each.values[taken],
            counts,
            high,
            low,
            least,
            least_at,
            greatest,
            greatest_at,
        )
        factor = 10 ** (places - each.places)
        totals = [total + factor * more for total, more in zip(totals, sums(high, low), strict=True)]
    return Sums(counts, totals, places, least, least_at, greatest, greatest_at)
