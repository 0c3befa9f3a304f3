"""The interface between a trunk and its host; tasks, shards, states and manifests are the same on every host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from anabranch.errors import AnabranchError
from anabranch.law.calls import PythonFunction
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.job import Job, Report
from anabranch.spark.intake.ranges import Range
from anabranch.spark.options import SparkOptions
from anabranch.storage import Location

if TYPE_CHECKING:
    from anabranch.spark.session import Session


class Stages(Protocol):
    """Runs the jobs of a trunk's epochs, one after the other."""

    def run(self, job: Job, found: Sequence[Range], shards: int) -> tuple[Job, Sequence[Report]]:
        """Run the job of an epoch, as a rule once; where accents come in between, see `spark/evolution/rerun.py`."""


class EpochQuery(Protocol):
    """Triggers the epochs of a trunk; the names are those of Spark's streaming queries."""

    @property
    def isActive(self) -> bool:  # noqa: N802
        """Whether more epochs may come."""

    def exception(self) -> Exception | None:
        """The error that ended it, if there was one."""

    def processAllAvailable(self) -> None:  # noqa: N802
        """Wait until the present input has been read."""

    def stop(self) -> None:
        """Trigger no more epochs."""


class Host(Protocol):
    """Where trunks run."""

    @property
    def cores(self) -> int:
        """How many tasks run at a time."""

    @property
    def process(self) -> int:
        """The process that may still use a checkpoint after ours has ended."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions of the host itself."""

    def translated(self, error: Exception) -> AnabranchError:
        """An exception of the host as one of our errors."""

    def stages(self, record: Location, functions: Iterable[PythonFunction]) -> Stages:
        """The stages of a trunk whose queries call these functions; `record` is that of its run (`runs.py`)."""

    def enter(self, checkpoint: Checkpoint) -> None:
        """Assign this thread's jobs to the trunk of a checkpoint."""

    def start(self, checkpoint: Checkpoint, epoch: Callable[[int], None], trigger_ms: int | None) -> EpochQuery:
        """Trigger epochs of a checkpoint: to the end of the present input (None), or polling at this interval."""


def host_of(spark: Session | None = None, *, local: bool, options: SparkOptions | None = None) -> Host:
    """This process, or a session of Spark; where none is given, one of our own, as the options ask for.

    Only the modules of the chosen host are loaded.
    """
    if local:
        from anabranch.spark.hosts.local_host import LocalHost

        return LocalHost()
    from anabranch.spark.cluster.workers import check_workers, join_cluster
    from anabranch.spark.hosts.spark_host import SparkHost
    from anabranch.spark.session import start_session

    return SparkHost(start_session(options) if spark is None else join_cluster(check_workers(spark)))
