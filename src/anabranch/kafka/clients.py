"""Clients of a cluster: producers, consumers and administrators, with what all of them have in common.

librdkafka writes its log to standard error unless told otherwise; here it goes to the logger `anabranch.kafka`, which
is silent until somebody listens.
What a run has to say of its brokers, it says itself: see `BrokerLog`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from anabranch.errors import UsageError
from anabranch.kafka.cluster import KafkaCluster

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

_log = logging.getLogger("anabranch.kafka")
_log.addHandler(logging.NullHandler())
_log.propagate = False

_Client = TypeVar("_Client")


def producer(cluster: KafkaCluster, heard: BrokerLog | None = None, **settings: object) -> Producer:
    """A producer; settings of its role are given with underscores, as in `transactional_id`."""
    from confluent_kafka import Producer

    return _made(Producer, cluster, heard, settings)


def consumer(cluster: KafkaCluster, heard: BrokerLog | None = None, **settings: object) -> Consumer:
    """A consumer; a group is named by `group_id`, and is never joined where partitions are assigned."""
    from confluent_kafka import Consumer

    return _made(Consumer, cluster, heard, {"group_id": "anabranch", "enable_auto_commit": False} | settings)


def administrator(cluster: KafkaCluster, **settings: object) -> AdminClient:
    """A client that asks for topics, offsets and groups, and makes them; it must outlive the futures it hands out."""
    from confluent_kafka.admin import AdminClient

    return _made(AdminClient, cluster, None, settings)


class BrokerLog:
    """Says once that the brokers of a cluster do not answer, and once that they do again."""

    def __init__(self, cluster: KafkaCluster, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._say = say
        self._down = False

    def silent(self, reason: str) -> None:
        """Brokers did not answer; whoever calls this goes on trying."""
        if not self._down:
            self._down = True
            self._say(f"waiting for Kafka at '{self._cluster.brokers}': {self._cluster.hides(reason)}")

    def answered(self) -> None:
        """Brokers answered."""
        if self._down:
            self._down = False
            self._say(f"Kafka at '{self._cluster.brokers}' answers again")

    def hear(self, error: KafkaError) -> None:
        """An error that a client tells of by itself; those that concern an operation are told to its caller, too."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.silent(error.str())


def _made(
    kind: Callable[[dict[str, Any]], _Client], cluster: KafkaCluster, heard: BrokerLog | None, role: dict[str, Any]
) -> _Client:
    from confluent_kafka import KafkaException

    own = {name.replace("_", "."): value for name, value in role.items()}
    callbacks: dict[str, Any] = {"logger": _log} | ({"error_cb": heard.hear} if heard else {})
    config = {"client.id": "anabranch"} | cluster.resolved() | own | {"bootstrap.servers": cluster.brokers} | callbacks
    try:
        return kind(config)
    except KafkaException as error:
        fault = error.args[0]
        raise UsageError(f"Kafka takes no such settings: {cluster.hides(fault.str())}") from None
