"""The evolution log: all events that the partitions of a stream have announced, in order, durable.

A stream has one file with a line for each event, to which the driver appends before it publishes the epoch's manifest;
the manifest gives the valid length of the file and its digest, so lines of a killed attempt do not count.
An epoch without events writes nothing, and a stream without any has no file.
An accent is logged valid or not: its validity follows from the events before it.

Tasks get the file, its length and its digest (`views.py`).

Accents are few and stay, because users read them as the stream's changelog.
Punctuations are many, and one that covers more makes those before it, since the last accent, superfluous, unless they
may have purged an accent on a part of the items (LAWS 4.8), which late subscriptions would see; when most lines are
superfluous, the log is compacted into a new file.
So the work for an event does not grow with the number of events before it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.algebra.accents.boxes import boxes, inside
from anabranch.algebra.accents.events import Announced, is_change
from anabranch.algebra.accents.index import Index
from anabranch.algebra.accents.sets import items_of
from anabranch.errors import StateError, StreamError
from anabranch.logic import EVERYTHING
from anabranch.spark.checkpoint import durable
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

    file: str
    size: int
    digest: str
    crossed: int = -1
    """The last epoch in which an event was followed by another range of its partition, -1 if there was none."""

    def read(self, folder: Location, start: int = 0) -> bytes:
        """The valid lines, from a byte on."""
        return durable.read(folder / self.file, start, self.size - start)

    def damaged(self, folder: Location) -> StateError:
        """The error for a file that differs from the manifest's record."""
        path = folder / self.file
        return StateError(f"'{path}' is damaged", hint="restore the checkpoint from a copy, or begin with a new one")


def events_of(lines: bytes) -> list[LoggedEvent]:
    """The events in some lines of a log."""
    return [LoggedEvent.from_json(json.loads(line)) for line in lines.splitlines()]


class EvolutionLogs:
    """The logs as the driver appends to them; nobody else does."""

    def __init__(self, folder: Location) -> None:
        self._folder = folder
        self._held: dict[str, _LoadedLog] = {}

    def append(
        self, stream: str, name: str, logged: Logged | None, events: Sequence[LoggedEvent], crossed: int
    ) -> Logged:
        """Append events to the valid ones, in a file whose name begins with `name`."""
        held = self._held.get(stream)
        if held is None or (held.file, held.size) != ((logged.file, logged.size) if logged else ("", 0)):
            held = self._held[stream] = (
                _LoadedLog(f"{name}-0000.jsonl") if logged is None else _LoadedLog.read(self._folder, logged)
            )
        for event in events:
            held.take(event)
        if len(held.superfluous) > max(_TOLERATED, len(held.events) // 2):
            number = int(held.file.rpartition("-")[2].removesuffix(".jsonl")) + 1
            held = self._held[stream] = held.compacted(f"{name}-{number:04}.jsonl")
        held.write(self._folder)
        return Logged(held.file, held.size, held.hash.hexdigest(), crossed)

    def sweep(self, logged: Mapping[str, Logged]) -> None:
        """Remove the files that no manifest needs any more."""
        named = {each.file for each in logged.values()}
        self._folder.delete_all([name for name in self._folder.names() if name not in named])


def read_log(folder: Location, logged: Logged) -> list[LoggedEvent]:
    """All events of a stream, in the order of their epochs, those of one partition in the order of the stream."""
    return _LoadedLog.read(folder, logged).events


class _LoadedLog:
    """A log in the driver's memory; changed by `EvolutionLogs` alone."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.size = 0
        self.hash = hashlib.sha256()
        self.events: list[LoggedEvent] = []
        self.superfluous: set[int] = set()
        """Superfluous punctuations, by their numbers among the events."""
        self._written = 0
        """The number of events in the file."""
        self._described: set[int] = set()
        """The partitions with an accent on a part of the items."""
        self._runs: dict[int, Index[int]] = {}
        """By partition: its punctuations since its last accent that no later one covers, each a single box."""

    @staticmethod
    def read(folder: Location, logged: Logged) -> _LoadedLog:
        held, data = _LoadedLog(logged.file), logged.read(folder)
        held.hash.update(data)
        if held.hash.hexdigest() != logged.digest:
            raise logged.damaged(folder)
        held.size = len(data)
        for event in events_of(data):
            held.take(event)
        held._written = len(held.events)
        return held

    def take(self, logged: LoggedEvent) -> None:
        """Add an event that is not in the file yet."""
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

    def compacted(self, file: str) -> _LoadedLog:
        """The log in a new file, without superfluous events."""
        fresh = _LoadedLog(file)
        for number, event in enumerate(self.events):
            if number not in self.superfluous:
                fresh.take(event)
        return fresh

    def write(self, folder: Location) -> None:
        """Append the events that are not in the file yet."""
        lines = (json.dumps(each.to_json()).encode() + b"\n" for each in self.events[self._written :])
        data = b"".join(lines)
        self.size = durable.append(_on_disk(folder / self.file), (data,), self.size)
        self.hash.update(data)
        self._written = len(self.events)


def _on_disk(at: Location) -> Path:
    """The path of a log, to which the driver appends."""
    assert at.path is not None, "a checkpoint is on a disk"
    at.path.parent.mkdir(exist_ok=True)
    return at.path
