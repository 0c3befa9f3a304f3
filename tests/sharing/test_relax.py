"""Relaxed windows: the paper's algorithm, taken literally, is the judge."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from anabranch.algebra.window import Extent
from anabranch.sharing.match import relax


def _extent(size: str, step: str) -> Extent:
    return Extent(Fraction(size), Fraction(step))


def test_case_9_decimals() -> None:
    """LAWS case 9: windows of 0.3 every 0.1 and of 0.2 every 0.2 share windows of 0.1 every 0.1."""
    assert relax(_extent("0.3", "0.1"), _extent("0.2", "0.2")) == _extent("0.1", "0.1")


def test_papers_join_windows() -> None:
    """Figure 13(c): the windows of q5 and q8 share 5 every 5 on the left and 10 every 5 on the right."""
    assert relax(_extent("10", "5"), _extent("15", "10")) == _extent("5", "5")
    assert relax(_extent("20", "10"), _extent("30", "15")) == _extent("10", "5")


def test_step_that_does_not_divide_the_size() -> None:
    """Where no common step divides the common size, a smaller step is taken."""
    assert relax(_extent("10", "3"), _extent("10", "3")) == _extent("10", "1")


_NUMBERS = st.integers(1, 60)


@given(_NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS)
def test_equals_the_algorithm_as_printed(size: int, step: int, other_size: int, other_step: int) -> None:
    """The first compatible pair, steps in decreasing order and sizes within, as algorithm 1 says."""

    def common(a: int, b: int) -> list[int]:
        return [each for each in range(min(a, b), 0, -1) if a % each == 0 and b % each == 0]

    expected = next((d, m) for m in common(step, other_step) for d in common(size, other_size) if d % m == 0)
    relaxed = relax(Extent(Fraction(size), Fraction(step)), Extent(Fraction(other_size), Fraction(other_step)))
    assert relaxed == Extent(*map(Fraction, expected))
