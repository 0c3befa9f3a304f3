"""Grids: where the clauses of conditions lie, so that an entry meets few that it does not fulfil.

A clause is a box over ranks.
It goes into the grid over the two axes on which its kind is narrowest, into each cell that it touches; a clause with
one axis into a row of cells, one without any into the only cell of a grid that everything meets.
The bins of an axis hold equally many ranks, so many constants in one place have many bins there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.columnar.match.kernels import Cells, fill_cells
from anabranch.columnar.scan.kernels import Indices, Places

_MOST_BINS, _MOST_PAIR_BINS = 1 << 16, 1 << 8
_SPREAD = 16
"""On the average a clause may lie in so many cells; with more, the grid is made coarser."""
_NO_BINS = np.zeros(1, np.int32)


@dataclass(frozen=True, slots=True)
class _Block:
    """One clause of some conditions."""

    conditions: Places
    clause: int
    """What is still to be tested, -1 for nothing."""
    spans: tuple[Places, Places, Places, Places]
    """The lows and highs on one axis of the grid, then those on the other."""


class Grids:
    """All grids over some axes, of which the number of ranks is given."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._grids: dict[tuple[int, int], list[_Block]] = {}

    def add(self, conditions: Places, clause: int, spans: Mapping[int, tuple[Places, Places]], *, is_box: bool) -> None:
        """Add one clause of some conditions; `spans` are its lows and highs by axis, and all of it if it `is_box`."""
        narrow = sorted(spans, key=lambda axis: self._width(axis, *spans[axis]))[:2]
        axes = tuple(sorted(narrow))
        key = (axes[0] if axes else -1, axes[1] if len(axes) > 1 else -1)
        nothing = np.zeros(len(conditions), np.int32)
        chosen = [spans[axis] if axis >= 0 else (nothing, nothing) for axis in key]
        rest = -1 if is_box and len(spans) == len(narrow) else clause
        self._grids.setdefault(key, []).append(_Block(conditions, rest, (*chosen[0], *chosen[1])))

    def _width(self, axis: int, lows: Places, highs: Places) -> float:
        """Which part of an axis a clause has of it, for one in the middle."""
        return float(np.median(np.maximum(highs - lows + 1, 0))) / self._sizes[axis]

    def arrays(self) -> Cells:
        """As the kernel takes them (`kernels_matching.match`)."""
        shapes = np.zeros((len(self._grids), 4), np.int64)
        bins: list[Places] = []
        bounds: list[Indices] = [np.zeros(1, np.int64)]
        conditions: list[Places] = []
        clauses: list[Places] = []
        spans: list[Places] = [np.empty((0, 4), np.int32)]
        bin_count = cells = members = 0
        for number, (key, blocks) in enumerate(self._grids.items()):
            made = _made(blocks, [self._sizes[axis] if axis >= 0 else 0 for axis in key])
            shapes[number] = bin_count, bin_count + len(made.bins[0]), made.wide, cells
            bins += made.bins
            bin_count += sum(map(len, made.bins))
            bounds.append(members + made.bounds[1:])
            cells += len(made.bounds) - 1
            members += len(made.conditions)
            conditions.append(made.conditions)
            clauses.append(made.clauses)
            spans.append(made.spans)
        axes = np.array(list(self._grids), np.int64).reshape(-1, 2)
        none = [np.empty(0, np.int32)]
        return Cells(
            axes,
            shapes,
            np.concatenate([*none, *bins]),
            np.concatenate(bounds),
            np.concatenate([*none, *conditions]),
            np.concatenate([*none, *clauses]),
            np.concatenate(spans),
        )


@dataclass(frozen=True, slots=True)
class _Made:
    bins: tuple[Places, Places]
    wide: int
    bounds: Indices
    conditions: Places
    clauses: Places
    spans: Places


def _made(blocks: Sequence[_Block], sizes: Sequence[int]) -> _Made:
    """Lay a grid out, as fine as is worth it."""
    conditions = np.concatenate([each.conditions for each in blocks])
    clauses = np.concatenate([np.full(len(each.conditions), each.clause, np.int32) for each in blocks])
    spans = [np.concatenate([each.spans[place] for each in blocks]) for place in range(4)]
    most = _MOST_PAIR_BINS if sizes[1] else _MOST_BINS
    fine = most if not sizes[1] else min(most, 1 + 4 * int(np.sqrt(len(conditions))))
    while True:
        bins = (_bins(sizes[0], fine), _bins(sizes[1], fine))
        wide = int(bins[1][-1]) + 1
        heads = np.zeros((int(bins[0][-1]) + 1) * wide + 1, np.int64)
        given = (spans[0], spans[1], bins[0], spans[2], spans[3], bins[1], wide)
        total = fill_cells(*given, heads, np.empty(0, np.int64))
        if total <= _SPREAD * len(conditions) or fine == 1:
            break
        fine //= 2
    bounds = np.cumsum(heads)
    members = np.empty(total, np.int64)
    if total:
        fill_cells(*given, bounds[:-1].copy(), members)
    return _Made(bins, wide, bounds, conditions[members], clauses[members], np.stack(spans, 1)[members])


def _bins(size: int, fine: int) -> Places:
    """The bin of each rank of an axis."""
    return (np.arange(size) * min(fine, size) // size).astype(np.int32) if size else _NO_BINS
