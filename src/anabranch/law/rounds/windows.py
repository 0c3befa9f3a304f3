"""Windows over a finite stream: LAWS 3.1 to 3.3, executable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeAlias, TypeVar

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


def time_windows(extent: Extent, items: Iterable[tuple[Fraction, T]], first: int = 0) -> Iterator[Window[T]]:
    """The windows from the first on that hold an item, in the order in which they close (LAWS 3.1, 3.2)."""
    held: dict[int, list[T]] = {}
    for value, item in items:
        for k in extent.holding(value):
            held.setdefault(k, []).append(item)
    for k in sorted(held):
        if k >= first:
            yield Window(k, tuple(held[k]))


def count_windows(extent: Extent, items: Sequence[T]) -> Iterator[Window[T]]:
    """The windows that are full, in order (LAWS 3.3)."""
    size, step = int(extent.size), int(extent.step)
    for k, start in enumerate(range(0, len(items) - size + 1, step)):
        yield Window(k, tuple(items[start : start + size]))


Reach: TypeAlias = Fraction | float
"""How far a stream is; the only float is infinity, where nothing can follow."""


class Progress:
    """How far a stream is by one window's reference values, which it judges as they come (LAWS 3.2)."""

    def __init__(self, slack: Fraction, partitions: int = 1) -> None:
        self._slack = slack
        self._partitions = partitions
        self._largest: dict[int, Reach] = {}
        self.first: Fraction | None = None
        """The first value of all, where windows that reach back before it are left out (LAWS 3.6)."""

    def is_late(self, partition: int, value: Fraction) -> bool:
        """Judge one value and remember it: late is more than slack below the largest before it in its partition."""
        self.first = value if self.first is None else self.first
        late = value < self._largest.get(partition, value) - self._slack
        self._show(partition, value)
        return late

    def passed(self, partition: int, value: Reach) -> None:
        """A punctuation covers all below a value: as good as an item that far on, which nobody selects."""
        self._show(partition, value + self._slack)

    @property
    def reached(self) -> Reach | None:
        """What all partitions have reached; None as long as one has shown nothing."""
        if len(self._largest) < self._partitions:
            return None
        return min(self._largest.values()) - self._slack

    def _show(self, partition: int, value: Reach) -> None:
        self._largest[partition] = max(value, self._largest.get(partition, value))
