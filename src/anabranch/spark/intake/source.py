"""The intake: a Python data source for Spark that says how far an epoch goes, and hands nothing out.

All file streams of a trunk come through this one source.
Spark's own file source has neither order nor positions, and a union of sources can gain no stream.
Spark writes down the offsets that the source gives; what lies between two of them are byte ranges, which an epoch finds
by itself (`order_logs.py`), and a task opens the file of its range, so the raw bytes never cross the JVM.

What Spark asks is answered by the `Survey`, which knows no Spark; see there and in `ranges.py` how offsets and ranges
are reckoned.
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

NAME = "anabranch-ranges"
_ANY = ReadMaxBytes(1 << 60)  # Spark asks once; the survey looks the real limit up for every epoch


class RangeSource(DataSource):
    """What Spark knows as the format `anabranch-ranges`; its option is the folder of a checkpoint."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "nothing long"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return Intake(Path(self.options["checkpoint"]))


class Intake(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Hands Spark's questions on; the names of the methods are Spark's (hence no check of names on them)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _survey(self) -> Survey:
        return Survey(Checkpoint.open(self._folder))

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._survey.freeze()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return _ANY

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return self._survey.latest(start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return []  # Spark asks when it plans the batch, which nobody reads

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        raise AssertionError("there is no partition to read")
