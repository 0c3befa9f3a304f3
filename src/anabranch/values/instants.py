"""Moments and durations from their texts, in exact seconds (LAWS 2.7).

A moment is its seconds since 1970-01-01T00:00:00Z in the proleptic Gregorian calendar, as in XQuery.
"""

from __future__ import annotations

import re
from fractions import Fraction

from anabranch.values.numbers import shown

DAY = 86_400
"""The seconds of a day: there are no leap seconds."""

MOST_PLACES = 100
"""The most digits of seconds after the point."""

_ZONE = r"(Z|[+-](?:(?:0\d|1[0-3]):[0-5]\d|14:00))?"
_DATE = r"(-?(?:[1-9]\d{3,8}|0\d{3}))-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:([01]\d|2[0-3]):([0-5]\d):([0-5]\d(?:\.\d{1,100})?)|24:00:00(?:\.0{1,100})?)"
_MOMENT = re.compile(rf"[ \t\r\n]*{_DATE}T{_CLOCK}{_ZONE}[ \t\r\n]*\Z", re.ASCII)
_DAY_TEXT = re.compile(rf"[ \t\r\n]*{_DATE}{_ZONE}[ \t\r\n]*\Z", re.ASCII)
_CLOCK_TEXT = re.compile(rf"[ \t\r\n]*{_CLOCK}{_ZONE}[ \t\r\n]*\Z", re.ASCII)
_LENGTH = re.compile(
    r"[ \t\r\n]*(-)?P(?=[\dT])(?:(\d{1,18})D)?"
    r"(?:T(?=\d)(?:(\d{1,18})H)?(?:(\d{1,18})M)?(?:(\d{1,18}(?:\.\d{1,100})?)S)?)?[ \t\r\n]*\Z",
    re.ASCII,
)
_MONTHS = re.compile(r"[ \t\r\n]*(-)?P(?=\d)(?:(\d{1,18})Y)?(?:(\d{1,18})M)?[ \t\r\n]*\Z", re.ASCII)
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_of_month(year: int, month: int) -> int:
    """The number of days in a month."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else _MONTH_DAYS[month - 1]


def day_number(year: int, month: int, day: int) -> int:
    """The days from 1970-01-01 to a day."""
    year -= month <= 2
    century, in_century = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return century * 146_097 + in_century * 365 + in_century // 4 - in_century // 100 + day_of_year - 719_468


def date_of(number: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01."""
    century, days = divmod(number + 719_468, 146_097)
    year = (days - days // 1_460 + days // 36_524 - days // 146_096) // 365
    days -= 365 * year + year // 4 - year // 100
    month = (5 * days + 2) // 153
    day = days - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return century * 400 + year + (month <= 2), month, day


def read_moment(text: str) -> tuple[Fraction, int | None] | None:
    """The local seconds since 1970 of an xs:dateTime, and its zone; None for other texts."""
    if not (found := _MOMENT.match(text)):
        return None
    year, month, day, hours, minutes, seconds, zone = found.groups()
    if int(day) > days_of_month(int(year), int(month)):
        return None
    midnight = day_number(int(year), int(month), int(day)) * DAY
    return midnight + _clock(hours, minutes, seconds), zone_minutes(zone)


def read_day(text: str) -> tuple[int, int | None] | None:
    """The days from 1970-01-01 to an xs:date, and its zone; None for other texts."""
    if not (found := _DAY_TEXT.match(text)):
        return None
    year, month, day, zone = found.groups()
    if int(day) > days_of_month(int(year), int(month)):
        return None
    return day_number(int(year), int(month), int(day)), zone_minutes(zone)


def read_clock(text: str) -> tuple[Fraction, int | None] | None:
    """The seconds from midnight to an xs:time, and its zone; None for other texts."""
    if not (found := _CLOCK_TEXT.match(text)):
        return None
    hours, minutes, seconds, zone = found.groups()
    return _clock(hours, minutes, seconds) % DAY, zone_minutes(zone)


def _clock(hours: str | None, minutes: str, seconds: str) -> Fraction:
    return Fraction(DAY) if hours is None else int(hours) * 3_600 + int(minutes) * 60 + Fraction(seconds)


def moment_seconds(text: str) -> Fraction | None:
    """The seconds since 1970 of an xs:dateTime, in UTC where it names no zone; None for other texts."""
    if (found := read_moment(text)) is None:
        return None
    local, zone = found
    return local - 60 * (zone or 0)


def date_seconds(text: str) -> Fraction | None:
    """The seconds since 1970 of the midnight at which an xs:date begins; None for other texts."""
    if (found := read_day(text)) is None:
        return None
    day, zone = found
    return Fraction(day * DAY - 60 * (zone or 0))


def time_seconds(text: str) -> Fraction | None:
    """The seconds since 1970 of a dateTime or a date (LAWS 3.1); None for other texts."""
    seconds = moment_seconds(text)
    return date_seconds(text) if seconds is None else seconds


def zone_minutes(zone: str | None) -> int | None:
    """The minutes by which a zone, `Z` or `+02:00`, is ahead of UTC; None for none."""
    if zone is None or zone == "Z":
        return None if zone is None else 0
    minutes = int(zone[1:3]) * 60 + int(zone[4:])
    return -minutes if zone[0] == "-" else minutes


def length_seconds(text: str) -> Fraction | None:
    """The seconds of an xs:dayTimeDuration, such as `PT1M`; None for other texts."""
    if not (found := _LENGTH.match(text)):
        return None
    sign, days, hours, minutes, seconds = found.groups()
    length = int(days or 0) * DAY + int(hours or 0) * 3_600 + int(minutes or 0) * 60 + Fraction(seconds or 0)
    return -length if sign else Fraction(length)


def length_months(text: str) -> int | None:
    """The months of an xs:yearMonthDuration, such as `P1Y6M`; None for other texts."""
    if not (found := _MONTHS.match(text)):
        return None
    sign, years, months = found.groups()
    length = int(years or 0) * 12 + int(months or 0)
    return -length if sign else length


def spell_date(year: int, month: int, day: int) -> str:
    """A date as XQuery writes it, without a zone."""
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}"


def spell_clock(seconds: Fraction) -> str:
    """The time of a day as XQuery writes it, without a zone."""
    whole, part = divmod(seconds, 1)
    minutes, second = divmod(whole, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}{spell_part(part)}"


def spell_part(part: Fraction) -> str:
    """The digits after the point, with the point, of a number below one; empty for zero."""
    digits = places_of(part)
    return f".{int(part * 10**digits):0{digits}d}" if digits else ""


def places_of(number: Fraction) -> int:
    """The number of digits after the point that spell a number."""
    digits = 0
    while (number * 10**digits).denominator != 1:
        if digits == MOST_PLACES:
            raise ValueError(f"{shown(str(number))} has no end in {MOST_PLACES} digits")
        digits += 1
    return digits
