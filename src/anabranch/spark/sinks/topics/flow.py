"""The topics of a cluster while one writer is at work: how far each is, and what an epoch adds to it.

It begins with what brokers and checkpoint know (`join`), brings late sinks up to the others (`catch_up`), and goes on
epoch by epoch (`write`), one transaction each.
It ends with the first error, and with its writer: another one begins again with what brokers know then.

The note beside a mark has the number of the run, and a digest of the epoch that was written last.
A run that finds a larger number belongs to the past: another has taken over.
The first transaction of a run writes nothing but marks, so that it is known from then on.
A checkpoint whose epoch has another digest is not the one that the topic was written from: an old copy was restored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

from anabranch.errors import StateError, UsageError
from anabranch.kafka import KafkaCluster
from anabranch.kafka.transactions import Mark, OutgoingMessage, TransactionalWriter
from anabranch.law.calls import PythonFunction
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.crash import point
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.plan.files import Plans
from anabranch.spark.sinks import Kafka
from anabranch.spark.sinks.topics.messages import TopicAddress, result_messages
from anabranch.spark.sinks.topics.record import TopicRecord, identity_of, read_record
from anabranch.spark.sinks.topics.tables import KeyedDisplay
from anabranch.spark.sinks.topics.upserts import ShownKeys, Upserts


@dataclass(frozen=True, slots=True)
class DeliveryHost:
    """What the trunk lends to those who write to topics."""

    checkpoint: Checkpoint
    run: int
    functions: Mapping[str, PythonFunction]
    warn: Callable[[str], None]
    fail: Callable[[Exception], None]
    clusters: dict[str, KafkaCluster] = field(default_factory=dict)
    """The clusters at work, by the ids that they have themselves."""


class _Note(NamedTuple):
    """What stands beside a mark."""

    run: int
    epoch: str = ""
    """The digest of the epoch before the mark; empty where that was not written."""
    late: str = ""
    next: int = 0
    """How far a late sink has come, by a digest of its name."""

    @staticmethod
    def read(text: str) -> _Note:
        try:
            return _Note(*json.loads(text))
        except (ValueError, TypeError):
            return _Note(0)


class TopicFlow:
    """Writes epochs to the topics of a cluster; one thread uses it."""

    def __init__(self, host: DeliveryHost, cluster: KafkaCluster, writer: TransactionalWriter) -> None:
        self._host = host
        self._cluster = cluster
        self._writer = writer
        self._log = AnswerLog(host.checkpoint)
        self._plans = Plans(host.checkpoint)
        self._id = ""
        """The cluster's own id, once it is open."""
        self._sinks: Mapping[str, Kafka] = {}
        self._partitions: dict[str, int] = {}
        self._positions: dict[str, int] = {}
        """By topic: the next epoch to write."""
        self._written: dict[str, str] = {}
        """By topic: the digest of the epoch that was written last."""
        self._displays: dict[str, KeyedDisplay] = {}
        self._record = TopicRecord()

    @property
    def start(self) -> int:
        """The first epoch to look at."""
        return min((self._positions[each.topic] for each in self._sinks.values()), default=0)

    def close(self) -> None:
        """End in good order: what was reached is known for certain, also when brokers have forgotten it."""
        if self._id:
            self._save(self._record.known(self._positions))
        self.discard()

    def discard(self) -> None:
        """End after an error."""
        self._writer.discard()

    def _save(self, record: TopicRecord) -> None:
        if record != self._record:
            durable.write_record(self._host.checkpoint.topics(self._id), record)
            self._record = record

    # --- beginning ------------------------------------------------------------------------------------------

    def join(self, sinks: Mapping[str, Kafka], last: int) -> None:
        """Let these sinks, by subscription, be those that are written to; `last` is the newest committed epoch."""
        if not self._id:
            self._open()
        topics = sorted({each.topic for each in sinks.values()})
        firsts = {name: self._first(name, last) for name in sinks}
        by_topic = {
            topic: {name: firsts[name] for name, each in sinks.items() if each.topic == topic} for topic in topics
        }
        fresh = [each for each in topics if each not in self._positions]
        self._partitions |= {each: self._writer.partitions(each) for each in fresh}
        marks = self._writer.marks(fresh)
        record = self._record
        for topic in fresh:
            self._positions[topic] = self._position(topic, marks.get(topic), min(by_topic[topic].values()), last)
            record = _with_progress(record, topic, marks.get(topic))
        record = record.known(self._positions)
        for topic, position in self._positions.items():
            record = record.joined(topic, by_topic.get(topic, {}), position)
        self._warn_of_gaps(sinks, record, firsts)
        self._save(record)
        self._sinks = sinks
        self._displays = {
            name: self._displays.get(name) or self._display(name, each.key)
            for name, each in sinks.items()
            if each.changes == "upserts" and each.key is not None
        }
        if fresh:  # from now on an earlier run can tell that it is one
            self._writer.write((), {each: self._mark(each) for each in fresh})

    def _display(self, name: str, key: str) -> KeyedDisplay:
        return KeyedDisplay(name, key, self._host.checkpoint.topics(self._id, name), self._host.warn)

    def _open(self) -> None:
        self._id = self._writer.open()
        known = self._host.clusters.setdefault(self._id, self._cluster)
        if known != self._cluster:
            raise UsageError(
                f"the brokers '{known.brokers}' and '{self._cluster.brokers}' are those of one cluster",
                hint="declare them alike for all sinks, best in [kafka]",
            )
        self._record = read_record(self._host.checkpoint.topics(self._id))

    def _first(self, name: str, last: int) -> int:
        """The first epoch of a subscription; for one that has not begun, the next epoch."""
        known = self._log.subscription(name)
        return last + 1 if known is None else known.first

    def _position(self, topic: str, mark: Mark | None, first: int, last: int) -> int:
        """The next epoch of a topic; `first` for a topic that is new to this site."""
        reached, attempting = self._record.reached.get(topic), self._record.attempting.get(topic)
        if mark is None and attempting is not None:
            raise StateError(
                f"the brokers at '{self._cluster.brokers}' have forgotten how far the topic '{topic}' is, "
                f"and it is not known whether epoch {attempting - 1} was written",
                hint="look at the header 'epoch' of its last messages, and set the offset of the group "
                f"'{identity_of(self._host.checkpoint)}' to the next epoch with kafka-consumer-groups.sh",
            )
        if mark is None:
            return first if reached is None else reached
        if (other := _Note.read(mark.note).run) > self._host.run:
            raise StateError(
                f"run {other} of this site writes to the topic '{topic}', and this is run {self._host.run}",
                hint="another copy of the checkpoint is at work",
            )
        self._written[topic] = _Note.read(mark.note).epoch
        kept = self.epochs(mark.next - 1, mark.next - 1)
        known = _digest_of(self._log.manifests.load(kept[0])) if kept else ""
        if mark.next > last + 1 or (known and self._written[topic] and known != self._written[topic]):
            raise StateError(
                f"the topic '{topic}' was written up to epoch {mark.next - 1} of this site, which is not that of the "
                "checkpoint",
                hint="an old copy of it was restored: begin with a new one, and with new topics",
            )
        return mark.next

    def _warn_of_gaps(self, sinks: Mapping[str, Kafka], record: TopicRecord, firsts: Mapping[str, int]) -> None:
        """Say what a topic lacks because it is no longer kept; a display that lacks its beginning is refused."""
        kept = self._log.manifests.epochs()
        for name, sink in sinks.items():
            known = self._record.members.get(sink.topic, {})
            if kept and name not in known and firsts[name] < kept[0]:
                asked = self._log.subscription(name)
                if asked is not None and asked.shows:
                    self._log.check_followed(asked)
                self._host.warn(f"a part of '{name}' is no longer kept, so the topic '{sink.topic}' lacks it")

    def _mark(self, topic: str, late: str = "", next: int = 0) -> Mark:
        note = _Note(self._host.run, self._written.get(topic, ""), late, next)
        return Mark(self._positions[topic], json.dumps(note))

    # --- writing --------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Write what late sinks are missing."""
        while self._record.late:
            late = self._record.late[0]
            for epoch in self.epochs(late.next, late.until - 1):
                topics, messages = self._messages(epoch, {late.name: self._sinks[late.name]})
                if topics:
                    self._writer.write(messages, {late.topic: self._mark(late.topic, _digest(late.name), epoch + 1)})
            self._save(self._record.caught_up())

    def epochs(self, first: int, last: int) -> list[int]:
        """The committed epochs in a range that are kept."""
        return [each for each in self._log.manifests.epochs() if first <= each <= last]

    def write(self, epoch: int) -> None:
        """Write what an epoch adds to topics, unless it has been written."""
        topics, messages = self._messages(
            epoch, {name: each for name, each in self._sinks.items() if self._positions[each.topic] <= epoch}
        )
        if not topics:
            return
        moved = dict.fromkeys(topics, epoch + 1)
        self._save(self._record.known(self._positions, moved))
        point("topics-begun", epoch)
        self._positions |= moved
        self._written |= dict.fromkeys(topics, _digest_of(self._log.manifests.load(epoch)))
        self._writer.write(messages, {each: self._mark(each) for each in topics})
        point("topics-written", epoch)
        for display in self._displays.values():
            display.written()

    def _messages(self, epoch: int, sinks: Mapping[str, Kafka]) -> tuple[list[str], Iterator[OutgoingMessage]]:
        """The topics that an epoch adds to, and all messages for them."""
        index, plan = self._log.index(self._log.manifests.load(epoch)), self._plans.ran(epoch)
        topics: dict[str, None] = {}
        found: list[Iterator[OutgoingMessage]] = []
        for name, sink in sinks.items():
            asked = plan.by_name.get(name)
            chunks = index.of(asked.id) if asked is not None else []
            if asked is None or not chunks:
                continue
            topics[sink.topic] = None
            place = TopicAddress.of(name, epoch, sink.topic, self._partitions[sink.topic])
            texts = ((chunk, self._log.text(chunk)) for chunk in chunks)
            if sink.changes != "upserts":
                found.append(result_messages(asked, sink, place, texts, self._host.functions))
            elif name in self._displays:
                self._displays[name].bring(asked, epoch, self._texts)
                found.append(self._displays[name].messages((text for _, text in texts), place))
            else:
                found.append(Upserts(name, None, ShownKeys()).messages((text for _, text in texts), place))
        return list(topics), chain.from_iterable(found)

    def _texts(self, owner: int, first: int, last: int) -> Iterable[str]:
        """The answer of a subscription, by its number, in some epochs."""
        for epoch in self.epochs(first, last):
            yield from map(self._log.text, self._log.chunks(self._log.manifests.load(epoch), owner))


def _with_progress(record: TopicRecord, topic: str, mark: Mark | None) -> TopicRecord:
    """The record with how far its first late sink has come, as the mark of its topic tells."""
    if not record.late or record.late[0].topic != topic or mark is None:
        return record
    first, note = record.late[0], _Note.read(mark.note)
    if note.late != _digest(first.name) or note.next <= first.next:
        return record
    return replace(record, late=(replace(first, next=note.next), *record.late[1:]))


def _digest_of(manifest: Manifest) -> str:
    """What tells an epoch from another of the same number: the files of its answers, whose names are new for each."""
    return _digest(" ".join(each.name for each in manifest.segments))


def _digest(name: str) -> str:
    return blake2b(name.encode(), digest_size=8).hexdigest()
