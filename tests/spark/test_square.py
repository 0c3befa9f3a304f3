"""The commuting square of the accents paper, figure 3, on Spark: canonical(query(S)) = query(canonical(S)) (LAWS 4.1).

Trunks with a dozen random accented streams and hundreds of random queries over them, in epochs of several sizes: an
accent stands within an epoch, at its border, or between the ranges of one.
Every run has other streams and other queries; `ANABRANCH_SEED` gives those of another run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from algebra import evolving as algebra_evolving
from anabranch.spark.epoch.finite import run_queries
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.spark.intake.ranges import SMALLEST_RANGE
from anabranch.stream.settings import Settings
from evolving.square import EXACT
from evolving.worlds import AS_THEY_COME, Given, World
from mass import Mass
from spark.endless import run_ended


@dataclass(frozen=True, slots=True)
class Trial:
    """How one trunk serves its worlds."""

    shards: int
    parts: int
    """In about so many epochs the streams are read."""
    gap: int = 0
    """How large an empty line behind each element may be, in the first world: so that files have ranges, and there are
    several tasks; half of that in the next, and so on.
    """

    def __str__(self) -> str:
        return f"{self.shards}-shards-{self.parts}-epochs"


WORLDS = 8
QUERIES = 63
"""Of each world; with the trials below 2,016 cases together."""
TRIALS = (
    Trial(shards=3, parts=3),
    Trial(shards=2, parts=6),
    Trial(shards=1, parts=2),
    Trial(shards=2, parts=1, gap=SMALLEST_RANGE // 2),
)


@pytest.mark.parametrize("trial", TRIALS, ids=str)
def test_the_square_on_spark(
    spark: SparkSession, mass: Mass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trial: Trial
) -> None:
    """Each answer is the reference's to the byte, and in canonical form that of the canonical streams."""
    monkeypatch.setattr(algebra_evolving, "MAPS", EXACT)
    random = Random(f"{mass.seed} {trial}")
    gaps = (trial.gap >> number for number in range(mass.amount(WORLDS, budget=2)))
    worlds = [World.lay(tmp_path, str(number), random, QUERIES, gap) for number, gap in enumerate(gaps)]
    sources = [source for world in worlds for source in world.sources.values()]
    queries = {name: text for world in worlds for name, text in world.texts.items()}
    size = sum(source.size for source in sources)

    outcome = run_queries(
        SparkHost(spark),
        sources,
        queries,
        tmp_path / "work",
        Settings(epoch_bytes=size // trial.parts + 1, shards=trial.shards),
    )

    answers = {name: outcome.answers[name].text() for name in queries}
    given = Given.of(answers, outcome.aborted, outcome.dead_letters())
    squares = sum(world.check(given) for world in worlds)
    assert outcome.progress.epochs >= trial.parts // 2
    assert squares > len(queries) // 2


@pytest.mark.parametrize("trial", TRIALS, ids=str)
def test_the_square_of_what_comes_as_it_comes(
    spark: SparkSession, mass: Mass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trial: Trial
) -> None:
    """Joins by keys and sets of several streams, shared, in a trunk that does not wait for the end."""
    monkeypatch.setattr(algebra_evolving, "MAPS", EXACT)
    random = Random(f"{mass.seed} as they come {trial}")
    gaps = (trial.gap >> number for number in range(mass.amount(WORLDS, budget=2)))
    worlds = [World.lay(tmp_path, str(number), random, QUERIES, gap, AS_THEY_COME) for number, gap in enumerate(gaps)]
    sources = [source for world in worlds for source in world.sources.values()]
    queries = {name: text for world in worlds for name, text in world.texts.items()}
    size = sum(source.size for source in sources)

    outcome = run_ended(
        SparkHost(spark),
        sources,
        queries,
        tmp_path / "work",
        Settings(epoch_bytes=size // trial.parts + 1, shards=trial.shards),
    )

    given = Given.of(outcome.answers, outcome.aborted, outcome.dead)
    squares = sum(world.check(given) for world in worlds)
    assert squares > len(queries) // 2
