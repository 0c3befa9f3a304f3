"""Byte ranges: where an epoch ends in the files, and what each of its tasks reads.

All of this is arithmetic over the stretches of a partition (`order.py`), without Spark and without folders.
The ranges between two offsets are a function of the offsets and the append-only order log, so an epoch that is run
again has the same ranges.

An offset gives for every partition the number of a stretch and a position there; a missing partition stands at its
beginning, so a trunk can gain streams.
Where a file may be cut depends on its format: lines after a newline, which takes a look at the few bytes behind the
cut; a document anywhere, because the next range gets the unfinished item (the carry), but then its ranges must be read
one after the other, one in each epoch; a gzip file only at its present end on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from anabranch.spark.intake.order import FileStretch, StretchEnd

MEBIBYTE = 1 << 20
LARGEST_RANGE = 64 * MEBIBYTE
"""The largest piece of a line file that one task reads: to begin a task costs as much as to read some MiB."""
SMALLEST_RANGE = MEBIBYTE
"""Below this, another task costs more than it saves."""
MICROSECONDS = 1_000_000
"""Per second; moments and the times of heartbeats are whole microseconds."""

Offset: TypeAlias = dict[str, dict[str, int]]
"""`{"stream/partition": {"file": number, "position": bytes}}`, in the JSON form in which Spark logs it."""
CLOCK = ":clock"
"""Where an offset keeps its sight: `position` is the moment in microseconds, `file` is 1 if it was read to its end."""
Cuts: TypeAlias = Literal["after lines", "anywhere", "nowhere"]
Mark: TypeAlias = Literal["ended", "passed"]


class Position(NamedTuple):
    """The number of a stretch in its partition and a position in its file; they compare as the stream goes.

    The beginning of a stretch is position 0, also where the stretch begins later in its file.
    """

    file: int
    position: int

    @staticmethod
    def of(offset: Offset, key: str) -> Position:
        return Position(**offset.get(key, {"file": 0, "position": 0}))


@dataclass(frozen=True, slots=True)
class Waiting:
    """A file not begun yet, or new bytes of a file that had ended; it becomes a stretch when it is begun."""

    file: str
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Range:
    """What a task reads: bytes `start` to `end` of a file; `last` where nothing of the file follows.

    Ranges of one epoch are numbered in the order of their streams, `sequence`.
    A gzip file is `packed`: `start` and `end` count bytes on disk, positions inside it uncompressed bytes.
    Of a topic they are offsets of a partition, `file` is its name, and `path` the topic's id.
    Of a spool `path` is the first file.
    """

    stream: str
    partition: str
    number: int
    """The number of the stretch in its partition."""
    file: str
    path: str
    start: int
    end: int
    last: bool
    packed: bool
    sequence: int
    arrived: int | None = None
    """When its bytes were first seen, in microseconds; None in finite inputs, which have no clock."""
    beat: int | None = None
    """For a range that is a heartbeat instead of bytes: its time in microseconds."""
    weight: int = 1
    """The bytes that a position is taken for, where work is divided."""

    @property
    def key(self) -> str:
        return f"{self.stream}/{self.partition}"

    @property
    def size(self) -> int:
        """Its bytes, where work is divided."""
        return (self.end - self.start) * self.weight

    @property
    def mark(self) -> Mark | None:
        """What a range without bytes says about time."""
        return None if self.path or self.beat is not None else "ended" if self.stream else "passed"

    @staticmethod
    def ended(stream: str, partition: str, sequence: int) -> Range:
        """The mark that a partition has ended."""
        return Range(stream, partition, 0, "", "", 0, 0, True, False, sequence)

    @staticmethod
    def heartbeat(stream: str, partition: str, beat: int, sequence: int, arrived: int | None) -> Range:
        """A heartbeat of the run in a partition."""
        return Range(stream, partition, 0, "heartbeat", "", 0, 0, True, False, sequence, arrived, beat)

    @staticmethod
    def passed(arrived: int, sequence: int) -> Range:
        """The mark that everything that was there at a moment has been read."""
        return Range("", "", 0, "", "", 0, 0, False, False, sequence, arrived)


class Lines(Protocol):
    """Where the lines of a partition's files end; it looks into the files."""

    def line_end(self, file: str, position: int, limit: int) -> int:
        """The position just after the first newline at or after `position - 1`, `limit` where there is none."""

    def last_line_end(self, file: str, position: int, limit: int) -> int:
        """The position just after the last newline before `limit`, `position` where there is none behind it."""


# --- the end of an epoch ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Partition:
    """One sequence of a stream, as its files are now (LAWS 1.1)."""

    stretches: Sequence[FileStretch]
    size: int
    """The present size of the last stretch's file."""
    waiting: Sequence[Waiting]
    """In the order in which they are to be begun."""
    document: bool
    finite: bool
    """Nothing more will come: the last line needs no newline, and the last document ends with the file."""
    lines: Lines

    def cuts(self, stretch: FileStretch) -> Cuts:
        if stretch.packed:
            return "nowhere"
        return "anywhere" if self.document else "after lines"

    def behind(self, at: Position) -> bool:
        """Whether there is something to read behind a position."""
        held = self.stretches
        if self.waiting or at.file < len(held) - 1:
            return True
        if at.file >= len(held):
            return False
        end = held[-1].end
        return self.finite or end is not None or self.size > max(at.position, held[-1].start)


@dataclass(frozen=True, slots=True)
class Move:
    """Where an epoch ends in a partition, and the records that the order log must hold before that offset is used."""

    to: Position
    records: tuple[FileStretch | StretchEnd, ...]
    size: int
    """The bytes to read."""
    done: bool
    """Whether everything that is there now will have been read."""


def advance(
    partition: Partition,
    at: Position,
    budget: int,
    files: int,
    begin: Callable[[Waiting], FileStretch],
) -> Move:
    """Go on from `at` by about `budget` bytes in at most `files` files, and by one line or file at least."""
    held, waiting = list(partition.stretches), list(partition.waiting)
    size, left, done = partition.size, budget, False
    number, position = at
    records: list[FileStretch | StretchEnd] = []
    while True:
        if number == len(held):
            if not waiting:
                done = True
                break
            following = waiting.pop(0)
            held.append(begin(following))
            records.append(held[-1])
            size = following.size
        stretch = held[number]
        position = max(position, stretch.start)
        limit = size if stretch.end is None else stretch.end
        # A file ends when another is there to be begun; otherwise a pause cannot be told from an end.
        ends = partition.finite or bool(waiting) or stretch.end is not None
        enough = position + max(1, left) < limit and partition.cuts(stretch) != "nowhere"
        stop = _cut(partition, stretch, position, limit, left, ends)
        left -= stop - position
        position = stop
        if stop < limit or not ends:
            done = not enough or stop == limit
            break
        if stretch.end is None:
            records.append(StretchEnd(stretch.partition, limit))
        number, position, files = number + 1, 0, files - 1
        if left <= 0 or files <= 0:
            done = number == len(held) and not waiting
            break
    return Move(Position(number, position), tuple(records), budget - left, done)


def _cut(partition: Partition, stretch: FileStretch, position: int, limit: int, left: int, ends: bool) -> int:
    cuts, target = partition.cuts(stretch), position + max(1, left)
    if cuts == "nowhere":
        return limit
    if cuts == "anywhere":
        return min(limit, target)
    stop = partition.lines.line_end(stretch.file, target, limit) if target < limit else limit
    if stop < limit or ends:
        return stop
    return partition.lines.last_line_end(stretch.file, position, limit)


# --- the ranges between two offsets -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StretchSpan:
    """The part of one stretch that lies between two offsets; `last` where nothing of the stretch follows."""

    number: int
    stretch: FileStretch
    start: int
    end: int
    last: bool


def spans(stretches: Sequence[FileStretch], start: Position, end: Position, document: bool) -> Iterator[StretchSpan]:
    """The pieces of files between two positions.

    A document or gzip file that had been read completely before its end was known gives an empty last span, in which
    its unfinished item is set aside.
    """
    for number in range(start.file, min(end.file + 1, len(stretches))):
        stretch = stretches[number]
        last = number < end.file
        first = max(start.position if number == start.file else 0, stretch.start)
        stop = stretch.end if last else end.position
        assert stop is not None, "a stretch that was left behind has an end"
        if first < stop or (last and first == stop and (document or stretch.packed)):
            yield StretchSpan(number, stretch, first, stop, last)


def share_of(size: int, cores: int) -> int:
    """How many of so many bytes one range should have: all cores read, and none of them too little."""
    rounds = max(1, -(-size // (cores * LARGEST_RANGE)))
    return max(SMALLEST_RANGE, -(-size // (cores * rounds)))


def cut_up(span: StretchSpan, document: bool, cores: int, lines: Lines) -> Iterator[tuple[int, int, bool]]:
    """A span as pieces (start, end, last); a file of lines is split among the cores."""
    first, size = span.start, span.end - span.start
    if document or span.stretch.packed or not size:
        yield first, span.end, span.last
        return
    target = share_of(size, cores)
    while first < span.end:
        target_end = first + target
        stop = lines.line_end(span.stretch.file, target_end, span.end) if target_end < span.end else span.end
        yield first, stop, span.last and stop == span.end
        first = stop


def tasks(found: Sequence[Range]) -> Iterator[tuple[Range, ...]]:
    """The ranges by task: neighbours that are small share one, so that a thousand small files make few tasks."""
    held: list[Range] = []
    size = 0
    for each in found:
        if held and size + each.size > SMALLEST_RANGE:
            yield tuple(held)
            held, size = [], 0
        held.append(each)
        size += each.size
    if held:
        yield tuple(held)
