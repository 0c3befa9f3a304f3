"""The rows of repeated parts: each occurrence of a part that may come several times in an item.

A *frame* is a repeated part; its rows are in the order of the items, and within an item in document order.
Each row of a frame inside another frame belongs to a row of that frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from anabranch.columnar.scan.kernels import ABSENT, Bytes, Indices, Numbers, Places, compiled, number_at
from anabranch.columnar.scan.wanted import FrameLog, WantedColumns


@dataclass(frozen=True)
class FrameRows:
    """The rows of one frame; `starts`, `ends` and `values` are by wanted row, as those of items are."""

    parents: Indices
    """By row: the row of the frame around it, or the item."""
    heads: Indices
    """By parent: its first row here; the last number is the number of rows."""
    starts: Places
    ends: Places
    values: Numbers

    def rows_in(self, around: Indices) -> tuple[Indices, Indices]:
        """The rows inside some rows of the frame around, in order, and for each the index of its parent in `around`."""
        counts = self.heads[around + 1] - self.heads[around]
        owners = np.repeat(np.arange(len(around)), counts)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(self.heads[around], counts) + within, owners

    def rows_between(self, first: int, last: int) -> tuple[Indices, Indices]:
        """The same for all rows of the frame around from `first` to before `last`."""
        begin, end = self.heads[first], self.heads[last]
        return np.arange(begin, end), self.parents[begin:end] - first


class Frames(Protocol):
    """The frames of a batch."""

    def of(self, part: int) -> FrameRows:
        """The rows of a repeated part."""


@dataclass(frozen=True)
class LoggedFrames:
    """The frames of a batch, from the log of a scanner."""

    wanted: WantedColumns
    data: Bytes
    log: FrameLog
    items: int

    @cached_property
    def _found(self) -> dict[int, FrameRows]:
        opened, logged, *counts = self.log.counts.tolist()
        openings, spans = self.log.opened[:opened], self.log.spans[:logged]
        frames = self.wanted.guide.frames
        row_frames = np.array([frames[column if column >= 0 else ~column] for column in self.wanted.columns], np.int64)
        numeric = np.flatnonzero(self.wanted.guide.numeric)
        found: dict[int, FrameRows] = {}
        for number, part in enumerate(self.wanted.frames, 1):
            count = counts[number - 1]
            parents = openings[openings[:, 0] == number, 1].astype(np.int64)
            above = self.wanted.look.parts[part].parent
            around = self.wanted.look.frames[above] if above >= 0 else -1
            heads = np.concatenate(
                [
                    [0],
                    np.cumsum(np.bincount(parents, minlength=self.items if around < 0 else len(found[around].parents))),
                ]
            )
            starts, ends = (np.empty((len(row_frames), count), np.int32) for _ in range(2))
            values = np.empty((len(row_frames), count))  # rows of other frames mean nothing
            mine = np.flatnonzero(row_frames == number)
            starts[mine], ends[mine], values[mine] = ABSENT, ABSENT, np.nan
            _place(spans, row_frames, number, starts, ends)
            for row in np.intersect1d(mine, numeric).tolist():
                _read_numbers(self.data, starts[row], ends[row], values[row])
            found[part] = FrameRows(parents, heads, starts, ends, values)
        return found

    def of(self, part: int) -> FrameRows:
        """The rows of a repeated part."""
        return self._found[part]


@compiled
def _place(spans: Places, row_frames: Indices, frame: int, starts: Places, ends: Places) -> None:
    """Set the logged spans of a frame in its columns."""
    for at in range(len(spans)):
        column, row = spans[at, 0], spans[at, 1]
        if row_frames[column] == frame:
            starts[column, row], ends[column, row] = spans[at, 2], spans[at, 3]


@compiled
def _read_numbers(data: Bytes, starts: Places, ends: Places, values: Numbers) -> None:
    """Read the texts that are simple numbers."""
    for row in range(len(starts)):
        if starts[row] >= 0:
            value, end = number_at(data, starts[row], ends[row])
            if end == ends[row] and end > starts[row]:
                values[row] = value
