"""Requests and answers that get lost on the way to a real broker: every result is in its topic once, all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch import Kafka, KafkaCluster
from anabranch.kafka import transactions
from brokers import Broker, started, stop
from kafka.proxy import Loss, Proxy
from kafka.writing import ALL, ODD, Writing

TRANSACTION = ("Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Proxy, Broker]]:
    """A broker that is reached through a proxy, also by itself when it asks whether a transaction is under way."""
    proxy, folder = Proxy(), tmp_path_factory.mktemp("broker")
    advertised = f"advertised.listeners=PLAINTEXT://{proxy.address}"
    try:
        direct = started(folder, advertised, "request.timeout.ms=2000")
        proxy.connect(direct.address)
        yield proxy, Broker(folder, proxy.address)
    finally:
        stop(folder)
        proxy.close()


@pytest.mark.spark
@pytest.mark.parametrize("loss", ["request", "answer", "silence"])
@pytest.mark.parametrize("request_", ["InitProducerId", "OffsetFetch", *TRANSACTION])
def test_nothing_is_lost_and_nothing_doubled(
    proxy: tuple[Proxy, Broker], request_: str, loss: Loss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever request of a transaction, or whatever answer, does not arrive: the topic has each result once.

    Where the answer to a commit is lost, the next writer has to find out whether it was one.
    """
    monkeypatch.setattr(transactions, "_PATIENCE", 1.0)
    monkeypatch.setattr(transactions, "_STALLED", 3.0)
    between, broker = proxy
    writing = Writing(tmp_path, broker)
    topic = writing.topic()
    sink = Kafka(KafkaCluster.of(broker.address, {"socket.timeout.ms": 2000}), topic)
    queries = {"all": (ALL, sink), "odd": (ODD, sink)}
    lost = between.lost
    for times in (0, 1, 2):
        writing.grow(12)
        between.lose(request_, loss, times)
        writing.run(queries)
    found = writing.values(topic)
    assert [each for each in found if each.startswith("<n>")] == writing.law(ALL)
    assert [each for each in found if each.startswith("<odd>")] == writing.law(ODD)
    assert between.lost - lost == 3
