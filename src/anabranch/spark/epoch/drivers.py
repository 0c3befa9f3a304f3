"""Epochs of a trunk that are run by hand.

For what comes to an end soon, to start a streaming query would be most of the work: there the survey is made in the
driver, and an epoch is one plain job over its ranges.
What Spark would write down before an epoch is written down in its place and in its form, so all the rest of a trunk
works as ever: an epoch that was begun and not committed is run again with the same ranges, in either way.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import uuid4

from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.intake.order_logs import end_of, offset_file, write_end
from anabranch.spark.intake.survey import Survey


class EpochSteps:
    """The epochs of a checkpoint, one step each; `epoch` runs the one with a number."""

    def __init__(self, checkpoint: Checkpoint, epoch: Callable[[int], None]) -> None:
        self._checkpoint = checkpoint
        self._epoch = epoch
        self._survey = Survey(checkpoint)
        offset_file(checkpoint, 0).parent.mkdir(parents=True, exist_ok=True)
        named = checkpoint.spark / "metadata"
        if not named.exists():  # without it Spark would not go on from offsets
            durable.replace(named, json.dumps({"id": str(uuid4())}).encode())

    def freeze(self) -> None:
        """From now on the streams end where they end now."""
        self._survey.freeze()

    def step(self) -> bool:
        """Run one epoch, if there is something to read."""
        epochs = Manifests(self._checkpoint.manifests).epochs()
        number = epochs.stop if epochs else 0
        start = end_of(self._checkpoint, number - 1)
        if not offset_file(self._checkpoint, number).exists():
            end = self._survey.latest(start)
            if end == start:
                return False
            write_end(self._checkpoint, number, end)
        self._epoch(number)
        return True


class SteppedTrunk:
    """Runs the epochs of a trunk, which must be open and not started; it is of no use behind others' epochs."""

    def __init__(self, trunk: Trunk) -> None:
        self._trunk = trunk
        self._steps = EpochSteps(trunk.checkpoint, trunk.epoch)

    def run(self) -> None:
        """Read to the end of what is there now."""
        self._steps.freeze()
        self._trunk.host.enter(self._trunk.checkpoint)
        while self._steps.step():
            pass
        self._trunk.finish()
        self._trunk.raise_failure()
