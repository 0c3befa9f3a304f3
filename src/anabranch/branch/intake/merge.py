"""The merge of a branch's inputs (LAWS 1.2), and what all branches behind it have in common.

An input is one partition of one stream.
Inputs are ranked: by the stream that the query names first, then by the number of the partition.
The next element is that with the least time among the heads of all inputs, ties to the lower rank; each input keeps its
own order, so times may fall and the merge is still that of complete sequences, whenever their parts arrive.
An input without a head holds all others back, unless it has ended, or has *passed* the time in question: its elements
have the time of their arrival, and the trunk knows that no earlier one is on its way.
Elements that are held back wait in the input's `Backlog`.

Accents are elements, too, and take effect at their place in the input (LAWS 4.5): an item is converted by the accents
before it into the units of query start, and its time is that of its canonical values.

For timelines, moments are counted (`branch/timeline.py`).

A branch that edits documents (LAWS 5) judges the elements itself, each when all before it in its input were taken: its
judge decides their times, and which are bad.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from anabranch.algebra.accents.evolution import Evolution
from anabranch.branch.document.judging import Replacement
from anabranch.branch.intake.backlog import Backlog, Key, backlog_table, restore_backlogs
from anabranch.branch.intake.entries import EntryReader, RawEntry, unpack
from anabranch.branch.intake.usual_updates import UsualUpdate
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import fraction, written
from anabranch.branch.timeline import AnswerMoment, Timed
from anabranch.law.evolution.canonical import remeasured
from anabranch.law.evolution.vantage import Change, Vantage
from anabranch.law.history.admission import UpdateAdmission
from anabranch.law.inputs import element_time
from anabranch.law.rounds.windows import Reach
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Accent, DeadLetter, Item, Punctuation, Region, StreamElement, StreamToken, Update
from anabranch.stream.path import Path
from anabranch.stream.tree import Element as Tree


@dataclass(frozen=True, slots=True)
class Released:
    """A released item, in the units of query start, with the maps that led there."""

    entry: RawEntry
    item: Item
    units: Mapping[Path, Affine]
    given: Tree
    """The item as it arrived."""
    time: Fraction


@dataclass(frozen=True, slots=True)
class StreamSignal:
    """A released punctuation, or None for the end of a partition.

    The end is known right after the last element, and is released before all that waits.
    """

    stream: InputStream
    partition: int
    punctuation: Punctuation | None
    """Its values are in the units of query start."""
    given: Punctuation | None = None
    """The punctuation as written."""
    time: Fraction = Fraction(0)
    """The time of a punctuation."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A released accent, or one that was set aside and leaves paths in doubt."""

    stream: InputStream
    partition: int
    change: Change


class Came(NamedTuple):
    """A released element of an edited document, as written and judged."""

    stream: str
    partition: int
    element: StreamElement
    at: Fraction
    entry: RawEntry | None = None
    """What it was read from; None for a usual update."""


class CameTogether(NamedTuple):
    """Usual updates of an edited document that came one after the other, all judged before the first is applied."""

    stream: str
    partition: int
    replacements: Sequence[Replacement]


_NO_UNITS: Mapping[Path, Affine] = {}
_RUN = 1_024
"""The number of usual updates that are read at a time."""
_PAUSE = 1
"""The number of elements that are taken one by one before usual updates are looked for again.

It doubles, up to a run, as long as other elements come between them.
"""


class DocumentJudge(Protocol):
    """Judges the elements of edited documents."""

    def time_of(self, key: Key, element: StreamElement, arrived: Fraction | None) -> Fraction | None:
        """The time of the next element of an input; None for a bad one, which the judge sets aside."""

    def together(self, key: Key, updates: Sequence[UsualUpdate], first: int) -> Sequence[Replacement]:
        """The usual updates of an input, from number `first` on, that can be taken together; perhaps none."""

    def reached(self, key: Key) -> Fraction:
        """The time that an input has reached."""


class _Head(NamedTuple):
    """The next element of an input, with its time."""

    time: Fraction
    entry: RawEntry
    element: StreamElement | Change
    units: Mapping[Path, Affine]
    given: Tree | None
    """An item as it arrived."""


class MergeInput:
    """One input: its head, and the time of the last element taken."""

    def __init__(
        self, stream: InputStream, partition: int, backlog: Backlog, judge: DocumentJudge | None = None
    ) -> None:
        self.stream = stream
        self.key: Key = (stream.name, partition)
        self.backlog = backlog
        self.vantage = Vantage(Evolution.of(stream.source))
        self.now = Fraction(0)
        self.ended = False
        self.dated = False
        """Whether it is edited, by elements with times of their own: their arrival says nothing of later ones."""
        self._partition = partition
        self._judge = judge
        self._reader = EntryReader(stream)
        self._head: _Head | None = None

    @property
    def head(self) -> _Head | None:
        """The next element, None if it is not known yet."""
        while self._head is None and (entry := self.backlog.head) is not None:
            element = self._reader.read(entry)
            arrived = entry.arrived(self.now)
            if self._judge is not None and not isinstance(element, DeadLetter):
                at = self._judge.time_of(self.key, element, arrived)
                if at is None:
                    self.backlog.take()
                else:
                    self._head = _Head(at, entry, element, _NO_UNITS, None)
                continue
            units: Mapping[Path, Affine] = {}
            given: Tree | None = None
            match element:
                case DeadLetter(doubts=()):  # set aside by the task that read it
                    self.backlog.take()
                    continue
                case Item(tree):
                    given = tree
                    if units := self.vantage.units(tree):
                        element = replace(element, tree=remeasured(tree, units))
                case Punctuation() | Accent() | DeadLetter():
                    pass
                case Region() | Update() | StreamToken():
                    raise AssertionError(f"a stream of items has none ({element.place})")
            before = self.now if arrived is None else arrived
            # a refused element has no time of its own, whatever it says, and moves no clock
            if isinstance(element, DeadLetter):
                time = self.now if self._judge is None else self._judge.reached(self.key)
            else:
                time = element_time(element, self.stream.source.time, before)
            self._head = _Head(time, entry, element, units, given)
        return self._head

    def take(self) -> Released | StreamSignal | Changed | Came:
        """Take the next element, or the end of the input."""
        head, self._head = self._head or self.head, None
        if head is None:
            self.ended = True
            return StreamSignal(self.stream, self._partition, None)
        self.now = head.time
        self.backlog.take()
        if self._judge is not None and not isinstance(head.element, DeadLetter):
            self.dated |= self.stream.source.updates and head.element.at is not None
            if isinstance(head.element, Accent):
                self.vantage.take(head.element)
            return Came(self.stream.name, self._partition, head.element, head.time, head.entry)
        match head.element:
            case Item() as item:
                assert head.given is not None
                return Released(head.entry, item, head.units, head.given, head.time)
            case Punctuation() as given:
                self.vantage.take(given)
                return StreamSignal(self.stream, self._partition, self.vantage.told(given), given, head.time)
            case Accent() | DeadLetter() as change:
                self.vantage.take(change)
                return Changed(self.stream, self._partition, change)
            case Region() | Update() | StreamToken():
                raise AssertionError(f"a stream of items has none ({head.element.place})")

    def usual(self) -> Generator[Came | CameTogether, None, bool]:
        """Take the updates of a usual look that come next, some at a time; gives whether others may follow at once.

        It is `head` and `take` for many, where this input is merged with nothing and its elements are judged.
        """
        assert self._judge is not None, "such elements are judged"
        if self._head is not None or not self._reader.is_learned or not self.backlog:
            return False
        origin, table = self.backlog.ahead(1)[0]
        rows: int = min(table.num_rows, _RUN)
        updates = self._reader.usual_updates(origin, table.slice(0, rows))
        judge, key, name, partition = self._judge, self.key, self.stream.name, self._partition
        done = 0
        try:
            while done < len(updates):
                if together := judge.together(key, updates, done):
                    done += len(together)
                    self.now, self.dated = together[-1].at, True
                    yield CameTogether(name, partition, together)
                    continue
                each = updates[done]
                done += 1
                at = judge.time_of(key, each, origin.arrived)
                if at is not None:
                    self.now = at
                    self.dated = self.dated or each.at is not None
                    yield Came(name, partition, each, at)
        finally:
            if done:
                self.skip(done, self.now)
        return done == rows

    def skip(self, entries: int, now: Fraction) -> None:
        """Skip entries that were taken in columns; `now` is the time of the last."""
        self._head = None
        self.now = now
        self.backlog.skip(entries)

    def settle(self) -> None:
        self._head = None
        self.backlog.settle()


class Merge:
    """Merges the inputs of one branch."""

    def __init__(self, streams: Sequence[InputStream], spill: Spill, judge: DocumentJudge | None = None) -> None:
        self.sources = {
            (stream.name, partition): MergeInput(stream, partition, Backlog(spill), judge)
            for stream in streams
            for partition in range(len(stream.source.partitions))
        }
        self._only = next(iter(self.sources.values())) if len(self.sources) == 1 else None
        """The input that is merged with nothing."""
        self._passed: Fraction | None = None
        self._ended: set[Key] = set()
        self._judged = judge is not None
        self._moment = AnswerMoment()
        self._timed: Sequence[Timed] = ()

    def measure(self, admissions: Mapping[str, UpdateAdmission]) -> None:
        """Have the documents of streams read values by what the accents taken here say of them."""
        for (name, partition), source in self.sources.items():
            if name in admissions:
                admissions[name].evolutions[partition] = source.vantage.evolution

    def tell(self, timed: Sequence[Timed]) -> None:
        """Report the moment of each element to some outputs."""
        self._timed = timed
        for each in timed:
            each.moment = self._moment

    def moved(self, now: Fraction) -> None:
        """Begin a moment; called by the judge of elements, which may see several moments in one element."""
        self._moment = self._moment.behind(now)
        for each in self._timed:
            each.move(self._moment)

    def feed(self, data: bytes) -> None:
        """Add a feed; feeds of one input come in the order of their partition."""
        origin, _ = unpack(data)
        self.sources[origin.stream, origin.partition].backlog.append(data)

    def passed(self, time: Fraction) -> None:
        """No input with arrival times brings anything at or before this time any more."""
        self._passed = time if self._passed is None else max(time, self._passed)

    def end(self, stream: str, partition: int) -> None:
        """End an input."""
        self._ended.add((stream, partition))

    @property
    def ended(self) -> bool:
        """Whether all inputs have ended."""
        return self._ended >= self.sources.keys()

    def known_until(self, key: Key) -> Reach | None:
        """The time up to which an input without a head is complete; None where that is open."""
        if key in self._ended:
            return math.inf
        source = self.sources[key]
        return None if source.stream.source.is_timed or source.dated else self._passed

    def released(self) -> Iterator[Released | StreamSignal | Changed | Came | CameTogether]:
        """The released elements, in order."""
        runs = self._only if self._judged and not self._timed else None
        if runs is not None and not runs.stream.source.updates:
            runs = None
        pause, others = _PAUSE, 0
        while True:
            while runs is not None and not others:
                if (yield from runs.usual()):
                    pause = _PAUSE
                else:
                    pause, others = min(2 * pause, _RUN), pause
            if (source := self._first()) is None:
                return
            others = max(0, others - 1)
            taken = source.take()
            if self._timed and not self._judged and not source.ended:
                self.moved(source.now)
            yield taken

    def _first(self) -> MergeInput | None:
        """The input whose element, or end, is next; None as long as that is open."""
        if self._only is not None and self._only.head is not None:
            return self._only
        first: MergeInput | None = None
        least: Fraction | None = None
        silent: list[Reach | None] = []
        for key, source in self.sources.items():
            if (head := source.head) is not None:
                if least is None or head.time < least:
                    first, least = source, head.time
            elif key in self._ended and not source.ended:
                return source
            else:
                silent.append(self.known_until(key))
        if least is None or any(each is None or each < least for each in silent):
            return None
        return first

    # --- between epochs -----------------------------------------------------------------------------------

    @property
    def now(self) -> list[Any]:
        """How far the inputs have come: equal numbers of waiting elements are the same elements."""
        inputs = [
            [*key, written(each.now), key in self._ended, len(each.backlog)] for key, each in self.sources.items()
        ]
        return [inputs, written(self._passed)]

    @property
    def _backlogs(self) -> dict[Key, Backlog]:
        return {key: source.backlog for key, source in self.sources.items()}

    def save(self) -> tuple[dict[str, Any], pa.Table]:
        """The state at the end of the epoch."""
        for source in self.sources.values():
            source.settle()
        times = [[*key, written(source.now)] for key, source in self.sources.items()]
        ended = sorted(self._ended)
        dated = sorted(key for key, source in self.sources.items() if source.dated)
        meta = {"now": times, "passed": written(self._passed), "ended": ended, "dated": dated}
        if self._timed:
            meta["moment"] = self._moment.save()
        return meta, backlog_table(self._backlogs)

    def restore(self, meta: dict[str, Any], table: pa.Table) -> None:
        """Restore from `save`."""
        for stream, partition, now in meta["now"]:
            self.sources[stream, partition].now = Fraction(now)
        for stream, partition in meta["dated"]:
            self.sources[stream, partition].dated = True
        self._passed = fraction(meta["passed"])
        self._ended = {(stream, partition) for stream, partition in meta["ended"]}
        self._moment = AnswerMoment.of(meta["moment"]) if "moment" in meta else AnswerMoment()
        restore_backlogs(self._backlogs, table)
        for key, source in self.sources.items():
            source.ended = key in self._ended and not source.backlog

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that the state refers to."""
        return tuple(ref for backlog in self._backlogs.values() for ref in backlog.spilled)

    @property
    def waiting(self) -> dict[Key, int]:
        """The number of elements of each input that are held back, because another is behind."""
        return {key: len(backlog) for key, backlog in self._backlogs.items()}


class Merged(ABC):
    """What branches behind a merge have in common; a subclass takes the released elements."""

    def __init__(self, inputs: Iterable[InputStream], spill: Spill, judge: DocumentJudge | None = None) -> None:
        self._merge = Merge(list(inputs), spill, judge)

    def tell(self, timed: Sequence[Timed]) -> None:
        """Have some outputs write records of moments."""
        self._merge.tell(timed)

    def feed(self, *feeds: bytes) -> None:
        """Add packed feeds; feeds of one partition come in stream order.

        Columns are faster with more elements of all inputs at a time.
        """
        for each in feeds:
            self._merge.feed(each)
        self._run()

    def passed(self, time: Fraction) -> None:
        """No input with arrival times brings anything at or before `time` any more."""
        self._merge.passed(time)
        self._run()

    def end(self, stream: str, partition: int) -> None:
        """End an input; the end of the last one closes what is open."""
        self._merge.end(stream, partition)
        self._run()
        if self._merge.ended:
            self._finish()

    @abstractmethod
    def _run(self) -> None:
        """Take the released elements."""

    def _finish(self) -> None:  # noqa: B027  # most have nothing to do then
        """Act at the end of all inputs, when all elements were taken."""

    @property
    def waiting(self) -> dict[Key, int]:
        """The number of elements of each input that are held back, because another is behind."""
        return self._merge.waiting

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that its state refers to."""
        return self._merge.spilled
