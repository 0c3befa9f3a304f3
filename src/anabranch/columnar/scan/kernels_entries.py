"""The compiled loops over raw entries: taking them apart, reading exact numbers."""

from __future__ import annotations

import numpy as np

from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Numbers, Places, compiled, shred

VOID, SHOWN, SELECTED = 0, 1, 2
"""An item without a place in time windows; one that only shows how far its stream is; one that is selected."""

_ZERO, _NINE, _POINT, _MINUS = b"09.-"


@compiled
def shred_entries(
    data: Bytes,
    ends: Indices,
    pieces: Bytes,
    bounds: Indices,
    slots: Indices,
    numeric: Flags,
    plain: Bytes,
    longest: int,
    starts: Places,
    finishes: Places,
    values: Numbers,
    fits: Flags,
) -> None:
    """Like `kernels.shred`, for entries that stand one behind the other and end at `ends`: each fits, or does not."""
    begins, behind = np.empty(len(fits) + 1, np.int32), np.empty(len(fits) + 1, np.int32)
    begin = 0
    for entry in range(len(fits)):
        end = ends[entry]
        count, _ = shred(
            data, begin, end, False, pieces, bounds, slots, numeric, plain, longest,
            starts, finishes, values, begins, behind, fits[: entry + 1], entry,
        )  # fmt: skip
        fits[entry] = count == entry + 1 and begins[entry] == begin and behind[entry] == end
        begin = end


@compiled
def decimals(data: Bytes, starts: Places, ends: Places, mantissas: Indices, places: Indices) -> None:
    """The digits of numbers that were read as simple ones, and how many of them stand behind the point."""
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
