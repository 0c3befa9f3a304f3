"""The compiled loops of `ranking.py`: where values stand among sorted constants."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Numbers, Places, compiled

UNKNOWN = -1
"""The rank of a value that is not known."""
_KEY = 8


@compiled
def rank_numbers(
    values: Numbers, constants: Numbers, cells: Indices, least: float, scale: float, ranks: Places
) -> None:
    """The ranks of numbers; the constants of each cell, which are equally wide, stand between two of `cells`."""
    last = len(cells) - 2
    for entry in range(len(values)):
        value = values[entry]
        if value != value:
            ranks[entry] = UNKNOWN
            continue
        cell = min(max((value - least) * scale, 0.0), last)
        low, high = cells[int(cell)], cells[int(cell) + 1]
        while low < high:
            middle = (low + high) >> 1
            if constants[middle] < value:
                low = middle + 1
            else:
                high = middle
        ranks[entry] = 2 * low + (1 if low < len(constants) and constants[low] == value else 0)


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
    """The first bytes of a text as one number, which is in the same order."""
    key = np.uint64(0)
    for place in range(_KEY):
        key = key << np.uint64(8) | np.uint64(data[start + place] if start + place < end else 0)
    return key


@compiled
def keys(constants: Bytes, bounds: Indices, found: NDArray[np.uint64]) -> None:
    """The keys of texts, which stand one behind the other, between two bounds each."""
    for number in range(len(found)):
        found[number] = _key(constants, bounds[number], bounds[number + 1])


@compiled
def rank_texts(
    data: Bytes,
    starts: Places,
    ends: Places,
    fits: Flags,
    constants: Bytes,
    bounds: Indices,
    known: NDArray[np.uint64],
    ranks: Places,
) -> None:
    """The ranks of texts; `known` are the keys of the constants."""
    for entry in range(len(fits)):
        if not fits[entry]:
            ranks[entry] = UNKNOWN
            continue
        start, end = starts[entry], ends[entry]
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
