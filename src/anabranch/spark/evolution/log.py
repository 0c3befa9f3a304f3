"""The evolution log: all events that the partitions of a stream have announced, in order, durable.

A stream has a log with a line for each event, to which the driver appends before it publishes the epoch's manifest
(`spark/checkpoint/parts.py`); the manifest names its parts and has its digest, so lines of a killed attempt do not
count.
An epoch without events writes nothing, and a stream without any has no log.
An accent is logged valid or not: its validity follows from the events before it.

Tasks get the names of the parts and the digest (`views.py`).

Accents are few and stay, because users read them as the stream's changelog.
Punctuations are many, and one that covers more makes those before it, since the last accent, superfluous, unless they
may have purged an accent on a part of the items (LAWS 4.8), which late subscriptions would see; when most lines are
superfluous, the log is written anew without them.
So the work for an event does not grow with the number of events before it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anabranch.algebra.accents.boxes import boxes, inside
from anabranch.algebra.accents.events import Announced, is_change
from anabranch.algebra.accents.index import Index
from anabranch.algebra.accents.sets import items_of
from anabranch.errors import StateError, StreamError
from anabranch.logic import EVERYTHING
from anabranch.spark.checkpoint.parts import Parts, grown, read_parts
from anabranch.spark.intake.ranges import Position, Range
from anabranch.storage import Location
from anabranch.stream.elements import Accent, DeadLetter, Punctuation, StreamElement

_TOLERATED = 64
"""The number of superfluous lines that are tolerated."""


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event, and its place in its stream."""

    announced: Announced
    number: int
    """The number of its stretch in the partition."""
    epoch: int = -1
    """The epoch that read it."""

    @property
    def partition(self) -> int:
        return self.announced.partition

    @property
    def position(self) -> Position:
        return Position(self.number, self.announced.event.place.offset)

    def to_json(self) -> list[Any]:
        return [self.epoch, self.number, self.announced.json]

    @staticmethod
    def from_json(value: list[Any]) -> LoggedEvent:
        epoch, number, announced = value
        return LoggedEvent(Announced.from_json(announced), number, epoch)


def logged_events(element: StreamElement | DeadLetter, reach: Range, epoch: int) -> list[LoggedEvent]:
    """The events that an element of a range announces for the items behind it; of a dead letter, its doubts."""
    if not is_change(element):
        return []
    assert isinstance(element, Accent | Punctuation | DeadLetter), "nothing else announces anything"
    if isinstance(element, DeadLetter):
        element = DeadLetter(element.place, element.reason, "", doubts=element.doubts)
    return [LoggedEvent(Announced(reach.stream, int(reach.partition), element), reach.number, epoch)]


@dataclass(frozen=True, slots=True)
class Logged:
    """The log of a stream, as a manifest records it."""

    parts: Parts
    digest: str
    crossed: int = -1
    """The last epoch in which an event was followed by another range of its partition, -1 if there was none."""

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def read(self, folder: Location, start: int = 0) -> bytes:
        """The lines, from a byte on."""
        return read_parts(folder, self.parts, start)

    def damaged(self, folder: Location) -> StateError:
        """The error for a log that differs from the manifest's record."""
        where = folder / self.parts[-1].file
        return StateError(f"'{where}' is damaged", hint="restore the checkpoint from a copy, or begin with a new one")


def events_of(lines: bytes) -> list[LoggedEvent]:
    """The events in some lines of a log."""
    return [LoggedEvent.from_json(json.loads(line)) for line in lines.splitlines()]


class EvolutionLogs:
    """The logs as the driver of a run appends to them; nobody else does."""

    def __init__(self, folder: Location, run: int = 1) -> None:
        self._folder = folder
        self._run = run
        self._held: dict[str, _LoadedLog] = {}

    def append(self, stream: str, logged: Logged | None, events: Sequence[LoggedEvent], crossed: int) -> Logged:
        """Append events to those that a manifest has named."""
        held = self._held.get(stream)
        if held is None or held.parts != (logged.parts if logged else ()):
            held = self._held[stream] = _LoadedLog() if logged is None else _LoadedLog.read(self._folder, logged)
        for event in events:
            held.take(event)
        if len(held.superfluous) > max(_TOLERATED, len(held.events) // 2):
            held = self._held[stream] = held.compacted()
        held.write(self._folder, self._run)
        return Logged(held.parts, held.hash.hexdigest(), crossed)


def read_log(folder: Location, logged: Logged) -> list[LoggedEvent]:
    """All events of a stream, in the order of their epochs, those of one partition in the order of the stream."""
    return _LoadedLog.read(folder, logged).events


class _LoadedLog:
    """A log in the driver's memory; changed by `EvolutionLogs` alone."""

    def __init__(self) -> None:
        self.parts: Parts = ()
        self.hash = hashlib.sha256()
        self.events: list[LoggedEvent] = []
        self.superfluous: set[int] = set()
        """Superfluous punctuations, by their numbers among the events."""
        self._written = 0
        """The number of events in the parts."""
        self._described: set[int] = set()
        """The partitions with an accent on a part of the items."""
        self._runs: dict[int, Index[int]] = {}
        """By partition: its punctuations since its last accent that no later one covers, each a single box."""

    @staticmethod
    def read(folder: Location, logged: Logged) -> _LoadedLog:
        held, data = _LoadedLog(), logged.read(folder)
        held.hash.update(data)
        if held.hash.hexdigest() != logged.digest:
            raise logged.damaged(folder)
        held.parts = logged.parts
        for event in events_of(data):
            held.take(event)
        held._written = len(held.events)
        return held

    def take(self, logged: LoggedEvent) -> None:
        """Add an event that is not in the parts yet."""
        number, partition, event = len(self.events), logged.partition, logged.announced.event
        self.events.append(logged)
        if not isinstance(event, Punctuation):
            self._runs.pop(partition, None)
            if isinstance(event, DeadLetter) or event.where != EVERYTHING:
                self._described.add(partition)
            return
        if partition in self._described:
            return
        assert event.where is not None, "heartbeats are not logged"
        run = self._runs.setdefault(partition, Index())
        try:
            parts = boxes(items_of(event.where))
        except StreamError:
            return
        for part in parts:
            for key, box, other in list(run.near(part)):
                if inside(box, part):
                    run.take(key)
                    self.superfluous.add(other)
        if len(parts) == 1 and parts[0]:
            run.add(parts[0], number)

    def compacted(self) -> _LoadedLog:
        """The log anew, without superfluous events."""
        fresh = _LoadedLog()
        for number, event in enumerate(self.events):
            if number not in self.superfluous:
                fresh.take(event)
        return fresh

    def write(self, folder: Location, run: int) -> None:
        """Append the events that are not in the parts yet."""
        data = b"".join(json.dumps(each.to_json()).encode() + b"\n" for each in self.events[self._written :])
        self.parts = grown(folder, self.parts, data, run)
        self.hash.update(data)
        self._written = len(self.events)
