"""The answer log: what was answered to each subscription, in order, and what was set aside.

The log itself is the chunks in the tasks' segments, and its index are the manifests; here is the reading of it, which
needs no lock and no Spark: also while a run is at work, or after one was killed.
An answer is put together piece by piece and need never be in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from anabranch.language import parse
from anabranch.reference.calls import PythonFunction
from anabranch.reference.standing import standing
from anabranch.spark.checkpoint import Checkpoint
from anabranch.spark.manifest import Manifest, Manifests
from anabranch.spark.plan import Subscription
from anabranch.spark.plans import Plans
from anabranch.spark.segments import DEAD_LETTERS, Chunk, Index, read_chunk, read_dead_letters, read_index
from anabranch.stream.elements import DeadLetter


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around the pieces of an answer, `<photons>` and `</photons>`; without any, `<photons/>`."""

    opening: str
    closing: str
    empty: str

    @staticmethod
    def of(text: str, functions: Mapping[str, PythonFunction] | None = None) -> Frame:
        """The frame of a query that was checked."""
        query = standing(parse(text), functions)
        return Frame(query.opening, query.closing, query.empty)


@dataclass(frozen=True, slots=True)
class Answer:
    """The committed answer to one subscription; iterating gives its text in pieces."""

    subscription: Subscription
    frame: Frame
    log: AnswerLog

    @property
    def entries(self) -> int:
        """How many items contributed."""
        return sum(chunk.entries for chunk in self._chunks())

    @property
    def whole(self) -> bool:
        """Whether it is there from its first epoch on; retention may have dropped a part."""
        kept = self.log.manifests.epochs()
        return not kept or kept[0] <= self.subscription.first

    def _chunks(self) -> Iterator[Chunk]:
        for manifest in self.log.manifests.since(self.subscription.first):
            yield from self.log.chunks(manifest, self.subscription.id)

    def __iter__(self) -> Iterator[str]:
        empty = True
        for chunk in self._chunks():
            if empty:
                yield self.frame.opening
            empty = False
            yield self.log.text(chunk)
        yield self.frame.empty if empty else self.frame.closing

    def text(self) -> str:
        """The whole answer."""
        return "".join(self)


class AnswerLog:
    """The answers in a checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.manifests = Manifests(checkpoint.manifests)
        self._plans = Plans(checkpoint.plans)
        self._segments = checkpoint.segments

    def subscription(self, name: str) -> Subscription | None:
        """The newest subscription of a name that a committed epoch has seen."""
        kept = self.manifests.epochs()
        for plan in self._plans.newest_first(kept[-1] if kept else -1):
            for each in plan.subscriptions:
                if each.name == name:
                    return each
        return None

    def answer(self, subscription: Subscription, functions: Mapping[str, PythonFunction] | None = None) -> Answer:
        return Answer(subscription, Frame.of(subscription.text, functions), self)

    def index(self, manifest: Manifest) -> Index:
        """What an epoch answered, by subscription."""
        return read_index(self._segments, manifest.segments)

    def chunks(self, manifest: Manifest, subscription: int) -> list[Chunk]:
        """The chunks of one subscription, or of the dead letters."""
        return self.index(manifest).of(subscription)

    def text(self, chunk: Chunk, most: int | None = None) -> str:
        """What a chunk holds, or at most so many bytes of it."""
        return read_chunk(self._segments, chunk, most)

    def dead_letters(self) -> Iterator[DeadLetter]:
        for manifest in self.manifests.since(0):
            yield from self.buried(manifest)

    def buried(self, manifest: Manifest) -> Iterator[DeadLetter]:
        """The dead letters of one epoch."""
        for chunk in self.chunks(manifest, DEAD_LETTERS):
            yield from read_dead_letters(self._segments, chunk)
