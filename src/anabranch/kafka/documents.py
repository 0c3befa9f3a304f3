"""Documents in a topic, each with a name: written by one process, received in order by others.

A document may be larger than a message may be, so it is written in pieces, which are numbered; all of them are in one
transaction (`transactions.py`), so whoever receives gets a document whole or not yet.
A document is written at least once: who writes notes what was written when brokers have it, and may be killed in
between; then the document comes again.
So names have to tell whether a document is there already.

All of a topic is in its first partition, and what stands there is the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from anabranch.kafka.cluster import KafkaCluster
from anabranch.kafka.faults import KafkaFault, Remedy
from anabranch.kafka.reading import MessageRange
from anabranch.kafka.topics import TopicWatch
from anabranch.kafka.transactions import OutgoingMessage

_PIECE = 500_000
"""The bytes of a piece; brokers take a megabyte unless they are told otherwise."""
_BATCH = 4 << 20
_HEADER = "piece"


@dataclass(frozen=True, slots=True)
class TopicDocument:
    """A document with its name."""

    name: str
    data: bytes

    def messages(self, topic: str) -> Iterator[OutgoingMessage]:
        """The pieces of the document, for one transaction."""
        count = max(1, -(-len(self.data) // _PIECE))
        for number in range(count):
            piece = self.data[number * _PIECE : (number + 1) * _PIECE]
            yield OutgoingMessage(topic, piece, self.name.encode(), 0, ((_HEADER, f"{number + 1}/{count}".encode()),))


class DocumentReceiver:
    """Receives the documents of a topic that one process writes; one thread uses it."""

    def __init__(self, cluster: KafkaCluster, topic: str, start: int | None) -> None:
        """`start` is the offset of the first document; None for the first that the topic still holds."""
        self._cluster = cluster
        self._topic = topic
        self._watch = TopicWatch(cluster, topic)
        self._next = start

    @property
    def position(self) -> int:
        """The offset behind what was received."""
        return self._next or 0

    def exists(self) -> bool:
        """Whether there is such a topic; `KafkaFault` where brokers do not say."""
        try:
            self._watch.id()
        except KafkaFault as error:
            if error.remedy is not Remedy.ABSENT:
                raise
            return False
        return True

    def receive(self) -> Iterator[TopicDocument]:
        """The documents that have come; `KafkaFault` where brokers do not give them."""
        start = self._watch.offsets([0], "earliest")[0] if self._next is None else self._next
        end = self._watch.offsets([0], "latest")[0]
        if end < start:
            raise self._lost(f"was read to offset {start}, and ends at {end} now", "it was made anew under its name")
        try:
            yield from self._documents(start, end)
        except KafkaFault as error:
            if error.remedy is not Remedy.LOST:
                raise
            first = self._watch.offsets([0], "earliest")[0]
            what = f"was read to offset {start}, and begins at {first} now"
            raise self._lost(what, "its retention has removed what was not read yet") from None
        self._next = end

    def _documents(self, start: int, end: int) -> Iterator[TopicDocument]:
        pieces: list[bytes] = []
        for batch in MessageRange(self._cluster, self._topic, 0, start, end).batches(_BATCH):
            keys, headers = batch.keys() or (), batch.headers() or ()
            for key, value, header in zip(keys, batch.values, headers, strict=True):
                number, _, count = (dict(header or ()).get(_HEADER) or b"1/1").partition(b"/")
                pieces.append(value or b"")
                if number == count:
                    yield TopicDocument((key or b"").decode(), b"".join(pieces))
                    pieces = []

    def _lost(self, what: str, why: str) -> KafkaFault:
        return KafkaFault(
            f"the topic '{self._topic}' at '{self._cluster.brokers}' {what}",
            code=None,
            hint=f"{why}; begin with a new checkpoint",
            remedy=Remedy.LOST,
        )


def pieces_of(topic: str, documents: Iterable[TopicDocument]) -> Iterator[OutgoingMessage]:
    """The pieces of some documents, for one transaction."""
    for each in documents:
        yield from each.messages(topic)
