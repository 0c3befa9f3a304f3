"""Numbers of columns as exact integers, and the compiled loop that adds them up by pane.

A double that `kernels.number_at` read from a text of at most 15 digits stands for exactly one such decimal, so the
decimal can be had back from it: as the integer nearest to `value * 10**places`, if that divided by `10**places` gives
the double again.
Below 2**50 this is exact: the product is less than a quarter away from the integer if the text has no more places than
asked for, and if it has more, the quotient is another double, because decimals of 15 digits lie further apart.

Guarantees: what is called exact is the decimal of the text; sums do not overflow below 2**31 values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.kernels import Flags, Indices, Numbers, compiled

MOST_PLACES = 18
_LARGEST = float(1 << 50)
_HALF = 32
_LOW = (1 << _HALF) - 1


def exact_ticks(values: Numbers, places: int) -> tuple[Indices, Flags]:
    """Decimals in units of `10**-places`, and which of them are exact."""
    unit = float(10**places)
    ticks = np.rint(values * unit)
    exact = (np.abs(ticks) < _LARGEST) & (ticks / unit == values)
    return np.where(exact, ticks, 0.0).astype(np.int64), exact


def best_places(values: Numbers, least: int) -> int:
    """The number of decimal places, at least so many, by which most of some decimals are exact."""
    able = [int(np.count_nonzero(exact_ticks(values, places)[1])) for places in range(least, MOST_PLACES + 1)]
    return least + int(np.argmax(able))


def sums(high: Indices, low: Indices) -> list[int]:
    """The sums that `add_up` took, put together."""
    return [(upper << _HALF) + lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)]


@compiled
def add_up(
    rows: Indices,
    orders: Indices,
    taken: Flags,
    ticks: Indices,
    values: Numbers,
    counts: Indices,
    high: Indices,
    low: Indices,
    least: NDArray[np.float64],
    least_at: Indices,
    greatest: NDArray[np.float64],
    greatest_at: Indices,
) -> None:
    """Add the values that are taken to the panes in their rows; `least` and `greatest` begin as NaN.

    Sums are held in two halves, so that no value can carry out of them.
    """
    for number in range(len(rows)):
        if not taken[number]:
            continue
        row, order, value = rows[number], orders[number], values[number]
        counts[row] += 1
        high[row] += ticks[number] >> _HALF
        low[row] += ticks[number] & _LOW
        if not least[row] <= value or (least[row] == value and order < least_at[row]):
            least[row], least_at[row] = value, order
        if not greatest[row] >= value or (greatest[row] == value and order < greatest_at[row]):
            greatest[row], greatest_at[row] = value, order
