"""The fifth act: orders come in a topic of Kafka, alerts leave in another, and the broker is killed in between.

It is shown where a broker can be had: in a checkout of the project whose `scripts/kafka.sh` has got the jars.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from rich.console import Console
from rich.table import Table

import anabranch
from anabranch.engine.live import Engine
from anabranch.kafka import KafkaCluster
from anabranch.kafka.topics import TopicWatch
from anabranch.kafka.transactions import OutgoingMessage, write_once
from anabranch.spark.sinks import Kafka
from anabranch.stream.reading.topic import Topic

ORDERS = 400
"""How many orders come before the broker is killed, and how many afterwards."""
_QUERY = "SELECT id, country, amount FROM orders WHERE amount >= 950"
_CHECKOUT = Path(anabranch.__file__).parents[2]
_SHOWN = 5
_PATIENCE, _POLL = 60.0, 0.2
"""The seconds that alerts have to reach their topic, and between two looks there."""


def is_possible() -> bool:
    """Whether a broker can be started at once."""
    return (_CHECKOUT / "build/kafka/classes.jsa").exists() and (_CHECKOUT / "scripts/kafka.sh").exists()


def show(console: Console) -> None:
    """Let orders come and alerts leave, and the broker be killed between them."""
    console.print("[bold]Topics[/]: orders come from Kafka, alerts go back to it, and its broker is killed meanwhile")
    with TemporaryDirectory(prefix="anabranch-demo-") as folder, _broker(Path(folder)) as broker:
        cluster = KafkaCluster(broker.start())
        random, sent = Random(7), [0]
        _send(cluster, random, sent)
        with Engine(shards=1, trigger_ms=50) as engine:
            engine.stream("orders", Topic.of(cluster, "orders", partitions=1), format="json")
            alerts = engine.subscribe(_QUERY, "alerts", sink=Kafka(cluster, "alerts", key="country"))
            engine.start()
            engine.trunk.beyond(-1)
            broker.kill()
            broker.start()
            _send(cluster, random, sent)
            engine.trunk.beyond(sys.maxsize, lambda: engine.tally.items >= sent[0])
            answer = alerts.answer().splitlines()
            patience = monotonic() + _PATIENCE
            while len(written := _read(cluster, "alerts")) < len(answer) and monotonic() < patience:
                sleep(_POLL)  # the broker has been away
    table = Table("key", "message", title=f"the last of {len(written)} messages in 'alerts'", title_justify="left")
    for key, value in written[-_SHOWN:]:
        table.add_row(key, value)
    console.print(table)
    doubled = len(written) - len({value for _, value in written})
    lost = len(set(answer) - {value for _, value in written})
    console.print(f"done: {sent[0]} orders, {len(answer)} alerts, {doubled} doubled, {lost} lost")


def _send(cluster: KafkaCluster, random: Random, sent: list[int]) -> None:
    """Send orders as somebody else would."""
    messages: list[OutgoingMessage] = []
    for number in range(sent[0] + 1, sent[0] + ORDERS + 1):
        country, amount = random.choice(("DE", "FR", "IT", "PL")), random.randrange(1_000)
        text = f'{{"id": {number}, "country": "{country}", "amount": {amount}}}'
        messages.append(OutgoingMessage("orders", text.encode(), country.encode(), 0))
    write_once(cluster, messages)
    sent[0] += ORDERS


def _read(cluster: KafkaCluster, topic: str) -> list[tuple[str, str]]:
    """The committed messages of a topic with one partition, as key and value."""
    end = TopicWatch(cluster, topic).offsets([0], "latest")[0]
    found: list[tuple[str, str]] = []
    for batch in Topic.of(cluster, topic).range(0, 0, end).batches(1 << 20):
        keys = batch.keys() or [None] * len(batch)
        found += (
            ((key or b"").decode(), (value or b"").decode()) for key, value in zip(keys, batch.values, strict=True)
        )
    return found


class _Broker:
    """A broker in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self) -> str:
        """Start it, with what it has; gives its address."""
        return self._script("start")

    def kill(self) -> None:
        os.kill(int((self._folder / "pid").read_text()), signal.SIGKILL)

    def stop(self) -> None:
        self._script("stop")

    def _script(self, verb: str) -> str:
        script = _CHECKOUT / "scripts/kafka.sh"
        done = subprocess.run([script, verb, self._folder], check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout.strip()


@contextmanager
def _broker(folder: Path) -> Iterator[_Broker]:
    broker = _Broker(folder / "broker")
    try:
        yield broker
    finally:
        broker.stop()
