"""Windows counted by panes: what a task counts of a range, and how the counts are sent to shards.

A range is counted where it is read, for all branches of its stream at once, and without knowing what came before;
windows that differ in sizes and steps only are counted once (`columnar/panes/query.py`).
The counts go to each shard in one row, and the shard merges them with its panes (`spark/state/pane_branches.py`).
Dead letters are sent with the count: when a count is void, so are its dead letters.

Where the stream evolves, a range is counted in *stretches*: an accent on a path that a branch reads ends a stretch,
and the row of the stretch holds the events at its end.
A punctuation ends a stretch, too, if an accent before it may have waited for it; other events are only sent along, and
events before the first such accent are left out, because the job knows them (`spark/evolution/rerun.py`).
A stretch starts with the largest values of the stretches before it, so no count becomes void because of a border.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from anabranch.algebra.accents.events import Announced, judged
from anabranch.algebra.accents.evolution import Evolution
from anabranch.branch.panes.group import Served
from anabranch.branch.panes.plan import PaneLaw, PanePlan
from anabranch.columnar.items.answering import Shown
from anabranch.columnar.match.index import Matches
from anabranch.columnar.panes.counted import CountedRange, Reach
from anabranch.columnar.panes.panes import Member, PaneCounter
from anabranch.columnar.panes.query import CompiledMany, compile_many, relaxed, shared
from anabranch.columnar.scan.kernels import Flags
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.shred import Shredded
from anabranch.law.calls import PythonFunction
from anabranch.law.inputs import Input
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.spark.answers.segments import letter_from_json, letter_to_json
from anabranch.spark.epoch.passage import Passage
from anabranch.spark.evolution.views import StreamView
from anabranch.spark.intake.ranges import Range
from anabranch.stream.elements import DeadLetter, Punctuation, Region, StreamToken, Update
from anabranch.stream.reading.source import KnownStream
from anabranch.stream.tree import Element


@dataclass(frozen=True, slots=True)
class CountedBranch:
    """A branch whose windows are counted."""

    name: str
    """The name of one of its subscriptions."""
    plan: PanePlan
    view: int
    """The epoch from which on the branch sees the stream's accents, -1 for the beginning."""


@dataclass(frozen=True)
class PaneTaking:
    """What the tasks count of a stream, and for which branches."""

    members: tuple[Member, ...]
    served: tuple[Served, ...]
    """By member."""
    plans: tuple[PanePlan, ...]
    """By member: the plan of one of its branches; the plans of a member read the same of an item."""

    @staticmethod
    def of(
        plans: Mapping[int, CountedBranch],
        stream: KnownStream,
        root: Element,
        functions: Mapping[str, PythonFunction],
        documents: Mapping[str, Input],
        *,
        sharing: bool,
    ) -> PaneTaking:
        """Group the branches, given by their numbers, that can be counted together."""
        members: list[Member] = []
        served: list[Served] = []
        counted: list[PanePlan] = []
        for view in dict.fromkeys(each.view for each in plans.values()):
            numbers = [number for number, each in plans.items() if each.view == view]
            queries = [plans[number].plan.query for number in numbers]
            for group in shared(queries) if sharing else [[each] for each in range(len(queries))]:
                first = plans[numbers[group[0]]]
                query = relaxed([queries[each] for each in group])
                told = any(plans[numbers[each]].plan.tells_firsts for each in group)
                law = PaneLaw(first.plan, root, stream.source.time, functions, documents)
                members.append(Member(first.name, query, law, told, view))
                served.append(Served(tuple(numbers[each] for each in group), query.panes.width))
                counted.append(first.plan)
        return PaneTaking(tuple(members), tuple(served), tuple(counted))

    def compile(self, root: str, look: Look) -> CompiledMany:
        return compile_many([each.query for each in self.members], root, look)

    @cached_property
    def _lineages(self) -> tuple[Lineage, ...]:
        """The distinct lineages of the plans; computed only where a stream evolves."""
        return tuple(dict.fromkeys(each.lineage for each in self.plans))

    def reads(self, events: Iterable[Announced]) -> bool:
        """Whether a counted branch reads a path that the events are about."""
        paths = {path for each in events for path in each.paths}
        return any(lineage.reads(0, path) for path in paths for lineage in self._lineages)


@dataclass(frozen=True, slots=True)
class CountedStretch:
    """A stretch of a range, by the number of the range's events before it and at its end; None where the range ends.

    Where a stretch ends depends on the branches that are counted, so a stretch has no number.
    """

    first: int
    last: int | None

    def holds(self, events: int) -> bool:
        """Whether an element belongs to the stretch, given the number of events of the range before it."""
        return self.first <= events and (self.last is None or events < self.last)


@dataclass(frozen=True, slots=True)
class Recount:
    """A stretch that is counted a second time, from a known state."""

    stretch: CountedStretch
    largest: Reach | None
    """The largest value before the stretch."""


class RangeCount:
    """The count of one range for some branches, with its dead letters."""

    def __init__(
        self,
        taking: PaneTaking,
        reach: Range,
        passage: Passage,
        view: Callable[[int], StreamView],
        recount: Recount | None = None,
    ) -> None:
        """`view` gives the stream's view from an epoch on; with `recount`, only its stretch is counted."""
        self._taking = taking
        self._reach = reach
        self._passage = passage
        self._view = view
        self._recounted = recount
        self._first = 0
        self._is_counted = True
        self._results: list[RangeResult] = []
        self._letters: list[list[DeadLetter]] = []
        self._counter: PaneCounter | None = None
        self._largest: Callable[[int], Reach | None] = lambda _: recount.largest if recount else None
        self._heard = 0
        """The number of events of the range so far."""
        self._events: list[Announced] = []
        """The events in the stretch that do not end it."""
        self._evolutions: dict[int, Evolution] = {}
        """By view, once the stream has evolved: in which units values are."""
        passage.splits_at_punctuations = recount is not None  # other branches may have ended the stretch
        if taking.reads((*view(-1).events, *passage.events_before)):
            self._evolve()

    # --- batches ----------------------------------------------------------------------------------------------

    def judge(self, compiled: CompiledMany | None, shredded: Shredded, known: Flags, matches: Matches) -> Flags:
        self._is_counted = self._recounted is None or self._recounted.stretch.holds(self._heard)
        if not self._is_counted:
            return np.zeros(len(known), np.bool_)
        return self._counting().judge(compiled, shredded, known, matches)

    def show(self, entry: int, element: Shown) -> None:
        assert not isinstance(element, Region | Update | StreamToken), "windows of updates are displays"
        self._counting().show(entry, element)

    def take(self) -> None:
        if self._is_counted:
            self._counting().take()
        fresh = self._passage.valid[self._heard :]
        if fresh:
            self._hear(fresh)

    def _counting(self) -> PaneCounter:
        """The counter of the current stretch."""
        if self._counter is None:
            self._letters = [[] for _ in self._taking.members]
            self._counter = PaneCounter(
                self._taking.members,
                self._bury,
                file=self._reach.file,
                largest=self._largest,
                touched=self._touched(),
            )
        return self._counter

    def _bury(self, member: int, letter: DeadLetter) -> None:
        self._letters[member].append(letter)

    # --- stretches --------------------------------------------------------------------------------------------

    def _hear(self, fresh: Sequence[Announced]) -> None:
        """End the stretch at these events, if they may let an accent out."""
        self._events += fresh
        may_let_out = bool(self._evolutions) and any(isinstance(each.event, Punctuation) for each in fresh)
        if may_let_out or self._taking.reads(fresh):
            if self._recounted is None:
                self._note(self._heard + len(fresh))
            self._evolve()
        for each in fresh:
            for evolution in self._evolutions.values():
                judged(each.event, evolution)
        self._heard += len(fresh)

    def _note(self, last: int | None) -> None:
        """Record the count of the stretch that ends behind `last` events of the range."""
        events, self._events = tuple(self._events), []
        stretch, self._first = CountedStretch(self._first, last), last or 0
        counter, self._counter = self._counter, None
        if counter is None:
            return
        self._largest = counter.largest
        if (
            self._results and counter.entries == len(events) and all(each.paths for each in events)
        ):  # nothing but accents
            self._results[-1] = replace(self._results[-1], events=(*self._results[-1].events, *events))
        else:
            given = (self._reach, stretch, self._taking.served, self._letters, counter.result())
            self._results.append(RangeResult(*given, events))

    def _evolve(self) -> None:
        """Set the units of values from here on, by member; punctuations may let accents out from now on."""
        self._passage.splits_at_punctuations = True
        if not self._evolutions:
            partition = int(self._reach.partition)
            for view in dict.fromkeys(each.view for each in self._taking.members):
                evolution = self._evolutions[view] = self._view(view).evolutions[partition].copy()
                for each in (*self._passage.events_before, *self._passage.valid[: self._heard]):
                    if each.partition == partition:
                        judged(each.event, evolution)

    def _touched(self) -> dict[int, Evolution]:
        """By number, the members that read a path whose unit has changed."""
        altered = {view: tuple(each.altered()) for view, each in self._evolutions.items()}
        return {
            number: self._evolutions[member.view]
            for number, member in enumerate(self._taking.members)
            if any(self._taking.plans[number].lineage.reads(0, path) for path in altered.get(member.view, ()))
        }

    def results(self) -> list[RangeResult]:
        """The counts of the range, stretch by stretch, in order."""
        if not self._results and self._recounted is None:
            self._counting()
        if not self._evolutions:
            self._events = []  # no accent can come out of them, and later ranges know them
        self._note(None)
        return self._results


@dataclass(frozen=True, slots=True)
class RangeResult:
    """The count of a stretch: by member the branches that it was counted for, the dead letters, and the count."""

    reach: Range
    stretch: CountedStretch
    served: Sequence[Served]
    letters: Sequence[Sequence[DeadLetter]]
    counted: CountedRange
    events: tuple[Announced, ...] = ()
    """The events at its end, and events within it that let no accent out."""

    def packed(self, shard: Callable[[int], int]) -> Iterator[tuple[int, bytes]]:
        """The bytes for each shard; `shard` gives the shard of a branch."""
        shards: dict[int, dict[int, list[int]]] = {}
        for member, served in enumerate(self.served):
            for number in served.numbers:
                shards.setdefault(shard(number), {}).setdefault(member, []).append(number)
        for each, members in shards.items():
            told = [
                [member, numbers, str(self.served[member].width), list(map(letter_to_json, self.letters[member]))]
                for member, numbers in members.items()
            ]
            head = [
                asdict(self.reach),
                astuple(self.stretch),
                len(self.served),
                told,
                [each.json for each in self.events],
            ]
            yield each, json.dumps(head).encode() + b"\n" + self.counted.part(list(members)).to_bytes()

    @staticmethod
    def unpacked(data: bytes) -> RangeResult:
        """The result from the bytes that a shard received; members of other shards serve no branch."""
        line, _, rest = data.partition(b"\n")
        reach, stretch, count, told, events = json.loads(line)
        served = [Served((), Fraction(1))] * count
        letters: list[list[DeadLetter]] = [[] for _ in range(count)]
        for member, numbers, width, texts in told:
            served[member] = Served(tuple(numbers), Fraction(width))
            letters[member] += map(letter_from_json, texts)
        counted, heard = CountedRange.from_bytes(rest), tuple(map(Announced.from_json, events))
        return RangeResult(Range(**reach), CountedStretch(*stretch), served, letters, counted, heard)
