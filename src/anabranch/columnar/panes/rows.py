"""Panes as rows: what tasks send to branches, and what branches keep between epochs.

A row is a part of a pane of one member; several rows of one pane are merged, in any order.
Most panes hold plain numbers and are rows of columns (`Rows`): counts, sums in two halves of 32 bits, least and
greatest with their places in the stream.
A pane that holds anything else (a failure, INF, more digits than fit, a fraction) is a `Pane`, the same in Python's own
numbers.

Guarantees: nothing is rounded, and no sum overflows: a sum is at most `count * 2**60`, and counts that could take it
beyond 64 and 32 bits are no plain numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.aggregates.partial import ItemAt, Partial, Ranked
from anabranch.columnar.panes.kernels import MOST_PLACES, MOST_TICKS, halves, totals
from anabranch.columnar.panes.kernels_windows import merge
from anabranch.columnar.scan.kernels import Indices

MOST_COUNT = 1 << 34
MOST_PANES = 1 << 60


@dataclass(frozen=True, slots=True)
class Pane:
    """What is known of the selected nodes in a pane."""

    order: int
    """The place of the first one in the stream."""
    first: ItemAt | None
    """The item with it, for a dead letter of a window that fails without any item at fault; None where none can."""
    partials: tuple[Partial, ...]
    """By aggregated path."""

    def merge(self, other: Pane) -> Pane:
        """What is known of both."""
        first = self if self.order <= other.order else other
        partials = tuple(a.merge(b) for a, b in zip(self.partials, other.partials, strict=True))
        return Pane(first.order, first.first, partials)

    def without(self, path: int) -> Pane:
        """The same, with nothing known of one path."""
        partials = (Partial() if number == path else each for number, each in enumerate(self.partials))
        return replace(self, partials=tuple(partials))

    def moved(self, base: int) -> Pane:
        """The same, so many places further on in the stream."""
        return Pane(self.order + base, self.first, tuple(each.moved(base) for each in self.partials))


@dataclass(frozen=True, slots=True)
class Rows:
    """Panes that hold plain numbers; what is by aggregated path has one row per path and one column per pane."""

    members: Indices
    panes: Indices
    orders: Indices
    firsts: Indices
    """Which of `told` comes first in the pane, -1 where that need not be known."""
    told: tuple[ItemAt, ...]
    counts: Indices
    high: Indices
    low: Indices
    places: Indices
    least: NDArray[np.float64]
    least_at: Indices
    greatest: NDArray[np.float64]
    greatest_at: Indices
    """NaN where there is no value, or nobody asks."""

    @staticmethod
    def empty(paths: int, count: int = 0) -> Rows:
        """Rows to be filled in: without values."""
        members, panes, orders, firsts = (np.full(count, each, np.int64) for each in (0, 0, 0, -1))
        counts, high, low, places, least_at, greatest_at = (np.zeros((paths, count), np.int64) for _ in range(6))
        least, greatest = (np.full((paths, count), np.nan) for _ in range(2))
        heads = (members, panes, orders, firsts, ())
        return Rows(*heads, counts, high, low, places, least, least_at, greatest, greatest_at)

    def __len__(self) -> int:
        return len(self.panes)

    def at(self, picks: Indices | NDArray[np.bool_]) -> Rows:
        """Some of the rows."""
        picks = np.flatnonzero(picks) if picks.dtype == np.bool_ else picks
        members, panes, orders, firsts = (each.take(picks, mode="clip") for each in self._heads)
        sums = (each.take(picks, 1, mode="clip") for each in self._sums)  # no pick is outside, and not to look is fast
        return Rows(members, panes, orders, firsts, self.told, *sums)

    def part(self, first: int, last: int) -> Rows:
        """The rows from one to another."""
        members, panes, orders, firsts = (each[first:last] for each in self._heads)
        return Rows(members, panes, orders, firsts, self.told, *(each[:, first:last] for each in self._sums))

    @property
    def _heads(self) -> tuple[Indices, ...]:
        return self.members, self.panes, self.orders, self.firsts

    @property
    def _sums(self) -> tuple[NDArray[Any], ...]:
        whole = (self.counts, self.high, self.low, self.places)
        return (*whole, self.least, self.least_at, self.greatest, self.greatest_at)

    def of(self, member: int) -> Rows:
        """The same as the rows of one member, with nothing told that none of them tells."""
        known = np.flatnonzero(self.firsts >= 0)
        told = tuple(self.told[each] for each in self.firsts[known].tolist())
        firsts = np.full(len(self), -1, np.int64)
        firsts[known] = np.arange(len(told))
        members = np.full(len(self), member, np.int64)
        return Rows(members, self.panes, self.orders, firsts, told, *self._sums)

    def placed(self, places: Indices, orders: Indices, widths: Indices, arrived: Indices) -> Rows:
        """The same for members who are called otherwise, each so many places further on in the stream.

        So many panes of a member, or nodes behind those that have arrived, are one of its panes then.
        """
        base, width, before = orders[self.members], widths[self.members], arrived[self.members]
        panes = self.panes if (width == 1).all() and not before.any() else (before + self.panes) // width
        heads = (places[self.members], panes, self.orders + base, self.firsts)
        whole = (self.counts, self.high, self.low, self.places)
        return Rows(*heads, self.told, *whole, self.least, self.least_at + base, self.greatest, self.greatest_at + base)

    def without(self, path: int) -> Rows:
        """The same, with nothing known of one path."""
        counts, high, low, places, least, least_at, greatest, greatest_at = (each.copy() for each in self._sums)
        for each in (counts, high, low, places, least_at, greatest_at):
            each[path] = 0
        least[path] = greatest[path] = np.nan
        heads = (self.members, self.panes, self.orders, self.firsts, self.told)
        return Rows(*heads, counts, high, low, places, least, least_at, greatest, greatest_at)

    @property
    def is_merged(self) -> bool:
        """Whether these rows of one member are what `merged` gives."""
        return bool((self.panes[1:] > self.panes[:-1]).all() and (self.places == self.places[:, :1]).all())

    def merged(self) -> Rows | None:
        """By member and pane, rising, each once, with as many decimal places for all values of a path of a member.

        None where that takes more than plain numbers.
        """
        rows = self._levelled()
        if rows is None:
            return None
        order = rows._order()
        members, panes = rows.members[order], rows.panes[order]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (members[1:] != members[:-1]) | (panes[1:] != panes[:-1])
        if fresh.all():
            return rows.at(order)
        groups, firsts = (np.cumsum(fresh) - 1)[~fresh], order[fresh]
        found = rows.at(firsts)
        sums = (rows.counts, rows.high, rows.low, rows.least, rows.least_at, rows.greatest, rows.greatest_at)
        into = (found.counts, found.high, found.low, found.least, found.least_at, found.greatest, found.greatest_at)
        merge(order[~fresh], groups, rows.orders, *sums, firsts, *into)
        if found.counts.max(initial=0) >= MOST_COUNT:
            return None
        found.orders[groups], found.firsts[groups] = rows.orders[firsts[groups]], rows.firsts[firsts[groups]]
        return found

    def _order(self) -> Indices:
        """The rows by member and pane; parts mostly come in that order, and one behind the other by pane."""
        few = len(self) and int(self.members.max()) < 1 << 16  # those are sorted in linear time
        order = np.argsort(self.members.astype(np.uint16) if few else self.members, kind="stable")
        members, panes = self.members[order], self.panes[order]
        falls = (panes[1:] < panes[:-1]) & (members[1:] == members[:-1])
        return np.lexsort((self.panes, self.members)) if falls.any() else order

    def _levelled(self) -> Rows | None:
        """With the same decimal places for all; None where sums become too large."""
        if not self.places.size or (self.places == self.places[:, :1]).all():
            return self
        high, low, places = self.high.copy(), self.low.copy(), self.places.copy()
        most = np.zeros((len(places), int(self.members.max()) + 1), np.int64)
        for path in range(len(places)):
            np.maximum.at(most[path], self.members, places[path])
        for path, row in zip(*np.nonzero(places < most[:, self.members]), strict=True):
            (total,) = totals(high[path, row : row + 1], low[path, row : row + 1])
            wanted = most[path, self.members[row]]
            total *= 10 ** int(wanted - places[path, row])
            if abs(total) > int(self.counts[path, row]) * MOST_TICKS:
                return None
            high[path, row], low[path, row] = halves(total)
            places[path, row] = wanted
        return replace(self, high=high, low=low, places=places)

    def read(self) -> list[Pane]:
        """The rows one by one."""
        paths = [
            [
                Partial(count, total, places, 0, _ranked(*least), _ranked(*greatest))
                for count, total, places, least, greatest in zip(
                    self.counts[path].tolist(),
                    totals(self.high[path], self.low[path]),
                    self.places[path].tolist(),
                    zip(self.least[path].tolist(), self.least_at[path].tolist(), strict=True),
                    zip(self.greatest[path].tolist(), self.greatest_at[path].tolist(), strict=True),
                    strict=True,
                )
            ]
            for path in range(len(self.counts))
        ]
        firsts = [None if each < 0 else self.told[each] for each in self.firsts.tolist()]
        partials = zip(*paths, strict=True) if paths else iter([()] * len(self))
        return [Pane(*each) for each in zip(self.orders.tolist(), firsts, partials, strict=True)]


_COLUMNS = tuple(each.name for each in fields(Rows) if each.name != "told")


def _ranked(value: float, order: int) -> Ranked | None:
    return None if value != value else Ranked(value, order)


def together(parts: Sequence[Rows], paths: int) -> Rows:
    """Rows one behind the other."""
    if not parts:
        return Rows.empty(paths)
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([getattr(each, name) for each in parts], axis=-1) for name in _COLUMNS}
    bases = accumulate((len(each.told) for each in parts), initial=0)
    firsts = [np.where(each.firsts < 0, -1, each.firsts + base) for each, base in zip(parts, bases, strict=False)]
    columns["firsts"] = np.concatenate(firsts)
    return Rows(told=tuple(each for part in parts for each in part.told), **columns)


def is_plain(number: int, pane: Pane) -> bool:
    """Whether a pane can be a row of `Rows`."""
    return abs(number) < MOST_PANES and all(
        not each.special
        and each.failure is None
        and not each.rest
        and not any(found and found.exact is not None for found in (each.least, each.greatest))
        and each.places <= MOST_PLACES
        and each.count < MOST_COUNT
        and abs(each.total) <= each.count * MOST_TICKS
        for each in pane.partials
    )


def laid_out(panes: Iterable[tuple[int, int, Pane]], paths: int) -> Rows:
    """Panes by member and number, all of them plain, as rows."""
    given = list(panes)
    rows = Rows.empty(paths, len(given))
    told: list[ItemAt] = []
    for row, (member, number, pane) in enumerate(given):
        rows.members[row], rows.panes[row], rows.orders[row] = member, number, pane.order
        if pane.first is not None:
            rows.firsts[row] = len(told)
            told.append(pane.first)
        for path, each in enumerate(pane.partials):
            rows.counts[path, row], rows.places[path, row] = each.count, each.places
            rows.high[path, row], rows.low[path, row] = halves(each.total)
            if each.least is not None:
                rows.least[path, row], rows.least_at[path, row] = each.least[:2]
            if each.greatest is not None:
                rows.greatest[path, row], rows.greatest_at[path, row] = each.greatest[:2]
    return replace(rows, told=tuple(told))
