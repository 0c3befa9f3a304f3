"""The step join: LAWS 3.5, executable (sharing paper, 5.1.1).

Every `for` of the join has a window of its own.
Items wait until their window moves; the items that enter by a movement meet what the other windows hold at that
moment, and only then are they held themselves.
A window moves position by position, through empty ones too, and lets go of what it leaves behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Generic, Literal, TypeVar

from anabranch.algebra.window import Extent
from anabranch.law.rounds.windows import Reach

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """An item that one side of the join selects."""

    side: int
    item: T
    value: Fraction | None
    """The reference value of a time window; None for a count window."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The stream of a side with a time window has come so far, by whatever showed it."""

    side: int
    reached: Reach


@dataclass(slots=True)
class Side(Generic[T]):
    """One window of the join. `next` is the position it has yet to move to."""

    kind: Literal["count", "time"]
    extent: Extent
    next: int = 0
    waiting: list[tuple[Fraction, T]] = field(default_factory=list)
    held: list[tuple[Fraction, T]] = field(default_factory=list)
    arrived: int = 0

    def move(self) -> list[T]:
        """Move to the next position; gives the items that enter."""
        start, end = self.extent.start(self.next), self.extent.end(self.next)
        entering = [each for each in self.waiting if start <= each[0] < end]
        self.waiting = [each for each in self.waiting if each[0] >= end]
        self.held = [each for each in self.held if each[0] >= start] + entering
        self.next += 1
        return [item for _, item in entering]

    def movements_to(self, reached: Reach) -> Iterator[list[T]]:
        """All movements that `reached` brings about."""
        while self.extent.end(self.next) <= reached:
            if not self.held:  # nothing to let go of on the way: go to where something happens
                target = min((reached, *(value for value, _ in self.waiting)))
                if isinstance(target, float):
                    return  # nothing will ever happen
                self.next = max(self.next, self.extent.first(target))
                if self.extent.end(self.next) > reached:
                    return
            yield self.move()

    def closing(self) -> Fraction | None:
        """The end of the first window that holds an item still waiting."""
        positions = ((max(self.next, self.extent.first(value)), value) for value, _ in self.waiting)
        ends = (self.extent.end(k) for k, value in positions if self.extent.start(k) <= value)
        return min(ends, default=None)


def step_join(
    sides: list[Side[T]], events: Iterable[Entry[T] | Moved], *, ended: bool = True
) -> Iterator[tuple[T, ...]]:
    """The tuples of the join, one item of each side, in the order of the movements that bring them.

    Where the input has `ended`, it closes the windows that are still open.
    """

    def meet(moved: int, entering: list[T]) -> Iterator[tuple[T, ...]]:
        contents = [[item for _, item in side.held] for side in sides]
        contents[moved] = entering
        return product(*contents)

    for event in events:
        side = sides[event.side]
        match event:
            case Moved(_, reached):
                pass
            case Entry(_, item, Fraction() as value):
                side.waiting.append((value, item))
                continue
            case Entry(_, item):
                side.waiting.append((Fraction(side.arrived), item))
                side.arrived += 1
                reached = Fraction(side.arrived)
        for entering in side.movements_to(reached):
            yield from meet(event.side, entering)
    while ended and (closing := _first_to_close(sides)):
        for entering in sides[closing[1]].movements_to(closing[0]):
            yield from meet(closing[1], entering)


def _first_to_close(sides: list[Side[T]]) -> tuple[Fraction, int] | None:
    """At the end of input: the end and number of the next window that still holds waiting items.

    A count window that is not full gives nothing (LAWS 3.3).
    """
    ends = ((side.closing(), number) for number, side in enumerate(sides) if side.kind == "time")
    return min(((end, number) for end, number in ends if end is not None), default=None)
