"""Writing into topics as producers do: one by one, in transactions that commit or abort, with keys and timestamps."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from uuid import uuid4

from confluent_kafka import Producer

from brokers import PATIENCE, Broker

ABORTED = b"<aborted/>"
"""What stands in transactions that are aborted: nobody may see it."""


def write_in_transactions(broker: Broker, topic: str, parts: Sequence[Sequence[bytes]], random: Random) -> None:
    """Write values into the partitions of a topic, each in order, in transactions of chance, some of them aborted."""
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
            producer.produce(topic, left[partition].pop(), partition=partition)
        producer.commit_transaction(PATIENCE)
