"""Clients that are given up end at once: they have threads, and a process has room for about a thousand."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from anabranch.kafka import KafkaCluster, topics
from anabranch.kafka.clients import BrokerLog
from anabranch.kafka.faults import KafkaFault
from anabranch.kafka.reading import MessageRange
from anabranch.kafka.topics import TopicWatch
from anabranch.kafka.transactions import OutgoingMessage, TransactionalWriter
from kafka.mocking import mock_cluster

NOBODY = KafkaCluster("127.0.0.1:1")
TIMES = 3


@pytest.fixture
def no_search() -> Iterator[None]:
    """Nothing that refers to itself is found, as in a process that only waits."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def clients() -> int:
    """How many there are in this process; those of others may end meanwhile."""
    return sum(isinstance(each, Producer | Consumer | AdminClient) for each in gc.get_objects())


@pytest.mark.mass
@pytest.mark.usefixtures("no_search")
def test_a_topic_whose_brokers_are_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look that fails is the last of its client, whatever is asked for."""
    monkeypatch.setattr(topics, "_ASKED_SECONDS", 0.1)
    watch, before = TopicWatch(NOBODY, "t"), clients()
    for _ in range(TIMES):
        with pytest.raises(KafkaFault):
            watch.look(60)
        with pytest.raises(KafkaFault):
            watch.offsets([0], "latest")
    assert clients() <= before


@pytest.mark.mass
@pytest.mark.usefixtures("no_search")
def test_writers_that_are_given_up() -> None:
    """Behind an error and without one."""
    with mock_cluster() as mock:
        before = clients()
        for number in range(TIMES):
            cluster = KafkaCluster(mock.bootstrap)
            writer = TransactionalWriter(cluster, "w", BrokerLog(cluster, lambda said: None), lambda: True)
            writer.open()
            if number:
                mock.answer("Produce", 10, 1)
                with pytest.raises(KafkaFault):
                    writer.write([OutgoingMessage("t", b"value")], {})
            writer.discard()
            assert clients() <= before


@pytest.mark.mass
@pytest.mark.usefixtures("no_search")
def test_ranges_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads gives up, and so does the client."""
    monkeypatch.setattr("anabranch.kafka.reading.PATIENT_SECONDS", 0.1)
    before = clients()
    for _ in range(TIMES):
        with pytest.raises(KafkaFault):
            list(MessageRange(NOBODY, "t", 0, 0, 5).batches(1_000))
    assert clients() <= before
