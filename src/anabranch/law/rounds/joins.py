"""Joins: LAWS 3.5, executable (sharing paper, 5.1.1).

In a *step join* every `for` has a window of its own.
Items wait until their window moves; the items that enter by a movement meet what the other windows hold at that
moment, and only then are they held themselves.
A window moves position by position, through empty ones too, and lets go of what it leaves behind.

An *interval join* can be answered before its streams end where its condition compares declared times.
Items that are far enough apart never meet, so an item may be forgotten once the other streams are beyond its interval;
only a declared time tells how far a stream is (LAWS 1.3).

A *keyed join* of streams that do not end takes items as they come: each meets the items before it whose keys are equal
to its own, as long as their streams retain them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Generic, Literal, TypeVar

from anabranch.algebra.window import EARLIEST, Extent
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.intervals import Bound, PathTerm, interval_bounds, ties
from anabranch.law.inputs import Arrival, Input, Signal, nodes_at
from anabranch.law.rounds.windows import Progress, Reach
from anabranch.law.slices import path_in_item
from anabranch.law.spelling import Spelling
from anabranch.stream.cover import passed
from anabranch.stream.path import Path, TimeScale, per_second
from anabranch.stream.tree import Element, is_array
from anabranch.values.atomic import Atomic, compare
from anabranch.values.placing import place_of
from anabranch.values.sequences import untyped

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
    """The stream of a side with a time window has reached a time, as an item or a punctuation has shown."""

    side: int
    reached: Reach


@dataclass(slots=True)
class Side(Generic[T]):
    """One window of the join. `next` is the position it has yet to move to."""

    kind: Literal["count", "time"]
    extent: Extent
    next: int = EARLIEST
    waiting: list[tuple[Fraction, T]] = field(default_factory=list)
    held: list[tuple[Fraction, T]] = field(default_factory=list)
    arrived: int = 0

    def move(self) -> list[T]:
        """Move to the next position; gives the items that enter."""
        start, end = self.extent.start(self.next), self.extent.end(self.next)
        enters = [self.extent.first(value) <= self.next and start <= value < end for value, _ in self.waiting]
        entering = [each for each, now in zip(self.waiting, enters, strict=True) if now]
        self.waiting = [each for each in self.waiting if each[0] >= end or self.extent.first(each[0]) > self.next]
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
                self.next = max(self.next, self.extent.behind(target))
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


# --- the interval join -----------------------------------------------------------------------------------------


def time_bounds(
    fors: Sequence[ast.For], where: ast.Expression | None, times: Mapping[str, Path | None]
) -> tuple[Bound, ...]:
    """What a condition says of the distances between declared times; nothing where that does not tie all streams.

    `times` are the time paths of the streams that the variables run over.
    """
    paths = {clause.variable: clause.source for clause in fors}

    def is_time(term: PathTerm) -> bool:
        path = path_in_item(paths[term.variable], term.path, Spelling())
        return path is not None and path == times.get(term.variable)

    variables = list(paths)
    if len({time.unit for time in times.values() if time is not None}) > 1:
        return ()  # what a condition compares then are no distances in time
    many = max(map(per_second, times.values()), default=1)
    found = tuple(
        replace(each, most=each.most * many) if each.left.is_time else each
        for each in interval_bounds(where, variables)
        if is_time(each.left) and is_time(each.right)
    )
    return found if ties(found, variables) else ()


def declared_time(item: Element, path: Path) -> Fraction:
    """An item's value at its stream's time path, which must be one time, in the unit that conditions compare there."""
    nodes = nodes_at(item, path)
    if len(nodes) != 1:
        raise DynamicError(f"the time '{path}' has {len(nodes)} values in this item, not one", code="XPTY0004")
    if isinstance(nodes[0], Element) and is_array(nodes[0]):
        raise DynamicError(f"the time '{path}' is an array in an array in this item", code="XPTY0004")
    text = untyped(nodes[0])
    time = place_of(text, TimeScale.of(path, path))
    if time is None:
        raise DynamicError(f"the time '{text[:40]}' is no number and no dateTime", code="FORG0001")
    return time


def judged_by_time(stream: Input) -> dict[Arrival, DynamicError | Literal["late"] | None]:
    """All items of a stream in order, and what is wrong with their times: late by the declared path, or no number."""
    assert stream.time is not None
    progress = Progress(stream.scale(stream.time).slack, stream.partitions)
    judged: dict[Arrival, DynamicError | Literal["late"] | None] = {}
    for element in stream.elements:
        if isinstance(element, Signal):
            if (value := passed(element.punctuation, stream.time, stream.time)) is not None:
                progress.passed(element.partition, value)
            continue
        try:
            time = declared_time(element.item, stream.time)
        except DynamicError as error:
            judged[element] = error
            continue
        judged[element] = "late" if progress.is_late(element.partition, time) else None
    return judged


# --- the keyed join --------------------------------------------------------------------------------------------


def keys_meet(left: Iterable[Atomic], right: Iterable[Atomic]) -> bool:
    """Whether one of the keys of an item equals one of another's; keys that cannot be compared are not equal."""

    def equal(one: Atomic, other: Atomic) -> bool:
        try:
            return compare("=", one, other)
        except DynamicError:
            return False

    return any(equal(*pair) for pair in product(left, right))


@dataclass(frozen=True, slots=True)
class Met(Generic[T]):
    """An item that one `for` of a keyed join holds, with its time."""

    item: T
    time: Fraction
    retained: Fraction | None
    """For how many seconds; None is for good."""

    def is_held(self, now: Fraction) -> bool:
        """Whether the item may still meet others when the streams have come so far."""
        return self.retained is None or now - self.time <= self.retained
