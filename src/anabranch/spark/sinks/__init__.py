"""Sinks: where answers are delivered besides the answer log.

    Files(path)             one file that grows, a byte-exact prefix of the answer (`growing.py`)
    Parquet(path)           a folder with a file per epoch, for answers that are tables (`parquet.py`, `tables.py`), and
                            for the corrections of displays (`changelog.py`)
    Kafka(cluster, topic)   a message for each result (`topics/`)
    Console(out)            lines for people (`delivery.py`)

A sink is configured by one of these values; `delivery.py` brings it the epochs it is missing.
Files, tables and topics are written exactly once, whenever a process is killed; a console has no position.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TextIO, TypeAlias

from anabranch.errors import UsageError
from anabranch.kafka import KafkaCluster
from anabranch.storage import Location, Where
from anabranch.stream.files import called

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Files:
    """A file that grows; in an object store, a folder of parts."""

    path: Where

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Location.of(self.path))

    @property
    def at(self) -> Location:
        return Location.of(self.path)


@dataclass(frozen=True, slots=True)
class Parquet:
    """A folder of Parquet files.

    A display is told in `changes`: as `updates`, a row for each correction, or as `upserts`, of each epoch a row for
    each result that has changed.
    """

    path: Where
    changes: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Location.of(self.path))
        _check_changes(self.changes)

    @property
    def at(self) -> Location:
        return Location.of(self.path)


@dataclass(frozen=True, slots=True, init=False)
class Kafka:
    """A topic of Kafka, at a cluster or at brokers that need no settings; several subscriptions may write to the same.

    `key` is a path in a result, `@id` or `coord/cel/ra`, or for JSON a lookup, `customer.name`: the key of its message.
    A display is told in `changes`: as `updates`, its update stream, or as `upserts`, a message with the key of an entry
    for what it shows now, and a tombstone when it is gone.
    """

    cluster: KafkaCluster
    topic: str
    key: str | None = None
    changes: Literal["updates", "upserts"] | None = None

    def __init__(
        self, cluster: KafkaCluster | str, topic: str, *, key: str | None = None, changes: str | None = None
    ) -> None:
        if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            raise UsageError(f"'{topic}' cannot be the name of a topic", hint="use letters, digits, '.', '_' and '-'")
        _check_changes(changes)
        known = KafkaCluster.of(cluster) if isinstance(cluster, str) else cluster
        for name, value in (("cluster", known), ("topic", topic), ("key", key), ("changes", changes)):
            object.__setattr__(self, name, value)


def _check_changes(changes: str | None) -> None:
    """Refuse what is no way to tell a display."""
    if changes not in (None, "updates", "upserts"):
        raise UsageError(f"the 'changes' of a display are updates or upserts, not '{changes}'")


@dataclass(frozen=True, slots=True)
class Console:
    """Standard output, or another text stream."""

    out: TextIO | None = None


Sink: TypeAlias = Files | Parquet | Kafka | Console


def kind_of_sink(sink: Sink) -> str:
    """The kind of a sink, as SITE.toml calls it."""
    match sink:
        case Files():
            return "files"
        case Parquet():
            return "parquet"
        case Kafka():
            return "kafka"
        case Console():
            return "console"


def path_of(sink: Sink) -> Location | None:
    """The path that a sink writes to, which no other sink may use."""
    return sink.at if isinstance(sink, Files | Parquet) else None


def file_of(path: Where, name: str, *, json: bool = False) -> Location:
    """The file that a path means: itself, or within an existing folder the file named after the subscription.

    One whose answer is `json` is called `NAME.jsonl`.
    """
    at = Location.of(path)
    if at.path is None or not at.is_folder():
        return at
    return Location.of(called(at, name, ".jsonl" if json else ".xml", "the subscription"))
