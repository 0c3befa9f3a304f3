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
"""About how many pairs are looked at a time."""
_LARGEST = 1 << 62


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
    for begin, end in _blocks(partners, len(first)):
        rows = np.arange(begin, end)
        picks = first[None, begin:end]
        for side, (lane, mine) in enumerate(zip(lanes[1:], partners, strict=True), 1):
            at, found = mine.of(rows)
            picks = np.concatenate([picks.take(at, axis=1), lane.items.take(found)[None, :]])
            rows = rows.take(at)
            kept = _kept(guards, side, picks)
            if kept is not None:
                picks, rows = picks.take(kept, axis=1), rows.take(kept)
        if picks.shape[1]:
            yield picks


def _blocks(partners: Sequence[_Partners], count: int) -> Iterator[tuple[int, int]]:
    """Spans of items of the first side with few enough tuples, or of a single item."""
    tuples = np.ones(count)
    for each in partners:
        tuples *= each.counts
    ends = np.cumsum(tuples)
    begin = 0
    while begin < count:
        before = ends[begin - 1] if begin else 0.0
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
        self._count = len(lane.items)
        values = lane.own_values
        self._groups: list[_SortedGroup] = []
        self._is_ordered = bool((values[1:] >= values[:-1]).all())
        if mine is None or keys is None or not self._count:
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
        """All pairs of one of these items of the first side and a partner: the places of both, in order."""
        found = [each.pairs(rows) for each in self._groups]
        if len(found) == 1 and self._is_ordered:
            return found[0]
        both = np.concatenate([at * self._count + partner for at, partner in found])
        both.sort()
        return np.divmod(both, max(1, self._count))


class _SortedGroup:
    """The places of items in the order of codes and values, with the span of those that each first item may meet."""

    def __init__(self, values: Indices, near: Near, codes: Indices | None, wanted: Indices | None) -> None:
        """`wanted` is the code that an item of the first side meets, -1 for none; without `codes`, all are 0."""
        if codes is None:
            codes = np.zeros(len(values), np.int64)
        least, most = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        span = most - least + 1
        if (int(codes.max(initial=0)) + 1) * span >= _LARGEST:
            raise OverflowError
        keys = codes * span + (values - least)
        self._order: Indices = np.argsort(keys, kind="stable")
        sorted_keys = keys.take(self._order)
        low = np.clip(near.least - least, 0, span)
        high = np.clip(near.most - least + 1, 0, span)
        base = 0 if wanted is None else wanted * span
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
