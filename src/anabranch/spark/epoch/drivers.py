"""Epochs that this process drives itself, without a streaming query of Spark.

For inputs that end soon, starting a streaming query would be most of the work: here the driver makes the survey, and an
epoch is one plain job over its ranges.
The offsets that Spark would log before an epoch are written to the same file in the same form, so recovery is the same:
an epoch that was begun and not committed runs again with the same ranges, with Spark or without.
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
    """The epochs of a checkpoint, run one at a time; `epoch` runs the epoch of a number."""

    def __init__(self, checkpoint: Checkpoint, epoch: Callable[[int], None]) -> None:
        self._checkpoint = checkpoint
        self._epoch = epoch
        self._survey = Survey(checkpoint)
        offset_file(checkpoint, 0).parent.mkdir(parents=True, exist_ok=True)
        named = checkpoint.spark / "metadata"
        if not named.exists():  # without it Spark would not go on from offsets
            durable.replace(named, json.dumps({"id": str(uuid4())}).encode())

    def freeze(self) -> None:
        """Let the streams end at their present sizes."""
        self._survey.freeze()

    def step(self) -> bool:
        """Run one epoch, if there is something to read; False if there is nothing."""
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
