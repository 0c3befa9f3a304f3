"""How far a range has come: what is odd in it, and the items that say so."""

from __future__ import annotations

import pytest

from anabranch.spark.evolution.progress import ProgressAxis, RangeProgress, Top

AXES = (ProgressAxis("i/t", "2"), ProgressAxis("*/u"))


def course(first: str, top: float, low: float, *, odd: bool = False) -> RangeProgress:
    """A course by one axis that counts."""
    return RangeProgress("s", first, (Top(top, f"top {first}"), None), (low, None), odd)


def test_on_the_wire() -> None:
    """A course comes back from its text."""
    told = course("<i/>", 4.5, -1.0, odd=True)
    assert RangeProgress.from_json(told.to_json()) == told


@pytest.mark.parametrize(("low", "odd"), [(5.0, False), (3.5, False), (2.5, True)])
def test_what_is_below_the_range_before(low: float, odd: bool) -> None:
    """A value below the largest before it, by more than the axis bears, is odd."""
    both = course("a", 5.0, 1.0).then(course("b", 9.0, low), AXES)
    assert both == RangeProgress("s", "a", (Top(9.0, "top b"), None), (1.0, None), odd)
    assert course("z", 2.0, 2.0).then(both, AXES).odd is odd
    assert course("z", 4.0, 2.0).then(both, AXES).odd, "the first of the two is below it"


def test_nothing_changes_nothing() -> None:
    """A range without items says nothing, but that something odd was in it."""
    empty = RangeProgress("s", None, (None, None), (None, None), odd=True)
    assert RangeProgress("s", "a", odd=True).then(RangeProgress("s", "b"), ()) == RangeProgress("s", "a", odd=True)
    both = course("a", 5.0, 1.0).then(empty, AXES)
    assert both.odd
    assert both.tops == (Top(5.0, "top a"), None)
