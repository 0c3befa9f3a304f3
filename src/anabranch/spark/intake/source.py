"""The intake: a Python data source for Spark that gives offsets and no rows.

All file streams of a trunk come through this one source.
Spark's own file source has neither order nor positions, and a union of sources can gain no stream.
Spark logs the offsets that the source gives; an epoch computes the byte ranges between two of them itself
(`order_logs.py`), and a task opens the file of its range, so raw bytes never cross the JVM.

The source passes Spark's calls to the `Survey`, which knows no Spark; `ranges.py` says how offsets and ranges are
computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.intake.survey import Survey
from anabranch.storage import Location

NAME = "anabranch-ranges"
_ANY = ReadMaxBytes(1 << 60)  # Spark asks once; the survey looks the real limit up for every epoch


class RangeSource(DataSource):
    """The format `anabranch-ranges` for Spark; its options are the folder of a checkpoint, and that of a run."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "nothing long"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return Intake(Checkpoint(Location.of(self.options["checkpoint"]), Path(self.options["scratch"])))


class Intake(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Passes Spark's calls to the survey; method names are Spark's (hence no check of names on them)."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    @cached_property
    def _survey(self) -> Survey:
        return Survey(self._checkpoint)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._survey.freeze()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return _ANY

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return self._survey.latest(start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return []  # Spark plans a batch, but nobody reads it

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        raise AssertionError("there is no partition to read")
