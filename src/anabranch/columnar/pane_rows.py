"""Panes as rows of a table: what tasks send to a branch, and what a branch keeps between epochs.

A row is a part of a pane; several rows of one pane are merged, in any order.
Sums are written as hexadecimal integers, which takes time linear in their digits and has no limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.algebra.aggregate import Failure, Partial, Ranked


@dataclass(frozen=True, slots=True)
class Pane:
    """What is known of the selected nodes in a pane."""

    order: int
    """The place of the first one in the stream."""
    file: str
    offset: int
    """Where its item stands."""
    raw: str
    """The item's text, as a dead letter shows it."""
    partials: tuple[Partial, ...]
    """By aggregated path."""

    def merge(self, other: Pane) -> Pane:
        """What is known of both."""
        first = self if self.order <= other.order else other
        partials = tuple(a.merge(b) for a, b in zip(self.partials, other.partials, strict=True))
        return Pane(first.order, first.file, first.offset, first.raw, partials)


@dataclass(frozen=True, slots=True)
class Sums:
    """One aggregated path in columns, by row of a table."""

    counts: NDArray[np.int64]
    totals: Sequence[int]
    places: int
    least: NDArray[np.float64]
    least_at: NDArray[np.int64]
    greatest: NDArray[np.float64]
    greatest_at: NDArray[np.int64]


_PANE = [
    ("pane", pa.string()),
    ("order", pa.int64()),
    ("file", pa.string()),
    ("offset", pa.int64()),
    ("raw", pa.string()),
]
_PARTIAL = [
    ("count", pa.int64()),
    ("total", pa.string()),
    ("places", pa.int32()),
    ("special", pa.int8()),
    ("least", pa.float64()),
    ("least_at", pa.int64()),
    ("greatest", pa.float64()),
    ("greatest_at", pa.int64()),
    ("failure", pa.string()),
]


def schema(paths: int) -> pa.Schema:
    """The columns of panes with so many aggregated paths."""
    partials = [(f"{name} {path}", kind) for path in range(paths) for name, kind in _PARTIAL]
    return pa.schema([*_PANE, *partials])


def written(panes: Iterable[tuple[int, Pane]], paths: int) -> pa.Table:
    """Panes by their numbers as rows."""
    rows = [(str(number), each.order, each.file, each.offset, each.raw, each.partials) for number, each in panes]
    columns: list[Sequence[Any]] = [[row[column] for row in rows] for column in range(len(_PANE))]
    for path in range(paths):
        columns += zip(*(_row(row[-1][path]) for row in rows), strict=True) if rows else [[]] * len(_PARTIAL)
    layout = schema(paths)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, layout, strict=True)], schema=layout)


def _row(partial: Partial) -> tuple[Any, ...]:
    least, greatest = partial.least or (None, 0), partial.greatest or (None, 0)
    failure = partial.failure and json.dumps(partial.failure)
    return partial.count, format(partial.total, "x"), partial.places, partial.special, *least, *greatest, failure


def laid_out(
    panes: NDArray[np.int64],
    orders: NDArray[np.int64],
    file: str,
    offsets: NDArray[np.int64],
    raw: Sequence[str],
    paths: Sequence[Sums],
) -> pa.Table:
    """Rows that are given in columns."""
    count = len(panes)
    columns: list[Any] = [pa.array(panes).cast(pa.string()), orders, pa.repeat(file, count), offsets, raw]
    for each in paths:
        columns += [
            each.counts,
            [format(total, "x") for total in each.totals],
            np.full(count, each.places, np.int32),
            np.zeros(count, np.int8),
            pa.array(each.least, from_pandas=True),
            each.least_at,
            pa.array(each.greatest, from_pandas=True),
            each.greatest_at,
            pa.nulls(count, pa.string()),
        ]
    layout = schema(len(paths))
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, layout, strict=True)], schema=layout)


def read(table: pa.Table, base: int = 0) -> Iterator[tuple[int, Pane]]:
    """The panes in some rows, by number; `base` is added to every place in the stream."""
    if not table.num_rows:
        return
    columns = [column.to_pylist() for column in table.columns]
    heads = zip(*columns[: len(_PANE)], strict=True)
    starts = range(len(_PANE), len(columns), len(_PARTIAL))
    paths = [[*map(_Reading(base), *columns[at : at + len(_PARTIAL)])] for at in starts]
    partials = zip(*paths, strict=True) if paths else iter([()] * table.num_rows)
    for (pane, order, file, offset, raw), each in zip(heads, partials, strict=True):
        yield int(pane), Pane(order + base, file, offset, raw, each)


@dataclass(frozen=True, slots=True)
class _Reading:
    base: int

    def __call__(
        self,
        count: int,
        total: str,
        places: int,
        special: int,
        least: float | None,
        least_at: int,
        greatest: float | None,
        greatest_at: int,
        failure: str | None,
    ) -> Partial:
        lowest = None if least is None else Ranked(least, least_at + self.base)
        highest = None if greatest is None else Ranked(greatest, greatest_at + self.base)
        reason: Failure | None = None
        if failure is not None:
            stage, order, message, code = json.loads(failure)
            reason = Failure(stage, order + self.base, message, code)
        return Partial(count, int(total, 16), places, special, lowest, highest, reason)
