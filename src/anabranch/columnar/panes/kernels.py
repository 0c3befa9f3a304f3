"""The compiled loops of panes: numbers of columns as exact integers, added up by pane.

Texts of up to 18 digits are read as integers with their decimal places.
Where only the double is known that `number_at` (`columnar/scan/kernels.py`) read from a text of at most 15 digits, it
stands for exactly one such decimal, which can be recovered: it is the integer nearest to `value * 10**places`, if
this divided by `10**places` gives the double again.
Below 2**50 this is exact: the product is less than a quarter away from the integer if the text has no more places than
asked for, and if it has more, the quotient is another double, because decimals of 15 digits lie further apart.

Guarantees: a number that is called exact is the decimal of the text; sums do not overflow below 2**31 values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.match.kernels import Hits
from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Numbers, Places, compiled, compiled_inline

MOST_PLACES = 18
MOST_TICKS = 1 << 60
_POWERS = np.array([10**power for power in range(MOST_PLACES + 1)], np.int64)
_MINUS, _PLUS, _POINT, _ZERO, _NINE = b"-+.09"
_LARGEST = float(1 << 50)
NODES = 20
"""The order of a node is the number of its entry and, in the lowest so many bits, the number of the node in it."""
HALF = 32
LOW = (1 << HALF) - 1


class Statistics(NamedTuple):
    """The partial aggregates of paths, by pane: arrays of one row per path and one column per pane."""

    counts: Indices
    high: Indices
    low: Indices
    """The halves of sums, in units of 10**-places."""
    places: Indices
    least: NDArray[np.float64]
    least_at: Indices
    greatest: NDArray[np.float64]
    greatest_at: Indices
    """NaN where there is no value, or it is not needed; and the places of the values in the stream."""

    @staticmethod
    def empty(paths: int, count: int) -> Statistics:
        """Statistics without values, to be filled in."""
        counts, high, low, places, least_at, greatest_at = (np.zeros((paths, count), np.int64) for _ in range(6))
        least, greatest = (np.full((paths, count), np.nan) for _ in range(2))
        return Statistics(counts, high, low, places, least, least_at, greatest, greatest_at)

    def each(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Statistics:
        """The statistics with a function applied to each array."""
        return Statistics(*map(function, self))


def exact_ticks(values: Numbers, places: int) -> tuple[Indices, Flags]:
    """Decimals in units of `10**-places`, and which of them are exact."""
    unit = float(10**places)
    with np.errstate(over="ignore"):  # what is too large is not exact
        ticks = np.rint(values * unit)
    exact = (np.abs(ticks) < _LARGEST) & (ticks / unit == values)
    return np.where(exact, ticks, 0.0).astype(np.int64), exact


def best_places(values: Numbers) -> int:
    """The number of decimal places by which most of some decimals are exact."""
    best, most, all_of_them = 0, 0, int(np.count_nonzero(np.isfinite(values)))
    for places in range(MOST_PLACES + 1):
        able = int(np.count_nonzero(exact_ticks(values, places)[1]))
        if able > most:
            best, most = places, able
        if most == all_of_them:
            break
    return best


@compiled
def read_decimals(data: Bytes, starts: Places, ends: Places, mantissas: Indices, places: Indices) -> None:
    """Texts as integers (`mantissas`) with decimal places; -1 places for other texts than decimals of few digits."""
    for item in range(len(starts)):
        at, stop = starts[item], ends[item]
        negative = at < stop and data[at] == _MINUS
        if negative or (at < stop and data[at] == _PLUS):
            at += 1
        mantissa = np.int64(0)
        digits, point = 0, -1
        while at < stop and digits <= MOST_PLACES:
            byte = data[at]
            if _ZERO <= byte <= _NINE:
                mantissa = mantissa * 10 + (byte - _ZERO)
                digits += 1
            elif byte == _POINT and point < 0:
                point = digits
            else:
                break
            at += 1
        mantissas[item] = -mantissa if negative else mantissa
        places[item] = -1
        if at == stop and 0 < digits <= MOST_PLACES:
            places[item] = digits - point if point >= 0 else 0


def text_ticks(mantissas: Indices, given: Indices, places: int) -> tuple[Indices, Flags]:
    """Decimals with `given` places each, in units of `10**-places`, and which of them are exact."""
    shift = places - given
    exact = (given >= 0) & (shift >= 0)
    power = _POWERS[np.where(exact, shift, 0)]
    exact &= np.abs(mantissas) <= MOST_TICKS // power
    return np.where(exact, mantissas * np.where(exact, power, 0), 0), exact


def totals(high: Indices, low: Indices) -> list[int]:
    """Sums in two halves, put together."""
    return [(upper << HALF) + lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)]


def halves(total: int) -> tuple[int, int]:
    """A sum in the two halves that `totals` puts together."""
    return total >> HALF, total & LOW


@compiled_inline
def _pane_at(tick: int, width: int, step: int, pane: int, phase: int, high: int) -> tuple[int, int, int, int]:
    """The pane of a value that is not in `pane`, its place in a step, and its bounds; mostly it is the next one."""
    if high <= tick < high + width:
        return pane + 1, 0 if phase + 1 == step else phase + 1, high, high + width
    pane = tick // width
    return pane, pane % step if step > 0 else 0, pane * width, (pane + 1) * width


@compiled
def place(
    hits: Hits,
    members: Indices,
    axes: Indices,
    states: Bytes,
    ticks: Indices,
    factors: Indices,
    widths: Indices,
    sizes: Indices,
    steps: Indices,
    rows: Indices,
    row_conditions: Indices,
    row_panes: Indices,
    row_entries: Indices,
) -> int:
    """Give a row to each run of hits of a member in one pane; returns the number of rows.

    `members` is -1 for conditions that are not counted.
    `rows` is by hit, -1 for none: an entry is left out (its state is not 0), or no window holds its pane.
    Pane `p` of an axis is where `p <= tick * factor / width < p + 1`; most hits are in the pane of the one before.
    A step of 0 stands for sessions, which use every pane.
    Without an axis, hits are numbered instead, and each has a row.
    """
    count = 0
    for condition in range(len(members)):
        first, last = hits.bounds[condition], hits.bounds[condition + 1]
        axis, current = axes[condition], -1
        if members[condition] < 0:
            rows[first:last] = -1
            continue
        if axis < 0:
            for hit in range(first, last):
                row_conditions[count], row_panes[count] = condition, hit - first
                row_entries[count] = hits.entries[hit]
                rows[hit] = count
                count += 1
            continue
        factor, width, size, step = factors[condition], widths[condition], sizes[condition], steps[condition]
        pane, phase, low, high = -1, step - 1, 0, 0
        for hit in range(first, last):
            entry = hits.entries[hit]
            if states[axis, entry]:
                rows[hit] = -1
                continue
            tick = ticks[axis, entry] * factor
            if not low <= tick < high:
                pane, phase, low, high = _pane_at(tick, width, step, pane, phase, high)
                if step > 0 and (pane < 0 or phase >= size):
                    current = -1
                else:
                    row_conditions[count], row_panes[count], row_entries[count] = condition, pane, entry
                    current = count
                    count += 1
            rows[hit] = current
    return count


@compiled
def place_groups(
    hits: Hits,
    members: Indices,
    key_rows: Indices,
    keys: Indices,
    row_keys: Indices,
    seed: int,
    slots: Indices,
    axes: Indices,
    states: Bytes,
    ticks: Indices,
    factors: Indices,
    widths: Indices,
    sizes: Indices,
    steps: Indices,
    rows: Indices,
    row_conditions: Indices,
    row_panes: Indices,
    row_entries: Indices,
) -> int:
    """Give a row to the hits of a member in one pane with one key, where windows are grouped; otherwise as `place`.

    `keys` are by entry, in the row that each condition has in `key_rows`.
    `slots` is a hash table of -1, whose size is a power of two and at least twice the number of hits; `seed` is an odd
    random number, which writers of items cannot know.
    """
    mask = len(slots) - 1
    count = 0
    for condition in range(len(members)):
        first, last = hits.bounds[condition], hits.bounds[condition + 1]
        if members[condition] < 0:
            rows[first:last] = -1
            continue
        axis, width, size, step = axes[condition], widths[condition], sizes[condition], steps[condition]
        pane, phase, low, high = -1, step - 1, 0, 0
        for hit in range(first, last):
            entry = hits.entries[hit]
            key = keys[key_rows[condition], entry]
            rows[hit] = -1
            if axis < 0:
                pane = hit - first
            else:
                if states[axis, entry]:
                    continue
                tick = ticks[axis, entry] * factors[condition]
                if not low <= tick < high:
                    pane, phase, low, high = _pane_at(tick, width, step, pane, phase, high)
                if step > 0 and (pane < 0 or phase >= size):
                    continue
            spread = ((key * seed + pane) * seed + condition) * seed
            slot = (spread ^ (spread >> 31)) & mask
            row = slots[slot]
            while row >= 0 and not (
                row_keys[row] == key and row_panes[row] == pane and row_conditions[row] == condition
            ):
                slot = (slot + 1) & mask
                row = slots[slot]
            if row < 0:
                row = slots[slot] = count
                row_conditions[row], row_panes[row], row_entries[row], row_keys[row] = condition, pane, entry, key
                count += 1
            rows[hit] = row
    return count


@compiled
def add_up(
    hits: Hits,
    rows: Indices,
    order: int,
    bounds: Indices,
    taken: Indices,
    leaves: Indices,
    ranked: Indices,
    times: Indices,
    ticks: Indices,
    least: Numbers,
    greatest: Numbers,
    path: int,
    into: Statistics,
) -> None:
    """Add the values of one aggregated path to the rows of hits.

    The places that the path leads to lie between two `bounds` for each condition: `taken` is the row of `times` that
    says how many values an entry has there, -1 for one in each; `leaves` the row of `ticks`, their sums, and of the
    `least` and the `greatest` of them, -1 where only their number is needed; `ranked` has a bit for the least and
    one for the greatest, where they are needed.
    The order of an entry is its number behind `order`, above the bits for nodes.
    Sums are held in two halves, so that no value can carry out of them.
    """
    for condition in range(len(bounds) - 1):
        needs_least, needs_greatest = ranked[condition] & 1, ranked[condition] & 2
        for place in range(bounds[condition], bounds[condition + 1]):
            number, leaf = taken[place], leaves[place]
            for hit in range(hits.bounds[condition], hits.bounds[condition + 1]):
                row, entry = rows[hit], hits.entries[hit]
                count = times[number, entry] if number >= 0 else 1
                if row < 0 or count == 0:
                    continue
                into.counts[path, row] += count
                if leaf < 0:
                    continue
                tick = ticks[leaf, entry]
                into.high[path, row] += tick >> HALF
                into.low[path, row] += tick & LOW
                at = (order + entry) << NODES
                if needs_least:
                    value, best = least[leaf, entry], into.least[path, row]
                    if not best <= value or (best == value and at < into.least_at[path, row]):
                        into.least[path, row], into.least_at[path, row] = value, at
                if needs_greatest:
                    value, best = greatest[leaf, entry], into.greatest[path, row]
                    if not best >= value or (best == value and at < into.greatest_at[path, row]):
                        into.greatest[path, row], into.greatest_at[path, row] = value, at


@compiled
def add_rows(
    owners: Indices,
    taken: Flags,
    ticks: Indices,
    values: Numbers,
    times: Indices,
    sums: Indices,
    least: Numbers,
    greatest: Numbers,
    unclear: Flags,
) -> None:
    """Add up the rows of a repeated part that are taken, by owner; the entries' sums are empty before.

    An entry is unclear where its sum becomes too large for 64 bits.
    """
    for row in range(len(owners)):
        if not taken[row]:
            continue
        entry, value = owners[row], values[row]
        times[entry] += 1
        sums[entry] += ticks[row]
        if abs(sums[entry]) > MOST_TICKS:
            unclear[entry] = True
            sums[entry] = 0
        if not least[entry] <= value:
            least[entry] = value
        if not greatest[entry] >= value:
            greatest[entry] = value


@compiled
def order_by_member(members: Indices, panes: Indices, order: Indices, fresh: Flags) -> bool:
    """The order of rows by member, those of each as they come; `fresh` becomes False for a pane that was there before.

    Returns False, and neither is of use, where the panes of a member fall.
    """
    bounds = np.zeros((members.max() if len(members) else 0) + 2, np.int64)
    for member in members:
        bounds[member + 1] += 1
    for member in range(1, len(bounds)):
        bounds[member] += bounds[member - 1]
    heads, latest = bounds.copy(), np.empty(len(bounds), np.int64)
    for row in range(len(members)):
        member, pane = members[row], panes[row]
        at = heads[member]
        if at > bounds[member]:
            if pane < latest[member]:
                return False
            fresh[at] = pane > latest[member]
        order[at], latest[member], heads[member] = row, pane, at + 1
    return True


@compiled
def find_most_places(members: Indices, places: Indices, most: Indices) -> bool:
    """The most decimal places by path and member, which are 0 before; whether some row has fewer."""
    for path in range(len(places)):
        for row in range(len(members)):
            most[path, members[row]] = max(most[path, members[row]], places[path, row])
    for path in range(len(places)):
        for row in range(len(members)):
            if places[path, row] < most[path, members[row]]:
                return True
    return False


@compiled
def merge(
    picks: Indices, groups: Indices, orders: Indices, known: Statistics, firsts: Indices, into: Statistics
) -> None:
    """Merge the columns picked into those of their groups; `firsts` says for each group which column is its first.

    `into` holds the first columns already; a column that stands before the first in the stream becomes the first.
    """
    for number in range(len(picks)):
        pick, group = picks[number], groups[number]
        if orders[pick] < orders[firsts[group]]:
            firsts[group] = pick
        for path in range(len(known.counts)):
            into.counts[path, group] += known.counts[path, pick]
            total = into.low[path, group] + known.low[path, pick]
            into.low[path, group] = total & LOW
            into.high[path, group] += known.high[path, pick] + (total >> HALF)
            value, at = known.least[path, pick], known.least_at[path, pick]
            best = into.least[path, group]
            if value < best or np.isnan(best) or (value == best and at < into.least_at[path, group]):
                into.least[path, group], into.least_at[path, group] = value, at
            value, at = known.greatest[path, pick], known.greatest_at[path, pick]
            best = into.greatest[path, group]
            if value > best or np.isnan(best) or (value == best and at < into.greatest_at[path, group]):
                into.greatest[path, group], into.greatest_at[path, group] = value, at
