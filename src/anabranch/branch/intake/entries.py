"""Entries: raw elements on their way from tasks, which cut them out of bytes, to branches.

An entry is a cut with its place.
The entries of one range travel as one Arrow stream, the *feed*, in stream order; their origin is in the schema, once.
They are parsed when they are released: most are read once and never again.
`EntryReader` is the one place where a branch parses raw bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.branch.intake.usual_updates import UsualUpdate, UsualUpdates
from anabranch.branch.ports import InputStream
from anabranch.branch.state import fraction, read_table, table_bytes, written
from anabranch.columnar.items.growing_look import GrowingLook, Use, chosen
from anabranch.columnar.messages import MessageColumns
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.template import UsualTrees, is_plain_around
from anabranch.stream.elements import Accent, Alter, DeadLetter, Doubt, Drop, Item, Place, StreamElement, Update
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.messages import note
from anabranch.stream.tree import Element

_SCHEMA = pa.schema(
    [
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("raw", pa.binary()),
        ("reason", pa.string()),
        ("root", pa.dictionary(pa.int32(), pa.binary())),
        ("encoding", pa.dictionary(pa.int32(), pa.string())),
    ]
)
_MESSAGES = pa.schema([*_SCHEMA, ("stamp", pa.int64()), ("key", pa.binary()), ("headers", pa.binary())])
"""The columns of entries that came in messages; all columns are fields of a cut, in their order."""
_ORIGIN = b"origin"
MILLISECONDS = 1_000
_ROWS = 1_024


@dataclass(frozen=True, slots=True)
class FeedOrigin:
    """The origin of the entries of a feed."""

    stream: str
    partition: int
    file: str
    arrived: Fraction | None = None
    """When they reached the trunk: the time of elements that have none of their own.

    None where there is no clock; then such an element has the time of the element before (LAWS 1.3).
    """


class RawEntry(NamedTuple):
    """One raw element."""

    origin: FeedOrigin
    cut: Cut

    def arrived(self, now: Fraction) -> Fraction | None:
        """When it came, by the timestamp of its message or by the clock of the trunk (LAWS 1.3).

        `now` is the time of the element before it: timestamps do not run backwards.
        """
        stamp = self.cut.stamp
        return self.origin.arrived if stamp is None else max(now, Fraction(stamp, MILLISECONDS))


def pack(origin: FeedOrigin, cuts: Sequence[Cut]) -> bytes:
    """A feed of entries that stand in this order in one file."""
    of_messages = any((each.stamp, each.key, each.headers) != (None, None, None) for each in cuts)
    schema = _MESSAGES if of_messages else _SCHEMA
    return table_bytes(_with_origin(pa.table([_column(cuts, field) for field in schema], schema=schema), origin))


def pack_columns(
    origin: FeedOrigin,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    offsets: NDArray[np.int32],
    raw: NDArray[np.uint8],
    root: bytes | None,
    encoding: str,
    messages: MessageColumns | None = None,
) -> bytes:
    """Pack entries whose bytes are concatenated in `raw`, all below one root."""
    rows = len(starts)
    zeros = pa.array(np.zeros(rows, np.int32))
    nothing = pa.nulls(rows, pa.string())
    around = pa.array([root], pa.binary())
    columns = [
        pa.array(starts),
        pa.array(ends),
        pa.BinaryArray.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(raw)]),
        nothing,
        pa.DictionaryArray.from_arrays(zeros, around)
        if root is not None
        else pa.nulls(rows, _SCHEMA.field("root").type),
        pa.DictionaryArray.from_arrays(zeros, pa.array([encoding])),
    ]
    schema = _SCHEMA
    if messages is not None and any(each is not None for each in messages):
        schema, fields = _MESSAGES, list(_MESSAGES)[len(_SCHEMA) :]
        columns += [
            pa.nulls(rows, field.type) if each is None else each for each, field in zip(messages, fields, strict=True)
        ]
    return table_bytes(_with_origin(pa.table(columns, schema=schema), origin))


def origin_of(data: bytes) -> FeedOrigin:
    """The origin of a feed's entries."""
    return unpack(data)[0]


def unpack(data: bytes) -> tuple[FeedOrigin, pa.Table]:
    """The origin and table of a feed; `cuts` gives the cuts of the table."""
    table = read_table(data)
    stream, partition, file, arrived = json.loads(table.schema.metadata[_ORIGIN])
    return FeedOrigin(stream, partition, file, fraction(arrived)), table


def cuts(table: pa.Table, start: int = 0) -> Iterator[Cut]:
    """The cuts of a feed, from number `start` on."""
    for first in range(start, table.num_rows, _ROWS):
        part = table.slice(first, _ROWS)
        yield from map(Cut, *(_values(part.column(name)) for name in table.schema.names))


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; mostly all are missing, or numbers, or the same."""
    if column.null_count == len(column):
        return [None] * len(column)
    if column.null_count == 0 and pa.types.is_integer(column.type):
        return list(column.to_numpy().tolist())
    if pa.types.is_dictionary(column.type):
        found = column.combine_chunks()
        values = found.dictionary.to_pylist()
        return [None if each is None else values[each] for each in _values(pa.chunked_array([found.indices]))]
    return list(column.to_pylist())


def _around(table: pa.Table) -> tuple[bytes | None, str] | None:
    """The root and the encoding around all entries of a table; None where they differ, or some came in messages."""
    if table.schema.names != _SCHEMA.names or table.column("reason").null_count < table.num_rows:
        return None
    roots, encodings = (table.column(name).unique().to_pylist() for name in ("root", "encoding"))
    return (roots[0], encodings[0]) if len(roots) == len(encodings) == 1 else None


def without(data: bytes, done: int) -> bytes:
    """A feed without its first `done` entries."""
    origin, table = unpack(data)
    return table_bytes(_with_origin(table.slice(done), origin))


def divided(data: bytes, most: int) -> Iterator[bytes]:
    """A feed as several, in order, of about `most` bytes each; an entry is never divided."""
    if len(data) <= most:
        yield data
        return
    origin, table = unpack(data)
    rows = max(1, table.num_rows * most // (2 * len(data)))  # half of it, because entries differ in length
    for first in range(0, table.num_rows, rows):
        packed = table_bytes(_with_origin(table.slice(first, rows), origin))
        yield from divided(packed, most) if rows > 1 else (packed,)


def _with_origin(table: pa.Table, origin: FeedOrigin) -> pa.Table:
    fields = [origin.stream, origin.partition, origin.file, written(origin.arrived)]
    return table.replace_schema_metadata({_ORIGIN: json.dumps(fields).encode()})


def _column(cuts: Sequence[Cut], field: pa.Field) -> pa.Array:
    values = [getattr(cut, field.name) for cut in cuts]
    if pa.types.is_dictionary(field.type):
        return pa.array(values, field.type.value_type).dictionary_encode()
    return pa.array(values, field.type)


class EntryReader:
    """Reads the entries of one stream: by a template if an item has the learned look, else by the stream's reader."""

    def __init__(self, stream: InputStream) -> None:
        self._stream = stream
        self._reader = stream.reader()
        self._usual = UsualTrees()
        self._usual_updates = UsualUpdates()
        self._growing = GrowingLook(is_json=stream.is_json)

    def read(self, entry: RawEntry) -> StreamElement | DeadLetter:
        """The element of an entry; an item stands below the stream's root, in an edited stream below its own root."""
        shared = self._stream.shared
        if shared is None:
            return self._read(entry)
        element = shared.find(entry.cut, entry.origin.file)
        if element is None:
            element = self._read(entry)
            shared.put(entry.cut, entry.origin.file, element)
        return element

    @property
    def is_learned(self) -> bool:
        """Whether it has learned what usual updates look like."""
        return self._usual_updates.is_learned

    def usual_updates(self, origin: FeedOrigin, table: pa.Table) -> list[UsualUpdate]:
        """The updates of known looks at the front of a feed's table; what stands behind is for `read`."""
        around = _around(table)
        if around is None or self._stream.is_json or not is_plain_around(*around):
            return []
        raws = table.column("raw").to_pylist()
        starts = table.column("start").to_pylist()
        shared = self._stream.shared
        if shared is not None and (known := shared.find_run(origin.file, starts[0], raws)) is not None:
            return known
        found: list[UsualUpdate] = []
        read, stream, file, (root, _) = self._usual_updates.read, origin.stream, origin.file, around
        for raw, start in zip(raws, starts, strict=True):
            update = read(raw, Place(stream, file, start), root)
            if update is None:
                break
            found.append(update)
        if shared is not None:
            shared.put_run(origin.file, starts[0], raws, found)
        return found

    def _read(self, entry: RawEntry) -> StreamElement | DeadLetter:
        cut, origin = entry.cut, entry.origin
        plain = cut.reason is None and is_plain_around(cut.root, cut.encoding)
        tree = self._usual.tree(cut.raw) if plain else None
        if tree is not None:
            self._place(tree)
            item = Item(tree, Place(origin.stream, origin.file, cut.start))
            note(item, cut)
            return item
        if plain and cut.key is None and cut.headers is None:
            update = self._usual_updates.read(cut.raw, Place(origin.stream, origin.file, cut.start), cut.root)
            if update is not None:
                return update
        (element,) = self._reader.elements([cut], origin.file)
        if isinstance(element, Update) and plain and not self._stream.is_json:
            self._usual_updates.learn(cut.raw, element, cut.root)
        if isinstance(element, Item):
            if plain:
                self._usual.learn(cut.raw, element.tree)
            self._place(element.tree)
        if isinstance(element, DeadLetter) and cut.reason is not None:
            return replace(element, doubts=self._doubts(entry))
        return element

    def _place(self, tree: Element) -> None:
        if not self._stream.source.updates:  # in an edited document, each item has the namespaces of its own root
            tree.parent = self._stream.root

    def _doubts(self, entry: RawEntry) -> tuple[Doubt, ...]:
        """The doubts that an entry leaves which was set aside by its task, such as an invalid accent."""
        match list(self._reader.elements([entry.cut._replace(reason=None)], entry.origin.file)):
            case [Accent(where, Alter(path) | Drop(path))]:
                return (Doubt(path, where),)
            case [DeadLetter(doubts=doubts)]:
                return doubts
            case _:
                return ()

    @property
    def look(self) -> Look | None:
        """The learned look of items."""
        return self._growing.look

    def learn(self, entries: Iterable[RawEntry], use: Use, share: float = 1.0) -> bool:
        """Learn the look of entries, where such a share of all did not fit; whether a new look is used."""
        read = ((entry.cut.raw, self.read(entry)) for entry in entries)
        found = [(raw, element.tree) for raw, element in read if isinstance(element, Item)]
        return self._growing.learn(found, share, use)

    def grow(self, some: Callable[[Indices], Iterable[RawEntry]], fits: Flags, use: Use) -> bool:
        """Learn from a batch of which these entries fit, if too many do not; whether a new look is used.

        `some` gives entries by their numbers.
        """
        off = len(fits) - int(np.count_nonzero(fits))
        return self._growing.is_due(len(fits), off) and self.learn(some(chosen(fits)), use, off / len(fits))
