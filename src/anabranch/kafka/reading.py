"""The messages of a partition between two offsets, as one task reads them.

No consumer group is involved: the partition is assigned at the offset where the range begins.
Only committed messages are given.
Offsets have gaps: markers of transactions, aborted messages and what compaction has removed take some.
So a range ends when the consumer has come to its end, whatever it has given on the way, and never by a count.

A process keeps the consumers it has made, one for each cluster and range that is read at a time, since a new one costs
a connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from anabranch.kafka.clients import consumer
from anabranch.kafka.cluster import KafkaCluster
from anabranch.kafka.faults import KafkaFault, Remedy, fault

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

PATIENT_SECONDS = 10.0
"""How long a reader waits for a message before it gives up, and leaves it to others to wait and say so."""
_POLL_SECONDS = 0.02
"""How long a batch that is not full is waited for."""
_MOST_MESSAGES = 10_000
_AHEAD = {"queued_max_messages_kbytes": 16 << 10, "max_partition_fetch_bytes": 4 << 20, "fetch_queue_backoff_ms": 5}
"""How far a consumer reads ahead: some megabytes, of which those behind the end of a range are read for nothing.

One that has read so far ahead looks again after some milliseconds whether it may go on; by default librdkafka rests for
a second, and a task that is through with what was read ahead has to wait.
"""
_idle: dict[KafkaCluster, list[Consumer]] = {}
"""The consumers of this process that read nothing at the moment."""
_idle_lock = Lock()


@dataclass(frozen=True, slots=True)
class MessageBatch:
    """Some messages of a partition, in order, as columns."""

    values: list[bytes | None]
    """None for a message without one, a tombstone."""
    offsets: list[int]
    messages: Sequence[Message]

    @staticmethod
    def of(messages: Sequence[Message]) -> MessageBatch:
        return MessageBatch([each.value() for each in messages], [each.offset() or 0 for each in messages], messages)

    def stamps(self) -> list[int]:
        """Timestamps in milliseconds, of whatever kind the topic has; 0 where there is none."""
        return [max(0, each.timestamp()[1]) for each in self.messages]

    def keys(self) -> list[bytes | None] | None:
        """Keys; None where no message has one."""
        found = [each.key() for each in self.messages]
        return None if all(each is None for each in found) else found

    def headers(self) -> list[list[tuple[str, bytes | None]] | None] | None:
        """Headers, in their order; None where no message has any."""
        found: list[Any] = [each.headers() for each in self.messages]
        if not any(found):
            return None
        return [[(name, _bytes(value)) for name, value in each] if each else None for each in found]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class MessageRange:
    """The messages with offsets from `start` to before `end` of one partition."""

    cluster: KafkaCluster
    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"the topic '{self.topic}', partition {self.partition}"

    def batches(self, size: int) -> Iterator[MessageBatch]:
        """The messages in order, in batches of about so many bytes; raises `KafkaFault`."""
        from confluent_kafka import TopicPartition

        if self.start >= self.end:
            return
        most = 100  # messages of a size that is not known yet
        with _lent(self.cluster) as reader:
            reader.assign([TopicPartition(self.topic, self.partition, self.start)])
            position, since = self.start, monotonic()
            while position < self.end:
                found = reader.consume(min(most, self.end - position), _POLL_SECONDS)
                taken = self._good(found)
                if taken:
                    yield MessageBatch.of(taken)
                    since = monotonic()
                    length = sum(len(each) for each in taken) // len(taken)
                    most = max(1, min(_MOST_MESSAGES, size // (length + 1)))
                position = max(position, self._position(reader, taken))
                if monotonic() - since > PATIENT_SECONDS:
                    raise KafkaFault(
                        f"{self} gave no message behind offset {position} for {PATIENT_SECONDS:g} seconds",
                        code=None,
                        hint=None,
                        remedy=Remedy.WAIT,
                    )

    def _position(self, reader: Consumer, taken: Sequence[Message]) -> int:
        """The offset behind what was consumed, also behind markers of transactions, which are no messages."""
        from confluent_kafka import TopicPartition

        if taken:
            last = taken[-1].offset()
            assert last is not None
            if last + 1 >= self.end:
                return self.end
        (found,) = reader.position([TopicPartition(self.topic, self.partition)])
        return int(found.offset)

    def _good(self, found: Sequence[Message]) -> list[Message]:
        """The messages of the range among those that were consumed; the first error is raised."""
        for each in found:
            if (error := each.error()) is not None:
                raise self._fault(error)
        last = found[-1].offset() if found else None
        if last is None or last < self.end:
            return list(found)
        return [each for each in found if (each.offset() or 0) < self.end]

    def _fault(self, error: KafkaError) -> KafkaFault:
        return fault(error, self.cluster, f"read {self}")


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


@contextmanager
def _lent(cluster: KafkaCluster) -> Iterator[Consumer]:
    """A consumer, which is kept for others unless something fails."""
    with _idle_lock:
        kept = _idle.setdefault(cluster, [])
        held = kept.pop() if kept else None
    if held is None:
        held = consumer(
            cluster,
            usual=_AHEAD,
            isolation_level="read_committed",
            auto_offset_reset="error",
            enable_auto_offset_store=False,
            fetch_wait_max_ms=50,
        )
    try:
        yield held
        held.unassign()
    except BaseException:
        held.close()
        raise
    with _idle_lock:
        _idle[cluster].append(held)
