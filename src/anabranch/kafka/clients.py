"""Clients of a cluster: producers, consumers and administrators, with what all of them have in common.

librdkafka writes its log to standard error unless told otherwise; here it goes to the logger `anabranch.kafka`, which
is silent until somebody listens.
What a run has to say of its brokers, it says itself: see `BrokerLog`.

A client ends when nothing refers to it any more.
It has threads, and a process has room for about a thousand clients; while brokers are away, another is made every few
seconds.
An error keeps the local variables of the functions it came through, and often one of these is the error itself: such a
cycle stays until the garbage collector finds it, which in a process that only waits may take very long.
So whoever gives up a client removes its own reference to it, also where an error is raised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from anabranch.errors import UsageError
from anabranch.kafka.cluster import KafkaCluster
from anabranch.kafka.faults import Remedy, remedy_of

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

_log = logging.getLogger("anabranch.kafka")
_log.addHandler(logging.NullHandler())
_log.propagate = False

QUICK = {"retry_backoff_ms": 10, "reconnect_backoff_max_ms": 2_000, "metadata_recovery_strategy": "none"}
"""Settings of clients that are back soon when brokers are.

A client that begins with the bootstrap servers anew when a connection ends may leave partitions behind for good
(librdkafka 2.16, seen with the only broker of a cluster); who has to begin anew here makes another client.
"""

_Client = TypeVar("_Client")


def producer(
    cluster: KafkaCluster, heard: BrokerLog | None = None, *, usual: Mapping[str, object] | None = None, **role: object
) -> Producer:
    """A producer; `role` are settings that make it what it is, with underscores, as in `transactional_id`.

    `usual` are settings that a cluster's own come before.
    """
    from confluent_kafka import Producer

    return _made(Producer, cluster, heard, usual or {}, role)


def consumer(
    cluster: KafkaCluster, heard: BrokerLog | None = None, *, usual: Mapping[str, object] | None = None, **role: object
) -> Consumer:
    """A consumer, likewise; its group is named by `group_id`, and never joined where partitions are assigned."""
    from confluent_kafka import Consumer

    return _made(Consumer, cluster, heard, usual or {}, {"group_id": "anabranch", "enable_auto_commit": False} | role)


def administrator(cluster: KafkaCluster) -> AdminClient:
    """A client that asks for topics, offsets and groups, and makes them; it must outlive the futures it hands out."""
    from confluent_kafka.admin import AdminClient

    return _made(AdminClient, cluster, None, {}, {})


class BrokerLog:
    """Says once that the brokers of a cluster do not answer, and once that they do again."""

    def __init__(self, cluster: KafkaCluster, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._say = say
        self.down = False
        """Whether they did not answer when they were last asked."""
        self.refusal: KafkaError | None = None
        """Why they let nobody in, as long as they have not answered: credentials or certificates."""
        self._is_known = False

    def silent(self, reason: str) -> None:
        """Brokers did not answer; whoever calls this goes on trying."""
        if not self.down:
            self.down = True
            self._say(f"waiting for Kafka at '{self._cluster.brokers}': {self._cluster.hides(reason)}")

    def answered(self) -> None:
        """Brokers answered; from now on what they refuse may pass, as all else that keeps them from answering."""
        self._is_known, self.refusal = True, None
        if self.down:
            self.down = False
            self._say(f"Kafka at '{self._cluster.brokers}' answers again")

    def hear(self, error: KafkaError) -> None:
        """An error that a client tells of by itself; those that concern an operation are told to its caller, too."""
        if error.name() == "_ALL_BROKERS_DOWN":
            self.silent(error.str())
        elif remedy_of(error) is Remedy.DENIED:
            self.refusal = None if self._is_known else error
            self.silent(error.str())


def _made(
    kind: Callable[[dict[str, Any]], _Client],
    cluster: KafkaCluster,
    heard: BrokerLog | None,
    usual: Mapping[str, object],
    role: Mapping[str, object],
) -> _Client:
    from confluent_kafka import KafkaException

    config: dict[str, Any] = {"client.id": "anabranch", **_dotted(usual), **cluster.resolved(), **_dotted(role)}
    config |= {"bootstrap.servers": cluster.brokers, "logger": _log}
    if heard is not None:
        config["error_cb"] = heard.hear
    try:
        return kind(config)
    except KafkaException as error:
        fault = error.args[0]
        raise UsageError(f"Kafka takes no such settings: {cluster.hides(fault.str())}") from None


def _dotted(settings: Mapping[str, object]) -> dict[str, object]:
    return {name.replace("_", "."): value for name, value in settings.items()}
