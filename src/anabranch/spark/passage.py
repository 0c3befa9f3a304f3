"""The passage of a range: its elements in order, with the evolution of their partition.

A range is read by one task, and by another again where that is needed; each begins with all that was said before it:
in earlier epochs, which the log knows, and earlier in this one, as far as the job was told (`evolving.py`).

An engine can be told not to follow accents; then elements are taken as they are, and an accent is an error.
So it is in a stream of updates: its elements go on to the branches as they are, which judge them (LAWS 5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.passing import is_change, judged
from anabranch.columnar.answering import Shown, StreamAnswers, Taker
from anabranch.columnar.delivering import Answers
from anabranch.errors import StreamError
from anabranch.reference.inputs import refuse_control, refuse_regions
from anabranch.spark.changes import Change, changes_of
from anabranch.spark.evolution_log import evolution_at
from anabranch.spark.following import Following
from anabranch.spark.job import Job
from anabranch.spark.plan import StreamPlan
from anabranch.spark.ranges import Range
from anabranch.spark.reading import RangeReader
from anabranch.spark.stream_views import Event, Said
from anabranch.stream.elements import Accent, DeadLetter, Item, Punctuation, Region, StreamElement, Update
from anabranch.stream.limits import Limits
from anabranch.stream.split import Cut
from anabranch.stream.tree import Element

Follow: TypeAlias = Callable[[Sequence[Said]], Following]


class Passage:
    """One range of a partition as it goes by."""

    def __init__(
        self,
        job: Job,
        stream: StreamPlan,
        root: Element,
        limits: Limits,
        reach: Range,
        follow: Follow | None = None,
    ) -> None:
        """`follow` has queries follow it, given what was said before it in its epoch."""
        self.reader = RangeReader(stream, root, limits, reach, job.carry(reach))
        self.changes: list[Change] = []
        """What its elements have said of those behind them."""
        self.said: list[Said] = []
        """The same, as far as it holds."""
        self.parted = False
        """Whether punctuations are stretches of their own; to be set by whoever has to know what was before them."""
        self._epoch = job.epoch
        self._range = reach
        logged = job.evolution.get(stream.stream)
        self._edited = stream.updates
        self._follows_accents = job.plan.load().accents and not self._edited
        if logged and not self._follows_accents:
            raise _not_followed(f"stream '{stream.stream}' has evolved")
        self._evolution = evolution_at(job.checkpoint.evolution, stream, logged, reach.partition)
        self._is_own = False
        met = job.met.load().get(stream.stream, ()) if job.met else ()
        said = self.met = list(self._met(job, stream, met))
        self._follow = follow
        self._following = follow(said) if follow and (logged or said) else None
        self._added: list[tuple[int, str]] = []
        self.reader.announce(lambda path, tree: self._evolution.state(path, tree).carried is True)

    def _met(self, job: Job, stream: StreamPlan, met: Sequence[Change]) -> Iterator[Said]:
        """What was said earlier in the epoch, as far as it is valid; partitions are read one after the other."""
        mine, folder = int(self._range.partition), job.checkpoint.evolution
        others: dict[str, Evolution] = {}
        for change in sorted(met, key=lambda each: (int(each.partition), each.position)):
            evolution = self._evolution
            if change.partition == self._range.partition:
                if change.position >= self.reader.start:
                    continue
                evolution = self._own()
            elif int(change.partition) > mine:
                continue
            else:
                if change.partition not in others:
                    logged = job.evolution.get(stream.stream)
                    others[change.partition] = evolution_at(folder, stream, logged, change.partition).copy()
                evolution = others[change.partition]
            found = judged(change.element(stream.stream), evolution)
            if isinstance(found, Event):
                yield Said(int(change.partition), found)

    @property
    def follows(self) -> Following | None:
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
        if not self._follows_accents:
            if isinstance(element, Accent):
                raise self._unexpected(element)
            return element
        if not is_change(element):
            return judged(element, self._evolution)
        self.changes += changes_of(element, self._range, self._epoch)
        found = judged(element, self._own())
        if isinstance(found, Event) and is_change(found):
            self.said.append(Said(int(self._range.partition), found))
        if self._follow is not None and isinstance(found, Event):
            if self._following is None:
                self._following = self._follow(())
            self._added += self._following.take(found)
        return found

    def show(self, answers: StreamAnswers, out: Answers, takers: Sequence[Taker]) -> int | None:
        """Show every item to whoever wants it; how many there were, None if there was no element at all."""
        signalled = False

        def read(cut: Cut) -> Shown | None:
            element = self.read(cut)
            match element:
                case Item(tree, place, at):
                    if not self._edited:
                        refuse_regions(tree, place)
                    if at is not None:
                        self.reader.refuse_own_time("an item", place)
                    return element
                case Punctuation() | Accent():
                    nonlocal signalled
                    signalled = True
                    if isinstance(element, Accent) and element.at is not None:
                        self.reader.refuse_own_time("an accent", element.place)
                    return element
                case DeadLetter():
                    out.bury(element)
                    return element if element.doubts else None
                case Region() | Update():
                    if not self._edited:
                        raise refuse_control(element)
                    signalled = True
                    if element.at is not None:
                        self.reader.refuse_own_time("an update", element.place)
                    return element

        course = self if self._follows_accents else None
        items = 0
        for part in self.reader.parts():
            if isinstance(part, DeadLetter):
                out.bury(part)
            else:
                items += answers.answer(self.reader.shredder, part, read, out, takers, course)
        return items if items or signalled else None

    def _unexpected(self, accent: Accent) -> StreamError:
        what = f"stream '{accent.place.stream}' carries an accent ({accent.place})"
        if not self._edited:
            return _not_followed(what)
        return StreamError(
            f"{what}, and streams of updates cannot have accents yet", hint="take the accents out of the stream"
        )


def _not_followed(what: str) -> StreamError:
    return StreamError(f"{what}, and accents are turned off here", hint="leave 'accents = false' out of [engine]")
