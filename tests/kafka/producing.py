"""Writing into topics as producers do: one by one, in transactions that commit or abort, with keys and timestamps."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from time import monotonic
from uuid import uuid4

from confluent_kafka import Consumer, Producer, TopicPartition

from anabranch.kafka import KafkaCluster
from anabranch.kafka.topics import TopicWatch
from brokers import PATIENCE, Broker

KEPT = {"retention.ms": "-1"}
"""The settings of topics whose messages have timestamps of long ago: else they would soon be removed."""
ABORTED = b"<aborted/>"
"""What stands in transactions that are aborted: nobody may see it."""


def write_in_transactions(
    broker: Broker, topic: str, parts: Sequence[Sequence[bytes | tuple[bytes, int]]], random: Random
) -> None:
    """Write values into the partitions of a topic, each in order, in transactions of chance, some of them aborted.

    A value may come with its timestamp in milliseconds.
    """
    producer = Producer(
        {"bootstrap.servers": broker.address, "transactional.id": uuid4().hex, "linger.ms": 0, "acks": "all"}
    )
    producer.init_transactions(PATIENCE)
    left = [list(reversed(part)) for part in parts]
    while any(left):
        producer.begin_transaction()
        if random.random() < 0.3:
            for partition in range(len(parts)):
                for _ in range(random.randint(0, 3)):
                    producer.produce(topic, ABORTED, partition=partition)
            producer.flush(PATIENCE)
            producer.abort_transaction(PATIENCE)
            continue
        for _ in range(random.randint(1, 40)):
            partition = random.choice([number for number, part in enumerate(left) if part] or [-1])
            if partition < 0:
                break
            found = left[partition].pop()
            value, stamp = found if isinstance(found, tuple) else (found, 0)
            producer.produce(topic, value, partition=partition, timestamp=stamp)
        producer.commit_transaction(PATIENCE)
    await_markers(broker, topic)


def await_markers(broker: Broker, topic: str) -> None:
    """Wait until all transactions of a topic have ended: a commit is certain before its marker stands in the topic."""
    cluster = KafkaCluster.of(broker.address)
    watch = TopicWatch(cluster, topic)
    settings = {"bootstrap.servers": broker.address, "group.id": "none", "isolation.level": "read_uncommitted"}
    reader = Consumer(settings)  # whose ends are those of all that was written
    deadline = monotonic() + PATIENCE
    while True:
        committed = watch.look(PATIENCE)
        assert committed is not None
        written = {each: reader.get_watermark_offsets(TopicPartition(topic, each), PATIENCE) for each in committed.ends}
        if committed.ends == {each: last for each, (_, last) in written.items()}:
            break
        assert monotonic() < deadline, "a transaction has not ended"
    reader.close()
