"""Queries over files of which each is an epoch, by a trunk and by plain Spark: how long a whole trigger takes.

The first epoch is left out: it pays for the start of the query.
On both sides a trigger is everything from one epoch to the next: looking for files, planning, the job, the answers on
the disk and the logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean
from time import perf_counter

from anabranch.bench.workloads.photons import Rows, Spark
from anabranch.spark.epoch.finite import Outcome, run_queries
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings

_NO_LIMIT = 1 << 40


def of_trunk(
    spark: Spark,
    sources: Sequence[Source],
    queries: Mapping[str, str],
    folder: Path,
    shards: int | None = None,
    *,
    accents: bool = True,
) -> tuple[list[float], Outcome]:
    """The seconds of each trigger but the first of a trunk with these queries, and what it answered.

    Streams that are read together have as many files each.
    """
    ends: list[float] = []
    outcome = run_queries(
        spark,
        sources,
        queries,
        folder,
        Settings(shards=shards, accents=accents, epoch_bytes=_NO_LIMIT, epoch_files=1),
        on_progress=lambda _: ends.append(perf_counter()),
    )
    assert all(len(ends) == len(source.files) for source in sources), "an epoch is a file of each stream"
    return [end - begin for begin, end in pairwise(ends)], outcome


def of_spark(rows: Rows, folder: Path, files: int) -> float:
    """The mean seconds of a trigger but the first of a query of plain Spark that appends its rows to Parquet."""
    answer = rows.writeStream.format("parquet").outputMode("append")
    answer = answer.option("checkpointLocation", str(folder / "checkpoint")).option("path", str(folder / "out"))
    run = answer.trigger(availableNow=True).start()
    run.awaitTermination()
    # Where Spark remembers, an epoch without rows comes last and closes what the others have left open.
    triggers = [each["durationMs"]["triggerExecution"] for each in run.recentProgress if each["numInputRows"]]
    assert len(triggers) == files, "a trigger is a file of each stream"
    return float(mean(triggers[1:])) / 1_000
