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
NODES = 20
"""An order is the number of an entry, and in these bits that of a node in it."""
HALF = 32
LOW = (1 << HALF) - 1


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


def totals(high: Indices, low: Indices) -> list[int]:
    """Sums in two halves, put together."""
    return [(upper << HALF) + lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)]


def halves(total: int) -> tuple[int, int]:
    """A sum in the two halves that `totals` puts together."""
    return total >> HALF, total & LOW


@compiled
def place(
    entries: Indices,
    states: Bytes,
    ticks: Indices,
    factor: int,
    width: int,
    size: int,
    step: int,
    panes: Indices,
) -> None:
    """The pane of each entry, -1 for none: it is left out (its state is not 0), or no window holds its pane.

    Pane `p` is where `p <= tick * factor / width < p + 1`; most entries are in the pane of the one before.
    """
    pane, low, high = -1, 0, 0
    for number in range(len(entries)):
        entry = entries[number]
        panes[number] = -1
        if states[entry]:
            continue
        tick = ticks[entry] * factor
        if not low <= tick < high:
            pane = tick // width
            low, high = pane * width, (pane + 1) * width
            if pane < 0 or pane % step >= size:
                pane = -1
        panes[number] = pane


@compiled
def runs(bounds: Indices, panes: Indices, rows: Indices, firsts: Indices) -> int:
    """Give a row to each run of equal panes: the row of each hit, -1 for none, and the first hit of each row.

    The hits of a member lie between two `bounds`; gives the number of rows.
    """
    count = 0
    for member in range(len(bounds) - 1):
        current = -1
        for hit in range(bounds[member], bounds[member + 1]):
            rows[hit] = -1
            if panes[hit] < 0:
                continue
            if panes[hit] != current:
                firsts[count] = hit
                count += 1
                current = panes[hit]
            rows[hit] = count - 1
    return count


@compiled
def add_up(
    entries: Indices,
    rows: Indices,
    order: int,
    ranked: bool,
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
    """Add the values of entries that are taken to their rows; `least` and `greatest` begin as NaN.

    Nothing in `taken` means all, nothing in `ticks` that only their number counts; the least and the greatest are found
    where they are `ranked`.
    The order of an entry is its number behind `order`, above the bits for nodes.
    Sums are held in two halves, so that no value can carry out of them.
    """
    for number in range(len(rows)):
        row, entry = rows[number], entries[number]
        if row < 0 or (len(taken) and not taken[entry]):
            continue
        counts[row] += 1
        if not len(ticks):
            continue
        tick, value, at = ticks[entry], values[entry], (order + entry) << NODES
        high[row] += tick >> HALF
        low[row] += tick & LOW
        if not ranked:
            continue
        if not least[row] <= value or (least[row] == value and at < least_at[row]):
            least[row], least_at[row] = value, at
        if not greatest[row] >= value or (greatest[row] == value and at < greatest_at[row]):
            greatest[row], greatest_at[row] = value, at
