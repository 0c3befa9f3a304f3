"""What each subscription has seen and answered, read from the checkpoint while the run is at work.

A subscription answers from the first element of the epoch in which it begins; which epochs it was there for, how far
these have read and what it was answered in each of them stand in plans, manifests and segments.
They are read as they come, since retention removes them later, and without a word from the run: what it says of itself
over HTTP is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.intake.ranges import Offset, Position
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.files import PlanFile
from anabranch.storage import Where


@dataclass
class Life:
    """A subscription from its first epoch to its last one."""

    asked: Registration
    last: int
    pieces: list[str] = field(default_factory=list)

    @property
    def answer(self) -> str:
        """All that it was answered, without the text around it."""
        return "".join(self.pieces)


class Lives:
    """All subscriptions of a checkpoint, as its epochs come; only `look` changes them."""

    def __init__(self, checkpoint: Where) -> None:
        self._checkpoint = Checkpoint.open(checkpoint)
        self._log = AnswerLog(self._checkpoint)
        self._plan = ""
        self.ends: dict[int, Offset] = {-1: {}}
        """By epoch, how far it has read."""
        self._held: dict[int, float] = {}
        self.by_id: dict[int, Life] = {}
        self._there: list[Life] = []

    def look(self) -> None:
        """Read the epochs that are new."""
        kept = self._log.manifests.epochs()
        newest = max(self.ends)
        assert not kept or kept[0] <= newest + 1, f"epochs {newest + 1} to {kept[0] - 1} were removed before a look"
        for epoch in range(newest + 1, kept[-1] + 1 if kept else 0):
            self._take(self._log.manifests.load(epoch))

    def _take(self, manifest: Manifest) -> None:
        if manifest.plan != self._plan:
            self._plan = manifest.plan
            plan = PlanFile.named(self._checkpoint.plans, manifest.plan).load()
            for each in plan.subscriptions:
                self.by_id.setdefault(each.id, Life(each, manifest.epoch)).asked = each
            self._there = [self.by_id[each.id] for each in plan.subscriptions]
        for life in self._there:
            life.last = manifest.epoch
        index = self._log.index(manifest)
        data = {each.name: self._checkpoint.segments / each.name for each in manifest.segments}
        texts = {name: place.read() for name, place in data.items()}
        for number in index.entries().numbers.tolist():
            for chunk in index.of(number):
                piece = texts[chunk.segment][chunk.offset : chunk.offset + chunk.length]
                self.by_id[number].pieces.append(piece.decode())
        self.ends[manifest.epoch] = manifest.offsets
        held = [each.held for each in manifest.states.values()]
        self._held[manifest.epoch] = sum(held) / max(1, len(held))

    @property
    def newest(self) -> int:
        """The newest epoch that was read."""
        return max(self.ends)

    def held_by_branch(self, epoch: int) -> float:
        """How many items and panes a branch remembers behind an epoch, on average.

        Those who begin together share branches, so there are more of them as those who came at once are replaced.
        """
        return self._held[epoch]

    def end(self, epoch: int, stream: str) -> Position:
        """How far a stream was read by the end of an epoch."""
        return Position.of(self.ends[epoch], f"{stream}/0")

    def by_name(self) -> Mapping[str, Life]:
        """All of them by name, the newest of each."""
        return {each.asked.name: each for each in self.by_id.values()}
