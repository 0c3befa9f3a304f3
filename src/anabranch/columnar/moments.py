"""DateTimes in columns: the usual ones, as integers with decimal places.

They are texts such as `2026-01-01T12:30:00`, with a fraction of up to nine digits, and `Z` or a zone behind them, and
dates without a zone.
Other dateTimes (a year of five digits, a far year with nanoseconds, blanks around it, `24:00:00`) are left to the law
(`values/instants.py`).

Guarantees: a value that is read here is the one that the law reads, to the digit.
"""

from __future__ import annotations

import numpy as np

from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Places, compiled, compiled_lean

_ZERO, _NINE, _MINUS, _PLUS, _COLON, _POINT, _T, _Z = b"09-+:.TZ"
_MOST_DIGITS = 9
_FARTHEST = np.int64((1 << 63) - 1)
"""All values are below this; times with nine decimal digits are from 1678 to 2261."""
_DATE_TIME = 19
"""The length of a dateTime without a fraction."""
_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
_DATE, _ZONE = 10, 6
"""The lengths of a date and of a zone."""


@compiled_lean
def _digits(data: Bytes, at: int, count: int) -> int:
    """The number that `count` digits spell; -1 where a byte is no digit."""
    number = 0
    for place in range(at, at + count):
        byte = data[place]
        if not _ZERO <= byte <= _NINE:
            return -1
        number = number * 10 + (byte - _ZERO)
    return number


@compiled_lean
def _day(data: Bytes, at: int) -> int:
    """The days from 1970 to the date that begins at a place; -2**62 where there is none."""
    year, month, day = _digits(data, at, 4), _digits(data, at + 5, 2), _digits(data, at + 8, 2)
    nothing = -(1 << 62)
    if data[at + 4] != _MINUS or data[at + 7] != _MINUS or year < 0 or not 1 <= month <= 12 or day < 1:
        return nothing
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _DAYS[month - 1] + (1 if leap and month == 2 else 0):
        return nothing
    if month <= 2:
        year -= 1
    century, in_century = year // 400, year % 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return century * 146_097 + in_century * 365 + in_century // 4 - in_century // 100 + day_of_year - 719_468


@compiled_lean
def _zone(data: Bytes, at: int, stop: int) -> int:
    """How far the zone that fills a span is ahead of UTC, in seconds; a day where it is none."""
    if at == stop or (stop - at == 1 and data[at] == _Z):
        return 0
    if stop - at != _ZONE or data[at + 3] != _COLON or (data[at] != _PLUS and data[at] != _MINUS):
        return 86_400
    hours, minutes = _digits(data, at + 1, 2), _digits(data, at + 4, 2)
    if not 0 <= minutes <= 59 or not (0 <= hours <= 13 or (hours == 14 and minutes == 0)):
        return 86_400
    seconds = hours * 3_600 + minutes * 60
    return -seconds if data[at] == _MINUS else seconds


@compiled
def read_moments(data: Bytes, starts: Places, ends: Places, mantissas: Indices, places: Indices) -> None:
    """The seconds since 1970 of texts that are dateTimes, as integers (`mantissas`) with decimal places.

    Only texts with -1 places are read, which are no decimals (`read_decimals`); those that are no dateTimes keep it.
    """
    for item in range(len(starts)):
        if places[item] >= 0:
            continue
        at, stop = starts[item], ends[item]
        if stop - at < _DATE:
            continue
        day = _day(data, at)
        if day == -(1 << 62):
            continue
        if stop - at == _DATE:
            mantissas[item], places[item] = np.int64(day) * 86_400, 0
            continue
        if stop - at < _DATE_TIME or data[at + 10] != _T or data[at + 13] != _COLON or data[at + 16] != _COLON:
            continue
        hour, minute, second = _digits(data, at + 11, 2), _digits(data, at + 14, 2), _digits(data, at + 17, 2)
        if not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59):
            continue
        behind, digits, part = at + _DATE_TIME, 0, np.int64(0)
        if behind < stop and data[behind] == _POINT:
            behind += 1
            while behind < stop and _ZERO <= data[behind] <= _NINE and digits <= _MOST_DIGITS:
                part = part * 10 + (data[behind] - _ZERO)
                digits += 1
                behind += 1
            if not 0 < digits <= _MOST_DIGITS:
                continue
        zone = _zone(data, behind, stop)
        if zone == 86_400:
            continue
        power = np.int64(1)
        for _ in range(digits):
            power *= 10
        seconds = np.int64(day) * 86_400 + hour * 3_600 + minute * 60 + second - zone
        if abs(seconds) < _FARTHEST // power:
            mantissas[item], places[item] = seconds * power + part, digits


def read_ticks(data: Bytes, starts: Places, ends: Places) -> tuple[Indices, Flags]:
    """The nanoseconds since 1970 of texts, and which texts are dateTimes whose nanoseconds fit 64 bits."""
    mantissas, places = np.zeros(len(starts), np.int64), np.full(len(starts), -1)
    read_moments(data, starts, ends, mantissas, places)
    powers = 10 ** np.maximum(_MOST_DIGITS - places, 0)
    known = (places >= 0) & (ends - starts >= _DATE_TIME) & (np.abs(mantissas) <= _FARTHEST // powers)
    return np.where(known, mantissas, 0) * powers, known


def ticks_in(text: bytes) -> int | None:
    """The nanoseconds since 1970 of one text; None where it is not read as a dateTime."""
    ticks, known = read_ticks(np.frombuffer(text, np.uint8), *np.array([[0], [len(text)]], np.int32))
    return int(ticks[0]) if known[0] else None
