"""Window queries that are counted together: ranges are taken in, and panes merged, for all of them at once.

Whether the count of a range is void is decided for each branch by itself: a branch that began later has seen less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from anabranch.branch.futures import NEVER
from anabranch.branch.panes.closing import close_together
from anabranch.branch.panes.futures import future_of
from anabranch.branch.panes.panes import PaneWindows
from anabranch.branch.panes.state import PaneState
from anabranch.columnar.panes.counted import CountedRange
from anabranch.columnar.panes.rows import GroupPane, Rows, together
from anabranch.columnar.scan.kernels import Indices


@dataclass(frozen=True, slots=True)
class Served:
    """The branches that a member of a range was counted for, and how wide the panes of the count are."""

    numbers: tuple[int, ...]
    width: Fraction


class PaneGroup:
    """The branches of some queries by number, for one epoch."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._windows: list[PaneWindows] = []
        self._parts: dict[int, list[Rows]] = {}

    def add(self, number: int, windows: PaneWindows) -> None:
        """Let a branch join; its number is new."""
        self._places[number] = len(self._windows)
        self._windows.append(windows)

    def of(self, number: int) -> PaneWindows:
        return self._windows[self._places[number]]

    def take(self, partition: int, counted: CountedRange, served: Sequence[Served]) -> list[int]:
        """Take in the next range; `served` says for each of its members which branches it was counted for.

        Returns the branches for which the count is void; for those nothing is taken.
        """
        void: list[int] = []
        odd: dict[int, list[GroupPane]] = {}
        for member, key, number, pane in counted.panes.odd:
            odd.setdefault(member, []).append(((key, number), pane))
        for turn in range(max((len(served[member].numbers) for member in counted.members), default=0)):
            places, orders, arrived, bases = np.zeros((4, max(counted.members) + 1), np.int64)
            places -= 1
            keys: list[Indices] = []
            behind = 0
            widths = np.ones(len(places), np.int64)
            for member in counted.members:
                numbers = served[member].numbers
                if turn >= len(numbers):
                    continue
                windows = self.of(numbers[turn])
                renamed = windows.numbered(counted.keys.get(member, ()))
                keys.append(renamed)
                bases[member], behind = behind, behind + len(renamed)
                finer = 1 if windows.width is None else int(windows.width / served[member].width)
                named = [((int(renamed[key]), number), pane) for (key, number), pane in odd.get(member, ())]
                at = windows.take(partition, counted.of(member), named, finer)
                if at is None:
                    void.append(numbers[turn])
                    continue
                places[member], orders[member] = self._places[numbers[turn]], at[0]
                widths[member], arrived[member] = (windows.count_width, at[1]) if windows.count_width else (finer, 0)
            for paths, rows in counted.panes.rows.items():
                taken = places[rows.members] >= 0
                mine = rows if taken.all() else rows.at(taken)
                mine = mine.renamed(bases, np.concatenate(keys)) if counted.keys else mine
                self._parts.setdefault(paths, []).append(mine.placed(places, orders, widths, arrived))
        return void

    def leave(self, number: int) -> None:
        """Remove a branch; its number does not come again."""
        del self._places[number]

    def close(self, numbers: Iterable[int]) -> None:
        """Answer the complete windows of some branches, many branches together."""
        left = dict.fromkeys(self._places[number] for number in numbers)
        for places, rows, bounds in self._merge():
            if left.keys() >= set(places):
                close_together([self._windows[place] for place in places], rows, bounds)
                left = dict.fromkeys(each for each in left if each not in places)
        for place in left:
            self._windows[place].close()

    def _merge(self) -> list[tuple[Sequence[int], Rows, Sequence[int]]]:
        """Merge the rows that were taken in with those that the branches hold.

        Returns merged rows, in which branches that may be answered together follow each other: the places of the
        branches, the rows, and the bounds of each branch in them.
        """
        found: list[tuple[Sequence[int], Rows, Sequence[int]]] = []
        for paths, parts in self._parts.items():
            places = [place for place, each in enumerate(self._windows) if each.paths == paths]
            places.sort(key=lambda place: self._windows[place].plan.shape or "")
            turns = np.zeros(len(self._windows), np.int64)
            turns[places] = np.arange(len(places))
            held = [self._windows[place].rows.of(turn) for turn, place in enumerate(places)]
            taken = (replace(each, members=turns[each.members]) for each in parts)
            whole = together([*(each for each in held if len(each)), *taken], paths)
            level = whole.merged()
            rows = whole.at(np.argsort(whole.members, kind="stable")) if level is None else level
            bounds = np.searchsorted(rows.members, np.arange(len(places) + 1)).tolist()
            for place, span in zip(places, pairwise(bounds), strict=True):
                self._windows[place].rows = rows.part(*span).of(0)
            if level is not None:
                found.append((places, rows, bounds))
        self._parts = {}
        return found

    def save(self) -> dict[int, PaneState]:
        """What to remember after the epoch, by branch."""
        return {number: self._windows[place].save() for number, place in self._places.items()}

    def futures(self, states: Mapping[int, PaneState], numbers: Iterable[int]) -> dict[int, str]:
        """The futures of some branches (`futures.py`), which have these states; others cannot be compared."""
        found = {each: future_of(self.of(each).plan, states[each], self.of(each).progress) for each in numbers}
        return {number: future for number, future in found.items() if future != NEVER}
