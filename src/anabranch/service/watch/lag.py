"""Lag: what is there and not read yet, for each partition of each stream.

The bytes of files and of what was pushed, and the messages of topics, are those between the newest manifest's offsets
and the present ends, which connectors tell (`spark/intake/sources/`).
Seconds are the time for which the oldest unread of them has waited, as far as looks a second apart can tell.

Where items have times by the wall clock, seconds are the age of the newest item that was read: of files of lines, by
their last line before the offset; of streams with heartbeats, by what the manifest has.
Times are taken for the wall clock's if they are dateTimes, or numbers with a declared unit, and within a day of now;
old data that is read again would be years late otherwise.
While nothing is unread the age stays what it was when the item was read: a source that is silent is not late.

One thread looks; it waits for brokers half a second at most, and looks the less often the longer that takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from time import time

from anabranch.errors import AnabranchError
from anabranch.service.watch.item_times import newest_time
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.epoch.waits import Wait
from anabranch.spark.intake.order import FileStretch, OrderLog
from anabranch.spark.intake.ranges import Position
from anabranch.spark.intake.sources import connector_of
from anabranch.spark.intake.sources.connector import Connector
from anabranch.stream.path import per_second
from anabranch.stream.reading.source import Source

_SAMPLES = 600
"""Looks that are remembered of a partition; with more of them waiting, seconds are a lower bound."""
_GROWTH_SECONDS = 10.0
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Lag:
    """What is unread; None for what does not apply, or is not known yet."""

    bytes: int | None = None
    offsets: int | None = None
    seconds: float | None = None
    growth: float = 0.0
    """By how many bytes, or messages, a second the unread have grown lately; negative where they become fewer."""

    @property
    def unread(self) -> int:
        """Bytes, or messages of a topic."""
        return self.bytes or self.offsets or 0


@dataclass(frozen=True, slots=True)
class StreamLag:
    """The lag of a stream: the sum of its partitions, and the largest of their seconds."""

    partitions: Mapping[str, Lag]

    @property
    def whole(self) -> Lag:
        """Of all partitions together."""
        found = self.partitions.values()
        sizes = [each.bytes for each in found if each.bytes is not None]
        offsets = [each.offsets for each in found if each.offsets is not None]
        return Lag(
            sum(sizes) if sizes else None,
            sum(offsets) if offsets else None,
            max((each.seconds for each in found if each.seconds is not None), default=None),
            sum(each.growth for each in found),
        )


UNKNOWN = StreamLag({})


@dataclass(slots=True)
class _Course:
    """What was seen of one partition."""

    samples: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_SAMPLES))
    """Moments, and how far the source reached then, counted from its beginning."""
    unread: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=64))
    passed: tuple[int, int] = (0, 0)
    """The stretches that were read to their ends, and their bytes."""
    newest: tuple[Position, float | None] = (Position(0, 0), None)
    """The position up to which it was read when the age of its newest item was taken, and that age."""

    def seen(self, now: float, read: int, unread: int) -> tuple[float, float]:
        """Take a look; gives for how long the oldest unread has waited, and by how much the unread grow."""
        self.samples.append((now, read + unread))
        while len(self.samples) > 1 and self.samples[0][1] <= read:
            self.samples.popleft()
        self.unread.append((now, unread))
        while len(self.unread) > 1 and self.unread[1][0] <= now - _GROWTH_SECONDS:
            self.unread.popleft()
        (then, before), waited = self.unread[0], now - self.samples[0][0]
        return (waited if unread else 0.0), ((unread - before) / (now - then) if now - then >= 1 else 0.0)


class LagLookout:
    """Looks at the sources of a run, again and again; one thread uses it."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._connectors: dict[str, Connector] = {}
        self._courses: dict[str, _Course] = {}
        self.waits: tuple[Wait, ...] = ()
        """What streams waited for at the last look."""

    def look(self, sources: Iterable[Source], last: Manifest | None) -> dict[str, StreamLag]:
        """The lag of each stream; of those whose source cannot be looked at, nothing is known."""
        found: dict[str, StreamLag] = {}
        waits: list[Wait] = []
        for source in sources:
            with suppress(AnabranchError, OSError):  # the trunk tells of it
                connector = self._connector(source)
                found[source.name] = StreamLag(dict(self._partitions(connector, last)))
                waits += (Wait(source.name, *reason) for reason in connector.waits(last))
        for each in self._connectors.keys() - found.keys():
            del self._connectors[each]
        keys = {f"{stream}/{partition}" for stream, each in found.items() for partition in each.partitions}
        self._courses = {key: each for key, each in self._courses.items() if key in keys}
        self.waits = tuple(waits)
        return found

    def _connector(self, source: Source) -> Connector:
        connector = self._connectors.get(source.name)
        if connector is None or connector.source != source:
            log = connector.log if connector else OrderLog.of(self._checkpoint, source.logged_as)
            connector = self._connectors[source.name] = connector_of(source, log)
        connector.log.refresh()
        return connector

    def _partitions(self, connector: Connector, last: Manifest | None) -> Iterator[tuple[str, Lag]]:
        source, offsets, now = connector.source, last.offsets if last else {}, time()
        there = connector.listing(patient=False)
        for key, ends in there.items():
            partition = key.rpartition("/")[2]
            course = self._courses.setdefault(key, _Course())
            at, held = Position.of(offsets, key), connector.log.stretches(partition)
            if source.topic is not None or source.http is not None:
                end, start = next(iter(ends.values()), 0), held[0].start if held else 0
                read, unread = at.position, max(0, end - max(at.position, start))
            else:
                course.passed = _passed(held, at, course.passed)
                read, unread = _of_files(held, ends, at, course.passed, begins=not source.copies)
            waited, growth = course.seen(now, read, unread)
            age = self._age(source, partition, at, held, last, course, bool(unread))
            seconds = waited if age is None else max(waited, age)
            if source.topic is not None:
                yield partition, Lag(None, unread, seconds, growth)
            else:
                yield partition, Lag(unread, None, seconds, growth)

    def _age(
        self,
        source: Source,
        partition: str,
        at: Position,
        held: Sequence[FileStretch],
        last: Manifest | None,
        course: _Course,
        is_behind: bool,
    ) -> float | None:
        """The age of the newest item of a partition that was read, where its time is the wall clock's."""
        if source.time is None or (course.newest[0] == at and not is_behind):
            return course.newest[1]
        moment: Fraction | float | None = None
        reached = last.intake.reached.get(source.name) if last else None
        if reached is not None and source.time_unit is not None:
            moment = reached / per_second(source.time)
        elif source.topic is None and source.http is None:
            form = self._connectors[source.name].log.form
            moment = None if form is None else newest_time(source, form, int(partition), at, held)
        age = None if moment is None else time() - float(moment)
        course.newest = at, (max(0.0, age) if age is not None and abs(age) < _DAY else None)
        return course.newest[1]


def _passed(held: Sequence[FileStretch], at: Position, before: tuple[int, int]) -> tuple[int, int]:
    """The stretches before a position, and their bytes, given those before an earlier one."""
    count, size = before if before[0] <= at.file else (0, 0)
    for stretch in held[count : at.file]:
        size += (stretch.end or stretch.start) - stretch.start
    return max(count, min(at.file, len(held))), size


def _of_files(
    held: Sequence[FileStretch], there: Mapping[str, int], at: Position, passed: tuple[int, int], *, begins: bool
) -> tuple[int, int]:
    """The bytes of a partition that were read, and those that are there and were not."""
    read, unread = passed[1], 0
    for number, stretch in enumerate(held[passed[0] :], passed[0]):
        begin = max(at.position, stretch.start) if number == at.file else stretch.start
        end = there.get(stretch.file, begin) if stretch.end is None else stretch.end
        read += begin - stretch.start
        unread += max(0, end - begin)
    if begins:
        ends = {stretch.file: stretch.end for stretch in held}
        for name, size in there.items():
            known = ends.get(name, 0)
            unread += max(0, size - known) if known is not None else 0
    return read, unread
