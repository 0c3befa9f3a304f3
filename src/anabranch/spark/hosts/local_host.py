"""This process as the host of trunks: without a JVM, a thread triggers epochs and runs their tasks in turn.

It is for inputs that are read sooner than Spark has started, and for trying things out.
Tasks, shards, states and manifests are those of any host, so answers are equal, and a checkpoint may change hosts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from threading import Condition, Thread

from anabranch.errors import AnabranchError
from anabranch.law.calls import PythonFunction
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.drivers import EpochSteps
from anabranch.spark.epoch.job import Job, Report
from anabranch.spark.epoch.stages import answer_at_once
from anabranch.spark.evolution.rerun import run_evolving, search
from anabranch.spark.intake.ranges import Range
from anabranch.spark.plan.branches import branches_of
from anabranch.storage import Location

_STOP_SECONDS = 2.0
"""Seconds to wait for the epoch at work."""


class LocalHost:
    """This process."""

    @property
    def cores(self) -> int:
        return 1

    @property
    def process(self) -> int:
        return os.getpid()

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return ()

    def translated(self, error: Exception) -> AnabranchError:
        raise AssertionError("this process raises errors of ours only") from error

    def stages(self, record: Location, functions: Iterable[PythonFunction]) -> LocalStages:
        return LocalStages()

    def enter(self, checkpoint: Checkpoint) -> None:
        """Do nothing: there are no pools to choose."""

    def start(self, checkpoint: Checkpoint, epoch: Callable[[int], None], trigger_ms: int | None) -> LocalQuery:
        return LocalQuery(EpochSteps(checkpoint, epoch), trigger_ms)


class LocalStages:
    """Runs the jobs of one trunk, each as one task that also runs all shards."""

    def run(self, job: Job, found: Sequence[Range], shards: int) -> tuple[Job, Sequence[Report]]:
        return run_evolving(job, lambda tried: [search(tried, found)], lambda tried: self._run(tried, found))

    def _run(self, job: Job, found: Sequence[Range]) -> list[Report]:
        if not found:
            return []
        strands = any(each.is_braid for each in branches_of(job.plan, job.functions))
        return [Report.from_json(text) for _, text in sorted(answer_at_once(job, strands, [found]))]


class LocalQuery:
    """Triggers the epochs of a checkpoint in a thread; method names are Spark's."""

    def __init__(self, steps: EpochSteps, trigger_ms: int | None) -> None:
        """To the end of the present input (None), or polling at this interval."""
        self._steps = steps
        self._trigger_ms = trigger_ms
        self._moved = Condition()
        self._idle_polls = 0
        """The number of polls that found nothing to read."""
        self._stopping = self._ended = False
        self._failure: Exception | None = None
        self._thread = Thread(target=self._work, name="epochs", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            if self._trigger_ms is None:
                self._steps.freeze()
            while not self._stopping:
                if self._steps.step():
                    continue
                with self._moved:
                    self._idle_polls += 1
                    self._moved.notify_all()
                    if self._trigger_ms is None:
                        return
                    self._moved.wait_for(lambda: self._stopping, self._trigger_ms / 1_000)
        except Exception as error:
            self._failure = error
        finally:
            with self._moved:
                self._ended = True
                self._moved.notify_all()

    @property
    def isActive(self) -> bool:  # noqa: N802
        return not self._ended

    def exception(self) -> Exception | None:
        return self._failure

    def processAllAvailable(self) -> None:  # noqa: N802
        with self._moved:
            # the poll at work may have started before the present input was there
            wanted = self._idle_polls + 2
            self._moved.wait_for(lambda: self._idle_polls >= wanted or self._ended)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        with self._moved:
            self._stopping = True
            self._moved.notify_all()
        self._thread.join(_STOP_SECONDS)  # an epoch at work may go on longer
