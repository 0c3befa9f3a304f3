"""The compiled loops that find the ranks of values among constants (`forms.py`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.kernels import ABSENT, NOT_A_NUMBER, Bytes, Flags, Indices, Numbers, Places, compiled

UNKNOWN = -1
"""The rank of a value that is not known."""
_KEY = 8


@compiled
def rank_presence(starts: Places, missing: int, ranks: Places) -> None:
    """The ranks of presence; `missing` is the rank of a missing value."""
    for entry in range(len(starts)):
        ranks[entry] = 1 if starts[entry] >= 0 else missing if starts[entry] == ABSENT else UNKNOWN


@compiled
def rank_numbers(
    values: Numbers,
    starts: Places,
    missing: int,
    constants: Numbers,
    cells: Indices,
    least: float,
    scale: float,
    ranks: Places,
) -> None:
    """The ranks of numbers, `missing` for missing values.

    Cells are equally wide; the constants of a cell lie between two of `cells`, and a NaN stands behind them all.
    Most cells have one constant at most, so most values are ranked without a branch.
    """
    last = float(len(cells) - 2)
    for entry in range(len(values)):
        value = values[entry]
        cell = (value - least) * scale
        at = int(min(cell, last)) if cell >= 0.0 else 0  # also NaN, where infinity was multiplied by zero
        low, high = cells[at], cells[at + 1]
        if high > low + 1:
            while low < high:
                middle = (low + high) >> 1
                if constants[middle] < value:
                    low = middle + 1
                else:
                    high = middle
        constant = constants[low]
        ranks[entry] = 2 * low + (constant < value) + (constant <= value)
        if value != value:
            ranks[entry] = missing if starts[entry] in (ABSENT, NOT_A_NUMBER) else UNKNOWN


@compiled
def rank_ticks(ticks: Indices, known: Flags, starts: Places, missing: int, constants: Indices, ranks: Places) -> None:
    """The ranks of moments, `missing` for missing values."""
    for entry in range(len(ticks)):
        if not known[entry]:
            ranks[entry] = missing if starts[entry] == ABSENT else UNKNOWN
            continue
        low, high = 0, len(constants)
        while low < high:
            middle = (low + high) >> 1
            if constants[middle] < ticks[entry]:
                low = middle + 1
            else:
                high = middle
        ranks[entry] = 2 * low + (1 if low < len(constants) and constants[low] == ticks[entry] else 0)


@compiled
def rank_sums(
    values: Numbers,
    starts: Places,
    addends: Numbers,
    addend_starts: Places,
    missing: int,
    constants: Numbers,
    ranks: Places,
) -> None:
    """The ranks of numbers among the sums of other numbers and constants, `missing` for missing values.

    A rounded sum never falls while the constant rises, so the sums are searched like the constants.
    Where the number equals the sums of several constants, its rank is unknown.
    """
    for entry in range(len(values)):
        value, addend = values[entry], addends[entry]
        if value != value or addend != addend:
            known = value == value or starts[entry] == ABSENT
            known = known and (addend == addend or addend_starts[entry] == ABSENT)
            ranks[entry] = missing if known else UNKNOWN
            continue
        low, high = 0, len(constants)
        while low < high:
            middle = (low + high) >> 1
            if addend + constants[middle] < value:
                low = middle + 1
            else:
                high = middle
        is_sum = low < len(constants) and addend + constants[low] == value
        if is_sum and low + 1 < len(constants) and addend + constants[low + 1] == value:
            ranks[entry] = UNKNOWN
        else:
            ranks[entry] = 2 * low + (1 if is_sum else 0)


@compiled
def _order(data: Bytes, start: int, end: int, other: Bytes, first: int, last: int) -> int:
    """The order of two texts."""
    length, size = end - start, last - first
    for place in range(min(length, size)):
        if data[start + place] != other[first + place]:
            return -1 if data[start + place] < other[first + place] else 1
    return 0 if length == size else (-1 if length < size else 1)


@compiled
def _key(data: Bytes, start: int, end: int) -> np.uint64:
    """The first bytes of a text as one number; numbers are in the order of the texts."""
    key = np.uint64(0)
    for place in range(_KEY):
        key = key << np.uint64(8) | np.uint64(data[start + place] if start + place < end else 0)
    return key


@compiled
def text_keys(constants: Bytes, bounds: Indices, found: NDArray[np.uint64]) -> None:
    """The keys of concatenated texts, each between two bounds."""
    for number in range(len(found)):
        found[number] = _key(constants, bounds[number], bounds[number + 1])


@compiled
def rank_texts(
    data: Bytes,
    starts: Places,
    ends: Places,
    missing: int,
    constants: Bytes,
    bounds: Indices,
    known: NDArray[np.uint64],
    ranks: Places,
) -> None:
    """The ranks of texts, `missing` for missing ones; `known` are the keys of the constants."""
    for entry in range(len(starts)):
        start, end = starts[entry], ends[entry]
        if start < 0:
            ranks[entry] = missing if start == ABSENT else UNKNOWN
            continue
        key = _key(data, start, end)
        low, high, equal = 0, len(known), 0
        while low < high:
            middle = (low + high) >> 1
            if known[middle] != key:
                order = 1 if known[middle] < key else -1
            else:
                order = _order(data, start, end, constants, bounds[middle], bounds[middle + 1])
            if order > 0:
                low = middle + 1
            else:
                high = middle
                equal = 1 if order == 0 else equal
        ranks[entry] = 2 * low + equal
