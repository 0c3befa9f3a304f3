"""Answer segments: one file per task and epoch, with the task's answers to all subscriptions.

A file per subscription and epoch would cost seconds with ten thousand subscriptions, so a task writes one file, in
which the answers to one subscription lie together in *chunks*.
The index at the end of the file locates the chunks, one row each; a manifest names the file and its index.
Several subscriptions may share a chunk of equal answers.
Dead letters are a chunk, too, one JSON line each, and so are late items.
A chunk's checksum is in the index, so that a flipped bit on the disk never becomes an answer.

A writer buffers at most `BUFFER_BYTES` bytes, so a task's memory does not grow with its range.
File names are new for every attempt of a task: nothing is ever overwritten, and nothing refers to the file of a failed
attempt.
The files of an epoch have a folder of their own, so that they can be dropped together; once a writer is closed, they
are on the disk.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property, lru_cache
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.items.answering import ROW, Rows
from anabranch.columnar.items.kernels import check_of, checks
from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.parts import unique_name
from anabranch.storage import Location, Writer
from anabranch.stream.elements import DeadLetter, Place
from anabranch.visible import visible_json

BUFFER_BYTES, DIRECT_BYTES = 16 << 20, 1 << 20
"""The limit of the buffer, and the size from which data is written directly and not copied."""

DEAD_LETTERS = -1
LATE_ITEMS = -2
RANGE_PROGRESS = -3
"""Numbers in the place of a subscription's: chunks of dead letters, of late items, as lines that users see, and of the
progress of ranges (`spark/evolution/progress.py`)."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The file of a task, and the place of its index."""

    name: str
    index: int
    """The offset at which the index begins and the answers end."""
    chunks: int
    letters: int
    late: int
    """The numbers of dead letters, and of lines for late items."""
    crc: int
    """The CRC-32 of the index."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """`entries` answers to one subscription, at `offset` in a segment; the first has `first` bytes."""

    subscription: int
    segment: str
    offset: int
    length: int
    entries: int
    first: int
    check: int
    """The checksum of its bytes."""


class SegmentWriter:
    """Collects the answers of one task; the file is created with the first of them."""

    def __init__(self, folder: Location, epoch: int, sequence: int, run: int = 1) -> None:
        self._name = f"{epoch:08}/{unique_name(run, f'{sequence:06}-')}"
        self._path = folder / self._name
        self._file: Writer | None = None
        self._single: dict[tuple[int, ...], list[tuple[bytes, int, int]]] = {}
        """Answers that were added singly since the last bulk `lay`."""
        self._parts: list[tuple[bytes | memoryview, Rows]] = []
        self._rows: list[Rows] = []
        self._size = 0
        self._offset = 0
        self.segments: tuple[Segment, ...] = ()
        """The segment, once the writer is closed."""

    def add(self, subscription: int | tuple[int, ...], text: str) -> None:
        data = text.encode()
        self.extend(subscription, data, 1, len(data))

    def extend(self, subscription: int | tuple[int, ...], data: bytes, entries: int, first: int) -> None:
        """Add concatenated answers to one subscription or several; the first has `first` bytes."""
        numbers = (subscription,) if isinstance(subscription, int) else subscription
        self._single.setdefault(numbers, []).append((data, entries, first))
        self._grow(len(data))

    def lay(self, data: bytes | memoryview, rows: Rows) -> None:
        """Add the answers to many subscriptions; `rows` locates them by offsets in `data`, without checksums.

        The caller may reuse `data` afterwards.
        """
        self._gather()
        is_large = len(data) >= DIRECT_BYTES
        self._parts.append((data if is_large else bytes(data), rows))
        self._grow(len(data))
        if is_large and self._parts:
            self._write()

    def bury(self, letter: DeadLetter) -> None:
        """Write a dead letter."""
        self.add(DEAD_LETTERS, letter_to_json(letter) + "\n")

    def note_late(self, line: str) -> None:
        """Log an item that came too late for a time window (LAWS 3.2), by its `late_line`."""
        self.add(LATE_ITEMS, line + "\n")

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > BUFFER_BYTES:
            self._write()

    def _gather(self) -> None:
        """Make a part of the answers that were added singly; the order within each subscription stays."""
        if not self._single:
            return
        rows: list[tuple[int, int, int, int, int, int]] = []
        data: list[bytes] = []
        begin = 0
        for numbers, given in self._single.items():
            for held in _grouped(given) if numbers and numbers[0] >= 0 else (given,):
                data += (each for each, _, _ in held)
                size = sum(len(each) for each, _, _ in held)
                entries = sum(count for _, count, _ in held)
                rows += ((number, begin, size, entries, held[0][2], 0) for number in numbers)
                begin += size
        self._parts.append((b"".join(data), np.array(rows, ROW)))
        self._single = {}

    def _write(self) -> None:
        self._gather()
        with durable.writing(self._path):
            if self._file is None:
                self._file = self._path.writer()
            for data, rows in self._parts:
                found = np.empty(len(rows), np.uint32)
                checks(np.frombuffer(data, np.uint8), rows["offset"].copy(), rows["length"].copy(), found)
                rows["check"] = found
                rows["offset"] += self._offset
                self._rows.append(rows)
                self._file.write(data)
                self._offset += len(data)
        self._parts = []
        self._size = 0

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            if self._file is not None:
                self._file.__exit__(kind, error, trace)
            return
        if self._single or self._parts:
            self._write()
        if self._file is not None:
            rows = np.concatenate(self._rows) if self._rows else np.empty(0, ROW)
            index = rows.tobytes()
            with durable.writing(self._path), self._file:
                self._file.write(index)
            letters, late = (
                int(rows["entries"][rows["subscription"] == each].sum()) for each in (DEAD_LETTERS, LATE_ITEMS)
            )
            self.segments = (Segment(self._name, self._offset, len(rows), letters, late, zlib.crc32(index)),)


def _grouped(held: list[tuple[bytes, int, int]]) -> Iterator[list[tuple[bytes, int, int]]]:
    """Group answers into chunks.

    A text with a blank in it has a chunk of its own: among others it could not be told from several values.
    Markup and complete lines, as of displays and timelines, need none.
    """
    group: list[tuple[bytes, int, int]] = []
    for each in held:
        data, entries, _ = each
        is_text = not (data.startswith(b"<") and data.endswith(b">")) and not data.endswith(b"\n")
        if entries == 1 and is_text and b" " in data.lstrip(b" "):
            if group:
                yield group
            yield [each]
            group = []
        else:
            group.append(each)
    if group:
        yield group


# --- reading ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """The number of answers by subscription, for those with any; `numbers` is ascending."""

    numbers: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def most(self, count: int) -> dict[int, int]:
        """The `count` subscriptions with the most answers, in descending order."""
        first = np.argsort(-self.counts, kind="stable")[:count]
        return dict(zip(self.numbers[first].tolist(), self.counts[first].tolist(), strict=True))

    def by_subscription(self) -> dict[int, int]:
        """The number of answers by subscription."""
        return dict(zip(self.numbers.tolist(), self.counts.tolist(), strict=True))


class SegmentIndex:
    """The chunks of some segments, by subscription."""

    def __init__(self, names: Sequence[str], rows: Sequence[Rows]) -> None:
        self._names = names
        self._rows = np.concatenate([np.empty(0, ROW), *rows])
        self._files = np.repeat(np.arange(len(rows)), [len(each) for each in rows])

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """The rows sorted by subscription; the rows of one subscription stay in order."""
        return np.argsort(self._rows["subscription"], kind="stable")

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        return self._rows["subscription"][self._order]

    def of(self, subscription: int) -> list[Chunk]:
        """The chunks of a subscription, of dead letters, or of late items, in order."""
        first, last = (int(np.searchsorted(self._numbers, each)) for each in (subscription, subscription + 1))
        mine = self._order[first:last]
        found = zip(self._rows[mine].tolist(), self._files[mine].tolist(), strict=True)
        return [Chunk(row[0], self._names[file], *row[1:]) for row, file in found]

    def entries(self) -> AnswerCounts:
        """The number of answers to each subscription."""
        rows = self._rows[self._rows["subscription"] >= 0]
        least = rows["subscription"].min(initial=np.iinfo(np.int64).max)
        sums = np.bincount(rows["subscription"] - least, weights=rows["entries"]).astype(np.int64)
        found = np.flatnonzero(sums)
        return AnswerCounts(found + least, sums[found])


@lru_cache(maxsize=4)
def read_index(folder: Location, segments: tuple[Segment, ...]) -> SegmentIndex:
    """The merged index of some segments."""
    return SegmentIndex([each.name for each in segments], [_rows(folder, each) for each in segments])


def _rows(folder: Location, segment: Segment) -> Rows:
    data = _read(folder / segment.name, segment.index, segment.chunks * ROW.itemsize)
    if zlib.crc32(data) != segment.crc:
        raise StateError(f"'{folder / segment.name}' is damaged: its index has changed", hint=_RESTORE)
    return np.frombuffer(data, ROW)


_RESTORE = "restore the checkpoint from a copy, or begin with a new one"


def _read(path: Location, offset: int, length: int) -> bytes:
    data = durable.read_fixed(path, offset, length)
    if len(data) < length:
        raise StateError(f"'{path}' is damaged: it is too short")
    return data


def read_chunk(folder: Location, chunk: Chunk, most: int | None = None) -> str:
    """The text of a chunk, or of its first `most` bytes, without checking the checksum and cut between characters."""
    length = chunk.length if most is None else min(chunk.length, most)
    path = folder / chunk.segment
    data = _read(path, chunk.offset, length)
    if length < chunk.length:
        return data.decode(errors="ignore")
    if int(check_of(np.frombuffer(data, np.uint8))) != chunk.check:
        raise StateError(f"'{path}' is damaged: bytes {chunk.offset} to {chunk.offset + length} changed", hint=_RESTORE)
    return data.decode()


def late_line(place: Place) -> str:
    """The line for a late item, as shown to users."""
    return visible_json(place.shown())


def stream_of(line: str) -> str:
    """The stream of a late item, from its line."""
    return str(json.loads(line)["stream"])


def late_places(folder: Location, segments: tuple[Segment, ...]) -> list[str]:
    """The lines of the late items in some segments; an item that several branches logged counts once."""
    if not any(each.late for each in segments):
        return []
    noted = (read_chunk(folder, chunk) for chunk in read_index(folder, segments).of(LATE_ITEMS))
    return list(dict.fromkeys(line for text in noted for line in text.split("\n") if line))


def read_dead_letters(folder: Location, chunk: Chunk) -> Iterator[DeadLetter]:
    """The dead letters in a chunk of them."""
    for line in read_chunk(folder, chunk).splitlines():
        yield letter_from_json(line)


def letter_to_json(letter: DeadLetter) -> str:
    """A dead letter as JSON, without loss."""
    fields = [*astuple(letter.place), letter.reason, letter.raw, letter.code, letter.subscription]
    others = [[*astuple(place), raw] for place, raw in letter.others]
    return json.dumps([*fields, others, letter.values] if others else fields)


def letter_from_json(text: str) -> DeadLetter:
    """The letter from the JSON of `letter_to_json`."""
    stream, partition, offset, reason, raw, code, subscription, *more = json.loads(text)
    others, values = more or ([], None)
    named = tuple((Place(*place), shown) for *place, shown in others)
    return DeadLetter(Place(stream, partition, offset), reason, raw, code, subscription, others=named, values=values)
