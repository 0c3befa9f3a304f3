"""The bounds of many windows as they are written (LAWS 3.1): decimals, or dateTimes in UTC.

Guarantees: the texts are those of `law/bounds.py`, spelled as XQuery does; years of other than four digits are left to
the law.
"""

from __future__ import annotations

from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.panes.kernels import MOST_PLACES
from anabranch.columnar.scan.kernels import Bytes, Flags, Indices, Places, compiled

_ZERO, _MINUS, _POINT, _COLON, _T, _Z = b"0-.:TZ"
_LONGEST = 40
"""The bytes of a bound, at most: 19 digits and a sign, or a dateTime with 18 digits behind the point."""
_DAY = 86_400


@compiled
def _write_digits(number: int, count: int, out: Bytes, at: int) -> int:
    """Write `count` digits of a number; returns where they end."""
    for place in range(at + count - 1, at - 1, -1):
        out[place] = _ZERO + number % 10
        number //= 10
    return at + count


@compiled
def _write_fraction(part: int, places: int, out: Bytes, at: int) -> int:
    """Write the digits behind the point, unless all are zero; returns where they end."""
    if part == 0:
        return at
    out[at] = _POINT
    end = _write_digits(part, places, out, at + 1)
    while out[end - 1] == _ZERO:
        end -= 1
    return end


@compiled
def _write_decimal(ticks: int, places: int, unit: int, out: Bytes, at: int) -> int:
    if ticks < 0:
        out[at] = _MINUS
        at, ticks = at + 1, -ticks
    whole = ticks // unit
    count, rest = 1, whole // 10
    while rest > 0:
        count, rest = count + 1, rest // 10
    return _write_fraction(ticks % unit, places, out, _write_digits(whole, count, out, at))


@compiled
def _write_moment(ticks: int, places: int, unit: int, out: Bytes, at: int) -> int:
    """Write a dateTime; returns where it ends, or -1 where its year has other than four digits."""
    seconds, part = ticks // unit, ticks % unit
    days, clock = seconds // _DAY + 719_468, seconds % _DAY  # from the first of March of the year 0
    era, day = days // 146_097, days % 146_097
    years = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * years + years // 4 - years // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    year = years + era * 400 + (1 if month <= 2 else 0)
    if not 1 <= year <= 9_999:
        return -1
    at = _write_digits(year, 4, out, at)
    out[at] = _MINUS
    at = _write_digits(month, 2, out, at + 1)
    out[at] = _MINUS
    at = _write_digits(day + 1, 2, out, at + 1)
    out[at] = _T
    at = _write_digits(clock // 3_600, 2, out, at + 1)
    out[at] = _COLON
    at = _write_digits(clock // 60 % 60, 2, out, at + 1)
    out[at] = _COLON
    at = _write_digits(clock % 60, 2, out, at + 1)
    at = _write_fraction(part, places, out, at)
    out[at] = _Z
    return at + 1


@compiled
def _write_bounds(
    ticks: Indices,
    are_times: Flags,
    places: int,
    unit: int,
    time_places: int,
    time_unit: int,
    out: Bytes,
    starts: Places,
    ends: Places,
) -> bool:
    at = 0
    for row in range(len(ticks)):
        starts[row] = at
        if are_times[row]:
            at = _write_moment(ticks[row], time_places, time_unit, out, at)
        else:
            at = _write_decimal(ticks[row], places, unit, out, at)
        if at < 0:
            return False
        ends[row] = at
    return True


def spelled_bounds(ticks: Indices, places: int, are_times: Flags, per_second: int) -> TextColumn | None:
    """Numbers in units of `10**-places` as bounds; None where columns cannot spell them.

    Times count in `per_second` units a second, a power of ten.
    """
    time_places = places + len(str(per_second)) - 1
    if time_places > MOST_PLACES:
        return None
    texts = TextColumn.room(len(ticks), len(ticks) * _LONGEST)
    is_written = _write_bounds(ticks, are_times, places, 10**places, time_places, 10**time_places, *texts)
    return texts if is_written else None
