"""Retention: dropping the oldest epochs, with their answers, when there are more than asked for.

Plans, manifests and segments of the newest hundred epochs always stay: Spark keeps its own log of as many, and a sink
that was stopped can catch up.
An epoch's manifest goes first; segments that no manifest names are swept away at the next start.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from anabranch.errors import UsageError
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.plan.files import Plans

LEAST = 100
"""The epochs that stay whatever was asked for."""
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@dataclass(frozen=True, slots=True)
class Keep:
    """How much is kept: so many epochs, so many bytes of answers, or everything."""

    epochs: int | None = None
    bytes: int | None = None

    @staticmethod
    def parse(value: object) -> Keep:
        """A number of epochs, or bytes as in '500 MB'."""
        match value:
            case None:
                return Keep()
            case int() if not isinstance(value, bool) and value > 0:
                return Keep(epochs=value)
            case str() if value[-2:] in _UNITS and value[:-2].strip().isdecimal():
                return Keep(bytes=int(value[:-2]) * _UNITS[value[-2:]])
        raise UsageError(f"'keep' takes a number of epochs or a size, not '{value}'", hint="as in 5000 or '20 GB'")


class Retention:
    """Drops what is too old; it knows the sizes of the epochs that are kept."""

    def __init__(self, checkpoint: Checkpoint, keep: Keep) -> None:
        self._checkpoint = checkpoint
        self._keep = keep
        self._manifests = Manifests(checkpoint.manifests)
        weighed = keep.bytes is not None
        self._sizes = {epoch: self._manifests.load(epoch).size if weighed else 0 for epoch in self._manifests.epochs()}

    def sweep(self) -> None:
        """Remove segments that no manifest names: left by attempts that failed, or by a drop that was cut short."""
        for folder in self._checkpoint.segments.iterdir():
            if folder.name.isdecimal() and int(folder.name) not in self._sizes:
                shutil.rmtree(folder)

    def add(self, epoch: int, size: int) -> None:
        """Take a new epoch in, and drop the oldest ones if there are too many."""
        self._sizes[epoch] = size
        dropped = False
        while len(self._sizes) > LEAST and self._too_much():
            oldest = next(iter(self._sizes))
            self._manifests.drop(oldest)
            shutil.rmtree(self._checkpoint.segments / f"{oldest:08}", ignore_errors=True)
            del self._sizes[oldest]
            dropped = True
        if dropped:
            Plans(self._checkpoint.plans).drop(next(iter(self._sizes)))

    def _too_much(self) -> bool:
        many = self._keep.epochs is not None and len(self._sizes) > self._keep.epochs
        return many or (self._keep.bytes is not None and sum(self._sizes.values()) > self._keep.bytes)
