"""Panes as rows, in which they travel from tasks to branches, and in which branches keep them between epochs.

A row is a part of a pane of one member; several rows of one pane are merged, in any order.
Where a window is grouped (LAWS 3.8), a row is one of a pane and a group: keys have numbers from 1 on, in a dictionary
that goes with the rows (`keys.py`), and 0 is for windows without groups.
Most panes hold plain numbers and are rows of columns (`Rows`): counts, sums in two halves of 32 bits, least and
greatest with their places in the stream.
A pane that holds anything else (a failure, INF, more digits than fit, a fraction) is a `Pane`, the same in Python's own
numbers.

Rows are written as Arrow tables: columns of the fewest bytes that hold them, and tables apart for values that few rows
have.
The place in the stream is only written for rows that note their first item, and for rows of groups, since groups come
in the order of their first items; the others count as last.
A `Pane` is a line of JSON.

Guarantees: nothing is rounded, and no sum overflows: a sum is at most `count * 2**60`, and a pane whose count could
take it beyond 64 and 32 bits is no row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.aggregates.partial import ItemAt, Partial, Ranked
from anabranch.aggregates.written import partial_from_json, partial_to_json
from anabranch.columnar.panes.kernels import (
    MOST_PLACES,
    MOST_TICKS,
    Statistics,
    find_most_places,
    halves,
    merge,
    order_by_member,
    totals,
)
from anabranch.columnar.scan.kernels import Flags, Indices

MOST_COUNT = 1 << 34
MOST_PANES = 1 << 60


@dataclass(frozen=True, slots=True)
class Pane:
    """The partial aggregates of the selected nodes in a pane."""

    order: int
    """The place of the first node in the stream."""
    first: ItemAt | None
    """The item with it, for a dead letter of a window that fails without any item at fault; None where none can.

    Where numbers become too large for JSON, it is one that the law has looked at.
    """
    partials: tuple[Partial, ...]
    """By aggregated path."""
    is_early: bool = False
    """Whether it holds times that are in windows before the first of plain numbers, and nothing else."""

    def merge(self, other: Pane) -> Pane:
        """The pane of the nodes of both."""
        first = self if self.order <= other.order else other
        partials = tuple(a.merge(b) for a, b in zip(self.partials, other.partials, strict=True))
        known = first.first or (other if first is self else self).first
        return Pane(first.order, known, partials, self.is_early)

    def without(self, path: int) -> Pane:
        """The pane without the values of one path."""
        partials = (Partial() if number == path else each for number, each in enumerate(self.partials))
        return replace(self, partials=tuple(partials))

    def moved(self, base: int) -> Pane:
        """The pane, `base` places further on in the stream."""
        return Pane(self.order + base, self.first, tuple(each.moved(base) for each in self.partials), self.is_early)


@dataclass(frozen=True, slots=True)
class Rows:
    """Panes that hold plain numbers; the statistics have one row per aggregated path and one column per pane."""

    members: Indices
    keys: Indices
    """The number of the row's group; 0 where there are no groups."""
    panes: Indices
    orders: Indices
    firsts: Indices
    """The first item of the pane, by its number in `told`; -1 where it is not noted."""
    told: tuple[ItemAt, ...]
    known: Statistics

    @staticmethod
    def empty(paths: int, count: int = 0) -> Rows:
        """Rows to be filled in: without values."""
        members, keys, panes, orders, firsts = (np.full(count, each, np.int64) for each in (0, 0, 0, 0, -1))
        return Rows(members, keys, panes, orders, firsts, (), Statistics.empty(paths, count))

    def __len__(self) -> int:
        return len(self.panes)

    @property
    def paths(self) -> int:
        """How many paths are aggregated."""
        return len(self.known.counts)

    def at(self, picks: Indices | NDArray[np.bool_]) -> Rows:
        """Some of the rows."""
        picks = np.flatnonzero(picks) if picks.dtype == np.bool_ else picks
        return self._each(lambda each: each.take(picks, -1, mode="clip"))  # unchecked: no index is outside

    def part(self, first: int, last: int) -> Rows:
        """The rows from one to another."""
        return self._each(lambda each: each[..., first:last])

    def _each(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Rows:
        members, keys, panes = map(function, (self.members, self.keys, self.panes))
        orders, firsts = map(function, (self.orders, self.firsts))
        return Rows(members, keys, panes, orders, firsts, self.told, self.known.each(function))

    def of(self, member: int) -> Rows:
        """The rows as those of one member; items that no row refers to are dropped."""
        members = np.full(len(self), member, np.int64)
        if not self.told:
            return replace(self, members=members)
        known = np.flatnonzero(self.firsts >= 0)
        told = tuple(self.told[each] for each in self.firsts[known].tolist())
        firsts = np.full(len(self), -1, np.int64)
        firsts[known] = np.arange(len(told))
        return replace(self, members=members, firsts=firsts, told=told)

    def placed(self, places: Indices, orders: Indices, widths: Indices, arrived: Indices) -> Rows:
        """The rows with other numbers for members (`places`), each moved by `orders` in the stream.

        `widths` panes of a member, or nodes counted from `arrived` on, are merged into one of its panes.
        """
        base, width, before = orders[self.members], widths[self.members], arrived[self.members]
        panes = self.panes if (width == 1).all() and not before.any() else (before + self.panes) // width
        known = self.known
        known = known._replace(least_at=known.least_at + base, greatest_at=known.greatest_at + base)
        return Rows(places[self.members], self.keys, panes, self.orders + base, self.firsts, self.told, known)

    def renamed(self, bases: Indices, numbers: Indices) -> Rows:
        """The rows with other numbers for groups: those of a member lie in `numbers` from its base on."""
        return replace(self, keys=numbers[bases[self.members] + self.keys])

    def without(self, path: int) -> Rows:
        """The rows without the values of one path."""
        known = self.known.each(np.copy)
        for each, nothing in zip(known, Statistics.empty(self.paths, len(self)), strict=True):
            each[path] = nothing[path]
        return replace(self, known=known)

    @property
    def is_merged(self) -> bool:
        """Whether these rows of one member are as `merged` returns them."""
        keys, panes = self.keys, self.panes
        rises = (keys[1:] > keys[:-1]) | ((keys[1:] == keys[:-1]) & (panes[1:] > panes[:-1]))
        return bool(rises.all() and _is_level(self.known))

    def merged(self) -> Rows | None:
        """The rows by member, group and pane, rising, each once; the values of a member's path have the same places.

        None where a merged pane is no plain row.
        """
        rows = self._levelled()
        if rows is None:
            return None
        order, fresh = rows._order()
        if fresh.all():
            return rows.at(order)
        groups, firsts = (np.cumsum(fresh) - 1)[~fresh], order[fresh]
        found = rows.at(firsts)
        merge(order[~fresh], groups, rows.orders, rows.known, firsts, found.known)
        if found.known.counts.max(initial=0) >= MOST_COUNT:
            return None
        found.orders[groups], found.firsts[groups] = rows.orders[firsts[groups]], rows.firsts[firsts[groups]]
        return found

    def _order(self) -> tuple[Indices, Flags]:
        """The order of rows by member, group and pane, and which of them are the first of a pane.

        Without groups, the rows of a member mostly come in that order.
        """
        order, fresh = np.empty(len(self), np.int64), np.ones(len(self), np.bool_)
        if not self.keys.any() and order_by_member(self.members, self.panes, order, fresh):
            return order, fresh
        order = np.lexsort((self.panes, self.keys, self.members))
        fresh[1:] = False
        for each in (self.members[order], self.keys[order], self.panes[order]):
            fresh[1:] |= each[1:] != each[:-1]
        return order, fresh

    def _levelled(self) -> Rows | None:
        """The rows with equally many decimal places in a member's path; None where sums become too large."""
        if _is_level(self.known):
            return self
        most = np.zeros((self.paths, int(self.members.max()) + 1), np.int64)
        if not find_most_places(self.members, self.known.places, most):
            return self
        uneven = np.nonzero(self.known.places < most[:, self.members])
        known = self.known.each(np.copy)
        for path, row in zip(*uneven, strict=True):
            (total,) = totals(known.high[path, row : row + 1], known.low[path, row : row + 1])
            wanted = most[path, self.members[row]]
            total *= 10 ** int(wanted - known.places[path, row])
            if abs(total) > int(known.counts[path, row]) * MOST_TICKS:
                return None
            known.high[path, row], known.low[path, row] = halves(total)
            known.places[path, row] = wanted
        return replace(self, known=known)

    def read(self) -> list[Pane]:
        """The rows as panes."""
        known = self.known
        paths = [
            [
                Partial(count, total, places, 0, _ranked(*least), _ranked(*greatest))
                for count, total, places, least, greatest in zip(
                    known.counts[path].tolist(),
                    totals(known.high[path], known.low[path]),
                    known.places[path].tolist(),
                    zip(known.least[path].tolist(), known.least_at[path].tolist(), strict=True),
                    zip(known.greatest[path].tolist(), known.greatest_at[path].tolist(), strict=True),
                    strict=True,
                )
            ]
            for path in range(self.paths)
        ]
        firsts = [None if each < 0 else self.told[each] for each in self.firsts.tolist()]
        partials = zip(*paths, strict=True) if paths else iter([()] * len(self))
        return [Pane(*each) for each in zip(self.orders.tolist(), firsts, partials, strict=True)]


def _is_level(known: Statistics) -> bool:
    """Whether all values of a path have equally many decimal places."""
    return bool((known.places == known.places[:, :1]).all())


def _ranked(value: float, order: int) -> Ranked | None:
    return None if value != value else Ranked(value, order)


def together(parts: Sequence[Rows], paths: int) -> Rows:
    """Concatenated rows."""
    if not parts:
        return Rows.empty(paths)
    if len(parts) == 1:
        return parts[0]
    members, keys, panes, orders = (
        np.concatenate([getattr(each, name) for each in parts]) for name in ("members", "keys", "panes", "orders")
    )
    bases = accumulate((len(each.told) for each in parts), initial=0)
    firsts = [np.where(each.firsts < 0, -1, each.firsts + base) for each, base in zip(parts, bases, strict=False)]
    told = tuple(each for part in parts for each in part.told)
    known = Statistics(*(np.concatenate(each, axis=-1) for each in zip(*(part.known for part in parts), strict=True)))
    return Rows(members, keys, panes, orders, np.concatenate(firsts), told, known)


def is_plain(number: int, pane: Pane) -> bool:
    """Whether a pane can be a row of `Rows`."""
    return (
        abs(number) < MOST_PANES
        and not pane.is_early
        and all(
            not each.special
            and each.failure is None
            and not each.rest
            and not any(found and found.exact is not None for found in (each.least, each.greatest))
            and each.places <= MOST_PLACES
            and each.count < MOST_COUNT
            and abs(each.total) <= each.count * MOST_TICKS
            for each in pane.partials
        )
    )


def laid_out(panes: Iterable[Numbered], paths: int) -> Rows:
    """Panes that are all plain as rows."""
    given = list(panes)
    rows = Rows.empty(paths, len(given))
    known = rows.known
    told: list[ItemAt] = []
    for row, (member, key, number, pane) in enumerate(given):
        rows.members[row], rows.keys[row], rows.panes[row], rows.orders[row] = member, key, number, pane.order
        if pane.first is not None:
            rows.firsts[row] = len(told)
            told.append(pane.first)
        for path, each in enumerate(pane.partials):
            known.counts[path, row], known.places[path, row] = each.count, each.places
            known.high[path, row], known.low[path, row] = halves(each.total)
            if each.least is not None:
                known.least[path, row], known.least_at[path, row] = each.least[:2]
            if each.greatest is not None:
                known.greatest[path, row], known.greatest_at[path, row] = each.greatest[:2]
    return replace(rows, told=tuple(told))


Numbered: TypeAlias = tuple[int, int, int, Pane]
"""A pane by its member, its group and its number."""
GroupPane: TypeAlias = tuple[tuple[int, int], Pane]
"""A pane of one member, by its group and its number."""
Tables: TypeAlias = Mapping[str, pa.Table]
_SUMS = ("high", "low", "places")
"""Left out where they are 0 in all rows."""
_EXTREMES = ("least", "greatest")


@dataclass(frozen=True, slots=True)
class ManyPanes:
    """Plain rows by how many paths are aggregated, and panes that are not plain."""

    rows: Mapping[int, Rows]
    odd: tuple[Numbered, ...] = ()

    @staticmethod
    def of(panes: Iterable[Numbered]) -> ManyPanes:
        """Panes, sorted into plain rows and others; they come by rising members."""
        plain: dict[int, list[Numbered]] = {}
        odd: list[Numbered] = []
        for each in panes:
            _, _, number, pane = each
            (plain.setdefault(len(pane.partials), []) if is_plain(number, pane) else odd).append(each)
        return ManyPanes({paths: laid_out(given, paths) for paths, given in plain.items()}, tuple(odd))

    def part(self, members: NDArray[np.bool_]) -> ManyPanes:
        """The panes of some members, which keep their numbers."""
        rows = {paths: each.at(members[each.members]) for paths, each in self.rows.items()}
        return ManyPanes(rows, tuple(each for each in self.odd if members[each[0]]))

    def member(self, member: int, paths: int) -> tuple[Rows, list[GroupPane]]:
        """The panes of one member, which then has the number 0; the members of rows must be rising."""
        rows = self.rows[paths] if paths in self.rows else Rows.empty(paths)
        first, last = np.searchsorted(rows.members, (member, member + 1)).tolist()
        odd = [((key, number), pane) for each, key, number, pane in self.odd if each == member]
        return rows.part(first, last).of(0), odd

    def tables(self) -> dict[str, pa.Table]:
        """The panes as tables, without those that would be empty."""
        found = {"odd": pa.table({"pane": [_line(each) for each in self.odd]})} if self.odd else {}
        for paths, rows in self.rows.items():
            known = rows.firsts >= 0
            told = [rows.told[each] for each in rows.firsts[known].tolist()]
            columns = {"members": _narrow(rows.members), "panes": _narrow(rows.panes)}
            if told:
                columns["told"] = pa.array(known)
            if rows.keys.any():
                grouped = np.where(rows.keys > 0, rows.orders, 0)
                columns |= {"keys": _narrow(rows.keys), "orders": _narrow(grouped)}
            found[f"told {paths}"] = pa.table(
                [
                    pa.array(rows.orders[known]),
                    pa.array([each.file for each in told], pa.string()).dictionary_encode(),
                    pa.array([each.offset for each in told], pa.int64()),
                    pa.array([each.raw for each in told], pa.string()),
                ],
                ["order", "file", "offset", "raw"],
            )
            for path in range(paths):
                columns[f"counts {path}"] = _narrow(rows.known.counts[path])
                sums = {name: getattr(rows.known, name)[path] for name in _SUMS}
                columns |= {f"{name} {path}": _narrow(each) for name, each in sums.items() if each.any()}
                for name in _EXTREMES:
                    values, at = getattr(rows.known, name)[path], getattr(rows.known, f"{name}_at")[path]
                    there = ~np.isnan(values)
                    if not there.any():
                        continue
                    columns[f"{name} {path}"] = pa.array(there)
                    at = np.where(values == 0, at, 0)  # the place matters only for the sign of zero
                    found[f"{name} {path} of {paths}"] = pa.table(
                        [pa.array(values[there]), _narrow(at[there])], ["value", "at"]
                    )
            found[f"rows {paths}"] = pa.table(columns)
        return found

    @staticmethod
    def read(tables: Tables, span: int) -> ManyPanes:
        """The panes that were written as these tables; `span` is behind all places in the stream that they have."""
        rows = {
            int(name.removeprefix("rows ")): _rows(table, tables, span)
            for name, table in tables.items()
            if name.startswith("rows ")
        }
        odd = tables["odd"].column("pane").to_pylist() if "odd" in tables else ()
        return ManyPanes(rows, tuple(map(_pane, odd)))


def _rows(table: pa.Table, tables: Tables, span: int) -> Rows:
    paths = sum(name.startswith("counts ") for name in table.column_names)
    rows = Rows.empty(paths, table.num_rows)
    rows.members[:], rows.panes[:] = table.column("members").to_numpy(), table.column("panes").to_numpy()
    for path in range(paths):
        rows.known.counts[path] = table.column(f"counts {path}").to_numpy()
        for name in _SUMS:
            if f"{name} {path}" in table.column_names:
                getattr(rows.known, name)[path] = table.column(f"{name} {path}").to_numpy()
        for name in _EXTREMES:
            if f"{name} {path}" in table.column_names:
                there, found = table.column(f"{name} {path}").to_numpy(), tables[f"{name} {path} of {paths}"]
                getattr(rows.known, name)[path, there] = found.column("value").to_numpy()
                getattr(rows.known, f"{name}_at")[path, there] = found.column("at").to_numpy()
    known = table.column("told").to_numpy() if "told" in table.column_names else np.zeros(len(rows), np.bool_)
    orders, *told = tables[f"told {paths}"].columns
    rows.firsts[known] = np.arange(len(orders))
    rows.orders[:] = span
    if "keys" in table.column_names:
        rows.keys[:] = table.column("keys").to_numpy()
        rows.orders[:] = np.where(rows.keys > 0, table.column("orders").to_numpy(), span)
    rows.orders[known] = orders.to_numpy()
    firsts = zip(*(column.to_pylist() for column in told), strict=True)
    return replace(rows, told=tuple(ItemAt(*each) for each in firsts))


def _narrow(values: NDArray[np.int64]) -> pa.Array:
    """Integers in the fewest bytes that hold them all."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kinds = (np.int8, np.int16, np.int32, np.int64)
    kind = next(each for each in kinds if np.iinfo(each).min <= low and high <= np.iinfo(each).max)
    return pa.array(values.astype(kind))


def _line(numbered: Numbered) -> str:
    member, key, number, pane = numbered
    partials = list(map(partial_to_json, pane.partials))
    return json.dumps([member, format(number, "x"), pane.order, pane.first, partials, key, pane.is_early])


def _pane(line: str) -> Numbered:
    member, number, order, first, partials, key, is_early = json.loads(line)
    found = tuple(map(partial_from_json, partials))
    return member, key, int(number, 16), Pane(order, None if first is None else ItemAt(*first), found, is_early)
