"""Joins that remember: what meets what, in which order, and that they forget (LAWS 3.5)."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch.errors import StateError
from branch.feeding import Flow, Question, Stream, Taken

PAIR = "return concat($x/t, '-', $y/t)"


def item(time: object) -> str:
    return f"<i><t>{time}</t></i>"


def step(first: str, second: str, *, other: str = "b", result: str = PAIR, **about: Any) -> Flow:
    """A branch with a step join of the streams 'a' and `other`."""
    query = f'for $x in stream("a")/r/i |{first}| for $y in stream("{other}")/r/i |{second}| {result}'
    return Flow(Question(query, [Stream(name, time="t", **about) for name in dict.fromkeys(("a", other))]))


def interval(**about: Any) -> Flow:
    """A branch with an interval join, closed at both ends."""
    query = f'for $x in stream("a")/r/i for $y in stream("b")/r/i where $x/t - $y/t <= 2 and $y/t - $x/t <= 1 {PAIR}'
    return Flow(Question(query, [Stream(name, **{"time": "t", "endless": True, **about}) for name in "ab"]))


def pairs(flow: Flow) -> list[str]:
    return "".join(flow.taken.pieces).split()


def test_windows_let_go_of_what_they_leave_behind() -> None:
    """LAWS case 14: A at 1, 100; B at 95, 105; both of size 10."""
    flow = step("t diff 10", "t diff 10")
    flow.bring("a", item(1), item(100))
    flow.epoch()
    flow.bring("b", item(95), item(105))
    flow.epoch()
    flow.end()
    assert pairs(flow) == ["100-95", "100-105"]


def test_pairs_come_as_windows_move() -> None:
    """What enters meets what the other window holds, before any end; what only waits meets nothing yet."""
    flow = step("t diff 10", "t diff 10")
    flow.bring("a", item(1), item(11))
    assert flow.bring("b", item(2), item(12)) == []
    flow.epoch()
    flow.bring("a", item(21))
    flow.bring("b", item(22))
    assert pairs(flow) == ["1-2", "11-2"]  # the window of 'b' has not moved on to 12
    flow.end()
    assert pairs(flow)[2:] == ["11-12", "21-12", "21-22"]


def test_self_join() -> None:
    """An item goes to the first `for`, then to the next, and meets itself as one node."""
    flow = step("count 2 step 1", "count 1", other="a", result="return <p>{ ($x, $y)/t }</p>")
    flow.bring("a", item(1))
    flow.epoch()
    flow.bring("a", item(2))
    flow.end()
    both = "<p><t>1</t><t>2</t></p>"
    assert flow.taken.pieces == ["<p><t>1</t></p>", both, both, "<p><t>2</t></p>"]


def test_jumps_cost_nothing() -> None:
    """A window of ten seconds that moves by a thousandth is moved over a billion seconds at once."""
    flow = step("t diff 10 step 0.001", "t diff 10 step 0.001")
    flow.bring("a", item(0), item("1e9"), item("2e9"))
    flow.bring("b", item(5), item("1e9"), item("2e9"))
    flow.end()
    assert pairs(flow) == ["2e9-2e9"]


def test_the_state_stops_growing() -> None:
    """Over long streams the state holds what the windows hold or wait for, and not more."""
    flow = step("t diff 4 step 2", "count 3 step 1")
    sizes = []
    for epoch in range(20):
        flow.bring("a", *(item(epoch * 10 + n) for n in range(10)))
        flow.bring("b", *(item(epoch * 10 + n) for n in range(0, 10, 2)))
        flow.epoch()
        assert flow.branch.held < 25
        sizes.append(flow.size)
    assert max(sizes[10:]) <= max(sizes[:10]) + 100  # numbers grow by a digit
    assert len(pairs(flow)) > 300


def test_interval_join_answers_before_the_end() -> None:
    """Pairs come in the order of the first `for`, as soon as the second stream is beyond its interval."""
    flow = interval()
    flow.bring("b", item(1), item(3), item(4))
    flow.bring("a", item(3), item(2))  # 2 is late
    assert pairs(flow) == []
    flow.epoch()
    flow.bring("a", item(5), item(9))
    flow.bring("b", item(6), item("6.5"))
    flow.epoch()
    flow.bring("b", item(10))
    assert pairs(flow) == ["3-1", "3-3", "3-4", "5-3", "5-4", "5-6"]
    assert [each.offset for each in flow.taken.places] == [18]
    flow.end()
    assert pairs(flow)[6:] == ["9-10"]


def test_interval_join_forgets() -> None:
    """What no later item can meet leaves the state, though nothing is ever selected from the first stream."""
    for first in ("i", "i[t = 'never']"):
        flow = interval()
        flow.question = Question(flow.question.text.replace("i for", f"{first} for", 1), flow.question.streams)
        flow.branch = flow.question.open(flow.taken, None)
        for epoch in range(10):
            flow.bring("a", *(item(epoch * 10 + n) for n in range(10)))
            flow.bring("b", *(item(epoch * 10 + n) for n in range(10)))
            flow.epoch()
            assert flow.branch.held < 12
        # up to 96, since 'b' is known to 98
        assert len(pairs(flow)) == (0 if "never" in first else 2 + 3 + 4 * 95)


def test_interval_join_without_declared_times_waits() -> None:
    """Where nothing tells how far a stream is, the whole input is joined at its end, without late items."""
    for about in ({"time": None}, {"endless": False}):
        flow = interval(**about)
        flow.bring("a", item(3), item(2))
        flow.bring("b", item(4), item(1))
        flow.epoch()
        assert flow.taken.pieces == []
        flow.end()
        assert pairs(flow) == ["3-4", "3-1", "2-1"]
        assert flow.taken.places == []


def test_the_state_of_another_operator() -> None:
    """A state that another query left is refused by name."""
    saved = step("t diff 1", "t diff 1").branch.save()
    assert saved is not None
    with pytest.raises(StateError, match="the state of 'q' is one of 'step join', and the query needs 'interval join'"):
        interval().question.open(Taken(), saved)
