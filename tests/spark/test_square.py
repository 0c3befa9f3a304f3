"""The commuting square of the accents paper, figure 3, on Spark: canonical(query(S)) = query(canonical(S)) (LAWS 4.1).

Trunks with a dozen random accented streams and hundreds of random queries over them, in epochs of several sizes: an
accent stands within an epoch, at its border, or between the ranges of one.
`ANABRANCH_SEED` gives other streams and other queries.
"""

from __future__ import annotations

import os
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
from evolving.worlds import Given, World

SEED = int(os.environ.get("ANABRANCH_SEED", "1"))


@dataclass(frozen=True, slots=True)
class Trial:
    """What one trunk serves, and how."""

    worlds: int
    queries: int
    """Of each world."""
    shards: int
    parts: int
    """In about so many epochs the streams are read."""
    gap: int = 0
    """How large an empty line behind each element may be, in the first world: so that files have ranges, and there are
    several tasks; half of that in the next, and so on.
    """

    def __str__(self) -> str:
        return f"{self.worlds * self.queries}-cases-{self.parts}-epochs"


TRIALS = (  # 2,016 cases together
    Trial(worlds=8, queries=63, shards=3, parts=3),
    Trial(worlds=8, queries=63, shards=2, parts=6),
    Trial(worlds=8, queries=63, shards=1, parts=2),
    Trial(worlds=8, queries=63, shards=2, parts=1, gap=SMALLEST_RANGE // 2),
)


@pytest.mark.parametrize("trial", TRIALS, ids=str)
def test_the_square_on_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trial: Trial
) -> None:
    """Each answer is the reference's to the byte, and in canonical form that of the canonical streams."""
    monkeypatch.setattr(algebra_evolving, "MAPS", EXACT)
    random = Random(f"{SEED} {trial}")
    gaps = (trial.gap >> number for number in range(trial.worlds))
    worlds = [World.lay(tmp_path, str(number), random, trial.queries, gap) for number, gap in enumerate(gaps)]
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
