"""A topic as its brokers tell of it: its id, its partitions, and how far each of them reaches.

Brokers may be slow or down, and whoever plans an epoch has other streams to look at; so a question is asked in a thread
of its own, and `TopicWatch.look` waits for the answer no longer than it is told, and takes it up later.

Ends are those of committed messages: what an open transaction has written lies behind them.
A topic that is removed and made anew under its name has another id.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Literal

from anabranch.kafka.clients import administrator
from anabranch.kafka.cluster import KafkaCluster
from anabranch.kafka.faults import Remedy, fault

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin._topic import TopicDescription

_ASKED_SECONDS = 10.0
"""How long brokers have to answer."""
_clients: dict[KafkaCluster, AdminClient] = {}
_clients_lock = Lock()


@dataclass(frozen=True, slots=True)
class TopicLook:
    """A topic at a moment."""

    id: str
    ends: Mapping[int, int]
    """By partition: the offset behind its last committed message."""


class TopicWatch:
    """Asks about one topic, again and again; one thread uses it."""

    def __init__(self, cluster: KafkaCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._asked: Future[TopicLook] | None = None

    def look(self, seconds: float) -> TopicLook | None:
        """The topic as it is now, or was when it was last asked for; None while brokers have not answered.

        Raises `KafkaFault` for an answer that is an error.
        """
        if self._asked is None:
            self._asked = _in_background(self._look)
        try:
            found = self._asked.result(seconds)
        except TimeoutError:
            return None
        except BaseException:
            self._asked = None
            raise
        self._asked = None
        return found

    def _look(self) -> TopicLook:
        found = self._described()
        return TopicLook(str(found.topic_id), self.offsets([each.id for each in found.partitions], "latest"))

    def id(self) -> str:
        """The id of the topic; waits for the answer, and raises `KafkaFault`."""
        return str(self._described().topic_id)

    def _described(self) -> TopicDescription:
        from confluent_kafka import KafkaException, TopicCollection

        client = _admin(self._cluster)
        try:
            asked = client.describe_topics(TopicCollection([self._topic]), request_timeout=_ASKED_SECONDS)
            found: TopicDescription = _answer(asked[self._topic])
        except KafkaException as error:
            reason = fault(error, self._cluster, f"look at the topic '{self._topic}'")
            if reason.remedy is Remedy.WAIT:
                _renew(self._cluster, client)
            raise reason from None
        finally:
            del client  # an error that is kept would keep it, too (see `clients.py`)
        return found

    def offsets(self, partitions: Collection[int], at: Literal["earliest", "latest"] | int) -> dict[int, int]:
        """By partition: its first offset, its end, or the first with a timestamp of so many milliseconds or more."""
        from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
        from confluent_kafka.admin._listoffsets import OffsetSpec

        spec: OffsetSpec
        if isinstance(at, int):
            spec = OffsetSpec.for_timestamp(at)
        else:  # the library has no types for these
            spec = OffsetSpec.earliest() if at == "earliest" else OffsetSpec.latest()  # type: ignore[no-untyped-call]
        client = _admin(self._cluster)  # it has to outlive what it is asked for
        try:
            asked = client.list_offsets(
                {TopicPartition(self._topic, each): spec for each in partitions},
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=_ASKED_SECONDS,
            )
            found = {partition.partition: _answer(future).offset for partition, future in asked.items()}
        except KafkaException as error:
            _renew(self._cluster, client)
            raise fault(error, self._cluster, f"ask for the offsets of the topic '{self._topic}'") from None
        finally:
            del client  # an error that is kept would keep it, too (see `clients.py`)
        later = [partition for partition, offset in found.items() if offset < 0]  # no message is as late as that
        return found | (self.offsets(later, "latest") if later else {})


def _admin(cluster: KafkaCluster) -> AdminClient:
    """The client of this process that asks for topics of a cluster; any thread may use it."""
    with _clients_lock:
        if cluster not in _clients:
            _clients[cluster] = administrator(cluster)
        return _clients[cluster]


def _answer(asked: Future[Any]) -> Any:
    """What was asked for; a client that lets its own time limit pass is not waited for."""
    from confluent_kafka import KafkaError, KafkaException

    try:
        return asked.result(2 * _ASKED_SECONDS)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None


def _renew(cluster: KafkaCluster, failed: AdminClient) -> None:
    """Let the next question be asked by another client.

    One that has asked for the offsets of a partition goes on asking the leader that it knew, though brokers that came
    back refuse that (librdkafka 2.16, seen with a broker that was killed).
    """
    with _clients_lock:
        if _clients.get(cluster) is failed:
            del _clients[cluster]


def _in_background(work: Any) -> Future[Any]:
    """Begin a piece of work in a thread that ends with the process."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="kafka", daemon=True).start()
    return future
