"""The evolution of a stream for people: its schema at any place, and its accents.

Both are read from the checkpoint, without Spark and without the run's lock, and show what is committed.
Each partition evolves by itself (LAWS 4.5); of several the number is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from anabranch import logic
from anabranch.algebra.accents.events import judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.layers import State
from anabranch.engine.reports.html import titled_table
from anabranch.engine.reports.reactions import SubscriptionReaction, reactions
from anabranch.engine.reports.tables import aligned, named
from anabranch.errors import UsageError
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests
from anabranch.spark.evolution.log import LoggedEvent, read_log
from anabranch.spark.intake.order import OrderLog
from anabranch.spark.intake.ranges import Position
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.stream.affine import IDENTITY
from anabranch.stream.description import Description
from anabranch.stream.elements import Accent, Add, Alter, DeadLetter, Drop, Punctuation
from anabranch.stream.reading.source import Source, StreamForm

AccentKind: TypeAlias = Literal["add", "drop", "alter", "unknown"]
"""What an accent does with its path; of one that could not be read it is unknown."""
EVERYTHING = "all items"
"""The text for the description of all items."""


@dataclass(frozen=True, slots=True)
class PathState:
    """The state of a path, for some items, at a place of one partition."""

    partition: int
    path: str
    items: str
    """Which items, as a description, or 'all items'."""
    state: str
    """'declared', 'may be there', 'there', 'dropped' or 'unknown'."""
    unit: str
    """The map from the unit at the path's start, as arithmetic in '.'; empty where nothing has changed."""


@dataclass(frozen=True)
class StreamSchema:
    """Paths, units and descriptions at a place; a table in the terminal and in a notebook."""

    stream: str
    place: str
    rows: tuple[PathState, ...]

    def __iter__(self) -> Iterator[PathState]:
        return iter(self.rows)

    def __str__(self) -> str:
        return "\n".join(aligned([_SCHEMA, *map(_cells, self.rows)]))

    def _repr_html_(self) -> str:
        return titled_table(f"{self.stream}, {self.place}", _SCHEMA, list(map(_cells, self.rows)))


_SCHEMA = ("partition", "path", "items", "state", "unit")


def _cells(row: PathState) -> tuple[str, ...]:
    return (str(row.partition), row.path, row.items, row.state, row.unit)


@dataclass(frozen=True, slots=True)
class Event:
    """One accent: its change, place and items, why it is invalid, and the reactions of subscriptions."""

    epoch: int
    partition: int
    file: str
    offset: int
    change: str
    items: str
    refused: str
    """The reason why it is not valid there; empty if it is."""
    reactions: tuple[SubscriptionReaction, ...]
    """The reactions of the subscriptions that it concerns."""
    path: str
    kind: AccentKind


@dataclass(frozen=True)
class History:
    """All accents of a stream, in the order in which they were read; a table in the terminal and in a notebook."""

    stream: str
    events: tuple[Event, ...]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __str__(self) -> str:
        return "\n".join(aligned([_HISTORY, *map(_told, self.events)]))

    def _repr_html_(self) -> str:
        return titled_table(f"{self.stream}: {len(self.events):,} accents", _HISTORY, list(map(_told, self.events)))


_HISTORY = ("epoch", "partition", "file", "byte", "change", "items", "subscriptions")


def _told(event: Event) -> tuple[str, ...]:
    notes = [f"refused: {event.refused}"] if event.refused else []
    notes += [f"{each.deed}: {named(each.subscriptions)}" for each in event.reactions]
    place = str(event.epoch), str(event.partition), event.file, f"{event.offset:,}"
    return (*place, event.change, event.items, "; ".join(notes))


@dataclass(frozen=True)
class StreamCourse:
    """A registered stream, and its evolution in a checkpoint; None where nothing has run yet."""

    source: Source
    checkpoint: Checkpoint | None
    committed: Manifest | None = None
    """The newest manifest, where the caller has it."""

    @cached_property
    def _order(self) -> OrderLog | None:
        if self.checkpoint is None:
            return None
        parts = self.newest.intake.orders.get(self.source.name, ()) if self.newest else ()
        log = OrderLog(self.checkpoint.order(self.source.name), parts)
        log.refresh()
        return log

    @property
    def form(self) -> StreamForm | None:
        """The format of the stream, once it is known."""
        return self._order.form if self._order else None

    @cached_property
    def _last(self) -> int:
        """The newest epoch, -1 if there is none."""
        if self.committed is not None:
            return self.committed.epoch
        epochs = Manifests(self.checkpoint.manifests).epochs() if self.checkpoint else range(0)
        return epochs[-1] if epochs else -1

    @cached_property
    def newest(self) -> Manifest | None:
        """The newest manifest, None if no epoch was committed."""
        if self.committed is not None:
            return self.committed
        return Manifests(self.checkpoint.manifests).load(self._last) if self.checkpoint and self._last >= 0 else None

    @cached_property
    def changes(self) -> list[LoggedEvent]:
        """All events of its log."""
        logged = self.newest.evolution.get(self.source.name) if self.newest else None
        return [] if logged is None or self.checkpoint is None else read_log(self.checkpoint.evolution, logged)

    def now(self, partition: int) -> Evolution:
        """The committed evolution of a partition; the caller may change it."""
        return self._evolution(partition, self.changes)

    def begun(self, partition: int) -> Evolution:
        """The evolution of a partition before its first event."""
        return self._evolution(partition, ())

    def _evolution(self, partition: int, changes: Sequence[LoggedEvent]) -> Evolution:
        evolution = Evolution.of(self.source)
        for change in changes:
            if change.partition == partition:
                judged(change.announced.event, evolution)
        return evolution

    # --- schema -----------------------------------------------------------------------------------------------

    def schema(self, at: int | tuple[str, int] | None = None) -> StreamSchema:
        """Its paths now, behind an epoch, or for an item that begins at a byte of a file."""
        match at:
            case None:
                return self._schema("now", range(len(self.source.partitions)), self.changes)
            case int(epoch):
                if not 0 <= epoch <= self._last:
                    raise UsageError(f"there is no epoch {epoch}", hint=f"the newest is {self._last}")
                changes = [each for each in self.changes if each.epoch <= epoch]
                return self._schema(f"behind epoch {epoch}", range(len(self.source.partitions)), changes)
            case (str(file), int(offset)):
                partition, position = self._position(file, offset)
                changes = [each for each in self.changes if each.position < position]
                return self._schema(f"{file} at byte {offset:,}", [partition], changes)
        raise UsageError(f"'{at}' is no place in a stream", hint="give an epoch, or a file and a byte: ('a.xml', 120)")

    def _schema(self, place: str, partitions: Sequence[int], changes: Sequence[LoggedEvent]) -> StreamSchema:
        rows: list[PathState] = []
        for partition in partitions:
            rows += self.rows(partition, self._evolution(partition, changes))
        return StreamSchema(self.source.name, place, tuple(rows))

    def rows(self, partition: int, evolution: Evolution) -> list[PathState]:
        """The paths of a partition as they are behind some events."""
        evolved = evolution.schema()
        known = {each.path for each in evolved}
        schema = self.source.schema
        declared = {path: None for item in schema.items for path in schema.paths(item)} if schema else {}
        found = [PathState(partition, str(path), EVERYTHING, "declared", "") for path in declared if path not in known]
        return found + [
            PathState(partition, str(each.path), _items(each.where), *_words(each.state)) for each in evolved
        ]

    def _position(self, file: str, offset: int) -> tuple[int, Position]:
        """A place in a file; of a file that has grown after its end, in the stretch that contains it."""
        found = [
            (partition, Position(number, offset))
            for partition in range(len(self.source.partitions))
            for number, stretch in enumerate(self._order.stretches(str(partition)) if self._order else ())
            if stretch.file == file and stretch.start <= offset
        ]
        if not found:
            raise UsageError(f"no file '{file}' of the stream '{self.source.name}' was begun yet")
        return found[-1]

    # --- history ----------------------------------------------------------------------------------------------

    def history(self, plan: Plan | None = None) -> History:
        """All accents so far; `plan` is that of the newest epoch, where the caller has it."""
        evolutions = [self._evolution(number, ()) for number in range(len(self.source.partitions))]
        newest = self.newest
        deeds = reactions(self.checkpoint, self.source.name, newest, plan) if self.checkpoint and newest else {}
        events: list[Event] = []
        for change in self.changes:
            event, partition = change.announced.event, change.partition
            found = judged(event, evolutions[partition])
            place = change.epoch, partition, event.place.partition, event.place.offset
            did = deeds.get((partition, event.place), ())
            match event:
                case Accent():
                    refused = found.reason if isinstance(found, DeadLetter) else ""
                    kind = _KINDS[type(event.evolution)]
                    path = str(event.evolution.path)
                    events.append(Event(*place, *_told_accent(event), refused, did, path, kind))
                case DeadLetter(doubts=doubts, reason=reason):
                    for each in doubts:
                        told = f"'{each.path}' is unknown", _items(each.where)
                        events.append(Event(*place, *told, reason, did, str(each.path), "unknown"))
                case Punctuation():
                    pass  # a punctuation changes no path
        return History(self.source.name, tuple(events))


_KINDS: Mapping[type[Add | Drop | Alter], AccentKind] = {Add: "add", Drop: "drop", Alter: "alter"}


def _told_accent(accent: Accent) -> tuple[str, str]:
    match accent.evolution:
        case Add(path, type_):
            change = f"add {path}" + (f" ({type_})" if type_ else "")
        case Drop(path):
            change = f"drop {path}"
        case Alter(path, by):
            change = f"alter {path} by {by}"
    return change, _items(accent.where)


def _items(where: Description) -> str:
    return EVERYTHING if where == logic.EVERYTHING else str(where)


def _words(state: State) -> tuple[str, str]:
    """The state of a path, and its unit."""
    match state:
        case State(False):
            return "dropped", ""
        case State(_, None):
            return "unknown", ""
        case State(carried, unit):
            return "there" if carried else "may be there", "" if unit == IDENTITY else str(unit)
