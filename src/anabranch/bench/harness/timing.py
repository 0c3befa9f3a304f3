"""How things are timed: rounds after a warm-up, and two things in turns.

Identical code drifts by half over the life of a process, so two things are compared in pairs of turns ABBA, which
cancels a steady drift, and the figure is the median of the pairs' ratios.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TypeAlias

Figures: TypeAlias = "Mapping[str, float | str | Figures]"
"""Numbers by name, and words where a figure needs them: versions, settings, reasons."""
Work: TypeAlias = Callable[[], object]
Clock: TypeAlias = Callable[[], float]
"""A function that does some work and gives the seconds that it took."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """Rounds to warm up with, then pairs of turns."""

    warm_up: int
    pairs: int

    @staticmethod
    def of(quick: bool) -> Rounds:
        return Rounds(1, 2) if quick else Rounds(6, 10)


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds of both sides, and by how much the first is faster, pair by pair."""

    first: tuple[float, ...]
    second: tuple[float, ...]
    ratios: tuple[float, ...]
    items: int | None = None
    """The number of items, where it is not that of the whole bench."""

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    def figures(self, items: int) -> Figures:
        """The spread of the ratios, and how many items a second each side took."""
        items = self.items or items
        return {
            "ratio_least": min(self.ratios),
            "ratio_most": max(self.ratios),
            "items_per_second": items / median(self.first),
            "items_per_second_other": items / median(self.second),
        }


def compare(first: Clock, second: Clock, rounds: Rounds, label: str = "bench") -> Timings:
    """Compare the seconds that two things take; how far it is goes to standard error, since it takes minutes."""
    print(f"{label}: {rounds.warm_up} warm-up rounds", file=sys.stderr)
    for _ in range(rounds.warm_up):
        first()
        second()
    ours: list[float] = []
    theirs: list[float] = []
    ratios: list[float] = []
    for number in range(1, rounds.pairs + 1):
        a = first()
        b = second(), second()
        a_again = first()
        ours += [a, a_again]
        theirs += b
        ratios.append(sum(b) / (a + a_again))
        print(f"{label}: pair {number} of {rounds.pairs}, ratio {ratios[-1]:.2f}", file=sys.stderr)
    return Timings(tuple(ours), tuple(theirs), tuple(ratios))


def timed(work: Work) -> float:
    """The seconds that something takes."""
    begin = perf_counter()
    work()
    return perf_counter() - begin
