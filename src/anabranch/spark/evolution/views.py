"""How subscriptions see the evolution of a stream: from its beginning, or from where they began (LAWS 3.6).

The events of a log are judged once, by the evolution of each partition (`algebra/accents/events.py`); valid events are
passed to subscriptions.
A `StreamView` is the stream as seen by subscriptions that began with one epoch: first the accents then in force for a
part of the items, and after that all valid events since.

A worker caches the log it has read, with the evolutions and views that follow from it, and reads on from there.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeAlias

from anabranch.algebra.accents.events import Announced, Event, judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.branch.evolution.changelog import closes_all
from anabranch.branch.ports import Start
from anabranch.runtime.evolution.views import views
from anabranch.spark.evolution.log import Logged, LoggedEvent, events_of
from anabranch.storage import Location
from anabranch.stream.description import Description
from anabranch.stream.elements import Accent, DeadLetter, Doubt, Place, Punctuation
from anabranch.stream.reading.source import KnownStream


@dataclass(slots=True)
class StreamView:
    """A stream as seen by subscriptions that began together; `take` alone changes it."""

    evolutions: list[Evolution]
    """By partition: the units of values since then."""
    events: list[Announced] = field(default_factory=list)
    """All events for them, in order."""
    initial: int = 0
    """How many of these were in force at their beginning."""

    @staticmethod
    def of(stream: KnownStream, before: Sequence[Announced]) -> StreamView:
        """The view of subscriptions that began behind some events."""
        fresh = _fresh(stream)
        if not before:
            return StreamView(fresh)
        for each in before:
            judged(each.event, fresh[each.partition])
        places = [Place(stream.name, str(number), 0) for number in range(len(fresh))]
        found = views(fresh, places)
        events = [
            Announced(stream.name, number, _shown(each, places[number]))
            for number, view in enumerate(found)
            for each in view.accents
        ]
        return StreamView([view.evolution for view in found], events, len(events))

    def take(self, announced: Announced) -> None:
        """Apply an event."""
        judged(announced.event, self.evolutions[announced.partition])
        self.events.append(announced)

    def copy(self) -> StreamView:
        """A copy that the caller may change."""
        return StreamView([each.copy() for each in self.evolutions], list(self.events), self.initial)


def _shown(shown: Accent | Doubt, place: Place) -> Event:
    if isinstance(shown, Accent):
        return shown
    return DeadLetter(place, "it was in doubt when the subscription began", "", doubts=(shown,))


@dataclass(slots=True)
class KnownLog:
    """The log of a stream as a worker has read it; it only grows, and callers copy what they change."""

    stream: KnownStream
    evolutions: list[Evolution]
    """By partition: behind all logged events."""
    events: list[LoggedEvent] = field(default_factory=list)
    """All events, in the order of their epochs."""
    valid: list[Announced] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    """By valid event: the epoch that read it."""
    begun: dict[int, StreamView] = field(default_factory=dict)
    """By the number of valid events before it: the view at its beginning."""
    views: dict[int, StreamView] = field(default_factory=dict)
    """By that number: the view with all valid events since."""
    size: int = 0
    hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def read_on(self, folder: Location, logged: Logged) -> bool:
        """Read new lines; False if the lines read before are not those of the manifest."""
        data = logged.read(folder, self.size)
        self.hash.update(data)
        if self.hash.hexdigest() != logged.digest:
            return False
        self.size = logged.size
        for each in events_of(data):
            self._take(each)
        return True

    def up_to(self, epoch: int) -> KnownLog:
        """The log as it was behind an epoch."""
        if all(each.epoch <= epoch for each in self.events):
            return self
        found = KnownLog(self.stream, _fresh(self.stream))
        for each in self.events:
            if each.epoch <= epoch:
                found._take(each)
        return found

    def _take(self, logged: LoggedEvent) -> None:
        self.events.append(logged)
        found = judged(logged.announced.event, self.evolutions[logged.partition])
        if isinstance(found, Event):
            self.epochs.append(logged.epoch)
            self.valid.append(Announced(self.stream.name, logged.partition, found))

    def borders(self, last: int) -> tuple[int, ...]:
        """The epochs with valid events, up to the first epoch of the last subscription."""
        return tuple(dict.fromkeys(self.epochs[: bisect_left(self.epochs, last)]))

    def view(self, first: int) -> StreamView:
        """The view of subscriptions that began late, with the epoch `first`, or at the stream's beginning (-1)."""
        begin = self._begin(first)
        if begin not in self.views:
            self.views[begin] = self.begun[begin].copy()
        view = self.views[begin]
        for announced in self.valid[begin + len(view.events) - view.initial :]:
            view.take(announced)
        return view

    def starts(self, first: int) -> list[Start]:
        """The partitions as seen by subscriptions that begin with an epoch."""
        view = self.begun[self._begin(first)]
        shown: list[list[Accent | DeadLetter]] = [[] for _ in view.evolutions]
        for each in view.events:
            if not isinstance(each.event, Punctuation):
                shown[each.partition].append(each.event)
        return [Start(*each) for each in zip(view.evolutions, map(tuple, shown), strict=True)]

    def sees_alike(self, earlier: int, later: int) -> bool:
        """Whether all that still comes means the same to subscriptions that begin late with one of two epochs.

        Between the two there may only be punctuations, of which later ones, before any accent, say all that they say.
        """
        first, last = (bisect_left(self.epochs, each) if each >= 0 else 0 for each in (earlier, later))
        missed = self.valid[first:last]
        if not all(isinstance(each.event, Punctuation) for each in missed):
            return False
        closed: dict[int, list[Description | None]] = {}
        for each in takewhile(lambda each: isinstance(each.event, Punctuation), self.valid[last:]):
            assert isinstance(each.event, Punctuation)
            closed.setdefault(each.partition, []).append(each.event.where)
        return all(
            any(closes_all(where, each.event.where) for where in reversed(closed.get(each.partition, [])[-_COMPARED:]))
            for each in missed
            if isinstance(each.event, Punctuation) and each.event.where is not None
        )

    def _begin(self, first: int) -> int:
        """The number of valid events before an epoch."""
        begin = bisect_left(self.epochs, first) if first >= 0 else 0
        if begin not in self.begun:
            self.begun[begin] = StreamView.of(self.stream, self.valid[:begin])
        return begin


KnownLogs: TypeAlias = dict[tuple[Location, str], KnownLog]
"""The logs that have been read, by folder and stream."""
_COMPARED = 64
"""The number of later punctuations that a punctuation is compared with."""
_known: KnownLogs = {}
_MOST_KNOWN = 256
"""The number of cached streams; fewer than a trunk has would never hit, for each range needs all of them."""


def known_log(folder: Location, stream: KnownStream, logged: Logged | None, cached: KnownLogs = _known) -> KnownLog:
    """The log of a stream, up to the manifest's record; an empty one where there is none.

    A thread beside the one that works on epochs has a cache of its own.
    """
    if logged is None:
        return KnownLog(stream, _fresh(stream))
    key = folder, stream.name
    known = cached.get(key)
    if known is None or known.stream != stream or known.size > logged.size or not known.read_on(folder, logged):
        known = KnownLog(stream, _fresh(stream))
        if not known.read_on(folder, logged):
            raise logged.damaged(folder)
        if len(cached) >= _MOST_KNOWN:
            cached.clear()
        cached[key] = known
    return known


def _fresh(stream: KnownStream) -> list[Evolution]:
    """The evolutions of all partitions at their beginnings."""
    return [Evolution.of(stream.source) for _ in stream.source.partitions]
