"""Panes of many members as Arrow tables, in which they travel and are kept.

Plain rows are columns of the fewest bytes that hold them, and what few rows have is a table of its own.
The place in the stream is only written of a row that tells which item comes first; the others count as the last ones.
What is no plain number, which is rare, is a line of JSON; large numbers in it are hexadecimal, which takes time linear
in their digits and has no limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.aggregates.partial import ItemAt
from anabranch.aggregates.written import partial_from_json, partial_to_json
from anabranch.columnar.panes.rows import Pane, Rows, is_plain, laid_out

Numbered: TypeAlias = tuple[int, int, Pane]
"""A pane by its member and number."""
Tables: TypeAlias = Mapping[str, pa.Table]
_SUMS = ("counts", "high", "low", "places")
_EXTREMES = ("least", "greatest")


@dataclass(frozen=True, slots=True)
class ManyPanes:
    """Plain rows by how many paths are aggregated, and panes that are not plain."""

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
        """The panes of one member, who is then the only one; the members of rows must be rising."""
        rows = self.rows[paths] if paths in self.rows else Rows.empty(paths)
        first, last = np.searchsorted(rows.members, (member, member + 1)).tolist()
        return rows.part(first, last).of(0), [(number, pane) for each, number, pane in self.odd if each == member]

    def tables(self) -> dict[str, pa.Table]:
        """The panes as tables, without those that would be empty."""
        found = {"odd": pa.table({"pane": [_line(each) for each in self.odd]})} if self.odd else {}
        for paths, rows in self.rows.items():
            known = rows.firsts >= 0
            told = [rows.told[each] for each in rows.firsts[known].tolist()]
            columns = {"members": _narrow(rows.members), "panes": _narrow(rows.panes), "told": pa.array(known)}
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
                columns |= {f"{name} {path}": _narrow(getattr(rows, name)[path]) for name in _SUMS}
                for name in _EXTREMES:
                    values, at = getattr(rows, name)[path], getattr(rows, f"{name}_at")[path]
                    there = ~np.isnan(values)
                    if not there.any():
                        continue
                    columns[f"{name} {path}"] = pa.array(there)
                    at = np.where(values == 0, at, 0)  # elsewhere, equal values are one
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
        for name in _SUMS:
            getattr(rows, name)[path] = table.column(f"{name} {path}").to_numpy()
        for name in _EXTREMES:
            if f"{name} {path}" in table.column_names:
                there, found = table.column(f"{name} {path}").to_numpy(), tables[f"{name} {path} of {paths}"]
                getattr(rows, name)[path, there] = found.column("value").to_numpy()
                getattr(rows, f"{name}_at")[path, there] = found.column("at").to_numpy()
    known = table.column("told").to_numpy()
    orders, *told = tables[f"told {paths}"].columns
    rows.firsts[known] = np.arange(len(orders))
    rows.orders[:] = span
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
    member, number, pane = numbered
    partials = list(map(partial_to_json, pane.partials))
    return json.dumps([member, format(number, "x"), pane.order, pane.first, partials])


def _pane(line: str) -> Numbered:
    member, number, order, first, partials = json.loads(line)
    found = tuple(map(partial_from_json, partials))
    return member, int(number, 16), Pane(order, None if first is None else ItemAt(*first), found)
