"""How far a stream has come by the values of one window's reference, over epochs (LAWS 3.2, 3.6)."""

from __future__ import annotations

from typing import Any

from anabranch.algebra.window import Extent
from anabranch.branch.ports import InputStream
from anabranch.branch.state import fraction, reach, written
from anabranch.law.rounds import windows
from anabranch.law.rounds.windows import Reach


class Progress(windows.Progress):
    """The law's own judgement, which can be remembered; values are those from the stream's origin on."""

    def __init__(self, stream: InputStream) -> None:
        super().__init__(stream.slack, stream.partitions)
        self._late = stream.late

    def largest(self, partition: int) -> Reach | None:
        """The largest value that a partition has shown; infinity where it has ended."""
        return self._largest.get(partition)

    def first_window(self, extent: Extent) -> int:
        """The first window that the subscription sees whole; 0 unless it came late."""
        return extent.from_start(self.first) if self._late and self.first is not None else 0

    def save(self) -> dict[str, Any]:
        largest = {str(partition): written(value) for partition, value in self._largest.items()}
        return {"largest": largest, "first": written(self.first)}

    def restore(self, meta: dict[str, Any]) -> None:
        """Take in what `save` gave."""
        found = {int(partition): reach(text) for partition, text in meta["largest"].items()}
        self._largest = {partition: value for partition, value in found.items() if value is not None}
        self.first = fraction(meta["first"])
