"""The simulated clients of a broker, in the place of those that `kafka/clients.py` makes.

All of our own code above librdkafka is that of production; what stands in for librdkafka does what it does: it sends a
request again while nothing is heard of it, numbers messages, gives up after some attempts, and then tells whoever has
called that the transaction has failed.
Of each attempt the seed decides whether the request is lost, is carried out without an answer, or is late, and carried
out when other things have been done, perhaps when its sender is long dead.
A partition may be without a leader for a while, and so may be what coordinates transactions; the clock passes then,
and all who wait give up sooner or later.

Without a world, a broker answers at once: that is the one of the undisturbed run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import RLock
from types import SimpleNamespace
from typing import Any, TypeVar
from zlib import crc32

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition

from anabranch.kafka import clients, reading, topics, transactions
from anabranch.spark.sinks.topics import delivery
from simulation.broker import Broker, Log, Sent, refusal
from simulation.world import World, conditions_of, futures_of, threads_of

T = TypeVar("T")

_ATTEMPTS = 3
_LATEST = 400
"""So many steps later a late request is carried out at most."""
_NO_OFFSET = -1001
_STAMP = 1_800_000_000_000
_COORDINATOR = "the coordinator"


class Wire:
    """The way to a broker, and what happens on it."""

    def __init__(self, broker: Broker, world: World | None = None) -> None:
        self.broker = broker
        self._world = world
        self._alone = RLock()
        """Held by the threads of a run outside of the world."""
        self._late: list[tuple[int, Callable[[], object]]] = []
        self._away: dict[str, int] = {}
        """Who is away, and how many requests will still not be answered."""
        self.is_calm = world is None
        """Whether nothing is lost any more."""
        self.loss = 0.0
        """The chance of a request to get lost, or its answer, or to be late."""
        if world is not None:
            self.loss = world.random.choice((0.0, 0.03, 0.1))
            world.after_step.append(self._happen)

    def calm(self, calm: bool) -> None:
        """Let nothing be lost from now on, and nobody be away; or let it again."""
        self.is_calm = calm
        self._away.clear()
        if calm:
            self.broker.settle()

    def _happen(self) -> None:
        """What nobody asks for: late requests arrive, markers are written, leaders leave, transactions expire."""
        assert self._world is not None
        steps, random = self._world.steps, self._world.random
        if self._late and any(at <= steps for at, _ in self._late):
            due = [each for at, each in self._late if at <= steps]
            self._late = [(at, each) for at, each in self._late if at > steps]
            for each in due:
                with suppress(KafkaException):
                    each()
        if random.random() < (1.0 if self.is_calm else 0.1):
            self.broker.move(random)
        if not self.is_calm and self.loss:
            if random.random() < 0.004:
                logs = [str(each) for found in self.broker.topics.values() for each in found]
                self._away[random.choice([_COORDINATOR, *logs])] = random.randint(1, 20)
            if random.random() < 0.0005:
                self.broker.expire(random)

    def ask(self, what: str, target: str, work: Callable[[], T], *, most: int = _ATTEMPTS) -> T:
        """Send a request until it is answered; raises what the broker says, or that it has not answered."""
        world = self._world
        if world is None:
            with self._alone:
                found = work()
                self.broker.settle()
                return found
        for _ in range(world.random.randint(1, most)):
            try:
                if not world.step(what, target):
                    return work()  # somebody looks from outside
            except OSError:
                raise refusal(KafkaError._TRANSPORT, retriable=True) from None
            if self._away.get(target, 0) > 0:
                self._away[target] -= 1
                world.sleep(1.0)
                continue
            if world.random.random() >= (0.0 if self.is_calm else self.loss):
                return work()
            match world.random.choice(("lost", "unanswered", "late")):
                case "unanswered":
                    with suppress(KafkaException):
                        work()
                case "late":
                    self._late.append((world.steps + world.random.randint(1, _LATEST), work))
            world.sleep(world.random.choice((0.1, 2.0)))
        raise refusal(KafkaError._TIMED_OUT, retriable=True)

    def rest(self, seconds: float) -> None:
        """Let time pass for whoever waits for nothing in particular."""
        if self._world is not None:
            self._world.sleep(seconds)

    def drawn(self, least: int, most: int) -> int:
        """A number that nobody decides; the largest one outside of the world."""
        return most if self._world is None else self._world.random.randint(least, most)

    def made(
        self,
        kind: type,
        cluster: object,
        heard: object,
        usual: Mapping[str, object],
        role: Mapping[str, Any],
    ) -> SimulatedProducer | SimulatedConsumer | SimulatedAdministrator:
        """A client, as `kafka/clients.py` makes one."""
        match kind.__name__:
            case "Producer":
                return SimulatedProducer(self, role["transactional_id"])
            case "Consumer":
                return SimulatedConsumer(self, role["group_id"], committed=role["isolation_level"] == "read_committed")
        return SimulatedAdministrator(self)

    def installed(self, patch: pytest.MonkeyPatch) -> None:
        """Let production reach this broker, whatever address it asks for."""
        patch.setattr(clients, "_made", self.made)
        patch.setattr(reading, "_idle", {})
        patch.setattr(topics, "_clients", {})
        if (world := self._world) is not None:
            patch.setattr(topics, "Future", futures_of(world))
            for module in (topics, delivery):
                patch.setattr(module, "Thread", threads_of(world))
            patch.setattr(delivery, "Condition", conditions_of(world))
            for clocked in (reading, transactions):
                patch.setattr(clocked, "monotonic", world.clock.monotonic)
            patch.setattr(reading, "_POLL_SECONDS", 1.0)  # fewer looks at a partition without a leader


class SimulatedProducer:
    """A transactional producer."""

    def __init__(self, wire: Wire, identity: str) -> None:
        self._wire = wire
        self._identity = identity
        self._epoch = -1
        self._number = 0
        self._numbers: dict[Log, int] = {}
        self._waiting: list[tuple[Log, Sent, Callable[[KafkaError, None], None]]] = []
        self._room = wire.drawn(1, 20)
        self._error: KafkaException | None = None
        """Why its transaction has failed; it has to be discarded then."""

    def init_transactions(self, timeout: float) -> None:
        broker = self._wire.broker
        self._epoch = self._wire.ask("begin", _COORDINATOR, lambda: broker.begin(self._identity))

    def cluster_id(self, timeout: float) -> str:
        return "simulated"

    def list_topics(self, topic: str, timeout: float) -> SimpleNamespace:
        count = self._wire.ask("describe", topic, lambda: len(self._wire.broker.topics[topic]))
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=dict.fromkeys(range(count)))})

    def begin_transaction(self) -> None:
        self._check()
        self._number += 1

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        *,
        on_delivery: Callable[[KafkaError, None], None],
        headers: Sequence[tuple[str, bytes]],
    ) -> None:
        self._check()
        if len(self._waiting) >= self._room:
            raise BufferError
        logs = self._wire.broker.topics[topic]
        log = logs[crc32(key or b"") % len(logs) if partition < 0 else partition]
        self._waiting.append((log, Sent(value, key, tuple(headers)), on_delivery))

    def poll(self, timeout: float) -> int:
        if timeout:
            self._send()
        return 0

    def flush(self, timeout: float) -> int:
        self._send()
        return len(self._waiting)

    def send_offsets_to_transaction(self, offsets: Sequence[TopicPartition], group: str, timeout: float) -> None:
        self._check()
        marks = {each.topic: (each.offset, each.metadata or "") for each in offsets}
        self._try("mark", _COORDINATOR, lambda: self._wire.broker.mark(*self._transaction, group, marks))
        self._check()

    def commit_transaction(self, timeout: float) -> None:
        self._send()
        self._check()
        self._try("commit", _COORDINATOR, lambda: self._wire.broker.commit(*self._transaction))
        self._check()

    def purge(self, *, blocking: bool) -> None:
        self._waiting.clear()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def _transaction(self) -> tuple[str, int, int]:
        return self._identity, self._epoch, self._number

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _try(self, what: str, target: str, work: Callable[[], object]) -> KafkaException | None:
        """Ask for something of the transaction, which has failed where that fails; gives the error."""
        try:
            self._wire.ask(what, target, work)
        except KafkaException as error:
            self._error = error
            return error
        return None

    def _send(self) -> None:
        """Send what waits, some messages of a partition at a time; each partition keeps its order."""
        while self._waiting and self._error is None:
            log = self._waiting[self._wire.drawn(0, len(self._waiting) - 1)][0]
            mine = [each for each in self._waiting if each[0] is log][: self._wire.drawn(1, 8)]
            first, sent, transaction = self._numbers.get(log, 0), [each[1] for each in mine], self._transaction
            append = partial(self._wire.broker.append, *transaction, log, first, sent)
            if (error := self._try("produce", str(log), append)) is not None:
                for _, _, undelivered in self._waiting:
                    undelivered(error.args[0], None)
                self._waiting.clear()
                return
            self._numbers[log] = first + len(sent)
            for each in mine:
                self._waiting.remove(each)


class SimulatedConsumer:
    """A consumer: of one partition that is assigned to it, or of the marks of a group."""

    def __init__(self, wire: Wire, group: str, *, committed: bool) -> None:
        self._wire = wire
        self._group = group
        self._committed = committed
        self._log: Log | None = None
        self._at = 0

    def committed(self, asked: Sequence[TopicPartition], timeout: float) -> list[TopicPartition]:
        broker = self._wire.broker
        found = self._wire.ask("ask for marks", _COORDINATOR, lambda: broker.marks(self._group, stable=self._committed))
        return [TopicPartition(each.topic, each.partition, *found.get(each.topic, (_NO_OFFSET, ""))) for each in asked]

    def consumer_group_metadata(self) -> str:
        return self._group

    def assign(self, assigned: Sequence[TopicPartition]) -> None:
        (each,) = assigned
        self._log, self._at = self._wire.broker.topics[each.topic][each.partition], each.offset

    def unassign(self) -> None:
        self._log = None

    def close(self) -> None:
        self._log = None

    def consume(self, most: int, timeout: float) -> list[SimulatedMessage]:
        """Some messages, or none; behind the last of them it has passed markers, or will with the next call."""
        log = self._log
        assert log is not None
        count = self._wire.drawn(1, most)
        try:
            found, self._at = self._wire.ask("fetch", str(log), lambda: self._fetched(log, count), most=1)
        except KafkaException:
            found = []
        if not found:
            self._wire.rest(timeout)
        return found

    def _fetched(self, log: Log, most: int) -> tuple[list[SimulatedMessage], int]:
        """Some messages, and where the next are looked for; nothing changes here, for the answer may be lost."""
        end = log.end(committed=self._committed)
        found = list(log.messages(self._at, committed=self._committed))[:most]
        at = found[-1][0] + 1 if found else max(self._at, end)
        return [SimulatedMessage(at, each) for at, each in found], at

    def position(self, asked: Sequence[TopicPartition]) -> list[TopicPartition]:
        (each,) = asked
        return [TopicPartition(each.topic, each.partition, self._at)]


class SimulatedMessage:
    """A message as a consumer gives it."""

    def __init__(self, offset: int, sent: Sent) -> None:
        self._offset = offset
        self._sent = sent

    def error(self) -> None:
        return None

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._sent.value

    def key(self) -> bytes | None:
        return self._sent.key

    def headers(self) -> list[tuple[str, bytes]]:
        return list(self._sent.headers)

    def timestamp(self) -> tuple[int, int]:
        return 1, _STAMP

    def __len__(self) -> int:
        return len(self._sent.value or b"")


class _Answered:
    """The future of something that was asked for."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._found: Any = None
        self._error: KafkaException | None = None
        try:
            self._found = ask()
        except KafkaException as error:
            self._error = error

    def result(self, timeout: float) -> Any:
        if self._error is not None:
            raise self._error
        return self._found


class SimulatedAdministrator:
    """A client that asks for topics and offsets."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def describe_topics(self, asked: Any, *, request_timeout: float) -> dict[str, _Answered]:
        return {topic: _Answered(partial(self._described, topic)) for topic in asked.topic_names}

    def _described(self, topic: str) -> SimpleNamespace:
        found = self._wire.ask("describe", topic, lambda: self._wire.broker.topics[topic])
        return SimpleNamespace(
            topic_id=f"id of {topic}", partitions=[SimpleNamespace(id=each.partition) for each in found]
        )

    def list_offsets(
        self, asked: Mapping[TopicPartition, Any], *, isolation_level: IsolationLevel, request_timeout: float
    ) -> dict[TopicPartition, _Answered]:
        committed = isolation_level == IsolationLevel.READ_COMMITTED
        return {
            each: _Answered(partial(self._offset, each, type(spec).__name__, committed=committed))
            for each, spec in asked.items()
        }

    def _offset(self, asked: TopicPartition, spec: str, *, committed: bool) -> SimpleNamespace:
        log = self._wire.broker.topics[asked.topic][asked.partition]
        found = self._wire.ask("ask for offsets", str(log), lambda: log.end(committed=committed))
        return SimpleNamespace(offset=0 if spec == "EarliestSpec" else found)
