"""Conjunctions of two ranges over readings (`readings.py`), up to a million of them.

A subscription asks for a rectangle of `t` and `u`, which are spread evenly from 0 to 100.
N of them have an N-th of the square each, at a random place and of a random shape, so an item matches one of them on
average, and no two have a bound in common.
Which readings they select can be counted without any engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from random import Random

import numpy as np

from anabranch.bench.workloads.readings import DeviceReading, WireFormat

_DIGITS = 10_000
_SIDE = 100 * _DIGITS


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Lower and upper bounds of `t` and `u`, in ten-thousandths."""

    t: tuple[int, int]
    u: tuple[int, int]

    def query(self, wire: WireFormat) -> str:
        """The query that selects it."""
        paths = wire.paths()
        bounds = " and ".join(
            f"{paths[leaf]} >= {_text(low)} and {paths[leaf]} < {_text(high)}"
            for leaf, (low, high) in (("t", self.t), ("u", self.u))
        )
        items = 'stream("readings")/readings/reading'
        result = f"<hit>{{ {paths['id']} }}{{ {paths['t']} }}</hit>"
        return f"<hits>{{ for $p in {items} where {bounds} return {result} }}</hits>"


def rectangles(count: int, seed: int = 1) -> list[Rectangle]:
    """`count` rectangles of equal area; a single one is the whole square."""
    random = Random(seed)
    found = []
    for _ in range(count):
        width = round(_SIDE * min(1, sqrt(1 / count) * 2 ** random.uniform(-1, 1)))
        height = min(_SIDE, round(_SIDE * _SIDE / count / width))
        left, low = random.randint(0, _SIDE - width), random.randint(0, _SIDE - height)
        found.append(Rectangle((left, left + width), (low, low + height)))
    return found


def selected(wanted: Sequence[Rectangle], items: Iterable[DeviceReading]) -> list[int]:
    """How many readings each of them selects."""
    values = np.array([[int(value * _DIGITS) for _, value in each.measurement] for each in items])
    t, u = values[np.argsort(values[:, 0])].T
    found = []
    for each in wanted:
        strip = u[np.searchsorted(t, each.t[0]) : np.searchsorted(t, each.t[1])]
        found.append(int(np.count_nonzero((strip >= each.u[0]) & (strip < each.u[1]))))
    return found


def _text(value: int) -> str:
    return f"{value // _DIGITS}.{value % _DIGITS:04}"
