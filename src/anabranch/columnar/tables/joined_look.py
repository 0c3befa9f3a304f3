"""Items joined with the rows that are looked up for them: queries see these rows as repeated parts of the item.

    order                      <order><k>NO</k></order>
      k
      country, looked up       doc("countries")/countries/country[@code = $o/k]
        @code
        name

A lookup is a frame (`scan/frames.py`): its rows are those of the table with the key that an item asks for, none, one or
several, in document order.
So loops, quantifiers, aggregates, copies and values of rows are compiled and evaluated like those of repeated parts;
only the source of the rows differs (`RowLookup.find`).
The parts of a joined look are those of items, and behind them those of each lookup; a lookup may also be made for each
row of a repeated part, or for each row of another lookup.

Equal lookups are one, for all queries of a stream: a batch makes it once, however many queries need it.

The law counts steps (LAWS 2.6), and here they are bounded: looking at a row is a step, so the rows of the table, times
the lookups of an item, must be far fewer than the steps that the document and the item allow; and the rows found for an
item must be no more than an item could have held itself.
An item beyond these bounds, or with a row that columns cannot represent, is left to the law.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.tree import Expression, Kind, RowsFound
from anabranch.columnar.expressions.values import ABSENT, CLEAR, ColumnValue
from anabranch.columnar.scan.frames import FrameRows
from anabranch.columnar.scan.kernels import Bytes, Flags, Indices
from anabranch.columnar.scan.look import Look, LookPart, PartColumn
from anabranch.columnar.scan.template import Declarations
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.columnar.tables.table_columns import DocumentTables, RowKeys, TableColumns
from anabranch.language.lookups import Steps
from anabranch.stream.limits import LEAST_STEPS

_MOST_LOOKUPS = 64
"""The number of different lookups that the queries of a stream make in columns, at most."""
_FEW_ROWS = 32
"""The number of rows up to which a table may be read without a key."""
_SHARES = 20
"""A lookup may take a twentieth of the steps of an item, and two of the ten steps for each node of a document."""
_MOST_ROWS, _MOST_BYTES = 1_000, 1 << 16
"""The rows, and their bytes, that may be found for one item."""
_MOST_BATCH_ROWS, _MOST_BATCH_BYTES = 1 << 20, 1 << 26
"""The rows, and their bytes, that may be found for all items of a batch."""
_LONGEST_KEY = 255
"""A longer text takes steps wherever a function looks at it."""


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The rows that lookups have found, each with the frame row it was found for (its owner)."""

    picks: Indices
    owners: Indices
    """By found row: its number in the table, and its owner."""
    doubtful: Flags
    """By owner: whether its item is left to the law."""


@dataclass(frozen=True, eq=False)
class RowLookup:
    """Rows of a table that are looked up for the rows of a frame."""

    table: TableColumns
    first: int
    """The number of the rows' own part in the joined look."""
    keys: RowKeys | None
    sought: Expression | None
    """The value that a key must be equal to; `keys` and this are None where all rows are meant."""
    measured: tuple[Expression, ...]
    """The texts that functions read to compute it."""

    @cached_property
    def _bytes(self) -> Indices:
        """The running total of the rows' bytes, in the order of the keys."""
        rows = np.arange(self.table.count) if self.keys is None else self.keys.rows
        return np.concatenate([[0], np.cumsum(self.table.lengths[rows])])

    def find(
        self, sought: ColumnValue | None, texts: Sequence[ColumnValue], count: int, items: Indices | None
    ) -> FoundRows:
        """The rows for each of `count` owners; `items` has the item of each, None where each is an item itself."""
        doubtful = np.zeros(count, np.bool_)
        heads = np.array([0, self.table.count]) if self.keys is None else self.keys.heads
        numbers = np.zeros(count, np.int64)
        if sought is not None and self.keys is not None:
            state = np.zeros(count, np.uint8) if sought.state is None else np.broadcast_to(sought.state, count)
            doubtful |= (state != CLEAR) & (state != ABSENT)
            for each in texts:
                assert each.texts is not None, "they are texts"
                doubtful |= np.broadcast_to(each.texts.ends - each.texts.starts > _LONGEST_KEY, count)
            numbers = self.keys.find(sought, state == CLEAR)
        none = numbers < 0
        begins, ends = heads[numbers], heads[numbers + 1]
        begins, ends = np.where(none, 0, begins), np.where(none, 0, ends)
        rows = np.arange(self.table.count) if self.keys is None else self.keys.rows
        bad = np.concatenate([[0], np.cumsum(self.table.left_out[rows])])
        doubtful |= bad[ends] > bad[begins]
        doubtful |= self._is_too_much(ends - begins, self._bytes[ends] - self._bytes[begins], items)
        counts = np.where(doubtful, 0, ends - begins)
        owners = np.repeat(np.arange(count), counts)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        return FoundRows(rows[np.repeat(begins, counts) + within], owners, doubtful)

    def _is_too_much(self, counts: Indices, sizes: Indices, items: Indices | None) -> Flags:
        """Which owners are in an item for which too many rows are found or read, or exceed the bounds of a batch."""
        found, taken, asked = counts, sizes, np.ones(len(counts), np.int64)
        if items is not None and len(items):
            found, taken, asked = (
                np.bincount(items, weights=each).astype(np.int64)[items] for each in (counts, sizes, asked)
            )
        table = self.table
        allowed = 2 * table.document_nodes + LEAST_STEPS // _SHARES
        held = (found > _MOST_ROWS) | (taken > _MOST_BYTES) | (asked * table.count > allowed)
        late = np.cumsum(np.where(held, 0, counts)) > _MOST_BATCH_ROWS
        late |= np.cumsum(np.where(held, 0, sizes)) > _MOST_BATCH_BYTES
        if items is not None and late.any():
            late = late | np.isin(items, items[late])
        flags: Flags = held | late
        return flags

    def view(self, wanted: WantedColumns) -> TableView:
        """The table as its rows are evaluated."""
        return TableView(self, wanted)


@dataclass(frozen=True)
class TableView:
    """The rows of a lookup, with the interface of shredded items."""

    lookup: RowLookup
    wanted: WantedColumns
    first = 0

    @property
    def data(self) -> Bytes:
        """The bytes that columns point into."""
        return self.lookup.table.shredded.data

    def row(self, column: PartColumn) -> int:
        """The row of a column."""
        return self.lookup.table.shredded.row(_moved(column, -self.lookup.first))

    def frame(self, part: int) -> FrameRows:
        """The rows of the table, or those of a repeated part in them."""
        return self.lookup.table.frame(part - self.lookup.first)


def _moved(column: PartColumn, by: int) -> PartColumn:
    return column + by if column >= 0 else column - by


@dataclass(frozen=True)
class JoinedLook(Look):
    """The look of items, and behind it the parts of the rows that are looked up for them."""

    items: Look = field(default_factory=lambda: Look(()))
    lookups: Mapping[int, RowLookup] = field(default_factory=dict, compare=False)
    """By the part of the rows."""

    @property
    def of_items(self) -> Look:
        return self.items

    @property
    def sought(self) -> list[Expression]:
        return [each.sought for each in self.lookups.values() if each.sought is not None]

    @cached_property
    def _children(self) -> tuple[tuple[int, ...], ...]:
        """The parts of rows are reached by lookups only, not as children of an item."""
        found: list[list[int]] = [[] for _ in range(len(self.parts) + 1)]
        for number, part in enumerate(self.parts):
            if number not in self.lookups and not part.is_typed:
                found[part.parent].append(number)
        return tuple(map(tuple, found))

    def _lookup_of(self, part: int) -> int:
        """The part of the rows that a part lies in; -1 for one of items."""
        return max((each for each in self.lookups if each <= part), default=-1)

    def scope_at(self, part: int) -> Declarations:
        return self.items.scope if self._lookup_of(part) < 0 else ()

    def parts_to(self, part: int) -> list[LookPart]:
        found: list[LookPart] = []
        while part >= 0:
            found.append(self.parts[part])
            part = -1 if part in self.lookups else self.parts[part].parent
        return found[::-1]

    def want(self, columns: Iterable[PartColumn]) -> None:
        asked: dict[int, set[PartColumn]] = {first: set() for first in self.lookups}
        for column in columns:
            first = self._lookup_of(column if column >= 0 else ~column)
            asked[first].add(_moved(column, -first))
        for first, mine in asked.items():
            self.lookups[first].table.want(mine)


class TableParts:
    """The look of a stream's items, for which its queries are compiled; it grows by the rows that they look up."""

    def __init__(self, look: Look, tables: Mapping[str, DocumentTables]) -> None:
        self.look = look
        self._tables = tables
        self._known: dict[tuple[str, Steps, Steps | None, Expression | None, int], int] = {}

    def rows(
        self,
        document: str,
        steps: Steps,
        key: Steps | None,
        sought: Expression | None,
        measured: tuple[Expression, ...],
        bound: tuple[int, int],
    ) -> Spot | None:
        """The spot of the rows of a lookup, made for the rows of a frame on a side; None where the table is empty.

        The rows are those whose key equals `sought`, or all rows where `key` is None.
        """
        if document not in self._tables:
            raise NotColumnar("a document that is not known")
        table = self._tables[document].rows(steps)
        if not table.count:
            return None
        if table.look is None or table.look.own != (0,):
            raise NotColumnar("rows of a document of different names")
        if key is None and table.count > _FEW_ROWS:
            raise NotColumnar("rows of a document that no key chooses", "a condition such as `$row/key = $item/key`")
        at, side = bound
        name = document, steps, key, sought, at
        if name not in self._known:
            self._known[name] = self._add(table, key, sought, measured, at)
        part = self._known[name]
        found: Expression = RowsFound(part, sought, at)
        return Spot(self.look, part, at, side, None, ((at, found),))

    def has_one_parent(self, spot: Spot) -> bool:
        """Whether positions of the rows of a lookup are counted among all of them."""
        assert isinstance(self.look, JoinedLook), "it has a lookup"
        return self.look.lookups[spot.part].table.has_one_parent

    def _add(
        self,
        table: TableColumns,
        key: Steps | None,
        sought: Expression | None,
        measured: tuple[Expression, ...],
        at: int,
    ) -> int:
        keys = None
        if key is not None and sought is not None:
            numeric = sought.kind in (Kind.DOUBLE, Kind.INTEGER, Kind.DECIMAL)
            if not numeric and sought.kind not in (Kind.UNTYPED, Kind.STRING):
                raise NotColumnar("a key that is neither text nor a number")
            keys = table.keys(key, numeric=numeric)
        look, first = self.look, len(self.look.parts)
        items = look.of_items
        lookups = look.lookups if isinstance(look, JoinedLook) else {}
        if len(lookups) >= _MOST_LOOKUPS:
            raise NotColumnar(f"more than {_MOST_LOOKUPS} different lookups in documents")
        assert table.look is not None, "it has rows"
        own, *inside = table.look.parts
        parts = (
            replace(own, parent=at, repeated=True),
            *(replace(each, parent=each.parent + first) for each in inside),
        )
        more = {**lookups, first: RowLookup(table, first, keys, sought, measured)}
        self.look = JoinedLook((*look.parts, *parts), None, items.is_json, items.scope, items, more)
        return first
