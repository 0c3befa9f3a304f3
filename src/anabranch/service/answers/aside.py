"""What was set aside, by position: dead letters, and items that came too late.

The position of a letter is its epoch and its number among all letters of the epoch, whatever is filtered; one of a
late item counts an item once that several branches have logged.
A page looks through so many letters at most, so one that filters may be short, or empty, and still have a next one.

The log has the text of a dead letter, and of a late item only the place; its text is read where it lies, if that is a
plain file of its stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from anabranch.errors import AnabranchError, StateError
from anabranch.service.answers.epochs import EpochIndex
from anabranch.service.answers.positions import ResultPosition
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.answers.segments import DEAD_LETTERS, LATE_ITEMS, late_places, letter_from_json
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.storage import Location
from anabranch.stream.elements import LONGEST_RAW, MESSAGE_BITS, MESSAGE_LINES, DeadLetter, Place
from anabranch.stream.limits import Limits
from anabranch.stream.reading.gzip import MAGIC
from anabranch.stream.reading.source import Source
from anabranch.stream.reading.split import DocumentSplitter

_LOOKED = 20_000
"""Letters that one page looks through."""
_ITEM_BYTES = 1 << 16
"""The bytes in which the end of a late item is sought."""
TOO_LATE = "too late for a time window"
_Read: TypeAlias = Callable[[Manifest, int], Iterator[DeadLetter]]


@dataclass(frozen=True, slots=True)
class AsidePage:
    """Some letters with their positions, where the next page begins, and whether there is one."""

    letters: Sequence[tuple[ResultPosition, DeadLetter]]
    next: ResultPosition | None
    more: bool


class LettersAside:
    """Dead letters and late items of a log; any thread may ask."""

    def __init__(self, log: AnswerLog, epochs: EpochIndex, segments: Location) -> None:
        self._log = log
        self._epochs = epochs
        self._segments = segments

    def dead(self, after: ResultPosition | None, limit: int, stream: str | None, subscription: str | None) -> AsidePage:
        """A page of dead letters, of all streams or of one, and of all subscriptions or of one."""

        def is_asked(letter: DeadLetter) -> bool:
            return _is_of(letter, stream) and subscription in (None, letter.subscription)

        return self._page(DEAD_LETTERS, self._dead, after, limit, is_asked)

    def late(
        self, after: ResultPosition | None, limit: int, stream: str | None, streams: Mapping[str, Source]
    ) -> AsidePage:
        """A page of late items; those of `streams` with their texts, where these can be had."""
        page = self._page(LATE_ITEMS, self._late, after, limit, lambda letter: _is_of(letter, stream))
        told = [(position, _with_text(letter, streams)) for position, letter in page.letters]
        return AsidePage(told, page.next, page.more)

    def _dead(self, manifest: Manifest, start: int) -> Iterator[DeadLetter]:
        """The dead letters of an epoch from a number on; chunks in front of it are not read."""
        passed = 0
        for chunk in self._log.chunks(manifest, DEAD_LETTERS):
            if passed + chunk.entries > start:
                lines = self._log.text(chunk).split("\n")[: chunk.entries]
                yield from map(letter_from_json, lines[max(0, start - passed) :])
            passed += chunk.entries

    def _late(self, manifest: Manifest, start: int) -> Iterator[DeadLetter]:
        for line in late_places(self._segments, manifest.segments)[start:]:
            yield DeadLetter(_place(line), TOO_LATE, "")

    def _page(
        self,
        number: int,
        read: _Read,
        after: ResultPosition | None,
        limit: int,
        is_asked: Callable[[DeadLetter], bool],
    ) -> AsidePage:
        found: list[tuple[ResultPosition, DeadLetter]] = []
        reached = after
        for looked, (position, letter) in enumerate(self._behind(number, read, after)):
            if len(found) == limit or looked == _LOOKED:
                return AsidePage(found, reached, more=True)
            reached = position
            if is_asked(letter):
                found.append((position, letter))
        return AsidePage(found, reached, more=False)

    def _behind(
        self, number: int, read: _Read, after: ResultPosition | None
    ) -> Iterator[tuple[ResultPosition, DeadLetter]]:
        epoch, start = (after.epoch, after.index + 1) if after else (0, 0)
        while (following := self._epochs.behind(number, epoch)) is not None:
            start = start if following == epoch else 0
            manifest = self._epochs.manifest(following)
            try:
                for index, letter in enumerate(read(manifest, start) if manifest else (), start):
                    yield ResultPosition(following, index), letter
            except StateError:
                if self._epochs.manifest(following) is not None:
                    raise  # else retention has dropped it meanwhile
            epoch, start = following + 1, 0


def _is_of(letter: DeadLetter, stream: str | None) -> bool:
    return stream in (None, letter.place.stream)


def _place(line: str) -> Place:
    """The place in the line of a late item."""
    told = json.loads(line)
    if "byte" not in told:
        return Place(told["stream"], told["partition"], told["offset"])
    return Place(told["stream"], told["partition"] + MESSAGE_LINES, (told["offset"] << MESSAGE_BITS) + told["byte"])


# --- the text of a late item ------------------------------------------------------------------------------------------


def _with_text(letter: DeadLetter, streams: Mapping[str, Source]) -> DeadLetter:
    source = streams.get(letter.place.stream)
    text = "" if source is None else _text_at(source, letter.place)
    return DeadLetter(letter.place, letter.reason, text)


def _text_at(source: Source, place: Place) -> str:
    """The item at a place, cut to a readable length; empty where it is not in one plain file of the stream."""
    if source.topic is not None or source.http is not None or "/" in place.partition:
        return ""
    try:
        files = [file for each in source.partitions for file in (each, each / place.partition)]
        named = [file for file in files if file.name == place.partition and file.exists()]
        if len(named) != 1 or named[0].read(0, len(MAGIC)) == MAGIC:
            return ""
        return _item_in(named[0].read(place.offset, _ITEM_BYTES)).decode(errors="replace")[:LONGEST_RAW]
    except (OSError, AnabranchError):
        return ""


def _item_in(data: bytes) -> bytes:
    """The item that data begin with: an element, or a line; all of it where its end is not there."""
    if not data.startswith(b"<"):
        return data.partition(b"\n")[0]
    splitter = DocumentSplitter(Limits())
    splitter.feed(b"<all>")
    return next((cut.raw for cut in splitter.feed(data)), data)
