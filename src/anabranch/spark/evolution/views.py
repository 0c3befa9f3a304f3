"""How subscriptions see the evolution of a stream: from its beginning, or from where they began (LAWS 3.6).

The events that a log holds are judged once, by the evolution of each partition (`algebra/accents/events.py`); those
that are valid are what subscriptions are told.
A `StreamView` is what of them concerns those who began with one epoch: first what was in force for a part of the items
then, and after that all valid events since.

A worker keeps what it has read of a log, with the evolutions and views that follow from it, and reads on from there.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.algebra.accents.events import Announced, Event, judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.branch.ports import Start
from anabranch.runtime.evolution.views import views
from anabranch.spark.evolution.log import Logged, LoggedEvent, events_of
from anabranch.stream.elements import Accent, DeadLetter, Doubt, Place, Punctuation
from anabranch.stream.reading.source import KnownStream


@dataclass(slots=True)
class StreamView:
    """A stream as those see it who began together; `take` alone changes it."""

    evolutions: list[Evolution]
    """By partition: what values mean to them."""
    told: list[Announced] = field(default_factory=list)
    """All that they are told, in order."""
    shown: int = 0
    """How much of it was in force when they began."""

    @staticmethod
    def of(stream: KnownStream, before: Sequence[Announced]) -> StreamView:
        """The view of those who began behind some events."""
        fresh = _fresh(stream)
        if not before:
            return StreamView(fresh)
        for each in before:
            judged(each.event, fresh[each.partition])
        places = [Place(stream.name, str(number), 0) for number in range(len(fresh))]
        found = views(fresh, places)
        told = [
            Announced(stream.name, number, _shown(each, places[number]))
            for number, view in enumerate(found)
            for each in view.accents
        ]
        return StreamView([view.evolution for view in found], told, len(told))

    def take(self, announced: Announced) -> None:
        """Go on behind an event."""
        judged(announced.event, self.evolutions[announced.partition])
        self.told.append(announced)

    def copy(self) -> StreamView:
        """The same, to be taken further by somebody else."""
        return StreamView([each.copy() for each in self.evolutions], list(self.told), self.shown)


def _shown(shown: Accent | Doubt, place: Place) -> Event:
    if isinstance(shown, Accent):
        return shown
    return DeadLetter(place, "it was in doubt when the subscription began", "", doubts=(shown,))


@dataclass(slots=True)
class KnownLog:
    """What a worker knows of the log of a stream; it only grows, and whoever changes what it gives copies it."""

    stream: KnownStream
    evolutions: list[Evolution]
    """By partition: behind all that is logged."""
    events: list[LoggedEvent] = field(default_factory=list)
    """All of them, in the order of their epochs."""
    valid: list[Announced] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    """By valid event: the epoch that read it."""
    begun: dict[int, StreamView] = field(default_factory=dict)
    """By the number of valid events before: the view of those who begin there, and nothing since."""
    views: dict[int, StreamView] = field(default_factory=dict)
    """The same with all valid events since."""
    size: int = 0
    hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def read_on(self, folder: Path, logged: Logged) -> bool:
        """Take in what is new; whether what was read is what the manifest means."""
        data = logged.read(folder, self.size)
        self.hash.update(data)
        if self.hash.hexdigest() != logged.digest:
            return False
        self.size = logged.size
        for each in events_of(data):
            self.events.append(each)
            found = judged(each.announced.event, self.evolutions[each.partition])
            if isinstance(found, Event):
                self.epochs.append(each.epoch)
                self.valid.append(Announced(self.stream.name, each.partition, found))
        return True

    def borders(self, last: int) -> tuple[int, ...]:
        """The epochs with valid events, up to that in which the last subscription began."""
        return tuple(dict.fromkeys(self.epochs[: bisect_left(self.epochs, last)]))

    def view(self, first: int) -> StreamView:
        """The view of those who began late, with the epoch `first`, or at the stream's beginning (-1)."""
        begin = self._begin(first)
        if begin not in self.views:
            self.views[begin] = self.begun[begin].copy()
        view = self.views[begin]
        for announced in self.valid[begin + len(view.told) - view.shown :]:
            view.take(announced)
        return view

    def starts(self, first: int) -> list[Start]:
        """The partitions as those see them who begin with an epoch."""
        view = self.begun[self._begin(first)]
        shown: list[list[Accent | DeadLetter]] = [[] for _ in view.evolutions]
        for each in view.told:
            if not isinstance(each.event, Punctuation):
                shown[each.partition].append(each.event)
        return [Start(*each) for each in zip(view.evolutions, map(tuple, shown), strict=True)]

    def _begin(self, first: int) -> int:
        """The number of valid events before those who began with an epoch."""
        begin = bisect_left(self.epochs, first) if first >= 0 else 0
        if begin not in self.begun:
            self.begun[begin] = StreamView.of(self.stream, self.valid[:begin])
        return begin


_known: dict[Path, KnownLog] = {}
_MOST_KNOWN = 256
"""Streams; fewer than a trunk has would be worse than none, for each range asks for all of them."""


def known_log(folder: Path, stream: KnownStream, logged: Logged | None) -> KnownLog:
    """The log of a stream, as far as a manifest names it; an empty one where it names none."""
    if logged is None:
        return KnownLog(stream, _fresh(stream))
    path = folder / logged.file
    known = _known.get(path)
    if known is None or known.stream != stream or known.size > logged.size or not known.read_on(folder, logged):
        known = KnownLog(stream, _fresh(stream))
        if not known.read_on(folder, logged):
            raise logged.damaged(folder)
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[path] = known
    return known


def _fresh(stream: KnownStream) -> list[Evolution]:
    """The evolutions of all partitions at their beginnings."""
    return [Evolution.of(stream.source) for _ in stream.source.partitions]
