"""A real broker for measurements, which `scripts/kafka.sh` of this repository starts and stops."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from anabranch.errors import UsageError

_SCRIPT = Path(__file__).parents[4] / "scripts" / "kafka.sh"
_SECONDS = 60.0
_AT_ONCE = 10_000


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Start a broker in a folder, give its address, and stop it."""
    if not _SCRIPT.exists():
        raise UsageError("Kafka is measured in a checkout of the repository, by its scripts/kafka.sh")
    folder.mkdir(parents=True)
    done = subprocess.run([_SCRIPT, "start", folder], check=True, stdout=subprocess.PIPE, text=True)
    try:
        yield done.stdout.strip()
    finally:
        subprocess.run([_SCRIPT, "stop", folder], check=True)


class BenchTopic:
    """A topic of one partition, whose messages are written and counted as plain clients do it."""

    def __init__(self, address: str, name: str) -> None:
        self.name = name
        admin = AdminClient({"bootstrap.servers": address})  # has to live until the result is there
        admin.create_topics([NewTopic(name, num_partitions=1)], operation_timeout=_SECONDS)[name].result()
        self._producer = Producer({"bootstrap.servers": address, "linger.ms": 20, "queue.buffering.max.messages": 0})
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "never-joined",
                "enable.auto.commit": False,
                "fetch.queue.backoff.ms": 5,  # else it would idle for a second whenever it has read far ahead
            }
        )

    def close(self) -> None:
        """End the clients, before their broker ends."""
        self._consumer.close()
        del self._producer

    def write(self, values: Iterable[bytes]) -> None:
        """Write messages, and wait until the broker has them."""
        for each in values:
            self._producer.produce(self.name, each, partition=0)
        assert self._producer.flush(_SECONDS) == 0, "the broker did not take all messages"

    def count(self, messages: int) -> None:
        """Read so many messages, from the first one on, and only count them."""
        self._consumer.assign([TopicPartition(self.name, 0, 0)])
        found = 0
        while found < messages:
            found += len(self._consumer.consume(min(_AT_ONCE, messages - found), 0.02))
        self._consumer.unassign()
