"""Differences between numbers: whether `x - y <= c`, `x - y < c` and `x - y != c` can hold together.

The bounds are a graph: `x - y <= c` is an edge of length c, and there is a solution in the reals unless some cycle is
shorter than 0; shortest paths (Floyd and Warshall) find it, in exact fractions, a strict bound being a little shorter
than one that is not.
Number 0 is the constant 0, so that bounds of single numbers are differences, too.

Whole numbers: shortest paths between them are rounded down; then there is a solution in whole numbers if there is one
in reals, to which the others can be added, since shortest paths are all the constraints on them.

Inequalities: in the reals, bounds that leave room for each of some inequalities leave room for all of them, so each is
tested by itself; with whole numbers that is not so, and each is tried from both sides, up to a number of them beyond
which a solution is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import TypeAlias

Length: TypeAlias = tuple[Fraction, int]
"""A bound: the largest difference, and 1 if it is included, 0 if not."""
Bound: TypeAlias = tuple[int, int, Length]
"""`x - y` has this length at most."""
Unequal: TypeAlias = tuple[int, int, Fraction]
"""`x - y` is not this."""
Lengths: TypeAlias = list[list[Length | None]]

_ZERO: Length = (Fraction(0), 1)
_MOST_SIDES = 10


def feasible(count: int, bounds: Sequence[Bound], unequal: Sequence[Unequal], whole: Collection[int]) -> bool:
    """Whether numbers 1 to count - 1 exist with these bounds; `whole` says which of them must be whole."""
    lengths: Lengths = [[None] * count for _ in range(count)]
    for x, y, length in bounds:
        _shorten(lengths, x, y, length)
    if not _close(lengths):
        return False
    if not whole:
        return not any(_equal(lengths, *each) for each in unequal)
    integers = (0, *whole)
    for x in integers:
        for y in integers:
            if (between := lengths[x][y]) is not None:
                lengths[x][y] = _rounded(between)
    if not _close(lengths):
        return False
    close = [each for each in unequal if not _excluded(lengths, *each)]
    if not close or len(close) > _MOST_SIDES:
        return True
    (x, y, c), *others = close
    sides: tuple[Bound, Bound] = ((x, y, (c, 0)), (y, x, (-c, 0)))
    return any(feasible(count, (*bounds, side), others, whole) for side in sides)


def _shorten(lengths: Lengths, x: int, y: int, length: Length) -> None:
    known = lengths[x][y]
    if known is None or length < known:
        lengths[x][y] = length


def _close(lengths: Lengths) -> bool:
    """Take shortest paths; False if a cycle is shorter than 0."""
    for middle, onwards in enumerate(lengths):
        for row in lengths:
            first = row[middle]
            if first is None:
                continue
            for y, second in enumerate(onwards):
                if second is None:
                    continue
                way = (first[0] + second[0], first[1] & second[1])
                known = row[y]
                if known is None or way < known:
                    row[y] = way
    return all((own := row[x]) is None or own >= _ZERO for x, row in enumerate(lengths))


def _equal(lengths: Lengths, x: int, y: int, c: Fraction) -> bool:
    """Whether `x - y` can only be c."""
    if x == y:
        return c == 0
    return lengths[x][y] == (c, 1) and lengths[y][x] == (-c, 1)


def _excluded(lengths: Lengths, x: int, y: int, c: Fraction) -> bool:
    """Whether `x - y` is known not to be c."""
    if x == y:
        return c != 0
    above, below = lengths[x][y], lengths[y][x]
    return (above is not None and above < (c, 1)) or (below is not None and below < (-c, 1))


def _rounded(length: Length) -> Length:
    most, reached = length
    return (Fraction(math.floor(most) if reached else math.ceil(most) - 1), 1)
