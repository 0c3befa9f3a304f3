"""Casts between the types of values, as XQuery's table has them, for the types that queries can name (LAWS 2.7)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial

from anabranch.errors import DynamicError
from anabranch.values.atomic import Atomic, JsonNumber, Untyped, kind_of, read_boolean, spell, to_double
from anabranch.values.instants import DAY
from anabranch.values.numbers import exact_number, shown
from anabranch.values.times import (
    DURATIONS,
    TIMES,
    Date,
    DateTime,
    DayTimeDuration,
    Time,
    TimeValue,
    YearMonthDuration,
    read_time,
)

_MOST_DIGITS = 2_000
_INTEGER = re.compile(r"[ \t\r\n]*([+-]?\d+)[ \t\r\n]*\Z", re.ASCII)
_DECIMAL = re.compile(r"[ \t\r\n]*([+-]?(?:\d+(?:\.\d*)?|\.\d+))[ \t\r\n]*\Z", re.ASCII)


def _no_cast(value: Atomic, name: str) -> DynamicError:
    return DynamicError(f"a {kind_of(value)} cannot become an xs:{name}", code="XPTY0004")


def _digits(pattern: re.Pattern[str], text: str, name: str) -> str:
    """The number that a text spells by a pattern."""
    found = pattern.match(text)
    if found is None:
        raise DynamicError(f"'{shown(text)}' is no xs:{name}", code="FORG0001")
    if len(found[1]) > _MOST_DIGITS:
        raise DynamicError(f"an xs:{name} has at most {_MOST_DIGITS:,} digits", code="FOCA0003")
    return found[1]


def _finite(value: float, name: str) -> float:
    if not math.isfinite(value):
        raise DynamicError(f"{spell(value)} is no xs:{name}", code="FOCA0002")
    return value


def _exact(number: JsonNumber, name: str) -> Decimal:
    """The value that a number of JSON spells, where it is one of xs:double."""
    exact = exact_number(number)
    assert exact is not None, "JSON was read as a number"
    _finite(float(exact), name)
    return exact


def _integer(value: Atomic) -> int:
    match value:
        case JsonNumber():
            return int(_exact(value, "integer"))
        case str():
            return int(_digits(_INTEGER, value, "integer"))
        case float():
            return int(_finite(value, "integer"))
        case int() | Decimal():  # a boolean is 0 or 1
            return int(value)
        case _:
            raise _no_cast(value, "integer")


def _decimal(value: Atomic) -> Decimal:
    match value:
        case JsonNumber():
            return _exact(value, "decimal")
        case str():
            return Decimal(_digits(_DECIMAL, value, "decimal"))
        case float():
            return Decimal(_finite(value, "decimal"))
        case int() | Decimal():
            return Decimal(value)
        case _:
            raise _no_cast(value, "decimal")


def _double(value: Atomic) -> float:
    if isinstance(value, TIMES):
        raise _no_cast(value, "double")
    return to_double(Untyped(value) if isinstance(value, str) else value)


def _boolean(value: Atomic) -> bool:
    match value:
        case JsonNumber():
            return bool(exact_number(value))
        case str():
            return read_boolean(value)
        case int() | Decimal() | float():
            return value != 0 and not math.isnan(value)
        case _:
            raise _no_cast(value, "boolean")


def _time_value(kind: type[TimeValue], value: Atomic) -> TimeValue:
    """A value as a time or a duration: from text, or from another time or duration with all the parts needed."""
    if isinstance(value, str):
        return read_time(kind, value)
    if isinstance(value, kind):
        return value
    match value:
        case DateTime(_, zone) if kind is Date:
            return Date(value.day, zone)
        case DateTime(_, zone) if kind is Time:
            return Time(value.clock, zone)
        case Date(day, zone) if kind is DateTime:
            return DateTime(Fraction(day * DAY), zone)
        case _ if isinstance(value, DURATIONS) and kind is DayTimeDuration:
            return DayTimeDuration(Fraction(0))
        case _ if isinstance(value, DURATIONS) and kind is YearMonthDuration:
            return YearMonthDuration(0)
        case _:
            raise _no_cast(value, kind.name)


CASTS: Mapping[str, Callable[[Atomic], Atomic]] = {
    "xs:string": spell,
    "xs:untypedAtomic": lambda value: Untyped(spell(value)),
    "xs:boolean": _boolean,
    "xs:integer": _integer,
    "xs:decimal": _decimal,
    "xs:double": _double,
    **{f"xs:{kind.name}": partial(_time_value, kind) for kind in TIMES},
}
"""By the name of the type: the cast; raises where a value has none, or may have none, of the type."""
