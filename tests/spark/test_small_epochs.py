"""Epochs that are small: one task does all of it, and what follows an epoch waits for no other."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark import RDD
from pyspark.sql import SparkSession

from anabranch.errors import StateError
from anabranch.spark.epoch import trunk as epochs
from anabranch.spark.hosts import spark_host
from anabranch.spark.sinks import Console, Files
from anabranch.stream.settings import Settings
from spark.trunks import ALL, Site, items, lines

_PATIENCE = 60.0
_THREES = '<r>{ for $w in stream("s")/root/p |count 3 step 2| return <w>{ $w }</w> }</r>'
_SUMS = '<r>{ for $w in stream("s")/root/p |count 4 step 1| return <sum>{ sum($w) }</sum> }</r>'


@pytest.fixture
def site(spark: SparkSession, tmp_path: Path) -> Site:
    found = Site(spark, tmp_path)
    found.stream("s", "in")
    return found


@pytest.mark.parametrize(("short", "staged"), [(_PATIENCE, 1), (-1.0, 8)])
def test_one_task_answers_what_stages_answer(
    site: Site, monkeypatch: pytest.MonkeyPatch, short: float, staged: int
) -> None:
    """Only the first epoch is divided into stages, of which nobody knows how long they take; or all of them are."""
    shuffles: list[int] = []
    shuffled = RDD.partitionBy

    def counted(self: RDD[Any], shards: int, *rest: Any) -> RDD[Any]:
        shuffles.append(shards)
        return shuffled(self, shards, *rest)

    monkeypatch.setattr(RDD, "partitionBy", counted)
    monkeypatch.setattr(spark_host, "_SHORT_SECONDS", short)
    site.settings = Settings(trigger_ms=20, shards=2)
    site.subscribe(all=ALL, threes=_THREES, sums=_SUMS)
    site.write("in/a", lines(0, 40))
    site.run(epoch_bytes=45)
    assert len(site.seen) == 8
    assert shuffles == [2] * staged
    for name in site.wanted.subscriptions:
        assert site.answer(name) == site.law(name)


class _SlowConsole(io.StringIO):
    """A console that takes nothing before something has happened."""

    def __init__(self, until: Event) -> None:
        super().__init__()
        self._until = until
        self.waited_in_vain = False

    def write(self, text: str) -> int:
        self.waited_in_vain |= not self._until.wait(_PATIENCE)
        return super().write(text)


def test_sinks_move_while_the_next_epoch_is_at_work(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that waits for the next epoch's job gets all; the listener hears of an epoch when sinks have it."""
    worked = Event()
    console = _SlowConsole(worked)
    shown_when_heard: list[str] = []

    def point(name: str, epoch: int) -> None:
        if (name, epoch) == ("job-done", 1):
            worked.set()

    monkeypatch.setattr(epochs, "point", point)
    site.subscribe(all=ALL)
    site.wanted = replace(site.wanted, sinks={"all": Console(console)})
    site.write("in/a", lines(0, 10))
    with site.trunk() as trunk:
        trunk._listener = replace(trunk._listener, epoch=lambda _: shown_when_heard.append(console.getvalue()))
        trunk.want(replace(site.wanted, epoch_bytes=45))
        trunk.start(once=True)
        trunk.wait()
        assert trunk.last == 1
    assert not console.waited_in_vain
    every = "".join(f"all: <p>{number}</p>\n" for number in range(10))
    assert shown_when_heard == [every[: len(every) // 2], every]


def test_a_sink_that_cannot_follow_ends_the_run(site: Site) -> None:
    """Also where no other epoch comes; when the sink can, the next run gives it what it has missed."""
    out = site.top / "all.xml"
    site.subscribe(all=ALL)
    site.wanted = replace(site.wanted, sinks={"all": Files(out)})
    site.write("in/a", lines(0, 10))
    with site.at_work() as trunk:
        assert trunk.beyond(-1)
        held = out.read_text()
        out.write_text("")
        site.append("in/a", lines(10, 20))
        with pytest.raises(StateError, match="has become shorter"):
            trunk.wait()
    out.write_text(held)
    site.run()
    assert out.read_text() == items(0, 20).removesuffix("</all>")
