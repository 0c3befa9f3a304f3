"""Sums of computed doubles, which are exact binary fractions (LAWS 2.2), in whole numbers.

A double that is also a decimal of few places, such as 12 or 2.5, is summed like the decimals of items.
Others have up to 53 binary digits anywhere behind the point; their sum is held in *limbs*, whole numbers of which each
weighs 2**32 times the one before, to which a double is added without rounding.

Guarantees: nothing is rounded; limbs do not overflow below 2**29 values.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from anabranch.columnar.match.kernels import Hits
from anabranch.columnar.panes.kernels import exact_ticks
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers, compiled

_LARGEST = float(1 << 49)
"""Below 10**15: the shortest spelling of such a decimal is that of the double."""
LIMBS = 10
_BITS = 32
_LOW = (1 << _BITS) - 1
_POINT = 160
"""The number of binary digits behind the point."""
_DIGITS = 53
_REACH = (2.0 ** (_DIGITS - _POINT), 2.0**96)


BINARY = -1
"""Stands for the decimal places of doubles that have too many."""
_MOST_BINARY = 6


def ticks_of(values: Numbers, decimals: int, *, is_computed: bool) -> tuple[Indices, Flags]:
    """Numbers of items, or computed doubles, in units of `10**-decimals`, and which of them are exact."""
    if decimals == BINARY:
        return np.zeros(len(values), np.int64), in_reach(values)
    return binary_ticks(values, decimals) if is_computed else exact_ticks(values, decimals)


def binary_places(values: Numbers) -> int:
    """The decimal places by which all of some doubles are exact."""
    finite = values[np.isfinite(values)]
    return next((each for each in range(_MOST_BINARY + 1) if binary_ticks(finite, each)[1].all()), BINARY)


def binary_ticks(values: Numbers, places: int) -> tuple[Indices, Flags]:
    """Doubles in units of `10**-places`, and which of them are exact."""
    with np.errstate(over="ignore", invalid="ignore"):
        halves = values * float(2**places)
        ticks = halves * float(5**places)
    exact = (np.abs(ticks) < _LARGEST) & (halves == np.rint(halves))
    return np.where(exact, ticks, 0.0).astype(np.int64), exact


def in_reach(values: Numbers) -> Flags:
    """Which doubles can be added to limbs."""
    sizes = np.abs(values)
    found: Flags = (values == 0) | ((sizes >= _REACH[0]) & (sizes < _REACH[1]))
    return found


@compiled
def add_doubles(owners: Indices, taken: Flags, values: Numbers, high: Numbers, low: Numbers, unclear: Flags) -> None:
    """Add up the rows that are taken, by owner, as two doubles; an entry is unclear where two do not suffice."""
    for row in range(len(owners)):
        if not taken[row]:
            continue
        entry = owners[row]
        total, rest = _both(high[entry], values[row])
        more, lost = _both(low[entry], rest)
        high[entry], low[entry] = total, more
        if lost != 0 or not (abs(more) >= 2.0 ** (_DIGITS - _POINT) or more == 0) or not abs(total) < 2.0**96:
            unclear[entry] = True
            high[entry] = low[entry] = 0.0


@compiled
def _both(one: float, other: float) -> tuple[float, float]:
    """The sum of two doubles as the nearest double and its error (Knuth's TwoSum)."""
    total = one + other
    added = total - one
    return total, (one - (total - added)) + (other - added)


@compiled
def add_binary(
    hits: Hits,
    rows: Indices,
    bounds: Indices,
    taken: Indices,
    leaves: Indices,
    times: Indices,
    high: Numbers,
    low: Numbers,
    limbs: Indices,
) -> None:
    """Add the doubles of one aggregated path to the limbs of rows of hits; its places are those of `add_up`."""
    for condition in range(len(bounds) - 1):
        for place in range(bounds[condition], bounds[condition + 1]):
            number, leaf = taken[place], leaves[place]
            for hit in range(hits.bounds[condition], hits.bounds[condition + 1]):
                row, entry = rows[hit], hits.entries[hit]
                if row < 0 or leaf < 0 or (number >= 0 and times[number, entry] == 0):
                    continue
                _add(high[leaf, entry], limbs[row])
                if low[leaf, entry] != 0:
                    _add(low[leaf, entry], limbs[row])


@compiled
def _add(value: float, limbs: Indices) -> None:
    """Add a double that is `in_reach` to limbs."""
    if value == 0:
        return
    fraction, exponent = math.frexp(abs(value))
    digits = np.int64(fraction * 2.0**_DIGITS)
    place = exponent - _DIGITS + _POINT
    limb, shift = place // _BITS, place % _BITS
    sign = 1 if value > 0 else -1
    lower, upper = (digits & _LOW) << shift, (digits >> _BITS) << shift
    limbs[limb] += sign * (lower & _LOW)
    limbs[limb + 1] += sign * ((lower >> _BITS) + (upper & _LOW))
    limbs[limb + 2] += sign * (upper >> _BITS)


def sums_of(limbs: Indices) -> list[Fraction]:
    """The sums that limbs hold, by row."""
    return [
        Fraction(sum(each << (_BITS * place) for place, each in enumerate(row)), 1 << _POINT) for row in limbs.tolist()
    ]
