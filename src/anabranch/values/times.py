"""Times and durations as values: xs:dateTime, xs:date, xs:time, xs:dayTimeDuration, xs:yearMonthDuration (LAWS 2.7).

A time is its clock's local value and its zone, which is kept for its spelling; it is compared by its `number`, exact
seconds in UTC.
A clock without a zone is that of UTC.
Values of one type are ordered by their numbers, and equal numbers are equal values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias, TypeVar

from anabranch.errors import DynamicError
from anabranch.values.instants import (
    DAY,
    date_of,
    length_months,
    length_seconds,
    read_clock,
    read_day,
    read_moment,
    spell_clock,
    spell_date,
    spell_part,
)
from anabranch.values.numbers import shown

_FARTHEST_YEAR = 999_999_999
_LONGEST = 10**24
"""Durations have fewer seconds or months than this; texts that are accepted stay below."""


@dataclass(frozen=True, slots=True)
class DateTime:
    """A moment: the local seconds since 1970-01-01T00:00:00, and the minutes by which its zone is ahead of UTC."""

    name: ClassVar[str] = "dateTime"
    local: Fraction
    zone: int | None = None

    @property
    def number(self) -> Fraction:
        return _in_utc(self.local, self.zone)

    @property
    def day(self) -> int:
        """The days from 1970-01-01 to its date."""
        return int(self.local // DAY)

    @property
    def clock(self) -> Fraction:
        """The seconds since midnight."""
        return self.local % DAY

    @staticmethod
    def read(text: str) -> DateTime | None:
        found = read_moment(text)
        return found and DateTime(*found)

    def __str__(self) -> str:
        return f"{spell_date(*date_of(self.day))}T{spell_clock(self.clock)}{spell_zone(self.zone)}"


@dataclass(frozen=True, slots=True)
class Date:
    """A day: the days from 1970-01-01, and its zone; it is compared by its first midnight."""

    name: ClassVar[str] = "date"
    day: int
    zone: int | None = None

    @property
    def number(self) -> Fraction:
        return _in_utc(Fraction(self.day * DAY), self.zone)

    @staticmethod
    def read(text: str) -> Date | None:
        found = read_day(text)
        return found and Date(*found)

    def __str__(self) -> str:
        return f"{spell_date(*date_of(self.day))}{spell_zone(self.zone)}"


@dataclass(frozen=True, slots=True)
class Time:
    """A time of any day: the seconds since midnight, and its zone; all are compared on the same day."""

    name: ClassVar[str] = "time"
    clock: Fraction
    zone: int | None = None

    @property
    def number(self) -> Fraction:
        return _in_utc(self.clock, self.zone)

    @staticmethod
    def read(text: str) -> Time | None:
        found = read_clock(text)
        return found and Time(*found)

    def __str__(self) -> str:
        return f"{spell_clock(self.clock)}{spell_zone(self.zone)}"


@dataclass(frozen=True, slots=True)
class DayTimeDuration:
    """A length of time in seconds."""

    name: ClassVar[str] = "dayTimeDuration"
    number: Fraction

    @staticmethod
    def read(text: str) -> DayTimeDuration | None:
        found = length_seconds(text)
        return None if found is None else DayTimeDuration(found)

    def __str__(self) -> str:
        whole, part = divmod(abs(self.number), 1)
        days, clock = divmod(whole, DAY)
        hours, minutes, seconds = clock // 3_600, clock // 60 % 60, clock % 60
        spelled = f"{seconds}{spell_part(part)}S" if seconds or part else ""
        spelled = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "") + spelled
        text = (f"{days}D" if days else "") + (f"T{spelled}" if spelled else "")
        return f"{'-' if self.number < 0 else ''}P{text or 'T0S'}"


@dataclass(frozen=True, slots=True)
class YearMonthDuration:
    """A length of time in months."""

    name: ClassVar[str] = "yearMonthDuration"
    months: int

    @property
    def number(self) -> Fraction:
        return Fraction(self.months)

    @staticmethod
    def read(text: str) -> YearMonthDuration | None:
        found = length_months(text)
        return None if found is None else YearMonthDuration(found)

    def __str__(self) -> str:
        years, months = divmod(abs(self.months), 12)
        text = (f"{years}Y" if years else "") + (f"{months}M" if months or not years else "")
        return f"{'-' if self.months < 0 else ''}P{text}"


Instant: TypeAlias = DateTime | Date | Time
Duration: TypeAlias = DayTimeDuration | YearMonthDuration
TimeValue: TypeAlias = Instant | Duration
INSTANTS = (DateTime, Date, Time)
DURATIONS = (DayTimeDuration, YearMonthDuration)
TIMES = (*INSTANTS, *DURATIONS)
T = TypeVar("T", bound=TimeValue)


def _in_utc(local: Fraction, zone: int | None) -> Fraction:
    return local - 60 * zone if zone else local


def spell_zone(zone: int | None) -> str:
    """A zone as XQuery writes it; empty for none."""
    if not zone:
        return "" if zone is None else "Z"
    hours, minutes = divmod(abs(zone), 60)
    return f"{'-' if zone < 0 else '+'}{hours:02d}:{minutes:02d}"


# --- reading ----------------------------------------------------------------------------------------------


_FAR = re.compile(r"[ \t\r\n]*-?[1-9]\d{9,}(-\d\d-\d\d.*)\Z", re.ASCII | re.DOTALL)
_LONG = re.compile(r"[0-9]{19,}(?=[YMDHS.])", re.ASCII)


def read_time(kind: type[T], text: str) -> T:
    """The value of a type from its text; raises FORG0001, and FODT0001 or FODT0002 where it is beyond limits."""
    found = kind.read(text)
    if found is not None:
        assert isinstance(found, kind)
        return within_limits(found)  # the midnight after the last day is beyond
    far = _FAR.match(text)
    nearer = kind.read(f"2000{far[1]}" if far else _LONG.sub("1", text))
    if nearer is not None:
        raise beyond(nearer)
    raise DynamicError(f"'{shown(text)}' is no xs:{kind.name}", code="FORG0001")


# --- limits -----------------------------------------------------------------------------------------------


def beyond(value: TimeValue) -> DynamicError:
    """The error for a value of this type that is beyond its limits."""
    if isinstance(value, INSTANTS):
        return DynamicError(f"the year lies beyond {_FARTHEST_YEAR:,}", code="FODT0001")
    return DynamicError("the duration is too long", code="FODT0002")


def within_limits(value: T) -> T:
    """A computed value; raises where it is beyond its limits."""
    if isinstance(value, DateTime | Date):
        year, _, _ = date_of(value.day)
        if abs(year) > _FARTHEST_YEAR:
            raise beyond(value)
    elif isinstance(value, DURATIONS) and abs(value.number) >= _LONGEST:
        raise beyond(value)
    return value
