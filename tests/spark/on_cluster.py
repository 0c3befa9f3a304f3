"""What the cluster test runs in a process of its own: an engine on a Spark that somebody else has started.

usage: on_cluster.py MASTER STREAM QUERY CHECKPOINT

Prints one line of JSON: the answer, the metrics and the number of executors.
Then it waits for the end of its standard input, so that others can look at it while it is there.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

import anabranch
from anabranch.spark.options import SparkOptions
from anabranch.spark.session import SETTINGS


def main(master: str, stream: str, query: str, checkpoint: str) -> None:
    """Answer one query over a stream, in small epochs."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).config(map={**SETTINGS, **SparkOptions(master).addresses()})
    builder = builder.config("spark.executor.memory", "512m")
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
