"""Raw items into columns for branches, and their values as exact integers.

A branch takes items whose bytes have been cut out already and may have been held for long, so here each entry is an
item's bytes, and fits a template or does not.
Window bounds are fractions (LAWS 3.1), so values are not compared as doubles: all values, sizes and steps are brought
to one unit in which they are integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.columnar.expressions.tree import Column
from anabranch.columnar.scan import kernels
from anabranch.columnar.scan.cutter import ItemCutter
from anabranch.columnar.scan.kernels import Bytes, Indices, Places, compiled
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.stream.limits import Limits
from anabranch.stream.reading.lines import Carry

VOID, SHOWN, SELECTED = 0, 1, 2
"""An item without a place in time windows; one that only shows the progress of its stream; a selected one."""

_ZERO, _NINE, _POINT, _MINUS = b"09.-"


@compiled
def _decimals(data: Bytes, starts: Places, ends: Places, mantissas: Indices, places: Indices) -> None:
    """The digits of simple numbers, as integers, and the number of digits behind the point."""
    for item in range(len(starts)):
        mantissa, point = np.int64(0), -1
        for place in range(starts[item], ends[item]):
            byte = data[place]
            if _ZERO <= byte <= _NINE:
                mantissa = mantissa * 10 + (byte - _ZERO)
            elif byte == _POINT:
                point = place
        negative = ends[item] > starts[item] and data[starts[item]] == _MINUS
        mantissas[item] = -mantissa if negative else mantissa
        places[item] = ends[item] - 1 - point if point >= 0 else 0


LARGEST = 1 << 60
"""The limit of values in units: sums of a few of them still fit into an int64."""
MOST_BYTES = 1 << 31
"""The limit of the bytes of a batch: places are int32."""


def shred_entries(
    data: bytes, ends: Indices, wanted: WantedColumns, limits: Limits, *, with_marks: bool = False
) -> Shredded:
    """Take consecutive items in `data` apart, each of which ends at one of `ends`."""
    assert len(data) < MOST_BYTES
    cutter = ItemCutter(np.frombuffer(data, np.uint8), wanted, limits, len(ends))
    cutter.cut_all(ends)
    found = cutter.finished(with_marks=with_marks)
    return Shredded(wanted, found.data, cutter.raw, 0, Carry(), *found.columns, found.marks, {}, limits, found.frames)


def shredded_again(shredded: Shredded, wanted: WantedColumns) -> tuple[Shredded, Indices]:
    """The entries of a batch that fit, taken apart for other columns, and their numbers."""
    picks = np.flatnonzero(shredded.fits)
    offsets = np.zeros(len(picks) + 1, np.int32)
    np.cumsum(shredded.finishes[picks] - shredded.begins[picks], out=offsets[1:])
    raw = np.empty(offsets[-1], np.uint8)
    kernels.gather(shredded.raw, shredded.begins, shredded.finishes, picks, offsets, raw)
    ends = offsets[1:].astype(np.int64)
    return shred_entries(raw.tobytes(), ends, wanted, shredded.limits, with_marks=True), picks


@dataclass(frozen=True, slots=True)
class Decimals:
    """Exact numbers by entry: digits and the number of them behind the point, or a fraction in `others`."""

    digits: Indices
    places: Indices
    others: Mapping[int, Fraction]

    @staticmethod
    def read(
        shredded: Shredded, column: Column | None, others: Mapping[int, Fraction], count: int, parts: int = 1
    ) -> Decimals:
        """The numbers in a column of the first `count` entries; `others` gives numbers that are not in the column.

        A number in the column is divided by `parts`, a power of ten.
        Where a number is neither clear in the column nor in `others`, it is 0.
        """
        digits, places = np.zeros(count, np.int64), np.zeros(count, np.int64)
        if column is not None:
            row = shredded.row(column)
            spans = shredded.starts[row, :count], shredded.ends[row, :count]
            _decimals(shredded.data, *spans, digits, places)
            unclear = np.isnan(shredded.values[row, :count])
            places += len(str(parts)) - 1
            digits[unclear] = places[unclear] = 0
        return Decimals(digits, places, others)

    def part(self, start: int, end: int) -> Decimals:
        """The numbers of the entries `start` to `end`."""
        others = {entry - start: value for entry, value in self.others.items() if start <= entry < end}
        return Decimals(self.digits[start:end], self.places[start:end], others)

    @property
    def denominator(self) -> int:
        """The least factor that makes all numbers integers."""
        most = int(self.places.max(initial=0))
        return math.lcm(10**most, *(each.denominator for each in self.others.values()))

    def in_units(self, unit: int) -> Indices:
        """All numbers times `unit`; OverflowError where one is too large."""
        found = np.zeros(len(self.digits), np.int64)
        for places in map(int, np.unique(self.places)):
            chosen = self.places == places
            factor = unit // 10**places
            if not in_unit(Fraction(int(np.abs(self.digits[chosen]).max())), factor):
                continue  # all are 0, and the factor may be more than an int64 holds
            found[chosen] = self.digits[chosen] * factor
        for entry, value in self.others.items():
            found[entry] = in_unit(value, unit)
        return found


def in_unit(value: Fraction, unit: int) -> int:
    """An exact number times `unit`, rounded down; OverflowError where it is too large."""
    found = math.floor(value * unit)
    if abs(found) >= LARGEST:
        raise OverflowError
    return found


def common_unit(columns: Sequence[Decimals], others: Sequence[Fraction]) -> int:
    """The unit in which all these numbers are integers."""
    return math.lcm(*(each.denominator for each in columns), *(each.denominator for each in others))
