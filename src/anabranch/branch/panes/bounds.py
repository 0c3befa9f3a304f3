"""The bounds of windows whose items are not held (LAWS 3.1).

A bound follows from the window's number; it is a dateTime where the window holds a time, and a decimal otherwise.
The groups of a window have the bounds of the window.

Bounds with few digits and in usual years are spelled in columns, as the law spells them; the others one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from anabranch.algebra.window import Extent
from anabranch.columnar.bound_texts import spelled_bounds
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.panes.sessions import decimal_places
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.language.windows.aggregates import BOUND_VARIABLES
from anabranch.law.bounds import WindowBounds, WindowValues
from anabranch.law.functions import BUILTINS
from anabranch.stream.path import TimeScale
from anabranch.values.atomic import spell
from anabranch.values.sequences import Values, atomize


class BoundTexts(Protocol):
    """The bounds of some windows, groups or sessions."""

    def texts(self, variable: str) -> TextColumn:
        """One bound of each window, group or session, as it is written."""


@dataclass(frozen=True, slots=True)
class ClosedBounds:
    """The bounds of some windows, or of groups of them."""

    extent: Extent
    scale: TimeScale
    numbers: Sequence[int]
    """The numbers of the windows."""
    are_times: Flags
    """Which of them hold times."""
    places: Indices | None = None
    """For bounds of groups: the window of each group, by its place in `numbers`."""
    _found: dict[str, TextColumn] = field(default_factory=dict)

    def known(self, window: int) -> dict[str, Callable[[], Values]]:
        """The bounds of one window, as the evaluator asks for them."""
        return {variable: partial(self._value, variable, window) for variable in BOUND_VARIABLES}

    def _value(self, variable: str, window: int) -> Values:
        number = self.numbers[window]
        start, end = self.extent.start(number), self.extent.end(number)
        bounds = WindowBounds(start, end, self.scale, bool(self.are_times[window]))
        return BUILTINS[BOUND_VARIABLES[variable]](WindowValues((), bounds))

    def texts(self, variable: str) -> TextColumn:
        """A bound of each window or group, as it is written."""
        if variable not in self._found:
            self._found[variable] = self._spelled(variable)
        found = self._found[variable]
        return found if self.places is None else found.take(self.places)

    def _spelled(self, variable: str) -> TextColumn:
        found = self._in_columns(variable)
        if found is not None:
            return found
        values = (atomize(self._value(variable, window)) for window in range(len(self.numbers)))
        return TextColumn.of(*(spell(value).encode() for (value,) in values))

    def _in_columns(self, variable: str) -> TextColumn | None:
        """The texts of a bound, spelled in columns; None where columns cannot spell all of them."""
        first = self.scale.origin + (self.extent.end(0) if BOUND_VARIABLES[variable] == "window-end" else 0)
        step, places = self.extent.step, decimal_places(first, self.extent.step)
        most = max((1, *map(abs, self.numbers)))
        if places is None or (abs(first) + step * most) * 10**places >= _MOST:
            return None
        ticks = int(first * 10**places) + int(step * 10**places) * np.array(self.numbers, np.int64)
        return spelled_bounds(ticks, places, self.are_times, self.scale.per_second)


_MOST = 1 << 62
