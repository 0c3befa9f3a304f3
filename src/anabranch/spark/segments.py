"""Answer segments: one file per task and epoch, holding what the task answered to all subscriptions.

A file per subscription and epoch would cost seconds with ten thousand subscriptions, so a task writes one file, in
which the answers to one subscription lie together in chunks; where the chunks are is told to the driver, which keeps
it in the epoch's manifest.
Dead letters are a chunk like others, one JSON line each.

A writer holds at most `HELD` characters before it writes them out, so a task's memory does not grow with its range.
File names are new for every attempt of a task: nothing is ever overwritten, and what a failed attempt left is never
pointed at.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from anabranch.stream.elements import DeadLetter, Place

HELD = 4 << 20

DEAD_LETTERS = -1
"""Stands in a chunk for the number of a subscription."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """`entries` answers to one subscription, at `offset` of a segment; the first is `first` bytes long."""

    subscription: int
    segment: str
    offset: int
    length: int
    entries: int
    first: int


class SegmentWriter:
    """Collects the answers of one task and writes them; the file appears with the first of them."""

    def __init__(self, folder: Path, epoch: int, sequence: int) -> None:
        self._path = folder / f"{epoch:08}-{sequence:06}-{uuid.uuid4().hex}"
        self._file: BinaryIO | None = None
        self._held: dict[int, list[str]] = {}
        self._size = 0
        self._offset = 0
        self.chunks: list[Chunk] = []

    def add(self, subscription: int, text: str) -> None:
        self._held.setdefault(subscription, []).append(text)
        self._size += len(text)
        if self._size > HELD:
            self._write()

    def bury(self, letter: DeadLetter) -> None:
        """Set a dead letter down."""
        self.add(DEAD_LETTERS, _letter_to_json(letter) + "\n")

    def _write(self) -> None:
        if self._file is None:
            self._file = self._path.open("xb")
        for subscription, texts in self._held.items():
            data = "".join(texts).encode()
            first = len(texts[0].encode())
            self.chunks.append(Chunk(subscription, self._path.name, self._offset, len(data), len(texts), first))
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
            self._file.close()


def read_chunk(folder: Path, chunk: Chunk, most: int | None = None) -> str:
    """The text of a chunk, or of its beginning: at most `most` bytes, cut where a character ends."""
    length = chunk.length if most is None else min(chunk.length, most)
    with (folder / chunk.segment).open("rb") as file:
        file.seek(chunk.offset)
        data = file.read(length)
    return data.decode(errors="strict" if length == chunk.length else "ignore")


def read_dead_letters(folder: Path, chunk: Chunk) -> Iterator[DeadLetter]:
    """The dead letters in a chunk of them."""
    for line in read_chunk(folder, chunk).splitlines():
        yield _letter_from_json(line)


def _letter_to_json(letter: DeadLetter) -> str:
    place = letter.place
    fields = [place.stream, place.partition, place.offset, letter.reason, letter.raw, letter.code, letter.subscription]
    return json.dumps(fields)


def _letter_from_json(text: str) -> DeadLetter:
    stream, partition, offset, reason, raw, code, subscription = json.loads(text)
    return DeadLetter(Place(stream, partition, offset), reason, raw, code, subscription)
