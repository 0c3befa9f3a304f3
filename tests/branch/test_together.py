"""Several queries of one family in one branch: nobody sees that the others are there (LAWS 3.7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from random import Random

import pytest

from anabranch.branch import BranchMember
from anabranch.branch.held_items import HeldNode, Shelf
from anabranch.branch.intake.batches import BatchReader, EntryBatch
from anabranch.branch.intake.lookahead import NextEntries
from anabranch.branch.joins.answers import Leaders, LedPairing, shifts
from anabranch.branch.joins.step_join import Pairing, StepJoin
from anabranch.branch.members import Asker
from anabranch.columnar.items.query import CompiledFor
from anabranch.runtime.units import Units
from anabranch.sharing.match_joins import FullResults, SelectedResults, level
from anabranch.sharing.rules.derive import derive_forest
from anabranch.stream.photons import photons
from branch.crowd import Crowd, schedules
from branch.feeding import Question, Stream, Taken
from branch.looks import USUAL, stream
from mass import Mass
from papers import SHARING

SOURCES = ("", "", "[en > 1]", "[m/n = 'a' or en <= 1.5]", "[en div 0 > 1]")
TIMED = (
    *("t diff 10", "t diff 7.5 step 0.25", "t diff 20 step 10"),
    *("t diff 3 step 5", "t diff 8 step 5", "t diff 5", "t diff 10 step 5", "t diff 15 step 5"),
)
COUNTED = ("count 2", "count 3 step 1", "count 1 step 2")
CONDITIONS = (
    "", "where $x/en >= $y/en + 0.5", "where $x/en >= $y/en", "where $x/en > $y/en - 1 and $y/m/n = 'a'",
    "where $x/m/n = $y/m/n", "where $x/en < 2 and ($y/m/n != 'a' or $x/m/phc <= $y/m/phc)",
    "where $x/m/phc div ($y/en - 1) > 2", "where not($x/en - $y/en > 0.1)",
)  # fmt: skip
RESULTS = (
    "<r>{ $x/en } { $x/t }{ $y/en }{ $y/m/n/text() }</r>", "($x, $y/m)", "<r a='{ $x/t }:{ $y/t }'>!</r>",
    "$x/en + 1", "string($y/m/n)", "(for $z in $x/m return <z>{ $z/n, $y/en }</z>)",
)  # fmt: skip
OF_WINDOWS = (
    "<w>{ $x/en }</w>",
    "count($x/m)",
    "<w a='{ sum($x/en) }'>{ $x/m/n[. = 'a'] }</w>",
    "$x/t",
    "$x/en[. div 0 > 1]",
)


def joins(random: Random) -> list[str]:
    """Joins that differ in all but their sources."""
    sources = [f'stream("{name}")/r/p{random.choice(SOURCES)}' for name in "ab"]
    windows = [random.choice((TIMED, TIMED, COUNTED)) for _ in "ab"]
    found = []
    for _ in range(random.randint(2, 5)):
        sides = [f"{source}|{random.choice(sizes)}|" for source, sizes in zip(sources, windows, strict=True)]
        query = f"for $x in {sides[0]} for $y in {sides[1]} {random.choice(CONDITIONS)} return {random.choice(RESULTS)}"
        found.append(f"<o>{{ {query} }}</o>")
    return found


def windows(random: Random) -> list[str]:
    """Windows that need their items, of different sizes, over the same source."""
    source, sizes = random.choice(SOURCES), random.choice((TIMED, TIMED, COUNTED))
    return [
        f'<o>{{ for $x in stream("a")/r/p{source}|{random.choice(sizes)}| return {random.choice(OF_WINDOWS)} }}</o>'
        for _ in range(random.randint(2, 5))
    ]


def intervals(random: Random) -> list[str]:
    """Interval joins of different length."""
    sources = [f'stream("{name}")/r/p{random.choice(SOURCES)}' for name in "ab"]
    found = []
    for _ in range(random.randint(2, 4)):
        below, above = random.choice((0, 1, 2.5, 20)), random.choice((0, 3, 10))
        bounds = f"$y/t >= $x/t - {below} and $y/t <= $x/t + {above}"
        also = random.choice(("", "and $x/en > $y/en", "and $x/en div $y/en > 1"))
        query = f"for $x in {sources[0]} for $y in {sources[1]} where {bounds} {also} return {random.choice(RESULTS)}"
        found.append(f"<o>{{ {query} }}</o>")
    return found


def items(random: Random) -> list[str]:
    """Queries that answer item by item, and need the merge."""
    found = []
    for _ in range(random.randint(2, 5)):
        condition = random.choice(
            ("", "where $x/en > 1", "where $x/m/n = 'a' and $x/en <= 1.5", "where $x/en div 0 > 1")
        )
        result = random.choice(("<r>{ $x/en }</r>", "$x/m", "$x/en + 1", "string($x/m/n)", "<r a='{ $x/t }'/>"))
        found.append(f'<o>{{ for $x in stream("a")/r/p{random.choice(SOURCES)} {condition} return {result} }}</o>')
    return found


@dataclass(frozen=True)
class Kind:
    """Crowds of one kind: their queries, how many to try, and what their streams are like."""

    queries: Callable[[Random], list[str]]
    count: int
    streams: str
    partitions: int = 1
    timed: float = 0.8
    endless: bool = False

    def crowd(self, random: Random) -> Crowd:
        timed = random.random() < self.timed
        texts = self.queries(random)
        given = [stream(random, name, timed=timed, partitions=self.partitions) for name in self.streams]
        for each in given:
            each.endless = self.endless
            each.late = random.random() < 0.2
        return Crowd([Question(text, given) for text in texts])


KINDS = {
    "joins": Kind(joins, 4, "ab"),
    "windows": Kind(windows, 4, "a"),
    "intervals": Kind(intervals, 12, "ab", timed=1, endless=True),
    "items": Kind(items, 4, "a", partitions=3, timed=1),
}


@pytest.mark.parametrize("name", KINDS)
def test_nobody_sees_the_others(name: str, mass: Mass) -> None:
    """After every epoch each has been given what it would have been given alone, whoever else was there or has left."""
    at_once = 0
    for number in mass.cases(KINDS[name].count):
        random = Random(f"{name} {number}")
        crowd = KINDS[name].crowd(random)
        assert len(crowd.families()) == 1, [each.text for each in crowd.questions]
        taken = crowd.check(random, random.choice((1, 2, 4)), f"{name} {number}")
        at_once += sum(each.at_once for each in taken)
    assert at_once or mass.done < mass.total


def paper(*names: str) -> Crowd:
    """Joins of the sharing paper over photons."""
    streams = [
        Stream(each, f"<photons>{''.join(photons(60, seed))}</photons>", time="det_time")
        for seed, each in enumerate(("photon1", "photon2"))
    ]
    return Crowd([Question(SHARING[name], streams) for name in names])


@pytest.mark.mass
def test_joins_of_the_paper_read_each_photon_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All four in one branch: each photon is cut out once, and shown to nobody one by one."""
    crowd = paper("q5", "q6", "q7", "q8")
    assert len(crowd.families()) == 1
    laws = [each.law().text for each in crowd.questions[2:]]
    seen: list[int] = []
    batch = BatchReader.batch

    def counted(self: BatchReader, compiled: CompiledFor, held: Sequence[HeldNode], entries: NextEntries) -> EntryBatch:
        seen.append(len(entries))
        return batch(self, compiled, held, entries)

    monkeypatch.setattr(BatchReader, "batch", counted)
    monkeypatch.delattr(Units, "candidates")
    monkeypatch.delattr(Units, "tuple")
    plan = schedules(Random(1), crowd.questions[0].streams, 1)
    taken = crowd.run(plan, [1] * 4)
    assert [question.answer(each) for question, each in zip(crowd.questions[2:], taken[2:], strict=True)] == laws
    together = sum(seen)
    seen.clear()
    Crowd(crowd.questions[:1]).run(plan, [1])
    assert together == sum(seen) > 0


def test_equal_windows_meet_once() -> None:
    """Full join result sharing: q5 and q6 are one pairing, q7 and q8 have windows of their own (figure 13)."""
    operator = operator_of(paper("q5", "q6", "q7", "q8"))
    assert [len(each.askers) for each in operator.pairings] == [2, 1, 1]


@pytest.mark.mass
def test_a_wider_join_has_the_pairs_of_a_narrower_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Selective join result sharing: once the wider windows are full, the pairs of others are selected from theirs.

    Not where sizes do not differ by a multiple of the step, so that windows end apart, as those of q5 and q7 do.
    """
    led: list[tuple[int, int]] = []
    find = Leaders.led

    def noted(self: Leaders) -> list[LedPairing]:
        found = find(self)
        led.extend((_size(each.pairing), _size(leader.pairing)) for leader in found for each in leader.narrower)
        return found

    monkeypatch.setattr(Leaders, "led", noted)
    streams = [stream_of(name, range(60)) for name in "ab"]
    sizes = ((10, 4), (15, 10), (15, 12), (15, 14), (20, 14))
    crowd = Crowd([Question(JOIN.format(*each, 5, 2), streams) for each in sizes])
    crowd.check(Random(3), 4, "wider")
    assert set(led) >= {(10, 20), (15, 20)}
    led.clear()
    Crowd([Question(JOIN.format(*each, 5, 10), streams) for each in ((10, 20), (30, 15))]).check(Random(3), 4, "q5, q7")
    assert not led


def test_the_branch_shares_what_the_forests_say() -> None:
    """The running join decides for itself, and as `sharing.match_joins` does: full, selected, or windows."""
    found: set[str] = set()
    streams = [stream_of(name, ()) for name in "ab"]
    sizes = [(a, b) for a in (5, 10, 20) for b in (10, 15, 30)]
    asked = {each: Question(JOIN.format(*each, 5, 10), streams) for each in sizes}
    forests = {each: derive_forest(question.query) for each, question in asked.items()}
    for one, other in combinations_with_replacement(sizes, 2):
        shared = level(forests[one], forests[other])
        pairings = operator_of(Crowd([asked[one], asked[other]])).pairings
        assert (len(pairings) == 1) == isinstance(shared, FullResults)
        found.add(type(shared).__name__)
        if len(pairings) == 2:
            first, second = ([side.extent for side in each.sides] for each in pairings)
            wider = [each for each in (first, second) if shifts(first, each) and shifts(second, each)]
            made = isinstance(shared, SelectedResults) and list(shared.windows) in (first, second)
            assert bool(wider) == made, (one, other)
    assert found == {"FullResults", "SelectedResults", "SharedWindows"}


def _size(pairing: Pairing) -> int:
    """That of the first window."""
    return int(pairing.sides[0].extent.size)


def operator_of(crowd: Crowd) -> StepJoin:
    """The operator of all questions together."""
    streams = {each.name: each.for_branch() for each in crowd.questions[0].streams}
    members = [BranchMember(str(number), "q", each.standing, Taken()) for number, each in enumerate(crowd.questions)]
    askers = [Asker.of(each, {}, {}) for each in members]
    return StepJoin(askers, Shelf(streams, askers[0].units))


def test_what_only_those_held_who_are_gone_is_forgotten() -> None:
    """Narrowing: without the join with the large windows, the state keeps what the small ones need."""
    streams = [stream_of("a", range(100)), stream_of("b", range(100))]
    small, large = (Question(JOIN.format(size, size, 1, 1), streams) for size in (2, 90))
    plan = schedules(Random(1), streams, 3)
    plan[-1].ended = []

    def held(leaving: Sequence[int]) -> int:
        crowd = Crowd([small, large])
        crowd.run(plan, leaving)
        return crowd.held

    assert held([3, 3]) > 150
    assert held([3, 2]) < 10


JOIN = """for $x in stream("a")/r/p|t diff {0} step {2}| for $y in stream("b")/r/p|t diff {1} step {3}|
    where $x/t >= $y/t return <r>{{ $x/t }}{{ $y/t }}</r>"""


def stream_of(name: str, times: Sequence[int]) -> Stream:
    items = "".join(USUAL.format(t=t, en="1", phc="1", n="a") for t in times)
    return Stream(name, f"<r>{items}</r>", time="t")
