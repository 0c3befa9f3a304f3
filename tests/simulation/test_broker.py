"""The simulated broker keeps what Kafka promises, and the world passes the time of those who wait for it."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest
from confluent_kafka import KafkaException

from simulation.broker import Broker, Log, Sent
from simulation.world import Process, World

ONE, TWO = Sent(b"one"), Sent(b"two")
GROUP = {"t": (5, "note")}


def seen(log: Log, *, committed: bool = True) -> list[bytes | None]:
    return [each.value for _, each in log.messages(0, committed=committed)]


def test_a_transaction_is_seen_as_a_whole() -> None:
    """Its messages and its marks are there when their markers are, and offsets behind it have a gap."""
    broker = Broker({"t": 1, "u": 1})
    t, u = broker.topics["t"][0], broker.topics["u"][0]
    epoch = broker.begin("me")
    for log in (t, u):
        broker.append("me", epoch, 1, log, 0, [ONE])
    broker.mark("me", epoch, 1, "me", GROUP)
    broker.commit("me", epoch, 1)
    assert (seen(t), seen(t, committed=False), t.stable) == ([], [b"one"], 0)
    with pytest.raises(KafkaException, match="UNSTABLE_OFFSET_COMMIT"):
        broker.marks("me", stable=True)
    random = Random(1)
    for _ in range(3):
        broker.move(random)
    assert (seen(t), seen(u), t.stable) == ([b"one"], [b"one"], 2)
    assert broker.marks("me", stable=True) == GROUP


def test_who_begins_ends_what_was_before() -> None:
    """What was open is aborted, what was decided is completed, and the one before is refused from then on."""
    broker = Broker({"t": 1})
    log = broker.topics["t"][0]
    first = broker.begin("me")
    broker.append("me", first, 1, log, 0, [ONE])
    broker.commit("me", first, 1)
    second = broker.begin("me")
    assert seen(log) == [b"one"]
    broker.append("me", second, 1, log, 0, [TWO])
    broker.mark("me", second, 1, "me", GROUP)
    third = broker.begin("me")
    assert (seen(log), broker.marks("me", stable=True), log.stable) == ([b"one"], {}, 4)
    with pytest.raises(KafkaException, match="_FENCED"):
        broker.commit("me", second, 1)
    with pytest.raises(KafkaException, match="_FENCED"):
        broker.append("me", second, 1, log, 1, [TWO])
    broker.expire(Random(1))  # nothing is open
    broker.append("me", third, 1, log, 0, [TWO])
    broker.expire(Random(1))
    with pytest.raises(KafkaException, match="_FENCED"):
        broker.commit("me", third, 1)
    assert seen(log) == [b"one"]


def test_what_comes_twice_or_too_late_does_not_count() -> None:
    """Messages are known by their numbers, a commit by its transaction; one that is ended takes no more."""
    broker = Broker({"t": 1})
    log, epoch = broker.topics["t"][0], broker.begin("me")
    for _ in range(2):
        broker.append("me", epoch, 1, log, 0, [ONE])
        broker.commit("me", epoch, 1)
        broker.commit("me", epoch, 1)
    broker.append("me", epoch, 1, log, 1, [TWO])
    broker.mark("me", epoch, 1, "me", GROUP)
    broker.settle()
    assert (seen(log), broker.marks("me", stable=True)) == ([b"one"], {})
    with pytest.raises(KafkaException, match="OUT_OF_ORDER"):
        broker.append("me", epoch, 2, log, 7, [TWO])


def test_what_others_write_is_at_the_same_offsets_always() -> None:
    """An aborted transaction takes as many as a committed one, and readers stop in front of one that is not settled."""
    broker = Broker({"t": 1})
    broker.lay("t", 0, [ONE], committed=False)
    broker.lay("t", 0, [ONE, TWO], committed=True)
    log = broker.topics["t"][0]
    assert (log.stable, len(log.records)) == (0, 5)
    broker.settle()
    assert [*log.messages(0, committed=True)] == [(2, ONE), (3, TWO)]
    assert log.stable == 5


def test_time_passes_where_all_wait() -> None:
    """Two fibers wait for so long; the one that waits less goes on first, and no step has to be taken for it."""
    world, told = World(1), list[tuple[str, bool]]()
    process = Process("waiting")
    begun = world.clock.monotonic()

    def waiting(name: str, seconds: float) -> None:
        told.append((name, world.wait(lambda: ("short", False) in told and name == "heard", seconds)))

    fibers = [world.spawn(process, partial(waiting, *each)) for each in WAITS]
    world.wait(lambda: all(fiber.done for fiber in fibers))
    assert told == [("short", False), ("heard", True), ("long", False)]
    assert 60 <= world.clock.monotonic() - begun < 61


WAITS = (("long", 60.0), ("short", 1.0), ("heard", 90.0))
