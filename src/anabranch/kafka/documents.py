"""Documents in a topic, each with a name: sent by one process, received in order by others.

A document may be larger than a message may be, so it is sent in pieces, which are numbered.
It is sent at least once: who sends notes what was sent when brokers have it, and may be killed in between; then the
document comes again, from its first piece on.
So names have to tell whether a document is there already.

All of a topic is in its first partition, and what stands there is the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from anabranch.kafka.clients import QUICK, BrokerLog, producer
from anabranch.kafka.cluster import KafkaCluster
from anabranch.kafka.faults import KafkaFault, Remedy, fault
from anabranch.kafka.reading import MessageRange
from anabranch.kafka.topics import TopicWatch

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException, Producer

_PIECE = 500_000
"""The bytes of a piece; brokers take a megabyte unless they are told otherwise."""
_STALLED = 30.0
"""The seconds in which at least one piece is to be delivered, before a sender is given up."""
_BATCH = 4 << 20


@dataclass(frozen=True, slots=True)
class TopicDocument:
    """A document with its name."""

    name: str
    data: bytes


class DocumentSender:
    """Sends documents; one thread uses it, and waits for brokers as long as `wanted` holds."""

    def __init__(self, cluster: KafkaCluster, log: BrokerLog, wanted: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._log = log
        self._wanted = wanted
        self._failed: KafkaError | None = None
        self._producer: Producer = producer(
            cluster,
            log,
            usual={"compression_type": "lz4", **QUICK},
            enable_idempotence=True,
            delivery_report_only_error=True,
        )

    def send(self, topic: str, documents: Iterable[TopicDocument]) -> None:
        """Send documents, and return when brokers have them; after an error the sender is to be discarded."""
        from confluent_kafka import KafkaException

        self._failed = None
        try:
            for document in documents:
                count = max(1, -(-len(document.data) // _PIECE))
                for number in range(count):
                    piece = document.data[number * _PIECE : (number + 1) * _PIECE]
                    self._produce(topic, document.name, piece, f"{number}/{count}")
            self._flush()
        except KafkaException as error:
            raise self._fault(self._cause(error), topic) from None
        with suppress(KafkaException):
            self._producer.poll(0)
        self._log.answered()

    def discard(self) -> None:
        """Give the sender up."""
        self._producer.purge(blocking=False)

    def _produce(self, topic: str, name: str, piece: bytes, number: str) -> None:
        while True:
            try:
                self._producer.produce(
                    topic,
                    piece,
                    name.encode(),
                    0,
                    on_delivery=self._undelivered,
                    headers=[("piece", number.encode())],
                )
                return
            except BufferError:
                self._producer.poll(0.1)
                self._check(is_late=False)

    def _flush(self) -> None:
        left, patience = len(self._producer), monotonic() + _STALLED
        while True:
            now = self._producer.flush(0.1)
            if now < left:
                left, patience = now, monotonic() + _STALLED
            self._check(is_late=monotonic() > patience)
            if not now:
                return

    def _check(self, *, is_late: bool) -> None:
        from confluent_kafka import KafkaError, KafkaException

        if self._failed is None and (is_late or not self._wanted()):
            self._failed = KafkaError(KafkaError._TIMED_OUT)
        if self._failed is not None:
            raise KafkaException(self._failed)

    def _undelivered(self, error: KafkaError | None, _: object) -> None:
        if self._failed is None:
            self._failed = error

    def _cause(self, error: KafkaException) -> KafkaError | KafkaException:
        return error if self._failed is None else self._failed

    def _fault(self, error: KafkaError | KafkaException, topic: str) -> KafkaFault:
        found = fault(error, self._cluster, f"write to the topic '{topic}'")
        if found.remedy is Remedy.WAIT and self._log.refusal is not None:
            return fault(self._log.refusal, self._cluster, f"write to the topic '{topic}'")
        if found.remedy is Remedy.WAIT:
            self._log.silent(found.message)
        return found


class DocumentReceiver:
    """Receives the documents of a topic, from an offset on; one thread uses it."""

    def __init__(self, cluster: KafkaCluster, topic: str, start: int) -> None:
        self._cluster = cluster
        self._topic = topic
        self._watch = TopicWatch(cluster, topic)
        self._next = start
        self._pieces: dict[str, tuple[int, bytes]] = {}
        """By name, documents that are not complete yet: the offset of their first piece, and what has come."""

    @property
    def position(self) -> int:
        """The offset from which on nothing is missed that was not received yet."""
        return min((first for first, _ in self._pieces.values()), default=self._next)

    def receive(self) -> Iterator[TopicDocument]:
        """The documents that have become complete; `KafkaFault` where brokers do not give them."""
        first, end = (self._watch.offsets([0], at)[0] for at in ("earliest", "latest"))
        if self._next and self._next < first:
            raise KafkaFault(
                f"the topic '{self._topic}' at '{self._cluster.brokers}' was read to offset {self._next}, "
                f"and begins at {first} now",
                code=None,
                hint="its retention has removed what was not read yet; begin with a new checkpoint",
                remedy=Remedy.LOST,
            )
        for batch in MessageRange(self._cluster, self._topic, 0, max(self._next, first), end).batches(_BATCH):
            keys, headers = batch.keys() or (), batch.headers() or ()
            for key, value, offset, header in zip(keys, batch.values, batch.offsets, headers, strict=True):
                yield from self._take((key or b"").decode(), value or b"", offset, dict(header or ()).get("piece"))
                self._next = offset + 1
        self._next = max(self._next, end)

    def _take(self, name: str, value: bytes, offset: int, piece: bytes | None) -> Iterator[TopicDocument]:
        number, count = map(int, (piece or b"0/1").split(b"/"))
        begun, before = (offset, b"") if number == 0 else self._pieces.pop(name, (offset, b""))
        if number == count - 1:
            self._pieces.pop(name, None)
            yield TopicDocument(name, before + value)
        else:
            self._pieces[name] = begun, before + value
