"""The bounds of windows, which a query may ask for (LAWS 3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from anabranch.stream.path import TimeScale
from anabranch.values.sequences import Value, Values
from anabranch.values.time_arithmetic import decimal_of
from anabranch.values.times import DateTime

_PLACES = 18
"""Decimal places to which a bound is rounded that no finite decimal expresses, as after a change of unit."""


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """Where a window begins and ends, counted from the origin of a scale."""

    start: Fraction
    end: Fraction
    scale: TimeScale
    is_time: bool
    """Whether an item in it has a time as its reference value, so that the bounds are times, too."""

    def value(self, bound: Fraction) -> Value:
        """One of the two bounds, as a query sees it."""
        number = bound + self.scale.origin
        return bound_value(number / self.scale.per_second if self.is_time else number, self.is_time)


class WindowValues(list[Value]):
    """The contents of a window, with its bounds; the variable of a window is bound to this."""

    __slots__ = ("bounds",)

    def __init__(self, content: Iterable[Value], bounds: WindowBounds) -> None:
        super().__init__(content)
        self.bounds = bounds


def bound_value(number: Fraction, is_time: bool) -> Value:
    """A bound as a value: the moment of these seconds in UTC, or a decimal."""
    if not _ends(number):
        number = Fraction(round(number * 10**_PLACES), 10**_PLACES)
    return DateTime(number, 0) if is_time else decimal_of(number)


def _ends(number: Fraction) -> bool:
    """Whether a number has few digits behind the point."""
    return (10**100) % number.denominator == 0


def window_start(values: Values) -> Values:
    """`window-start($w)`."""
    assert isinstance(values, WindowValues), "the checks let nothing else through"
    return [values.bounds.value(values.bounds.start)]


def window_end(values: Values) -> Values:
    """`window-end($w)`."""
    assert isinstance(values, WindowValues), "the checks let nothing else through"
    return [values.bounds.value(values.bounds.end)]
