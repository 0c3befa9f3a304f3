"""The value by which a text places its item: at a stream's declared time path, or at the reference of a window.

It is a number, or a dateTime or date, which is a time (LAWS 1.3, 3.1).
This function defines it; other implementations, in columns, must give the same values.
"""

from __future__ import annotations

from fractions import Fraction

from anabranch.stream.path import Path, TimeScale, per_second
from anabranch.values.atomic import Measured, Untyped, finite_value
from anabranch.values.instants import time_seconds


class Moment(Fraction):
    """A value that is a time: in units of its scale from 1970 on, or from a stream's origin on."""

    __slots__ = ()


def place_of(text: Untyped, scale: TimeScale) -> Fraction | None:
    """The value of a text in units of a scale, a `Moment` where it is a time; None for other texts.

    >>> place_of(Untyped("1970-01-01T00:00:01.5Z"), TimeScale())
    Moment(3, 2)
    """
    number = finite_value(text)
    if number is not None:
        return Moment(number) if scale.is_time else number
    seconds = None if isinstance(text, Measured) else time_seconds(text)
    return None if seconds is None else Moment(seconds * scale.per_second)


def from_origin(value: Fraction, origin: Fraction) -> Fraction:
    """A value relative to a stream's origin; a time stays one."""
    return Moment(value - origin) if isinstance(value, Moment) else value - origin


def seconds_at(text: Untyped, time: Path) -> Fraction | None:
    """The seconds of a text at a stream's declared time path; None where it is no time."""
    value = place_of(text, TimeScale.of(time, time))
    return None if value is None else Fraction(value) / per_second(time)
