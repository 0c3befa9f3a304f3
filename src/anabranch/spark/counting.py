"""Windows counted by panes: the way of a range from the task that counts it to the branches that merge it.

A range is counted where it is read, for all branches of its stream at once, and without knowing what came before;
windows that differ in sizes and steps only are counted once (`columnar/pane_sharing.py`).
What it comes to goes to each shard in one row.
Where it turns out to matter what came before, because something in the range is late by it, the shard reads the range
once more and counts it for those branches from what they know; that is rare, and the answer is the same
(`columnar/panes.py`).
Dead letters travel with the count, so that those of a count that is void do not exist.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction

from anabranch.branch.pane_group import PaneGroup, Served
from anabranch.branch.pane_plan import PaneLaw, PanePlan
from anabranch.branch.pane_states import pack
from anabranch.branch.panes import PaneWindows
from anabranch.branch.ports import Output
from anabranch.branch.state import State
from anabranch.columnar.answering import StreamAnswers
from anabranch.columnar.counted import CountedRange, Reach
from anabranch.columnar.kernels import Flags
from anabranch.columnar.matching import Matches
from anabranch.columnar.pane_query import CompiledMany, compile_many
from anabranch.columnar.pane_sharing import relaxed, shared
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
    """What the tasks count of a stream, and for which branches."""

    members: tuple[Member, ...]
    served: tuple[Served, ...]
    """By member."""

    @staticmethod
    def of(
        plans: Mapping[int, tuple[str, PanePlan]],
        stream: StreamPlan,
        root: Element,
        functions: Mapping[str, PythonFunction],
        documents: Mapping[str, Input],
        *,
        sharing: bool,
    ) -> PaneTaking:
        """`plans` are by the numbers of branches, with the names of subscriptions that they serve."""
        time = None if stream.time is None else Path.parse(stream.time)
        numbers, given = list(plans), list(plans.values())
        queries = [plan.query for _, plan in given]
        members: list[Member] = []
        served: list[Served] = []
        for group in shared(queries) if sharing else [[each] for each in range(len(queries))]:
            name, plan = given[group[0]]
            query = relaxed([queries[each] for each in group])
            # Between partitions, a window may wait long after the range in which all of it lies.
            told = stream.partitions > 1 or any(given[each][1].result is None for each in group)
            law = PaneLaw(plan, root, time, functions, documents)
            panes = tuple(queries[each].panes for each in group)
            members.append(Member(name, query, law, panes, told))
            served.append(Served(tuple(numbers[each] for each in group), query.panes.width))
        return PaneTaking(tuple(members), tuple(served))

    def compile(self, root: str, template: Template) -> CompiledMany:
        return compile_many([each.query for each in self.members], root, template)


class RangeCount:
    """The count of one range for some branches, with the dead letters that came of it."""

    def __init__(self, taking: PaneTaking, reach: Range, largest: Reach | None = None) -> None:
        self._taking = taking
        self._reach = reach
        self._letters: list[list[DeadLetter]] = [[] for _ in taking.members]
        self._counter = PaneCounter(taking.members, self._bury, file=reach.file, largest=largest)

    def _bury(self, member: int, letter: DeadLetter) -> None:
        self._letters[member].append(letter)

    def judge(self, compiled: CompiledMany | None, shredded: Shredded, known: Flags, matches: Matches) -> Flags:
        return self._counter.judge(compiled, shredded, known, matches)

    def show(self, entry: int, element: Item | Punctuation) -> None:
        self._counter.show(entry, element)

    def take(self) -> None:
        self._counter.take()

    def result(self) -> RangeResult:
        return RangeResult(self._reach, self._taking.served, self._letters, self._counter.result())


@dataclass(frozen=True, slots=True)
class RangeResult:
    """What a range comes to: for each member the branches that it was counted for, its dead letters, and the count."""

    reach: Range
    served: Sequence[Served]
    letters: Sequence[Sequence[DeadLetter]]
    counted: CountedRange

    def packed(self, shard: Callable[[int], int]) -> Iterator[tuple[int, bytes]]:
        """What goes to each shard; `shard` says who has a branch."""
        shards: dict[int, dict[int, list[int]]] = {}
        for member, served in enumerate(self.served):
            for number in served.numbers:
                shards.setdefault(shard(number), {}).setdefault(member, []).append(number)
        for each, members in shards.items():
            told = [
                [member, numbers, str(self.served[member].width), list(map(letter_to_json, self.letters[member]))]
                for member, numbers in members.items()
            ]
            head = json.dumps([asdict(self.reach), len(self.served), told]).encode()
            yield each, head + b"\n" + self.counted.part(list(members)).to_bytes()

    @staticmethod
    def unpacked(data: bytes) -> RangeResult:
        """What a shard was sent; members that are nothing to it serve nobody."""
        line, _, rest = data.partition(b"\n")
        reach, count, told = json.loads(line)
        served = [Served((), Fraction(1))] * count
        letters: list[list[DeadLetter]] = [[] for _ in range(count)]
        for member, numbers, width, texts in told:
            served[member] = Served(tuple(numbers), Fraction(width))
            letters[member] += map(letter_from_json, texts)
        return RangeResult(Range(**reach), served, letters, CountedRange.from_bytes(rest))


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
        for served in result.served:
            for number in served.numbers:
                self._open(number)
        void = self._group.take(int(result.reach.partition), result.counted, result.served)
        for served, letters in zip(result.served, result.letters, strict=True):
            for number in served.numbers:
                for letter in letters if number not in void else ():
                    self._branches[number].out.bury(letter)
        return void

    def _recount(self, numbers: list[int], reach: Range, largest: Reach | None) -> RangeResult:
        """Read a range once more and count it from the largest value that came before it."""
        plan: Plan = self._job.plan.load()
        (stream,) = (each for each in plan.streams if each.stream == reach.stream)
        root = parse_root(stream.root.encode())
        plans = {number: (each.name, each.plan) for number, each in self._branches.items() if number in numbers}
        given = (stream, root, dict(self._job.functions), documents_of(plan.documents))
        taking = PaneTaking.of(plans, *given, sharing=plan.sharing)
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
