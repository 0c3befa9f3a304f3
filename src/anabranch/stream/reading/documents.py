"""The finite documents behind `doc()` (LAWS 3.12): complete files in XML or in JSON.

JSON is read like a stream: one record per line, each an item below an implied root; a whole file may also be one array
of records.
Gzip is recognised by its first bytes.

Guarantees: size, depth and number of nodes are bounded (`stream/limits.py`), no entity is expanded beyond XML's five,
and nothing is fetched or opened because a document says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.errors import BadItem, StreamError, UsageError
from anabranch.storage import Location, Where
from anabranch.stream.limits import DOCUMENT
from anabranch.stream.reading.gzip import MAGIC, PACKED_CHUNK, Damage, gunzip
from anabranch.stream.reading.json_items import parse_records
from anabranch.stream.reading.markup import BOM
from anabranch.stream.reading.parse import implied_root, parse_document
from anabranch.stream.tree import Document


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A file behind `doc()`, and the names of its root and records where it is JSON."""

    path: Where
    root: str = "root"
    item: str = "item"

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Location.of(self.path))

    @property
    def at(self) -> Location:
        """Where the file is."""
        return Location.of(self.path)

    def parse(self, data: bytes) -> Document:
        """The document in the bytes of the file; `StreamError` says what is wrong with them."""
        try:
            text = _unpacked(data)
            if _is_json(text):
                return _records(text.removeprefix(BOM), self.root, self.item)
            return parse_document(text)
        except StreamError as error:
            raise StreamError(f"'{self.path}': {error.message}", hint=error.hint) from None

    def is_json(self) -> bool:
        """Whether the document is JSON."""
        return _is_json(_unpacked(self.read()))

    def read(self) -> bytes:
        """The bytes of the file; `UsageError` where it cannot be read, or is too large."""
        try:
            found = self.at.stat()
            if found is not None and found.size > DOCUMENT.item_bytes:
                raise UsageError(f"'{self.path}' has more than {DOCUMENT.item_bytes:,} bytes")
            return self.at.read(0, DOCUMENT.item_bytes + 1)  # it may have grown; `parse` checks the size
        except OSError as error:
            raise UsageError(f"cannot read '{self.path}': {error.strerror}") from None


def _is_json(text: bytes) -> bool:
    return text.removeprefix(BOM).lstrip()[:1] in (b"{", b"[")


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(MAGIC):
        return data
    out = bytearray()
    for piece in gunzip(data[at : at + PACKED_CHUNK] for at in range(0, len(data), PACKED_CHUNK)):
        if isinstance(piece, Damage):
            raise StreamError(f"the document cannot be read: {piece.reason}")
        out += piece
        if len(out) > DOCUMENT.item_bytes:
            raise StreamError(f"the document cannot be read: more than {DOCUMENT.item_bytes:,} bytes")
    return bytes(out)


def _records(data: bytes, root: str, item: str) -> Document:
    """The document of some records in JSON."""
    document = Document()
    top = implied_root(root)
    document.append(top)
    try:
        for record in parse_records(data, DOCUMENT, item):
            top.append(record)
    except BadItem as error:
        raise StreamError(f"the document cannot be read: {error.message}", hint=error.hint) from None
    return document
