"""Python workers of Spark that hang, die, have no memory, or do a task twice: nothing is lost, nothing doubled."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.sql import SparkSession

from anabranch.errors import AnabranchError
from anabranch.spark.epoch import waits
from anabranch.spark.hosts import spark_host
from faults.small import EPOCH_BYTES, Small

PATIENCE = 120.0


def hanging_once(work: Callable[..., Any], note: Path) -> Callable[..., Any]:
    """What a task does, but that the first one never ends: it notes its process, and waits for a signal."""

    def attempt(*given: Any) -> Any:
        try:
            with note.open("x") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            return work(*given)
        while True:
            signal.pause()

    return attempt


@pytest.mark.parametrize("task", ["send_ranges", "answer_shards"])
def test_a_worker_that_hangs_is_told_of(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    """The log says which epoch is at work for very long; its worker is killed, and answers are those of the law."""
    small, note, told = Small.make(spark, tmp_path), tmp_path / "worker", list[str]()
    monkeypatch.setattr(waits, "OVERLONG_SECONDS", 0.3)
    monkeypatch.setattr(spark_host, task, hanging_once(getattr(spark_host, task), note))
    found: dict[str, str] = {}
    run = Thread(target=lambda: found.update(small.run(warned=told.append)), daemon=True)
    run.start()
    until = time.monotonic() + PATIENCE
    while not (note.exists() and note.read_text() and any("has been at work for 0 s" in each for each in told)):
        assert time.monotonic() < until, told
        time.sleep(0.05)
    assert not any((small.checkpoint / "manifest").iterdir()), "the epoch is not there before its tasks are done"
    os.kill(int(note.read_text()), signal.SIGKILL)
    run.join(PATIENCE)
    assert found == small.law()
    assert small.sinks() == {name: text.rpartition("<")[0] for name, text in small.law().items()}


def without_memory(work: Callable[..., Any]) -> Callable[..., Any]:
    """What a task does, in a process that may have hardly more memory than it has, when it needs much more."""

    def attempt(*given: Any) -> Any:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), before[1]))
        try:
            found = work(*given)
            held = bytearray(1 << 30)  # as many items would
            return iter([*found, held]) if isinstance(found, Iterator) else found
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)

    return attempt


def killed_by_the_system(work: Callable[..., Any]) -> Callable[..., Any]:
    """What a task does, in a process that the system ends at each attempt, as it does where no memory is left."""

    def attempt(*given: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    return attempt


@pytest.mark.parametrize(
    ("task", "fault", "message"),
    [
        ("send_ranges", without_memory, "a worker of Spark has no memory left"),
        ("answer_shards", without_memory, "a worker of Spark has no memory left"),
        ("send_ranges", killed_by_the_system, "a worker of Spark has died at each attempt to run a task"),
    ],
)
def test_a_worker_without_memory_ends_the_run(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    task: str,
    fault: Callable[..., Any],
    message: str,
) -> None:
    """A real limit of the system: the error says what is missing and what to do, and nothing of the epoch counts."""
    small = Small.make(spark, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(spark_host, task, fault(getattr(spark_host, task)))
        with pytest.raises(AnabranchError, match=message) as found:
            small.run()
    assert "epoch_bytes" in (found.value.hint or "")
    assert list((small.checkpoint / "manifest").iterdir()) == []
    assert small.run() == small.law()


def done_twice(work: Callable[..., Any]) -> Callable[..., Any]:
    """What a task does, twice in one place: the attempt that is not waited for ends behind the other.

    So it is with a task that is speculated, or whose answer is lost.
    """

    def attempt(*given: Any) -> Any:
        kept = [list(each) if isinstance(each, Iterator) else each for each in given]
        found, others = (
            list(work(*(iter(each) if isinstance(each, list) else each for each in kept))) for _ in range(2)
        )
        assert len(found) == len(others)
        return iter(found)

    return attempt


@pytest.mark.parametrize("task", ["send_ranges", "answer_shards"])
def test_a_task_that_is_done_twice_counts_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    """Both attempts write all they have to: one is in the manifest, what the other has left is removed."""
    small = Small.make(spark, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(spark_host, task, done_twice(getattr(spark_host, task)))
        assert small.run(EPOCH_BYTES) == small.law()
    small.grow(20, 25)
    assert small.run() == small.law()
