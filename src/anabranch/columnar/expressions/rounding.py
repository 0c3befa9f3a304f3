"""Columns of doubles rounded, as the law rounds one: INF and NaN stay, and what becomes 0 keeps its sign.

Rounding to decimal places is scaling, rounding and scaling back.
The product is off by half a unit in its last place at most, so only where it lies so near to the middle between two
integers the law has to say what the exact product is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from anabranch.columnar.scan.kernels import Numbers


def rounded_half_up(values: Numbers) -> Numbers:
    """The integer nearest to each double, of two the larger.

    Adding a half first would round, and give 1 for the double below a half; the fraction `values - floor` is exact,
    except for doubles between -0.5 and 0, where it is more than a half in any case.
    """
    with np.errstate(invalid="ignore"):  # INF has no fraction
        whole = np.floor(values)
        return np.copysign(np.where(values - whole >= 0.5, whole + 1, whole), values)


_MOST_PLACES = 22
"""Powers of ten up to this are doubles exactly."""
_POWERS = np.array([float(10**power) for power in range(_MOST_PLACES + 1)])
_FARTHEST = 2.0**51
"""Below this a double has at least one bit behind its point."""
_ERROR = 2.0**-52


def rounded_to(values: Numbers, places: Numbers, exact: Callable[[float, int], float]) -> Numbers:
    """The nearest double with so many decimal places to each; `exact` rounds one where it lies near the middle."""
    known = (places >= 0) & (places <= _MOST_PLACES)
    power = _POWERS[np.where(known, places, 0).astype(np.int64)]
    with np.errstate(all="ignore"):
        scaled = values * power
        whole = np.floor(scaled)
        part = scaled - whole
        certain = known & (np.abs(scaled) < _FARTHEST) & (np.abs(part - 0.5) > np.abs(scaled) * _ERROR)
        found = np.copysign((whole + (part > 0.5)) / power, values)
    as_they_are = ~np.isfinite(values) | (values == 0)
    found = np.where(as_they_are, values, found)
    for row in np.flatnonzero(~(certain | as_they_are)).tolist():
        found[row] = exact(float(values[row % len(values)]), int(places[row % len(places)]))
    return found


ROUNDINGS: Mapping[str, Callable[[Numbers], Numbers]] = {
    "abs": np.abs,
    "floor": np.floor,
    "ceiling": np.ceil,
}
"""The law's functions that make a double of a double, by name."""
