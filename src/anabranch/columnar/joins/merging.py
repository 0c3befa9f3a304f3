"""The merge of several inputs by time (LAWS 1.2), over columns of times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anabranch.columnar.scan.kernels import Indices, compiled


def merged(times: Sequence[Indices], limits: Sequence[int]) -> Indices:
    """The inputs of the arrivals with these times, in order, as far as that is known.

    Behind its last element here, each input will bring nothing at or before the limit that it has.
    """
    bounds = np.cumsum([0, *map(len, times)])
    inputs = np.empty(bounds[-1], np.int64)
    everything = np.concatenate([np.empty(0, np.int64), *times])
    return inputs[: _merge(everything, bounds, np.array(limits, np.int64), inputs)]


@compiled
def _merge(times: Indices, bounds: Indices, limits: Indices, inputs: Indices) -> int:
    """Merge by the heads, ties to the first; gives how many arrivals there are.

    An input that has no head lets the others go on up to its limit.
    """
    heads = bounds[:-1].copy()
    known = np.iinfo(np.int64).max  # the least limit of those that have no head
    for each in range(len(limits)):
        if heads[each] == bounds[each + 1]:
            known = min(known, limits[each])
    count = 0
    while count < len(inputs):
        first = -1
        for each in range(len(heads)):
            if heads[each] < bounds[each + 1] and (first < 0 or times[heads[each]] < times[heads[first]]):
                first = each
        if times[heads[first]] > known:
            break
        inputs[count] = first
        count += 1
        heads[first] += 1
        if heads[first] == bounds[first + 1]:
            known = min(known, limits[first])
    return count
