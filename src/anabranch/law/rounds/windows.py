"""Windows over a finite stream: LAWS 3.1 to 3.3, executable.

The *reference* of a time window is the value that says where an item stands in it (LAWS 3.1).
It is written relative to the item, or absolute, from the stream's root down to below the item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Generic, TypeAlias, TypeVar

from anabranch.algebra.window import Extent
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.env import Env
from anabranch.law.paths import fulfils
from anabranch.stream.tree import Element
from anabranch.values.atomic import Untyped, finite_value, spell
from anabranch.values.sequences import Value, Values, atomize

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


# --- references ------------------------------------------------------------------------------------------------


Evaluate: TypeAlias = Callable[[ast.Expression, Env], Values]


def reference_value(window: ast.TimeWindow, node: Value, env: Env, evaluate: Evaluate) -> Fraction:
    """The value that places a node in time windows: one number, below the node."""
    path = window.reference
    steps = path.steps
    if isinstance(path.start, ast.Root):
        above = _from_root(node)
        through = zip(above, steps, strict=False)
        if len(steps) < len(above) or not all(fulfils(n, s.test, s.axis, env.namespaces) for n, s in through):
            raise DynamicError("the window's reference is not below the item", code="XPTY0004")
        steps = steps[len(above) :]
    values = atomize(evaluate(replace(path, start=None, steps=steps), env.at(node)) if steps else [node])
    if len(values) != 1:
        raise DynamicError(f"the window's reference has {len(values)} values in this item, not one", code="XPTY0004")
    (value,) = values
    number = finite_value(value if isinstance(value, Untyped) else Untyped(spell(value)))
    if number is None:
        raise DynamicError(f"the window's reference '{spell(value)[:40]}' is no number", code="FORG0001")
    return number


def _from_root(node: Value) -> list[Element]:
    found: list[Element] = []
    at = node
    while isinstance(at, Element):
        found.append(at)
        at = at.parent  # type: ignore[assignment]  # a document ends the climb
    return found[::-1]
