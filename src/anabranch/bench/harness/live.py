"""Streaming queries that are fed a file at a time: a trunk with all its subscriptions, and queries of plain Spark.

The seconds of a round are those of the trigger that reads the file, as Spark itself reports them on both sides: looking
for files, planning, the job, answers on the disk and the logs.
It is the same file each time, under a new name, so that rounds can be compared.

A trunk stays at work from round to round, because ten thousand subscriptions are not to be checked again for each; in
between it only looks for files, seldom enough not to disturb others.
Queries of plain Spark would disturb: they are started for each round, fed a small file twice to get warm with, and
stopped.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from itertools import count
from pathlib import Path
from shutil import rmtree
from time import sleep
from types import TracebackType
from typing import Any

from anabranch.bench.workloads.photons import Spark, source
from anabranch.bench.workloads.subscriptions import COLUMNS, SCHEMA, Condition
from anabranch.engine import Inputs
from anabranch.engine.checking import Checking
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.plan.wanted import Epoch, Listener, Settings, Workload

_NO_LIMIT = 1 << 40
_TRIGGER_MS = 500
_SPARK_TRIGGER_MS = 100
_PATIENCE = 0.02
WARM_UP = 2
"""How often a small file is read to get warm with: the first time starts Python workers, the second finds them."""


class LiveTrunk:
    """A trunk at work in a folder of its own."""

    def __init__(self, spark: Spark, folder: Path, queries: Mapping[str, str], file: Path) -> None:
        self._folder = folder
        self._file = file
        self._queries = queries
        self._held = ExitStack()
        self._numbers = count()
        self.epochs: list[Epoch] = []
        """Those that were committed, without their answers."""
        self._trunk = Trunk(
            spark, folder / "state", Settings(trigger_ms=_TRIGGER_MS), listener=Listener(self.epochs.append)
        )

    def __enter__(self) -> LiveTrunk:
        stream = source("photons", self._folder / "in")
        (self._folder / "in").mkdir(parents=True)
        checking = Checking(Inputs((stream,)))
        texts = {name: checking.printed(name, text) for name, text in self._queries.items()}
        self._held.enter_context(self._trunk)
        self._trunk.want(Workload({"photons": stream}, texts, epoch_bytes=_NO_LIMIT))
        self._trunk.start(once=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()
        rmtree(self._folder)

    def round(self, small: Path | None = None) -> float:
        """The seconds of one more file; its answers are dropped then.

        Where others had their turn for long, Spark has let its Python workers go: `small` is a file to get warm with.
        """
        if small is not None:
            for _ in range(WARM_UP):
                self._seconds(small)
        return self._seconds(self._file)

    def _seconds(self, file: Path) -> float:
        number = next(self._numbers)
        os.link(file, self._folder / "in" / f"photons-{number:05}")
        if not self._trunk.beyond(number - 1):
            self._trunk.raise_failure()
        assert [each.manifest.epoch for each in self.epochs] == list(range(number + 1)), "a file is an epoch"
        (found,) = _progress([self._trunk.query], [number])
        for folder in self._trunk.checkpoint.segments.iterdir():
            rmtree(folder)
        return _seconds(found)

    @property
    def answers(self) -> int:
        """How many the last round gave."""
        return self.epochs[-1].metrics.matched


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
        answer = rows.selectExpr(*COLUMNS).writeStream.format("parquet").outputMode("append")
        answer = answer.option("checkpointLocation", str(folder / f"checkpoint-{number}"))
        answer = answer.option("path", str(folder / f"out-{number}"))
        return answer.trigger(processingTime=f"{_SPARK_TRIGGER_MS} milliseconds").start()


def _progress(running: Sequence[Any], epochs: Sequence[int]) -> list[Mapping[str, Any]]:
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
            # an epoch that is waited for has reports, too, without rows
            reports = [each for each in query.recentProgress if each["batchId"] == epoch and each["numInputRows"]]
            if reports:
                found[number] = reports[0]
        sleep(_PATIENCE)
    return [found[number] for number in range(len(running))]


def _seconds(report: Mapping[str, Any]) -> float:
    return float(report["durationMs"]["triggerExecution"]) / 1_000
