"""Windows over a finite stream: LAWS 3.1 to 3.3 and 3.9, executable.

The *reference* of a time window is the value that says where an item stands in it (LAWS 3.1).
It is written relative to the item, or absolute, from the stream's root down to below the item.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Generic, TypeAlias, TypeVar

from anabranch.algebra.window import EARLIEST, Extent
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.env import Env
from anabranch.law.paths import fulfils
from anabranch.stream.path import TimeScale
from anabranch.stream.tree import Element
from anabranch.values.atomic import Atomic, Untyped, spell
from anabranch.values.placing import Moment, from_origin, place_of
from anabranch.values.sequences import Value, Values, atomize

T = TypeVar("T")


def extent_of(window: ast.CountWindow | ast.TimeWindow, scale: TimeScale) -> Extent:
    """The extent that a query wrote, in units of the reference; a step left out is the size."""
    size = amount_on(window.size, scale)
    return Extent(size, amount_on(window.step, scale) if window.step else size)


def amount_on(amount: ast.Amount, scale: TimeScale) -> Fraction:
    """A size, step or gap in units of a scale: a plain number is in these units, a duration in seconds (LAWS 3.1)."""
    return amount.exact * scale.per_second if isinstance(amount, ast.Duration) else amount.exact


@dataclass(frozen=True, slots=True)
class WindowContent(Generic[T]):
    """One window with what it holds, in stream order."""

    k: int
    start: Fraction
    end: Fraction
    is_time: bool
    """Whether an item in it has a time as its reference value."""
    content: tuple[T, ...]


def time_windows(
    extent: Extent, items: Iterable[tuple[Fraction, T]], first: int = EARLIEST
) -> Iterator[WindowContent[T]]:
    """The windows from the first on that hold an item, in the order in which they close (LAWS 3.1, 3.2)."""
    held: dict[int, list[tuple[Fraction, T]]] = {}
    for value, item in items:
        for k in extent.holding(value):
            held.setdefault(k, []).append((value, item))
    for k in sorted(held):
        if k >= first:
            yield _window(k, extent.start(k), extent.end(k), held[k])


def count_windows(extent: Extent, items: Sequence[T]) -> Iterator[WindowContent[T]]:
    """The windows that are full, in order (LAWS 3.3)."""
    size, step = int(extent.size), int(extent.step)
    for k, start in enumerate(range(0, len(items) - size + 1, step)):
        content = tuple(items[start : start + size])
        yield WindowContent(k, Fraction(start), Fraction(start + size), False, content)


def sessions(
    gap: Fraction, items: Iterable[tuple[Hashable, Fraction, T]], first: Fraction | None = None
) -> Iterator[WindowContent[T]]:
    """The sessions of items with keys and values, in the order in which they end (LAWS 3.9).

    A late subscription gets those that begin at least a gap behind `first`, the first value that it has seen.
    """
    numbered = list(enumerate(items))
    by_key: dict[Hashable, list[tuple[Fraction, int, T]]] = {}
    for number, (key, value, item) in numbered:
        by_key.setdefault(key, []).append((value, number, item))
    found: list[list[tuple[Fraction, int, T]]] = []
    for members in by_key.values():
        last: Fraction | None = None
        for each in sorted(members, key=lambda each: each[:2]):
            if last is None or each[0] - last >= gap:
                found.append([])
            found[-1].append(each)
            last = each[0]
    if first is not None:
        found = [each for each in found if each[0][0] >= first + gap]
    found.sort(key=lambda session: (session[-1][0], min(number for _, number, _ in session)))
    for number, session in enumerate(found):
        content = [(value, item) for value, _, item in sorted(session, key=lambda each: each[1])]
        yield _window(number, session[0][0], session[-1][0] + gap, content)


def _window(number: int, start: Fraction, end: Fraction, held: Sequence[tuple[Fraction, T]]) -> WindowContent[T]:
    is_time = any(isinstance(value, Moment) for value, _ in held)
    return WindowContent(number, start, end, is_time, tuple(item for _, item in held))


Reach: TypeAlias = Fraction | float
"""How far a stream is; the only float is infinity, where nothing can follow."""


class Progress:
    """How far a stream is by one window's reference values, which it judges as they come (LAWS 3.2)."""

    def __init__(self, slack: Fraction, partitions: int = 1) -> None:
        self._slack = slack
        self._partitions = partitions
        self._largest: dict[int, Reach] = {}
        self.first: Fraction | None = None
        """The first value seen; a late subscription leaves out windows that begin before it (LAWS 3.6)."""

    def is_late(self, partition: int, value: Fraction) -> bool:
        """Judge one value and remember it: late is more than slack below the largest before it in its partition."""
        self.first = value if self.first is None else self.first
        late = value < self._largest.get(partition, value) - self._slack
        self._show(partition, value)
        return late

    def passed(self, partition: int, value: Reach) -> None:
        """Take a punctuation that covers all below a value: it advances the stream as an item there would."""
        self._show(partition, value + self._slack)

    @property
    def reached(self) -> Reach | None:
        """The value that all partitions have reached; None as long as one of them has sent nothing."""
        if len(self._largest) < self._partitions:
            return None
        return min(self._largest.values()) - self._slack

    def _show(self, partition: int, value: Reach) -> None:
        self._largest[partition] = max(value, self._largest.get(partition, value))


# --- references ------------------------------------------------------------------------------------------------


Evaluate: TypeAlias = Callable[[ast.Expression, Env], Values]


def reference_value(
    window: ast.TimeWindow | ast.SessionWindow, node: Value, env: Env, evaluate: Evaluate, scale: TimeScale
) -> Fraction:
    """The value that places a node in windows, counted from the origin: one number or time, below the node."""
    values = _values_at(window.reference, "reference", node, env, evaluate)
    if len(values) != 1:
        raise DynamicError(f"the window's reference has {len(values)} values in this item, not one", code="XPTY0004")
    (value,) = values
    place = place_of(value if isinstance(value, Untyped) else Untyped(spell(value)), scale)
    if place is None:
        raise DynamicError(
            f"the window's reference '{spell(value)[:40]}' is no number and no dateTime", code="FORG0001"
        )
    return from_origin(place, scale.origin)


SessionKey: TypeAlias = str | None
"""The key of a session, as text; None without one. A changed unit gives the text that spells the number (LAWS 3.8)."""


def session_key(window: ast.SessionWindow, node: Value, env: Env, evaluate: Evaluate) -> SessionKey:
    """The key of the session that a node belongs to; None, the same for all nodes, where the window names none."""
    if window.by is None:
        return None
    values = _values_at(window.by, "key", node, env, evaluate)
    if len(values) > 1:
        raise DynamicError(f"the session's key has {len(values)} values in this item, not one", code="XPTY0004")
    return spell(values[0]) if values else None


def _values_at(path: ast.Path, what: str, node: Value, env: Env, evaluate: Evaluate) -> list[Atomic]:
    """The values at a path of a window, which leads from the node down, or from the root to below it."""
    steps = path.steps
    if isinstance(path.start, ast.Root):
        above = _from_root(node)
        through = zip(above, steps, strict=False)
        if len(steps) < len(above) or not all(fulfils(n, s.test, s.axis, env.namespaces) for n, s in through):
            raise DynamicError(f"the window's {what} is not below the item", code="XPTY0004")
        steps = steps[len(above) :]
    return atomize(evaluate(replace(path, start=None, steps=steps), env.at(node)) if steps else [node])


def _from_root(node: Value) -> list[Element]:
    found: list[Element] = []
    at = node
    while isinstance(at, Element):
        found.append(at)
        at = at.parent  # type: ignore[assignment]  # a document ends the climb
    return found[::-1]
