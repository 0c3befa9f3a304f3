"""Aggregates of the numbers that rows have, by the row that they lie in, as the law has them (LAWS 2.2).

Sums are those of whole numbers, which decimals are in a unit of enough places; a quotient of whole numbers below 2**53
is the nearest double, and others are found in fractions.
What is no number of few digits leaves its owner unclear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.columnar.expressions.tree import Kind
from anabranch.columnar.expressions.values import ABSENT, CLEAR, UNCLEAR, ColumnValue, States
from anabranch.columnar.panes.doubles import binary_ticks
from anabranch.columnar.panes.kernels import best_places, exact_ticks
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers
from anabranch.values.numbers import nearest_double

_EXACT = 1 << 53
_MOST = 1 << 62
_MOST_BINARY = 6
"""So many decimal places are tried for doubles that were computed, which are exact binary fractions."""


@dataclass(frozen=True, slots=True)
class OwnedNumbers:
    """The numbers of rows, in the order of their owners; those that are absent are left out."""

    numbers: Numbers
    owners: Indices
    counts: Indices
    """By owner: how many it has."""
    unclear: Flags
    """By owner: whether something that it has is no number that is known exactly."""
    is_computed: bool
    """Whether they are doubles that were computed, and not decimals that stand in items."""

    @staticmethod
    def of(
        numbers: Numbers, state: States | None, owners: Indices, count: int, *, is_computed: bool = False
    ) -> OwnedNumbers:
        """Those of rows that lie in so many others."""
        unclear = np.zeros(count, np.bool_)
        there = np.isfinite(numbers)
        if state is not None:
            there &= state == CLEAR
            unclear[owners[~there & (state != ABSENT)]] = True
        else:
            unclear[owners[~there]] = True
        mine = owners[there]
        return OwnedNumbers(numbers[there], mine, np.bincount(mine, minlength=count), unclear, is_computed)

    @property
    def bounds(self) -> Indices:
        """Where the numbers of each owner begin, and the last end."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    def ticks(self) -> tuple[Indices, int] | None:
        """Whole numbers in a unit, and how many of the unit are one; None where computed doubles have no such unit.

        Whoever has a decimal that is not exact is unclear.
        """
        if self.is_computed:
            tried = (binary_ticks(self.numbers, places) for places in range(_MOST_BINARY + 1))
            return next(((ticks, 10**places) for places, (ticks, exact) in enumerate(tried) if exact.all()), None)
        places = best_places(self.numbers)
        ticks, exact = exact_ticks(self.numbers, places)
        self.unclear[self.owners[~exact]] = True
        return ticks, 10**places


def _quotients(totals: Indices, divisors: Indices, unit: int) -> Numbers:
    """The doubles nearest to totals divided by so many units each."""
    small = (np.abs(totals) < _EXACT) & (divisors < _EXACT // unit)
    found: Numbers = totals / (np.where(small, divisors, 1) * float(unit))
    for owner in np.flatnonzero(~small).tolist():
        found[owner] = nearest_double(Fraction(int(totals[owner]), unit * int(divisors[owner])))
    return found


def _divided(given: OwnedNumbers, divisors: Indices) -> Numbers:
    """The doubles nearest to the sum of each owner's numbers, divided."""
    bounds, in_units = given.bounds, given.ticks()
    if in_units is None:  # computed doubles are the binary fractions that they are
        spans = zip(bounds[:-1].tolist(), bounds[1:].tolist(), divisors.tolist(), strict=True)
        exact = list(map(Fraction, given.numbers.tolist()))
        return np.array([nearest_double(sum(exact[a:b], Fraction(0)) / divisor) for a, b, divisor in spans])
    ticks, unit = in_units
    given.unclear[given.counts > _MOST // (1 + int(np.abs(ticks).max(initial=0)))] = True
    running = np.concatenate([[0], np.cumsum(ticks)])  # may wrap around, but the differences do not
    return _quotients(running[bounds[1:]] - running[bounds[:-1]], divisors, unit)


def _sum(given: OwnedNumbers) -> Numbers:
    given.unclear[given.counts == 0] = True  # that of nothing is an integer
    return _divided(given, np.ones(len(given.counts), np.int64))


def _avg(given: OwnedNumbers) -> Numbers:
    return _divided(given, np.maximum(given.counts, 1))


def _median(given: OwnedNumbers) -> Numbers:
    """The sum of the middle two, which may be one and the same, divided by two."""
    order = np.lexsort((given.numbers, given.owners))
    filled = np.flatnonzero(given.counts)
    begins, counts = given.bounds[filled], given.counts[filled]
    middle = np.stack([order[begins + (counts - 1) // 2], order[begins + counts // 2]], axis=1).ravel()
    owners, twice = np.repeat(filled, 2), np.where(given.counts > 0, 2, 0)
    inner = OwnedNumbers(given.numbers[middle], owners, twice, given.unclear, given.is_computed)
    return _divided(inner, np.full(len(twice), 2))


def _min(given: OwnedNumbers) -> Numbers:
    return _extremes(given, np.minimum)


def _max(given: OwnedNumbers) -> Numbers:
    return _extremes(given, np.maximum)


def _extremes(given: OwnedNumbers, by: np.ufunc) -> Numbers:
    found = np.zeros(len(given.counts))
    filled = np.flatnonzero(given.counts)
    if len(filled):
        found[filled] = by.reduceat(given.numbers, given.bounds[filled])
    given.unclear[given.owners[(given.numbers == 0) & np.signbit(given.numbers)]] = True  # the earlier zero counts
    return found


ROW_AGGREGATES: Mapping[str, Callable[[OwnedNumbers], Numbers]] = {
    "sum": _sum,
    "avg": _avg,
    "median": _median,
    "min": _min,
    "max": _max,
}
"""By function: what it gives for each owner; those who have nothing are absent."""


def aggregate(function: str, given: OwnedNumbers) -> ColumnValue:
    """What a function comes to, for each owner."""
    found = ROW_AGGREGATES[function](given)
    states = np.where(given.counts > 0, np.uint8(CLEAR), np.uint8(ABSENT))
    states[given.unclear] = UNCLEAR
    return ColumnValue(Kind.DOUBLE, states if states.any() else None, found)
