"""The moments of a query: one after each element of the streams that it reads, in the order of LAWS 1.2.

'Now' is the time of the latest element (LAWS 1.3).
Items may come out of order, with a time below that of one before them; that does not turn time back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import merge
from operator import itemgetter
from typing import Protocol

from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.law.inputs import Arrival, Evolved, Input, Signal
from anabranch.stream.elements import Place

BEFORE = -1
"""The moment before the first element."""


class Moments(Protocol):
    """What an evaluation has to know of the past."""

    @property
    def number(self) -> Mapping[Arrival, int]:
        """The moments at which items arrived."""

    def now(self, number: int) -> Fraction:
        """The time at a moment."""

    def until(self, number: int, time: Fraction) -> int:
        """The last moment at or before a time, and no later than a given one."""

    def shown(self, number: int) -> AbstractContextManager[Mapping[str, Input]]:
        """The inputs as they were at a moment."""


@dataclass(frozen=True, slots=True)
class ElementMoment:
    """A point of the merged streams: behind an element."""

    now: Fraction
    element: Arrival | Signal | Evolved

    @property
    def place(self) -> Place:
        """Where the element stood."""
        match self.element:
            case Arrival(place=place):
                return place
            case Signal(punctuation):
                return punctuation.place
            case Evolved(change):
                return change.place


class Past:
    """All moments of a query over finite inputs; it knows what had arrived at each of them."""

    def __init__(self, query: ast.Query, inputs: Mapping[str, Input]) -> None:
        self._inputs = inputs
        self._streams = {name: inputs[name] for name in named(query) if name in inputs and inputs[name].elements}
        marked = ([(each.time, name, each) for each in _elements(stream)] for name, stream in self._streams.items())
        self.moments: list[ElementMoment] = []
        self.number: dict[Arrival, int] = {}
        """The moments at which items arrived."""
        self._behind: dict[str, list[int]] = {name: [] for name in self._streams}
        self._arrived: dict[str, list[int]] = {name: [] for name in self._streams}
        now = Fraction(0)
        for time, name, element in merge(*marked, key=itemgetter(0)):
            now = max(now, time)
            if not isinstance(element, Evolved):
                self._behind[name].append(len(self.moments))
            if isinstance(element, Arrival):
                self._arrived[name].append(len(self.moments))
                self.number[element] = len(self.moments)
            self.moments.append(ElementMoment(now, element))

    @property
    def last(self) -> int:
        return len(self.moments) - 1

    def now(self, number: int) -> Fraction:
        """The time at a moment."""
        return self.moments[number].now if number > BEFORE else Fraction(0)

    def until(self, number: int, time: Fraction) -> int:
        """The last moment at or before a time, and no later than a given one."""
        return bisect_right(self.moments, time, hi=number + 1, key=lambda each: each.now) - 1

    @contextmanager
    def shown(self, number: int) -> Iterator[Mapping[str, Input]]:
        """The inputs as they were at a moment; the trees of their streams hold no more, for as long as this lasts."""
        before = {name: list(stream.root.children) for name, stream in self._streams.items()}
        found = {name: self._until(name, number) for name in self._streams}
        for stream in found.values():
            stream.root.children[:] = [each.item for each in stream.arrivals]
        try:
            yield {**self._inputs, **found}
        finally:
            for name, children in before.items():
                self._streams[name].root.children[:] = children

    def _until(self, name: str, number: int) -> Input:
        stream = self._streams[name]
        arrivals = bisect_right(self._arrived[name], number)
        elements = bisect_right(self._behind[name], number)
        waiting = frozenset(each.partition for each in stream.elements[elements:])
        return replace(
            stream, arrivals=stream.arrivals[:arrivals], elements=stream.elements[:elements], waiting=waiting
        )


def _elements(stream: Input) -> Iterator[Arrival | Signal | Evolved]:
    """All elements of a stream in their order; accents move time like any other."""
    start = 0
    for change in stream.changes:
        yield from stream.elements[start : change.behind]
        yield change
        start = change.behind
    yield from stream.elements[start:]


def named(query: ast.Query) -> tuple[str, ...]:
    """The streams that a query reads, in the order in which it names them first, which decides ties (LAWS 1.2)."""
    sources = (each for each in parts(query) if isinstance(each, ast.Source) and each.kind == "stream")
    return tuple(dict.fromkeys(each.name for each in sources))
