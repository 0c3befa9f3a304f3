"""The interval join over columns: the items of the first side, each with the items of the others near to it, in blocks.

Items that are near are found by binary search among the sorted values of a side; where a condition also wants equal
keys, among those with the key only.
Other comparisons of two items without which no query selects a tuple drop tuples before a further side is met, or the
conditions are judged (`kernels.Guards`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.columnar.joins.kernels import AT_LEAST, MORE, SAME, Guards
from anabranch.columnar.joins.step_join import Picks
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers

BLOCK = 1 << 17
"""About how many tuples are looked at a time."""


@dataclass(frozen=True, slots=True)
class IntervalLane:
    """The items of one side that take part, in their order: their numbers on the side, and their values by number."""

    items: Indices
    values: Indices

    @property
    def own_values(self) -> Indices:
        """The values of the items, in their order."""
        return self.values.take(self.items)


@dataclass(frozen=True, slots=True)
class Near:
    """For each item of the first side, the least and the largest value of an item of another side that is near."""

    least: Indices
    most: Indices


def interval_tuples(lanes: Sequence[IntervalLane], near: Sequence[Near], guards: Guards) -> Iterator[Picks]:
    """The tuples of items, each near to that of the first side, in the order of nested loops, a block at a time.

    `near` is for all sides but the first; `guards` are over the numbers of items.
    """
    first = lanes[0].items
    partners = [
        _Partners(lane, within, *_keys(guards, side, first, lane.items))
        for side, (lane, within) in enumerate(zip(lanes[1:], near, strict=True), 1)
    ]
    return _continued(first[None, :], np.arange(len(first)), partners, guards)


def _continued(picks: Picks, rows: Indices, partners: Sequence[_Partners], guards: Guards) -> Iterator[Picks]:
    """The tuples that begin with those in `picks`; `rows` are the places of their first items in the first lane."""
    side = len(picks)
    if side > len(partners):
        if picks.shape[1]:
            yield picks
        return
    mine = partners[side - 1]
    for begin, end in _blocks(mine.counts.take(rows)):
        at, found = mine.of(rows[begin:end])
        at += begin
        met, places = np.concatenate([picks.take(at, axis=1), found[None, :]]), rows.take(at)
        kept = _kept(guards, side, met)
        if kept is not None:
            met, places = met.take(kept, axis=1), places.take(kept)
        yield from _continued(met, places, partners, guards)


def _blocks(counts: Indices) -> Iterator[tuple[int, int]]:
    """Spans of tuples that few enough items continue, or of a single tuple."""
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + BLOCK, side="right")))
        yield begin, end
        begin = end


def _keys(guards: Guards, side: int, first: Indices, items: Indices) -> tuple[Numbers, Numbers] | tuple[None, None]:
    """The numbers that must be equal for items of the first side and of another; none where nothing must."""
    for number, (test, left, right) in enumerate(guards.tests.tolist()):
        if test == SAME and {left, right} == {0, side}:
            rows = guards.numbers[2 * number : 2 * number + 2]
            mine, theirs = rows if left == 0 else rows[::-1]
            return mine.take(first), theirs.take(items)
    return None, None


def _kept(guards: Guards, side: int, picks: Picks) -> Indices | None:
    """The tuples that pass the guards between a side and those before it; None where there are none."""
    kept: Flags | None = None
    for number, (test, left, right) in enumerate(guards.tests.tolist()):
        if max(left, right) != side:
            continue
        x, y = guards.numbers[2 * number].take(picks[left]), guards.numbers[2 * number + 1].take(picks[right])
        holds = _may_hold(test, x, y)
        kept = holds if kept is None else kept & holds
    return None if kept is None else np.flatnonzero(kept)


def _may_hold(test: int, x: Numbers, y: Numbers) -> Flags:
    """Where a comparison may hold; one with NaN may."""
    found: Flags
    if test == AT_LEAST:
        found = ~(x < y)
    elif test == MORE:
        found = ~(x <= y)
    else:
        found = (x == y) | np.isnan(x) | np.isnan(y)
    return found


class _Partners:
    """The items of one side by their places in its lane, to be found for each item of the first side.

    They are in groups, each sorted: those with a key, those whose key is not known, which may be any, and all of them
    for items of the first side whose key is not known.
    """

    def __init__(self, lane: IntervalLane, near: Near, mine: Numbers | None, keys: Numbers | None) -> None:
        """`mine` are the keys of the items of the first side, `keys` those of the lane."""
        self._items = lane.items
        values = lane.own_values
        self._groups: list[_SortedGroup] = []
        self._is_ordered = bool((values[1:] >= values[:-1]).all())
        if mine is None or keys is None or not len(values):
            self._groups = [_SortedGroup(values, near, None, None)]
        else:
            unknown, open_keys = np.isnan(keys), np.isnan(mine)
            known = np.unique(keys[~unknown])
            codes = np.where(unknown, 0, np.searchsorted(known, keys) + 1)
            places = np.minimum(np.searchsorted(known, mine), max(0, len(known) - 1))
            has_key = known.take(places) == mine if len(known) else np.zeros(len(mine), np.bool_)
            self._groups = [_SortedGroup(values, near, codes, np.where(has_key, places + 1, -1))]
            if unknown.any():
                self._groups.append(_SortedGroup(values, near, codes, np.where(open_keys, -1, 0)))
            if open_keys.any():
                self._groups.append(_SortedGroup(values, near, None, np.where(open_keys, 0, -1)))
        self.counts: Indices = sum((each.ends - each.begins for each in self._groups), np.zeros(len(near.least), int))
        """For each item of the first side."""

    def of(self, rows: Indices) -> tuple[Indices, Indices]:
        """All pairs of one of these items of the first side and a partner, in order: the place of the one among
        these, and the number of the other.
        """
        found = [each.pairs(rows) for each in self._groups]
        at, places = found[0]
        if len(found) > 1 or not self._is_ordered:
            count = max(1, len(self._items))
            both = np.concatenate([at * count + place for at, place in found])
            both.sort()
            at, places = np.divmod(both, count)
        return at, self._items.take(places)


class _SortedGroup:
    """The places of items in the order of codes and values, with the span of those that each first item may meet."""

    def __init__(self, values: Indices, near: Near, codes: Indices | None, wanted: Indices | None) -> None:
        """`wanted` is the code that an item of the first side meets, -1 for none; without `codes`, all are 0."""
        known, keys = np.unique(values, return_inverse=True)  # ranks, since values and codes together may be too large
        low, high = np.searchsorted(known, near.least), np.searchsorted(known, near.most, side="right")
        if codes is not None:
            keys = codes * len(known) + keys
        self._order: Indices = np.argsort(keys, kind="stable")
        sorted_keys = keys.take(self._order)
        base = 0 if wanted is None else wanted * len(known)
        self.begins: Indices = np.searchsorted(sorted_keys, base + low)
        self.ends: Indices = np.maximum(self.begins, np.searchsorted(sorted_keys, base + high))
        if wanted is not None:
            self.ends = np.where(wanted < 0, self.begins, self.ends)

    def pairs(self, rows: Indices) -> tuple[Indices, Indices]:
        """For some items of the first side: which of them, and the places of their partners."""
        begins = self.begins.take(rows)
        counts = self.ends.take(rows) - begins
        at = np.repeat(np.arange(len(rows)), counts)
        offsets = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        return at, self._order.take(begins.take(at) + offsets)
