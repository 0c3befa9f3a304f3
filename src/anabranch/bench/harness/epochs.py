"""Queries over files of which each is an epoch, by a trunk and by plain Spark: how long a whole trigger takes.

The first epoch is left out: it pays for the start of the query.
On both sides a trigger is everything from one epoch to the next: looking for files, planning, the job, the answers on
the disk and the logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from shutil import rmtree
from statistics import mean
from tempfile import TemporaryDirectory
from time import perf_counter

from anabranch.bench.workloads.photons import Rows, Spark
from anabranch.engine.reading import read_stream
from anabranch.language import check, parse
from anabranch.law import evaluate
from anabranch.spark.epoch.finite import Outcome, run_queries
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.spark.session import start_session
from anabranch.storage import Where
from anabranch.stream.limits import Limits
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings


@contextmanager
def workshop() -> Iterator[tuple[Spark, Path]]:
    """A Spark of the bench's own, and an empty folder."""
    spark = start_session(memory="2g", name="bench")
    try:
        with TemporaryDirectory(prefix="anabranch-bench-") as folder:
            yield spark, Path(folder)
    finally:
        spark.stop()


_NO_LIMIT = 1 << 40


def of_trunk(
    spark: Spark,
    sources: Sequence[Source],
    queries: Mapping[str, str],
    folder: Where,
    *,
    accents: bool = True,
    documents: Mapping[str, DocumentSource] | None = None,
) -> tuple[list[float], Outcome]:
    """The seconds of each trigger but the first of a trunk with these queries, and what it answered.

    Streams that are read together have as many files each, and so have the partitions of a stream.
    """
    ends: list[float] = []
    outcome = run_queries(
        SparkHost(spark),
        sources,
        queries,
        folder,
        Settings(accents=accents, epoch_bytes=_NO_LIMIT, epoch_files=1),
        documents=documents,
        on_progress=lambda _: ends.append(perf_counter()),
    )
    partitions = [source.files_of(each) for source in sources for each in source.partitions]
    assert all(len(ends) == len(files) for files in partitions), "an epoch is a file of each partition"
    return [end - begin for begin, end in pairwise(ends)], outcome


def check_with_law(spark: Spark, sources: Sequence[Source], query: str, folder: Path) -> str:
    """The answer of a trunk over streams that are small; an error where it is not that of the law."""
    _, outcome = of_trunk(spark, sources, {"checked": query}, folder)
    found = "".join(outcome.answers["checked"])
    given = {source.name: read_stream(source, Limits()).input for source in sources}
    expected = evaluate(check(parse(query), query).query, given).text
    assert found == expected, f"answered is {found[:200]}..., and the law says {expected[:200]}..."
    return found


def of_spark(rows: Rows, folder: Path, files: int) -> float:
    """The mean seconds of a trigger but the first of a query of plain Spark that appends its rows to Parquet."""
    answer = rows.writeStream.format("parquet").outputMode("append")
    answer = answer.option("checkpointLocation", str(folder / "checkpoint")).option("path", str(folder / "out"))
    run = answer.trigger(availableNow=True).start()
    run.awaitTermination()
    # A stateful query of Spark ends with an epoch without rows, which closes what the others have left open.
    triggers = [each["durationMs"]["triggerExecution"] for each in run.recentProgress if each["numInputRows"]]
    assert len(triggers) == files, "a trigger is a file of each stream"
    return float(mean(triggers[1:])) / 1_000


class Trials:
    """The seconds of an epoch, ours and Spark's, each run in a fresh folder that is removed behind it."""

    def __init__(self, spark: Spark, folder: Path) -> None:
        self._spark = spark
        self._fresh = (folder / str(number) for number in count())

    def ours(
        self,
        sources: Sequence[Source],
        queries: Mapping[str, str],
        *,
        accents: bool = True,
        documents: Mapping[str, DocumentSource] | None = None,
    ) -> float:
        """The seconds of an epoch of a trunk with these queries."""
        folder = next(self._fresh)
        seconds, _ = of_trunk(self._spark, sources, queries, folder, accents=accents, documents=documents)
        rmtree(folder)
        return mean(seconds)

    def theirs(self, rows: Rows, files: int) -> float:
        """The seconds of an epoch of a query of plain Spark."""
        folder = next(self._fresh)
        seconds = of_spark(rows, folder, files)
        rmtree(folder)
        return seconds
