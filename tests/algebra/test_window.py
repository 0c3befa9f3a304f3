from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from anabranch.algebra.sliding import Sliding
from anabranch.algebra.window import Extent, Panes

DECIMALS = st.integers(-400, 4_000).map(lambda tick: Fraction(tick, 20))
SIZES = st.integers(1, 300).map(lambda tick: Fraction(tick, 10))


@given(SIZES, SIZES, DECIMALS)
def test_a_window_holds_a_value_if_it_holds_its_pane(size: Fraction, step: Fraction, value: Fraction) -> None:
    """Panes are whole parts of windows, so counting by panes loses nothing (LAWS 3.1)."""
    extent = Extent(size, step)
    panes = Panes.of(extent)
    pane = panes.at(value)
    holding = [k for k in range(panes.first(pane), panes.first(pane) + 400) if pane in panes.window(k)]
    assert holding == list(extent.holding(value))
    assert panes.is_used(pane) == bool(holding)
    if holding:
        assert panes.first(pane) == holding[0]


@given(SIZES, SIZES, DECIMALS)
def test_windows_end_where_their_panes_do(size: Fraction, step: Fraction, reached: Fraction) -> None:
    """As many windows have ended as have their ends at or before what the stream has reached (LAWS 3.2)."""
    extent = Extent(size, step)
    ended = Panes.of(extent).ended(reached)
    assert extent.end(ended) > reached
    assert ended == 0 or extent.end(ended - 1) <= reached


def test_panes_are_as_wide_as_they_can_be() -> None:
    """Windows of 0.3 every 0.2 are made of panes of 0.1."""
    assert Panes.of(Extent(Fraction("0.3"), Fraction("0.2"))) == Panes(Fraction("0.1"), 3, 2)
    assert Panes.of(Extent(Fraction(60), Fraction(40))) == Panes(Fraction(20), 3, 2)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 9))))
def test_a_sliding_window_is_the_sum_of_what_it_holds(steps: list[tuple[int, bool, int]]) -> None:
    """Whatever is added and dropped, the fold is that of the elements that are left."""
    window: Sliding[int] = Sliding(int.__add__)
    held: dict[int, int] = {}
    key = low = 0
    for gap, drops, element in steps:
        key += 1 + gap
        window.push(key, element)
        held[key] = element
        if drops:
            low = key - element
            window.drop(low)
            held = {each: value for each, value in held.items() if each >= low}
        assert window.all() == (sum(held.values()) if held else None)
