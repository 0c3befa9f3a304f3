"""Answer segments: one file per task and epoch, holding what the task answered to all subscriptions.

A file per subscription and epoch would cost seconds with ten thousand subscriptions, so a task writes one file, in
which the answers to one subscription lie together in *chunks*.
Where the chunks are says the index at the end of the file, one row each; a manifest names the file and its index.
Several subscriptions may have one chunk: what is the same for them is there once.
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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.items.answering import ROW, Rows
from anabranch.columnar.items.kernels import check_of, checks
from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.stream.elements import DeadLetter, Place
from anabranch.visible import visible_json

HELD, LARGE = 16 << 20, 1 << 20
"""How many bytes are held, and how many are written at once rather than copied."""

DEAD_LETTERS = -1
LATE_ITEMS = -2
COURSES = -3
"""Stand in a chunk for the number of a subscription; late items are lines as a user gets to see them,
and `spark/evolution/progress.py` says what courses are."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of a task, and where its index is."""

    name: str
    index: int
    """Where the index begins, and what is answered ends."""
    chunks: int
    letters: int
    late: int
    """How many dead letters there are, and notes of late items."""
    crc: int
    """The CRC-32 of the index."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """`entries` answers to one subscription, at `offset` of a segment; the first is `first` bytes long."""

    subscription: int
    segment: str
    offset: int
    length: int
    entries: int
    first: int
    check: int
    """The checksum of them all."""


class SegmentWriter:
    """Collects the answers of one task and writes them; the file appears with the first of them."""

    def __init__(self, folder: Path, epoch: int, sequence: int) -> None:
        self._name = f"{epoch:08}/{sequence:06}-{uuid.uuid4().hex}"
        self._path = folder / self._name
        self._file: BinaryIO | None = None
        self._single: dict[tuple[int, ...], list[tuple[bytes, int, int]]] = {}
        """What came for one subscription at a time, since the last of the others."""
        self._parts: list[tuple[bytes | memoryview, Rows]] = []
        self._rows: list[Rows] = []
        self._size = 0
        self._offset = 0
        self.segments: tuple[Segment, ...] = ()
        """What was written, once the writer is closed."""

    def add(self, subscription: int | tuple[int, ...], text: str) -> None:
        data = text.encode()
        self.extend(subscription, data, 1, len(data))

    def extend(self, subscription: int | tuple[int, ...], data: bytes, entries: int, first: int) -> None:
        """Add some answers, one behind the other, to one subscription or several; the first is `first` bytes long."""
        numbers = (subscription,) if isinstance(subscription, int) else subscription
        self._single.setdefault(numbers, []).append((data, entries, first))
        self._grow(len(data))

    def lay(self, data: bytes | memoryview, rows: Rows) -> None:
        """Add the answers to many subscriptions; `rows` says what is whose, with offsets in `data` and no checksums.

        The data may be another's afterwards.
        """
        self._gather()
        is_large = len(data) >= LARGE
        self._parts.append((data if is_large else bytes(data), rows))
        self._grow(len(data))
        if is_large and self._parts:
            self._write()

    def bury(self, letter: DeadLetter) -> None:
        """Set a dead letter down."""
        self.add(DEAD_LETTERS, letter_to_json(letter) + "\n")

    def note_late(self, line: str) -> None:
        """Note an item that came too late for a time window (LAWS 3.2), by its `late_line`."""
        self.add(LATE_ITEMS, line + "\n")

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > HELD:
            self._write()

    def _gather(self) -> None:
        """Make a part of what came for one subscription at a time; the order of each answer stays as it is."""
        if not self._single:
            return
        rows: list[tuple[int, int, int, int, int, int]] = []
        data: list[bytes] = []
        begin = 0
        for numbers, given in self._single.items():
            for held in _together(given) if numbers and numbers[0] >= 0 else (given,):
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
                self._path.parent.mkdir(exist_ok=True)
                self._file = self._path.open("xb")
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
        if (self._single or self._parts) and error is None:
            self._write()
        if self._file is not None:
            rows = np.concatenate(self._rows) if self._rows else np.empty(0, ROW)
            index = rows.tobytes()
            with durable.writing(self._path), self._file:
                self._file.write(index)
                self._file.flush()
                os.fsync(self._file.fileno())
            letters, late = (
                int(rows["entries"][rows["subscription"] == each].sum()) for each in (DEAD_LETTERS, LATE_ITEMS)
            )
            self.segments = (Segment(self._name, self._offset, len(rows), letters, late, zlib.crc32(index)),)


def _together(held: list[tuple[bytes, int, int]]) -> Iterator[list[tuple[bytes, int, int]]]:
    """Answers that make a chunk together.

    Text that has a blank in it has a chunk of its own: among others it could not be told from several values.
    Markup and whole lines, as displays and timelines are, need none.
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
    """How many answers subscriptions got, for those that got some; their numbers are rising."""

    numbers: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def most(self, count: int) -> dict[int, int]:
        """So many of those with the most, these first."""
        first = np.argsort(-self.counts, kind="stable")[:count]
        return dict(zip(self.numbers[first].tolist(), self.counts[first].tolist(), strict=True))

    def by_subscription(self) -> dict[int, int]:
        """All of them."""
        return dict(zip(self.numbers.tolist(), self.counts.tolist(), strict=True))


class SegmentIndex:
    """What is in some segments, by subscription."""

    def __init__(self, names: Sequence[str], rows: Sequence[Rows]) -> None:
        self._names = names
        self._rows = np.concatenate([np.empty(0, ROW), *rows])
        self._files = np.repeat(np.arange(len(rows)), [len(each) for each in rows])

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """That of the subscriptions; the rows of each stay in order."""
        return np.argsort(self._rows["subscription"], kind="stable")

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        return self._rows["subscription"][self._order]

    def of(self, subscription: int) -> list[Chunk]:
        """The chunks of one subscription, of the dead letters, or of the late items, in order."""
        first, last = (int(np.searchsorted(self._numbers, each)) for each in (subscription, subscription + 1))
        mine = self._order[first:last]
        found = zip(self._rows[mine].tolist(), self._files[mine].tolist(), strict=True)
        return [Chunk(row[0], self._names[file], *row[1:]) for row, file in found]

    def entries(self) -> AnswerCounts:
        """How many answers each subscription got."""
        rows = self._rows[self._rows["subscription"] >= 0]
        least = rows["subscription"].min(initial=np.iinfo(np.int64).max)
        sums = np.bincount(rows["subscription"] - least, weights=rows["entries"]).astype(np.int64)
        found = np.flatnonzero(sums)
        return AnswerCounts(found + least, sums[found])


@lru_cache(maxsize=4)
def read_index(folder: Path, segments: tuple[Segment, ...]) -> SegmentIndex:
    """The index of some segments together."""
    return SegmentIndex([each.name for each in segments], [_rows(folder, each) for each in segments])


def _rows(folder: Path, segment: Segment) -> Rows:
    data = _read(folder / segment.name, segment.index, segment.chunks * ROW.itemsize)
    if zlib.crc32(data) != segment.crc:
        raise StateError(f"'{folder / segment.name}' is damaged: its index has changed", hint=_RESTORE)
    return np.frombuffer(data, ROW)


_RESTORE = "restore the checkpoint from a copy, or begin with a new one"


def _read(path: Path, offset: int, length: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(length)
    except OSError as error:
        raise StateError(f"cannot read '{path}': {error.strerror}") from None
    if len(data) < length:
        raise StateError(f"'{path}' is damaged: it is too short")
    return data


def read_chunk(folder: Path, chunk: Chunk, most: int | None = None) -> str:
    """The text of a chunk, or of its beginning, which is not checked: at most `most` bytes, whole characters."""
    length = chunk.length if most is None else min(chunk.length, most)
    path = folder / chunk.segment
    data = _read(path, chunk.offset, length)
    if length < chunk.length:
        return data.decode(errors="ignore")
    if int(check_of(np.frombuffer(data, np.uint8))) != chunk.check:
        raise StateError(f"'{path}' is damaged: bytes {chunk.offset} to {chunk.offset + length} changed", hint=_RESTORE)
    return data.decode()


def late_line(place: Place) -> str:
    """The line that a user gets to see of a late item."""
    return visible_json(asdict(place))


def stream_of(line: str) -> str:
    """The stream of the late item that a line is about."""
    return str(json.loads(line)["stream"])


def late_places(folder: Path, segments: tuple[Segment, ...]) -> list[str]:
    """The lines of the late items in some segments; what several branches have noted counts once."""
    if not any(each.late for each in segments):
        return []
    noted = (read_chunk(folder, chunk) for chunk in read_index(folder, segments).of(LATE_ITEMS))
    return list(dict.fromkeys(line for text in noted for line in text.split("\n") if line))


def read_dead_letters(folder: Path, chunk: Chunk) -> Iterator[DeadLetter]:
    """The dead letters in a chunk of them."""
    for line in read_chunk(folder, chunk).splitlines():
        yield letter_from_json(line)


def letter_to_json(letter: DeadLetter) -> str:
    """A dead letter without loss."""
    fields = [*astuple(letter.place), letter.reason, letter.raw, letter.code, letter.subscription]
    others = [[*astuple(place), raw] for place, raw in letter.others]
    return json.dumps([*fields, others, letter.values] if others else fields)


def letter_from_json(text: str) -> DeadLetter:
    """The letter that `letter_to_json` gave this text for."""
    stream, partition, offset, reason, raw, code, subscription, *more = json.loads(text)
    others, values = more or ([], None)
    named = tuple((Place(*place), shown) for *place, shown in others)
    return DeadLetter(Place(stream, partition, offset), reason, raw, code, subscription, others=named, values=values)
