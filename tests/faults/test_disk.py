"""A full disk: an error with a name, whoever was writing, and with room again everything goes on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.types import StructType

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.hosts import spark_host
from anabranch.spark.intake import source as intake
from faults.disk import Disk
from faults.small import EPOCH_BYTES, Small


def test_nothing_that_is_written_harms(tmp_path: Path) -> None:
    """Full after some writes of plans, manifests, sinks and their positions, after more and more in chains.

    Each time the error names what could not be written, and the run that finds enough room has the law's answers.
    What an attempt has made durable the next need not write, so chains of other strides meet other writes.
    """
    refused: set[str] = set()
    for stride in (1, 2):
        (tmp_path / str(stride)).mkdir()
        refused |= chain(Small.make(None, tmp_path / str(stride)), count(0, stride))
    assert refused >= {"state", "plans", "manifest", "sinks", "out"}


def test_the_driver_writes_nothing_that_harms(spark: SparkSession, tmp_path: Path) -> None:
    """The same beside Spark, whose own files have room, in fewer attempts."""
    assert chain(Small.make(spark, tmp_path), count(2, 10))


def chain(small: Small, allowed: Iterable[int]) -> set[str]:
    """Attempts on one checkpoint, until one has room enough; where writes were refused."""
    refused: set[str] = set()
    for writes in allowed:
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(small.folder, patch, writes)
            outcome = attempt(small)
        if not disk.refused:
            break
        assert isinstance(outcome, StateError)
        said = [each for each in disk.refused if f"the disk is full: cannot write '{each.parent}/" in outcome.message]
        assert said, (outcome, disk.refused)
        assert "make room" in (outcome.hint or "")
        refused |= {*said[0].relative_to(small.folder).parts}
    assert outcome == small.law()
    assert small.sinks() == {name: text.rpartition("<")[0] for name, text in small.law().items()}
    return refused


def attempt(small: Small) -> dict[str, str] | StateError:
    """The answers, or the error that came instead."""
    try:
        return small.run(2 * EPOCH_BYTES)  # two epochs are enough
    except StateError as error:
        return error


def without_room(work: Callable[..., Any]) -> Callable[..., Any]:
    """What a task does, when nothing more can be made durable; made here, so that it travels to the worker whole."""

    def attempt(*given: Any) -> Any:
        def full(fd: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        sync, os.fsync = os.fsync, full
        try:
            found = work(*given)
            return iter(list(found)) if isinstance(found, Iterator) else found
        finally:
            os.fsync = sync

    return attempt


@pytest.mark.parametrize(("task", "folder"), [("send_ranges", "segments"), ("answer_shards", "state")])
def test_a_task_without_room_ends_the_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, folder: str
) -> None:
    """No room for a segment or a state, in a worker's process: the error comes back by name, and no epoch counts."""
    small = Small.make(spark, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(spark_host, task, without_room(getattr(spark_host, task)))
        with pytest.raises(StateError, match=rf"the disk is full: cannot write '.*{folder}/00000000/"):
            small.run()
    assert list((small.checkpoint / "manifest").iterdir()) == []
    assert small.run() == small.law()


def test_an_intake_without_room_ends_the_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No room for the order of files, in the process that Spark keeps for the source: the same."""
    small = Small.make(spark, tmp_path)

    class SourceWithoutRoom(intake.RangeSource):
        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
            def full(path: Path, *given: Any, **more: Any) -> int:
                with durable.writing(path):
                    raise OSError(errno.ENOSPC, "No space left on device")

            durable.append = full  # the process ends with the query
            return super().streamReader(schema)

    with monkeypatch.context() as patch:
        patch.setattr(intake, "RangeSource", SourceWithoutRoom)
        with pytest.raises(StateError, match=r"the disk is full: cannot write '.*order/lines"):
            small.run()
    assert list((small.checkpoint / "manifest").iterdir()) == []
    assert small.run() == small.law()
