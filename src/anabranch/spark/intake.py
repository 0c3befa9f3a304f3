"""The intake: a Python data source for Spark that emits byte ranges, never bytes.

All file streams of a trunk come through this one source.
Spark's own file source has neither order nor positions, and a union of sources can gain no stream; see
`ranges.py` for how offsets and ranges are reckoned.
A row is one range; the task that gets the row opens the file itself, so the raw bytes never cross the JVM.

The list of files is part of the plan that the source is started with: what a run reads is settled before it begins,
which is what a trigger of all that is available means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from anabranch.spark import ranges
from anabranch.spark.plan import Plan, PlanFile
from anabranch.spark.ranges import Range
from anabranch.spark.storage import line_end

NAME = "anabranch-ranges"
SCHEMA = "stream string, file string, path string, start long, end long, last boolean, packed boolean, sequence long"
"""The fields of a `Range`, in order."""


class RangeSource(DataSource):
    """What Spark knows as the format `anabranch-ranges`; its options are a plan file and the file's digest."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return Intake(PlanFile(Path(self.options["plan"]), self.options["digest"]).load())


class TaskRanges(InputPartition):
    """The ranges that one task reads."""

    def __init__(self, held: tuple[Range, ...]) -> None:
        super().__init__(held)


class Intake(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Answers Spark's questions by the functions of `ranges.py`; it holds no state of its own.

    The names of the methods are Spark's (hence no check of names on them).
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._partitions = [stream.partition for stream in plan.streams]

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Nothing to record: the plan already says which bytes there are."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxBytes(self._plan.epoch_bytes)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        match limit:
            case ReadMaxBytes(most):
                return ranges.reach(self._partitions, start, most, line_end)
            case ReadAllAvailable():
                return ranges.reach(self._partitions, start, None, line_end)
            case _:
                raise AssertionError(f"Spark asked for a limit we did not offer: {limit}")

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        found = ranges.ranges(self._partitions, start, end, self._plan.cores, line_end)
        return [TaskRanges(each) for each in ranges.tasks(found)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        for each in partition.value:
            yield astuple(each)
