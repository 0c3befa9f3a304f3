"""Windows over a finite stream: LAWS 3.1 to 3.3, executable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from anabranch.algebra.window import Extent
from anabranch.language import ast

T = TypeVar("T")


def extent_of(window: ast.CountWindow | ast.TimeWindow) -> Extent:
    """The extent that a query wrote; a step left out is the size."""
    size = Fraction(window.size.text)
    return Extent(size, Fraction(window.step.text) if window.step else size)


@dataclass(frozen=True, slots=True)
class Window(Generic[T]):
    """One window with what it holds, in stream order."""

    k: int
    content: tuple[T, ...]


def time_windows(extent: Extent, items: Iterable[tuple[Fraction, T]]) -> Iterator[Window[T]]:
    """The windows that hold an item, in the order in which they close (LAWS 3.1, 3.2)."""
    held: dict[int, list[T]] = {}
    for value, item in items:
        for k in extent.holding(value):
            held.setdefault(k, []).append(item)
    for k in sorted(held):
        yield Window(k, tuple(held[k]))


def count_windows(extent: Extent, items: Sequence[T]) -> Iterator[Window[T]]:
    """The windows that are full, in order (LAWS 3.3)."""
    size, step = int(extent.size), int(extent.step)
    for k, start in enumerate(range(0, len(items) - size + 1, step)):
        yield Window(k, tuple(items[start : start + size]))


class Lateness:
    """Judges items as they come: late is more than `slack` below the largest before it in its partition."""

    def __init__(self, slack: Fraction) -> None:
        self._slack = slack
        self._largest: dict[str, Fraction] = {}

    def is_late(self, partition: str, value: Fraction) -> bool:
        """Judge one item and remember it (LAWS 3.2)."""
        largest = self._largest.get(partition, value)
        self._largest[partition] = max(largest, value)
        return value < largest - self._slack
