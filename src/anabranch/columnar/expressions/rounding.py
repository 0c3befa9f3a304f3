"""Columns of doubles rounded, as the law rounds one: INF and NaN stay, and what becomes 0 keeps its sign."""

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


ROUNDINGS: Mapping[str, Callable[[Numbers], Numbers]] = {
    "abs": np.abs,
    "floor": np.floor,
    "ceiling": np.ceil,
    "round": rounded_half_up,
}
"""The law's functions that make a double of a double, by name."""
