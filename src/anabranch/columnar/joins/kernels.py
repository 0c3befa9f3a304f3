"""The compiled loops of the step join: moving windows, pairing.

The two sides are numbered 0 and 1, and their items one behind the other: first all of side 0, then all of side 1.
Values, sizes and steps are integers of one unit.
What a side holds is a span of its *log*, in which items stand in the order in which they entered; what has left the
window is taken out when the other side next looks, which costs no more than what that side then does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.kernels import Bytes, Indices, compiled
from anabranch.columnar.scan.kernels_entries import SELECTED, VOID

NEVER = np.iinfo(np.int64).max
"""No position: that of a side on which nothing waits."""
SIZE, STEP, SLACK, NEXT, SOONEST, WAITING, LOW, HIGH, ARRIVING, FIELDS = range(10)
"""The fields of a side: its window; the position it moves to next, and the first at which a waiting item enters; how
many wait; its span of the log; the number of the next item to arrive."""
MOVED, ENTER, ENTERED, HELD, HOLDS, MOVED_TO, OTHER_AT, MEETING = range(8)
"""The fields of a meeting: which side moved, the span of its log that entered, and the span that the other held; and
the positions of their windows."""


@compiled
def move(
    arrivals: Indices,
    at: int,
    ended: bool,
    values: Indices,
    status: Bytes,
    positions: Indices,
    sides: NDArray[np.int64],
    waiting: NDArray[np.int64],
    logs: NDArray[np.int64],
    meetings: NDArray[np.int64],
) -> tuple[int, int, bool]:
    """Let items arrive from arrival `at` on; gives how many meetings there were, the arrival it came to, and whether
    it is done: if not, there was no room for more meetings or in a log.

    With `ended` the windows that still hold waiting items are closed behind the last arrival.
    """
    count = 0
    while at < len(arrivals):
        side = arrivals[at]
        window = sides[side]
        if not _has_room(sides, side, logs, meetings, count):
            return count, at, False
        item = window[ARRIVING]
        window[ARRIVING] += 1
        at += 1
        if status[item] == VOID:
            continue
        value = values[item]
        reached = value - window[SLACK]
        if window[NEXT] * window[STEP] + window[SIZE] <= reached:
            count = _advance(sides, side, reached, values, positions, waiting, logs, meetings, count)
        if status[item] == SELECTED:
            wait(window, item, value, positions, waiting[side])
    while ended:
        first, second = _closing(sides[0]), _closing(sides[1])
        if first == NEVER and second == NEVER:
            break
        side = 0 if first <= second else 1
        if not _has_room(sides, side, logs, meetings, count):
            return count, at, False
        count = _advance(sides, side, min(first, second), values, positions, waiting, logs, meetings, count)
    return count, at, True


@compiled
def wait(window: Indices, item: int, value: int, positions: Indices, waiting: Indices) -> None:
    """Let a selected item wait for the first position that holds it; what no position to come holds is let go."""
    position = max(window[NEXT], _first(window, value))
    if position * window[STEP] > value:
        return
    positions[item] = position
    waiting[window[WAITING]] = item
    window[WAITING] += 1
    window[SOONEST] = min(window[SOONEST], position)


@compiled
def _first(window: Indices, value: int) -> int:
    """The first position that ends behind a value."""
    first: int = max(0, (value - window[SIZE]) // window[STEP] + 1)
    return first


@compiled
def _closing(window: Indices) -> int:
    end: int = NEVER if window[SOONEST] == NEVER else window[SOONEST] * window[STEP] + window[SIZE]
    return end


@compiled
def _has_room(
    sides: NDArray[np.int64], side: int, logs: NDArray[np.int64], meetings: NDArray[np.int64], count: int
) -> bool:
    """Whether there is room for all that one arrival may bring about."""
    window, other = sides[side], sides[1 - side]
    entering = window[HIGH] + window[WAITING] <= logs.shape[1]
    copied = 2 * other[HIGH] - other[LOW] <= logs.shape[1]
    return bool(entering and copied and count + window[WAITING] <= len(meetings))


@compiled
def _advance(
    sides: NDArray[np.int64],
    side: int,
    reached: int,
    values: Indices,
    positions: Indices,
    waiting: NDArray[np.int64],
    logs: NDArray[np.int64],
    meetings: NDArray[np.int64],
    count: int,
) -> int:
    """Move a window as far as `reached` brings it, from one position at which an item enters to the next."""
    window, other = sides[side], sides[1 - side]
    last = max(window[NEXT], _first(window, reached))
    if window[SOONEST] < last:
        trim(other, values, logs[1 - side])
    while window[SOONEST] < last:
        position = window[SOONEST]
        window[SOONEST] = NEVER
        enter = window[HIGH]
        kept = 0
        for place in range(window[WAITING]):
            item = waiting[side, place]
            if positions[item] == position:
                logs[side, window[HIGH]] = item
                window[HIGH] += 1
            else:
                waiting[side, kept] = item
                kept += 1
                window[SOONEST] = min(window[SOONEST], positions[item])
        window[WAITING] = kept
        if other[LOW] < other[HIGH]:
            meeting = meetings[count]
            meeting[MOVED], meeting[ENTER], meeting[ENTERED] = side, enter, window[HIGH]
            meeting[HELD], meeting[HOLDS] = other[LOW], other[HIGH]
            meeting[MOVED_TO], meeting[OTHER_AT] = position, other[NEXT] - 1
            count += 1
    window[NEXT] = last
    return count


@compiled
def trim(window: Indices, values: Indices, log: Indices) -> None:
    """Take out of what a side holds all that its window has left behind."""
    start = (window[NEXT] - 1) * window[STEP]
    while window[LOW] < window[HIGH] and values[log[window[LOW]]] < start:
        window[LOW] += 1
    behind = 0
    for place in range(window[LOW], window[HIGH]):
        behind += values[log[place]] < start
    if behind:  # between others, where items did not enter in the order of their values: earlier meetings need the old
        high = window[HIGH]
        for place in range(window[LOW], high):
            if values[log[place]] >= start:
                log[window[HIGH]] = log[place]
                window[HIGH] += 1
        window[LOW] = high


@compiled
def pair(
    meetings: NDArray[np.int64],
    logs: NDArray[np.int64],
    second: int,
    done: Indices,
    x: Indices,
    y: Indices,
    places: NDArray[np.int64],
) -> int:
    """The next pairs of some meetings, as many as there is room for; outer side first, each in the order of its log.

    `places` gets the positions of both windows at each pair, if it has room.

    `done` says how far it came: meetings, and in the next of them items of side 0, and with that one items of side 1.
    `second` is the number of the first item of side 1, which is 0 in `y`.
    """
    count = 0
    while done[0] < len(meetings):
        moved, enter, entered, held, holds, moved_to, other_at = meetings[done[0]]
        if moved == 0:
            outer, behind_outer, inner, behind_inner = enter, entered, held, holds
        else:
            outer, behind_outer, inner, behind_inner = held, holds, enter, entered
        while outer + done[1] < behind_outer:
            item = logs[0, outer + done[1]]
            first = inner + done[2]
            size = min(behind_inner - first, len(x) - count)
            for place in range(size):
                x[count + place] = item
                y[count + place] = logs[1, first + place] - second
            if places.shape[1]:
                places[moved, count : count + size] = moved_to
                places[1 - moved, count : count + size] = other_at
            count += size
            done[2] += size
            if first + size < behind_inner:
                return int(count)
            done[1] += 1
            done[2] = 0
        done[0] += 1
        done[1] = 0
    return int(count)
