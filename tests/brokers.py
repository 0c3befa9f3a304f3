"""The one Kafka broker of a test run, and what tests do with it: make topics, write messages, read what was committed.

Whichever test asks first for the fixture `broker` starts it with `scripts/kafka.sh`, under a lock, so two processes of
pytest-xdist share it; the process that reports the results, which outlives the others, stops it.
Tests share the broker and never a topic: `Broker.topic` makes a new one.
A test that kills its broker starts one of its own in a folder of its own (`started`).
Should the process that is to stop a broker die, a watcher does.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

SCRIPT = Path(__file__).parent.parent / "scripts" / "kafka.sh"
_WATCH = 'while kill -0 "$0" 2>/dev/null; do kill -0 "$1" 2>/dev/null || exit; sleep 1; done; exec "$2" stop "$3"'
PATIENCE = 60.0
"""Seconds that a test waits for the broker before it fails."""


@dataclass(frozen=True)
class Record:
    """A message as it was read."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Broker:
    """A broker that runs in a folder."""

    folder: Path
    address: str

    def topic(self, name: str = "topic", partitions: int = 1, **config: str) -> str:
        """A new topic, whose name begins with this one; returns when it can be used."""
        fresh = f"{name}-{uuid4().hex[:12]}"
        admin = AdminClient({"bootstrap.servers": self.address})  # has to live until the result is there
        wanted = NewTopic(fresh, num_partitions=partitions, config=config)
        admin.create_topics([wanted], operation_timeout=PATIENCE, request_timeout=PATIENCE)[fresh].result()
        return fresh

    def write(
        self, topic: str, messages: Iterable[bytes | tuple[bytes | None, bytes | None]], partition: int = 0
    ) -> None:
        """Write messages, values or pairs of key and value, into a partition."""
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 0})
        for message in messages:
            key, value = message if isinstance(message, tuple) else (None, message)
            producer.produce(topic, value=value, key=key, partition=partition)
        assert producer.flush(PATIENCE) == 0, "the broker did not take all messages"

    def read(self, topic: str, **settings: str) -> list[Record]:
        """All messages of a topic that are there for readers of what is committed, partition by partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "never-joined",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 10,
                **settings,
            }
        )
        try:
            found: list[Record] = []
            for partition in sorted(consumer.list_topics(topic, PATIENCE).topics[topic].partitions):
                found += _partition(consumer, topic, partition)
            return found
        finally:
            consumer.close()

    def kill(self) -> None:
        """End the broker as a power cut would; `started` in its folder brings it back."""
        os.kill(int((self.folder / "pid").read_text()), signal.SIGKILL)


def started(folder: Path, *properties: str) -> Broker:
    """The broker of a folder, which is started if it does not run."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [SCRIPT, "start", folder, *properties], check=True, stdout=subprocess.PIPE, text=True, timeout=600
        )
    owner = folder / "owner"
    watched = owner.read_text() if owner.exists() else str(os.getpid())
    subprocess.Popen(
        ["sh", "-c", _WATCH, watched, (folder / "pid").read_text(), SCRIPT, folder], start_new_session=True
    )
    return Broker(folder, done.stdout.strip())


def stop(folder: Path) -> None:
    """End the broker of a folder, if it runs."""
    subprocess.run([SCRIPT, "stop", folder], check=True, timeout=PATIENCE)


def _partition(consumer: Consumer, topic: str, partition: int) -> list[Record]:
    first, last = consumer.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE)
    if first == last:
        return []
    consumer.assign([TopicPartition(topic, partition, first)])
    found: list[Record] = []
    while True:
        (position,) = consumer.position([TopicPartition(topic, partition)])
        if position.offset >= last:  # also behind the markers of transactions, which are no messages
            return found
        for message in consumer.consume(1000, 0.02):
            assert message.error() is None, message.error()
            found.append(_record(message))


def _record(message: Message) -> Record:
    headers = message.headers() or []
    partition, offset = message.partition(), message.offset()
    assert isinstance(headers, list)
    assert partition is not None
    assert offset is not None
    return Record(
        message.key(), message.value(), tuple((name, _bytes(value)) for name, value in headers), partition, offset
    )


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""
