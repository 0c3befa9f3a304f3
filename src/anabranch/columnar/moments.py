"""DateTimes in columns: the usual ones, read as integers with decimal places, and written.

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


def read_dates(data: Bytes, starts: Places, ends: Places) -> tuple[Indices, Flags]:
    """The nanoseconds since 1970 of texts, and which texts are dates without a zone that fit 64 bits."""
    mantissas, places = np.zeros(len(starts), np.int64), np.full(len(starts), -1)
    read_moments(data, starts, ends, mantissas, places)
    known = (places == 0) & (ends - starts == _DATE) & (np.abs(mantissas) <= _FARTHEST // 10**_MOST_DIGITS)
    return np.where(known, mantissas, 0) * 10**_MOST_DIGITS, known


NO_ZONE = 1 << 15
"""In the place of the minutes of a zone, where there is none."""
_DAY_TICKS = np.int64(86_400 * 10**9)
_LONGEST = _DATE_TIME + 1 + _MOST_DIGITS + _ZONE
"""The length of the longest dateTime that is written."""


@compiled
def read_zones(data: Bytes, starts: Places, ends: Places, zones: Indices) -> None:
    """The minutes by which the zones of dateTimes are ahead of UTC; of other texts, anything."""
    for row in range(len(zones)):
        stop = ends[row]
        zones[row] = NO_ZONE
        if stop - starts[row] < _DATE_TIME:
            continue
        if data[stop - 1] == _Z:
            zones[row] = 0
        elif stop - starts[row] >= _DATE_TIME + _ZONE and data[stop - 3] == _COLON and data[stop - 6] != _COLON:
            zones[row] = _zone(data, stop - _ZONE, stop) // 60


@compiled_lean
def _write(number: int, count: int, out: Bytes, at: int) -> int:
    """Write a number with so many digits; gives the place behind it."""
    for place in range(at + count - 1, at - 1, -1):
        out[place] = _ZERO + number % 10
        number //= 10
    return at + count


@compiled
def _write_moments(ticks: Indices, zones: Indices, out: Bytes, starts: Places, ends: Places) -> None:
    at = 0
    for row in range(len(ticks)):
        starts[row] = at
        zone = zones[row]
        local = ticks[row] + (np.int64(0) if zone == NO_ZONE else zone * 60 * np.int64(10**9))
        day, clock = local // _DAY_TICKS, local % _DAY_TICKS
        days = day + 719_468
        century, in_century = days // 146_097, days % 146_097
        year = (in_century - in_century // 1_460 + in_century // 36_524 - in_century // 146_096) // 365
        day_of_year = in_century - (365 * year + year // 4 - year // 100)
        month = (5 * day_of_year + 2) // 153
        at = _write(century * 400 + year + (1 if month >= 10 else 0), 4, out, at)
        out[at] = _MINUS
        at = _write(month + (3 if month < 10 else -9), 2, out, at + 1)
        out[at] = _MINUS
        at = _write(day_of_year - (153 * month + 2) // 5 + 1, 2, out, at + 1)
        seconds, part = clock // 10**9, clock % 10**9
        out[at] = _T
        at = _write(seconds // 3_600, 2, out, at + 1)
        out[at] = _COLON
        at = _write(seconds // 60 % 60, 2, out, at + 1)
        out[at] = _COLON
        at = _write(seconds % 60, 2, out, at + 1)
        if part:
            out[at] = _POINT
            at = _write(part, _MOST_DIGITS, out, at + 1)
            while out[at - 1] == _ZERO:
                at -= 1
        if zone == 0:
            out[at] = _Z
            at += 1
        elif zone != NO_ZONE:
            out[at] = _MINUS if zone < 0 else _PLUS
            at = _write(abs(zone) // 60, 2, out, at + 1)
            out[at] = _COLON
            at = _write(abs(zone) % 60, 2, out, at + 1)
        ends[row] = at


def spell_moments(ticks: Indices, zones: Indices) -> tuple[Bytes, Places, Places]:
    """DateTimes, given by nanoseconds since 1970 and their zones, as XQuery writes them."""
    out = np.empty(_LONGEST * len(ticks), np.uint8)
    starts, ends = np.empty((2, len(ticks)), np.int32)
    _write_moments(ticks, zones, out, starts, ends)
    return out[: int(ends[-1]) if len(ends) else 0], starts, ends


def ticks_in(text: bytes, *, is_date: bool = False) -> int | None:
    """The nanoseconds since 1970 of one text; None where it is not read as a dateTime, or else as a date."""
    read = read_dates if is_date else read_ticks
    ticks, known = read(np.frombuffer(text, np.uint8), *np.array([[0], [len(text)]], np.int32))
    return int(ticks[0]) if known[0] else None
