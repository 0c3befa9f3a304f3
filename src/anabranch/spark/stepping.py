"""A trunk that is driven by hand: its epochs are run when somebody knows that there is something to read.

A streaming query asks all the time whether something has come, in a process of its own; of many trunks side by side,
most of which have nothing to do, that is most of the work.
Here the survey is made in the driver, and an epoch is one plain job over its ranges.
What Spark would write down before an epoch is written down in its place and in its form, so all the rest of a trunk
works as ever: an epoch that was begun and not committed is run again with the same ranges.
"""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path

from pyspark.sql import SparkSession

from anabranch.spark import durable
from anabranch.spark.checkpoint import Checkpoint
from anabranch.spark.epochs import Trunk
from anabranch.spark.intake import SCHEMA
from anabranch.spark.manifest import Manifests
from anabranch.spark.ranges import Offset
from anabranch.spark.survey import Survey


class SteppedTrunk:
    """Runs the epochs of a trunk, which must be open and not started."""

    def __init__(self, spark: SparkSession, trunk: Trunk) -> None:
        self._spark = spark
        self._trunk = trunk
        self._survey = Survey(trunk.checkpoint)
        self._offsets.mkdir(parents=True, exist_ok=True)

    @property
    def pool(self) -> str:
        """The pool in which its jobs run."""
        return f"trunk {self._checkpoint.folder}"

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
        start = self._offset(number - 1) if number else {}
        if not self._path(number).exists():
            end = self._survey.latest(start)
            if end == start:
                return False
            durable.replace(self._path(number), f"v1\n{{}}\n{json.dumps(end)}".encode())
        found = [astuple(each) for each in self._survey.ranges(start, self._offset(number))]
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.pool)
        self._trunk.epoch(self._spark.createDataFrame(found, SCHEMA), number)
        return True

    def _offset(self, number: int) -> Offset:
        found: Offset = json.loads(self._path(number).read_text(encoding="utf-8").splitlines()[-1])
        return found

    @property
    def _offsets(self) -> Path:
        return self._checkpoint.spark / "offsets"

    def _path(self, number: int) -> Path:
        return self._offsets / str(number)
