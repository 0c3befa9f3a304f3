"""Windows: `W_k = [k*step, k*step + size)`, over reference values or over item numbers.

Law (LAWS 3.1, 3.3): an item is in every window whose interval holds its value, and in no other; a value that is no time
is in none with `k < 0`.
Bounds are fractions, so a step of 0.1 is a tenth and nothing else.

Items: grouped by the windows that hold them, or by *panes*: the widest pieces that divide every window without rest
(the sharing paper's section 4.3). A pane is as wide as the greatest common divisor of size and step.
Accents: values are canonical before they get here, so a unit change of the reference path moves no item to another
window (LAWS 4.2 b); the operator decides what comes out (`algebra/operators/windowed.py`).
Updates: windows over streams of updates are displays of what the document holds now (LAWS 5.10).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from anabranch.values.placing import Moment

EARLIEST = -(1 << 80)
"""A number before those of all windows: the start of a state that has not moved or answered yet."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The size and the step of a window."""

    size: Fraction
    step: Fraction

    def start(self, k: int) -> Fraction:
        """The start of window `k`."""
        return k * self.step

    def end(self, k: int) -> Fraction:
        """The end of window `k`, exclusive."""
        return k * self.step + self.size

    def behind(self, value: Fraction) -> int:
        """The first `k` whose window ends behind a value of any type."""
        return math.floor((value - self.size) / self.step) + 1

    def first(self, value: Fraction) -> int:
        """The first `k` whose window can hold an item of this value."""
        return self.behind(value) if isinstance(value, Moment) else max(0, self.behind(value))

    def from_start(self, value: Fraction) -> int:
        """The first `k` whose window begins at or after `value`."""
        return math.ceil(value / self.step)

    def holding(self, value: Fraction) -> range:
        """The `k` of all windows that hold `value`."""
        return range(self.first(value), math.floor(value / self.step) + 1)


@dataclass(frozen=True, slots=True)
class Panes:
    """The panes of windows: pane `p` is the interval `[p*width, (p+1)*width)`, and a window some of them in a row."""

    width: Fraction
    size: int
    """The number of panes in a window."""
    step: int
    """The number of panes between the starts of two windows."""

    @staticmethod
    def of(extent: Extent) -> Panes:
        """The panes of windows of this extent."""
        common = math.lcm(extent.size.denominator, extent.step.denominator)
        size, step = int(extent.size * common), int(extent.step * common)
        divisor = math.gcd(size, step)
        return Panes(Fraction(divisor, common), size // divisor, step // divisor)

    def at(self, value: Fraction) -> int:
        """The pane that holds a value."""
        return math.floor(value / self.width)

    def is_used(self, pane: int) -> bool:
        """Whether a window with `k >= 0` holds a pane."""
        return pane >= 0 and pane % self.step < self.size

    def is_used_before(self, pane: int) -> bool:
        """Whether a window with `k < 0` holds a pane."""
        return pane < self.size - self.step and pane % self.step < self.size

    def window(self, k: int) -> range:
        """The panes of window `k`."""
        return range(k * self.step, k * self.step + self.size)

    def first(self, pane: int) -> int:
        """The first `k >= 0` whose window ends behind a pane: the first that can hold it."""
        return max(0, (pane - self.size) // self.step + 1)

    def ended(self, reached: Fraction) -> int:
        """The number of windows that end at or before a value."""
        unit = self.width.numerator * reached.denominator
        return max(0, (reached.numerator * self.width.denominator - self.size * unit) // (self.step * unit) + 1)
