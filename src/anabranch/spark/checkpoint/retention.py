"""Retention: dropping the oldest epochs, with their answers, when there are more than asked for, and what lost attempts
of tasks have left.

An attempt that died, or whose twin was quicker, leaves files in the folders of its epoch that no manifest names.
They are removed when the next epoch has been committed, when most of such attempts have ended; those of the last epochs
of a run are removed by the next (`manifest.py`).


Plans, manifests and segments of the newest hundred epochs always stay: Spark keeps its own log of as many, and a
stopped sink can catch up.
So do those that a sink has not got yet, however long ago they were: a topic whose brokers do not answer.
An epoch's manifest is removed first; segments that a killed run left then are removed by the next.
"""

from __future__ import annotations

from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests, remove_attempts
from anabranch.spark.plan.files import Plans
from anabranch.stream.settings import Keep

MIN_EPOCHS = 100
"""The number of newest epochs that always stay."""


class Retention:
    """Drops old epochs; it knows the sizes and the plans of those retained, where any may be dropped."""

    def __init__(self, checkpoint: Checkpoint, keep: Keep) -> None:
        self._checkpoint = checkpoint
        self._keep = keep
        self._manifests = Manifests(checkpoint.manifests)
        self._known: dict[int, tuple[int, str]] = {}
        """By epoch: the size of its answers, and its plan."""
        self._before: Manifest | None = None
        """The epoch before, in this run."""
        if keep != Keep():
            self._known = {each.epoch: (each.size, each.plan) for each in self._manifests.since(0)}

    def sweep(self) -> None:
        """Remove the segments of an epoch whose drop was interrupted."""
        if self._known and (before := min(self._known) - 1) >= 0:
            self._remove_segments(before)

    def add(self, manifest: Manifest, needed: int) -> None:
        """Add a new epoch, and drop the oldest ones if there are too many, but none from `needed` on."""
        if self._before is not None:
            remove_attempts(self._checkpoint, self._before)
        self._before = manifest
        if self._keep == Keep():
            return
        self._known[manifest.epoch] = manifest.size, manifest.plan
        former: set[str] = set()
        while len(self._known) > MIN_EPOCHS and self._too_much():
            oldest = next(iter(self._known))
            if oldest >= needed:
                break
            self._manifests.drop(oldest)
            self._remove_segments(oldest)
            former.add(self._known.pop(oldest)[1])
        if former:
            Plans(self._checkpoint).drop(former, {plan for _, plan in self._known.values()})

    def _remove_segments(self, epoch: int) -> None:
        folder = self._checkpoint.segments / f"{epoch:08}"
        durable.delete(folder, durable.names(folder))

    def _too_much(self) -> bool:
        many = self._keep.epochs is not None and len(self._known) > self._keep.epochs
        size = sum(each for each, _ in self._known.values())
        return many or (self._keep.bytes is not None and size > self._keep.bytes)
