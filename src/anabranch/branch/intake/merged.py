"""A branch behind the merge of its inputs: what all of them do that take elements in the order of LAWS 1.2.

Something comes in, and then those elements are taken whose turn has come; what waits for its turn is the merge's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction

from anabranch.branch.intake.backlog import Key
from anabranch.branch.intake.merge import Judge, Merge
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.timeline import Timed


class Merged(ABC):
    """What is common to such branches; one takes what the merge releases, and may do something at the end of all."""

    def __init__(self, inputs: Iterable[InputStream], spill: Spill, judge: Judge | None = None) -> None:
        self._merge = Merge(list(inputs), spill, judge)

    def tell(self, timed: Sequence[Timed]) -> None:
        """Have the pieces of some outputs told with their moments."""
        self._merge.tell(timed)

    def feed(self, data: bytes) -> None:
        """Take in a packed feed; those of one partition come in stream order."""
        self._merge.feed(data)
        self._run()

    def passed(self, time: Fraction) -> None:
        """No input whose elements have the times of their arrival brings anything at or before `time` any more."""
        self._merge.passed(time)
        self._run()

    def end(self, stream: str, partition: int) -> None:
        """An input has ended; the last one to end closes what is open."""
        self._merge.end(stream, partition)
        self._run()
        if self._merge.ended:
            self._finish()

    @abstractmethod
    def _run(self) -> None:
        """Take the elements whose turn has come."""

    def _finish(self) -> None:  # noqa: B027  # most have nothing to do then
        """All inputs have ended, and what they brought was taken."""

    @property
    def waiting(self) -> dict[Key, int]:
        """How many elements of each input it holds back, because another input is behind."""
        return self._merge.waiting

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that its state needs."""
        return self._merge.spilled
