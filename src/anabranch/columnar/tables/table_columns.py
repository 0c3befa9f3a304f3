"""Documents behind `doc()` as tables: the rows that a path leads to, in columns, and indexes over their keys.

    <countries><country code="NO"><name>Norway</name></country>...</countries>

A row is read like an item of a stream: it is serialised, and shredded along a look that is learned from the rows
(`scan/look.py`).
So all that is compiled for items is compiled for rows, too.
A row that does not fit, or whose texts must be escaped, is *left out*: an item that finds it is left to the law.

A document does not change, so its tables and indexes are made once (`DocumentTables`); columns that no query
needs are not kept.

Guarantees: the rows of a table are those of the law's own reading of the document, and each has exactly the keys that
the law would compare (LAWS 2.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anabranch.columnar.expressions.spots import NotColumnar, Spot, is_named
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.values import ColumnValue
from anabranch.columnar.panes.keys import TextNumbers
from anabranch.columnar.scan.decoded import CANONICAL
from anabranch.columnar.scan.entries import shred_entries
from anabranch.columnar.scan.frames import FrameRows
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.language import ast
from anabranch.language.lookups import Steps
from anabranch.stream.limits import DOCUMENT
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Document, Element, Node, descendants, in_document_order
from anabranch.values.sequences import atomize

_MOST_TABLES = 32
"""The number of paths to rows of one document that are kept as tables, at most."""
_SAMPLE = 200
_LEARNED = 4
"""How often a look is learned from `_SAMPLE` rows: first from all rows, then from those that do not fit."""
_ROW = 0
"""The part of a row's own element."""


class DocumentTables:
    """A document behind `doc()`, which is read when it is needed, and the tables in it."""

    def __init__(self, load: Callable[[], Document]) -> None:
        self._load = load
        self._tables: dict[Steps, TableColumns] = {}

    @cached_property
    def nodes(self) -> int:
        """How many nodes the document has, each of which allows steps (LAWS 2.6)."""
        return sum(1 for _ in descendants(self._load()))

    def rows(self, steps: Steps) -> TableColumns:
        """The table of the rows that a path leads to; its steps have no predicates."""
        if steps not in self._tables:
            if len(self._tables) >= _MOST_TABLES:
                self._tables.clear()
            self._tables[steps] = TableColumns(_elements(_reached([self._load()], steps)), self.nodes)
        return self._tables[steps]


def _reached(nodes: Sequence[Node], steps: Steps) -> list[Node]:
    """The nodes that steps lead to; their names are expanded (`with_expanded_names`)."""
    found = list(nodes)
    for each in steps:
        match each:
            case ast.Step("child" | "attribute" as axis, ast.NameTest() as test, (), deep):
                reached = [node for start in found for node in _along(start, axis, test, deep=deep)]
                found = in_document_order(reached)
            case _:
                raise NotColumnar("a path in a document by other steps than names")
    return found


def _along(start: Node, axis: str, test: ast.NameTest, *, deep: bool) -> Iterable[Node]:
    starts = [start, *descendants(start)] if deep and isinstance(start, Element | Document) else [start]
    for each in starts:
        if axis == "child" and isinstance(each, Element | Document):
            yield from (
                child for child in each.children if isinstance(child, Element) and is_named(child.name.expanded, test)
            )
        elif axis == "attribute" and isinstance(each, Element):
            yield from (attribute for attribute in each.attributes if is_named(attribute.name.expanded, test))


def _elements(nodes: Sequence[Node]) -> list[Element]:
    """Nodes that are elements, of which none lies in another."""
    found = [each for each in nodes if isinstance(each, Element)]
    if len(found) < len(nodes):
        raise NotColumnar("attributes of a document as rows")
    rows = set(map(id, found))
    for each in found:
        above = each.parent
        while above is not None:
            if id(above) in rows:
                raise NotColumnar("rows of a document inside of others")
            above = above.parent
    return found


class TableColumns:
    """The rows of one path in a document."""

    def __init__(self, nodes: Sequence[Element], document_nodes: int) -> None:
        texts = [serialize(each).encode() for each in nodes]
        self.count = len(nodes)
        self.document_nodes = document_nodes
        self.has_one_parent = len({id(each.parent) for each in nodes}) <= 1
        """Whether positions of rows are counted among all of them."""
        self.lengths: Indices = np.array([*map(len, texts)], np.int64)
        """The bytes of each row."""
        self._nodes = nodes
        self._data, self._ends = b"".join(texts), np.cumsum(self.lengths)
        self.look = self._learned(texts)
        """The look of rows; None where there are none, or none that have one."""
        self._columns: set[PartColumn] = set()
        self._shredded: Shredded | None = None
        self._indexes: dict[tuple[Steps, bool], RowKeys | None] = {}

    def _learned(self, texts: Sequence[bytes]) -> Look | None:
        """The look of rows, learned from samples until nearly all of them fit."""
        look: Look | None = None
        rows = np.arange(len(texts))
        for _ in range(_LEARNED):
            if not len(rows):
                break
            some = rows[:: max(1, len(rows) // _SAMPLE)][:_SAMPLE].tolist()
            grown = Look.learn([(texts[row], parse_item(texts[row], DOCUMENT)) for row in some], look)
            if grown is None or grown == look:
                break
            look = grown
            rows = np.flatnonzero(~self._shred(look, _all_columns(look)).fits)
        return look

    def _shred(self, look: Look, columns: Iterable[PartColumn]) -> Shredded:
        wanted = WantedColumns.of(look, columns, [each for each in columns if each >= 0])
        return shred_entries(self._data, self._ends, wanted, DOCUMENT, with_marks=True)

    def want(self, columns: Iterable[PartColumn]) -> None:
        """Have some columns ready, besides those that others want."""
        if not self._columns.issuperset(columns):
            self._columns.update(columns)
            self._shredded = None
            self.__dict__.pop("left_out", None)

    @property
    def shredded(self) -> Shredded:
        """The columns that are wanted."""
        assert self.look is not None, "rows without a look are not asked for columns"
        if self._shredded is None:
            self._shredded = self._shred(self.look, self._columns)
        return self._shredded

    @cached_property
    def left_out(self) -> Flags:
        """Which rows are left to the law."""
        found: Flags = ~self.shredded.fits | (self.shredded.marks != CANONICAL)
        return found

    def frame(self, part: int) -> FrameRows:
        """The rows themselves, as those of a frame, or the rows of a repeated part in them."""
        found = self.shredded
        if part != _ROW:
            return found.frame(part)
        none = np.empty(0, np.int64)
        return FrameRows(none, none, found.starts, found.ends, found.values)

    def keys(self, steps: Steps, *, numeric: bool) -> RowKeys:
        """The index over the values of a path in each row: as texts, or as numbers."""
        key = steps, numeric
        if key not in self._indexes:
            self._indexes[key] = self._index(steps, numeric=numeric)
        found = self._indexes[key]
        if found is None:
            raise NotColumnar("keys of a document that are not all numbers of few digits, beside a number")
        return found

    def _index(self, steps: Steps, *, numeric: bool) -> RowKeys | None:
        assert self.look is not None, "rows without a look have no index"
        spots = [Spot(self.look, _ROW)]
        for step in steps:
            spots = [each for spot in spots for each in spot.steps(step)]
        columns = [spot.text for spot in spots]
        shredded = self._shred(self.look, columns)
        known = shredded.fits
        owners, keys, numbers = [], [], []
        for column in columns:
            row, frame = shredded.row(column), self.look.frames[column]
            source: Shredded | FrameRows = shredded if frame < 0 else shredded.frame(frame)
            mine = np.arange(self.count) if isinstance(source, Shredded) else _rows_around(shredded, self.look, frame)
            there = np.flatnonzero((source.starts[row] >= 0) & known[mine])
            owners.append(mine[there])
            keys.append(TextColumn(shredded.data, source.starts[row][there], source.ends[row][there]))
            numbers.append(source.values[row][there])
        others = [
            (row, str(key).encode()) for row in np.flatnonzero(~known).tolist() for key in self._by_law(row, steps)
        ]
        if numeric and (others or any(np.isnan(each).any() for each in numbers)):
            return None
        if numeric:
            return RowKeys.of_numbers(np.concatenate([_NO_ROWS, *owners]), np.concatenate([_NO_NUMBERS, *numbers]))
        owners.append(np.array([row for row, _ in others], np.int64))
        keys.append(TextColumn.of(*(key for _, key in others)))
        return RowKeys.of_texts(owners, keys)

    def _by_law(self, row: int, steps: Steps) -> list[object]:
        """The keys of one row."""
        return list(dict.fromkeys(atomize(_reached([self._nodes[row]], steps))))


_NO_ROWS, _NO_NUMBERS = np.empty(0, np.int64), np.empty(0)


def _all_columns(look: Look) -> list[PartColumn]:
    """The texts and the places of all parts."""
    texts = [part for part, each in enumerate(look.parts) if each.has_text]
    return texts + [~part for part, each in enumerate(look.parts) if not each.name.startswith("@")]


def _rows_around(shredded: Shredded, look: Look, frame: int) -> Indices:
    """By row of a repeated part: the row of the table that it lies in."""
    found = shredded.frame(frame).parents
    parent = look.parts[frame].parent
    while (outer := look.frames[parent] if parent >= 0 else -1) >= 0:
        found = shredded.frame(outer).parents[found]
        parent = look.parts[outer].parent
    return found


@dataclass(frozen=True)
class RowKeys:
    """An index from keys to rows: keys are numbered, and `rows[heads[key] : heads[key + 1]]` are the rows of one."""

    texts: TextNumbers | None
    numbers: Numbers | None
    """The keys, as texts or as rising numbers."""
    heads: Indices
    rows: Indices

    @staticmethod
    def of_texts(owners: Sequence[Indices], keys: Sequence[TextColumn]) -> RowKeys:
        """The index of some texts and the rows that have them."""
        texts = TextNumbers()
        found = [texts.of(each, np.ones(len(mine), np.bool_)) for mine, each in zip(owners, keys, strict=True)]
        return RowKeys(texts, None, *_by_number(np.concatenate(found), np.concatenate(owners), len(texts)))

    @staticmethod
    def of_numbers(owners: Indices, keys: Numbers) -> RowKeys:
        """The index of some numbers and the rows that have them."""
        distinct, found = np.unique(keys + 0.0, return_inverse=True)
        return RowKeys(None, distinct, *_by_number(found.astype(np.int64), owners, len(distinct)))

    def find(self, sought: ColumnValue, known: Flags) -> Indices:
        """By sought value: the number of its key; -1 where no row has it, or the value is not known."""
        if self.texts is not None:
            assert sought.texts is not None, "texts are sought among texts"
            return np.where(known, self.texts.find(sought.texts, known), -1)
        assert self.numbers is not None, "keys are texts or numbers"
        assert sought.numbers is not None, "numbers are sought among numbers"
        values = np.broadcast_to(sought.numbers, len(known))
        if not len(self.numbers):
            return np.full(len(known), -1)
        at = np.minimum(np.searchsorted(self.numbers, values), len(self.numbers) - 1)
        return np.where(known & (self.numbers[at] == values), at, -1)


def _by_number(numbers: Indices, rows: Indices, count: int) -> tuple[Indices, Indices]:
    """The rows of each number, in their order and without duplicates, and where those of each number begin."""
    order = np.lexsort((rows, numbers))
    numbers, rows = numbers[order], rows[order]
    first = np.ones(len(rows), np.bool_)
    first[1:] = (numbers[1:] != numbers[:-1]) | (rows[1:] != rows[:-1])
    numbers, rows = numbers[first], rows[first]
    return np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=count))]), rows
