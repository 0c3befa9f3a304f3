"""Killed between topics, whoever it is, driver, JVM, tasks or broker: each result is in its topic once."""

from __future__ import annotations

import faulthandler
import random
from collections import Counter
from itertools import cycle, islice
from pathlib import Path

import pytest

from anabranch.spark.checkpoint.crash import POINTS, TASK_POINTS, TOPIC_POINTS
from brokers import started, stop
from faults.harness import Kill, Machine, await_end, killed_run, started_run, watch
from faults.topics import TopicFeed, TopicSite
from mass import Mass

EPOCH_BYTES = 4_000
ITEMS = 60
"""Items of each partition in a part: good for some epochs."""
BROKER = "broker at random"
KILLS: tuple[Kill | str, ...] = (
    BROKER,
    Kill("driver", TOPIC_POINTS[1]),
    Kill("jvm"),
    Kill("driver", TOPIC_POINTS[0]),
    BROKER,
    Kill("group"),
    *(Kill("driver", point) for point in POINTS),
    *(Kill("task", point) for point in TASK_POINTS),
    Kill("driver"),
)


@pytest.mark.kills
@pytest.mark.spark
def test_no_kill_shows_in_a_topic(mass: Mass, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Read as committed, topics hold what an undisturbed run would have written, and this is the reference's answer."""
    faulthandler.cancel_dump_traceback_later()  # many processes, of which each has its own limit
    count = mass.amount(25, budget=2)
    rng = random.Random(mass.seed)
    feed = TopicFeed.of(count + 1, mass.seed, ITEMS)
    broker = started(tmp_path / "broker")
    kills: Counter[str] = Counter()
    try:
        site, machine = TopicSite.make(tmp_path / "site", broker), Machine(tmp_path / "classes.jsa")
        for part, kill in enumerate(islice(cycle(rng.sample(KILLS, len(KILLS))), count)):
            feed.lay(site, [part])
            site.configure(rng.choice((EPOCH_BYTES // 2, EPOCH_BYTES)), rng.choice((1, 2, 3)))
            if isinstance(kill, Kill):
                killed_run(machine, site, kill, rng)
            else:
                kill_broker(machine, site, rng)
            kills[str(kill)] += 1
        feed.lay(site, [count])
        site.configure(4 * EPOCH_BYTES, shards=2)
        machine.run_to_the_end(site)
        messages = site.check(law=site.law())
        assert site.epochs() == list(range(len(site.epochs())))
    finally:
        stop(broker.folder)
    with capsys.disabled():
        print(
            f"\nbetween topics: {kills.total()} kills, {len(site.epochs())} epochs, {messages} messages, no difference"
        )
        print("\n".join(f"  {number:3} {kind}" for kind, number in sorted(kills.items())))


def kill_broker(machine: Machine, site: TopicSite, rng: random.Random) -> None:
    """Kill the broker while a run is at work, and bring it back: the run waits, and goes on to the end by itself."""
    process = started_run(machine, site, rng)
    site.broker.kill()
    started(site.broker.folder)
    watch(process, site)
    assert process.returncode == 0, (site.folder / "log").read_text(errors="replace")[-3000:]
    await_end(process.pid)
