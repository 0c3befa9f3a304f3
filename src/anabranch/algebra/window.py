"""Window: `W_k = [k*step, k*step + size)` for `k >= 0`, over reference values or over item numbers.

Law (LAWS 3.1, 3.3): an item is in every window whose interval holds its value, and in no other.
Bounds are fractions, so a step of 0.1 is a tenth and nothing else.

Items: grouped by the windows that hold them.
Accents, updates: not followed yet; a stream that carries them is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Extent:
    """The size and the step of a window."""

    size: Fraction
    step: Fraction

    def start(self, k: int) -> Fraction:
        """Where window `k` begins."""
        return k * self.step

    def end(self, k: int) -> Fraction:
        """Where window `k` ends, itself not in it."""
        return k * self.step + self.size

    def first(self, value: Fraction) -> int:
        """The first `k >= 0` whose window ends behind `value`: the first that can hold it."""
        return max(0, math.floor((value - self.size) / self.step) + 1)

    def holding(self, value: Fraction) -> range:
        """The `k` of all windows that hold `value`."""
        return range(self.first(value), math.floor(value / self.step) + 1)
