"""Panes of many members as Arrow tables, in which they travel and are kept.

Plain rows are columns of the fewest bytes that hold them.
What is no plain number, which is rare, is a line of JSON; sums in it are hexadecimal, which takes time linear in their
digits and has no limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.algebra.aggregate import Failure, Partial, Ranked
from anabranch.columnar.pane_rows import First, Pane, Rows, is_plain, laid_out

Numbered: TypeAlias = tuple[int, int, Pane]
"""A pane by its member and number."""
Tables: TypeAlias = Mapping[str, pa.Table]
_HEADS = ("members", "panes", "orders")
_SUMS = ("counts", "high", "low", "places", "least_at", "greatest_at")
_DOUBLES = ("least", "greatest")


@dataclass(frozen=True, slots=True)
class ManyPanes:
    """Plain rows by how many paths are aggregated, members in rising order, and panes that are not plain."""

    rows: Mapping[int, Rows]
    odd: tuple[Numbered, ...] = ()

    @staticmethod
    def of(panes: Iterable[Numbered]) -> ManyPanes:
        """Panes that are known one by one, by rising members."""
        plain: dict[int, list[Numbered]] = {}
        odd: list[Numbered] = []
        for each in panes:
            (plain.setdefault(len(each[2].partials), []) if is_plain(each[1], each[2]) else odd).append(each)
        return ManyPanes({paths: laid_out(given, paths) for paths, given in plain.items()}, tuple(odd))

    def part(self, members: NDArray[np.bool_]) -> ManyPanes:
        """The panes of some members, who keep their numbers."""
        rows = {paths: each.at(members[each.members]) for paths, each in self.rows.items()}
        return ManyPanes(rows, tuple(each for each in self.odd if members[each[0]]))

    def member(self, member: int, paths: int) -> tuple[Rows, list[tuple[int, Pane]]]:
        """The panes of one member, who is then the only one."""
        rows = self.rows[paths] if paths in self.rows else Rows.empty(paths)
        first, last = np.searchsorted(rows.members, (member, member + 1)).tolist()
        return rows.part(first, last).of(0), [(number, pane) for each, number, pane in self.odd if each == member]

    def tables(self) -> dict[str, pa.Table]:
        """The panes as tables."""
        odd = pa.array([_line(each) for each in self.odd], pa.string())
        found = {"odd": pa.table([odd], ["pane"])}
        for paths, rows in self.rows.items():
            columns = {name: _narrow(getattr(rows, name)) for name in _HEADS}
            known = rows.firsts >= 0
            told = [rows.told[each] for each in rows.firsts[known].tolist()]
            columns["told"] = pa.array(known)
            for path in range(paths):
                columns |= {f"{name} {path}": _narrow(getattr(rows, name)[path]) for name in _SUMS}
                columns |= {f"{name} {path}": _doubles(getattr(rows, name)[path]) for name in _DOUBLES}
            found[f"rows {paths}"] = pa.table(columns)
            found[f"told {paths}"] = pa.table(
                [
                    pa.array([each.file for each in told], pa.string()).dictionary_encode(),
                    pa.array([each.offset for each in told], pa.int64()),
                    pa.array([each.raw for each in told], pa.string()),
                ],
                ["file", "offset", "raw"],
            )
        return found

    @staticmethod
    def read(tables: Tables) -> ManyPanes:
        """The panes that were written as these tables."""
        rows = {
            int(name.removeprefix("rows ")): _rows(table, tables[name.replace("rows", "told")])
            for name, table in tables.items()
            if name.startswith("rows ")
        }
        return ManyPanes(rows, tuple(map(_pane, tables["odd"].column("pane").to_pylist())))


def _rows(table: pa.Table, told: pa.Table) -> Rows:
    paths = sum(name.startswith("counts ") for name in table.column_names)
    rows = Rows.empty(paths, table.num_rows)
    for name in _HEADS:
        getattr(rows, name)[:] = table.column(name).to_numpy()
    for name in (*_SUMS, *_DOUBLES):
        for path in range(paths):
            column = table.column(f"{name} {path}")
            if not pa.types.is_null(column.type):
                getattr(rows, name)[path] = column.to_numpy()
    known = table.column("told").to_numpy()
    rows.firsts[known] = np.arange(np.count_nonzero(known))
    firsts = zip(*(column.to_pylist() for column in told.columns), strict=True)
    return replace(rows, told=tuple(First(*each) for each in firsts))


def _narrow(values: NDArray[np.int64]) -> pa.Array:
    """Integers in the fewest bytes that hold them all."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kinds = (np.int8, np.int16, np.int32, np.int64)
    kind = next(each for each in kinds if np.iinfo(each).min <= low and high <= np.iinfo(each).max)
    return pa.array(values.astype(kind))


def _doubles(values: NDArray[np.float64]) -> pa.Array:
    """Doubles, or nothing where there is none."""
    return pa.nulls(len(values)) if np.isnan(values).all() else pa.array(values)


def _line(numbered: Numbered) -> str:
    member, number, pane = numbered
    partials = [
        [each.count, format(each.total, "x"), each.places, each.special, each.least, each.greatest, each.failure]
        for each in pane.partials
    ]
    return json.dumps([member, format(number, "x"), pane.order, pane.first, partials])


def _pane(line: str) -> Numbered:
    member, number, order, first, partials = json.loads(line)
    found = tuple(
        Partial(
            count,
            int(total, 16),
            places,
            special,
            None if least is None else Ranked(*least),
            None if greatest is None else Ranked(*greatest),
            None if failure is None else Failure(*failure),
        )
        for count, total, places, special, least, greatest, failure in partials
    )
    return member, int(number, 16), Pane(order, None if first is None else First(*first), found)
