"""Branches on Spark: whatever the epochs, shards, partitions and forms of the input, the answers are the law's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.spark.epoch.finite import Outcome, run_queries
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.photons import photons
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings
from papers import INTERVAL_JOIN, SHARING
from spark.test_window_times import timed_case

pytestmark = pytest.mark.spark


def law(sources: Sequence[Source], queries: Mapping[str, str]) -> dict[str, str]:
    """What the reference answers."""
    inputs = Inputs(tuple(sources))
    prepared = [prepare(name, text, inputs, "reference") for name, text in queries.items()]
    with answering(prepared, inputs) as run:
        return {name: "".join(pieces) for name, pieces in run.answers.items()}


def answers(outcome: Outcome) -> dict[str, str]:
    return {name: answer.text() for name, answer in outcome.answers.items()}


def photon_files(folder: Path, name: str, count: int, seed: int, partitions: int) -> Source:
    """A stream of photons as lines, dealt out in turns to some partitions, each a file; its time is declared."""
    items = list(photons(count, seed))
    paths = []
    for number in range(partitions):
        path = folder / f"{name}-{number}"
        path.write_text("".join(f"{item}\n" for item in items[number::partitions]))
        paths.append(path)
    return Source(name, paths[0], "lines", root="photons", time=ItemPath.parse("det_time"), more=tuple(paths[1:]))


@pytest.mark.parametrize(("partitions", "shards"), [(1, 2), (3, 7)])
def test_the_papers_queries_give_what_the_law_says(
    spark: SparkSession, tmp_path: Path, partitions: int, shards: int
) -> None:
    """q1 to q8 and the interval join over photons, with epochs of some random size."""
    sources = [
        photon_files(tmp_path, name, 80, seed, partitions)
        for seed, name in enumerate(("photons", "photon1", "photon2"))
    ]
    queries = {**SHARING, "interval": INTERVAL_JOIN}
    size = Random(partitions).randrange(4_000, 9_000)
    outcome = run_queries(
        SparkHost(spark), sources, queries, tmp_path / "work", Settings(epoch_bytes=size, shards=shards)
    )
    assert answers(outcome) == law(sources, queries)
    assert outcome.progress.epochs > 3


@pytest.mark.parametrize(("number", "partitions"), [(11, 1), (18, 3)])
def test_windows_and_sessions_over_times(spark: SparkSession, tmp_path: Path, number: int, partitions: int) -> None:
    """Windows, bounds, sessions and joins over dateTimes and units, in a few epochs."""
    case = timed_case(Random(number), partitions)
    source = case.declared.source(tmp_path / "in", case.parts)
    size = source.size
    settings = Settings(epoch_bytes=size // 4, shards=2)
    outcome = run_queries(SparkHost(spark), [source], case.queries, tmp_path / "work", settings)
    found = answers(outcome)
    assert found == law([source], case.queries)
    assert all(len(found[name]) > 150 for name in ("windows", "sessions", "sessions by user"))
