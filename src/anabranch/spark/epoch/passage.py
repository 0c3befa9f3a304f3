"""The passage of a range: its elements in order, with the evolution of their partition.

A range is read by one task, and by another again where that is needed; each begins with all events before it:
in earlier epochs, which the log knows, and earlier in this one, as far as the job was told
(`spark/evolution/rerun.py`).

The elements of a stream of updates go on to the branches, which judge them (LAWS 5).
Of the events of such a stream only this is kept: which paths are in doubt, because an accent named them (LAWS 4.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from anabranch.algebra.accents.events import Announced, Event, is_change, judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.columnar.items.answering import Answers, Shown, StreamAnswers, Taker
from anabranch.columnar.items.coverage import ReadCounts
from anabranch.spark.epoch.job import Job
from anabranch.spark.evolution.following import RangeFollowing
from anabranch.spark.evolution.log import LoggedEvent, logged_events
from anabranch.spark.evolution.views import KnownLog
from anabranch.spark.intake.range_reader import RangeReader
from anabranch.spark.intake.ranges import Range
from anabranch.stream.elements import Accent, DeadLetter, Item, Punctuation, Region, StreamElement, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import KnownStream
from anabranch.stream.reading.split import Cut
from anabranch.stream.tree import Element

Follow: TypeAlias = Callable[[Sequence[Announced]], RangeFollowing]


class Passage:
    """One range of a partition as it goes by."""

    def __init__(
        self,
        job: Job,
        stream: KnownStream,
        root: Element,
        limits: Limits,
        reach: Range,
        follow: Follow | None = None,
    ) -> None:
        """`follow` has queries follow it, given the events before it in its epoch."""
        self.reader = RangeReader(stream, root, limits, reach, job.carry(reach), accents=job.plan.load().accents)
        self.changes: list[LoggedEvent] = []
        """The events that its elements announce."""
        self.valid: list[Announced] = []
        """Those of them that are valid."""
        self.parted = False
        """Whether punctuations are stretches of their own; to be set by whoever has to know what was before them."""
        self._epoch = job.epoch
        self._range = reach
        self._edited = stream.source.updates
        known = job.known_log(stream)
        self._evolution = known.evolutions[int(reach.partition)]
        self._is_own = False
        logged = job.epoch_events.load().get(stream.name, ()) if job.epoch_events else ()
        self.events_before = list(self._events_before(known, logged))
        """The valid events before it in its epoch."""
        self._follow = follow
        self._following = follow(self.events_before) if follow and (known.size or self.events_before) else None
        self._added: list[tuple[int, str]] = []
        self.reader.announce(lambda path, tree: self._evolution.state(path, tree).carried is True)

    def _events_before(self, known: KnownLog, logged: Sequence[LoggedEvent]) -> Iterator[Announced]:
        """The valid events before the range in its epoch; partitions are read one after the other."""
        mine = int(self._range.partition)
        others: dict[int, Evolution] = {}
        for each in sorted(logged, key=lambda each: (each.partition, each.position)):
            if each.partition > mine or (each.partition == mine and each.position >= self.reader.start):
                continue
            if each.partition == mine:
                evolution = self._own()
            elif each.partition in others:
                evolution = others[each.partition]
            else:
                evolution = others[each.partition] = known.evolutions[each.partition].copy()
            found = judged(each.announced.event, evolution)
            if isinstance(found, Event):
                yield Announced(each.announced.stream, each.partition, found)

    @property
    def follows(self) -> RangeFollowing | None:
        return self._following

    def added(self) -> list[tuple[int, str]]:
        found, self._added = self._added, []
        return found

    @property
    def evolution(self) -> Evolution:
        return self._evolution

    def _own(self) -> Evolution:
        """The evolution, to be changed: others begin with the same."""
        if not self._is_own:
            self._evolution, self._is_own = self._evolution.copy(), True
        return self._evolution

    def peek(self, cut: Cut) -> StreamElement | DeadLetter:
        (element,) = self.reader.elements([cut])
        return element

    def read(self, cut: Cut) -> StreamElement | DeadLetter:
        """The next element that is looked at, which is taken in; a dead letter where it is bad."""
        element = self.peek(cut)
        if self._edited:
            if isinstance(element, DeadLetter):
                self.changes += logged_events(element, self._range, self._epoch)
            return element
        if not is_change(element):
            return judged(element, self._evolution)
        self.changes += logged_events(element, self._range, self._epoch)
        found = judged(element, self._own())
        if isinstance(found, Event) and is_change(found):
            self.valid.append(Announced(self._range.stream, int(self._range.partition), found))
        if self._follow is not None and isinstance(found, Event):
            if self._following is None:
                self._following = self._follow(())
            self._added += self._following.take(found)
        return found

    def show(self, answers: StreamAnswers, out: Answers, takers: Sequence[Taker]) -> ReadCounts | None:
        """Show every item to whoever wants it; how many there were, None if there was no element at all."""
        signalled = False

        def read(cut: Cut) -> Shown | None:
            element = self.read(cut)
            match element:
                case Item():
                    return element
                case Punctuation() | Accent() | Region() | Update():
                    nonlocal signalled
                    signalled = True
                    return element
                case DeadLetter():
                    out.bury(element)
                    return element if element.doubts else None

        course = None if self._edited else self
        counts = ReadCounts()
        for part in self.reader.parts():
            if isinstance(part, DeadLetter):
                out.bury(part)
            else:
                counts += answers.answer(self.reader.shredder, part, read, out, takers, course)
        return counts if counts.items or signalled else None
