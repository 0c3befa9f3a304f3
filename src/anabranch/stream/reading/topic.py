"""A topic of Kafka as a user declares it: where it is, where reading begins, and what its messages hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from anabranch.errors import UsageError
from anabranch.kafka import KafkaCluster
from anabranch.kafka.reading import MessageRange
from anabranch.stream.elements import MESSAGE_LINES
from anabranch.stream.reading.reader import Format

Start: TypeAlias = str | datetime | Mapping[int, int] | Mapping[str, int]
"""Where reading begins: `earliest`, `latest`, a moment, or offsets by number of a partition."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_STARTS = "'earliest', 'latest', a time such as 2026-01-01T00:00:00Z, or offsets such as { 0 = 1200, 1 = 950 }"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that is the source of a stream; `of` makes one of what users write."""

    cluster: KafkaCluster
    name: str
    start: Literal["earliest", "latest"] | int = "earliest"
    """Where reading begins; an int is a moment, in milliseconds since 1970."""
    offsets: tuple[tuple[int, int], ...] = ()
    """Where reading begins in some partitions, by number; in all others it does so at the earliest message."""
    only: int | None = None
    """The number of partitions, where the user promises that there are never more."""
    lines: bool = False
    """Whether a message holds lines, each an item; else it is one item."""
    timestamps: bool = True
    """Whether the timestamp of a message is the time of its elements, where no time is declared (LAWS 1.3)."""
    upserts: Literal["", "plain", "debezium"] = ""
    """Whether messages are updates of their keys (LAWS 5.9), and whether they are in Debezium's envelope."""
    count: int = 1
    """The number of partitions that are known."""

    @staticmethod
    def of(
        cluster: KafkaCluster | str,
        name: str,
        *,
        start: Start = "earliest",
        partitions: int | None = None,
        timestamps: bool = True,
    ) -> Topic:
        """A topic of a cluster, or of brokers that need no settings; UsageError where it cannot be one.

        `partitions` promises that it has so many, and never more: with one, nothing has to be merged.
        Without `timestamps`, and without a time path, the time of an element is the moment at which it arrives: its
        partitions do not wait for one another.
        """
        known = cluster if isinstance(cluster, KafkaCluster) else KafkaCluster.of(cluster)
        if not _NAME.fullmatch(name) or name in (".", ".."):
            raise UsageError(f"'{name}' cannot be the name of a topic")
        if partitions is not None and partitions < 1:
            raise UsageError("a topic has one partition at least")
        offsets = _offsets(start) if isinstance(start, Mapping) else ()
        begin = "earliest" if isinstance(start, Mapping) else _start(start)
        return Topic(known, name, begin, offsets, partitions, timestamps=timestamps, count=partitions or 1)

    @property
    def may_grow(self) -> bool:
        """Whether it has several partitions, or may come to have them."""
        return self.only != 1

    def range(self, partition: int, start: int, end: int) -> MessageRange:
        """The messages of a partition between two offsets."""
        return MessageRange(self.cluster, self.name, partition, start, end)

    def label(self, partition: int) -> str:
        """The name of a partition, as places have it (`Place`)."""
        return f"{self.name}/{partition}{MESSAGE_LINES if self.lines else ''}"


def _start(given: str | datetime) -> Literal["earliest", "latest"] | int:
    if given == "earliest" or given == "latest":
        return "earliest" if given == "earliest" else "latest"
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(given)
    except (TypeError, ValueError):
        raise UsageError(f"'start' takes {_STARTS}, not '{given}'") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)


def _offsets(given: Mapping[int, int] | Mapping[str, int]) -> tuple[tuple[int, int], ...]:
    found: dict[int, int] = {}
    for partition, offset in given.items():
        number = int(partition) if str(partition).isdecimal() else -1
        if number < 0 or type(offset) is not int or offset < 0:
            raise UsageError(f"'start' takes {_STARTS}, not '{partition} = {offset}'")
        found[number] = offset
    return tuple(sorted(found.items()))


def message_format(topic: Topic, given: str) -> tuple[Topic, Format | Literal["auto"]]:
    """A topic whose messages hold what a user says: `json` or `xml`, one item each, or `lines` of either.

    Gives also the format of the items, as far as that tells it.
    """
    match given:
        case "auto" | "json":
            return topic, given
        case "xml":
            return topic, "lines"
        case "lines":
            return replace(topic, lines=True), "auto"
    raise UsageError(f"the format '{given}' is unknown", hint="messages are json, xml or lines")


def upserted(topic: Topic | None, envelope: str | None, form: str) -> Topic:
    """A topic whose messages are updates of their keys, as they are or in an envelope."""
    if topic is None:
        raise UsageError("only a topic can be a stream of upserts", hint="files are edited by updates = true")
    if topic.lines:
        raise UsageError("messages that hold lines cannot be upserts", hint="an upsert is one item")
    if envelope not in (None, "debezium"):
        raise UsageError(f"the envelope '{envelope}' is unknown", hint="use debezium, or leave it out")
    if envelope and form != "json":
        raise UsageError("Debezium's envelope is JSON", hint='set format = "json"')
    return replace(topic, upserts="debezium" if envelope else "plain")
