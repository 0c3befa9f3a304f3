"""Arithmetic with times and durations, as in XQuery (LAWS 2.7).

Seconds are decimals: sums and differences are exact, and factors and divisors of durations are decimals, too, for a
double its shortest spelling.
A product keeps as many digits after the point as a text may have, and a quotient as many as `div` gives decimals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

from anabranch.errors import DynamicError
from anabranch.values.atomic import Atomic, Numeric, as_number, kind_of
from anabranch.values.instants import DAY, MOST_PLACES, date_of, day_number, days_of_month, places_of
from anabranch.values.operators import ArithmeticOperator
from anabranch.values.times import (
    DURATIONS,
    INSTANTS,
    TIMES,
    Date,
    DateTime,
    DayTimeDuration,
    Duration,
    Instant,
    Time,
    TimeValue,
    YearMonthDuration,
    beyond,
    within_limits,
)

_PLACES = 18
"""The digits after the point of a quotient of decimals."""
_DIGITS = Context(prec=2_000)


def calculate_times(operator: ArithmeticOperator, left: Atomic, right: Atomic) -> TimeValue | Decimal:
    """One operation with at least one time or duration."""
    if isinstance(left, INSTANTS) and isinstance(right, INSTANTS) and type(left) is type(right) and operator == "-":
        return within_limits(DayTimeDuration(left.number - right.number))
    if isinstance(left, DURATIONS) and isinstance(right, DURATIONS) and type(left) is type(right):
        if operator in ("+", "-"):
            return _of_number(left, left.number + (right.number if operator == "+" else -right.number))
        if operator == "div":
            return _quotient(left, right)
    if isinstance(left, INSTANTS) and isinstance(right, DURATIONS) and operator in ("+", "-"):
        return _moved(left, right, 1 if operator == "+" else -1)
    if isinstance(left, DURATIONS) and isinstance(right, INSTANTS) and operator == "+":
        return _moved(right, left, 1)
    if isinstance(left, DURATIONS) and not isinstance(right, TIMES) and operator in ("*", "div"):
        return _scaled(left, as_number(right), divides=operator == "div")
    if isinstance(right, DURATIONS) and not isinstance(left, TIMES) and operator == "*":
        return _scaled(right, as_number(left), divides=False)
    for each in (left, right):
        if not isinstance(each, TIMES):
            as_number(each)  # text that is no number is the error to report
    raise DynamicError(f"'{operator}' takes no {kind_of(left)} and {kind_of(right)}", code="XPTY0004")


def decimal_of(number: Fraction) -> Decimal:
    """An exact number with a finite decimal spelling, such as seconds."""
    return _DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))


def duration_sum(durations: Sequence[Duration]) -> Duration:
    """The sum of one or more durations of one type."""
    return _of_number(durations[0], sum((each.number for each in durations), Fraction(0)))


def duration_average(total: Duration, count: int) -> Duration:
    """The average of `count` durations with this sum."""
    return _scaled(total, count, divides=True)


def _of_number(like: Duration, number: Fraction) -> Duration:
    """A duration of the same type."""
    if isinstance(like, DayTimeDuration):
        return within_limits(DayTimeDuration(number))
    return within_limits(YearMonthDuration(int(number)))


def _moved(time: Instant, by: Duration, sign: int) -> Instant:
    """A time later, or earlier, by a duration; adding months keeps the day of the month, or takes its last."""
    match time, by:
        case DateTime(local, zone), DayTimeDuration(seconds):
            return within_limits(DateTime(local + sign * seconds, zone))
        case DateTime(local, zone), YearMonthDuration(months):
            day = _months_later(time.day, sign * months)
            return within_limits(DateTime(day * DAY + time.clock, zone))
        case Date(day, zone), DayTimeDuration(seconds):
            return within_limits(Date(int((day * DAY + sign * seconds) // DAY), zone))
        case Date(day, zone), YearMonthDuration(months):
            return within_limits(Date(_months_later(day, sign * months), zone))
        case Time(clock, zone), DayTimeDuration(seconds):
            return Time((clock + sign * seconds) % DAY, zone)
        case _:
            raise DynamicError(f"a {time.name} has no months", code="XPTY0004")


def _months_later(day: int, months: int) -> int:
    year, month, day_of_month = date_of(day)
    years, month = divmod(year * 12 + month - 1 + months, 12)
    return day_number(years, month + 1, min(day_of_month, days_of_month(years, month + 1)))


def _scaled(duration: Duration, number: Numeric, *, divides: bool) -> Duration:
    """A duration multiplied, or divided, by a number."""
    if isinstance(number, float) and not math.isfinite(number):
        if math.isnan(number):
            raise DynamicError("a duration cannot be computed with NaN", code="FOCA0005")
        if not divides:
            raise beyond(duration)
        return _of_number(duration, Fraction(0))
    by = Fraction(repr(float(number))) if isinstance(number, float) else Fraction(number)
    if divides and not by:
        raise DynamicError("a duration cannot be divided by zero", code="FODT0002")
    exact = duration.number / by if divides else duration.number * by
    if isinstance(duration, YearMonthDuration):
        return _of_number(duration, Fraction(math.floor(exact + Fraction(1, 2))))
    return _of_number(duration, _rounded(exact, max(_PLACES, places_of(duration.number)) if divides else MOST_PLACES))


def _quotient(left: Duration, right: Duration) -> Decimal:
    """The quotient of two durations of one type."""
    if not right.number:
        raise DynamicError("division by a duration of no length", code="FOAR0001")
    places = max(_PLACES, places_of(left.number), places_of(right.number))
    return decimal_of(_rounded(left.number / right.number, places))


def _rounded(number: Fraction, places: int) -> Fraction:
    """The nearest number with `places` digits after the point; of two the one nearer to 0."""
    unit = 10**places
    whole = math.ceil(abs(number) * unit - Fraction(1, 2))
    return Fraction(whole if number >= 0 else -whole, unit)
