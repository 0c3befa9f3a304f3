"""Spark's side of a trunk: the streaming query that looks for new bytes and hands epochs out."""

from __future__ import annotations

from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.faults import translated
from anabranch.spark.intake import source as intake

SPARKS = (PySparkException, Py4JError, ConnectionError)
"""What calls of Spark raise; the last of them when its JVM is gone."""


def pool_of(checkpoint: Checkpoint) -> str:
    """The pool in which a trunk's jobs run."""
    return f"trunk {checkpoint.folder}"


def start(
    spark: SparkSession, checkpoint: Checkpoint, epoch: Callable[[DataFrame, int], None], trigger_ms: int | None
) -> StreamingQuery:
    """Have the epochs of a checkpoint come: to the end of what is there (None), or looking for more so often."""
    spark.dataSource.register(intake.RangeSource)
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool_of(checkpoint))
    ranges = spark.readStream.format(intake.NAME).option("checkpoint", str(checkpoint.folder)).load()
    writer = ranges.writeStream.foreachBatch(epoch).option("checkpointLocation", str(checkpoint.spark))
    trigger = {"availableNow": True} if trigger_ms is None else {"processingTime": f"{trigger_ms} milliseconds"}
    try:
        return writer.trigger(**trigger).start()
    except SPARKS as error:
        raise translated(error) from error
