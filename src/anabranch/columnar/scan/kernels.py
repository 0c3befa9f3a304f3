"""The compiled loops: cutting items out of bytes, comparing texts, gathering raw items.

Each is compiled once for all templates and queries, which are passed as arrays, and is cached on disk for other
processes.
Shapes: the leaves of items are in arrays of one row per wanted leaf (a *slot*) and one column per item.

Guarantees: time is linear in bytes; a number is the double nearest to the text or NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numba import config, njit
from numpy.typing import NDArray

from anabranch.columnar.kernel_cache import folder_of
from anabranch.columnar.kernel_locator import KernelLocator

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.int32]
"""Positions in bytes, by item or by slot and item."""
Numbers: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

SPACE, TAB, LF, CR = b" \t\n\r"
_MINUS, _PLUS, _POINT, _ZERO, _NINE = b"-+.09"

MOST_DIGITS = 15
"""Decimals of up to 15 digits that differ have different nearest doubles, so doubles compare them exactly."""
SIMPLE = 10**MOST_DIGITS
"""All simple numbers are below; a number with an exponent is not simple."""
_HOLDS = 18  # digits that an int64 holds
_POWERS = np.array([float(10**exponent) for exponent in range(_HOLDS + 1)])
"""Powers of ten, all exact: dividing a mantissa below 2**53 by one of them rounds once, and correctly."""


ABSENT, UNCLEAR = -1, -2
"""In the place of a start, and of an end: an item does not have the part, or its text is not clear."""
NOT_A_NUMBER = -3
"""In the same place, for a computed number that is NaN: no comparison with it holds, except `!=`."""
_LOOK = 4096
"""The number of bytes that are scanned before their result is tested."""


_LOCATOR = f"{KernelLocator.__module__}.{KernelLocator.__qualname__}"
_LOCATORS_OF_OTHERS = getattr(config, "CACHE_LOCATOR_CLASSES", "")


def compiled(function: Kernel, **options: Any) -> Kernel:
    """Compile a function with Numba; type checkers still see its type."""
    config.CACHE_DIR = str(folder_of(function.__code__.co_filename))  # type: ignore[attr-defined]
    config.CACHE_LOCATOR_CLASSES = _LOCATOR  # type: ignore[attr-defined]
    try:
        return njit(cache=True, nogil=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # there is no folder for the cache: each process compiles for itself
        return njit(nogil=True, **options)(function)  # type: ignore[no-any-return]
    finally:
        config.CACHE_LOCATOR_CLASSES = _LOCATORS_OF_OTHERS  # type: ignore[attr-defined]


def compiled_lean(function: Kernel) -> Kernel:
    """As `compiled`, for functions that make no arrays.

    References to arrays are not counted then, which costs more than many a small function.
    """
    return compiled(function, _nrt=False)


def compiled_inline(function: Kernel) -> Kernel:
    """As `compiled_lean`, for a small function that is inlined into each caller."""
    return compiled(function, _nrt=False, forceinline=True)


@compiled_lean
def is_space(byte: int) -> bool:
    """Whether a byte is white space in XML."""
    return byte in (SPACE, TAB, LF, CR)


@compiled_lean
def number_at(data: Bytes, at: int, stop: int) -> tuple[float, int]:
    """The decimal number at a place and where it ends; NaN where there is none or it has too many digits."""
    negative = at < stop and data[at] == _MINUS
    if negative or (at < stop and data[at] == _PLUS):
        at += 1
    mantissa = np.int64(0)
    digits = 0
    point = -1
    while at < stop:
        byte = data[at]
        if _ZERO <= byte <= _NINE:
            if digits < _HOLDS:
                mantissa = mantissa * 10 + (byte - _ZERO)
            digits += 1
        elif byte == _POINT and point < 0:
            point = digits
        else:
            break
        at += 1
    if not 0 < digits <= _HOLDS or mantissa >= SIMPLE:
        return np.nan, at
    number = mantissa / _POWERS[digits - point if point >= 0 else 0]
    return -number if negative else number, at


class Pattern(NamedTuple):
    """A template and its wanted leaves, as arrays for the kernel."""

    pieces: Bytes
    """Its fixed bytes."""
    bounds: Indices
    """The start of each piece among these bytes, and the end of the last."""
    slots: Indices
    """By leaf: its row, -1 where it is not wanted."""
    numeric: Flags
    """By row: whether its number is wanted."""
    plain: Bytes
    """By byte: whether it means itself in a text."""


class ItemColumns(NamedTuple):
    """Entries in columns: whether they fit, their spans, and by row the spans of their leaves and the numbers there."""

    fits: Flags
    begins: Places
    finishes: Places
    starts: Places
    ends: Places
    values: Numbers

    def first(self, count: int) -> ItemColumns:
        """The first `count` entries."""
        fits, begins, finishes, starts, ends, values = self
        return ItemColumns(
            fits[:count], begins[:count], finishes[:count], starts[:, :count], ends[:, :count], values[:, :count]
        )

    def rows(self, count: int) -> ItemColumns:
        """The entries with their first `count` rows."""
        return self._replace(starts=self.starts[:count], ends=self.ends[:count], values=self.values[:count])

    @staticmethod
    def room(rows: int, count: int) -> ItemColumns:
        """Empty columns for `count` entries."""
        begins, finishes = np.empty(count, np.int32), np.empty(count, np.int32)
        starts, ends = np.empty((rows, count), np.int32), np.empty((rows, count), np.int32)
        return ItemColumns(np.empty(count, np.bool_), begins, finishes, starts, ends, np.empty((rows, count)))

    def clear(self, entries: Flags) -> None:
        """Make the leaves of some entries unclear."""
        self.starts[:, entries] = self.ends[:, entries] = UNCLEAR
        self.values[:, entries] = np.nan


@compiled_lean
def behind_template(data: Bytes, at: int, stop: int, pattern: Pattern, columns: ItemColumns, entry: int) -> int:
    """The place behind the item at `at` if it fits a template, otherwise -1; sets the rows of an entry."""
    pieces, bounds, slots, numeric, plain = pattern
    _, _, _, starts, ends, values = columns
    leaves = len(slots)
    for leaf in range(leaves + 1):
        low, high = bounds[leaf], bounds[leaf + 1]
        if at + high - low > stop:
            return -1
        for place in range(low, high):
            if data[at] != pieces[place]:
                return -1
            at += 1
        if leaf == leaves:
            break
        text = at
        slot = slots[leaf]
        if slot >= 0:
            starts[slot, entry] = at
            if numeric[slot]:
                number, at = number_at(data, at, stop)
                values[slot, entry] = np.nan if at >= stop or plain[data[at]] else number
        while at < stop and plain[data[at]]:
            at += 1
        if at == text:
            return -1
        if slot >= 0:
            ends[slot, entry] = at
    return at


@compiled_lean
def is_blank(data: Bytes, at: int, stop: int) -> bool:
    """Whether there is nothing but white space, as Python knows it in bytes."""
    while at < stop and (data[at] == SPACE or TAB <= data[at] <= CR):
        at += 1
    return at >= stop


@compiled_lean
def compare(data: Bytes, starts: Places, ends: Places, other: Bytes, found: NDArray[np.int8]) -> None:
    """Compare each of some texts with `other`: -1, 0 or 1."""
    for item in range(len(starts)):
        start, length = starts[item], ends[item] - starts[item]
        order = np.sign(length - len(other))
        for place in range(min(length, len(other))):
            if data[start + place] != other[place]:
                order = -1 if data[start + place] < other[place] else 1
                break
        found[item] = order


@compiled_lean
def gather(
    data: Bytes, begins: Places, finishes: Places, picks: Indices, offsets: NDArray[np.int32], out: Bytes
) -> None:
    """Copy the bytes of some entries into `out`, at their `offsets`."""
    for number in range(len(picks)):
        at = offsets[number]
        for place in range(begins[picks[number]], finishes[picks[number]]):
            out[at] = data[place]
            at += 1


@compiled
def find_word(data: Bytes, begin: int, word: Bytes) -> int:
    """The next place of a word in some bytes, -1 for none; the loop over bytes without the word is vectorised."""
    size, stop = len(word), len(data) - len(word) + 1
    at = begin
    while at < stop:
        count = min(_LOOK, stop - at)
        fronts, backs = data[at : at + count], data[at + size - 1 : at + size - 1 + count]
        any_of = np.uint8(0)
        for place in range(count):
            any_of |= np.uint8((fronts[place] == word[0]) & (backs[place] == word[size - 1]))
        if any_of:
            for place in range(at, at + count):
                if data[place] == word[0] and (data[place : place + size] == word).all():
                    return place
        at += count
    return -1
