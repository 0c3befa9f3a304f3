"""Relaxing windows: one window from whose instances several others can be put together.

The relaxed window must tile each of the others: its step divides theirs, its size divides theirs, and its own step
divides its size, so that whole instances without gap or overlap make up an instance of theirs.
Of all such windows the one with the largest step is taken, since it produces the fewest values, and of those the one
with the largest size (sharing paper, 4.3, algorithm 1).

    >>> relax(Extent(Fraction(60), Fraction(40)), Extent(Fraction(20), Fraction(10)))
    Extent(size=Fraction(20, 1), step=Fraction(10, 1))
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from anabranch.algebra.window import Extent


def relax(first: Extent, second: Extent) -> Extent:
    """The window that serves both; sizes may be any fractions, common divisors are taken in their common unit."""
    unit = Fraction(1, math.lcm(*(each.denominator for each in (first.size, first.step, second.size, second.step))))
    size = math.gcd(int(first.size / unit), int(second.size / unit))
    step = math.gcd(int(first.step / unit), int(second.step / unit))
    # A divisor of both steps serves if some divisor of both sizes is a multiple of it; the largest is the gcd itself.
    largest = next(each for each in _divisors(step) if size % each == 0)
    return Extent(size * unit, largest * unit)


def _divisors(number: int) -> Iterator[int]:
    """All divisors, from the largest down."""
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    yield from (number // each for each in small)
    yield from (each for each in reversed(small) if each * each != number)
