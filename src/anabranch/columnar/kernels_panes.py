"""Numbers of columns as exact integers, and the compiled loop that adds them up by pane.

Texts of up to 18 digits are read as integers with their decimal places.
Where only the double is known that `kernels.number_at` read from a text of at most 15 digits, it stands for exactly one
such decimal, and that can be had back: it is the integer nearest to `value * 10**places`, if this divided by
`10**places` gives the double again.
Below 2**50 this is exact: the product is less than a quarter away from the integer if the text has no more places than
asked for, and if it has more, the quotient is another double, because decimals of 15 digits lie further apart.

Guarantees: what is called exact is the decimal of the text; sums do not overflow below 2**31 values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.kernels import Bytes, Flags, Indices, Numbers, Places, compiled

MOST_PLACES = 18
MOST_TICKS = 1 << 60
_POWERS = np.array([10**power for power in range(MOST_PLACES + 1)], np.int64)
_MINUS, _PLUS, _POINT, _ZERO, _NINE = b"-+.09"
_LARGEST = float(1 << 50)
_HALF = 32
_LOW = (1 << _HALF) - 1


def exact_ticks(values: Numbers, places: int) -> tuple[Indices, Flags]:
    """Decimals in units of `10**-places`, and which of them are exact."""
    unit = float(10**places)
    ticks = np.rint(values * unit)
    exact = (np.abs(ticks) < _LARGEST) & (ticks / unit == values)
    return np.where(exact, ticks, 0.0).astype(np.int64), exact


def best_places(values: Numbers) -> int:
    """The number of decimal places by which most of some decimals are exact."""
    able = [int(np.count_nonzero(exact_ticks(values, places)[1])) for places in range(MOST_PLACES + 1)]
    return int(np.argmax(able))


@compiled
def read_decimals(data: Bytes, starts: Places, ends: Places, mantissas: Indices, places: Indices) -> None:
    """Texts as integers with so many decimal places each; -1 places for what is no plain decimal of few digits."""
    for item in range(len(starts)):
        at, stop = starts[item], ends[item]
        negative = at < stop and data[at] == _MINUS
        if negative or (at < stop and data[at] == _PLUS):
            at += 1
        mantissa = np.int64(0)
        digits, point = 0, -1
        while at < stop and digits <= MOST_PLACES:
            byte = data[at]
            if _ZERO <= byte <= _NINE:
                mantissa = mantissa * 10 + (byte - _ZERO)
                digits += 1
            elif byte == _POINT and point < 0:
                point = digits
            else:
                break
            at += 1
        mantissas[item] = -mantissa if negative else mantissa
        places[item] = -1
        if at == stop and 0 < digits <= MOST_PLACES:
            places[item] = digits - point if point >= 0 else 0


def text_ticks(mantissas: Indices, given: Indices, places: int) -> tuple[Indices, Flags]:
    """Decimals with the places given in units of `10**-places`, and which of them are exact."""
    shift = places - given
    exact = (given >= 0) & (shift >= 0)
    power = _POWERS[np.where(exact, shift, 0)]
    exact &= np.abs(mantissas) <= MOST_TICKS // power
    return np.where(exact, mantissas * np.where(exact, power, 0), 0), exact


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
