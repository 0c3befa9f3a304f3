"""SELECTJOINRESULT and SELECTWINDOWS: how each of several joins gets its own from what is made once (5.3.2).

The law is that of the step join (LAWS 3.5): whenever a window moves, what enters it meets what the others hold.
Here a window is a slice of the items that are kept, `[end - size, end)`, so that several sizes may be cut from the same
items, and a join is the sequence of its movements.

**SELECTJOINRESULT(sizes)** takes the movements of one join over the largest windows, and keeps of each the tuples whose
items lie in the *last* `size` units of each window.
The paper prints the first units; but windows are compared by their ends, at which both close, and what enters is the
newest.
It works where sizes differ by a multiple of the step, for then each end of a larger window is one of the smaller, too;
the other ends of the smaller ones come before the larger is first full, so the widened join fires there as well, and
where a window is first full all that it holds enters it.

**SELECTWINDOWS(count, every, step)** puts a window together from shared ones that follow on each other without gap or
overlap.
Fused with its join it takes from each shared window only what it has not seen, so that nothing is delivered twice.

At the end of input windows close that are not over yet, and in an order that depends on what waits in all windows of
one query; so from there on each query goes on alone, with what the shared windows hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Generic, Literal, TypeAlias, TypeVar

from anabranch.algebra.window import Extent
from anabranch.sharing.match_joins import SelectWindows

T = TypeVar("T")
Entry: TypeAlias = tuple[Fraction, T]
"""An item with its reference value, or in a count window with its number."""
Sizes: TypeAlias = tuple[Fraction, ...]
"""The sizes of a query's windows, one for each input."""


@dataclass(frozen=True, slots=True)
class Movement(Generic[T]):
    """One window has moved: what entered it stands in its place, what the others hold in theirs."""

    side: int
    ends: tuple[Fraction | None, ...]
    """Where each window ends now; None for one that has not moved yet."""
    contents: tuple[Sequence[Entry[T]], ...]

    @property
    def tuples(self) -> Iterator[tuple[T, ...]]:
        """All that meet, in the order of the inputs."""
        return product(*([item for _, item in each] for each in self.contents))


@dataclass(slots=True)
class Window(Generic[T]):
    """A window of a join; with `smaller` sizes it also fires at their ends, before it is first full."""

    kind: Literal["count", "time"]
    extent: Extent
    smaller: tuple[Fraction, ...] = ()
    end: Fraction | None = None
    items: list[Entry[T]] = field(default_factory=list)

    @property
    def held(self) -> list[Entry[T]]:
        """What it holds, and others meet."""
        return [] if self.end is None else _slice(self.items, self.end - self.extent.size, self.end)

    def movements_to(self, reached: Fraction) -> Iterator[list[Entry[T]]]:
        """Move as far as `reached` lets it; gives what enters, wherever something does."""
        for end in self._ends(reached):
            self.end = end
            if entering := self.entering(end):
                yield entering
        first, step = self._first, self.extent.step
        if reached >= first:
            self.end = first + step * math.floor((reached - first) / step)
            self.items = [each for each in self.items if each[0] >= self.end - self.extent.size]

    def entering(self, end: Fraction) -> list[Entry[T]]:
        """What enters where it moves to an end."""
        fills = end in (self.extent.size, *self.smaller)
        return _slice(self.items, end - (end if fills else min(self.extent.size, self.extent.step)), end)

    def closing(self) -> Fraction | None:
        """At the end of input: where it first ends behind an item that has not entered it."""
        if self.kind == "count":
            return None
        ends = ((self._end_behind(value), value) for value in self._waiting)
        return min((end for end, value in ends if end - self.extent.size <= value), default=None)

    @property
    def _first(self) -> Fraction:
        return min((self.extent.size, *self.smaller))

    @property
    def _waiting(self) -> list[Fraction]:
        return [value for value, _ in self.items if self.end is None or value >= self.end]

    def _end_behind(self, value: Fraction) -> Fraction:
        first, step = self._first, self.extent.step
        return first + step * max(0, math.floor((value - first) / step) + 1)

    def _ends(self, reached: Fraction) -> list[Fraction]:
        """The ends at which something may enter."""
        found = {self._end_behind(value) for value in self._waiting} | {self.extent.size, *self.smaller}
        return sorted(end for end in found if end <= reached and (self.end is None or end > self.end))


@dataclass(slots=True)
class Join(Generic[T]):
    """A step join, movement by movement."""

    windows: list[Window[T]]

    def arrive(self, side: int, value: Fraction, item: T) -> None:
        """An item waits for its window to move."""
        if value >= 0:  # no window reaches below
            self.windows[side].items.append((value, item))

    def reach(self, side: int, reached: Fraction) -> Iterator[Movement[T]]:
        """The stream of one side has come so far."""
        for entering in self.windows[side].movements_to(reached):
            contents = [each.held for each in self.windows]
            contents[side] = entering
            yield Movement(side, tuple(each.end for each in self.windows), tuple(contents))

    def finish(self) -> Iterator[Movement[T]]:
        """The input has ended."""
        while closing := min(
            ((end, side) for side, each in enumerate(self.windows) if (end := each.closing()) is not None), default=None
        ):
            yield from self.reach(closing[1], closing[0])

    def alone(self, sizes: Sizes) -> Join[T]:
        """The join of one query with what these windows hold of its own."""
        found: list[Window[T]] = []
        for size, each in zip(sizes, self.windows, strict=True):
            end = None if each.end is None or each.end < size else each.end
            found.append(Window(each.kind, Extent(size, each.extent.step), (), end, list(each.items)))
        return Join(found)


def widened(kinds: Sequence[Literal["count", "time"]], extents: Sequence[Extent], smaller: Iterable[Sizes]) -> Join[T]:
    """The join that serves windows of these extents and of all smaller sizes."""
    sizes = list(zip(*smaller, strict=True)) or [()] * len(extents)
    sides = zip(kinds, extents, sizes, strict=True)
    return Join([Window(kind, extent, tuple(dict.fromkeys(own))) for kind, extent, own in sides])


def select_join_result(movement: Movement[T], steps: Sequence[Fraction], sizes: Sizes) -> Iterator[tuple[T, ...]]:
    """SELECTJOINRESULT: those tuples of a widened join's movement that a query has by the sizes of its windows."""
    contents: list[list[Entry[T]]] = []
    for side, (end, size) in enumerate(zip(movement.ends, sizes, strict=True)):
        if end is None or end < size:
            return  # its own window has not moved yet
        last = size if side != movement.side or end == size else min(size, steps[side])
        contents.append(_slice(movement.contents[side], end - last, end))
    yield from product(*([item for _, item in each] for each in contents))


def selected_window(selection: SelectWindows, shared: Mapping[int, Sequence[T]], number: int) -> list[T]:
    """SELECTWINDOWS: a window put together from shared ones, of which the empty ones may be left out."""
    first = number * selection.step
    places = range(first, first + selection.count * selection.every, selection.every)
    return [item for place in places for item in shared.get(place, ())]


@dataclass(slots=True)
class SelectedWindows(Generic[T]):
    """SELECTWINDOWS fused with the join of its query: takes shared windows as they close, and of each what is new."""

    shared: Sequence[Extent]
    join: Join[T]
    seen: list[Fraction] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seen = [Fraction(0) for _ in self.shared]

    def take(self, side: int, number: int, items: Iterable[Entry[T]]) -> Iterator[Movement[T]]:
        """A shared window has closed, the last that could; empty ones between may be left out."""
        end = self.shared[side].end(number)
        self._arrive(side, items)
        self.seen[side] = end
        return self.join.reach(side, end)

    def finish(self, rest: Sequence[Iterable[Entry[T]]]) -> Iterator[Movement[T]]:
        """The input has ended, with these items in shared windows that have not closed."""
        for side, items in enumerate(rest):
            self._arrive(side, items)
        return self.join.finish()

    def _arrive(self, side: int, items: Iterable[Entry[T]]) -> None:
        for value, item in items:
            if value >= self.seen[side]:
                self.join.arrive(side, value, item)


def _slice(items: Sequence[Entry[T]], start: Fraction, end: Fraction) -> list[Entry[T]]:
    return [each for each in items if start <= each[0] < end]
