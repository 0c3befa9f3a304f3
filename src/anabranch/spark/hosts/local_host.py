"""This process as the host of trunks: no JVM is started, and one task after the other is run here.

It is for inputs that have an end and are read sooner than Spark has started.
Tasks, shards, states and manifests are those of any host, so the answers are, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from anabranch.errors import AnabranchError
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.drivers import SteppedTrunk
from anabranch.spark.epoch.job import Job, Report
from anabranch.spark.epoch.stages import answer_at_once
from anabranch.spark.evolution.rerun import run_evolving, search
from anabranch.spark.intake.ranges import Range
from anabranch.spark.plan.branches import branches_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from anabranch.spark.epoch.trunk import Trunk


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

    def stages(self) -> LocalStages:
        return LocalStages()

    def enter(self, checkpoint: Checkpoint) -> None:
        """There is nothing to choose between trunks."""

    def start(self, checkpoint: Checkpoint, epoch: Callable[[int], None], trigger_ms: int | None) -> StreamingQuery:
        raise AssertionError("epochs do not come by themselves here")

    def read_to_end(self, trunk: Trunk) -> None:
        SteppedTrunk(trunk).run()


class LocalStages:
    """Runs the jobs of one trunk, each as one task that is all shards, too."""

    def run(self, job: Job, found: Sequence[Range], shards: int) -> tuple[Job, Sequence[Report]]:
        return run_evolving(job, lambda tried: [search(tried, found)], lambda tried: self._run(tried, found))

    def _run(self, job: Job, found: Sequence[Range]) -> list[Report]:
        if not found:
            return []
        strands = any(each.is_braid for each in branches_of(job.plan, job.functions))
        return [Report.from_json(text) for _, text in sorted(answer_at_once(job, strands, [found]))]
