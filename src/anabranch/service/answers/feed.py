"""The results of an answer by position, for any number of readers.

An epoch's results of a subscription are read and split in *parts* of about a megabyte: whole chunks, so that where a
part begins follows from the log alone, and memory does not grow with an epoch.
A part is read, checked and split once for all readers, and kept while it is used, within a bound of bytes; so a
thousand clients that follow one answer cost one split, and one that is far behind reads on its own.

All functions here read files and may take a moment, but `peek`; none of them belongs on the server's own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from threading import Lock
from typing import Generic, TypeVar

from anabranch.errors import StateError
from anabranch.service.answers.epochs import EpochIndex
from anabranch.service.answers.positions import ResultPosition
from anabranch.service.answers.shared_cache import SharedCache
from anabranch.spark.answers.log import AnswerFrame, AnswerLog
from anabranch.spark.answers.segments import Chunk

P = TypeVar("P")

_PART_BYTES, _LARGE_BYTES = 1 << 20, 4 << 20
_CACHE_BYTES = 32 << 20
"""Of parts for pages, and again of parts for events."""
_LAYOUT_BYTES = 8 << 20
_CHUNK_SIZE, _RESULT_SIZE = 300, 100
"""Bytes in memory of a chunk's place, and of a result besides its text."""
_POINTER_SIZE = 16


@dataclass(frozen=True, slots=True)
class ResultSource:
    """Whose results are read: the number of a subscription, its first epoch, and how its chunks are split."""

    number: int
    first: int
    frame: AnswerFrame


@dataclass(frozen=True)
class ResultPart:
    """Consecutive results of one epoch."""

    epoch: int
    part: int
    first: int
    """The number of its first result in the epoch."""
    texts: tuple[str, ...]
    is_last: bool
    """Whether the epoch has no more of them."""

    @property
    def following(self) -> tuple[int, int]:
        """The epoch and the part behind it."""
        return (self.epoch + 1, 0) if self.is_last else (self.epoch, self.part + 1)

    @cached_property
    def size(self) -> int:
        """Its bytes in memory."""
        return sum(text.__sizeof__() + _RESULT_SIZE for text in self.texts) + _CHUNK_SIZE


@dataclass(frozen=True)
class WirePart:
    """The same as server-sent events, as they are sent."""

    epoch: int
    part: int
    first: int
    data: bytes
    ends: tuple[int, ...]
    """Where each event ends."""
    is_last: bool

    @staticmethod
    def of(part: ResultPart) -> WirePart:
        events = [event(text, id=f"{part.epoch}-{index}") for index, text in enumerate(part.texts, part.first)]
        ends = tuple(accumulate(map(len, events)))
        return WirePart(part.epoch, part.part, part.first, b"".join(events), ends, part.is_last)

    @property
    def following(self) -> tuple[int, int]:
        """The epoch and the part behind it."""
        return (self.epoch + 1, 0) if self.is_last else (self.epoch, self.part + 1)

    def start(self, count: int) -> int:
        """Where the data begin without the first few events."""
        return self.ends[min(count, len(self.ends)) - 1] if count and self.ends else 0

    @property
    def size(self) -> int:
        """Its bytes in memory."""
        return len(self.data) + 2 * _POINTER_SIZE * len(self.ends) + _CHUNK_SIZE


@dataclass(frozen=True, slots=True)
class FeedStep(Generic[P]):
    """What lies at a place of an answer: a part, or None where there is no more up to the epoch `reached`."""

    found: P | None
    reached: int
    kept: int
    """The oldest epoch that is kept."""


class _Layout:
    """The parts of an epoch, and as far as known the number of the first result of each."""

    def __init__(self, parts: Sequence[tuple[Chunk, ...]]) -> None:
        self.parts = parts
        self.firsts = {0: 0}
        """By part; any thread may add what all of them would find."""

    def part_with(self, index: int) -> int:
        """The last part known not to begin behind a result."""
        return max(part for part, first in [*self.firsts.items()] if first <= index)


class AnswerFeed:
    """The results in a log; any thread may ask."""

    def __init__(self, log: AnswerLog, epochs: EpochIndex) -> None:
        self._log = log
        self.epochs = epochs
        self._parts: SharedCache[tuple[int, int, int], ResultPart] = SharedCache(_CACHE_BYTES, lambda each: each.size)
        self._reading_large = Lock()
        """Held while a large part is read, which takes some times its size in memory."""
        self._wires: SharedCache[tuple[int, int, int], WirePart] = SharedCache(_CACHE_BYTES, lambda each: each.size)
        self._layouts: SharedCache[tuple[int, int], _Layout] = SharedCache(
            _LAYOUT_BYTES, lambda each: _CHUNK_SIZE * (1 + sum(map(len, each.parts)))
        )

    # --- parts ----------------------------------------------------------------------------------------------

    def peek(self, source: ResultSource, epoch: int, part: int) -> WirePart | None:
        """A part as events, if it is kept in memory and not dropped by retention; never waits."""
        return self._wires.peek((source.number, epoch, part)) if epoch >= self.epochs.known_first else None

    def step(self, source: ResultSource, epoch: int, part: int) -> FeedStep[ResultPart]:
        """The first part at or behind a place."""
        return self._step(source, epoch, part, self._part)

    def wire_step(self, source: ResultSource, epoch: int, part: int) -> FeedStep[WirePart]:
        """The same, as events."""
        return self._step(source, epoch, part, self._wire)

    def _step(
        self, source: ResultSource, epoch: int, part: int, read: Callable[[ResultSource, int, int], P | None]
    ) -> FeedStep[P]:
        reached, kept = self.epochs.last, self.epochs.first
        while True:
            following = self.epochs.behind(source.number, epoch)
            if following is None or following > reached:
                return FeedStep(None, reached, kept)
            if following > epoch:
                epoch, part = following, 0
            found = read(source, epoch, part)
            if found is not None:
                return FeedStep(found, reached, kept)
            epoch, part = epoch + 1, 0

    def part_with(self, source: ResultSource, position: ResultPosition) -> int:
        """The part of an epoch from which on to look for a result."""
        return self._layout(source.number, position.epoch).part_with(position.index)

    def _layout(self, number: int, epoch: int) -> _Layout:
        return self._layouts.get((number, epoch), lambda: _Layout(_grouped(self.epochs.chunks(epoch, number))))

    def _part(self, source: ResultSource, epoch: int, part: int) -> ResultPart | None:
        """A part; None where the epoch has not so many, or was dropped meanwhile."""
        return self._read(source, epoch, part, self._parts, lambda made: made)

    def _wire(self, source: ResultSource, epoch: int, part: int) -> WirePart | None:
        """The same as events; its texts are not kept besides, for who follows needs no pages."""
        return self._read(source, epoch, part, self._wires, WirePart.of)

    def _read(
        self,
        source: ResultSource,
        epoch: int,
        part: int,
        cache: SharedCache[tuple[int, int, int], P],
        make: Callable[[ResultPart], P],
    ) -> P | None:
        layout, key = self._layout(source.number, epoch), (source.number, epoch, part)
        if part >= len(layout.parts):
            return None
        try:
            return cache.get(key, lambda: make(self._parts.peek(key) or self._split(source, epoch, part, layout)))
        except StateError:
            if epoch < self.epochs.first or self.epochs.manifest(epoch) is None:
                return None
            raise

    def _split(self, source: ResultSource, epoch: int, part: int, layout: _Layout) -> ResultPart:
        for before in range(part):  # those in front of it are counted first, unless they were
            if before + 1 not in layout.firsts:
                self._part(source, epoch, before)
        texts: list[str] = []
        is_large = sum(chunk.length for chunk in layout.parts[part]) > _LARGE_BYTES
        with self._reading_large if is_large else nullcontext():
            for chunk in layout.parts[part]:
                text = self._log.text(chunk)
                results = source.frame.results(chunk, text)
                texts += (each.removesuffix("\n") for each in results) if source.frame.is_json(text) else results
        first, is_last = layout.firsts[part], part == len(layout.parts) - 1
        layout.firsts[part + 1] = first + len(texts)
        return ResultPart(epoch, part, first, tuple(texts), is_last)

    # --- results --------------------------------------------------------------------------------------------

    def forward(self, source: ResultSource, after: ResultPosition | None) -> Iterator[tuple[ResultPosition, str]]:
        """The results behind a position, or all, in order."""
        if after is None or after.epoch < source.first:
            epoch, part, least = source.first, 0, 0
        elif after.epoch > self.epochs.last:
            return
        else:
            epoch, part, least = after.epoch, self.part_with(source, after), after.index + 1
        begun = epoch
        while (found := self.step(source, epoch, part).found) is not None:
            skipped = max(0, least - found.first) if found.epoch == begun else 0
            for index in range(skipped, len(found.texts)):
                yield ResultPosition(found.epoch, found.first + index), found.texts[index]
            epoch, part = found.following

    def backward(self, source: ResultSource, before: ResultPosition | None) -> Iterator[tuple[ResultPosition, str]]:
        """The results in front of a position, or all, the last one first."""
        if before is not None and before.epoch <= self.epochs.last:
            yield from self._reversed(source, before.epoch, self._parts_before(source, before), before.index)
        epoch = self.epochs.last + 1 if before is None else before.epoch
        while (former := self.epochs.before(source.number, epoch)) is not None:
            epoch = former
            yield from self._reversed(source, epoch, len(self._layout(source.number, epoch).parts))

    def _reversed(
        self, source: ResultSource, epoch: int, parts: int, most: int | None = None
    ) -> Iterator[tuple[ResultPosition, str]]:
        """The results in the first parts of an epoch, or the first `most` of them, the last one first."""
        for part in range(parts - 1, -1, -1):
            found = self._part(source, epoch, part)
            if found is not None:
                count = len(found.texts) if most is None else min(len(found.texts), most - found.first)
                for index in range(count - 1, -1, -1):
                    yield ResultPosition(epoch, found.first + index), found.texts[index]

    def _parts_before(self, source: ResultSource, position: ResultPosition) -> int:
        """How many parts of an epoch begin in front of a position."""
        count = 0
        if position.epoch >= self.epochs.first and self.epochs.has(position.epoch, source.number):
            for part in range(len(self._layout(source.number, position.epoch).parts)):
                found = self._part(source, position.epoch, part)
                if found is None or found.first >= position.index:
                    break
                count = part + 1
        return count


def _grouped(chunks: Sequence[Chunk]) -> list[tuple[Chunk, ...]]:
    """The parts of an epoch: chunks of a megabyte together, or a larger one by itself."""
    parts: list[tuple[Chunk, ...]] = []
    group: list[Chunk] = []
    size = 0
    for chunk in chunks:
        if group and size + chunk.length > _PART_BYTES:
            parts.append(tuple(group))
            group, size = [], 0
        group.append(chunk)
        size += chunk.length
    return [*parts, tuple(group)] if group else parts


# --- events -----------------------------------------------------------------------------------------------------------


def event(text: str, *, id: str | None = None, kind: str | None = None) -> bytes:
    """A server-sent event; its data is the text, a line of it for each of its lines.

    A carriage return cannot be sent in one, for it ends a line there.
    XML and JSON spell it as a reference where it means something; where one stands by itself in an item that is given
    as it was read, it is an end of a line for every reader of XML, and a blank for every reader of JSON.
    """
    head = "" if id is None else f"id: {id}\n"
    head += "" if kind is None else f"event: {kind}\n"
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    body = text.replace("\n", "\ndata: ")
    return f"{head}data: {body}\n\n".encode()


def comment(text: str = "") -> bytes:
    """A line that clients skip."""
    return f": {' '.join(text.split())}\n\n".encode()
