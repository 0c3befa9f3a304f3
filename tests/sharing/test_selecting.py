"""SELECTJOINRESULT and SELECTWINDOWS against the step join of the reference, which joins each query by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from random import Random
from typing import Literal, TypeAlias

import pytest

from anabranch.algebra.window import Extent
from anabranch.law.rounds.joins import Entry, Moved, Side, step_join
from anabranch.sharing.match import relax
from anabranch.sharing.match_joins import (
    FullResults,
    SelectedResults,
    Separate,
    SharedWindows,
    level,
    select_windows,
)
from mass import some
from models.selecting import (
    Join,
    Movement,
    SelectedWindows,
    Sizes,
    Window,
    select_join_result,
    selected_window,
    widened,
)
from sharing.joining import forest

Kind: TypeAlias = Literal["count", "time"]
Event: TypeAlias = tuple[int, Fraction | None]
"""An item that arrives at a side, with its value; in a count window it has none. Items are called by their numbers."""
Pairs: TypeAlias = list[tuple[int, ...]]

TIMES: tuple[Kind, Kind] = ("time", "time")


def extents(sizes: Sequence[Fraction | int], steps: Sequence[Fraction | int]) -> list[Extent]:
    return [Extent(Fraction(size), Fraction(step)) for size, step in zip(sizes, steps, strict=True)]


def alone(kinds: Sequence[Kind], windows: Sequence[Extent], events: Sequence[Event]) -> Pairs:
    """The pairs of a query by itself."""

    def told() -> Iterator[Entry[int] | Moved]:
        for item, (side, value) in enumerate(events):
            yield Entry(side, item, value)
            if value is not None:
                yield Moved(side, value)

    return list(step_join([Side(kind, each) for kind, each in zip(kinds, windows, strict=True)], told()))


def movements(join: Join[int], events: Sequence[Event]) -> Iterator[Movement[int]]:
    """What a join does with the same events."""
    counts = [0 for _ in join.windows]
    for item, (side, value) in enumerate(events):
        join.arrive(side, Fraction(counts[side]) if value is None else value, item)
        counts[side] += 1
        yield from join.reach(side, Fraction(counts[side]) if value is None else value)


def shared(
    kinds: Sequence[Kind], steps: Sequence[Fraction], sizes: Sequence[Sizes], events: Sequence[Event]
) -> list[Pairs]:
    """The pairs of several queries, each selected from one join."""
    largest = [max(each) for each in zip(*sizes, strict=True)]
    join: Join[int] = widened(kinds, extents(largest, steps), sizes)
    found: list[Pairs] = [[] for _ in sizes]
    for movement in movements(join, events):
        for pairs, own in zip(found, sizes, strict=True):
            pairs += select_join_result(movement, steps, own)
    for pairs, own in zip(found, sizes, strict=True):
        pairs += [pair for movement in join.alone(own).finish() for pair in movement.tuples]
    return found


def at(*times: tuple[int, int]) -> list[Event]:
    return [(side, Fraction(time)) for side, time in times]


def arriving(random: Random, kinds: Sequence[Kind], count: int = 30) -> list[Event]:
    clocks = [Fraction(0) for _ in kinds]
    found: list[Event] = []
    for _ in range(count):
        side = random.randrange(len(kinds))
        clocks[side] += random.choice((0, 1, 1, 2, 3, Fraction(7, 2), 20))
        found.append((side, clocks[side] if kinds[side] == "time" else None))
    return found


# --- SELECTJOINRESULT ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", some(range(24)))
def test_results_are_selected_exactly(seed: int) -> None:
    """Sizes that differ by multiples of the step: each query has its own pairs, in order and to the end of input."""
    random = Random(seed)
    kinds: list[Kind] = [random.choice(("time", "time", "count")) for _ in range(2)]
    steps = [Fraction(random.randrange(1, 6)) for _ in range(2)]
    small = [random.randrange(1, 9) for _ in range(2)]
    sizes = [
        tuple(size + random.randrange(4) * step for size, step in zip(small, steps, strict=True)) for _ in range(3)
    ]
    events = arriving(random, kinds)
    assert shared(kinds, steps, sizes, events) == [alone(kinds, extents(own, steps), events) for own in sizes]


def test_three_inputs() -> None:
    """The paper has binary joins only, for simplicity; nothing depends on it."""
    random = Random(1)
    kinds: list[Kind] = ["time", "count", "time"]
    steps = [Fraction(2), Fraction(1), Fraction(3)]
    sizes = [(Fraction(4), Fraction(3), Fraction(3)), (Fraction(2), Fraction(2), Fraction(9))]
    events = arriving(random, kinds)
    found = shared(kinds, steps, sizes, events)
    assert found == [alone(kinds, extents(own, steps), events) for own in sizes]
    assert all(found)


Q5, Q7 = extents((10, 20), (5, 10)), extents((30, 15), (5, 10))


def test_figure_13_b_q5_and_q7() -> None:
    """q7's windows over photon2 end at 15, 25 and 35, the widened join's at 20 and 30: where a photon1 window moves at
    30, q7 holds photon2's [10, 25), but the last 15 units of the widened window are [15, 30), with a photon at 26."""
    events = at((0, 1), (1, 1), (0, 23), (1, 22), (1, 26), (0, 31), (1, 31), (0, 60), (1, 60))
    steps = [Fraction(5), Fraction(10)]
    own = (Fraction(30), Fraction(15))
    join: Join[int] = widened(TIMES, extents((30, 20), steps), [(Fraction(10), Fraction(20))])
    selected = [pair for each in movements(join, events) for pair in select_join_result(each, steps, own)]
    times = [1, 1, 23, 22, 26, 31, 31, 60, 60]
    pairs = [(times[first], times[second]) for first, second in alone(TIMES, Q7, events)]
    assert pairs == [(1, 22), (23, 22), (31, 22), (31, 26), (31, 31), (60, 60)]
    assert (23, 26) in [(times[first], times[second]) for first, second in selected]


def test_the_first_units_are_the_wrong_ones() -> None:
    """The paper keeps the first 10 of 30 units; what enters a window are its last, so nothing would ever be kept."""
    events = at(*((side, time) for time in range(0, 100, 4) for side in (0, 1)))
    steps = [Fraction(5), Fraction(10)]
    sizes = [(Fraction(10), Fraction(20)), (Fraction(30), Fraction(20))]
    join: Join[int] = widened(TIMES, extents((30, 20), steps), sizes)
    last: Pairs = []
    first: Pairs = []
    for movement in movements(join, events):
        last += select_join_result(movement, steps, sizes[0])
        first += _first_units(movement, (30, 20), sizes[0])
    expected = alone(TIMES, extents(sizes[0], steps), events)
    assert last == expected[: len(last)]
    assert first != expected[: len(first)]


def _first_units(movement: Movement[int], widest: Sequence[int], sizes: Sizes) -> Iterator[tuple[int, ...]]:
    """SELECTJOINRESULT as it is printed."""
    contents = []
    for end, most, size, items in zip(movement.ends, widest, sizes, movement.contents, strict=True):
        start = (end or Fraction(0)) - most
        contents.append([item for value, item in items if start <= value < start + size])
    yield from product(*contents)


def test_smaller_windows_fire_before_the_larger_is_full() -> None:
    """A window of 5 has closed four times before one of 20 is first full, and its pairs are there from the start."""
    events = at((0, 1), (1, 1), (0, 6), (1, 6), (0, 11), (1, 11))
    steps = [Fraction(5), Fraction(5)]
    small, large = (Fraction(5), Fraction(5)), (Fraction(20), Fraction(20))
    assert shared(TIMES, steps, [small, large], events) == [
        alone(TIMES, extents(own, steps), events) for own in (small, large)
    ]
    deaf: Join[int] = widened(TIMES, extents(large, steps), [large])
    assert not [pair for each in movements(deaf, events) for pair in select_join_result(each, steps, small)]
    firing: Join[int] = widened(TIMES, extents(large, steps), [small])
    assert [pair for each in movements(firing, events) for pair in select_join_result(each, steps, small)]


# --- SELECTWINDOWS ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", some(range(8)))
def test_windows_are_put_together(seed: int) -> None:
    """A window is the shared windows that SELECTWINDOWS names, one after the other, each item once."""
    random = Random(seed)
    first, second = (Extent(Fraction(random.randrange(1, 13)), Fraction(random.randrange(1, 9))) for _ in range(2))
    common = relax(first, second)
    values = sorted(Fraction(random.randrange(200), 4) for _ in range(40))
    windows = {k: [each for each in values if common.start(k) <= each < common.end(k)] for k in range(200)}
    for wanted in (first, second):
        selection = select_windows(common, wanted)
        for k in range(6):
            held = [each for each in values if wanted.start(k) <= each < wanted.end(k)]
            assert selected_window(selection, {k: each for k, each in windows.items() if each}, k) == held


def fused(common: Sequence[Extent], wanted: Sequence[Extent], events: Sequence[Event]) -> tuple[Pairs, list[int]]:
    """The pairs of a join over shared windows; and how often each item was taken from them."""
    join: Join[int] = Join([Window("time", each) for each in wanted])
    operator = SelectedWindows(common, join)
    items: list[list[tuple[Fraction, int]]] = [[] for _ in common]
    closed = [0 for _ in common]
    found: list[Movement[int]] = []
    for item, (side, value) in enumerate(events):
        assert value is not None
        items[side].append((value, item))
        extent = common[side]
        while extent.end(closed[side]) <= value:
            k = closed[side]
            inside = [each for each in items[side] if extent.start(k) <= each[0] < extent.end(k)]
            closed[side] += 1
            if inside or extent.end(k + 1) > value:  # empty ones are left out, but for the last
                found += operator.take(side, k, inside)
    found += operator.finish(items)
    counts = [sum(item == each for window in join.windows for _, each in window.items) for item in range(len(events))]
    return [pair for movement in found for pair in movement.tuples], counts


@pytest.mark.parametrize("seed", some(range(16)))
def test_joins_over_shared_windows(seed: int) -> None:
    """Two joins over the relaxed windows of both have the pairs of each by itself, and no item is taken twice."""
    random = Random(seed)
    pair = [
        [Extent(Fraction(random.randrange(1, 13)), Fraction(random.randrange(1, 9))) for _ in range(2)] for _ in "ab"
    ]
    common = [relax(first, second) for first, second in zip(*pair, strict=True)]
    events = arriving(random, TIMES)
    for wanted in pair:
        found, counts = fused(common, wanted, events)
        assert found == alone(TIMES, wanted, events)
        assert max(counts) <= 1


def test_figure_13_c_q5_and_q8() -> None:
    """The shared windows of 5 every 5 and 10 every 5 serve both."""
    events = arriving(Random(3), TIMES, 60)
    common = extents((5, 10), (5, 5))
    for wanted in (Q5, extents((15, 30), (10, 15))):
        assert fused(common, wanted, events)[0] == alone(TIMES, wanted, events) != []


def test_figure_13_b_q5_and_q7_share_windows() -> None:
    """What results cannot do, windows of 10 every 5 and 5 every 5 can."""
    events = arriving(Random(4), TIMES, 60)
    common = extents((10, 5), (5, 5))
    for wanted in (Q5, Q7):
        assert fused(common, wanted, events)[0] == alone(TIMES, wanted, events) != []


# --- what the forests say ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", some(range(16)))
def test_the_level_of_two_joins_gives_each_its_own(seed: int) -> None:
    """Whatever `level` says of two step joins, the operators with its parameters give the pairs of each."""
    random = Random(seed)
    steps = [Fraction(random.randrange(1, 5)) for _ in range(2)]
    pair = [extents([random.randrange(1, 4) * step for step in steps], steps) for _ in range(2)]
    if random.random() < 0.5:
        pair[1] = extents([random.randrange(2, 12) for _ in range(2)], [random.randrange(1, 5) for _ in range(2)])
    events = arriving(random, TIMES)
    expected = [alone(TIMES, wanted, events) for wanted in pair]
    match level(*(forest(_text(wanted)) for wanted in pair)):
        case FullResults():
            assert pair[0] == pair[1]
        case SelectedResults(windows, first, second):
            assert [each.step for each in windows] == steps
            assert shared(TIMES, steps, [first, second], events) == expected
        case SharedWindows(windows, first_own, second_own):
            assert [fused(windows, wanted, events)[0] for wanted in pair] == expected
            for wanted, own in zip(pair, (first_own, second_own), strict=True):
                assert tuple(map(select_windows, windows, wanted)) == own
        case Separate(reason):
            assert reason == "windows that serve both would move too often"


def _text(wanted: Sequence[Extent]) -> str:
    x, y = (f"|t diff {each.size} step {each.step}|" for each in wanted)
    return f"for $x in stream('s')/r/i{x} for $y in stream('u')/r/i{y} return <o>{{ $x/a }}{{ $y/a }}</o>"
