"""Plans as branches: whenever their state is saved and read, they answer what the interpreter answers at one go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import pytest

from algebra.accented import CELSIUS, alter, closed, drop, item
from algebra.evolving import STATEFUL
from algebra.test_square import OPERATORS, World
from anabranch.algebra.plans.builder import linear, stream
from anabranch.algebra.plans.interpret import Plan
from anabranch.algebra.plans.written import streams_of
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch import cache
from anabranch.branch.intake.entries import FeedOrigin, pack
from anabranch.branch.members import BranchMember
from anabranch.branch.plans.plans import PlanBranch
from anabranch.branch.ports import InputStream
from anabranch.branch.state import BranchState
from anabranch.runtime.evolution.outlet import accent_text
from anabranch.stream.elements import Accent, Item
from anabranch.stream.reading.lines import Cut
from anabranch.stream.reading.wire import write
from anabranch.stream.serialize import serialize
from branch.feeding import Stream, Taken
from mass import some
from models.interpreter import Element, run

NEVER_LATE = Fraction(10**6)


class Told:
    """A plan fed element by element, with its state written and read after every `every` elements."""

    def __init__(self, plan: Plan, streams: Iterable[Stream], *, every: int = 0, policy: Policy = "accumulate") -> None:
        self.plan, self.policy, self.every = plan, policy, every
        given = list(streams)
        self.root = given[0].root_text
        self.inputs: Mapping[str, InputStream] = {each.name: each.for_branch() for each in given}
        self.taken = Taken()
        self.size = 0
        self.aborted: dict[str, str] = {}
        self.count = 0
        self._open(None)

    def _open(self, state: BranchState | None) -> None:
        self.branch = PlanBranch(
            BranchMember("q", "q", self.plan, self.taken, self.policy), self.inputs, state, self.taken
        )

    def bring(self, name: str, element: Element | str, partition: int = 0) -> list[str]:
        """The next element; gives the pieces that it brings."""
        before, self.count = len(self.taken.pieces), self.count + 1
        given = item(element) if isinstance(element, str) else element
        raw = (serialize(given.tree) if isinstance(given, Item) else write(given)).encode()
        cut = Cut(self.count, self.count + 1, raw, None, self.root)
        arrived = Fraction(self.count)
        self.branch.feed(pack(FeedOrigin(name, partition, "file", arrived), [cut]))
        self.branch.passed(arrived)
        if self.every and self.count % self.every == 0:
            self.save()
        self.aborted |= self.branch.aborted
        return self.taken.pieces[before:]

    def save(self) -> None:
        """End the epoch, and go on from its state."""
        self.aborted |= self.branch.aborted
        saved = self.branch.save()
        assert saved is not None
        data = saved.to_bytes()
        self.size = len(data)
        if self.count % 2:
            cache.here = cache.ProcessCache()  # as if another process had the branch next
        self._open(BranchState.from_bytes(data))

    def end(self) -> list[str]:
        """End all inputs; gives the pieces that this brings."""
        before = len(self.taken.pieces)
        for name, each in self.inputs.items():
            for number in range(len(each.source.partitions)):
                self.branch.end(name, number)
        return self.taken.pieces[before:]


def answered(plan: Plan, order: Sequence[tuple[str, Element]], every: int) -> list[str]:
    """What a plan answers as a branch."""
    told = Told(plan, [Stream(name, slack=NEVER_LATE) for name in streams_of(plan)], every=every)
    for name, element in order:
        if name in told.inputs:
            told.bring(name, element)
    told.end()
    assert told.aborted == {}
    assert told.taken.dead == []
    return told.taken.pieces


def expected(plan: Plan, order: Sequence[tuple[str, Element]]) -> list[str]:
    """What the interpreter answers."""
    pieces = []
    for each in run(plan, order):
        if isinstance(each, Item):
            pieces.append(serialize(each.tree))
        elif isinstance(each, Accent):
            pieces.append(accent_text(each))
    return pieces


@pytest.mark.parametrize("operator", OPERATORS)
def test_each_operator_can_be_saved_at_any_element(operator: str) -> None:
    """Each operator over random worlds, its state written and read after every element."""
    for seed in range(3):
        world = World(seed, goes=seed % 2 == 0 and operator not in STATEFUL)
        plan = world.plan([operator])
        assert answered(plan, world.order, 1) == expected(plan, world.order), plan


def test_pipelines_can_be_saved_at_any_element() -> None:
    """Random plans of up to 5 operators, saved after every element, now and then, and never: always the same answer."""
    for seed in some(range(100, 112)):
        world = World(seed, goes=seed % 2 == 0)
        plan = world.plan()
        found = answered(plan, world.order, 1)
        assert found == answered(plan, world.order, 3), plan
        assert found == expected(plan, world.order), plan


# --- partitions -------------------------------------------------------------------------------------------------


def test_a_stream_of_several_partitions_is_their_union() -> None:
    """LAWS 1.4, case 21: each partition has gone through the same in the end, in different order, and no accent comes.

    An accent that both have gone through comes out with the second of them.
    """
    told = Told(stream("s").select("t > 0").plan, [Stream("s", partitions=2)], every=1)
    told.bring("s", alter("t", ". * 2"))
    told.bring("s", alter("t", ". + 10"))
    told.bring("s", alter("t", ". + 10"), partition=1)
    told.bring("s", alter("t", ". * 2"), partition=1)
    assert told.bring("s", "t=20") == ["<i><t>5</t></i>"]
    assert told.bring("s", "t=30", partition=1) == ["<i><t>5</t></i>"]
    assert told.bring("s", alter("u", ". * 2")) == []
    assert told.bring("s", "t=30 u=4", partition=0) == ["<i><t>10</t><u>2</u></i>"]
    (accent,) = told.bring("s", alter("u", ". * 2"), partition=1)
    assert 'path="u" by=". * 2"' in accent
    assert told.bring("s", "t=30 u=4", partition=1) == ["<i><t>5</t><u>4</u></i>"]


# --- windows ----------------------------------------------------------------------------------------------------

AVERAGES = stream("s").window("ts", size=10).aggregate(by=["wid"], avg=["t"]).plan


def test_windows_close_as_the_stream_comes_along() -> None:
    """LAWS 3.2: an item that far on closes a window, one that is late is left out, a punctuation closes it, too."""
    told = Told(AVERAGES, [Stream("s", slack=Fraction(2))], every=1)
    assert told.bring("s", "ts=1 t=3") == []
    assert told.bring("s", "ts=11 t=7") == []
    assert told.bring("s", "ts=9 t=5") == []
    assert told.bring("s", "ts=12 t=1") == ["<i><wid>0</wid><t>4</t></i>"]
    assert told.bring("s", "ts=9.5 t=100") == []
    assert [each.offset for each in told.taken.places] == [5]
    assert told.bring("s", closed("ts < 20")) == ["<i><wid>1</wid><t>4</t></i>"]
    told.bring("s", "ts=25 t=8")
    assert told.end() == ["<i><wid>2</wid><t>8</t></i>"]


def test_windows_of_several_partitions_wait_for_all() -> None:
    """A stream has come so far when all its partitions have."""
    told = Told(AVERAGES, [Stream("s", partitions=2)], every=1)
    told.bring("s", "ts=1 t=3")
    told.bring("s", "ts=30 t=3")
    told.bring("s", "ts=2 t=5", partition=1)
    assert told.bring("s", "ts=15 t=9", partition=1) == ["<i><wid>0</wid><t>4</t></i>"]


def test_windows_on_an_altered_path() -> None:
    """The reference path changes its unit: no item moves to another window, and windows go on closing."""
    told = Told(AVERAGES, [Stream("s")], every=1)
    told.bring("s", "ts=1 t=3")
    told.bring("s", alter("ts", ". * 100"))
    assert told.bring("s", "ts=900 t=5") == []
    assert told.bring("s", "ts=1000 t=9") == ["<i><wid>0</wid><t>4</t></i>"]
    part = Told(AVERAGES, [Stream("s")], every=1)
    part.bring("s", "ts=1 s=1 t=3")
    part.bring("s", alter("ts", ". * 100", "s = 2"))
    assert part.bring("s", "ts=900 s=2 t=5") == []
    assert part.bring("s", "ts=11 s=1 t=9") == ["<i><wid>0</wid><t>4</t></i>"]
    part.bring("s", alter("ts", ". * 100", "not(s = 2)"))
    assert part.bring("s", "ts=2000 s=1 t=1") == ["<i><wid>1</wid><t>9</t></i>"]


def test_an_accent_for_one_sensor_stays_inside() -> None:
    """LAWS 4.2 e: what is closed by the way lets no accent out; the averages stay in the unit that most items have."""
    told = Told(AVERAGES, [Stream("s")], every=1)
    told.bring("s", "ts=1 s=1 t=68")
    assert told.bring("s", alter("t", CELSIUS, "s = 2")) == []
    told.bring("s", "ts=2 s=2 t=30")
    assert told.bring("s", "ts=11 s=2 t=30") == ["<i><wid>0</wid><t>77</t></i>"]
    (accent,) = told.bring("s", alter("t", CELSIUS, "not(s = 2)"))
    assert "where" not in accent
    assert told.bring("s", "ts=20 s=1 t=0") == ["<i><wid>1</wid><t>30</t></i>"]


def test_a_late_plan_leaves_out_windows_that_had_begun() -> None:
    """LAWS 3.6, case 6; and where a stream has an origin, its windows are counted from there."""
    plan = stream("s").window("ts", size=20, step=10).aggregate(by=["wid"], count=["ts"]).plan
    told = Told(plan, [Stream("s", late=True)], every=1)
    found = [piece for ts in (18, 25, 45) for piece in told.bring("s", f"ts={ts}")]
    assert found == ["<i><wid>2</wid><ts>1</ts></i>"]
    told = Told(AVERAGES, [Stream("s", origin=Fraction(5))], every=1)
    assert [piece for ts in (6, 14, 15) for piece in told.bring("s", f"ts={ts} t={ts}")] == [
        "<i><wid>0</wid><t>10</t></i>"
    ]


@pytest.mark.mass
def test_what_is_remembered_stays_small() -> None:
    """A hundred and fifty windows, closed by items and by punctuations: what has gone by is not kept."""
    told = Told(AVERAGES, [Stream("s")])
    sizes = []
    for number in range(150):
        told.bring("s", f"ts={10 * number} t={number}")
        told.bring("s", closed(f"ts < {10 * number - 5}"))
        if number % 10 == 9:
            told.save()
            sizes.append(told.size)
    assert len(told.taken.pieces) == 149
    assert max(sizes[7:]) <= max(sizes[:7])
    told.bring("s", alter("t", ". * 2"))
    told.save()
    assert told.bring("s", "ts=1500 t=8") == ["<i><wid>149</wid><t>298</t></i>"]


# --- what goes wrong --------------------------------------------------------------------------------------------


def test_a_plan_that_loses_its_ground_is_over() -> None:
    """LAWS 4.6: it ends with the reason, also across epochs, and what it has given stays."""
    told = Told(stream("s").select("t > 1").plan, [Stream("s")], every=1)
    assert told.bring("s", "t=3") == ["<i><t>3</t></i>"]
    assert told.bring("s", drop("t")) == []
    assert "cannot do without 't'" in told.aborted["q"]
    assert told.bring("s", "t=3") == []


def test_a_refused_accent_ends_who_reads_its_path() -> None:
    """LAWS 4.5: a bad accent leaves its path unknown; who does not look at the path goes on."""
    bad = Cut(9, 10, write(alter("t", ". * 2", "s = 2")).encode(), "it is refused", b"<r>")
    for kept, pieces in (("s", 2), ("t", 1)):
        told = Told(stream("s").project(kept).plan, [Stream("s")], every=1)
        told.branch.feed(pack(FeedOrigin("s", 0, "file", Fraction(0)), [bad]))
        told.bring("s", "s=1 t=3")
        told.bring("s", "s=2 t=3")
        assert len(told.taken.pieces) == pieces
        assert ("it is refused" in told.aborted.get("q", "")) == (kept == "t")


def test_what_cannot_be_computed_is_set_aside() -> None:
    """LAWS 2.4: a word where a number is meant gives nothing for its item, and nothing for its window."""
    doubled = stream("s").construct("o", {"d": linear({"t": 2})}).plan
    told = Told(doubled, [Stream("s")], every=1)
    assert told.bring("s", "t=word") + told.bring("s", "t=4") == ["<o><d>8</d></o>"]
    [letter] = told.taken.dead
    assert (letter.code, letter.subscription, letter.raw) == ("FORG0001", "q", "<i><t>word</t></i>")
    told = Told(AVERAGES, [Stream("s")], every=1)
    for each in ("ts=1 t=word", "ts=11 t=3", "ts=21 t=3"):
        told.bring("s", each)
    assert told.taken.pieces == ["<i><wid>1</wid><t>3</t></i>"]
    assert [each.place.offset for each in told.taken.dead] == [2]


def test_policies() -> None:
    """LAWS 4.7: by `absorb` an answer stays in the units of its start, by `abort` it ends."""
    plan = stream("s").project("t").plan
    absorbing = Told(plan, [Stream("s")], every=1, policy="absorb")
    assert absorbing.bring("s", alter("t", ". * 2")) + absorbing.bring("s", "t=8") == ["<i><t>4</t></i>"]
    aborting = Told(plan, [Stream("s")], every=1, policy="abort")
    aborting.bring("s", alter("t", ". * 2", "u = 1"))
    assert "'u' is not in its output" in aborting.aborted["q"]


def test_declarations_around_items_are_kept() -> None:
    """What the stream's root declares is written with the items, and remembered with them."""
    told = Told(stream("s").order("t").plan, [Stream("s", '<r xmlns:a="urn:a"></r>')], every=1)
    told.bring("s", "a:b=1 t=2")
    told.bring("s", "t=1")
    assert told.end() == [
        '<i xmlns:a="urn:a"><t>1</t></i>',
        '<i xmlns:a="urn:a"><a:b>1</a:b><t>2</t></i>',
    ]
