"""The hits of a batch, what its windows take for certain, as the kernels place them and add them up."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.panes.batch import PaneBatch
from anabranch.columnar.panes.kernels import add_up
from anabranch.columnar.panes.query import PaneQuery
from anabranch.columnar.panes.rows import Rows
from anabranch.columnar.scan.kernels import Bytes, Indices

_FAR = 1 << 62


def placing(
    batch: PaneBatch,
    members: Container[int],
    states: Sequence[Bytes],
    queries: Sequence[PaneQuery],
    axis_of: Sequence[int],
) -> tuple[NDArray[Any], ...]:
    """Where the hits of some members are placed: by condition, and the axes, whose entries have these states."""
    rows: list[tuple[int, ...]] = []
    for member in batch.members:
        panes, axis = queries[member].panes, axis_of[member]
        ratio = queries[member].ratio(batch.axes[axis].places) if axis >= 0 else (1, 1)
        is_near = max(*ratio, panes.size, panes.step) < _FAR  # nothing of one that is not is taken for certain
        numbers = (*ratio, panes.size, panes.step) if is_near else (1, 1, 1, 1)
        rows.append((member if member in members else -1, axis, *numbers))
    whose, axes, *sizes = np.array(rows, np.int64).reshape(-1, 6).T.copy()
    nothing = np.zeros(len(batch.shredded.fits), np.int64)
    ticks = [nothing if each.ticks is None else each.ticks for each in batch.axes]
    return whose, axes, np.array([*states, nothing], np.uint8), np.array([*ticks, nothing]), *sizes


def add_path(
    batch: PaneBatch, rows: Indices, path: int, into: Rows, queries: Sequence[PaneQuery], entries: int
) -> None:
    """Add the values of one aggregated path to the rows of its hits; so many entries came before the batch."""
    assert batch.columns is not None, "what hits has columns"
    places = [each[path].places if path < len(each) else () for each in batch.paths]
    asked = [queries[member].ranked for member in batch.members]
    add_up(
        batch.conditions,
        batch.entries,
        rows,
        entries,
        np.cumsum([0, *map(len, places)]),
        np.array([each.taken for given in places for each in given], np.int64),
        np.array([each.leaf for given in places for each in given], np.int64),
        np.array([each[path] if path < len(each) else 0 for each in asked], np.int64),
        batch.columns.flags,
        batch.columns.ticks,
        batch.columns.values,
        into.counts[path],
        into.high[path],
        into.low[path],
        into.least[path],
        into.least_at[path],
        into.greatest[path],
        into.greatest_at[path],
    )
