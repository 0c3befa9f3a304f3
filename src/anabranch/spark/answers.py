"""The answer log: what was answered to each subscription, in order, and what was set aside.

The log itself is the chunks in the tasks' segments; here is the index of them and the reading of one subscription's
answer, which is put together piece by piece and need never be in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch.spark.segments import DEAD_LETTERS, Chunk, read_chunk, read_dead_letters
from anabranch.stream.elements import DeadLetter


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around the answers to single items, `<photons>` and `</photons>`; without any, `<photons/>`."""

    opening: str
    closing: str
    empty: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one subscription; iterating gives its text in pieces."""

    subscription: str
    frame: Frame
    folder: Path
    chunks: tuple[Chunk, ...]

    @property
    def entries(self) -> int:
        """How many items contributed."""
        return sum(chunk.entries for chunk in self.chunks)

    def __iter__(self) -> Iterator[str]:
        if not self.chunks:
            yield self.frame.empty
            return
        yield self.frame.opening
        for chunk in self.chunks:
            yield read_chunk(self.folder, chunk)
        yield self.frame.closing

    def text(self) -> str:
        """The whole answer."""
        return "".join(self)


class AnswerLog:
    """The index over all segments of a run; only the trunk adds to it, epoch by epoch and in stream order."""

    def __init__(self, folder: Path, subscriptions: int) -> None:
        self.folder = folder
        self._chunks: list[list[Chunk]] = [[] for _ in range(subscriptions)]
        self._dead: list[Chunk] = []

    def extend(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            held = self._dead if chunk.subscription == DEAD_LETTERS else self._chunks[chunk.subscription]
            held.append(chunk)

    def chunks(self, subscription: int) -> tuple[Chunk, ...]:
        return tuple(self._chunks[subscription])

    def dead_letters(self) -> Iterator[DeadLetter]:
        for chunk in self._dead:
            yield from read_dead_letters(self.folder, chunk)
