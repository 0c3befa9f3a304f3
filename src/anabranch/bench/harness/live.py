"""Streaming queries that are fed a file at a time: a trunk with all its subscriptions, and queries of plain Spark.

The seconds of a round are those of the trigger that reads the file, as Spark itself reports them on both sides: looking
for files, planning, the job, answers on the disk and the logs.
It is the same file each time, under a new name, so that rounds can be compared; or any other that is given.

A trunk stays at work from round to round, because ten thousand subscriptions are not to be checked again for each; in
between it only looks for files, seldom enough not to disturb others.
Many queries of plain Spark would disturb: they are started for each round, fed a small file twice to get warm with, and
stopped.
A single one stays at work as a trunk does, and looks for files as often.

A round may have a time limit, a moment of `perf_counter`: beyond it the work is broken off, and `NotInTime` is raised.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from math import inf
from pathlib import Path
from shutil import rmtree
from time import perf_counter, sleep, time
from types import TracebackType
from typing import Any

from anabranch.bench.workloads.photons import Rows, Spark, source
from anabranch.bench.workloads.subscriptions import COLUMNS, SCHEMA, Condition
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Checking
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.spark.plan.wanted import Epoch, Listener, Workload
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings

_NO_LIMIT = 1 << 40
_TRIGGER_MS = 500
_SPARK_TRIGGER_MS = 100
_PATIENCE = 0.02
WARM_UP = 2
"""How often a small file is read to get warm with: the first time starts Python workers, the second finds them."""


class NotInTime(Exception):
    """A round has taken longer than it may."""


@dataclass(frozen=True, slots=True)
class FileLatency:
    """The milliseconds from a file to its answers, and the phases on the way."""

    total: float
    found: float
    """Until its epoch begins: Spark looks for files, and writes down how far the epoch goes."""
    plan: float
    job: float
    publish: float
    deliver: float


class LiveTrunk:
    """A trunk at work in a folder of its own, over a stream of photons or another one."""

    def __init__(
        self,
        spark: Spark,
        folder: Path,
        queries: Mapping[str, str],
        file: Path,
        stream: Source | None = None,
        trigger_ms: int = _TRIGGER_MS,
    ) -> None:
        self._folder = folder
        self._file = file
        self._inbox = folder / "in"
        self._stream = replace(stream or source("photons", folder), path=self._inbox)
        self._queries = queries
        self._held = ExitStack()
        self._numbers = count()
        self.epochs: list[Epoch] = []
        """The epochs that were committed, without their answers."""
        self._heard = 0.0
        self._checking_seconds = 0.0
        self._trunk = Trunk(
            SparkHost(spark), folder / "state", Settings(trigger_ms=trigger_ms), listener=Listener(self._hear)
        )

    def _hear(self, epoch: Epoch) -> None:
        """Note an epoch whose answers can be read, and when that was."""
        self._heard = time()
        self.epochs.append(epoch)

    def __enter__(self) -> LiveTrunk:
        stream = self._stream
        self._inbox.mkdir(parents=True)
        self._held.enter_context(self._trunk)
        begin = perf_counter()
        checking = Checking(Inputs((stream,)))
        texts = {name: checking.printed(name, text) for name, text in self._queries.items()}
        self._trunk.want(Workload({stream.name: stream}, texts, epoch_bytes=_NO_LIMIT))
        self._checking_seconds = perf_counter() - begin
        self._trunk.start(once=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()
        rmtree(self._folder)

    def round(self, small: Path | None = None, until: float = inf) -> float:
        """The seconds of one more file; the answers of the file before it are dropped.

        After a long turn of others Spark has ended its idle Python workers: `small` is a file to warm up with.
        """
        if small is not None:
            for _ in range(WARM_UP):
                self.feed(small, until)
        return self.feed(self._file, until)

    def feed(self, file: Path, until: float = inf) -> float:
        """The seconds of any file; the answers of the file before it are dropped."""
        epoch = self._feed(file, until)
        (report,) = _progress([self._trunk.query], [epoch.manifest.epoch], until)
        return _seconds(report)

    def arrive(self, file: Path) -> FileLatency:
        """How long it takes from when a file is there until its answers can be read, as our own clock has it."""
        begin = time()
        metrics = self._feed(file).metrics
        phases = metrics.plan_ms, metrics.job_ms, metrics.publish_ms, metrics.deliver_ms
        return FileLatency(1_000 * (self._heard - begin), 1_000 * (metrics.began - begin), *phases)

    def _feed(self, file: Path, until: float = inf) -> Epoch:
        """The epoch of one more file."""
        segments = self._trunk.checkpoint.segments
        segments.delete_all(segments.names(below=True))
        known, last = len(self.epochs), self._trunk.last
        os.link(file, self._inbox / f"{self._stream.name}-{next(self._numbers):05}")
        found: list[Epoch] = []
        while not found:  # the first epoch brings nothing, where it has begun before the first file
            if not self._trunk.beyond(last, unless=lambda: perf_counter() > until):
                self._trunk.raise_failure()
                self._trunk.stop(lambda: True)
                raise NotInTime
            last = self._trunk.last
            found = [each for each in self.epochs[known:] if each.manifest.bytes_read]
        (epoch,) = found  # a file is an epoch
        return epoch

    @property
    def answers(self) -> int:
        """The number of answers of the last round."""
        return self.epochs[-1].metrics.matched

    @property
    def registered_per_second(self) -> float:
        """How many queries a second were checked, planned and made durable, all of them at once."""
        planned = sum(each.metrics.plan_ms for each in self.epochs) / 1_000  # a known plan takes no time
        return len(self._queries) / (self._checking_seconds + planned)

    def texts(self) -> dict[str, str]:
        """The answers of the last round, by subscription, without the elements around them."""
        epoch, log = self.epochs[-1], AnswerLog(self._trunk.checkpoint)
        index = log.index(epoch.manifest)
        return {each.name: "".join(map(log.text, index.of(each.id))) for each in epoch.plan.subscriptions}


class LiveSparkQuery:
    """A query of plain Spark over lines of text, at work in a folder of its own; its rows go to Parquet."""

    def __init__(self, spark: Spark, folder: Path, file: Path, query: Callable[[Rows], Rows]) -> None:
        self._spark = spark
        self._folder = folder
        self._file = file
        self._query = query
        self._numbers = count()

    def __enter__(self) -> LiveSparkQuery:
        (self._folder / "in").mkdir(parents=True)
        lines = self._spark.readStream.option("maxFilesPerTrigger", 1).text(str(self._folder / "in"))
        self._running = _append(self._query(lines), self._folder, "0", _TRIGGER_MS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.stop()
        rmtree(self._folder)

    def round(self, until: float = inf) -> float:
        """The seconds of one more file."""
        return self.feed(self._file, until)

    def feed(self, file: Path, until: float = inf) -> float:
        """The seconds of any file."""
        number = next(self._numbers)
        os.link(file, self._folder / "in" / f"lines-{number:05}")
        (found,) = _progress([self._running], [number], until)
        return _seconds(found)

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of all rounds."""
        found: list[tuple[Any, ...]] = self._spark.read.parquet(str(self._folder / "out-0")).collect()
        return found


class SparkQueries:
    """Queries of plain Spark that run at a time, each with `from_xml`, a filter and Parquet."""

    def __init__(self, spark: Spark, folder: Path, conditions: Sequence[Condition], small: Path, file: Path) -> None:
        self._spark = spark
        self._folders = (folder / str(number) for number in count())
        self._conditions = conditions
        self._files = *(small,) * WARM_UP, file

    def round(self) -> float:
        """The seconds of a file when all of them read it, from the first that begins to the last that ends."""
        folder = next(self._folders)
        (folder / "in").mkdir(parents=True)
        running = [self._start(folder, number, each) for number, each in enumerate(self._conditions)]
        try:
            for number, file in enumerate(self._files):
                os.link(file, folder / "in" / f"photons-{number:05}")
                found = _progress(running, [number] * len(running))
        finally:
            for each in running:
                each.stop()
        rmtree(folder)
        begins = [datetime.fromisoformat(each["timestamp"]).timestamp() for each in found]
        return max(begin + _seconds(each) for begin, each in zip(begins, found, strict=True)) - min(begins)

    def _start(self, folder: Path, number: int, condition: Condition) -> Any:
        lines = self._spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "in"))
        rows = lines.selectExpr(f"from_xml(value, '{SCHEMA}') as p").selectExpr("p.*").where(condition.sql)
        return _append(rows.selectExpr(*COLUMNS), folder, f"{number}", _SPARK_TRIGGER_MS)


def _append(rows: Rows, folder: Path, name: str, trigger_ms: int) -> Any:
    """Start a query that appends its rows to Parquet."""
    answer = rows.writeStream.format("parquet").outputMode("append")
    answer = answer.option("checkpointLocation", str(folder / f"checkpoint-{name}"))
    answer = answer.option("path", str(folder / f"out-{name}"))
    return answer.trigger(processingTime=f"{trigger_ms} milliseconds").start()


def _progress(running: Sequence[Any], epochs: Sequence[int], until: float = inf) -> list[Mapping[str, Any]]:
    """What Spark reports on these epochs of some queries.

    All are asked in turn, because Spark forgets its reports: one that has ended goes on to report that it is idle.
    """
    found: dict[int, Mapping[str, Any]] = {}
    while len(found) < len(running):
        for number, (query, epoch) in enumerate(zip(running, epochs, strict=True)):
            if number in found:
                continue
            if query.exception() is not None:
                raise query.exception()
            # Spark also reports on an epoch while it waits for data; such a report has no batch
            known = [each for each in query.recentProgress if each["batchId"] == epoch]
            reports = [each for each in known if "addBatch" in each["durationMs"]]
            if reports:
                found[number] = reports[0]
        if len(found) < len(running) and perf_counter() > until:
            raise NotInTime
        sleep(_PATIENCE)
    return [found[number] for number in range(len(running))]


def _seconds(report: Mapping[str, Any]) -> float:
    return float(report["durationMs"]["triggerExecution"]) / 1_000
