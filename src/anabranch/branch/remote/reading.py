"""Lines as rows of panes: windows that hold plain numbers, many at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anabranch.aggregates.partial import ItemAt
from anabranch.branch.remote.lines import plain_line
from anabranch.branch.remote.queries import SentQuery
from anabranch.columnar.panes.kernels import HALF, LOW
from anabranch.columnar.panes.rows import Rows
from anabranch.columnar.scan.kernels import Indices

UNTOLD = 1 << 62
"""The place of a window of which nobody need know where it stood: behind all others."""


@dataclass(frozen=True, slots=True)
class PlainLines:
    """Windows that hold plain numbers."""

    at: list[int]
    """Which of the lines they are."""
    numbers: Indices
    rows: Rows
    """One for each, by aggregated path of the query; none is placed yet."""

    def __len__(self) -> int:
        return len(self.at)

    def told(self, firsts: Sequence[ItemAt], orders: Sequence[int]) -> Rows:
        """The rows with where the lines stood."""
        rows = replace(self.rows, told=tuple(firsts))
        rows.firsts[:], rows.orders[:] = np.arange(len(firsts)), orders
        return rows


class LineReader:
    """Reads the windows that a query is sent."""

    def __init__(self, query: SentQuery) -> None:
        self._query = query
        self._plain = plain_line(query.layout)
        groups = [(place, field) for place, fields in enumerate(query.layout.fields) for field in fields]
        self._groups = dict(enumerate(groups, 1))  # by the group of the pattern; the first is the number
        self._width = len(groups) + 1

    def plain(self, raws: Sequence[bytes]) -> PlainLines:
        """Those of some lines that are windows with plain numbers."""
        found = [(at, match.groups()) for at, raw in enumerate(raws) if (match := self._plain.fullmatch(raw))]
        columns = list(zip(*(groups for _, groups in found), strict=True)) if found else [()] * self._width
        rows = Rows.empty(len(self._query.places), len(found))
        rows.orders[:] = UNTOLD
        for path, place in enumerate(self._query.places):
            _fill(rows, path, {field: columns[at] for at, (each, field) in self._groups.items() if each == place})
        return PlainLines([at for at, _ in found], np.array(list(map(int, columns[0])), np.int64), rows)


def _fill(rows: Rows, path: int, texts: Mapping[str, Sequence[bytes]]) -> None:
    """Fill in one path by what is told of it, each by line."""
    if "c" in texts:
        rows.counts[path] = list(map(int, texts["c"]))
    else:  # that there are some is all that is asked
        rows.counts[path] = [any(each) for each in zip(*texts.values(), strict=True)]
    if "s" in texts:
        split = [each.partition(b".") for each in texts["s"]]
        totals = np.array([int(whole + behind or b"0") for whole, _, behind in split], np.int64)
        rows.high[path], rows.low[path] = totals >> HALF, totals & LOW
        rows.places[path] = [len(behind) for _, _, behind in split]
    if "l" in texts:
        rows.least[path], rows.least_at[path] = _ranks(texts["l"])
    if "g" in texts:
        rows.greatest[path], rows.greatest_at[path] = _ranks(texts["g"])


def _ranks(texts: Sequence[bytes]) -> tuple[NDArray[np.float64], Indices]:
    split = [each.partition(b" ") for each in texts]
    values = np.array([float(value or b"nan") for value, _, _ in split], np.float64)
    return values, np.array([int(order or b"0") for _, _, order in split], np.int64)
