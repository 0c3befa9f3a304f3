from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.algebra.window import Extent
from anabranch.law import Input, stream_input, text_input
from anabranch.law.rounds.joins import Entry, Moved, Side, step_join
from anabranch.stream.elements import DeadLetter, Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import implied_root, parse_item
from anabranch.stream.reading.wire import element_of
from anabranch.stream.tree import STREAM_NAMESPACE
from reference.asking import ask, leaves, stream

PAIR = "<p>{ string($x/t), string($y/t) }</p>"


def pairs(
    first: str, second: str, x: str, y: str | None = None, *, where: str = "", time: str | None = "t"
) -> list[str]:
    """The pairs of a join of `x` and `y`, or of `x` with itself."""
    other = "x" if y is None else "y"
    query = f"for $x in stream('x')/r/i|{first}| for $y in stream('{other}')/r/i|{second}| {where} return {PAIR}"
    text = ask(query, {"x": x} if y is None else {"x": x, "y": y}, time=time).text
    return text.removeprefix("<p>").removesuffix("</p>").split("</p><p>") if text else []


# --- worked out by hand (LAWS 3.5) ------------------------------------------------------------------------


@pytest.mark.parametrize("time", ["t", None])
def test_case_14(time: str | None) -> None:
    """A's window leaves 1 behind before B's is there, so only 100 meets 95 and 105 (LAWS 6, case 14)."""
    x, y = leaves("t", 1, 100), leaves("t", 95, 105)
    assert pairs("t diff 10", "t diff 10", x, y, time=time) == ["100 95", "100 105"]


def test_case_15() -> None:
    """99 is not above 100, whatever their texts say (LAWS 6, case 15)."""
    query = "for $x in stream('x')/r/i|count 1|, $y in stream('y')/r/i|count 1| where $x/phc >= $y/phc return <pair/>"
    assert ask(query, {"x": leaves("phc", 99), "y": leaves("phc", 100)}).text == ""
    assert ask(query, {"x": leaves("phc", 100), "y": leaves("phc", 99)}).text == "<pair/>"


HAND: tuple[tuple[str, str, str, tuple[int, ...], tuple[int, ...], list[str]], ...] = (
    # x moves to [0,10) when 11 comes and meets nothing; y to [0,10) when 12 comes and meets x's 1;
    # at the end x's [10,20) closes first, for it ties with y's and stands first
    ("two windows side by side", "t diff 10", "t diff 10", (1, 11), (2, 12), ["1 2", "11 2", "11 12"]),
    # 50 moves x's window through all positions up to [40,50), which leave 1 behind; 51 does so with y's and 2
    ("windows move through empty positions", "t diff 10", "t diff 10", (1, 50), (2, 51), ["50 51"]),
    # x at 1 leaves [0,10) when x's 25 comes; y's window is large and still waits
    ("what is left behind is gone", "t diff 10", "t diff 100", (1, 25, 45), (2,), ["45 2"]),
    # a count window of 2 first moves when full: at its second item both enter
    ("a count window moves when it is full", "count 2", "t diff 100", (1, 2, 3), (1, 2), ["1 1", "1 2", "2 1", "2 2"]),
    ("an unfull count window gives nothing", "count 3", "t diff 10", (1, 2), (1, 2), []),
    ("nothing on one side", "t diff 10", "t diff 10", (1, 2), (), []),
    ("ends in order, the later side first", "t diff 100", "t diff 10", (1, 2), (1, 2), ["1 1", "1 2", "2 1", "2 2"]),
)


@pytest.mark.parametrize(
    ("first", "second", "x", "y", "expected"), [row[1:] for row in HAND], ids=[row[0] for row in HAND]
)
def test_step_joins(first: str, second: str, x: tuple[int, ...], y: tuple[int, ...], expected: list[str]) -> None:
    """What enters a window meets what the other windows hold at that moment."""
    assert pairs(first, second, leaves("t", *x), leaves("t", *y)) == expected


def test_count_and_time_windows_mixed() -> None:
    """Each side moves by its own law."""
    # y's [0,10) is complete when y's 12 comes: by then x's window of one holds 5
    found = pairs("count 1", "t diff 10", leaves("t", 1, 5, 13), leaves("t", 2, 12))
    assert found == ["5 2", "13 2", "13 12"]


def test_a_self_join_feeds_the_first_for_first() -> None:
    """Each item goes to the first `for`, then to the next, so it meets itself."""
    assert pairs("count 1", "count 1", leaves("t", 1, 2)) == ["1 1", "2 1", "2 2"]
    assert pairs("count 2 step 1", "count 1", leaves("t", 1, 2, 3)) == ["1 1", "2 1", "1 2", "2 2", "3 2", "2 3", "3 3"]


def test_three_sides() -> None:
    """A join may have any number of sides; tuples come in the order of the `for` clauses, outer first."""
    fors = " ".join(f"for ${name} in stream('{name}')/r/i|t diff 10|" for name in "xyz")
    query = f"{fors} return <p>{{ string($x/t), string($y/t), string($z/t) }}</p>"
    inputs = {"x": leaves("t", 1, 2), "y": leaves("t", 3, 4), "z": leaves("t", 5)}
    assert ask(query, inputs, time="t").text == "<p>1 3 5</p><p>1 4 5</p><p>2 3 5</p><p>2 4 5</p>"


def test_pre_and_postselection() -> None:
    """Predicates keep items out of the windows, `where` chooses among the tuples."""
    query = (
        "for $x in stream('x')/r/i[n > 1]|t diff 10| for $y in stream('y')/r/i|t diff 10| "
        "where $x/n >= $y/n + 1 return <p>{ $x/n, $y/n }</p>"
    )
    x = stream("<t>1</t><n>1</n>", "<t>2</t><n>3</n>")
    y = stream("<t>1</t><n>2</n>", "<t>2</t><n>2.5</n>")
    assert ask(query, {"x": x, "y": y}, time="t").text == "<p><n>3</n><n>2</n></p>"


def test_a_pair_that_fails_is_set_aside_alone() -> None:
    """An error concerns one pair; it is named by the item whose value failed."""
    answer = ask(
        "for $x in stream('x')/r/i|count 1|, $y in stream('y')/r/i|count 1| where $x/t + $y/t > 0 return <p/>",
        {"x": leaves("t", 1), "y": leaves("t", "z", 3)},
    )
    assert answer.text == "<p/>"
    assert [(letter.code, letter.place.stream) for letter in answer.dead] == [("FORG0001", "y")]


def test_late_items_do_not_join() -> None:
    """An item that is late for its window meets nobody."""
    answer = ask(
        "for $x in stream('x')/r/i|t diff 10| for $y in stream('y')/r/i|t diff 10| return <p>{ $x/t }</p>",
        {"x": leaves("t", 5, 3), "y": leaves("t", 1)},
    )
    assert answer.text == "<p><t>5</t></p>"
    assert [place.stream for place in answer.late] == ["x"]


def test_slack_keeps_a_window_open() -> None:
    """A window closes when its end is reached by more than slack, so what comes a little late still joins."""
    given = text_input(leaves("t", 5, 11, 8), name="x", slack="5", time="t")
    y = text_input(leaves("t", 1), name="y", slack="5", time="t")
    query = "for $x in stream('x')/r/i|t diff 10| for $y in stream('y')/r/i|t diff 10| return <p>{ $x/t }</p>"
    assert ask(query, {"x": given, "y": y}).text == "<p><t>5</t></p><p><t>8</t></p><p><t>11</t></p>"


# --- the interval join ------------------------------------------------------------------------------------


def test_the_interval_join_is_closed_at_both_ends() -> None:
    """Items meet whose times differ by at most the bound, in the order of the first stream."""
    query = (
        "for $x in stream('x')/r/i for $y in stream('y')/r/i "
        f"where $x/t >= $y/t - 10 and $x/t <= $y/t + 10 return {PAIR}"
    )
    answer = ask(query, {"x": leaves("t", 0, 20, 21), "y": leaves("t", 10, 31)})
    assert answer.text == "<p>0 10</p><p>20 10</p><p>21 31</p>"


@given(st.lists(st.integers(0, 40), max_size=6), st.lists(st.integers(0, 40), max_size=6), st.integers(0, 15))
def test_the_interval_join_is_all_pairs_that_fit(xs: list[int], ys: list[int], bound: int) -> None:
    """Law: the answer is what a loop in a loop would find."""
    query = (
        "for $x in stream('x')/r/i for $y in stream('y')/r/i "
        f"where $x/t >= $y/t - {bound} and $y/t >= $x/t - {bound} return {PAIR}"
    )
    expected = "".join(f"<p>{x} {y}</p>" for x in xs for y in ys if abs(x - y) <= bound)
    assert ask(query, {"x": leaves("t", *xs), "y": leaves("t", *ys)}).text == expected


EVENTS = "where $x/t >= $y/t - 10 and $x/t <= $y/t + 10"


def endless(name: str, *times: object, slack: str = "0", time: str | None = "t") -> Input:
    return replace(text_input(leaves("t", *times), name=name, time=time, slack=slack), endless=True)


def test_an_interval_join_by_declared_times_leaves_out_what_is_late() -> None:
    """In a trunk that runs, whatever a late item would meet may be gone; where the input ends, it is all there."""
    query = f"for $x in stream('x')/r/i for $y in stream('y')/r/i {EVENTS} return {PAIR}"
    answer = ask(query, {"x": endless("x", 5, 20, 12), "y": endless("y", 10, 21)})
    assert answer.text == "<p>5 10</p><p>20 10</p><p>20 21</p>"
    assert [place.stream for place in answer.late] == ["x"]
    assert answer.dead == []
    finite = ask(query, {"x": leaves("t", 5, 20, 12), "y": leaves("t", 10, 21)}, time="t")
    assert finite.text == "<p>5 10</p><p>20 10</p><p>20 21</p><p>12 10</p><p>12 21</p>"


def test_slack_and_other_times_in_an_interval_join() -> None:
    """Slack keeps an item in; without declared times there is no late."""
    query = f"for $x in stream('x')/r/i for $y in stream('y')/r/i {EVENTS} return {PAIR}"
    y = endless("y", 12)
    for x in (endless("x", 20, 12, slack="8"), endless("x", 20, 12, time=None)):
        assert ask(query, {"x": x, "y": y}).text == "<p>20 12</p><p>12 12</p>"


def test_an_item_without_a_time_meets_nobody_in_a_trunk_that_runs() -> None:
    """It is set aside once, not once for each item of the other stream."""
    query = f"for $x in stream('x')/r/i for $y in stream('y')/r/i {EVENTS} return {PAIR}"
    answer = ask(query, {"x": endless("x", "z", 3), "y": endless("y", 3, 4, 5)})
    assert answer.text == "<p>3 3</p><p>3 4</p><p>3 5</p>"
    assert [(letter.code, letter.place.stream) for letter in answer.dead] == [("FORG0001", "x")]


def test_a_failing_predicate_sets_an_item_aside_once() -> None:
    """However many items of the other stream there are."""
    query = f"for $x in stream('x')/r/i for $y in stream('y')/r/i[t + 0 > 0] {EVENTS} return {PAIR}"
    answer = ask(query, {"x": leaves("t", 1, 2), "y": leaves("t", "z", 3)})
    assert answer.text == "<p>1 3</p><p>2 3</p>"
    assert [(letter.code, letter.place.stream) for letter in answer.dead] == [("FORG0001", "y")]


# --- partitions, punctuations and late subscriptions ------------------------------------------------------


def partitioned(name: str, *partitions: tuple[object, ...]) -> Input:
    """A stream of several partitions, with times at `t`."""
    read: list[list[StreamElement | DeadLetter]] = []
    for number, times in enumerate(partitions):
        elements: list[StreamElement | DeadLetter] = []
        for offset, time in enumerate(times):
            place = Place(name, str(number), offset)
            text = str(time) if str(time).startswith("<") else f"<i><t>{time}</t></i>"
            tree = parse_item(text.encode(), Limits(), {"s": STREAM_NAMESPACE})
            elements.append(element_of(tree, place))
        read.append(elements)
    return stream_input(implied_root("r"), read, time=Path.parse("t"))[0]


def joined(x: Input, y: Input, first: str = "t diff 10", second: str = "t diff 10") -> list[str]:
    query = f"for $x in stream('x')/r/i|{first}| for $y in stream('y')/r/i|{second}| return {PAIR}"
    text = ask(query, {"x": x, "y": y}).text
    return text.removeprefix("<p>").removesuffix("</p>").split("</p><p>") if text else []


def test_a_window_moves_when_all_partitions_are_there() -> None:
    """A stream of several partitions is as far as the least of them (LAWS 3.2)."""
    y = partitioned("y", (2, 60))
    # alone, 50 takes the window past 1 before y's 2 enters; with a partition that stays behind it waits for the end
    assert joined(partitioned("x", (1, 50)), y) == ["50 60"]
    assert joined(partitioned("x", (1, 50), (3,)), y) == ["50 60"]
    # y's 2 enters with 12, when x still waits: the second partition has shown nothing beyond 3 by then
    y = partitioned("y", (2, 12))
    assert joined(partitioned("x", (1, 11)), y) == ["1 2", "11 2", "11 12"]
    assert joined(partitioned("x", (1, 11), (3,)), y) == ["1 2", "3 2", "11 2", "11 12"]


def test_partitions_are_merged_before_they_are_joined() -> None:
    """What enters stands in the order of time."""
    x = partitioned("x", (1, 5), (2, 4))
    assert joined(x, partitioned("y", (3,)), "count 4", "count 1") == ["1 3", "2 3", "4 3", "5 3"]


def test_a_punctuation_moves_a_window() -> None:
    """As an item would that nobody selects: at the end of what it covers (LAWS 3.2)."""
    y = partitioned("y", (2, 30))
    assert joined(partitioned("x", (1,)), y, second="count 1") == ["1 30"]
    covered = partitioned("x", (1, '<s:punctuation at="1" where="t &lt; 10"/>'))
    assert joined(covered, y, second="count 1") == ["1 2", "1 30"]
    not_all = partitioned("x", (1, '<s:punctuation at="1" where="t &lt; 9.5"/>'))
    assert joined(not_all, y, second="count 1") == ["1 30"]
    gone = partitioned("x", (1, '<s:punctuation at="1" where="true()"/>'))
    assert joined(gone, y, second="count 1") == []


def test_a_heartbeat_moves_a_window_on_the_time_path() -> None:
    """It says how far the time is, and the window's reference is that time."""
    y = partitioned("y", (2, 30))
    assert joined(partitioned("x", (1, '<s:punctuation at="10"/>')), y, second="count 1") == ["1 2", "1 30"]
    assert joined(partitioned("x", (1, '<s:punctuation at="9.5"/>')), y, second="count 1") == ["1 30"]


def test_a_late_subscription_joins_from_its_first_whole_window_on() -> None:
    """What lies in windows that reach back before its first item meets nobody (LAWS 3.6)."""
    x, y = partitioned("x", (8, 11, 25)), partitioned("y", (9, 12))
    assert joined(x, y) == ["8 9", "11 9", "11 12", "25 12"]
    assert joined(replace(x, late=True), y) == ["11 9", "11 12", "25 12"]
    assert joined(replace(x, late=True), replace(y, late=True)) == ["11 12", "25 12"]


# --- laws -------------------------------------------------------------------------------------------------

SIZES = st.tuples(st.integers(1, 12), st.integers(1, 12))


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), max_size=14), SIZES, SIZES)
def test_a_step_join_is_what_moving_windows_one_by_one_would_find(
    gaps: list[tuple[int, int]], first: tuple[int, int], second: tuple[int, int]
) -> None:
    """Law: skipping empty positions changes nothing; each movement is done, and everything compared by hand."""
    extents = [Extent(Fraction(size), Fraction(step)) for size, step in (first, second)]
    entries: list[Entry[int]] = []
    now = 0
    for number, (side, gap) in enumerate(gaps):
        now += gap
        entries.append(Entry(side, number, Fraction(now)))
    events: list[Entry[int] | Moved] = []
    for entry in entries:
        events += (Moved(entry.side, entry.value or Fraction(0)), entry)
    found = list(step_join([Side("time", each) for each in extents], events))
    assert found == by_hand(extents, entries)


def by_hand(extents: list[Extent], entries: list[Entry[int]]) -> list[tuple[int, ...]]:
    """The law word by word: every window moves through every position."""
    times: Mapping[int, Fraction] = {each.item: each.value or Fraction(0) for each in entries}
    waiting: list[list[int]] = [[], []]
    held: list[list[int]] = [[], []]
    position = [0, 0]
    found: list[tuple[int, ...]] = []

    def move(side: int) -> None:
        extent, k = extents[side], position[side]
        entering = [i for i in waiting[side] if extent.start(k) <= times[i] < extent.end(k)]
        held[side] = [i for i in held[side] if times[i] >= extent.start(k)] + entering
        waiting[side] = [i for i in waiting[side] if times[i] >= extent.end(k)]
        position[side] += 1
        sides = [entering if each == side else held[each] for each in (0, 1)]
        found.extend(product(*sides))

    for entry in entries:
        side = entry.side
        while extents[side].end(position[side]) <= times[entry.item]:
            move(side)
        waiting[side].append(entry.item)
    while ends := [
        (extents[side].end(k), side)
        for side in (0, 1)
        for k in range(position[side], position[side] + 200)
        if any(extents[side].start(k) <= times[i] < extents[side].end(k) for i in waiting[side])
    ]:
        end, side = min(ends)
        while extents[side].end(position[side]) <= end:
            move(side)
    return found
