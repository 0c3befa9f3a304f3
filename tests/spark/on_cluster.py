"""What the cluster test runs in a process of its own: an engine on a Spark that somebody else has started.

usage: on_cluster.py MASTER STREAM QUERY CHECKPOINT [NOTE FAULT]

With a file to be written, the first task of an epoch with others beside it meets a fault, and notes it there:
`lost` kills its executor when it has done its work, and notes which that was; `slow` waits until Spark has begun the
task a second time, as it does where `spark.speculation` is set, and this one has done it, and then does it, too.
Prints one line of JSON: the answer, the metrics and the number of executors.
Then it waits for the end of its standard input, so that others can look at it while it is there.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from pyspark.sql import SparkSession

import anabranch
from anabranch.spark.epoch.task import answer_ranges
from anabranch.spark.hosts import spark_host
from anabranch.spark.options import SparkOptions
from anabranch.spark.session import SETTINGS


def losing_its_executor(work: Callable[..., Any], note: str) -> Callable[..., Any]:
    """What a task does, but that the first one is lost with its executor, which others have work on, too."""

    def attempt(*given: Any) -> Any:
        found = list(work(*given))
        with suppress(FileExistsError), open(note, "x") as file:  # nothing else travels to a worker
            with open(f"/proc/{os.getppid()}/stat") as stat:
                executor = int(stat.read().rpartition(")")[2].split()[1])  # the parent of Spark's Python daemon
            file.write(str(executor))
            file.flush()
            os.kill(executor, signal.SIGKILL)
        return iter(found)

    return attempt


def slow(work: Callable[..., Any], note: str) -> Callable[..., Any]:
    """What a task does, but that the first one waits for its twin, and ends behind it."""

    def attempt(*given: Any) -> Any:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        mine = f"{context.stageId()} {context.partitionId()}"
        twins = Path(f"{note}.twin")
        with suppress(FileExistsError), open(note, "x") as file:
            file.write(mine)
            file.flush()
            until = monotonic() + PATIENCE
            while not twins.exists():
                assert monotonic() < until, "no twin has come"
                sleep(0.05)
        found = list(work(*given))
        if context.attemptNumber() and Path(note).read_text() == mine:
            twins.write_text(mine)
        return iter(found)

    return attempt


FAULTS = {"lost": losing_its_executor, "slow": slow}
PATIENCE = 60.0
SPECULATING: dict[str, bool | float | int | str | None] = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.efficiency.enabled": "false",
}


def main(master: str, stream: str, query: str, checkpoint: str, note: str = "", fault: str = "") -> None:
    """Answer one query over a stream, in small epochs."""
    if fault:
        spark_host.answer_ranges = FAULTS[fault](answer_ranges, note)  # type: ignore[attr-defined]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).config(map={**SETTINGS, **SparkOptions(master).addresses()})
    builder = builder.config("spark.executor.memory", "512m")
    if fault == "slow":
        builder = builder.config(map=SPECULATING)
    builder = builder.config("spark.scheduler.minRegisteredResourcesRatio", "1")  # both workers, not just the first
    spark = builder.getOrCreate()
    metrics = []
    with anabranch.Engine(
        spark,
        checkpoint=checkpoint,
        once=True,
        epoch_bytes=1_500_000,
        on_epoch=lambda each: metrics.append(asdict(each)),
    ) as engine:
        engine.stream("photons", stream, root="photons")
        answer = engine.subscribe(Path(query).read_text()).answer()
    assert spark.sparkContext._jsc is not None
    executors = len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1  # the driver counts itself
    print(json.dumps({"answer": answer, "metrics": metrics, "executors": executors}), flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
