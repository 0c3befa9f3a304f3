"""Edited streams that evolve, on Spark, and on an engine that is killed again and again (LAWS 4.9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from anabranch import Engine
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch import trunk as epochs
from anabranch.spark.epoch.finite import run_queries
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.stream.settings import Settings
from history.evolving import QUERIES, SENSORS, Pair, World
from history.hosting import replayed
from history.test_updates_evolving import by_law, over, pair, renamed
from history.undoing import in_fractions, undone
from mass import sized
from spark.trunks import Killed


@pytest.mark.spark
def test_random_timelines_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The display after every moment is that of the law, and with its accents undone that of the canonical stream."""
    numbers = range(7_000, 7_000 + sized(2, fast=1) * len(QUERIES))
    pairs = {number: pair(tmp_path, number) for number in numbers}
    texts = {number: QUERIES[number % len(QUERIES)] for number in numbers}
    work = tmp_path / "work"
    work.mkdir()
    outcome = run_queries(
        SparkHost(spark),
        [each.accented for each in pairs.values()],
        {f"q{number}": over(text, number) for number, text in texts.items()},
        work,
        Settings(epoch_bytes=6_000, shards=3),
    )
    assert outcome.progress.epochs > 1
    log = AnswerLog(Checkpoint.at(work))
    for number, each in pairs.items():
        due, _, _ = by_law(texts[number], renamed(each.canonical))
        shown, why, _ = by_law(texts[number], renamed(each.accented))
        assert replayed(log, f"q{number}") == shown, (number, texts[number])
        assert (why is not None) is (f"q{number}" in outcome.aborted)
        found, meant = undone(log, f"q{number}"), in_fractions(due)
        assert found == (meant[: len(found)] if why else meant), (number, texts[number])


@pytest.mark.mass
def test_no_kill_shows(tmp_path: Path) -> None:
    """An engine dies in one epoch after the other, behind each of its steps: early and late displays are as without.

    Those that were there from the start show what the law shows, in units that have changed.
    """
    world = World(Random(2), only_all=True)
    world.write(12)
    world.only_all = False
    world.write(12)
    given = Pair.of(tmp_path, "u", [world])
    asked = {"past": QUERIES[0], "all": QUERIES[1], "sums": QUERIES[3]}
    kills: set[tuple[str, int, bool]] = set()

    def answers(folder: Path, *, dying: bool) -> dict[str, str]:
        (folder / "in").mkdir(parents=True)
        found: dict[str, str] = {}
        for late in (False, True):
            lines = world.accented[12:] if late else world.accented[:12]
            (folder / f"in/{late:d}").write_text("".join(f"{line}\n" for line in lines))
            queries = {**asked, **({f"late {name}": text for name, text in asked.items()} if late else {})}
            while not found or late is not ("late all" in found):
                found = run(folder, queries, partial(die, late) if dying else live)
        return found

    def die(late: bool, point: str, epoch: int) -> None:
        if (point, epoch, late) not in kills:
            kills.add((point, epoch, late))
            raise Killed

    def live(point: str, epoch: int) -> None:
        pass

    undisturbed = answers(tmp_path / "undisturbed", dying=False)
    assert answers(tmp_path / "killed", dying=True) == undisturbed
    assert len(kills) > 20
    for name, text in asked.items():
        due, _, _ = by_law(text, given.accented)
        assert undisturbed[name] == due[-1][1]
    assert undisturbed["all"] != by_law(asked["all"], given.accented, "absorb")[0][-1][1]
    assert undisturbed["late all"] == undisturbed["all"]  # both have changed to the present units
    assert undisturbed["late sums"] != undisturbed["sums"]  # these stay in those of their starts


def run(folder: Path, queries: Mapping[str, str], point: Callable[[str, int], None]) -> dict[str, str]:
    """What an engine answers over what is there; nothing where it is killed at a point of an epoch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epochs, "point", point)
        try:
            with Engine(local=True, checkpoint=folder / "state", once=True, epoch_bytes=300) as engine:
                domains = {"s": SENSORS}
                engine.stream("u", folder / "in", format="lines", root="r", time="w", updates=True, domains=domains)
                found = [engine.subscribe(text, name) for name, text in queries.items()]
                engine.wait()
                return {each.name: each.answer() for each in found}
        except Killed:
            return {}
