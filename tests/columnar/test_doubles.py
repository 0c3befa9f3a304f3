from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anabranch.columnar.match.kernels import Hits
from anabranch.columnar.panes.doubles import LIMBS, add_binary, add_doubles, binary_ticks, in_reach, sums_of
from mass import examples

DOUBLES = st.one_of(
    st.floats(),
    st.floats(-1e6, 1e6),
    st.integers(-(2**60), 2**60).map(lambda each: each / 64),
    st.sampled_from((2.0**-107, 2.0**96, -(2.0**95) * 1.999, 5e-324, -0.0, 0.1, 2.0**-160)),
)


@examples(150)
@given(st.lists(DOUBLES, min_size=1, max_size=30), st.integers(0, 6))
def test_what_is_called_exact_is_the_double(values: list[float], places: int) -> None:
    """A tick stands for the binary fraction itself, however that is spelled."""
    ticks, exact = binary_ticks(np.array(values), places)
    for value, tick, is_exact in zip(values, ticks.tolist(), exact.tolist(), strict=True):
        if is_exact:
            assert Fraction(value) * 10**places == tick
            assert Fraction(repr(value)) == Fraction(value), "such a double is what its spelling says"


@examples(150)
@given(st.lists(st.tuples(DOUBLES, st.integers(0, 2), st.booleans()), min_size=1, max_size=40))
def test_sums_of_doubles_are_exact(given: list[tuple[float, int, bool]]) -> None:
    """What is in reach is added up without rounding, by row; what is not taken adds nothing."""
    values = np.array([value for value, _, _ in given])
    reached = in_reach(values)
    taken = np.array([[is_taken for _, _, is_taken in given]]) & reached
    rows = np.array([row for _, row, _ in given], np.int64)
    hits = Hits(np.arange(len(given), dtype=np.int32), np.array([0, len(given)]))
    limbs = np.zeros((3, LIMBS), np.int64)
    none, low = np.zeros(1, np.int64), np.zeros((1, len(given)))
    add_binary(hits, rows, np.array([0, 1]), none, none, taken.astype(np.int64), values[None], low, limbs)
    for row, total in enumerate(sums_of(limbs)):
        mine = (
            Fraction(value)
            for value, at, is_taken in zip(values.tolist(), rows, taken[0], strict=True)
            if at == row and is_taken
        )
        assert total == sum(mine, Fraction(0))


@examples(150)
@given(st.lists(st.tuples(DOUBLES, st.integers(0, 2), st.booleans()), min_size=1, max_size=12))
def test_rows_add_up_to_two_doubles_or_are_unclear(given: list[tuple[float, int, bool]]) -> None:
    """Where an entry is not unclear, its two doubles are the exact sum, and both can be added to limbs."""
    given = sorted(given, key=lambda each: each[1])
    values = np.array([value for value, _, _ in given])
    owners = np.array([owner for _, owner, _ in given], np.int64)
    taken = np.array([is_taken for _, _, is_taken in given]) & in_reach(values)
    high, low, unclear = np.zeros(3), np.zeros(3), np.zeros(3, np.bool_)
    add_doubles(owners, taken, values, high, low, unclear)
    for entry in np.flatnonzero(~unclear).tolist():
        mine = [Fraction(value) for value in values[taken & (owners == entry)].tolist()]
        assert Fraction(high[entry]) + Fraction(low[entry]) == sum(mine, Fraction(0))
        assert in_reach(high[entry : entry + 1])[0]
        assert in_reach(low[entry : entry + 1])[0]
