"""Retention: dropping the oldest epochs, with their answers, when there are more than asked for.

Plans, manifests and segments of the newest hundred epochs always stay: Spark keeps its own log of as many, and a
stopped sink can catch up.
So do those that a sink has not got yet, however long ago they were: a topic whose brokers do not answer.
An epoch's manifest is removed first; segments that no manifest names are swept at the next start.
"""

from __future__ import annotations

from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.plan.files import Plans
from anabranch.stream.settings import Keep

MIN_EPOCHS = 100
"""The number of newest epochs that always stay."""


class Retention:
    """Drops old epochs; it knows the sizes of those retained."""

    def __init__(self, checkpoint: Checkpoint, keep: Keep) -> None:
        self._checkpoint = checkpoint
        self._keep = keep
        self._manifests = Manifests(checkpoint.manifests)
        weighed = keep.bytes is not None
        self._sizes = {epoch: self._manifests.load(epoch).size if weighed else 0 for epoch in self._manifests.epochs()}

    def sweep(self) -> None:
        """Remove segments that no manifest names: of failed attempts, or of a drop that was interrupted."""
        segments = self._checkpoint.segments
        folders = ((name, name.partition("/")[0]) for name in segments.names(below=True))
        unnamed = [name for name, epoch in folders if epoch.isdecimal() and int(epoch) not in self._sizes]
        segments.delete_all(unnamed)

    def add(self, epoch: int, size: int, needed: int) -> None:
        """Add a new epoch, and drop the oldest ones if there are too many, but none from `needed` on."""
        self._sizes[epoch] = size
        dropped = False
        while len(self._sizes) > MIN_EPOCHS and self._too_much():
            oldest = next(iter(self._sizes))
            if oldest >= needed:
                break
            self._manifests.drop(oldest)
            folder = self._checkpoint.segments / f"{oldest:08}"
            folder.delete_all(folder.names())
            del self._sizes[oldest]
            dropped = True
        if dropped:
            Plans(self._checkpoint.plans).drop(next(iter(self._sizes)))

    def _too_much(self) -> bool:
        many = self._keep.epochs is not None and len(self._sizes) > self._keep.epochs
        return many or (self._keep.bytes is not None and sum(self._sizes.values()) > self._keep.bytes)
