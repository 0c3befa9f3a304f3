"""Epochs that this process drives itself, without a streaming query of Spark.

For inputs that end soon, starting a streaming query would be most of the work: here the driver makes the survey, and an
epoch is one plain job over its ranges.
The offsets that Spark would log before an epoch are written to the same file in the same form, so one run may drive
its epochs now with Spark and now without.
"""

from __future__ import annotations

from collections.abc import Callable

from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.recovery import end_of, has_begun, last_done, write_commit, write_end
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.intake.survey import Survey


class EpochSteps:
    """The epochs of a checkpoint, run one at a time; `epoch` runs the epoch of a number."""

    def __init__(self, checkpoint: Checkpoint, epoch: Callable[[int], None]) -> None:
        self._checkpoint = checkpoint
        self._epoch = epoch
        self._survey = Survey(checkpoint)
        self._next = last_done(checkpoint) + 1

    def freeze(self) -> None:
        """Let the streams end at their present sizes."""
        self._survey.freeze()

    def step(self) -> bool:
        """Run one epoch, if there is something to read; False if there is nothing."""
        number = self._next
        start = end_of(self._checkpoint, number - 1)
        if not has_begun(self._checkpoint, number):
            end = self._survey.latest(start)
            if end == start:
                return False
            write_end(self._checkpoint, number, end)
        self._epoch(number)
        write_commit(self._checkpoint, number)
        self._next += 1
        return True


class SteppedTrunk:
    """Drives the epochs of an open trunk that was not started; nobody else may drive the trunk meanwhile."""

    def __init__(self, trunk: Trunk) -> None:
        self._trunk = trunk
        self._steps = EpochSteps(trunk.checkpoint, trunk.epoch)

    def run(self) -> None:
        """Read the streams to their present end."""
        self._steps.freeze()
        self._trunk.host.enter(self._trunk.checkpoint)
        while self._steps.step():
            pass
        self._trunk.finish()
        self._trunk.raise_failure()
