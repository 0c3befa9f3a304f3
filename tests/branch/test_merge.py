"""The merge of LAWS 1.2: that of whole sequences, whenever their parts arrive; who is ahead waits on disk."""

from __future__ import annotations

from fractions import Fraction
from heapq import merge
from random import Random

import pytest

from anabranch.branch.intake.backlog import SMALL
from branch.feeding import Flow, Question, Stream


def item(time: object, text: str = "") -> str:
    return f"<i><t>{time}</t>{text}</i>"


def passing(*streams: Stream) -> Flow:
    """A branch that gives the times of its items in the order in which it takes them."""
    return Flow(Question('for $x in stream("s")/r/i return concat($x/t, $x/n)', streams))


def test_order_is_that_of_whole_sequences() -> None:
    """Times that fall, equal times and any cut into epochs: the order is that of merging the sequences at once."""
    for seed in range(12):
        random = Random(seed)
        sequences = [[(random.randrange(6), f"{p}.{n}") for n in range(random.randrange(8))] for p in range(3)]
        expected = [f"{time}{name}" for time, name in merge(*sequences, key=lambda each: each[0])]
        flow = passing(Stream("s", partitions=3, time="t"))
        left = [list(each) for each in sequences]
        while any(left):
            partition = random.choice([number for number, each in enumerate(left) if each])
            time, name = left[partition].pop(0)
            flow.bring("s", item(time, f"<n>{name}</n>"), partition=partition)
            if random.random() < 0.3:
                flow.epoch()
        flow.end()
        assert "".join(flow.taken.pieces).split() == expected


def test_an_input_holds_the_others_back() -> None:
    """An element goes when every other input has shown that it brings nothing earlier, by an element or a heartbeat."""
    flow = passing(Stream("s", partitions=2, time="t"))
    assert flow.bring("s", item(1), item(5)) == []
    assert flow.branch.waiting == {("s", 0): 2, ("s", 1): 0}
    assert flow.bring("s", item(3), partition=1) == ["1", " 3"]
    assert flow.bring("s", '<s:punctuation xmlns:s="urn:anabranch:stream" at="7"/>', partition=1) == [" 5"]
    assert flow.branch.waiting == {("s", 0): 0, ("s", 1): 1}
    assert flow.end() == []


def test_an_input_that_ends_holds_nobody_back() -> None:
    """The end of one input lets the others go on, in a later epoch too."""
    flow = passing(Stream("s", partitions=2, time="t"))
    assert flow.bring("s", item(1)) == []
    flow.branch.end("s", 1)
    assert flow.taken.pieces == ["1"]
    flow.epoch()
    assert flow.bring("s", item(5)) == [" 5"]


def test_times_of_arrival() -> None:
    """Without a time of its own an element has that of its arrival, and inputs that have passed it hold nobody back."""
    flow = passing(Stream("s", partitions=2))
    assert flow.bring("s", item("a"), arrived=Fraction(10)) == []
    flow.branch.passed(Fraction(9))
    assert flow.taken.pieces == []
    flow.epoch()
    flow.branch.passed(Fraction(10))
    assert flow.taken.pieces == ["a"]
    assert flow.bring("s", item("c"), arrived=Fraction(12)) == []
    assert flow.bring("s", item("b"), arrived=Fraction(11), partition=1) == [" b"]
    flow.branch.passed(Fraction(20))
    assert flow.taken.pieces == ["a", " b", " c"]


@pytest.mark.mass
def test_who_is_ahead_waits_on_disk() -> None:
    """However far one input is ahead, what waits is in the spill, the state stays small, and nothing is lost."""
    flow = passing(Stream("s", partitions=2, time="t"))
    filling = "x" * 4_000
    for epoch in range(40):
        items = [item(n, f"<a>{filling}</a>") for n in range(epoch * 20, epoch * 20 + 20)]
        assert flow.bring("s", *items) == []
        flow.epoch()
        assert flow.size < SMALL + 10_000
    assert flow.branch.waiting["s", 0] == 800
    refs = set(flow.branch.spilled)
    assert 8 < len(refs) < 40
    assert refs == flow.taken.spilled.keys()

    assert len(flow.bring("s", item(399.5), partition=1)) == 401
    flow.epoch()
    assert 0 < len(flow.branch.spilled) < len(refs)
    flow.end()
    assert "".join(flow.taken.pieces).split() == [str(n) for n in range(400)] + ["399.5"] + [
        str(n) for n in range(400, 800)
    ]
    flow.epoch()
    assert not flow.branch.spilled
