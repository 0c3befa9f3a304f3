"""The bounds of windows whose items are not held (LAWS 3.1).

They follow from the number of a window, and from whether it holds a time: then they are dateTimes, and decimals else.
All groups of a window have those of the window.

Bounds that are few digits of a usual year are spelled in columns, as the law spells them; the others one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from anabranch.algebra.window import Extent
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.language.aggregates import BOUND_VARIABLES
from anabranch.law.bounds import WindowBounds, WindowValues
from anabranch.law.functions import BUILTINS
from anabranch.stream.path import TimeScale
from anabranch.values.atomic import spell
from anabranch.values.sequences import Values, atomize


@dataclass(frozen=True, slots=True)
class ClosedBounds:
    """The bounds of some windows, or of groups of them."""

    extent: Extent
    scale: TimeScale
    numbers: Sequence[int]
    """Those of the windows."""
    are_times: Flags
    """Which of them hold times."""
    places: Indices | None = None
    """Where they are those of groups, of which window each group is."""
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
        """The same where all windows have times, or none has, and all bounds fit."""
        is_time = bool(self.are_times.all())
        if not len(self.numbers) or is_time != bool(self.are_times.any()):
            return None
        first = self.scale.origin + (self.extent.end(0) if BOUND_VARIABLES[variable] == "window-end" else 0)
        unit = self.scale.per_second if is_time else 1
        first, step = first / unit, self.extent.step / unit
        under = math.lcm(first.denominator, step.denominator)
        places = next((each for each in range(_MOST_PLACES) if 10**each % under == 0), None)
        most = max(1, abs(self.numbers[0]), abs(self.numbers[-1]))
        if places is None or (abs(first) + step * most) * 10**places >= _MOST:
            return None
        ticks = int(first * 10**places) + int(step * 10**places) * np.array(self.numbers, np.int64)
        return _moments(ticks, places) if is_time else _decimals(ticks, places)


_MOST_PLACES = 10
_MOST = 1 << 62
_YEARS = -62_135_596_800, 253_402_300_799
"""The seconds from 1970 to the first moment of the year 1, and to the last of the year 9999."""


def _moments(ticks: Indices, places: int) -> TextColumn | None:
    """Seconds in units of `10**-places` as dateTimes; None where years are unusual."""
    whole, part = np.divmod(ticks, 10**places)
    if not (_YEARS[0] <= whole.min() and whole.max() <= _YEARS[1]):
        return None
    spelled = np.datetime_as_string(whole.astype("M8[s]")).astype(np.bytes_)
    return _with_parts(spelled.tolist(), part, places, b"Z")


def _decimals(ticks: Indices, places: int) -> TextColumn:
    """Decimals in units of `10**-places`."""
    whole, part = np.divmod(np.abs(ticks), 10**places)
    signed = zip(ticks.tolist(), whole.tolist(), strict=True)
    return _with_parts([b"-%d" % each if tick < 0 else b"%d" % each for tick, each in signed], part, places, b"")


def _with_parts(whole: Sequence[bytes], part: Indices, places: int, behind: bytes) -> TextColumn:
    """Texts with digits behind the point, where there are some, and something behind all that."""
    if not part.any():
        return TextColumn.of(*(each + behind for each in whole))
    digits = (f".{each:0{places}d}".rstrip("0").encode() if each else b"" for each in part.tolist())
    return TextColumn.of(*(each + more + behind for each, more in zip(whole, digits, strict=True)))
