"""The items that a branch holds, so that queries can read them again.

An item is held as its raw entry and parsed once, when it is needed: later readers get the same nodes, as identity and
document order in XQuery demand.
Where its stream has evolved, the maps to the units of query start are held with it (LAWS 4.3): so it is parsed again to
the same tree, however far the stream has come since.
Document order is the order in which the items of a stream were taken, not the order in which they were parsed; so nodes
are numbered by the item's own number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import count
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from anabranch.algebra.accents.items import nodes
from anabranch.branch.intake.entries import EntryReader, FeedOrigin, RawEntry
from anabranch.branch.ports import InputStream
from anabranch.errors import StateError
from anabranch.law.evolution.canonical import remeasured
from anabranch.runtime.evolution.outlet import remove
from anabranch.runtime.units import Candidates, Units
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Item, Place
from anabranch.stream.path import Path, TimeScale
from anabranch.stream.reading.lines import Cut
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element, renumber
from anabranch.values.placing import Moment
from anabranch.values.sequences import NODES, Value

ENTRY = (
    *(("stream", pa.string()), ("partition", pa.int32()), ("file", pa.string()), ("start", pa.int64())),
    *(("end", pa.int64()), ("raw", pa.binary()), ("root", pa.binary()), ("encoding", pa.string())),
    *(("key", pa.binary()), ("headers", pa.binary())),
)
"""The columns of a raw entry in a table of a state."""
_OF_CUTS = [name for name, _ in ENTRY][3:]
"""Those that are fields of its cut."""
_SCHEMA = pa.schema([("number", pa.int64()), *ENTRY, ("units", pa.string())])
_RAW: Mapping[Path, Affine] = MappingProxyType({})
"""The maps of an item whose values are as written."""
_ITEM = 1 << 32  # more than an item has nodes
_STREAM = _ITEM << 64  # more than a stream has items
_BEFORE = -(_STREAM << 32)  # the nodes of streams come before those that a query makes or a document has


class HeldItem:
    """An item with its number among all items of the branch."""

    __slots__ = ("_item", "_lacking", "_nodes", "_shelf", "entry", "gone", "number", "time", "units")

    def __init__(
        self,
        shelf: Shelf,
        number: int,
        entry: RawEntry,
        item: Item | None = None,
        units: Mapping[Path, Affine] = _RAW,
        gone: frozenset[Path] = frozenset(),
        time: Fraction = Fraction(0),
    ) -> None:
        """`units` are the maps to the units of query start, `gone` the paths that were dropped since.

        `time` is known when the item comes; an operator that needs it later keeps it itself.
        """
        self._shelf = shelf
        self._item = item
        self._nodes: dict[int, list[Value]] = {}
        self._lacking: dict[frozenset[Path], HeldItem] = {}
        self.number = number
        self.entry = entry
        self.units = units
        self.gone = gone
        self.time = time

    @property
    def stream(self) -> InputStream:
        return self._shelf.inputs[self.entry.origin.stream]

    @property
    def place(self) -> Place:
        origin = self.entry.origin
        return Place(origin.stream, origin.file, self.entry.cut.start)

    @property
    def place_since(self) -> tuple[str | int, ...]:
        """What tells its place, and so what it is, however long ago the branch began."""
        origin, start = self.entry.origin, self.entry.cut.start
        if (end := self._shelf.ends.get(origin.stream)) is not None:
            return origin.stream, end - start, serialize(self.written)
        return origin.stream, origin.partition, origin.file, start

    @property
    def item(self) -> Item:
        """The item, parsed again if need be."""
        if self._item is None:
            self._item = self._shelf.read(self)
        return self._item

    @property
    def written(self) -> Element:
        """The item as it arrived."""
        return self._shelf.parse(self).tree if self.units else self.item.tree

    @property
    def trees(self) -> list[Element]:
        """The item as queries have read it: complete, and without paths that were dropped since."""
        return [self.item.tree, *(each.item.tree for each in self._lacking.values())]

    def candidates(self, clause: int) -> Candidates:
        """The nodes of the item that the `for` of this number selects from."""
        found = self._shelf.units.candidates(
            clause, self.stream.root, self.item, self._shelf.scale(clause, self.stream)
        )
        self._nodes[clause] = [each.node for each in found.nodes]
        return found

    def node(self, clause: int, index: int) -> Value:
        """One of the nodes of the `for` of this number."""
        return self._seen(clause)[index]

    def without(self, paths: frozenset[Path], clause: int, index: int) -> Value | None:
        """The same node in the item without some paths; None if it was dropped itself."""
        if paths not in self._lacking:
            self._lacking[paths] = HeldItem(self._shelf, self.number, self.entry, None, self.units, paths)
        node = self.node(clause, index)
        assert isinstance(node, NODES), "the items of a stream have nodes"
        same = (each for each in self._lacking[paths]._seen(clause) if isinstance(each, NODES))
        return next((each for each in same if each.order == node.order), None)

    def _seen(self, clause: int) -> list[Value]:
        if clause not in self._nodes:
            self._nodes[clause] = self._shelf.units.nodes(clause, self.stream.root, self.item)
        return self._nodes[clause]


class HeldNode:
    """One node of an item, with its reference value."""

    __slots__ = ("clause", "index", "kept", "value")

    def __init__(self, value: Fraction, kept: HeldItem, clause: int, index: int) -> None:
        self.value = value
        self.kept = kept
        self.clause = clause
        self.index = index

    @property
    def node(self) -> Value:
        return self.kept.node(self.clause, self.index)

    def without(self, paths: frozenset[Path]) -> Value | None:
        """The node in the item without some paths; None if it was dropped itself."""
        return self.kept.without(paths, self.clause, self.index)

    @property
    def key(self) -> tuple[int, int]:
        """Identifies it among all nodes of its `for`."""
        return self.kept.number, self.index

    def row(self) -> dict[str, Any]:
        value = write_value(self.value)
        return {"value": value, "number": self.kept.number, "clause": self.clause, "index": self.index}


HELD = pa.schema([("value", pa.string()), ("number", pa.int64()), ("clause", pa.int32()), ("index", pa.int32())])
"""The columns of a table of held nodes."""
_PLACED = pa.schema([("windows", pa.string()), ("row", pa.int64()), ("position", pa.string())])
"""The place of a held node: its windows, its row, and the position at which it waits to enter, if it does."""


class Shelf:
    """Numbers items, and restores those that were held at the end of an epoch."""

    def __init__(self, inputs: Mapping[str, InputStream], units: Units) -> None:
        self.inputs = inputs
        self.units = units
        self.taken = 0
        """The number of items that the branch took."""
        self._readers: dict[str, EntryReader] = {}
        self._restored: dict[int, HeldItem] = {}
        self._scales: dict[int, TimeScale] = {}
        self.ends: Mapping[str, int] = {}
        """By stream: where it ends by now, if its places count from the beginning of the branch (`futures.py`)."""

    def put(
        self, entry: RawEntry, item: Item, units: Mapping[Path, Affine] = _RAW, time: Fraction = Fraction(0)
    ) -> HeldItem:
        """The next item of the branch, with the maps by which it was converted into the units of query start."""
        kept = HeldItem(self, self.taken, entry, item, units, time=time)
        self._number_nodes(kept, item.tree)
        self.taken += 1
        return kept

    def scale(self, clause: int, stream: InputStream) -> TimeScale:
        """The time scale of the reference of the `for` of this number, over a stream."""
        if clause not in self._scales:
            self._scales[clause] = stream.source.scale(self.units.reference(clause, stream.root))
        return self._scales[clause]

    def read(self, kept: HeldItem) -> Item:
        """Parse an item again."""
        found = self.parse(kept)
        item = replace(found, tree=remeasured(found.tree, kept.units)) if kept.units else found
        self._number_nodes(kept, item.tree)
        for path in kept.gone:
            for node in list(nodes(item.tree, path)):
                if node is item.tree:
                    item.tree.children, item.tree.attributes = [], []
                else:
                    remove(node)
        return item

    def parse(self, kept: HeldItem) -> Item:
        """An item as it arrived."""
        stream = kept.stream
        if stream.name not in self._readers:
            self._readers[stream.name] = EntryReader(stream)
        item = self._readers[stream.name].read(kept.entry)
        if not isinstance(item, Item):
            raise StateError(
                f"the item {kept.place}, which a window or join holds, can no longer be read",
                hint="limits or schema of the stream are narrower than they were",
            )
        return item

    def _number_nodes(self, kept: HeldItem, tree: Element) -> None:
        number_nodes(tree, list(self.inputs).index(kept.entry.origin.stream), kept.number)

    # --- between epochs -----------------------------------------------------------------------------------

    def held(self, row: Mapping[str, Any]) -> HeldNode:
        """A node held in an earlier epoch, from its row."""
        return HeldNode(read_value(row["value"]), self._restored[row["number"]], row["clause"], row["index"])

    def placed(self, tables: Mapping[str, pa.Table]) -> Iterator[tuple[str, HeldNode, int | None]]:
        """The nodes that `placed_tables` has written."""
        held = [self.held(row) for row in tables["held"].to_pylist()]
        for windows, row, position in zip(*(each.to_pylist() for each in tables["placed"].columns), strict=True):
            yield windows, held[row], None if position is None else int(position)

    def hold_again(self, kept: HeldItem) -> None:
        """Take up an item that is restored elsewhere."""
        self._restored[kept.number] = kept

    def restore(self, table: pa.Table, taken: int) -> None:
        """Restore the items of `kept_table`, and the number of items taken."""
        self.taken = taken
        for row in table.to_pylist():
            units = _RAW if row["units"] is None else _units(row["units"])
            self._restored[row["number"]] = HeldItem(self, row["number"], entry_of(row), None, units)


_TIME = "@"
"""The first character of a value that is a time."""


def write_value(value: Fraction) -> str:
    """A reference value as text, without loss."""
    return f"{_TIME}{Fraction(value)}" if isinstance(value, Moment) else str(value)


def read_value(text: str) -> Fraction:
    """The value that `write_value` has written."""
    above, _, below = text.removeprefix(_TIME).partition("/")
    value = Fraction(int(above), int(below or 1))
    return Moment(value) if text.startswith(_TIME) else value


def number_nodes(tree: Element, stream: int, number: int) -> None:
    """Set the document order of an item's nodes: by the rank of its stream, then by its number there."""
    renumber(tree, count(_BEFORE + stream * _STREAM + number * _ITEM))


def placed_tables(placed: Iterable[tuple[str, HeldNode, int | None]]) -> dict[str, pa.Table]:
    """The nodes held by windows of several names, in order, each with the position at which it waits, if it does.

    A node held by several windows is written once.
    """
    rows: dict[tuple[int, int, int], int] = {}
    held: list[HeldNode] = []
    columns: dict[str, list[Any]] = {name: [] for name in _PLACED.names}
    for windows, each, position in placed:
        row = rows.setdefault((each.clause, *each.key), len(rows))
        if row == len(held):
            held.append(each)
        columns["windows"].append(windows)
        columns["row"].append(row)
        columns["position"].append(None if position is None else str(position))
    found = pa.Table.from_pylist([each.row() for each in held], schema=HELD)
    return {"held": found, "placed": pa.table(columns, schema=_PLACED)}


def kept_table(held: Iterable[HeldNode]) -> pa.Table:
    """The items with a held node, each once."""
    items = list({each.kept.number: each.kept for each in held}.values())
    origins, cuts = [each.entry.origin for each in items], [each.entry.cut for each in items]
    columns = {
        "number": [each.number for each in items],
        **{name: [getattr(each, name) for each in origins] for name in ("stream", "partition", "file")},
        **{name: [getattr(each, name) for each in cuts] for name in _OF_CUTS},
        "units": [write_units(each.units) if each.units else None for each in items],
    }
    return pa.table(columns, schema=_SCHEMA)


def entry_row(entry: RawEntry) -> dict[str, Any]:
    """A raw entry as a row with the columns of `ENTRY`."""
    origin, cut = entry.origin, entry.cut
    values = origin.stream, origin.partition, origin.file, *(getattr(cut, name) for name in _OF_CUTS)
    return dict(zip((name for name, _ in ENTRY), values, strict=True))


def entry_of(row: Mapping[str, Any]) -> RawEntry:
    """The raw entry of such a row."""
    cut = Cut(**{name: row[name] for name in _OF_CUTS})
    return RawEntry(FeedOrigin(row["stream"], row["partition"], row["file"]), cut)


def write_units(units: Mapping[Path, Affine]) -> str:
    """The maps of an item as text."""
    return json.dumps({str(path): [str(by.a), str(by.b)] for path, by in units.items()})


def _units(text: str) -> Mapping[Path, Affine]:
    known = json.loads(text).items()
    return {Path.parse(path, itself=True): Affine(Fraction(a), Fraction(b)) for path, (a, b) in known}
