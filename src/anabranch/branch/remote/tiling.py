"""Windows as the panes of larger ones.

By SELECTWINDOWS, window `k` has as its parts the windows `k * step + i * every` for `i < count`, those that there are.
Where these lie one behind the other, or all windows take from the same of them, they are panes, and each is counted
once however many windows hold it; else each window has panes of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.algebra.window import Panes
from anabranch.columnar.scan.kernels import Indices
from anabranch.sharing.match_joins import SelectWindows

SAME = SelectWindows(1, 1, 1)
_ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class WindowTiling:
    """How windows are put together from others."""

    selection: SelectWindows

    @property
    def _apart(self) -> bool:
        """Whether windows take from different ones, so that they have panes of their own."""
        return self.selection.step % self.selection.every != 0

    @property
    def panes(self) -> Panes:
        """What windows are made of."""
        count, every, step = self.selection.count, self.selection.every, self.selection.step
        return Panes(_ONE, count, count if self._apart else step // every)

    def placed(self, numbers: Indices) -> tuple[Indices, Indices]:
        """Of some windows those that are panes, by their places, and the panes that they are."""
        count, every, step = self.selection.count, self.selection.every, self.selection.step
        if not self._apart:
            places = np.flatnonzero(numbers % every == 0)
            return places, numbers[places] // every
        found = [
            (place, k * count + (number - k * step) // every)
            for place, number in enumerate(numbers.tolist())
            for k in range(self.complete(number), number // step + 1)
            if (number - k * step) % every == 0
        ]
        places, panes = np.array(found, np.int64).reshape(-1, 2).T
        return places, panes

    def reached(self, number: int) -> int:
        """How many panes are there where all windows before a number have come."""
        return self.complete(number) * self.selection.count if self._apart else -(-number // self.selection.every)

    def complete(self, number: int) -> int:
        """How many windows are complete where all parts before a number have come."""
        count, every, step = self.selection.count, self.selection.every, self.selection.step
        return max(0, (number - 1 - (count - 1) * every) // step + 1)

    def first(self, number: int) -> int:
        """The first window that has no part before a number."""
        return -(-number // self.selection.step)
