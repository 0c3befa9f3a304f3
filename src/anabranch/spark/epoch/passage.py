"""The passage of a range: its elements in order, with the evolution of their partition.

`show` is the way of its data: bytes, batches of entries in columns, stretches between accents, matches, answers, and
out into the task's segment; only entries that columns cannot answer are parsed, each when its stretch is answered.

A range is read by one task, or again by another; each starts with all events before it: those of earlier epochs from
the log, and earlier ones of this epoch as far as the job knows them (`spark/evolution/rerun.py`).

The elements of a stream of updates go on to the branches, which judge them (LAWS 5); accents are judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import TypeAlias

from anabranch.algebra.accents.events import Announced, Event, is_change, judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.branch.document.state import rare_gc
from anabranch.branch.intake.usual_updates import UsualUpdates
from anabranch.columnar.items.answering import Answers, ReadEntry, Shown, StreamAnswers, Taker
from anabranch.columnar.items.coverage import ReadCounts
from anabranch.columnar.items.stretch import Stretch
from anabranch.columnar.scan.template import is_plain_around
from anabranch.spark.epoch.job import Job
from anabranch.spark.evolution.following import RangeFollowing
from anabranch.spark.evolution.log import LoggedEvent, logged_events
from anabranch.spark.evolution.overruns import RangeOverruns
from anabranch.spark.evolution.views import KnownLog
from anabranch.spark.intake.range_reader import RangeReader
from anabranch.spark.intake.ranges import Range
from anabranch.stream.elements import Accent, DeadLetter, Item, Place, StreamElement, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import KnownStream
from anabranch.stream.reading.split import Cut
from anabranch.stream.tree import Element

Follow: TypeAlias = Callable[[Sequence[Announced]], RangeFollowing]


class Passage:
    """Reads one range of a partition."""

    def __init__(
        self,
        job: Job,
        stream: KnownStream,
        root: Element,
        limits: Limits,
        reach: Range,
        follow: Follow | None = None,
    ) -> None:
        """`follow` lets queries follow its events, given those before it in its epoch."""
        self.reader = RangeReader(stream, root, limits, reach, job.carry(reach), accents=job.plan.load().accents)
        self.changes: list[LoggedEvent] = []
        """The events that its elements announce."""
        self.valid: list[Announced] = []
        """The valid ones among them."""
        self.splits_at_punctuations = False
        """Whether punctuations end a stretch; set by takers that need to know what was before them."""
        self.overruns: RangeOverruns | None = None
        """Counts evaluations that take too many steps."""
        self._epoch = job.epoch
        self._range = reach
        self._edited = stream.source.updates
        self._usual_updates = UsualUpdates()
        known = job.known_log(stream)
        self._evolution = known.evolutions[int(reach.partition)]
        self._is_own = False
        logged = job.epoch_events.load().get(stream.name, ()) if job.epoch_events else ()
        self.events_before = list(self._events_before(known, logged))
        """The valid events before it in its epoch."""
        self._follow = follow
        self._following = follow(self.events_before) if follow and (known.size or self.events_before) else None
        self._added: list[tuple[int, str]] = []
        """By query: what the last element adds to its answer though it is no item."""
        self._has_controls = False
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

    @property
    def silent(self) -> frozenset[int]:
        ended = self.overruns.silent if self.overruns else frozenset()
        return ended | self._following.silent if self._following else ended

    @property
    def evolution(self) -> Evolution:
        return self._evolution

    def _own(self) -> Evolution:
        """A copy of the evolution that may be changed: other ranges start from the same one."""
        if not self._is_own:
            self._evolution, self._is_own = self._evolution.copy(), True
        return self._evolution

    def peek(self, cut: Cut) -> StreamElement | DeadLetter:
        is_plain = cut.reason is None and cut.key is None and cut.headers is None
        is_plain = self._edited and is_plain and is_plain_around(cut.root, cut.encoding)
        if is_plain:
            place = Place(self._range.stream, self._range.file, cut.start)
            if (update := self._usual_updates.read(cut.raw, place, cut.root)) is not None:
                return update
        (element,) = self.reader.elements([cut])
        if is_plain and isinstance(element, Update):
            self._usual_updates.learn(cut.raw, element, cut.root)
        return element

    def read(self, cut: Cut) -> StreamElement | DeadLetter:
        """Parse, judge and apply the next element; a dead letter where it is bad."""
        element = self.peek(cut)
        if self._edited and not isinstance(element, Accent | DeadLetter):
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
        """Answer every item of the range, and show it to takers; gives the counts, None without any element."""
        course = None if self._edited else self
        counts = ReadCounts()
        with rare_gc() if self._edited else nullcontext():  # its process may have large documents
            for data in self.reader.parts():
                if isinstance(data, DeadLetter):
                    out.bury(data)
                    continue
                for batch in answers.batches(self.reader.shredder, data, course):
                    counts += batch.counts
                    for stretch in batch.entries.between_accents(course):
                        for part in self._between_stops(stretch):
                            for matched in answers.matched(part, takers, course):
                                counts += matched.answer(self._elements(matched.unread(), out), out)
        return counts if counts.items or self._has_controls else None

    def _between_stops(self, stretch: Stretch) -> Iterable[Stretch]:
        """The parts of a stretch between which subscriptions end."""
        return [stretch] if self.overruns is None else self.overruns.between_stops(stretch)

    def _elements(self, unread: Iterable[tuple[int, Cut]], out: Answers) -> Iterator[ReadEntry]:
        """Parse and judge entries, in order; bad elements become dead letters."""
        for entry, cut in unread:
            element: Shown | None = self.read(cut)
            if isinstance(element, DeadLetter):
                out.bury(element)
                element = element if element.doubts else None
            elif not isinstance(element, Item):
                self._has_controls = True
            added, self._added = self._added, []
            yield ReadEntry(entry, element, added)
