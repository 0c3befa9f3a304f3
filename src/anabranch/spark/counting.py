"""Windows counted by panes: the way of a range from the task that counts it to the branches that merge it.

A range is counted where it is read, for all branches of its stream at once, and without knowing what came before.
What it comes to goes to each shard in one row.
Where it turns out to matter what came before, because something in the range is late by it, the shard reads the range
once more and counts it for those branches from what they know; that is rare, and the answer is the same
(`columnar/panes.py`).
Dead letters travel with the count, so that those of a count that is void do not exist.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass

from anabranch.branch.pane_group import PaneGroup
from anabranch.branch.pane_states import pack
from anabranch.branch.panes import PaneLaw, PanePlan, PaneWindows
from anabranch.branch.ports import Output
from anabranch.branch.state import State
from anabranch.columnar.answering import StreamAnswers
from anabranch.columnar.counted import CountedRange, Reach
from anabranch.columnar.kernels import Flags
from anabranch.columnar.matching import Matches
from anabranch.columnar.pane_query import CompiledMany, compile_many
from anabranch.columnar.panes import Member, PaneCounter
from anabranch.columnar.shred import Shredded
from anabranch.columnar.template import Template
from anabranch.reference.calls import PythonFunction
from anabranch.reference.inputs import Input
from anabranch.spark.job import Job
from anabranch.spark.plan import Plan, StreamPlan
from anabranch.spark.ranges import Range
from anabranch.spark.reading import RangeReader, show
from anabranch.spark.roles import documents_of
from anabranch.spark.segments import letter_from_json, letter_to_json
from anabranch.stream.elements import DeadLetter, Item, Punctuation
from anabranch.stream.parse import parse_root
from anabranch.stream.path import Path
from anabranch.stream.tree import Element


@dataclass(frozen=True, slots=True)
class PaneTaking:
    """The branches of a stream as the tasks count for them, by number."""

    members: Mapping[int, Member]

    @staticmethod
    def of(
        plans: Mapping[int, tuple[str, PanePlan]],
        stream: StreamPlan,
        root: Element,
        functions: Mapping[str, PythonFunction],
        documents: Mapping[str, Input],
    ) -> PaneTaking:
        """`plans` are by number, with the names of subscriptions that they serve."""
        time = None if stream.time is None else Path.parse(stream.time)
        found: dict[int, Member] = {}
        for number, (name, plan) in plans.items():
            # Between partitions, a window may wait long after the range in which all of it lies.
            told = plan.result is None or stream.partitions > 1
            found[number] = Member(name, plan.query, PaneLaw(plan, root, time, functions, documents), told)
        return PaneTaking(found)

    def compile(self, root: str, template: Template) -> CompiledMany:
        return compile_many([each.query for each in self.members.values()], root, template)


class RangeCount:
    """The count of one range for some branches, with the dead letters that came of it."""

    def __init__(self, taking: PaneTaking, reach: Range, largest: Reach | None = None) -> None:
        self._numbers = list(taking.members)
        self._reach = reach
        self._letters: list[list[DeadLetter]] = [[] for _ in self._numbers]
        members = list(taking.members.values())
        self._counter = PaneCounter(members, self._bury, file=reach.file, largest=largest)

    def _bury(self, member: int, letter: DeadLetter) -> None:
        self._letters[member].append(letter)

    def judge(self, compiled: CompiledMany | None, shredded: Shredded, known: Flags, matches: Matches) -> Flags:
        return self._counter.judge(compiled, shredded, known, matches)

    def show(self, entry: int, element: Item | Punctuation) -> None:
        self._counter.show(entry, element)

    def take(self) -> None:
        self._counter.take()

    def result(self) -> RangeResult:
        return RangeResult(self._reach, self._numbers, self._letters, self._counter.result())


@dataclass(frozen=True, slots=True)
class RangeResult:
    """What a range comes to: for each member the number of its branch and its dead letters, and the count."""

    reach: Range
    numbers: list[int]
    letters: list[list[DeadLetter]]
    counted: CountedRange

    def packed(self, shard: Callable[[int], int]) -> Iterator[tuple[int, bytes]]:
        """What goes to each shard; `shard` says who has a branch."""
        shards: dict[int, list[int]] = {}
        for member, number in enumerate(self.numbers):
            shards.setdefault(shard(number), []).append(member)
        for each, members in shards.items():
            letters = [[member, list(map(letter_to_json, self.letters[member]))] for member in members]
            head = json.dumps([asdict(self.reach), self.numbers, letters]).encode()
            yield each, head + b"\n" + self.counted.part(members).to_bytes()

    @staticmethod
    def unpacked(data: bytes) -> RangeResult:
        """What a shard was sent; of other members it knows the number only."""
        line, _, rest = data.partition(b"\n")
        reach, numbers, told = json.loads(line)
        letters: list[list[DeadLetter]] = [[] for _ in numbers]
        for member, texts in told:
            letters[member] += map(letter_from_json, texts)
        return RangeResult(Range(**reach), numbers, letters, CountedRange.from_bytes(rest))


@dataclass(frozen=True, slots=True)
class PaneBranch:
    """A branch that merges the counts of all ranges, for one epoch."""

    plan: PanePlan
    name: str
    windows: PaneWindows
    out: Output


class PaneBranches:
    """The branches of a shard that are counted, for one epoch; those are opened for which there is something."""

    def __init__(self, job: Job, opened: Callable[[int], PaneBranch]) -> None:
        self._job = job
        self._opened = opened
        self._branches: dict[int, PaneBranch] = {}
        self._group = PaneGroup()

    def _open(self, number: int) -> None:
        if number not in self._branches:
            branch = self._branches[number] = self._opened(number)
            self._group.add(number, branch.windows)

    def count(self, packed: bytes) -> None:
        """Take in the next range."""
        result = RangeResult.unpacked(packed)
        void: dict[Reach | None, list[int]] = {}
        for number in self._take(result):
            largest = self._branches[number].windows.largest(int(result.reach.partition))
            void.setdefault(largest, []).append(number)
        for largest, numbers in void.items():
            again = self._take(self._recount(numbers, result.reach, largest))
            assert not again, "a count from what came before is never void"

    def _take(self, result: RangeResult) -> list[int]:
        """Take in what holds; gives the branches for whom it is void."""
        for member in result.counted.members:
            self._open(result.numbers[member])
        void = self._group.take(int(result.reach.partition), result.counted, result.numbers)
        for member in result.counted.members:
            if result.numbers[member] not in void:
                for letter in result.letters[member]:
                    self._branches[result.numbers[member]].out.bury(letter)
        return void

    def _recount(self, numbers: list[int], reach: Range, largest: Reach | None) -> RangeResult:
        """Read a range once more and count it from the largest value that came before it."""
        plan: Plan = self._job.plan.load()
        (stream,) = (each for each in plan.streams if each.stream == reach.stream)
        root = parse_root(stream.root.encode())
        plans = {number: (each.name, each.plan) for number, each in self._branches.items() if number in numbers}
        given = (stream, root, dict(self._job.functions), documents_of(plan.documents))
        taking = PaneTaking.of(plans, *given)
        reader = RangeReader(stream, root, plan.limits, reach, self._job.carry(reach))
        count = RangeCount(taking, reach, largest)
        answers = StreamAnswers((), root, plan.limits, stream.schema, (taking.compile,))
        show(reader, answers, _Nobody(), (count,))
        return count.result()

    def end(self, number: int, partition: int) -> None:
        """A partition has ended, as far as one branch is concerned."""
        self._open(number)
        self._branches[number].windows.end_of(partition)

    def save(self) -> tuple[State, dict[int, int]] | None:
        """Answer what is complete; gives what to remember, and by branch how many panes that are."""
        if not self._branches:
            return None
        self._group.close()
        return pack(self._group.save()), {number: each.windows.held for number, each in self._branches.items()}


class _Nobody:
    """Bad items were set aside when the range was first read."""

    def lay(self, data: bytes | memoryview, rows: object) -> None:
        raise AssertionError("there are no subscriptions")

    def bury(self, letter: DeadLetter) -> None:
        pass
