"""What a trunk asks of its host; tasks, shards, states and manifests are the same with all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from anabranch.errors import AnabranchError
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.job import Job, Report
from anabranch.spark.intake.ranges import Range

if TYPE_CHECKING:
    from anabranch.spark.session import Session


class Stages(Protocol):
    """Runs the jobs of a trunk's epochs, one after the other."""

    def run(self, job: Job, found: Sequence[Range], shards: int) -> tuple[Job, Sequence[Report]]:
        """Run the job of an epoch, as a rule once; where accents come in between, see `spark/evolution/rerun.py`."""


class EpochQuery(Protocol):
    """What lets the epochs of a trunk come; the names are those of Spark's streaming queries."""

    @property
    def isActive(self) -> bool:  # noqa: N802
        """Whether epochs may still come."""

    def exception(self) -> Exception | None:
        """What has ended it, if it was an error."""

    def processAllAvailable(self) -> None:  # noqa: N802
        """Wait until all that is there now has been read."""

    def stop(self) -> None:
        """Have no epoch come any more."""


class Host(Protocol):
    """Where trunks run."""

    @property
    def cores(self) -> int:
        """How many tasks run at a time."""

    @property
    def process(self) -> int:
        """The process that may still be at work on a checkpoint when ours has ended."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What the host itself raises."""

    def translated(self, error: Exception) -> AnabranchError:
        """What the host raises, in our words."""

    def stages(self) -> Stages:
        """Those of one trunk."""

    def enter(self, checkpoint: Checkpoint) -> None:
        """What this thread runs from now on is for the trunk of a checkpoint."""

    def start(self, checkpoint: Checkpoint, epoch: Callable[[int], None], trigger_ms: int | None) -> EpochQuery:
        """Have the epochs of a checkpoint come: to the end of what is there (None), or looking for more so often."""


def host_of(spark: Session | None = None, *, local: bool) -> Host:
    """This process, or a session of Spark, ours if none is given; what one of them needs is not loaded for both."""
    if local:
        from anabranch.spark.hosts.local_host import LocalHost

        return LocalHost()
    from anabranch.spark.hosts.spark_host import SparkHost
    from anabranch.spark.session import check_workers, local_session

    return SparkHost(local_session() if spark is None else check_workers(spark))
