"""The compiled loops of joins: merging inputs by time, moving windows, pairing, laying the answers of pairs out.

The two sides are numbered 0 and 1, and their items one behind the other: first all of side 0, then all of side 1.
Values, sizes and steps are integers of one unit.
What a side holds is a span of its *log*, in which items stand in the order in which they entered; what has left the
window is taken out when the other side next looks, which costs no more than what that side then does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.items.kernels import ReadyPieces
from anabranch.columnar.scan.entries import SELECTED, VOID
from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, compiled

NEVER = np.iinfo(np.int64).max
"""No position: that of a side on which nothing waits."""
SIZE, STEP, SLACK, NEXT, SOONEST, WAITING, LOW, HIGH, ARRIVING, FIELDS = range(10)
"""The fields of a side: its window; the position it moves to next, and the first at which a waiting item enters; how
many wait; its span of the log; the number of the next item to arrive."""
MOVED, ENTER, ENTERED, HELD, HOLDS, MOVED_TO, OTHER_AT, MEETING = range(8)
"""The fields of a meeting: which side moved, the span of its log that entered, and the span that the other held; and
the positions of their windows."""


class LaneState(NamedTuple):
    """Both sides of a join: their items by number, and by side its fields, the items that wait, and its log."""

    values: Indices
    status: Bytes
    positions: Indices
    """Where each item that waits will enter."""
    sides: NDArray[np.int64]
    waiting: NDArray[np.int64]
    logs: NDArray[np.int64]


@compiled
def move(
    arrivals: Indices, at: int, ended: bool, lanes: LaneState, meetings: NDArray[np.int64]
) -> tuple[int, int, bool]:
    """Let items arrive from arrival `at` on; gives how many meetings there were, the arrival it came to, and whether
    it is done: if not, there was no room for more meetings or in a log.

    With `ended` the windows that still hold waiting items are closed behind the last arrival.
    """
    values, status, positions, sides, waiting, _ = lanes
    count = 0
    while at < len(arrivals):
        side = arrivals[at]
        window = sides[side]
        if not _has_room(lanes, side, meetings, count):
            return count, at, False
        item = window[ARRIVING]
        window[ARRIVING] += 1
        at += 1
        if status[item] == VOID:
            continue
        value = values[item]
        reached = value - window[SLACK]
        if window[NEXT] * window[STEP] + window[SIZE] <= reached:
            count = _advance(lanes, side, reached, meetings, count)
        if status[item] == SELECTED:
            wait(window, item, value, positions, waiting[side])
    while ended:
        first, second = _closing(sides[0]), _closing(sides[1])
        if first == NEVER and second == NEVER:
            break
        side = 0 if first <= second else 1
        if not _has_room(lanes, side, meetings, count):
            return count, at, False
        count = _advance(lanes, side, min(first, second), meetings, count)
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
def _has_room(lanes: LaneState, side: int, meetings: NDArray[np.int64], count: int) -> bool:
    """Whether there is room for all that one arrival may bring about."""
    logs, window, other = lanes.logs, lanes.sides[side], lanes.sides[1 - side]
    entering = window[HIGH] + window[WAITING] <= logs.shape[1]
    copied = 2 * other[HIGH] - other[LOW] <= logs.shape[1]
    return bool(entering and copied and count + window[WAITING] <= len(meetings))


@compiled
def _advance(lanes: LaneState, side: int, reached: int, meetings: NDArray[np.int64], count: int) -> int:
    """Move a window as far as `reached` brings it, from one position at which an item enters to the next."""
    values, _, positions, sides, waiting, logs = lanes
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


# --- pairs -----------------------------------------------------------------------------------------------------


STRIDE = 16


@compiled
def same_text(left: TextColumn, picks: Indices, right: TextColumn, other_picks: Indices, found: Flags) -> None:
    """Whether texts of one side are those of another, pair by pair."""
    for number in range(len(found)):
        one, other = picks[number], other_picks[number]
        start, length = left.starts[one], left.ends[one] - left.starts[one]
        other_start = right.starts[other]
        same = right.ends[other] - other_start == length
        place = 0
        while same and place < length:
            same = left.data[start + place] == right.data[other_start + place]
            place += 1
        found[number] = same


class RunTexts(NamedTuple):
    """What the runs of a result give for all items of both sides.

    A run is (side, place): the bytes it takes of an item stand in the store between two `edges`, of which item 0's are
    at `place`.
    """

    runs: NDArray[np.int64]
    edges: Indices
    store: Bytes


class ItemPairs(NamedTuple):
    """Pairs of items by their numbers."""

    x: Indices
    y: Indices


@compiled
def measure_pairs(texts: RunTexts, pairs: ItemPairs, picks: Indices, ready: ReadyPieces, offsets: Indices) -> None:
    """Where each piece of an answer ends that `lay_out_pairs` is going to write; `offsets[0]` is 0.

    A pick is the number of a pair, or, below 0, the complement of the number of a piece that is ready.
    """
    runs, edges, _ = texts
    for number in range(len(picks)):
        pick = picks[number]
        size = 0
        if pick < 0:
            size = ready.bounds[-pick] - ready.bounds[-pick - 1]
        else:
            for run in range(len(runs)):
                edge = runs[run, 1] + (pairs.y[pick] if runs[run, 0] else pairs.x[pick])
                size += edges[edge + 1] - edges[edge]
        offsets[number + 1] = offsets[number] + size


@compiled
def lay_out_pairs(texts: RunTexts, pairs: ItemPairs, picks: Indices, ready: ReadyPieces, out: Bytes) -> None:
    """Write the pieces of an answer one behind the other; what the arguments are says `measure_pairs`.

    Runs are copied `STRIDE` bytes at a time; what is too much is overwritten by what follows, so `store` and `out`
    have that much room behind their ends.
    """
    runs, edges, store = texts
    at = np.uint64(0)  # unsigned, because then no place has to be looked at twice for being negative
    for number in range(len(picks)):
        pick = picks[number]
        if pick < 0:
            for place in range(ready.bounds[-pick - 1], ready.bounds[-pick]):
                out[at] = ready.data[place]
                at += np.uint64(1)
            continue
        for run in range(len(runs)):
            edge = runs[run, 1] + (pairs.y[pick] if runs[run, 0] else pairs.x[pick])
            start = np.uint64(edges[edge])
            size = np.uint64(edges[edge + 1]) - start
            done = np.uint64(0)
            while done < size:
                for place in range(STRIDE):
                    out[at + done + np.uint64(place)] = store[start + done + np.uint64(place)]
                done += np.uint64(STRIDE)
            at += size


# --- the merge of inputs ---------------------------------------------------------------------------------------


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
