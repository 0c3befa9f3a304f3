"""The order in which a branch takes what its inputs bring (LAWS 1.2), and what all branches do behind that merge.

An input is one partition of one stream.
Inputs are ranked: by the stream that the query names first, then by the number of the partition.
The next element is that with the least time among the first ones of all inputs, ties to the lower rank; each input
keeps its own order, so times may fall and the merge is still that of whole sequences, whenever their parts arrive.
An input that has nothing to show holds all others back, unless it has ended, or has *passed* the time in question: it
gives its elements the moment of their arrival, and the trunk knows that none before it is on its way.
What is held back waits in the input's `Backlog`.

Accents are elements like others, and act by their place in the input (LAWS 4.5): an item is read with what was said
before it, in the units of query start, and its time is that of its canonical values.

Where it is to be told what has come when, moments are counted (`branch/timeline.py`).

Where a branch edits documents (LAWS 5), it judges the elements itself, each when all before it in its input were taken:
its judge says what their times are, and which are bad.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import pyarrow as pa

from anabranch.algebra.accents.evolution import Evolution
from anabranch.branch.intake.backlog import Backlog, Key, backlog_table, restore_backlogs
from anabranch.branch.intake.entries import EntryReader, RawEntry, unpack
from anabranch.branch.ports import InputStream, Spill
from anabranch.branch.state import fraction, written
from anabranch.branch.timeline import AnswerMoment, Timed
from anabranch.law.evolution.canonical import remeasured
from anabranch.law.evolution.vantage import Change, Vantage
from anabranch.law.inputs import element_time
from anabranch.law.rounds.windows import Reach
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Accent, DeadLetter, Item, Punctuation, Region, StreamElement, Update
from anabranch.stream.path import Path
from anabranch.stream.tree import Element as Tree


@dataclass(frozen=True, slots=True)
class Released:
    """An item whose turn has come, in the units of query start, with the maps that led there."""

    entry: RawEntry
    item: Item
    units: Mapping[Path, Affine]
    given: Tree
    """The item as it came."""


@dataclass(frozen=True, slots=True)
class StreamSignal:
    """What else there is in a stream: a punctuation whose turn has come, or None, the end of a partition.

    The end is known right behind the last element, and goes before all that waits.
    """

    stream: InputStream
    partition: int
    punctuation: Punctuation | None
    """It speaks of values in the units of query start."""
    given: Punctuation | None = None
    """The same as it was written."""


@dataclass(frozen=True, slots=True)
class Changed:
    """An accent whose turn has come, or one that was set aside and leaves paths in doubt."""

    stream: InputStream
    partition: int
    change: Change


@dataclass(frozen=True, slots=True)
class Came:
    """An element as it was written, which was judged, and whose turn has come."""

    stream: str
    partition: int
    element: StreamElement
    at: Fraction
    entry: RawEntry


class DocumentJudge(Protocol):
    """Judges the elements of documents that are edited."""

    def time_of(self, key: Key, element: StreamElement, arrived: Fraction | None) -> Fraction | None:
        """The time of the next element of an input; None for a bad one, which the judge has set aside."""

    def reached(self, key: Key) -> Fraction:
        """The time that an input has reached."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The next element of an input, with its time."""

    time: Fraction
    entry: RawEntry
    element: StreamElement | Change
    units: Mapping[Path, Affine]
    given: Tree | None
    """An item as it came."""


class MergeInput:
    """One input: what it has to show next, and the time of what it showed last."""

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
        """Whether it is edited, by elements with times of their own: when they arrive says nothing of those to come."""
        self._partition = partition
        self._judge = judge
        self._reader = EntryReader(stream)
        self._head: _Head | None = None

    @property
    def head(self) -> _Head | None:
        """The next element, None if it is not known yet."""
        while self._head is None and (entry := self.backlog.head) is not None:
            element = self._reader.read(entry)
            if self._judge is not None and not isinstance(element, DeadLetter):
                at = self._judge.time_of(self.key, element, entry.origin.arrived)
                if at is None:
                    self.backlog.take()
                else:
                    self._head = _Head(at, entry, element, {}, None)
                continue
            units: Mapping[Path, Affine] = {}
            given: Tree | None = None
            match element:
                case DeadLetter(doubts=()):  # set aside by whoever cut it out
                    self.backlog.take()
                    continue
                case Item(tree):
                    given = tree
                    if units := self.vantage.units(tree):
                        element = replace(element, tree=remeasured(tree, units))
                case Punctuation() | Accent() | DeadLetter():
                    pass
                case Region() | Update():
                    raise AssertionError(f"a stream of items has none ({element.place})")
            before = self.now if entry.origin.arrived is None else entry.origin.arrived
            # what was refused has no time of its own, whatever it says, and moves nobody's clock
            if isinstance(element, DeadLetter):
                time = self.now if self._judge is None else self._judge.reached(self.key)
            else:
                time = element_time(element, self.stream.source.time, before)
            self._head = _Head(time, entry, element, units, given)
        return self._head

    def take(self) -> Released | StreamSignal | Changed | Came:
        """Take the next element; where there is none, the end."""
        head, self._head = self.head, None
        if head is None:
            self.ended = True
            return StreamSignal(self.stream, self._partition, None)
        self.now = head.time
        self.backlog.take()
        if self._judge is not None and not isinstance(head.element, DeadLetter):
            self.dated |= self.stream.source.updates and head.element.at is not None
            return Came(self.stream.name, self._partition, head.element, head.time, head.entry)
        match head.element:
            case Item() as item:
                assert head.given is not None
                return Released(head.entry, item, head.units, head.given)
            case Punctuation() as given:
                self.vantage.take(given)
                return StreamSignal(self.stream, self._partition, self.vantage.told(given), given)
            case Accent() | DeadLetter() as change:
                self.vantage.take(change)
                return Changed(self.stream, self._partition, change)
            case Region() | Update():
                raise AssertionError(f"a stream of items has none ({head.element.place})")

    def skip(self, entries: int, now: Fraction) -> None:
        """Let entries go that were taken elsewhere, many at a time; `now` is the time of the last."""
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
        self._passed: Fraction | None = None
        self._ended: set[Key] = set()
        self._judged = judge is not None
        self._moment = AnswerMoment()
        self._timed: Sequence[Timed] = ()

    def tell(self, timed: Sequence[Timed]) -> None:
        """Tell some outputs which element was taken last."""
        self._timed = timed
        for each in timed:
            each.moment = self._moment

    def moved(self, now: Fraction) -> None:
        """A moment has come; whoever judges the elements says so, for there may be several in one."""
        self._moment = self._moment.behind(now)
        for each in self._timed:
            each.move(self._moment)

    def feed(self, data: bytes) -> None:
        """Take in a feed; those of one input come in the order of their partition."""
        origin, _ = unpack(data)
        self.sources[origin.stream, origin.partition].backlog.append(data)

    def passed(self, time: Fraction) -> None:
        """No input whose times are those of arrival brings anything at or before this time any more."""
        self._passed = time if self._passed is None else max(time, self._passed)

    def end(self, stream: str, partition: int) -> None:
        """An input brings nothing any more."""
        self._ended.add((stream, partition))

    @property
    def ended(self) -> bool:
        """Whether all inputs have ended."""
        return self._ended >= self.sources.keys()

    def known_until(self, key: Key) -> Reach | None:
        """Up to which time an input that has nothing to show brings nothing any more; None where that is open."""
        if key in self._ended:
            return math.inf
        source = self.sources[key]
        return self._passed if source.stream.source.time is None and not source.dated else None

    def released(self) -> Iterator[Released | StreamSignal | Changed | Came]:
        """The elements whose turn has come, in order."""
        while (source := self._first()) is not None:
            taken = source.take()
            if self._timed and not self._judged and not source.ended:
                self.moved(source.now)
            yield taken

    def _first(self) -> MergeInput | None:
        """The input whose element, or end, is next; None as long as that is open."""
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
    def _backlogs(self) -> dict[Key, Backlog]:
        return {key: source.backlog for key, source in self.sources.items()}

    def save(self) -> tuple[dict[str, Any], pa.Table]:
        """What must be remembered; the epoch is over."""
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
        """Take in what `save` gave."""
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
        """The names in the spill that the state needs."""
        return tuple(ref for backlog in self._backlogs.values() for ref in backlog.spilled)

    @property
    def waiting(self) -> dict[Key, int]:
        """How many elements each input has to hold back, because another is behind."""
        return {key: len(backlog) for key, backlog in self._backlogs.items()}


class Merged(ABC):
    """What is common to such branches; one takes what the merge releases, and may do something at the end of all."""

    def __init__(self, inputs: Iterable[InputStream], spill: Spill, judge: DocumentJudge | None = None) -> None:
        self._merge = Merge(list(inputs), spill, judge)

    def tell(self, timed: Sequence[Timed]) -> None:
        """Have the pieces of some outputs told with their moments."""
        self._merge.tell(timed)

    def feed(self, *feeds: bytes) -> None:
        """Take in packed feeds; those of one partition come in stream order.

        The more at a time, the better for columns, which take many elements of all inputs at once.
        """
        for each in feeds:
            self._merge.feed(each)
        self._run()

    def passed(self, time: Fraction) -> None:
        """No input whose elements have the times of their arrival brings anything at or before `time` any more."""
        self._merge.passed(time)
        self._run()

    def end(self, stream: str, partition: int) -> None:
        """An input has ended; the last one to end closes what is open."""
        self._merge.end(stream, partition)
        self._run()
        if self._merge.ended:
            self._finish()

    @abstractmethod
    def _run(self) -> None:
        """Take the elements whose turn has come."""

    def _finish(self) -> None:  # noqa: B027  # most have nothing to do then
        """All inputs have ended, and what they brought was taken."""

    @property
    def waiting(self) -> dict[Key, int]:
        """How many elements of each input it holds back, because another input is behind."""
        return self._merge.waiting

    @property
    def spilled(self) -> tuple[str, ...]:
        """The names in the spill that its state needs."""
        return self._merge.spilled
