"""Which queries an entry can concern: an index over the conditions by which they compare the same with constants.

A query that is left out has a condition that is false for the entry; one that is found may have one, too, for the index
goes by doubles a little wider than the numbers that were written.
Whatever has no plain value, so that a comparison might fail, concerns all queries that compare it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Generic, TypeAlias, TypeVar

from anabranch.branch.display.families.looks import EntryLook
from anabranch.branch.display.families.loops import Bound, Compared, NumberBound
from anabranch.values.atomic import NULL, Atomic, JsonNumber, Measured, Untyped, finite_value

T = TypeVar("T")

_SLACK = 1e-9
"""How much wider than their values ratios and differences are taken, which queries compute in doubles."""


_DIGITS = 16
"""A number with fewer digits is a double."""


class Intervals(Generic[T]):
    """Intervals of numbers, and which of them meet another one."""

    def __init__(self, given: Iterable[tuple[float, float, T]]) -> None:
        ordered = sorted(given, key=lambda each: each[0])
        self._lows = [low for low, _, _ in ordered]
        self._highs = [high for _, high, _ in ordered]
        self._things = [thing for _, _, thing in ordered]
        size = 1
        while size < len(ordered):
            size *= 2
        self._size = size
        self._highest = [-math.inf] * size + self._highs + [-math.inf] * (size - len(ordered))
        """A tree in an array: each node has the highest end of those below it."""
        for node in range(size - 1, 0, -1):
            self._highest[node] = max(self._highest[2 * node], self._highest[2 * node + 1])

    def meeting(self, low: float, high: float) -> Iterator[T]:
        """The things whose intervals have a number in common with the one from `low` to `high`."""
        end = bisect_right(self._lows, high)
        pending = [(1, 0, self._size)]
        while pending:
            node, first, behind = pending.pop()
            if first >= end or self._highest[node] < low:
                continue
            if behind - first == 1:
                yield self._things[first]
                continue
            middle = (first + behind) // 2
            pending += [(2 * node, first, middle), (2 * node + 1, middle, behind)]


class _Compared(Generic[T]):
    """All queries that compare the same with constants."""

    def __init__(self, compared: Compared, given: Sequence[tuple[Bound, T]]) -> None:
        self._compared = compared
        numbers = [(bound, query) for bound, query in given if isinstance(bound, NumberBound)]
        self._numbers = Intervals(
            (_double(bound.low, -math.inf), _double(bound.high, math.inf), query) for bound, query in numbers
        )
        self._with_numbers = [query for _, query in numbers]
        self._texts: dict[str, list[T]] = {}
        for bound, query in given:
            if isinstance(bound, str):
                self._texts.setdefault(bound, []).append(query)

    def concerned(self, look: EntryLook) -> Iterator[T]:
        """The queries that an entry can concern."""
        values = look.atoms(self._compared.of)
        if self._with_numbers:
            window = self._window(look, values)
            if window is None:
                yield from self._with_numbers
            elif window:
                yield from self._numbers.meeting(*window)
        if not self._texts:
            return
        if values is None or any(not isinstance(each, str) or isinstance(each, JsonNumber) for each in values):
            for several in self._texts.values():
                yield from several
        else:
            for text in dict.fromkeys(map(str, values)):
                yield from self._texts.get(text, ())

    def _window(self, look: EntryLook, values: Sequence[Atomic] | None) -> tuple[float, float] | tuple[()] | None:
        """The least and the greatest number that is compared; nothing for none, and None for what is no number."""
        found = _plain(values)
        if found is None or self._compared.to is None:
            return None if found is None else (min(found), max(found)) if found else ()
        other = _plain(look.atoms(self._compared.to))
        if other is None or len(other) > 1 or len(found) > 1:  # to compute with it may fail
            return None
        if not other or not found:
            return ()
        if self._compared.how == "ratio" and other[0] <= 0:
            return None
        (one,), (two,) = found, other
        at = one / two if self._compared.how == "ratio" else one - two
        slack = _SLACK * (abs(at) if self._compared.how == "ratio" else abs(one) + abs(two))
        return (at - slack, at + slack) if math.isfinite(at) else None


def _plain(values: Sequence[Atomic] | None) -> list[float] | None:
    """Values as doubles, each with those beside it; None where one is no number, or none that doubles can show."""
    if values is None:
        return None
    found: list[float] = []
    for each in values:
        if type(each) is Untyped and each.isdecimal() and each.isascii() and len(each) < _DIGITS:
            double = float(each)
        elif type(each) is Untyped or isinstance(each, Measured | JsonNumber):
            exact = finite_value(each)
            double = math.nan if exact is None else _double(exact, math.nan, widen=False)
        elif isinstance(each, int | float | Decimal) and not isinstance(each, bool):
            double = _double(Fraction(each), math.nan, widen=False) if math.isfinite(each) else math.nan
        elif each is NULL:
            continue
        else:
            return None
        if not math.isfinite(double):
            return None
        found.append(double)
    return found


def _double(number: Fraction | None, otherwise: float, *, widen: bool = True) -> float:
    """A bound as a double, a little farther out in the direction of `otherwise`, which stands for none."""
    if number is None:
        return otherwise
    try:
        double = float(number)
    except OverflowError:
        return otherwise
    if not widen:
        return double
    return math.nextafter(math.nextafter(double, otherwise), otherwise)


Seconds: TypeAlias = frozenset[Fraction]
"""How many seconds after a change of an entry time alone may change something more."""


class Concerned(Generic[T]):
    """Which queries of a family an entry may concern, by what they compare."""

    def __init__(self, bounds: Iterable[tuple[T, Seconds, tuple[Compared, Bound] | None]]) -> None:
        """`bounds` are those of the queries' parts; without one, a part is concerned by every entry.

        Queries are told apart by the seconds after which they may have a result where they had none.
        """
        self._always: dict[Seconds, dict[T, None]] = {}
        given: dict[tuple[Seconds, tuple[str, str, str]], tuple[Compared, list[tuple[Bound, T]]]] = {}
        for query, seconds, bound in bounds:
            if bound is None:
                self._always.setdefault(seconds, {})[query] = None
            else:
                given.setdefault((seconds, bound[0].key), (bound[0], []))[1].append((bound[1], query))
        self._compared = [(seconds, _Compared(*each)) for (seconds, _), each in given.items()]

    def by(self, look: EntryLook, passed: Seconds | None) -> dict[T, None]:
        """The queries that an entry can concern.

        Where time alone has changed it, `passed` are the seconds that have passed since earlier changes.
        """
        found: dict[T, None] = {}
        for seconds, several in self._always.items():
            if passed is None or not passed.isdisjoint(seconds):
                found |= several
        for seconds, compared in self._compared:
            if passed is None or not passed.isdisjoint(seconds):
                found.update(dict.fromkeys(compared.concerned(look)))
        return found
