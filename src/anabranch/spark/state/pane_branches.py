"""The pane branches of a shard: counts in, in the order of the stream, answers out.

A count assumes nothing about earlier ranges. Where items in it turn out to be late by what came before, the shard reads
the range again and counts it for those branches from their state; that is rare, and the answer is the same
(`columnar/panes/panes.py`).

Where the stream evolves (LAWS 4), the rows hold the events, at their places.
Branches that agree in lineage, policy and view are *kin*: they share one follower (`spark/evolution/following.py`),
and are answered as far as they are complete before it gets an event that may let an accent out.
The events of earlier epochs are in the stream's log, so they are not in a branch's state.
A branch that begins late first gets the accents in force for a part of the items.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from anabranch.algebra.accents.events import Announced
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch.panes.group import PaneGroup
from anabranch.branch.panes.panes import PaneWindows
from anabranch.branch.panes.state import pack
from anabranch.branch.ports import Output
from anabranch.branch.remote.making import SentWindows
from anabranch.branch.state import BranchState
from anabranch.columnar.items.answering import StreamAnswers
from anabranch.columnar.panes.counted import Reach
from anabranch.runtime.evolution.follower import Follower
from anabranch.spark.epoch.counting import CountedBranch, PaneTaking, RangeCount, RangeResult, Recount
from anabranch.spark.epoch.job import Job
from anabranch.spark.epoch.passage import Passage
from anabranch.spark.evolution.following import Kind, follower_of, fresh_follower, keep_follower
from anabranch.spark.intake.ranges import Range
from anabranch.spark.plan.documents import documents_of
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.stream.elements import Accent, DeadLetter, Doubt, Punctuation
from anabranch.stream.reading.source import KnownStream


@dataclass(frozen=True, slots=True)
class PaneBranch:
    """A branch that merges the counts of all ranges, for one epoch."""

    stream: str
    counting: CountedBranch
    policy: Policy
    windows: PaneWindows
    out: Output
    is_new: bool


@dataclass(slots=True)
class _Kin:
    """The branches over a stream with the same lineage, policy and view, which share one follower."""

    stream: KnownStream
    kind: Kind
    events_heard: list[Announced]
    """All events that the follower has received."""
    follower: Follower
    is_concerned: bool
    """Whether there were accents on paths that they read."""
    sends: bool
    """Whether they send windows: these go on when a path is in doubt."""
    numbers: list[int] = field(default_factory=list)

    @staticmethod
    def of(stream: KnownStream, kind: Kind, events: Iterable[Announced], *, sends: bool) -> _Kin:
        heard = list(events)
        follower = follower_of(stream, kind, _followed(heard, sends=sends))
        return _Kin(stream, kind, heard, follower, any(map(follower.reads, heard)), sends)

    def keep(self) -> None:
        """Cache the follower for a later epoch."""
        keep_follower(self.stream, self.kind, self.follower, _followed(self.events_heard, sends=self.sends))

    def may_answer(self, announced: Announced) -> bool:
        """Whether an accent may come out at this event."""
        is_read = self.follower.reads(announced)
        self.is_concerned |= is_read
        return is_read or (self.is_concerned and isinstance(announced.event, Punctuation))

    def hear(self, announced: Announced) -> tuple[Accent | Doubt, ...]:
        """The accents that come out at an event."""
        self.events_heard.append(announced)
        if not _followed([announced], sends=self.sends):
            self.follower.purges = []
            return ()
        return self.follower.hear(announced)


def _followed(events: Sequence[Announced], *, sends: bool) -> list[Announced]:
    """The events that a follower hears."""
    return [each for each in events if not (sends and isinstance(each.event, DeadLetter))]


class PaneBranches:
    """The pane branches of a shard, for one epoch; a branch is opened when it gets its first row."""

    def __init__(self, job: Job, opened: Callable[[int], PaneBranch]) -> None:
        self._job = job
        self._plan: Plan = job.plan.load()
        self._opened = opened
        self._branches: dict[int, PaneBranch] = {}
        self._group = PaneGroup()
        self._heard: dict[str, list[Announced]] = {}
        """By stream: the events of the epoch so far."""
        self._evolves: dict[str, bool] = {}
        """By stream: whether there were accents before this place."""
        self._kin: dict[tuple[str, Kind], _Kin] = {}
        self.aborted: dict[int, str] = {}
        """By branch: why it has ended."""

    def _open(self, number: int) -> None:
        if number not in self._branches:
            branch = self._branches[number] = self._opened(number)
            self._group.add(number, branch.windows)
            if self._has_accents(branch.stream):
                self._follow(number)

    # --- counts -----------------------------------------------------------------------------------------------

    def count(self, packed: bytes) -> None:
        """Apply the next stretch of a range, and its events."""
        result = RangeResult.unpacked(packed)
        for served in result.served:
            for number in served.numbers:
                self._open(number)
        void: dict[Reach | None, list[int]] = {}
        for number in self._take(result):
            largest = self._branches[number].windows.largest(int(result.reach.partition))
            void.setdefault(largest, []).append(number)
        for largest, numbers in void.items():
            void_again = self._take(self._recount(numbers, result.reach, Recount(result.stretch, largest)))
            assert not void_again, "a count from what came before is never void"
        self._hear(result.reach, result.events)

    def _take(self, result: RangeResult) -> list[int]:
        """Apply the valid counts; gives the branches for which the count is void."""
        served = [
            replace(each, numbers=tuple(number for number in each.numbers if number not in self.aborted))
            for each in result.served
        ]
        void = self._group.take(int(result.reach.partition), result.counted, served)
        for each, letters in zip(served, result.letters, strict=True):
            for number in each.numbers:
                for letter in letters if number not in void else ():
                    self._branches[number].out.bury(letter)
        return void

    def _recount(self, numbers: Sequence[int], reach: Range, recount: Recount) -> RangeResult:
        """Read a range again, and count a stretch of it for some branches from the largest value before it."""
        plan, stream = self._plan, self._plan.stream(reach.stream)
        source, root = stream.source, stream.root()
        plans = {number: self._branches[number].counting for number in numbers}
        texts = [plan.by_id[id].text for number in numbers for id in plan.served[number][:1]]
        given = (stream, root, dict(self._job.functions), documents_of(self._job.plan, texts))
        taking = PaneTaking.of(plans, *given, sharing=plan.sharing)
        passage = self._passage(reach)
        count = RangeCount(taking, reach, passage, self._job.known_log(stream).view, recount)
        answers = StreamAnswers(
            (), stream.form.format, root, plan.limits, source.checked_schema, (taking.compile,), item=source.item_name
        )
        passage.show(answers, _NoAnswers(), (count,))
        (result,) = count.results()
        return result

    def end(self, number: int, partition: int) -> None:
        """Apply the end of a partition to one branch."""
        self._open(number)
        self._branches[number].windows.end_of(partition)

    # --- evolution --------------------------------------------------------------------------------------------

    def _passage(self, reach: Range) -> Passage:
        stream = self._plan.stream(reach.stream)
        return Passage(self._job, stream, stream.root(), self._plan.limits, reach)

    def _has_accents(self, name: str) -> bool:
        """Whether there were accents in a stream before this place."""
        if name not in self._evolves:
            self._evolves[name] = any(each.paths for each in self._job.known_log(self._plan.stream(name)).valid)
        return self._evolves[name]

    def _hear(self, reach: Range, events: Sequence[Announced]) -> None:
        """Apply the events at this place of a stream; accents that come out stand here in the answers."""
        name = reach.stream
        if events and name not in self._heard:
            self._heard[name] = []
            events = (*self._passage(reach).events_before, *events)
        for each in events:
            if not self._has_accents(name) and each.paths:
                self._evolves[name] = True
                for number, branch in self._branches.items():
                    if branch.stream == name:
                        self._follow(number)
            self._heard[name].append(each)
            for kin in self._kin.values():
                if kin.stream.name == name:
                    self._pass_on(kin, each)

    def _pass_on(self, kin: _Kin, announced: Announced) -> None:
        """Pass an event to some kin; if it may let an accent out, their complete windows are answered first."""
        sending = [each for each in map(self._windows, kin.numbers) if isinstance(each, SentWindows)]
        if not kin.may_answer(announced) and not (sending and kin.is_concerned):
            kin.hear(announced)
            return
        self._group.close(kin.numbers)
        self._end_capped(kin.numbers)
        kin.numbers = [each for each in kin.numbers if each not in self.aborted]
        for sent in sending:
            sent.pass_on(kin.events_heard, announced)
        accents = kin.hear(announced)
        for number in kin.numbers:
            windows = self._branches[number].windows
            windows.tell(accents)
            for each in kin.follower.purges:
                windows.forget(each.path)
        self._end_aborted(kin)

    def _follow(self, number: int) -> None:
        """Make a branch follow the evolution of its stream up to this place."""
        branch = self._branches[number]
        stream, first = self._plan.stream(branch.stream), branch.counting.view
        view, heard = self._job.known_log(stream).view(first), self._heard.get(branch.stream, ())
        kind = branch.counting.plan.followed, branch.policy, first
        if (branch.stream, kind) not in self._kin:
            sends = isinstance(branch.windows, SentWindows)
            self._kin[branch.stream, kind] = _Kin.of(stream, kind, [*view.events, *heard], sends=sends)
        kin = self._kin[branch.stream, kind]
        kin.numbers.append(number)
        branch.windows.follow(kin.follower.outlet)
        if isinstance(branch.windows, SentWindows) and kin.is_concerned:
            branch.windows.pass_on(kin.events_heard)
        if branch.is_new and view.initial:
            shown = fresh_follower(stream, kind)
            branch.windows.tell(accent for each in view.events[: view.initial] for accent in shown.hear(each))
        self._end_aborted(kin)

    def _windows(self, number: int) -> PaneWindows:
        return self._branches[number].windows

    def _end_aborted(self, kin: _Kin) -> None:
        """End the branches whose query cannot go on."""
        if kin.follower.aborted is not None:
            for number in kin.numbers:
                self.aborted[number] = kin.follower.aborted
                self._group.leave(number)
            kin.numbers.clear()

    def _end_capped(self, numbers: Sequence[int]) -> None:
        """End the branches whose query holds too much, behind windows that were answered (LAWS 2.9)."""
        for number in numbers:
            if (reason := self._windows(number).capped) is not None:
                self.aborted[number] = reason
                self._group.leave(number)

    # --- the end of the epoch ---------------------------------------------------------------------------------

    def save(self, compared: Collection[int] = ()) -> tuple[BranchState, dict[int, int], dict[int, str]] | None:
        """Answer complete windows.

        Returns the common state, by branch its number of panes, and the futures of branches that are `compared`.
        """
        for kin in self._kin.values():
            kin.keep()
        going = [number for number in self._branches if number not in self.aborted]
        if not going:
            return None
        self._group.close(going)
        self._end_capped(going)
        going = [number for number in going if number not in self.aborted]
        if not going:
            return None
        states = self._group.save()
        futures = self._group.futures(states, [number for number in going if number in compared])
        return pack(states), {number: self._branches[number].windows.held for number in going}, futures


class _NoAnswers:
    """A writer that drops dead letters: bad items were set aside when the range was first read."""

    def lay(self, data: bytes | memoryview, rows: object) -> None:
        raise AssertionError("there are no subscriptions")

    def bury(self, letter: DeadLetter) -> None:
        pass
