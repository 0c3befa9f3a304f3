"""Streams in files, read to their end: a file, a gzip file, or a directory of them, in XML or JSON.

`read` gives what is in a stream in the order in which it stands there: elements, and dead letters where something had
to be set aside (LAWS 2.5).
It opens the files that the source names and nothing else, and holds one item and one chunk in memory, so the size of a
stream does not matter.
An item's parent is the root element around it, though the root does not hold the items: a stream has no end to wait
for, and what was read can be forgotten.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path as FilePath
from typing import Literal, TypeAlias

from anabranch.errors import BadItem, StreamError, UsageError
from anabranch.stream import json_items, wire
from anabranch.stream.elements import DeadLetter, Item, Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.markup import BOM, Window
from anabranch.stream.parse import implied_root, parse_item, parse_root
from anabranch.stream.path import Path
from anabranch.stream.schema import Schema
from anabranch.stream.split import Cut, DocumentSplitter, LineSplitter
from anabranch.stream.tree import Element, namespaces_in_scope

Format: TypeAlias = Literal["lines", "document", "json"]

_CHUNK = 1 << 20
_HEAD = 1 << 16
_LONGEST_RAW = 2_000
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's word for: expect a gzip header
_PACKED_CHUNK = 1 << 14  # small, because zlib copies what is left of it for every member


@dataclass(frozen=True, slots=True)
class Source:
    """A stream as it was registered: where it is, what it looks like, and how its time runs (LAWS 1.3, 3.1, 3.2)."""

    name: str
    path: FilePath
    format: Literal["auto"] | Format = "auto"
    schema: Schema | None = None
    root: str | None = None
    """The name of the root where the wire has none; without it the schema's, else 'root'."""
    item: str | None = None
    """The name of items that have none of their own; without it 'item'."""
    time: Path | None = None
    slack: Decimal = Decimal(0)
    origin: Decimal = Decimal(0)
    strict: bool = False
    """Set items aside that have a path which the schema does not declare."""

    @property
    def implied_root(self) -> str:
        return self.root or (self.schema.root if self.schema else "root")

    @property
    def files(self) -> tuple[FilePath, ...]:
        """The files in the order in which they are read."""
        if self.path.is_file():
            return (self.path,)
        if not self.path.is_dir():
            raise UsageError(f"the stream '{self.name}' has no file or directory '{self.path}'")
        found = (each for each in self.path.iterdir() if each.is_file() and not each.name.startswith("."))
        return tuple(sorted(found, key=lambda each: each.name))


def read(source: Source, limits: Limits) -> Contents:
    """Begin to read a stream."""
    return Contents(source, limits)


class Contents:
    """What a stream holds, in order and once; whoever iterates is the only one to change it."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self._source = source
        self._limits = limits
        self._format = None if source.format == "auto" else source.format
        self._root: Element | None = None
        self._around: tuple[bytes, str, Element, dict[str, str]] | None = None
        self._ahead: deque[StreamElement | DeadLetter] = deque()
        self._rest = self._read(source.files)

    @property
    def root(self) -> Element:
        """The root element: the first one in the stream, or the implied one."""
        while self._root is None and (following := next(self._rest, None)) is not None:
            self._ahead.append(following)
        self._root = self._root or implied_root(self._source.implied_root)
        return self._root

    def __iter__(self) -> Iterator[StreamElement | DeadLetter]:
        return self

    def __next__(self) -> StreamElement | DeadLetter:
        return self._ahead.popleft() if self._ahead else next(self._rest)

    def _read(self, files: Iterable[FilePath]) -> Iterator[StreamElement | DeadLetter]:
        for file in files:
            splitter: DocumentSplitter | LineSplitter | None = None
            damage: DeadLetter | None = None
            position = 0
            for piece in _pieces(file):
                if isinstance(piece, _Damage):
                    damage = DeadLetter(Place(self._source.name, file.name, position), piece.reason, "")
                else:
                    position += len(piece)
                    splitter = splitter or self._splitter(piece)
                    yield from self._elements(splitter.feed(piece), splitter, file.name)
            if splitter:
                yield from self._elements(splitter.finish(), splitter, file.name)
            if damage:
                yield damage

    def _splitter(self, head: bytes) -> DocumentSplitter | LineSplitter:
        schema = self._source.schema
        form = self._format or detect(head[:_HEAD], schema.root if schema else None)
        if head.strip():
            self._format = form  # one source, one format: the first file that holds something decides
        if form == "document":
            return DocumentSplitter(self._limits)
        self._root = self._root or implied_root(self._source.implied_root)
        return LineSplitter(self._limits)

    def _elements(
        self, cuts: Iterable[Cut], splitter: DocumentSplitter | LineSplitter, partition: str
    ) -> Iterator[StreamElement | DeadLetter]:
        for cut in cuts:
            place = Place(self._source.name, partition, cut.start)
            reason = cut.reason
            if reason is None:
                try:
                    yield self._element(cut, place)
                    continue
                except BadItem as error:
                    reason = error.message
            yield DeadLetter(place, reason, cut.raw.decode(cut.encoding, "replace")[:_LONGEST_RAW])
        if self._root is None and splitter.root is not None:
            self._root = parse_root(splitter.root, splitter.carry.encoding)  # a root without items

    def _element(self, cut: Cut, place: Place) -> StreamElement:
        """The element in a cut that may be good; BadItem where it is not."""
        root, scope = self._enclosing(cut)
        if self._format == "json":
            element = json_items.parse_line(cut.raw, place, self._limits, self._source.item or "item")
        else:
            tree = parse_item(cut.raw, self._limits, scope, cut.encoding)
            tree.parent = root
            element = wire.element_of(tree, place)
        if isinstance(element, Item):
            element.tree.parent = root
            if self._source.strict and self._source.schema:
                undeclared = self._source.schema.undeclared(element.tree)
                if undeclared is not None:
                    raise BadItem(f"the path '{undeclared}' is not declared")
        return element

    def _enclosing(self, cut: Cut) -> tuple[Element, dict[str, str]]:
        """The root around an item, and the namespaces that it declares."""
        if cut.root is None:
            return self.root, {}
        if self._around is None or self._around[:2] != (cut.root, cut.encoding):
            try:
                root = parse_root(cut.root, cut.encoding)
            except StreamError as error:
                if self._root is None:
                    raise
                raise BadItem(error.message) from None  # a further document must not end the stream
            self._root = self._root or root
            self._around = (cut.root, cut.encoding, root, namespaces_in_scope(root))
        return self._around[2:]


def detect(head: bytes, schema_root: str | None) -> Format:
    """Tell the format from the front of a stream; 64 KiB of it are plenty.

    XML whose first element is closed and followed by another has an item per line; where the schema names the root,
    the first element decides alone.
    """
    if head.removeprefix(BOM).lstrip().startswith(b"{"):
        return "json"
    window = Window(0)
    window.append(head)
    first = b""
    depth = at = 0
    while (at := window.find(b"<", at, window.end)) >= 0:
        token = window.token(at, window.end, prolog=not depth) or window.broken(at, window.end)
        if token.kind in ("open", "empty", "broken") and token.name:
            if first and depth == 0:
                return "lines"
            if not first and schema_root is not None:
                return "document" if token.name.decode("utf-8", "replace") == schema_root else "lines"
            first = first or token.name
            depth += token.kind != "empty" and token.name == first
        elif token.kind == "close" and token.name == first:  # other elements may be broken and do not count
            depth -= 1
        at = token.end
    return "document"


@dataclass(frozen=True, slots=True)
class _Damage:
    """The place in a file from which on it cannot be read."""

    reason: str


def _pieces(file: FilePath) -> Iterator[bytes | _Damage]:
    """A file's bytes, unpacked; the first piece is as long as `detect` likes it, or all there is."""
    try:
        with file.open("rb") as opened:
            packed = opened.read(len(_GZIP)) == _GZIP  # by its bytes, for names lie
            opened.seek(0)
            chunks = iter(lambda: opened.read(_PACKED_CHUNK if packed else _CHUNK), b"")
            yield from _gunzip(chunks) if packed else chunks
    except OSError as error:
        raise StreamError(f"cannot read '{file}': {error.strerror}") from None


def _gunzip(chunks: Iterable[bytes]) -> Iterator[bytes | _Damage]:
    """Unpack piece by piece, so that neither a bomb nor damage costs what came before it."""
    out = bytearray()
    inflate = zlib.decompressobj(_GZIP_WINDOW)
    for chunk in chunks:
        while chunk:
            if inflate.eof:  # a gzip file may have several members
                inflate = zlib.decompressobj(_GZIP_WINDOW)
            before = inflate.copy()
            try:
                out += inflate.decompress(chunk, _CHUNK)
            except zlib.error:
                yield bytes(out + _inflated_before_damage(before, chunk))
                yield _Damage("the gzip data is damaged")
                return
            chunk = inflate.unconsumed_tail or inflate.unused_data.lstrip(b"\0")
            if len(out) >= _HEAD:
                yield bytes(out)
                out.clear()
    yield bytes(out + inflate.flush())
    if not inflate.eof:
        yield _Damage("the gzip data is cut short")


def _inflated_before_damage(inflate: zlib._Decompress, chunk: bytes) -> bytes:
    """What zlib threw away with its error: unpacked again byte by byte, up to the bad one."""
    out = bytearray()
    try:
        for byte in chunk:
            out += inflate.decompress(bytes((byte,)))
    except zlib.error:
        pass
    return bytes(out)
