"""The evolution log: all changes of a stream's partitions, in order, for good.

A stream has one file, a line for each change, to which the driver appends before it publishes the manifest of the epoch
that read them; the manifest says how many bytes of it count, with their digest, so what an attempt left behind that was
killed does not.
An epoch without changes writes nothing, and a stream without any has no file.

Tasks are told the file, its length and its digest.
A worker keeps what it has read of it, with the evolution of each partition that it comes to, and takes in what is new.

Accents are few and stay, for they are also the history that people look at.
Punctuations are many, and one that says more makes those before it, since the last accent, superfluous, unless they may
have purged what was said of a part of the items (LAWS 4.8), which late subscriptions would see; when most lines are
superfluous, the log goes on in a new file without them.
So the work for a change does not grow with the number of those before it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.algebra.accents.boxes import boxes, inside
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.index import Index
from anabranch.algebra.accents.sets import items_of
from anabranch.errors import StateError, StreamError
from anabranch.spark.checkpoint import durable
from anabranch.spark.evolution.changes import Change
from anabranch.spark.plan.epoch_plan import StreamPlan
from anabranch.stream import description

_LEAST = 64
"""So many superfluous lines are always borne."""


@dataclass(frozen=True, slots=True)
class Logged:
    """The log of a stream, as a manifest names it."""

    file: str
    size: int
    digest: str
    crossed: int = -1
    """The last epoch in which a change was followed by another range of its partition, -1 if there was none."""


class EvolutionLogs:
    """The driver's side: it alone appends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, _Held] = {}

    def append(self, stream: str, name: str, logged: Logged | None, changes: Sequence[Change], crossed: int) -> Logged:
        """Write changes behind those that count so far, under a file name that begins with `name`."""
        held = self._held.get(stream)
        if held is None or (held.file, held.size) != ((logged.file, logged.size) if logged else ("", 0)):
            held = self._held[stream] = (
                _Held(f"{name}-0000.jsonl") if logged is None else _Held.read(self._folder, logged)
            )
        for change in changes:
            held.take(change)
        if held.superfluous > max(_LEAST, len(held.lines) // 2):
            number = int(held.file.rpartition("-")[2].removesuffix(".jsonl")) + 1
            held = self._held[stream] = held.thinned(f"{name}-{number:04}.jsonl")
        data = b"".join(map(_line, held.fresh))
        with durable.writing(self._folder):
            self._folder.mkdir(exist_ok=True)
        durable.append(self._folder / held.file, data, held.size)
        held.written(data)
        return Logged(held.file, held.size, held.hash.hexdigest(), crossed)

    def sweep(self, logged: Mapping[str, Logged]) -> None:
        """Remove the files that do not count any more."""
        named = {each.file for each in logged.values()}
        for path in self._folder.iterdir() if self._folder.exists() else ():
            if path.name not in named:
                path.unlink(missing_ok=True)


def read_log(folder: Path, logged: Logged) -> list[Change]:
    """All changes of a stream, in the order of their epochs, those of one partition in the order of the stream."""
    return list(_Held.read(folder, logged).lines)


class _Held:
    """A log as the driver has it in memory; changed by `EvolutionLogs` alone."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.size = 0
        self.hash = hashlib.sha256()
        self.lines: dict[Change, None] = {}
        self.fresh: list[Change] = []
        """Those that are not in the file yet."""
        self._covered: set[Change] = set()
        self._described: set[str] = set()
        """The partitions in which something was said of a part of the items."""
        self._runs: dict[str, Index[Change]] = {}
        """By partition: its punctuations since its last accent that no later one covers, each a single box."""

    @staticmethod
    def read(folder: Path, logged: Logged) -> _Held:
        held = _Held(logged.file)
        data = _read(folder / logged.file, 0, logged.size)
        held.written(data)
        if held.hash.hexdigest() != logged.digest:
            raise _damaged(folder / logged.file)
        for line in data.splitlines():
            held._note(Change.from_json(json.loads(line)))
        return held

    @property
    def superfluous(self) -> int:
        return len(self._covered)

    def take(self, change: Change) -> None:
        self._note(change)
        self.fresh.append(change)

    def _note(self, change: Change) -> None:
        number = len(self.lines)
        self.lines[change] = None
        if change.kind != "closed":
            self._runs.pop(change.partition, None)
            if change.kind == "doubt" or " where=" in change.text:
                self._described.add(change.partition)
            return
        if change.partition in self._described:
            return
        run = self._runs.setdefault(change.partition, Index())
        try:
            parts = boxes(items_of(description.parse(change.text)))
        except StreamError:
            return
        for part in parts:
            for key, box, other in list(run.near(part)):
                if inside(box, part):
                    run.take(key, box)
                    self._covered.add(other)
        if len(parts) == 1 and parts[0]:
            run.put(number, parts[0], change)

    def thinned(self, file: str) -> _Held:
        """The same in a new file, without what is superfluous."""
        fresh = _Held(file)
        for change in self.lines:
            if change not in self._covered:
                fresh.take(change)
        return fresh

    def written(self, data: bytes) -> None:
        self.size += len(data)
        self.hash.update(data)
        self.fresh = []


# --- what tasks know --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Known:
    """What a worker has read of a log, for one stream."""

    stream: StreamPlan
    size: int = 0
    hash: hashlib._Hash = field(default_factory=hashlib.sha256)
    lines: list[Change] = field(default_factory=list)
    changes: dict[str, list[Change]] = field(default_factory=dict)
    """The same by partition."""
    evolutions: dict[str, tuple[int, Evolution]] = field(default_factory=dict)
    """By partition: how many changes it has taken in."""

    def read_on(self, path: Path, logged: Logged) -> bool:
        """Take in what is new; whether what was read is what the manifest means."""
        data = _read(path, self.size, logged.size)
        self.size = logged.size
        self.hash.update(data)
        for line in data.splitlines():
            change = Change.from_json(json.loads(line))
            self.lines.append(change)
            self.changes.setdefault(change.partition, []).append(change)
        return self.hash.hexdigest() == logged.digest

    def evolution(self, partition: str) -> Evolution:
        count, evolution = self.evolutions.get(partition) or (0, self.stream.evolution())
        changes = self.changes.get(partition, ())
        for change in changes[count:]:
            change.apply(evolution, self.stream.stream)
        self.evolutions[partition] = len(changes), evolution
        return evolution


_known: dict[Path, _Known] = {}
_MOST_KNOWN = 256
"""Streams; fewer than a trunk has would be worse than none, for each range asks for all of them."""


def evolution_at(folder: Path, stream: StreamPlan, logged: Logged | None, partition: str) -> Evolution:
    """The evolution of a partition behind all that is logged of it; it is kept, so whoever changes it copies it."""
    return stream.evolution() if logged is None else _read_on(folder, stream, logged).evolution(partition)


def logged_changes(folder: Path, stream: StreamPlan, logged: Logged) -> Sequence[Change]:
    """All changes of a stream, in the order of their epochs; not to be changed."""
    return _read_on(folder, stream, logged).lines


def _read_on(folder: Path, stream: StreamPlan, logged: Logged) -> _Known:
    path = folder / logged.file
    known = _known.get(path)
    if known is None or known.stream != stream or known.size > logged.size or not known.read_on(path, logged):
        known = _Known(stream)
        if not known.read_on(path, logged):
            raise _damaged(path)
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[path] = known
    return known


def _line(change: Change) -> bytes:
    return json.dumps(change.to_json()).encode() + b"\n"


def _read(path: Path, start: int, end: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(end - start)
    except OSError as error:
        raise StateError(f"cannot read '{path}': {error.strerror}") from None
    return data


def _damaged(path: Path) -> StateError:
    return StateError(f"'{path}' is damaged", hint="restore the checkpoint from a copy, or begin with a new one")
