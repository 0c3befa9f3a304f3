"""A trunk that is driven by hand: its epochs are run when somebody knows that there is something to read.

A streaming query needs seconds to start and processes of its own; for what comes to an end soon that is most of the
work.
Here the survey is made in the driver, and an epoch is one plain job over its ranges.
What Spark would write down before an epoch is written down in its place and in its form, so all the rest of a trunk
works as ever: an epoch that was begun and not committed is run again with the same ranges, here or by a streaming query
(`streaming.py`).
"""

from __future__ import annotations

import json
from dataclasses import astuple
from uuid import uuid4

from pyspark.sql import SparkSession

from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.epoch.streaming_query import pool_of
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.intake.offsets import end_of, offset_file, write_end
from anabranch.spark.intake.source import SCHEMA
from anabranch.spark.intake.survey import Survey


class SteppedTrunk:
    """Runs the epochs of a trunk, which must be open and not started; it is of no use behind others' epochs."""

    def __init__(self, spark: SparkSession, trunk: Trunk) -> None:
        self._spark = spark
        self._trunk = trunk
        self._survey = Survey(trunk.checkpoint)
        offset_file(self._checkpoint, 0).parent.mkdir(parents=True, exist_ok=True)
        named = self._checkpoint.spark / "metadata"
        if not named.exists():  # without it Spark would not go on from offsets
            durable.replace(named, json.dumps({"id": str(uuid4())}).encode())

    @property
    def _checkpoint(self) -> Checkpoint:
        return self._trunk.checkpoint

    def run(self) -> None:
        """Read to the end of what is there now."""
        self._survey.freeze()
        while self._step():
            pass

    def _step(self) -> bool:
        """Run one epoch, if there is something to read."""
        epochs = Manifests(self._checkpoint.manifests).epochs()
        number = epochs.stop if epochs else 0
        start = end_of(self._checkpoint, number - 1)
        if not offset_file(self._checkpoint, number).exists():
            end = self._survey.latest(start)
            if end == start:
                return False
            write_end(self._checkpoint, number, end)
        found = [astuple(each) for each in self._survey.ranges(start, end_of(self._checkpoint, number))]
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool_of(self._checkpoint))
        self._trunk.epoch(self._spark.createDataFrame(found, SCHEMA), number)
        return True
