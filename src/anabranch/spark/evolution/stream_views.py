"""How subscriptions see the evolution of a stream: from its beginning, or from where they began (LAWS 3.6).

What a log says of a stream is judged once, by the evolution of each partition (`algebra/accents/passing.py`), and is
then a sequence of *sayings*: valid accents, punctuations, and dead letters that leave paths in doubt.
A `StreamView` is what of them concerns those who began with one epoch: first what was in force for a part of the items
then, and after that all that was said since.

A worker keeps the views that it has met and goes on from where they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.passing import judged
from anabranch.runtime.evolution.views import views
from anabranch.spark.evolution.changes import Change
from anabranch.spark.evolution.log import Logged, logged_changes
from anabranch.spark.plan.epoch_plan import StreamPlan
from anabranch.stream.elements import Accent, DeadLetter, Doubt, Place, Punctuation

Event: TypeAlias = Accent | Punctuation | DeadLetter


@dataclass(frozen=True, slots=True)
class Said:
    """What one element of a partition says of the items behind it."""

    partition: int
    event: Event


@dataclass(slots=True)
class StreamView:
    """A stream as those see it who began together; `take` alone changes it."""

    evolutions: list[Evolution]
    """By partition: what values mean to them."""
    said: list[Said] = field(default_factory=list)
    """All that they are told, in order."""
    shown: int = 0
    """How much of it was in force when they began."""

    @staticmethod
    def of(stream: StreamPlan, before: Sequence[Said]) -> StreamView:
        """The view of those who began behind some sayings."""
        fresh = [stream.evolution() for _ in range(stream.partitions)]
        if not before:
            return StreamView(fresh)
        for each in before:
            judged(each.event, fresh[each.partition])
        places = [Place(stream.stream, str(number), 0) for number in range(stream.partitions)]
        found = views(fresh, places)
        said = [
            Said(number, _event(each, places[number])) for number, view in enumerate(found) for each in view.accents
        ]
        return StreamView([view.evolution for view in found], said, len(said))

    def take(self, said: Said) -> None:
        """Go on behind what was said."""
        judged(said.event, self.evolutions[said.partition])
        self.said.append(said)

    def copy(self) -> StreamView:
        """The same, to be taken further by somebody else."""
        return StreamView([each.copy() for each in self.evolutions], list(self.said), self.shown)


def _event(shown: Accent | Doubt, place: Place) -> Event:
    if isinstance(shown, Accent):
        return shown
    return DeadLetter(place, "it was in doubt when the subscription began", "", doubts=(shown,))


# --- what a log says --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Told:
    """What a worker knows of a log; it only grows."""

    stream: StreamPlan
    changes: int = 0
    evolutions: list[Evolution] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    """With the epoch that read each."""
    views: dict[int, StreamView] = field(default_factory=dict)
    """By how much was said before they began."""

    def read_on(self, changes: Sequence[Change]) -> None:
        for change in changes[self.changes :]:
            number = int(change.partition)
            found = judged(change.element(self.stream.stream), self.evolutions[number])
            if isinstance(found, Event):
                self.epochs.append(change.epoch)
                self.said.append(Said(number, found))
        self.changes = len(changes)


_told: dict[Path, _Told] = {}
_MOST_TOLD = 256


def _log(folder: Path, stream: StreamPlan, logged: Logged) -> _Told:
    path, changes = folder / logged.file, logged_changes(folder, stream, logged)
    told = _told.get(path)
    if told is None or told.stream != stream or told.changes > len(changes):
        if len(_told) >= _MOST_TOLD:
            _told.clear()
        told = _told[path] = _Told(stream, evolutions=[stream.evolution() for _ in range(stream.partitions)])
    told.read_on(changes)
    return told


def borders(folder: Path, stream: StreamPlan, logged: Logged | None, last: int) -> tuple[int, ...]:
    """The epochs in which something was said, up to that in which the last subscription began."""
    if logged is None:
        return ()
    epochs = _log(folder, stream, logged).epochs
    return tuple(dict.fromkeys(epochs[: bisect_left(epochs, last)]))


def view_from(folder: Path, stream: StreamPlan, logged: Logged | None, first: int) -> StreamView:
    """The view of those who began late, with the epoch `first`, or at the stream's beginning (-1).

    It has taken in all that is logged; it is kept, so whoever changes it copies it.
    """
    if logged is None:
        return StreamView.of(stream, ())
    told = _log(folder, stream, logged)
    begin = bisect_left(told.epochs, first) if first >= 0 else 0
    view = told.views.get(begin)
    if view is None:
        view = told.views[begin] = StreamView.of(stream, told.said[:begin])
    for said in told.said[begin + len(view.said) - view.shown :]:
        view.take(said)
    return view
