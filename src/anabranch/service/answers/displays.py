"""Displays and their past: what a subscription shows, what it has shown at each moment, and what had changed.

The present of a display is in the state of its branch.
Its past is replayed from the update stream in the log, once: a history goes on where it was when it is asked again.
The edits of a moment apply to plain text, so a moment in the past needs no replay: edits are kept in *stretches*, each
with the text that it begins with, and a display is that text with the edits up to its moment.
A stretch ends where its edits have become as long as the display, or many; so all stretches together are not longer
than twice the edits, and a moment costs about its own text.

Memory is bounded: stretches that were used longest ago are dropped, and made again by another replay when somebody
asks for them; of moments the newest hundred thousand are known.
Where retention has dropped the beginning of the stream there is nothing to replay from, and only the present is left.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from time import monotonic

from anabranch.algebra.display.display import Edit, Insert
from anabranch.algebra.display.replay import DisplayMoment, DisplayReader, Replay
from anabranch.errors import UsageError
from anabranch.law.calls import PythonFunction
from anabranch.service.answers.asked import AskedAnswer
from anabranch.service.answers.epochs import EpochIndex
from anabranch.service.answers.feed import AnswerFeed
from anabranch.service.answers.text_changes import TextChange, applied, changes_of
from anabranch.service.refusals import NotFound
from anabranch.site_work import NotReady
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.stream.elements import Punctuation

MOST_MOMENTS = 100_000
_TRIMMED = MOST_MOMENTS // 4
"""So many more are collected before the oldest are dropped."""
_STRETCH_CHARACTERS = 1 << 16
_STRETCH_EDITS = 2_000
_STRETCH_WORK = 1 << 28
"""The characters that are moved to apply a stretch, at most."""
_STRETCHES_BYTES = 64 << 20
_HISTORIES = 32
_EDIT_SIZE = 120
_SECONDS = 10.0
"""How long a request replays."""
_ATTEMPTS = 5
_NOBODY = 1 << 61
_GONE = "the beginning of '{}' is no longer kept, and so its past is not"
_PRESENT = "without 'moment', its display is shown as it is now"


@dataclass(frozen=True, slots=True)
class ShownMoment:
    """A moment of a display."""

    number: int
    at: str
    epoch: int
    edits: int


@dataclass(frozen=True, slots=True)
class ShownDisplay:
    """What a display shows, and what has changed with its moment."""

    at: str | None
    text: str
    changes: Sequence[TextChange] = ()


@dataclass(slots=True)
class MomentStretch:
    """Some moments in a row: the text before them, packed, and the edits of each."""

    first: int
    base: bytes
    length: int
    """The length of the text."""
    edits: list[tuple[Edit, ...]] = field(default_factory=list)
    count: int = 0
    characters: int = 0

    @staticmethod
    def begun(first: int, text: str) -> MomentStretch:
        return MomentStretch(first, zlib.compress(text.encode(), 1), len(text))

    def add(self, edits: tuple[Edit, ...]) -> None:
        self.edits.append(edits)
        self.count += len(edits)
        self.characters += sum(len(each.text) for each in edits if isinstance(each, Insert))

    @property
    def is_full(self) -> bool:
        """Whether another one should begin behind it."""
        most = max(self.length, _STRETCH_CHARACTERS)
        work = self.count * (self.length + self.characters)
        return self.characters > most or self.count > _STRETCH_EDITS or work > _STRETCH_WORK

    @property
    def size(self) -> int:
        """Its bytes in memory."""
        return len(self.base) + 2 * self.characters + _EDIT_SIZE * (self.count + len(self.edits))

    def shown(self, number: int) -> tuple[str, list[TextChange]]:
        """The display at a moment, and what has changed with it."""
        text = zlib.decompress(self.base).decode()
        *former, last = self.edits[: number - self.first + 1]
        for edits in former:
            text = applied(text, edits)
        after = applied(text, last)
        return after, changes_of(text, after, last)


class StretchStore:
    """The stretches of all displays, within a bound; any thread may ask."""

    def __init__(self, most: int = _STRETCHES_BYTES) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[tuple[int, int], tuple[MomentStretch, int]] = OrderedDict()
        self.bytes = 0

    def get(self, display: int, first: int) -> MomentStretch | None:
        """The stretch of a display that begins with a moment, if it is kept."""
        with self._lock:
            found = self._kept.get((display, first))
            if found is not None:
                self._kept.move_to_end((display, first))
            return found[0] if found else None

    def put(self, display: int, stretch: MomentStretch) -> None:
        """Keep a stretch that is complete."""
        size = stretch.size
        with self._lock:
            before = self._kept.pop((display, stretch.first), None)
            self.bytes += size - (before[1] if before else 0)
            self._kept[display, stretch.first] = stretch, size
            while self.bytes > self._most and len(self._kept) > 1:
                _, (_, dropped) = self._kept.popitem(last=False)
                self.bytes -= dropped

    def forget(self, display: int) -> None:
        """Drop all stretches of a display."""
        with self._lock:
            for key in [each for each in self._kept if each[0] == display]:
                self.bytes -= self._kept.pop(key)[1]


class DisplayHistory:
    """The moments of one display, as far as they were replayed; whoever uses it holds its lock."""

    def __init__(self, log: AnswerLog, epochs: EpochIndex, store: StretchStore, registration: Registration) -> None:
        self.lock = Lock()
        self._log = log
        self._epochs = epochs
        self._store = store
        self._registration = registration
        self._replay = Replay()
        self._next = registration.first
        """The epoch to be replayed next."""
        self._flow: Iterator[tuple[int, DisplayMoment]] | None = None
        """A replay that has not come to its end."""
        self.total = 0
        self._dropped = 0
        """The number of moments that are no longer known, all at the beginning."""
        self._at: list[str] = []
        self._epoch_of: array[int] = array("q")
        self._edits_of: array[int] = array("q")
        self._open = MomentStretch.begun(0, "")
        self._firsts: array[int] = array("q", [0])
        """The moments that stretches begin with, that of `_open` included."""

    @property
    def first(self) -> int:
        """The oldest moment that is known."""
        return max(self._dropped, self.total - MOST_MOMENTS)

    @property
    def present(self) -> ShownDisplay | None:
        """What was shown last; None before the first moment."""
        return ShownDisplay(self._at[-1], self._replay.text) if self._at else None

    def advance(self) -> None:
        """Replay what is new; refused where retention has dropped it, and for a while where it takes long."""
        until = monotonic() + _SECONDS
        while self._next <= self._epochs.last:
            self._flow = self._flow or self._new(self._epochs.last)
            for epoch, moment in self._flow:
                self._add(epoch, moment)
                if monotonic() > until:  # the next request goes on here
                    hint = f"{self.total:,} moments are there; ask again"
                    raise NotReady(f"the past of '{self._registration.name}' is being replayed", hint=hint)
            self._flow = None

    def _new(self, last: int) -> Iterator[tuple[int, DisplayMoment]]:
        """Replay from the next epoch on up to the `last`."""
        while self._next <= last:
            if self._next < self._epochs.first:
                raise NotFound(_GONE.format(self._registration.name), hint=_PRESENT)
            epoch = self._epochs.behind(self._registration.id, self._next)
            if epoch is not None and epoch <= last:
                for moment in self._replayed(self._replay, epoch):
                    yield epoch, moment
            self._next = last + 1 if epoch is None else min(epoch, last) + 1

    def _replayed(self, replay: Replay, epoch: int) -> Iterator[DisplayMoment]:
        """Replay an epoch; gives the moments that have changed something."""
        for chunk in self._epochs.chunks(epoch, self._registration.id):
            yield from (moment for moment in replay.feed(self._log.text(chunk)) if moment.edits)

    def _add(self, epoch: int, moment: DisplayMoment) -> None:
        self._open.add(moment.edits)
        self._at.append(f"{moment.at:f}")
        self._epoch_of.append(epoch)
        self._edits_of.append(len(moment.edits))
        self.total += 1
        if self._open.is_full:
            self._store.put(self._registration.id, self._open)
            self._open = MomentStretch.begun(self.total, self._replay.text)
            self._firsts.append(self.total)
        if self.total - self._dropped > MOST_MOMENTS + _TRIMMED:
            count = self.total - self._dropped - MOST_MOMENTS
            self._dropped += count
            del self._at[:count], self._epoch_of[:count], self._edits_of[:count]
            del self._firsts[: bisect_right(self._firsts, self._dropped) - 1]

    def moments(self, after: int, limit: int) -> list[ShownMoment]:
        """The moments behind one, by number."""
        begin = max(after + 1, self.first)
        return [
            ShownMoment(number, self._at[place], self._epoch_of[place], self._edits_of[place])
            for number in range(begin, min(begin + limit, self.total))
            for place in [number - self._dropped]
        ]

    def at(self, number: int) -> ShownDisplay:
        """What was shown at a moment."""
        if not self.first <= number < self.total:
            known = f"there are {self.first:,} to {self.total - 1:,}" if self.total else "there is none yet"
            raise NotFound(f"'{self._registration.name}' has no moment {number:,}", hint=known)
        stretch = self._stretch(bisect_right(self._firsts, number) - 1)
        text, changes = stretch.shown(number)
        return ShownDisplay(self._at[number - self._dropped], text, changes)

    def _stretch(self, place: int) -> MomentStretch:
        first = self._firsts[place]
        if first == self._open.first:
            return self._open
        found = self._store.get(self._registration.id, first)
        if found is None:
            found = self._made_again(first, self._firsts[place + 1])
            self._store.put(self._registration.id, found)
        return found

    def _made_again(self, first: int, end: int) -> MomentStretch:
        """A stretch that was dropped, from the beginning of the log."""
        if self._registration.first < self._epochs.first:
            raise NotFound(_GONE.format(self._registration.name), hint=_PRESENT)
        replay, number, epoch = Replay(), 0, self._registration.first
        found = MomentStretch.begun(0, "") if first == 0 else None
        while number < end and (following := self._epochs.behind(self._registration.id, epoch)) is not None:
            for moment in self._replayed(replay, following):
                if found is not None:
                    found.add(moment.edits)
                number += 1
                if number == first:
                    found = MomentStretch.begun(first, replay.text)
                if number == end:
                    break
            epoch = following + 1
        assert found is not None, "the log gives the same moments again"
        return found


class DisplayViews:
    """Displays as they are and as they were; any thread may ask."""

    def __init__(self, log: AnswerLog, feed: AnswerFeed) -> None:
        self._log = log
        self._feed = feed
        self._lock = Lock()
        self.store = StretchStore()
        self._histories: OrderedDict[int, DisplayHistory] = OrderedDict()

    def now(self, asked: AskedAnswer, functions: Mapping[str, PythonFunction]) -> ShownDisplay:
        """What a display shows."""
        _check_shows(asked)
        registration = asked.registration
        if not asked.has_begun:  # the answer over empty streams; no epoch has anything of it
            nobody = replace(registration, id=_NOBODY, first=self._feed.epochs.last + 1)
            return ShownDisplay(None, self._log.shown(nobody, functions))
        with self._lock:
            is_replayed = registration.id in self._histories
        if is_replayed or (asked.ended is not None and registration.first >= self._feed.epochs.first):
            with suppress(NotReady, NotFound), self._history(registration) as history:
                if history.present is not None:
                    return history.present
        for _ in range(_ATTEMPTS):
            reached = self._feed.epochs.last
            found = ShownDisplay(self._latest(asked), self._log.shown(registration, functions))
            if self._feed.epochs.last == reached:  # both are of the same epoch
                break
        return found

    def at(self, asked: AskedAnswer, number: int) -> ShownDisplay:
        """What a display has shown at a moment."""
        _check_shows(asked)
        if not asked.has_begun:
            raise NotFound(f"'{asked.name}' has no moment {number:,}", hint="it waits for its first epoch")
        with self._history(asked.registration) as history:
            return history.at(number)

    def moments(self, asked: AskedAnswer, after: int, limit: int) -> tuple[int, list[ShownMoment]]:
        """How many moments a display has had, and some of them behind one."""
        _check_shows(asked)
        if not asked.has_begun:
            return 0, []
        with self._history(asked.registration) as history:
            return history.total, history.moments(after, limit)

    @contextmanager
    def _history(self, registration: Registration) -> Iterator[DisplayHistory]:
        """The history of a display up to now, for this thread alone."""
        with self._lock:
            found = self._histories.get(registration.id)
            if found is None:
                found = DisplayHistory(self._log, self._feed.epochs, self.store, registration)
                self._histories[registration.id] = found
            self._histories.move_to_end(registration.id)
            dropped = self._histories.popitem(last=False)[0] if len(self._histories) > _HISTORIES else None
        if dropped is not None:
            self.store.forget(dropped)
        if not found.lock.acquire(timeout=_SECONDS):
            raise NotReady(f"the past of '{registration.name}' is being replayed", hint="ask again in some seconds")
        try:
            try:
                found.advance()
            except NotReady:
                raise
            except BaseException:  # what was replayed to the middle of an epoch cannot go on
                with self._lock:
                    self._histories.pop(registration.id, None)
                self.store.forget(registration.id)
                raise
            yield found
        finally:
            found.lock.release()

    def _latest(self, asked: AskedAnswer) -> str | None:
        """The time of the last moment in the log."""
        for _, text in self._feed.backward(asked.source, None):
            for element in DisplayReader().elements(f"{text}\n"):
                if isinstance(element, Punctuation) and element.at is not None:
                    return f"{element.at:f}"
        return None


def _check_shows(asked: AskedAnswer) -> None:
    if not asked.registration.shows:
        raise UsageError(
            f"'{asked.name}' has no display: its answer only grows",
            hint="a query over a stream of updates has one; read its 'answers'",
        )
