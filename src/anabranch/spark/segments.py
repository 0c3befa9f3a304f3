"""Answer segments: one file per task and epoch, holding what the task answered to all subscriptions.

A file per subscription and epoch would cost seconds with ten thousand subscriptions, so a task writes one file, in
which the answers to one subscription lie together in chunks; where the chunks are is told to the driver, which keeps
it in the epoch's manifest.
Dead letters are a chunk like others, one JSON line each, and so are late items.
A chunk's checksum is kept with its place, so that a bit that has flipped on the disk never becomes an answer.

A writer holds at most `HELD` bytes before it writes them out, so a task's memory does not grow with its range.
File names are new for every attempt of a task: nothing is ever overwritten, and what a failed attempt left is never
pointed at.
The files of an epoch have a folder of their own, so that they can be dropped together; when a writer is closed, they
are on the disk.
"""

from __future__ import annotations

import json
import os
import uuid
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from anabranch.errors import StateError
from anabranch.spark import durable
from anabranch.stream.elements import DeadLetter, Place

HELD = 4 << 20

DEAD_LETTERS = -1
LATE_ITEMS = -2
"""Stand in a chunk for the number of a subscription; late items are lines as a user gets to see them."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """`entries` answers to one subscription, at `offset` of a segment; the first is `first` bytes long."""

    subscription: int
    segment: str
    offset: int
    length: int
    entries: int
    first: int
    crc: int
    """The CRC-32 of them all."""


class SegmentWriter:
    """Collects the answers of one task and writes them; the file appears with the first of them."""

    def __init__(self, folder: Path, epoch: int, sequence: int) -> None:
        self._name = f"{epoch:08}/{sequence:06}-{uuid.uuid4().hex}"
        self._path = folder / self._name
        self._file: BinaryIO | None = None
        self._held: dict[int, list[tuple[bytes, int, int]]] = {}
        self._size = 0
        self._offset = 0
        self.chunks: list[Chunk] = []

    def add(self, subscription: int, text: str) -> None:
        data = text.encode()
        self.extend(subscription, data, 1, len(data))

    def extend(self, subscription: int, data: bytes, entries: int, first: int) -> None:
        """Add some answers, one behind the other; the first is `first` bytes long."""
        self._held.setdefault(subscription, []).append((data, entries, first))
        self._size += len(data)
        if self._size > HELD:
            self._write()

    def bury(self, letter: DeadLetter) -> None:
        """Set a dead letter down."""
        self.add(DEAD_LETTERS, letter_to_json(letter) + "\n")

    def note_late(self, line: str) -> None:
        """Note an item that came too late for a time window (LAWS 3.2), by its `late_line`."""
        self.add(LATE_ITEMS, line + "\n")

    def _write(self) -> None:
        with durable.writing(self._path):
            if self._file is None:
                self._path.parent.mkdir(exist_ok=True)
                self._file = self._path.open("xb")
            for subscription, held in self._held.items():
                data = b"".join(each for each, _, _ in held)
                entries = sum(count for _, count, _ in held)
                place = (self._name, self._offset, len(data))
                self.chunks.append(Chunk(subscription, *place, entries, held[0][2], zlib.crc32(data)))
                self._file.write(data)
                self._offset += len(data)
        self._held = {}
        self._size = 0

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held and error is None:
            self._write()
        if self._file is not None:
            with durable.writing(self._path), self._file:
                self._file.flush()
                os.fsync(self._file.fileno())


def read_chunk(folder: Path, chunk: Chunk, most: int | None = None) -> str:
    """The text of a chunk, or of its beginning, which is not checked: at most `most` bytes, whole characters."""
    length = chunk.length if most is None else min(chunk.length, most)
    path = folder / chunk.segment
    try:
        with path.open("rb") as file:
            file.seek(chunk.offset)
            data = file.read(length)
    except OSError as error:
        raise StateError(f"cannot read '{path}': {error.strerror}") from None
    if len(data) < length:
        raise StateError(f"'{path}' is damaged: it is too short")
    if length < chunk.length:
        return data.decode(errors="ignore")
    if zlib.crc32(data) != chunk.crc:
        hint = "restore the checkpoint from a copy, or begin with a new one"
        raise StateError(f"'{path}' is damaged: bytes {chunk.offset} to {chunk.offset + length} changed", hint=hint)
    return data.decode()


def late_line(place: Place) -> str:
    """The line that a user gets to see of a late item."""
    return json.dumps(asdict(place), ensure_ascii=False)


def stream_of(line: str) -> str:
    """The stream of the late item that a line is about."""
    return str(json.loads(line)["stream"])


def late_places(folder: Path, chunks: Iterable[Chunk]) -> list[str]:
    """The lines of the late items in some chunks; what several branches have noted counts once."""
    noted = (read_chunk(folder, chunk) for chunk in chunks if chunk.subscription == LATE_ITEMS)
    return list(dict.fromkeys(line for text in noted for line in text.split("\n") if line))


def read_dead_letters(folder: Path, chunk: Chunk) -> Iterator[DeadLetter]:
    """The dead letters in a chunk of them."""
    for line in read_chunk(folder, chunk).splitlines():
        yield letter_from_json(line)


def letter_to_json(letter: DeadLetter) -> str:
    """A dead letter without loss."""
    place = letter.place
    fields = [place.stream, place.partition, place.offset, letter.reason, letter.raw, letter.code, letter.subscription]
    return json.dumps(fields)


def letter_from_json(text: str) -> DeadLetter:
    """The letter that `letter_to_json` gave this text for."""
    stream, partition, offset, reason, raw, code, subscription = json.loads(text)
    return DeadLetter(Place(stream, partition, offset), reason, raw, code, subscription)
