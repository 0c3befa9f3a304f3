"""The compiled loops of joins: merging inputs by time, moving windows, pairing items, laying out answers of tuples.

The sides are numbered from 0 on, and their items one behind the other: first all of side 0, then all of side 1.
Several sides may read one input: an item that arrives comes to each of them in turn (LAWS 3.5).
Values, sizes and steps are integers of one unit.
The items that a side holds are a span of its *log*, in which items stand in the order in which they entered; items that
have left the window are removed when another side next reads the log, at a cost that this reading has anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.items.kernels import ReadyPieces
from anabranch.columnar.scan.entries import SELECTED, VOID
from anabranch.columnar.scan.kernels import Bytes, Indices, Numbers, compiled, compiled_inline, compiled_lean

NEVER = np.iinfo(np.int64).max
"""The position of a side on which no item waits."""
INPUT, SIZE, STEP, TIMED, NEXT, SOONEST, WAITING, LOW, HIGH, ARRIVING, FIELDS = range(11)
"""The fields of a side: the input that it reads; its window, and whether it closes at the end; the position it moves to
next, and the first at which a waiting item enters; how many wait; its span of the log; the number of the next item to
arrive."""
MOVED = 0
"""The first field of a meeting: the side that moved.
The others are, for each side, begin and end of the span of its log that meets, and the position of its window."""


class LaneState(NamedTuple):
    """The sides of a join: their items by number, and by side its fields, the items that wait, and its log."""

    values: Indices
    reached: Indices
    """How far the window may move when each item has arrived."""
    status: Bytes
    positions: Indices
    """The position at which each waiting item will enter."""
    sides: NDArray[np.int64]
    waiting: NDArray[np.int64]
    logs: NDArray[np.int64]


@compiled
def move(arrivals: Indices, done: Indices, ended: bool, lanes: LaneState, meetings: NDArray[np.int64]) -> int:
    """Let items arrive, each from the input that is given; returns the number of meetings.

    `done` is the progress: arrivals, the sides that have taken the next of them, and whether that is all; if not, there
    was no room for more meetings or in a log.
    With `ended` the windows of time that still hold waiting items are closed behind the last arrival.
    """
    values, reached, status, positions, sides, waiting, _ = lanes
    count = 0
    while done[0] < len(arrivals):
        for side in range(done[1], len(sides)):
            window = sides[side]
            if window[INPUT] != arrivals[done[0]]:
                continue
            if not _has_room(lanes, side, meetings, count):
                done[1] = side
                return count
            item = window[ARRIVING]
            window[ARRIVING] += 1
            if status[item] == VOID:
                continue
            if status[item] == SELECTED:
                wait(window, item, values[item], positions, waiting[side])
            if window[NEXT] * window[STEP] + window[SIZE] <= reached[item]:
                count = _advance(lanes, side, reached[item], meetings, count)
        done[0] += 1
        done[1] = 0
    while ended:
        first = -1
        for side in range(len(sides)):
            if sides[side, TIMED] and (first < 0 or _closing(sides[side]) < _closing(sides[first])):
                first = side
        if first < 0 or _closing(sides[first]) == NEVER:
            break
        if not _has_room(lanes, first, meetings, count):
            return count
        count = _advance(lanes, first, _closing(sides[first]), meetings, count)
    done[2] = 1
    return count


@compiled
def wait(window: Indices, item: int, value: int, positions: Indices, waiting: Indices) -> None:
    """Let a selected item wait for the first position that holds it; an item that none holds is dropped."""
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
    """Whether there is room for all meetings and log entries that one arrival may cause at a side."""
    logs, sides = lanes.logs, lanes.sides
    for each in range(len(sides)):
        window = sides[each]
        more = window[WAITING] + 1 if each == side else window[HIGH] - window[LOW]  # items that enter, or are copied
        if window[HIGH] + more > logs.shape[1]:
            return False
    return bool(count + sides[side, WAITING] + 1 <= len(meetings))


@compiled
def _advance(lanes: LaneState, side: int, reached: int, meetings: NDArray[np.int64], count: int) -> int:
    """Move a window as far as `reached` allows, from one position at which an item enters to the next."""
    values, _, _, positions, sides, waiting, logs = lanes
    window = sides[side]
    last = max(window[NEXT], _first(window, reached))
    meets = True
    if window[SOONEST] < last:
        for other in range(len(sides)):
            if other != side:
                trim(sides[other], values, logs[other])
                meets = meets and sides[other, LOW] < sides[other, HIGH]
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
        if meets:
            meeting = meetings[count]
            meeting[MOVED] = side
            for each in range(len(sides)):
                at = 1 + 3 * each
                meeting[at], meeting[at + 1], meeting[at + 2] = (
                    sides[each, LOW],
                    sides[each, HIGH],
                    sides[each, NEXT] - 1,
                )
            meeting[1 + 3 * side], meeting[3 + 3 * side] = enter, position
            count += 1
    window[NEXT] = last
    return count


@compiled
def trim(window: Indices, values: Indices, log: Indices) -> None:
    """Remove the items from a side's log that its window has left behind."""
    start = (window[NEXT] - 1) * window[STEP]
    while window[LOW] < window[HIGH] and values[log[window[LOW]]] < start:
        window[LOW] += 1
    behind = 0
    for place in range(window[LOW], window[HIGH]):
        behind += values[log[place]] < start
    if behind:  # items entered out of order: earlier meetings need the old span, so the rest is copied
        high = window[HIGH]
        for place in range(window[LOW], high):
            if values[log[place]] >= start:
                log[window[HIGH]] = log[place]
                window[HIGH] += 1
        window[LOW] = high


AT_LEAST, MORE, SAME = range(3)
"""The tests of guards on two numbers."""


class Guards(NamedTuple):
    """Comparisons that a tuple must not fail: no query selects one that does, so it is never formed.

    A comparison with NaN may hold.
    """

    tests: NDArray[np.int64]
    """By guard: its test, and its two sides."""
    numbers: NDArray[np.float64]
    """By guard, two rows: the numbers of both sides by item, each from 0 on."""


@compiled
def _holds(test: int, left: float, right: float) -> bool:
    """Whether a comparison may hold."""
    if test == AT_LEAST:
        return not left < right
    if test == MORE:
        return not left <= right
    return left == right or left != left or right != right


@compiled
def tuples(
    meetings: NDArray[np.int64],
    logs: NDArray[np.int64],
    bases: Indices,
    guards: Guards,
    done: Indices,
    picks: NDArray[np.int64],
    places: NDArray[np.int64],
) -> int:
    """The next tuples of some meetings, as many as there is room for; outer side first, each in the order of its log.

    Tuples that fail a guard are left out; `picks` gets the items of the others, by side, each numbered from its side's
    base on, and `places` the positions of all windows, if it has room.
    `done` is the progress: meetings, and in the next of them items of each side.
    """
    count, sides = 0, len(bases)
    last = sides - 1
    while done[0] < len(meetings):
        meeting = meetings[done[0]]
        while True:
            start, end = meeting[1 + 3 * last] + done[1 + last], meeting[2 + 3 * last]
            inner = -1
            for guard in range(len(guards.tests)):
                test, left, right = guards.tests[guard]
                if left == last or right == last:
                    inner = guard if inner < 0 else inner
                    continue
                x = logs[left, meeting[1 + 3 * left] + done[1 + left]] - bases[left]
                y = logs[right, meeting[1 + 3 * right] + done[1 + right]] - bases[right]
                if not _holds(test, guards.numbers[2 * guard, x], guards.numbers[2 * guard + 1, y]):
                    start = end
            size = min(end - start, picks.shape[1] - count)
            before = count
            if inner < 0:
                for place in range(start, start + size):
                    picks[last, count] = logs[last, place] - bases[last]
                    count += 1
            else:
                count = _guarded(guards, inner, meeting, logs, bases, done, start, start + size, picks, count)
            for side in range(last):
                picks[side, before:count] = logs[side, meeting[1 + 3 * side] + done[1 + side]] - bases[side]
            if places.shape[1]:
                for side in range(sides):
                    places[side, before:count] = meeting[3 + 3 * side]
            if start + size < end:
                done[1 + last] += size
                if count == picks.shape[1]:
                    return int(count)
                continue
            done[1 + last] = 0
            side = last - 1
            while side >= 0:
                done[1 + side] += 1
                if meeting[1 + 3 * side] + done[1 + side] < meeting[2 + 3 * side]:
                    break
                done[1 + side] = 0
                side -= 1
            if side < 0:
                break
        done[0] += 1
    return int(count)


@compiled
def _guarded(
    guards: Guards,
    guard: int,
    meeting: Indices,
    logs: NDArray[np.int64],
    bases: Indices,
    done: Indices,
    start: int,
    end: int,
    picks: NDArray[np.int64],
    count: int,
) -> int:
    """Pick the items of the last side that pass a guard with an item of another side; returns the number of tuples."""
    last = len(bases) - 1
    test, left, right = guards.tests[guard]
    other, mine, theirs = (right, 2 * guard, 2 * guard + 1) if left == last else (left, 2 * guard + 1, 2 * guard)
    numbers = guards.numbers[mine]
    base = bases[last]
    it = guards.numbers[theirs, logs[other, meeting[1 + 3 * other] + done[1 + other]] - bases[other]]
    if test == SAME:
        for place in range(start, end):
            item = logs[last, place] - base
            picks[last, count] = item
            count += numbers[item] == it or numbers[item] != numbers[item] or it != it
    elif left == last:
        for place in range(start, end):
            item = logs[last, place] - base
            picks[last, count] = item
            count += not (numbers[item] < it or (test == MORE and numbers[item] == it))
    else:
        for place in range(start, end):
            item = logs[last, place] - base
            picks[last, count] = item
            count += not (it < numbers[item] or (test == MORE and numbers[item] == it))
    return count


@compiled
def text_numbers(texts: TextColumn, found: Numbers) -> None:
    """A number for each text, the same for equal ones and hardly ever for others (FNV-1a, the bits of a double)."""
    for row in range(len(found)):
        number = np.uint64(0xCBF29CE484222325)
        for place in range(texts.starts[row], texts.ends[row]):
            number = (number ^ np.uint64(texts.data[place])) * np.uint64(0x100000001B3)
        found[row] = np.float64(number >> np.uint64(11))


# --- answers ---------------------------------------------------------------------------------------------------


STRIDE = 16
MADE, WRAP = -1, -2
"""Kinds of runs beside those of a side."""
_CLOSE, _SLASH = b">/"


class RunTexts(NamedTuple):
    """The texts of the runs of a result, for all items of all sides, and for the tuples that are answered.

    A run is (side, place): its text for an item lies in the store between two `edges`, those of item 0 at `place`.
    A run with the side `MADE` has a row of spans by tuple, in the bytes `made`; one with `WRAP` stands before the runs
    of an element (`place` is their number), behind which its end tag follows: if they are empty, `/>` replaces both.
    """

    runs: NDArray[np.int64]
    edges: Indices
    store: Bytes
    made: Bytes
    spans: Indices
    """By row and tuple: where a computed text starts and ends, in two rows each."""


@compiled_inline
def _run_edges(texts: RunTexts, run: int, picks: NDArray[np.int64], number: int) -> tuple[int, int]:
    """Where the bytes of a run start and end for a tuple."""
    side, place = texts.runs[run, 0], texts.runs[run, 1]
    if side == MADE:
        return texts.spans[2 * place, number], texts.spans[2 * place + 1, number]
    edge = place + picks[side, number]
    return texts.edges[edge], texts.edges[edge + 1]


@compiled_lean
def _is_empty(texts: RunTexts, run: int, picks: NDArray[np.int64], number: int) -> bool:
    """Whether the runs of an element are all empty."""
    for inside in range(run + 1, run + 1 + texts.runs[run, 1]):
        start, end = _run_edges(texts, inside, picks, number)
        if start < end:
            return False
    return True


@compiled_lean
def measure_tuples(
    texts: RunTexts, picks: NDArray[np.int64], order: Indices, ready: ReadyPieces, offsets: Indices
) -> None:
    """Where each piece of an answer ends that `lay_out_tuples` is going to write; `offsets[0]` is 0.

    `order` are the numbers of tuples, or, below 0, the complements of the numbers of complete pieces.
    """
    for number in range(len(order)):
        pick = order[number]
        size = 0
        if pick < 0:
            size = ready.bounds[-pick] - ready.bounds[-pick - 1]
        else:
            run = 0
            while run < len(texts.runs):
                if texts.runs[run, 0] == WRAP:
                    size += 1
                    if _is_empty(texts, run, picks, pick):
                        size += 1
                        run += texts.runs[run, 1] + 1
                else:
                    start, end = _run_edges(texts, run, picks, pick)
                    size += end - start
                run += 1
        offsets[number + 1] = offsets[number] + size


@compiled_lean
def lay_out_tuples(texts: RunTexts, picks: NDArray[np.int64], order: Indices, ready: ReadyPieces, out: Bytes) -> None:
    """Write the pieces of an answer one behind the other; the arguments are those of `measure_tuples`.

    Runs are copied `STRIDE` bytes at a time; surplus bytes are overwritten by the next copy, so the store, `made` and
    `out` have that much room behind their ends.
    """
    at = np.uint64(0)  # unsigned, so that no index is checked for being negative
    for number in range(len(order)):
        pick = order[number]
        if pick < 0:
            for place in range(ready.bounds[-pick - 1], ready.bounds[-pick]):
                out[at] = ready.data[place]
                at += np.uint64(1)
            continue
        run = 0
        while run < len(texts.runs):
            if texts.runs[run, 0] == WRAP:
                if _is_empty(texts, run, picks, pick):
                    out[at] = _SLASH
                    at += np.uint64(1)
                    run += texts.runs[run, 1] + 1
                out[at] = _CLOSE
                at += np.uint64(1)
            else:
                start, end = _run_edges(texts, run, picks, pick)
                size = np.uint64(end - start)
                _stride(texts.made if texts.runs[run, 0] == MADE else texts.store, np.uint64(start), size, out, at)
                at += size
            run += 1


@compiled_inline
def _stride(source: Bytes, start: np.uint64, size: np.uint64, out: Bytes, at: np.uint64) -> None:
    """Copy `size` bytes, rounded up to strides."""
    done = np.uint64(0)
    while done < size:
        for place in range(STRIDE):
            out[at + done + np.uint64(place)] = source[start + done + np.uint64(place)]
        done += np.uint64(STRIDE)


# --- the merge of inputs ---------------------------------------------------------------------------------------


def merged(times: Sequence[Indices], limits: Sequence[int]) -> Indices:
    """The inputs of the arrivals with these times, in order, as far as that is known.

    Behind its last element here, an input brings nothing at or before its limit.
    """
    bounds = np.cumsum([0, *map(len, times)])
    inputs = np.empty(bounds[-1], np.int64)
    everything = np.concatenate([np.empty(0, np.int64), *times])
    return inputs[: _merge(everything, bounds, np.array(limits, np.int64), inputs)]


@compiled
def _merge(times: Indices, bounds: Indices, limits: Indices, inputs: Indices) -> int:
    """Merge by the heads, ties to the first; returns the number of arrivals.

    An input without a head lets the others advance up to its limit.
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
