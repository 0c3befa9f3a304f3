"""Writing to topics in transactions: messages, and with them how far the writer has come, or neither.

A writer is one transactional producer, known to brokers by its *identity*: a new writer of the same identity fences the
one before it, and its `open` settles what became of that one's last transaction.
With its messages a transaction stores a *mark* for each topic: a number and a short note, kept by the brokers as the
offset of a consumer group that is called after the identity and that nobody ever joins.
So the marks that are found behind `open` say exactly which transactions were committed.

A writer that has met any error is to be discarded: librdkafka does not know KIP-890, so a commit that timed out may
still come true, and only a new writer can tell.
That is one rule for all errors, and costs a connection.

Keys are spread over partitions as the Java clients do, so that a key is where they would look for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from anabranch.errors import UsageError
from anabranch.kafka.clients import QUICK, BrokerLog, consumer, producer
from anabranch.kafka.cluster import KafkaCluster
from anabranch.kafka.faults import KafkaFault, Remedy, fault

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

_PATIENCE = 10.0
"""The seconds that a request waits for brokers before the writer is given up."""
_STALLED = 30.0
"""The seconds in which at least one message is to be delivered, likewise."""
_TOLD = 0.5
"""The seconds in which the producer tells that a message could not be delivered, once its transaction has failed."""
_APPEARING = 5.0
"""The seconds in which a topic that brokers create when asked for it is to appear."""
_TRANSACTION_MS = 300_000
"""The time that a transaction may take, so that a large epoch fits into one; brokers allow 900,000 by default."""
_BY_KEY = -1


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message to be written; without a value it is a tombstone."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    """None lets the key decide."""
    headers: tuple[tuple[str, bytes], ...] = ()


class Mark(NamedTuple):
    """How far a writer has come in a topic."""

    next: int
    note: str = ""


class TransactionalWriter:
    """A transactional producer and its marks; one thread uses it, and waits for brokers as long as `wanted` holds."""

    def __init__(self, cluster: KafkaCluster, identity: str, log: BrokerLog, wanted: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._log = log
        self._wanted = wanted
        self._failed: KafkaError | None = None
        """The error of the first message that could not be delivered."""
        self._producer: Producer = producer(
            cluster,
            log,
            usual={"transaction_timeout_ms": _TRANSACTION_MS, **QUICK},
            transactional_id=identity,
            partitioner="murmur2_random",
            delivery_report_only_error=True,
        )
        self._group: Consumer = consumer(cluster, usual=QUICK, group_id=identity, isolation_level="read_committed")
        self.limit = int(cluster.resolved().get("transaction.timeout.ms", _TRANSACTION_MS)) / 1000
        """The seconds that a transaction may take."""

    def open(self) -> str:
        """Fence earlier writers of this identity, settle their last transaction, and give the id of the cluster."""
        from confluent_kafka import KafkaException

        patience = monotonic() + _PATIENCE
        while True:
            try:
                self._producer.init_transactions(0.5)
                found = self._producer.cluster_id(_PATIENCE)
            except KafkaException as error:
                self._serve()  # so that it is said that brokers are down
                is_open = monotonic() < patience and self._log.refusal is None and self._wanted()
                if error.args[0].retriable() and is_open:
                    continue  # the same call goes on where it was
                raise self._fault(error, "begin to write") from None
            self._answered()
            return found

    def partitions(self, topic: str) -> int:
        """The number of partitions of a topic; one that brokers create when asked for it is waited for."""
        from confluent_kafka import KafkaError, KafkaException

        doing, patience = f"write to the topic '{topic}'", monotonic() + _APPEARING
        while True:
            try:
                found = self._producer.list_topics(topic, _PATIENCE).topics[topic]
            except KafkaException as error:
                raise self._fault(error, doing) from None
            if found.error is None and found.partitions:
                return len(found.partitions)
            reason = fault(found.error or KafkaError(KafkaError.LEADER_NOT_AVAILABLE), self._cluster, doing)
            if reason.remedy not in (Remedy.ABSENT, Remedy.WAIT) or monotonic() > patience or not self._wanted():
                raise reason
            self._producer.poll(0.1)

    def marks(self, topics: Iterable[str]) -> dict[str, Mark]:
        """The marks of topics, for those that have one."""
        from confluent_kafka import KafkaException, TopicPartition

        asked = [TopicPartition(topic, 0) for topic in topics]
        try:
            found = self._group.committed(asked, _PATIENCE) if asked else []
        except KafkaException as error:
            raise self._fault(error, "read what has been written") from None
        for each in found:
            if each.error is not None:
                raise self._fault(each.error, f"read what has been written to the topic '{each.topic}'")
        return {each.topic: Mark(each.offset, each.metadata or "") for each in found if each.offset >= 0}

    def write(self, messages: Iterable[OutgoingMessage], marks: Mapping[str, Mark]) -> int:
        """Write messages and marks in one transaction; gives the number of messages."""
        from confluent_kafka import KafkaException, TopicPartition

        begun, count = monotonic(), 0
        topics: dict[str, None] = dict.fromkeys(marks)
        self._failed = None
        try:
            self._producer.begin_transaction()
            for message in messages:
                topics[message.topic] = None
                self._produce(message)
                count += 1
            offsets = [TopicPartition(topic, 0, mark.next, mark.note) for topic, mark in marks.items()]
            self._producer.send_offsets_to_transaction(offsets, self._group.consumer_group_metadata(), _PATIENCE)
            self._flush()
            self._producer.commit_transaction(_PATIENCE)
        except (KafkaException, SystemError) as error:
            found = self._fault(self._cause(error), f"write to {_named(topics)}")
            if found.remedy is not Remedy.WAIT and monotonic() - begun > self.limit:
                raise UsageError(
                    f"{count:,} messages take longer than a transaction may: {self.limit:,.0f} seconds",
                    hint="set 'transaction.timeout.ms' in [kafka] to more, or let epochs be smaller",
                ) from None
            raise found from None
        self._answered()
        return count

    def discard(self) -> None:
        """Give the writer up; what it has not committed is lost with it.

        Its clients end now, and not when the errors are forgotten that were raised here (see `clients.py`).
        """
        self._producer.purge(blocking=False)
        self._group.close()
        del self._producer, self._group

    def _produce(self, message: OutgoingMessage) -> None:
        while True:
            try:
                self._producer.produce(
                    message.topic,
                    message.value,
                    message.key,
                    _BY_KEY if message.partition is None else message.partition,
                    on_delivery=self._undelivered,
                    headers=list(message.headers),
                )
                return
            except BufferError:  # brokers are slower than we are, or do not answer
                self._producer.poll(0.1)
                self._check()

    def _flush(self) -> None:
        """Wait until all messages are delivered; a producer that delivers none for long is given up."""
        left, patience = len(self._producer), monotonic() + _STALLED
        while True:
            now = self._producer.flush(0.1)
            if now < left:
                left, patience = now, monotonic() + _STALLED
            self._check(is_late=monotonic() > patience)
            if not now:
                return

    def _check(self, *, is_late: bool = False) -> None:
        """Raise the error of a message that could not be delivered, or give up where nobody wants to wait."""
        from confluent_kafka import KafkaError, KafkaException

        if self._failed is None and (is_late or not self._wanted()):
            self._failed = KafkaError(KafkaError._TIMED_OUT)
        if self._failed is not None:
            raise KafkaException(self._failed)

    def _answered(self) -> None:
        self._serve()  # what it has heard of brokers before now is not said behind this
        self._log.answered()

    def _serve(self) -> None:
        """Let the producer say what it has heard of brokers; what is fatal the next call says again."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException, SystemError):
            self._producer.poll(0)

    def _cause(self, error: Exception) -> KafkaError | KafkaException:
        """The error behind an error: that of a message, if one could not be delivered, or that of the transaction.

        It ends the transaction before it is told of, and whatever is called in between fails for that reason only.
        A fatal one comes as the cause of a SystemError where messages were told of at the same time.
        """
        from confluent_kafka import KafkaException

        known = error if isinstance(error, KafkaException) else error.__cause__
        if not isinstance(known, KafkaException):
            raise error
        if self._failed is None and not known.args[0].fatal():
            with suppress(KafkaException, SystemError):
                self._producer.flush(_TOLD)
        if self._failed is None and known.args[0].name() in ("_STATE", "_FATAL"):
            try:
                self._producer.begin_transaction()  # refused as long as one has failed, with the reason for that
            except KafkaException as reason:
                return reason
        return known if self._failed is None else self._failed

    def _undelivered(self, error: KafkaError | None, _: object) -> None:
        """Note why a message was not delivered; what was purged was so for a reason that the next call gives."""
        if self._failed is None and error is not None and not error.name().startswith("_PURGE"):
            self._failed = error

    def _fault(self, error: KafkaError | KafkaException, doing: str) -> KafkaFault:
        found = fault(error, self._cluster, doing)
        if found.remedy is Remedy.WAIT and self._log.refusal is not None:
            return fault(self._log.refusal, self._cluster, doing)
        if found.remedy is Remedy.WAIT:
            self._log.silent(found.message)
        return found


def write_once(cluster: KafkaCluster, messages: Sequence[OutgoingMessage]) -> None:
    """Write some messages, all of them or none, and leave no mark; `KafkaFault` where brokers do not take them."""
    writer = TransactionalWriter(
        cluster, f"anabranch-{uuid4().hex}", BrokerLog(cluster, lambda message: None), lambda: True
    )
    try:
        writer.open()
        writer.write(messages, {})
    finally:
        writer.discard()


def _named(topics: Iterable[str]) -> str:
    first, *others = dict.fromkeys(topics)
    return f"the topic '{first}'" + (f" and {len(others)} more" if others else "")
