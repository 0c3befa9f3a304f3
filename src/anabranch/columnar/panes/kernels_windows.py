"""The compiled loops that make windows of panes: rows of one pane merged, windows found, and what they hold taken.

Shapes: what is known of aggregated paths is in arrays of one row per path and one column per pane.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.panes.kernels import HALF, LOW
from anabranch.columnar.scan.kernels import Indices, compiled


@compiled
def merge(
    picks: Indices,
    groups: Indices,
    orders: Indices,
    counts: Indices,
    high: Indices,
    low: Indices,
    least: NDArray[np.float64],
    least_at: Indices,
    greatest: NDArray[np.float64],
    greatest_at: Indices,
    firsts: Indices,
    into_counts: Indices,
    into_high: Indices,
    into_low: Indices,
    into_least: NDArray[np.float64],
    into_least_at: Indices,
    into_greatest: NDArray[np.float64],
    into_greatest_at: Indices,
) -> None:
    """Merge the columns picked into those of their groups; `firsts` says for each group which column is its first.

    What is merged into holds the first columns already; another one that stands before it in the stream becomes that.
    """
    for number in range(len(picks)):
        pick, group = picks[number], groups[number]
        if orders[pick] < orders[firsts[group]]:
            firsts[group] = pick
        for path in range(len(counts)):
            into_counts[path, group] += counts[path, pick]
            total = into_low[path, group] + low[path, pick]
            into_low[path, group] = total & LOW
            into_high[path, group] += high[path, pick] + (total >> HALF)
            value, at = least[path, pick], least_at[path, pick]
            best = into_least[path, group]
            if value < best or np.isnan(best) or (value == best and at < into_least_at[path, group]):
                into_least[path, group], into_least_at[path, group] = value, at
            value, at = greatest[path, pick], greatest_at[path, pick]
            best = into_greatest[path, group]
            if value > best or np.isnan(best) or (value == best and at < into_greatest_at[path, group]):
                into_greatest[path, group], into_greatest_at[path, group] = value, at


@compiled
def find_windows(
    panes: Indices,
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
    Gives how many windows there are, which have `numbers` and whose panes lie between `begins` and `ends`, and the `k`
    to go on with.
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


@compiled
def best_of(
    begins: Indices, ends: Indices, values: NDArray[np.float64], at: Indices, sign: int, found: NDArray[np.float64]
) -> None:
    """The least value in each window (the greatest where the sign is -1), of equal ones the earlier; NaN for none.

    The windows move on.
    A value is kept as long as none behind it beats it, so each is looked at twice however many windows hold it.
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
