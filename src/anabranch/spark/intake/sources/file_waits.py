"""What a stream in files waits for: bytes that are there and cannot be read yet, and folders that are empty.

All of it follows from the rules of `ranges.py` and `folders.py`, and none of it is an error; but a user cannot tell a
run that waits from one that hangs.
These functions only read folders, the order log and the newest manifest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anabranch.errors import StreamError
from anabranch.spark.intake import folders, storage
from anabranch.spark.intake.folders import PartitionFiles
from anabranch.spark.intake.order import OrderLog
from anabranch.spark.intake.ranges import Position
from anabranch.spark.intake.sources.connector import Reason
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.reading.gzip import PACKED_CHUNK, Damage, gunzip
from anabranch.stream.reading.lines import START, Carry
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.split import DocumentSplitter

if TYPE_CHECKING:
    from anabranch.spark.checkpoint.manifest import Manifest

_REST_BYTES = 1 << 16
"""The number of unread bytes that are examined."""
_MOST_UNPACKED = 64 << 20
"""Gzip files up to this size are unpacked to see whether they are complete."""


class FileWaits:
    """Looks at the files of one stream, repeatedly; it caches what it has unpacked."""

    def __init__(self, source: Source, log: OrderLog) -> None:
        self._source = source
        self._log = log
        self._unpacked: dict[str, tuple[int, Carry, Reason | None]] = {}
        """By gzip file: its size and read position when it was unpacked, and the rest that was left."""

    def reasons(self, last: Manifest | None) -> Iterator[Reason]:
        """What each partition waits for, if anything."""
        for key, path in self._source.keys.items():
            try:
                found = self._of_partition(key, path, last)
            except (OSError, StreamError):
                continue  # it changed meanwhile; the survey will report errors
            if found is not None:
                yield found

    def _of_partition(self, key: str, path: str, last: Manifest | None) -> Reason | None:
        left = _unread_rest(self._source, key, path, self._log, last)
        if not isinstance(left, _UnreadRest):
            return left
        if not left.packed:
            return _of_rest(left.where, left.carry, left.document, _front_of(left.where, left.position, left.size))
        found = self._unpacked.get(left.where)
        if found is None or found[:2] != (left.size, left.carry):
            found = self._unpacked[left.where] = left.size, left.carry, _of_packed(left)
        return found[2]


@dataclass(frozen=True, slots=True)
class _UnreadRest:
    """The unread rest of the last file of a partition."""

    where: str
    position: int
    size: int
    carry: Carry
    packed: bool
    document: bool


def _unread_rest(
    stream: Source, key: str, path: str, log: OrderLog, last: Manifest | None
) -> _UnreadRest | Reason | None:
    """The unread rest of a partition; a reason where nothing was ever read, None where nothing is waited for."""
    there = folders.listing(path)
    held = log.stretches(key.rpartition("/")[2])
    if not there:
        return None if held else _nothing(path, others=bool(stream.more))
    if log.form is None:
        return _unknown_form(stream, path, there)
    files = PartitionFiles(path, log.form.format == "document")
    at = Position.of(last.offsets if last else {}, key)
    unread = folders.waiting(held, there, files)
    if len(unread) > 1 or (unread and held and held[-1].end is None) or at.file < len(held) - 1:
        return None  # a file ends when another is there to be begun, so there is more to read
    if not unread and (at.file >= len(held) or held[-1].end is not None):
        return None  # all of it was read
    name = unread[0].file if unread else held[-1].file
    where, size = files.path(name), there.get(name, 0)
    begun = bool(held) and not unread and at.file == len(held) - 1
    position = max(at.position, held[-1].start) if begun else unread[0].start if unread else 0
    carried = last.carries.get(key) if last and begun else None
    carry = Carry.from_json(json.loads(carried.carry)) if carried and carried.number == at.file else START
    packed = storage.is_packed(where)
    if packed:
        ready = position < size
    elif files.document:
        position, ready = carry.position, False
    else:
        ready = position < size and storage.last_line_end(where, position, size) > position
    return None if ready else _UnreadRest(where, position, size, carry, packed, files.document)


def _nothing(path: str, *, others: bool) -> Reason:
    """The reason for a partition that never had a byte."""
    hint = "the other partitions of the stream wait for it" if others else "write or move a file there"
    if storage.is_address(path):
        return f"there is nothing at '{path}'", hint
    if not os.path.exists(path):
        return f"there is no '{path}'", hint
    if not os.path.isdir(path):
        return f"'{path}' is empty", hint
    with os.scandir(path) as entries:
        names = {each.name: each.is_file() for each in entries}
    hidden = sorted(name for name, is_file in names.items() if is_file and name.startswith("."))
    if any(is_file and name not in hidden for name, is_file in names.items()):
        return f"all files in '{path}' are empty", hint
    if hidden:
        return f"'{path}' holds hidden files only, as '{hidden[0]}'", "a hidden file is not read: rename it"
    if names:
        return f"'{path}' holds folders only, as '{min(names)}'", "folders in a folder are not read: name them as paths"
    return f"'{path}' is empty", hint


def _unknown_form(stream: Source, path: str, there: Mapping[str, int]) -> Reason | None:
    """The reason for a partition with bytes of which none was read."""
    paths = PartitionFiles(path, document=False).paths(there)
    if folders.form_of(stream, [paths], decide=False) is not None:
        return None
    where = paths[0]
    front = folders.front(where)
    if not front.strip():
        if storage.is_packed(where):
            return f"the gzip file '{where}' is not finished: nothing can be unpacked of it yet", "move it in whole"
        return f"'{where}' holds nothing but blanks", "write items behind them"
    bad = _first_bad(front)
    if bad is not None:
        return f"'{where}' cannot be read: {bad}", "it is set aside when a file is there that can be read"
    if stream.format == "document" or stream.schema is not None:
        return f"the start tag of the root element of '{where}' is not finished", "write its end"
    return (
        f"'{where}' is one line, and whether it is a document or the first of many lines shows with the second",
        f'a newline and another line settle it, or format = "lines" or "document" for stream \'{stream.name}\'',
    )


def _first_bad(front: bytes) -> str | None:
    """The first error in the front of a document whose root cannot be read."""
    splitter = DocumentSplitter(Limits())
    found = ElementReader("", "document", Limits()).elements(splitter.feed(front), "")
    letters = (each for each in found if isinstance(each, DeadLetter))
    return None if splitter.first else next((each.reason for each in letters), None)


def _of_packed(left: _UnreadRest) -> Reason | None:
    """The reason for a gzip file of which all present bytes were unpacked."""
    if left.size > _MOST_UNPACKED:
        return None
    skip, rest = left.carry.position, b""
    for piece in gunzip(storage.pieces(left.where, 0, left.size, PACKED_CHUNK)):
        if isinstance(piece, Damage):
            message = f"the gzip file '{left.where}' is not finished: {piece.reason}"
            return message, "write its end, or move it in whole"
        rest += piece[skip:][: _REST_BYTES - len(rest)]
        skip = max(0, skip - len(piece))
    return _of_rest(left.where, left.carry, left.document, rest)


def _of_rest(where: str, carry: Carry, document: bool, rest: bytes) -> Reason | None:
    """The reason for the rest of a file whose complete items were all read."""
    if not rest.strip():
        return None
    if not document:
        return (
            f"the last line of '{where}' has no newline yet",
            "it is read when its newline is there, or a later file",
        )
    if carry.root is None:
        return f"the start tag of the root element of '{where}' is not finished", "write its end"
    return (
        f"'{where}' ends within an item, which begins at byte {carry.position:,}",
        "it is read when its end is there; where a later file is begun, it is set aside",
    )


def _front_of(where: str, position: int, size: int) -> bytes:
    """The first bytes of the rest."""
    return b"".join(storage.pieces(where, position, min(size, position + _REST_BYTES)))
