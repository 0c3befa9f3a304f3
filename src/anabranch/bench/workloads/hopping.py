"""Windows of event time over photons, all different, for us and for peers.

Each is an aggregate over the photons that a conjunction of ranges selects (`conjunctions.py`); sizes, steps and
functions are drawn from a seed, in milliseconds, which is how exactly photons are timed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from anabranch.bench.workloads.conjunctions import EN, PATHS, PHC, Conjunction, PhotonLeaves

_CALLS = (("avg", EN), ("max", EN), ("min", EN), ("sum", PHC), ("avg", PHC), ("count", EN))
_SIZES = (0.5, 1, 1.5, 2, 3)
"""Sizes of windows, in steps."""
_SHARE = 10
"""A window is over one in so many of the photons."""
_VALUE = re.compile(r"<v>([^<]*)</v>")


@dataclass(frozen=True, slots=True)
class HoppingWindow:
    """An aggregate of a leaf, by its number in `PATHS`, in windows of `size` every `step`, in milliseconds."""

    function: str
    leaf: int
    size: int
    step: int
    of: Conjunction

    @property
    def query(self) -> str:
        """The query that gives it."""
        where = " and ".join(
            f"{PATHS[each.leaf]} >= {low} and {PATHS[each.leaf]} < {high}"
            for each in self.of.ranges
            for low, high in (each.bounds,)
        )
        bounds = f"det_time diff {self.size / 1_000:g} step {self.step / 1_000:g}"
        items = f'stream("photons")/photons/photon[{where}] |{bounds}|'
        call = f"{self.function}($w/{PATHS[self.leaf]})"
        return f"<all>{{ for $w in {items} let $a := {call} return <v>{{ $a }}</v> }}</all>"

    @property
    def line(self) -> str:
        """A line for the program of a peer."""
        return f"{self.function} {self.leaf} {self.size} {self.step} {self.of.line}"


def hopping_windows(leaves: PhotonLeaves, count: int, seed: int = 1) -> list[HoppingWindow]:
    """`count` windows over photons."""
    random = Random(seed)
    found = []
    for each in leaves.conjunctions(count, max(1, count // _SHARE)):
        step = 50 * random.randrange(400, 601)
        function, leaf = random.choice(_CALLS)
        found.append(HoppingWindow(function, leaf, round(random.choice(_SIZES) * step), step, each))
    return found


def window_values(answer: str) -> list[float]:
    """The aggregates of an answer of ours, in the order of windows."""
    return [float(each) for each in _VALUE.findall(answer)]


def values_by_query(lines: Sequence[str], queries: int) -> list[list[float]]:
    """What a peer has written: the number of a query and a value, in a line."""
    found: list[list[float]] = [[] for _ in range(queries)]
    for line in lines:
        query, value = line.split()
        found[int(query)].append(float(value))
    return found
