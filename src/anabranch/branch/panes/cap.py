"""Where a branch ends that holds too many panes (LAWS 2.9).

The panes of many ranges are merged before windows close, so what was held behind a single element is not known.
How many panes a window holds in the end is known, whatever came first.
So windows are answered, in their order, in front of the first one that holds too many, and the query ends in its place.
Sessions of all keys are open beside each other, so they are counted together, at each value at which one of their panes
begins; those are answered that have ended there.

An open window only gains panes.
So once one holds too many, what it will be is known, and panes that no window in front of it has are dropped: a branch
keeps no more than the windows that are open at a time may hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from anabranch.algebra.window import Panes
from anabranch.columnar.panes.spans import find_windows, window_spans
from anabranch.columnar.scan.kernels import Indices

PANES = "panes of its windows"
"""What a query holds whose windows are counted by panes."""
_AT_ONCE = 1 << 16
"""The number of windows that are found at a time."""


class FoundWindows(NamedTuple):
    """Windows with rising numbers: begins and ends in the panes that are there, and the number to go on from."""

    begins: Indices
    ends: Indices
    numbers: Indices
    following: int

    def sizes(self, behind: Indices | None) -> Indices:
        """How many panes each holds; `behind` says how many lie before each of the panes, None for one of each."""
        begins, ends = self.begins.astype(np.int64), self.ends.astype(np.int64)
        found: Indices = ends - begins if behind is None else behind[ends] - behind[begins]
        return found

    def before(self, count: int) -> FoundWindows:
        """The first of the windows."""
        return FoundWindows(self.begins[:count], self.ends[:count], self.numbers[:count], self.following)


def windows_over(panes: Indices | list[int], first: int, ended: int, of: Panes) -> Iterator[FoundWindows]:
    """The windows from one number on and before another that hold one of these rising panes, in batches.

    Pane numbers that do not fit 64 bits are a list of Python's integers.
    """
    is_listed = isinstance(panes, list)
    find = window_spans if is_listed else find_windows
    room = min(_AT_ONCE, 1 + len(panes) * (1 + of.size // of.step))  # each pane is in so many windows
    begins, ends, numbers = np.empty((3, room), object if is_listed else np.int64)
    count, following = room, first
    while count == room:
        count, following = find(panes, following, ended, of.size, of.step, begins, ends, numbers)
        yield FoundWindows(begins[:count], ends[:count], numbers[:count], following)


class WindowCap:
    """How many panes a window may hold, and which one is known to hold more."""

    def __init__(self, room: float, over: int | None = None) -> None:
        self.room = room
        self.over = over
        """The number of the first window that holds too many, None where none is known."""

    def holds_off(self, ended: int) -> int:
        """The number before which windows are answered, of those before `ended`."""
        return ended if self.over is None else min(ended, self.over)

    def cut(self, found: FoundWindows, behind: Indices | None) -> FoundWindows:
        """The windows in front of the first that holds too many panes, which is noted."""
        is_over = found.sizes(behind) > self.room
        if not is_over.any():
            return found
        at = int(np.argmax(is_over))
        self.over = int(found.numbers[at])
        return found.before(at)

    def look(self, panes: Indices | list[int], behind: Indices | None, first: int, ended: int, of: Panes) -> None:
        """Look for a window that holds too many panes already, among those from `first` on and before `ended`."""
        total = len(panes) if behind is None else int(behind[-1])
        if total > self.room:
            for found in windows_over(panes, first, self.holds_off(ended), of):
                if len(self.cut(found, behind).numbers) < len(found.numbers):
                    return

    def first_dropped(self, of: Panes) -> int | None:
        """The pane from which on no window holds one that is still answered; None where all may be."""
        return None if self.over is None else (self.over - 1) * of.step + of.size


def crowded(lows: Sequence[Fraction], stops: Sequence[tuple[Fraction, int]], room: float) -> Fraction | None:
    """The least value at which the sessions that are open have more panes than they may; None if there is none.

    `lows` are the least values of panes, `stops` where sessions end, and how many panes they have.
    """
    events = sorted([*((stop, -panes) for stop, panes in stops), *((low, 1) for low in lows)])
    open_panes = 0
    for value, change in events:
        open_panes += change
        if open_panes > room:
            return value
    return None


def crowded_rows(lows: Indices, stops: Indices, sizes: Indices, room: float) -> int | None:
    """The same for panes in rows, whose values are whole numbers of one unit."""
    values = np.concatenate([stops, lows])
    changes = np.concatenate([-sizes, np.ones(len(lows), np.int64)])
    order = np.lexsort((changes, values))
    is_over = np.cumsum(changes[order]) > room
    return int(values[order[np.argmax(is_over)]]) if is_over.any() else None
