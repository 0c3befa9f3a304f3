"""The built-in functions of times and durations, and the constructors of types, as XQuery has them (LAWS 2.7)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from anabranch.errors import DynamicError
from anabranch.values.atomic import Atomic, Untyped, kind_of
from anabranch.values.casts import CASTS
from anabranch.values.instants import DAY, date_of, length_months, length_seconds
from anabranch.values.numbers import shown
from anabranch.values.sequences import Values, at_most_one
from anabranch.values.time_arithmetic import decimal_of
from anabranch.values.times import (
    Date,
    DateTime,
    DayTimeDuration,
    Instant,
    Time,
    TimeValue,
    YearMonthDuration,
    read_time,
    within_limits,
)

T = TypeVar("T", bound=TimeValue)
Body = Callable[..., Values]

_FARTHEST_ZONE = 14 * 60
_DURATION = re.compile(r"[ \t\r\n]*(-?)P((?:\d+Y)?(?:\d+M)?)((?:\d+D)?(?:T[\dHMS.]+)?)[ \t\r\n]*\Z", re.ASCII)


# --- casts ------------------------------------------------------------------------------------------------


def cast(name: str, values: Values) -> Values:
    """At most one value, cast to a type; the empty sequence stays empty."""
    value = at_most_one(values, f"{name}()")
    return [] if value is None else [CASTS[name](value)]


def castable(name: str, values: Values) -> bool:
    """Whether one value can be cast to a type."""
    try:
        return bool(cast(name, values))
    except DynamicError:
        return False


def _constructor(name: str) -> Body:
    return lambda values: cast(name, values)


# --- arguments --------------------------------------------------------------------------------------------


def time_argument(kind: type[T], values: Values, what: str) -> T | None:
    """An argument of a type, which text from an item is read as; None for nothing."""
    value = at_most_one(values, f"{what}()")
    if isinstance(value, Untyped):
        return read_time(kind, value)
    if value is not None and not isinstance(value, kind):
        raise _other_type(value, what)
    return value


def _other_type(value: Atomic, what: str) -> DynamicError:
    return DynamicError(f"{what}() takes no {kind_of(value)}", code="XPTY0004")


def _months_and_seconds(value: Atomic, what: str) -> tuple[int, Fraction]:
    """Any duration in two parts; text from an item may have both."""
    match value:
        case DayTimeDuration(seconds):
            return 0, seconds
        case YearMonthDuration(months):
            return months, Fraction(0)
        case Untyped():
            if found := _DURATION.match(value):
                sign, long, short = found.groups()
                whole, rest = length_months(f"{sign}P{long or '0M'}"), length_seconds(f"{sign}P{short or 'T0S'}")
                if whole is not None and rest is not None and (long or short):
                    return whole, rest
            raise DynamicError(f"'{shown(value)}' is no xs:duration", code="FORG0001")
        case _:
            raise _other_type(value, what)


# --- components -------------------------------------------------------------------------------------------

_OF_DAY: Mapping[str, Callable[[int], int]] = {
    "year": lambda day: date_of(day)[0],
    "month": lambda day: date_of(day)[1],
    "day": lambda day: date_of(day)[2],
}
_OF_CLOCK: Mapping[str, Callable[[Fraction], int | Decimal]] = {
    "hours": lambda clock: int(clock // 3_600),
    "minutes": lambda clock: int(clock // 60 % 60),
    "seconds": lambda clock: decimal_of(clock % 60),
}
_OF_LENGTH: Mapping[str, Callable[[int, Fraction], int | Decimal]] = {
    "years": lambda months, _: months // 12,
    "months": lambda months, _: months % 12,
    "days": lambda _, seconds: int(seconds // DAY),
    "hours": lambda _, seconds: _OF_CLOCK["hours"](seconds % DAY),
    "minutes": lambda _, seconds: _OF_CLOCK["minutes"](seconds % DAY),
    "seconds": lambda _, seconds: _OF_CLOCK["seconds"](seconds % DAY),
}


def _from_day(kind: type[DateTime] | type[Date], part: str) -> Body:
    def body(values: Values) -> Values:
        time = time_argument(kind, values, f"{part}-from-{kind.name}")
        return [] if time is None else [_OF_DAY[part](time.day)]

    return body


def _from_clock(kind: type[DateTime] | type[Time], part: str) -> Body:
    def body(values: Values) -> Values:
        time = time_argument(kind, values, f"{part}-from-{kind.name}")
        return [] if time is None else [_OF_CLOCK[part](time.clock)]

    return body


def _from_duration(part: str) -> Body:
    """A part of a duration, which has the sign of the whole."""

    def body(values: Values) -> Values:
        what = f"{part}-from-duration"
        value = at_most_one(values, f"{what}()")
        if value is None:
            return []
        months, seconds = _months_and_seconds(value, what)
        found = _OF_LENGTH[part](abs(months), abs(seconds))
        return [-found if found and (months < 0 or seconds < 0) else found]

    return body


# --- zones ------------------------------------------------------------------------------------------------


def _zone_of(kind: type[Instant]) -> Body:
    def body(values: Values) -> Values:
        time = time_argument(kind, values, f"timezone-from-{kind.name}")
        return [] if time is None or time.zone is None else [DayTimeDuration(Fraction(60 * time.zone))]

    return body


def _adjust(kind: type[Instant]) -> Body:
    """The same time in another zone; where the zone is empty, the local time without one."""

    def body(values: Values, zone: Values | None = None) -> Values:
        what = f"adjust-{kind.name}-to-timezone"
        time = time_argument(kind, values, what)
        if zone is None:
            minutes: int | None = 0
        else:
            given = time_argument(DayTimeDuration, zone, what)
            minutes = None if given is None else _minutes(given)
        return [] if time is None else [_adjusted(time, minutes)]

    return body


def _minutes(zone: DayTimeDuration) -> int:
    minutes = zone.number / 60
    if minutes.denominator != 1 or abs(minutes) > _FARTHEST_ZONE:
        raise DynamicError(f"'{zone}' is no zone", code="FODT0003", hint="zones are whole minutes, 14 hours at most")
    return int(minutes)


def _adjusted(time: Instant, zone: int | None) -> Instant:
    ahead = 0 if zone is None or time.zone is None else 60 * (zone - time.zone)
    match time:
        case DateTime(local):
            return within_limits(DateTime(local + ahead, zone))
        case Date(day):
            return within_limits(Date((day * DAY + ahead) // DAY, zone))
        case Time(clock):
            return Time((clock + ahead) % DAY, zone)


def _date_time(date: Values, time: Values) -> Values:
    """The moment of a date and a time, whose zones must not differ."""
    day, clock = time_argument(Date, date, "dateTime"), time_argument(Time, time, "dateTime")
    if day is None or clock is None:
        return []
    if day.zone is not None and clock.zone is not None and day.zone != clock.zone:
        raise DynamicError("a date and a time of different zones make no dateTime", code="FORG0008")
    return [DateTime(day.day * DAY + clock.clock, clock.zone if day.zone is None else day.zone)]


TIME_FUNCTIONS: Mapping[str, Body] = {
    **{name: _constructor(name) for name in CASTS},
    **{f"{part}-from-{kind.name}": _from_day(kind, part) for kind in (DateTime, Date) for part in _OF_DAY},
    **{f"{part}-from-{kind.name}": _from_clock(kind, part) for kind in (DateTime, Time) for part in _OF_CLOCK},
    **{f"{part}-from-duration": _from_duration(part) for part in _OF_LENGTH},
    **{f"timezone-from-{kind.name}": _zone_of(kind) for kind in (DateTime, Date, Time)},
    **{f"adjust-{kind.name}-to-timezone": _adjust(kind) for kind in (DateTime, Date, Time)},
    "dateTime": _date_time,
    "implicit-timezone": lambda: [DayTimeDuration(Fraction(0))],
}
