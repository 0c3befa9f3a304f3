"""Spark as the host of trunks: a streaming query triggers epochs, and an epoch is a plain job.

The jobs do not use Spark's batch: a batch is planned anew for each epoch, its ranges pass through one more Python
process, and each of its stages costs a multiple of the work in a small epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

from py4j.protocol import Py4JError
from pyspark import RDD, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from anabranch.errors import AnabranchError
from anabranch.law.calls import PythonFunction
from anabranch.spark import faults, garbage
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.cluster.shared import SharedRecord
from anabranch.spark.cluster.workers import check_shared, is_remote, ship_functions
from anabranch.spark.epoch.job import Job, Report, SentReport
from anabranch.spark.epoch.stages import answer_at_once
from anabranch.spark.epoch.task import answer_ranges, send_ranges
from anabranch.spark.evolution.rerun import run_evolving, search, search_ranges, searched_first
from anabranch.spark.intake import ranges
from anabranch.spark.intake import source as intake
from anabranch.spark.intake.ranges import Range
from anabranch.spark.plan.branches import branches_of
from anabranch.spark.session import jvm_of
from anabranch.spark.state.shard import SHARD_SEQUENCE, answer_shards, pass_shards
from anabranch.storage import Location

_LOCAL_SEARCH_BYTES = 64 << 20
"""Bytes that one process searches in some hundredths of a second."""
_SHORT_SECONDS = 0.05
"""Seconds of branch work that take less time than another stage of Spark."""

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")
_Mapping: TypeAlias = Callable[[Iterable[_Given]], Iterator[_Made]]
_Tasks: TypeAlias = Sequence[Sequence[Range]]
"""The ranges of an epoch, by task."""


def pool_of(checkpoint: Checkpoint) -> str:
    """The scheduler pool of a trunk's jobs."""
    return f"trunk {checkpoint.folder}"


@dataclass(frozen=True, slots=True)
class SparkHost:
    """A session of Spark."""

    session: SparkSession

    @property
    def cores(self) -> int:
        return self.session.sparkContext.defaultParallelism

    @property
    def process(self) -> int:
        return jvm_of(self.session)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """Exceptions of Spark calls; the last is raised when its JVM is gone."""
        return (PySparkException, Py4JError, ConnectionError)

    def translated(self, error: Exception) -> AnabranchError:
        return faults.translated(error)

    def stages(self, record: Location, functions: Iterable[PythonFunction]) -> SparkStages:
        """On a cluster, workers get the functions' modules, and are refused where they do not see the checkpoint."""
        if not is_remote(self.session):
            return SparkStages(self.session.sparkContext)
        shared = SharedRecord.of(record)
        try:
            ship_functions(self.session, functions)
            check_shared(self.session, shared)
        except self.errors as error:
            raise self.translated(error) from error
        return SparkStages(self.session.sparkContext, shared)

    def enter(self, checkpoint: Checkpoint) -> None:
        self.session.sparkContext.setLocalProperty("spark.scheduler.pool", pool_of(checkpoint))

    def start(self, checkpoint: Checkpoint, epoch: Callable[[int], None], trigger_ms: int | None) -> StreamingQuery:
        """Nobody reads Spark's batch: an epoch computes its ranges from the offsets that Spark has logged."""

        def run_batch(_: DataFrame, number: int) -> None:
            epoch(number)

        with _python_of_driver(self.session.sparkContext):
            self.session.dataSource.register(intake.RangeSource)
        self.enter(checkpoint)
        where = {"checkpoint": str(checkpoint.folder), "scratch": str(checkpoint.scratch)}
        ranges = self.session.readStream.format(intake.NAME).options(**where).load()
        writer = ranges.writeStream.foreachBatch(run_batch).option("checkpointLocation", str(checkpoint.spark))
        trigger = {"availableNow": True} if trigger_ms is None else {"processingTime": f"{trigger_ms} milliseconds"}
        try:
            return writer.trigger(**trigger).start()
        except self.errors as error:
            raise self.translated(error) from error


class SparkStages:
    """Runs the jobs of one trunk; it keeps the time of the last branch work."""

    def __init__(self, context: SparkContext, shared: SharedRecord | None = None) -> None:
        """`shared` is what workers of a cluster must see."""
        self._context = context
        self._shared = shared
        self._branch_seconds: float | None = None
        """Seconds of branch work in the latest epoch that had some."""

    def run(self, job: Job, found: Sequence[Range], shards: int) -> tuple[Job, Sequence[Report]]:
        """Run the job of an epoch, as a rule once; where accents come in between, see `spark/evolution/rerun.py`."""
        by_task = list(ranges.tasks(found))
        return run_evolving(job, partial(self._search, by_task), partial(self._run, by_task, shards))

    def _search(self, tasks: _Tasks, job: Job) -> list[Report]:
        """Search an epoch for events; a small one in the driver, sooner than Spark starts a job."""
        found = [each for task in tasks for each in task if each.stream in searched_first(job)]
        if sum(each.size for each in found) <= _LOCAL_SEARCH_BYTES:
            return [search(job, found)]
        return [report for _, report in _collected(self._mapped(self._spread(tasks), partial(search_ranges, job)))]

    def _run(self, tasks: _Tasks, shards: int, job: Job) -> list[Report]:
        """Run the tasks of an epoch.

        Branches need a second stage, in which each shard gets its rows; queries in strands need a third.
        An epoch that one task can finish in less time than a stage takes is run as one task.
        """
        branches = branches_of(job.plan, job.functions)
        if not tasks:
            return []
        if not branches:
            return [report for _, report in _collected(self._mapped(self._spread(tasks), partial(answer_ranges, job)))]
        strands = any(each.is_braid for each in branches)
        short = self._branch_seconds is not None and self._branch_seconds <= _SHORT_SECONDS
        if len(tasks) == 1 and (short or shards == 1):
            reports = _collected(self._mapped(self._spread(tasks), partial(answer_at_once, job, strands)))
        else:
            places = _places(each.shard(job.plan.load()) for each in branches)
            given = len(places), partial(_place, places)
            sent = self._mapped(self._spread(tasks), partial(send_ranges, job)).partitionBy(*given)
            if strands:
                sent = self._mapped(sent, partial(pass_shards, job)).partitionBy(*given)
            reports = _collected(self._mapped(sent, partial(answer_shards, job)))
        self._branch_seconds = sum(report.cpu for sequence, report in reports if sequence >= SHARD_SEQUENCE)
        return [report for _, report in reports]

    def _spread(self, tasks: _Tasks) -> RDD[Sequence[Range]]:
        return self._context.parallelize(tasks, len(tasks))

    def _mapped(self, given: RDD[_Given], function: _Mapping[_Given, _Made]) -> RDD[_Made]:
        """Map a function over the partitions of an RDD, in Spark's Python workers."""
        return given.mapPartitions(partial(_as_task, self._shared, function))


def _as_task(
    shared: SharedRecord | None, function: _Mapping[_Given, _Made], given: Iterable[_Given]
) -> Iterator[_Made]:
    """Run a function as a task, in a process whose garbage collections are bounded (`spark/garbage.py`)."""
    garbage.here.begin_task()
    if shared is not None:
        shared.check()
    return function(given)


def _places(shards: Iterable[int]) -> dict[int, int]:
    """By shard with branches: its place among those.

    A shard without branches has no task.
    It would do nothing but take one of Spark's Python processes, in no certain order, so that a busy shard is given
    another process than before, which has to read its state.
    """
    return {shard: place for place, shard in enumerate(sorted(set(shards)))}


def _place(places: Mapping[int, int], shard: int) -> int:
    """The place of a shard's rows; reports go with those of the first."""
    return places.get(shard, 0)


@contextmanager
def _python_of_driver(context: SparkContext) -> Iterator[None]:
    """Let what is registered with Spark run this Python; the workers' may not be there on this machine.

    Spark runs a source's planning, unlike its reading, on the driver.
    """
    workers, context.pythonExec = context.pythonExec, sys.executable
    try:
        yield
    finally:
        context.pythonExec = workers


def _collected(found: RDD[SentReport]) -> list[tuple[int, Report]]:
    """The reports of a job, in order."""
    return [(sequence, Report.from_json(text)) for sequence, text in sorted(found.collect())]
