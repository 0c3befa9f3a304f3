"""Byte ranges: how far an epoch reaches into the files, and what each of its tasks reads.

Everything here is a function of the offsets and of files that do not change under it, so an epoch that is run again
is cut in the same way; nothing here knows Spark.

An offset says for every partition the file it is in and the position there; a partition that is missing stands at
its beginning, which is how a trunk can gain streams.
Where a file may be cut depends on what is in it: lines after a newline, for which the driver looks at the few bytes
behind the cut; a document anywhere, because the reader of the next range is handed the unfinished item (the carry),
but then its ranges must be read one after the other, one in each epoch; a gzip file nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

MEBIBYTE = 1 << 20
LARGEST_RANGE = 16 * MEBIBYTE
"""The largest piece of a line file that one task reads."""
SMALLEST_RANGE = MEBIBYTE
"""Below this, another task costs more than it saves."""

Offset: TypeAlias = dict[str, dict[str, str | int]]
"""`{"stream/partition": {"file": name, "position": bytes}}`, in the JSON form in which Spark logs it."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a partition; `size` is what it holds on disk, which is as far as this run reads it."""

    name: str
    path: str
    size: int
    cuts: Literal["after lines", "anywhere", "nowhere"]


@dataclass(frozen=True, slots=True)
class Partition:
    """One sequence of a stream (LAWS 1.1): its files in order, none of them empty."""

    stream: str
    name: str
    files: tuple[File, ...]

    @property
    def key(self) -> str:
        return f"{self.stream}/{self.name}"


@dataclass(frozen=True, slots=True)
class Range:
    """What a task reads: bytes `start` to `end` of a file; `last` where the file ends with it.

    Ranges of one epoch are numbered in the order of their streams, `sequence`.
    A gzip file, `packed`, is one range that counts bytes on disk; positions inside it count uncompressed bytes.
    """

    stream: str
    file: str
    path: str
    start: int
    end: int
    last: bool
    packed: bool
    sequence: int


LineEnd: TypeAlias = Callable[[File, int], int]
"""The position just after the first newline at or after a position, the file's end where there is none."""


def reach(partitions: Sequence[Partition], start: Offset, budget: int | None, line_end: LineEnd) -> Offset:
    """How far the epoch that begins at `start` goes, with about `budget` bytes (None: all there is).

    The partitions that have bytes left share the budget equally, and each of them moves on.
    """
    waiting = [partition for partition in partitions if _at(partition, start) < _end(partition)]
    share = None if budget is None else max(1, budget // max(1, len(waiting)))
    moved: Offset = {}
    for partition in waiting:
        index, position = _advance(partition, _at(partition, start), share, line_end)
        moved[partition.key] = {"file": partition.files[index].name, "position": position}
    return start | moved


def ranges(partitions: Sequence[Partition], start: Offset, end: Offset, cores: int, line_end: LineEnd) -> list[Range]:
    """The pieces between two offsets, in stream order; a file of lines gives every core something to do."""
    spans = [span for partition in partitions for span in _spans(partition, start, end)]
    found: list[Range] = []
    for stream, file, first, after in spans:
        target = min(LARGEST_RANGE, max(SMALLEST_RANGE, -(-(after - first) // cores)))
        while first < after:
            stop = min(after, line_end(file, first + target)) if file.cuts == "after lines" else after
            last, packed = stop == file.size, file.cuts == "nowhere"
            found.append(Range(stream, file.name, file.path, first, stop, last, packed, len(found)))
            first = stop
    return found


def tasks(found: Sequence[Range]) -> Iterator[tuple[Range, ...]]:
    """The ranges by task: neighbours that are small share one, so that a thousand small files are not a thousand."""
    held: list[Range] = []
    size = 0
    for each in found:
        length = each.end - each.start
        if held and size + length > SMALLEST_RANGE:
            yield tuple(held)
            held, size = [], 0
        held.append(each)
        size += length
    if held:
        yield tuple(held)


_Position: TypeAlias = tuple[int, int]
"""The number of a file in its partition and a position in it; pairs compare as the stream goes."""


def _at(partition: Partition, offset: Offset) -> _Position:
    """Where an offset stands in a partition: always before a byte, or at the partition's end."""
    entry = offset.get(partition.key)
    if entry is None:
        return (0, 0)
    index = next(index for index, file in enumerate(partition.files) if file.name == entry["file"])
    position = int(entry["position"])
    at_its_end = position >= partition.files[index].size
    return (index + 1, 0) if at_its_end and index + 1 < len(partition.files) else (index, position)


def _end(partition: Partition) -> _Position:
    return (len(partition.files) - 1, partition.files[-1].size) if partition.files else (0, 0)


def _advance(partition: Partition, at: _Position, budget: int | None, line_end: LineEnd) -> _Position:
    index, position = at
    left = budget
    for number in range(index, len(partition.files)):
        file = partition.files[number]
        if left is not None and file.cuts != "nowhere" and position + left < file.size:
            stop = line_end(file, position + left) if file.cuts == "after lines" else position + left
            return (number, stop)
        if left is not None:
            left -= file.size - position
            if left <= 0:
                return (number, file.size)
        position = 0
    return _end(partition)


def _spans(partition: Partition, start: Offset, end: Offset) -> Iterator[tuple[str, File, int, int]]:
    """The pieces of files between two offsets."""
    first, position = _at(partition, start)
    final, stop = _at(partition, end)
    for index, file in enumerate(partition.files[first : final + 1], first):
        after = stop if index == final else file.size
        if position < after:
            yield partition.stream, file, position, after
        position = 0
