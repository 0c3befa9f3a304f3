"""The compiled loops that make windows of panes: the span of panes of each, and the least or greatest value in each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.kernels import Indices, compiled


def window_spans(
    panes: Indices | list[int],
    following: int,
    ended: int,
    size: int,
    step: int,
    begins: Indices,
    ends: Indices,
    numbers: Indices,
) -> tuple[int, int]:
    """The windows from `following` on and before `ended` that hold a pane, as far as there is room for them.

    Window `k` holds the panes `k * step <= pane < k * step + size`; `panes` are rising.
    Returns the number of windows, which have `numbers` and whose panes lie between `begins` and `ends`, and the `k` to
    continue with.
    """
    count, held, stop, k = 0, 0, 0, following
    while count < len(begins):
        while held < len(panes) and panes[held] < k * step:
            held += 1
        if held == len(panes):
            break
        k = max(k, (panes[held] - size) // step + 1)
        if k >= ended:
            break
        while stop < len(panes) and panes[stop] < k * step + size:
            stop += 1
        begins[count], ends[count], numbers[count] = held, stop, k
        count += 1
        k += 1
    return count, k


find_windows = compiled(window_spans)


@compiled
def find_many(
    panes: Indices,
    bounds: Indices,
    following: Indices,
    ended: Indices,
    sizes: Indices,
    steps: Indices,
    begins: Indices,
    ends: Indices,
    numbers: Indices,
    counts: Indices,
    after: Indices,
) -> int:
    """Find the windows of many branches, as `window_spans` does, with rows between two bounds; there is room for all.

    Returns their number, and sets those of each branch; -1 where a pane is in no window, or in one that was answered.
    """
    count = 0
    for branch in range(len(counts)):
        first, last, size, step = bounds[branch], bounds[branch + 1], sizes[branch], steps[branch]
        for row in range(first, last):
            if panes[row] < following[branch] * step or panes[row] % step >= size:
                return -1
        mine = panes[first:last]
        found, after[branch] = find_windows(
            mine, following[branch], ended[branch], size, step, begins[count:], ends[count:], numbers[count:]
        )
        for window in range(count, count + found):
            begins[window] += first
            ends[window] += first
        counts[branch] = found
        count += found
    return count


@compiled
def find_groups(
    keys: Indices,
    panes: Indices,
    following: int,
    ended: int,
    size: int,
    step: int,
    begins: Indices,
    ends: Indices,
    numbers: Indices,
) -> int:
    """Find the groups of windows, as `window_spans` does, for the rows of each key; rows are sorted by key and pane.

    There is room for all of them; returns their number.
    """
    count, first = 0, 0
    while first < len(keys):
        last = first + 1
        while last < len(keys) and keys[last] == keys[first]:
            last += 1
        found, _ = find_windows(
            panes[first:last], following, ended, size, step, begins[count:], ends[count:], numbers[count:]
        )
        for group in range(count, count + found):
            begins[group] += first
            ends[group] += first
        count += found
        first = last
    return count


@compiled
def first_of(begins: Indices, ends: Indices, orders: Indices, found: Indices) -> None:
    """The least order in each of some rising spans; each order is read at most twice, however many spans hold it."""
    queue = np.empty(len(orders), np.int64)
    head, tail, stop = 0, 0, 0
    for span in range(len(begins)):
        while stop < ends[span]:
            while tail > head and orders[queue[tail - 1]] >= orders[stop]:
                tail -= 1
            queue[tail] = stop
            tail += 1
            stop += 1
        while queue[head] < begins[span]:
            head += 1
        found[span] = orders[queue[head]]


@compiled
def best_of(
    begins: Indices, ends: Indices, values: NDArray[np.float64], at: Indices, sign: int, found: NDArray[np.float64]
) -> None:
    """The least value in each window (the greatest where the sign is -1), of equal ones the earlier; NaN for none.

    The windows are rising.
    A value is kept as long as no later one beats it, so each is read at most twice, however many windows hold it.
    """
    queue = np.empty(len(values), np.int64)
    head, tail, stop = 0, 0, 0
    for window in range(len(begins)):
        while stop < ends[window]:
            value = sign * values[stop]
            if not np.isnan(value):
                while tail > head:
                    other = sign * values[queue[tail - 1]]
                    if value < other or (value == other and at[stop] < at[queue[tail - 1]]):
                        tail -= 1
                    else:
                        break
                queue[tail] = stop
                tail += 1
            stop += 1
        while head < tail and queue[head] < begins[window]:
            head += 1
        found[window] = values[queue[head]] if head < tail else np.nan
