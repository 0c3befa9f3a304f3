"""What is compared by exact value: numbers of few digits as doubles, dateTimes as nanoseconds (LAWS 2.3, 2.7).

A dateTime is read where it is written as nearly all items write it: four digits of a year in which nanoseconds since
1970 fit 64 bits, at most nine digits behind the point, and no blanks around.
Any other text is left to the law, be it a dateTime or none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import Choice, ConstantValue, Expression, FunctionCall, Kind
from anabranch.columnar.expressions.values import TOO_LARGE_INTEGER, UNCLEAR, ColumnValue, States, state_of, worst
from anabranch.columnar.scan.kernels import SIMPLE, Bytes, Flags, Indices, Numbers, compiled
from anabranch.values.instants import day_number

_ZERO, _NINE, _MINUS, _PLUS, _POINT, _COLON, _T, _Z = b"09-+.:TZ"
_FIRST_YEAR, _LAST_YEAR = 1700, 2200
_NANOSECONDS = 1_000_000_000
_WIDTH = len("2026-01-01T00:00:00")
_MOST_PLACES = 9
_WRONG = -1
_DAYS = np.array(
    [day_number(year, month, 1) for year in range(_FIRST_YEAR, _LAST_YEAR + 1) for month in range(1, 13)]
    + [day_number(_LAST_YEAR + 1, 1, 1)],
    np.int64,
)
"""By month from the first year on: the days from 1970-01-01 to its first day; and that of the month behind them."""


# --- numbers ----------------------------------------------------------------------------------------------


def is_exact(left: Expression, right: Expression) -> bool:
    """Whether two numbers are compared by exact value, and not as doubles: unless one was computed as such (LAWS 2.3).

    Doubles compare as the exact values do unless they are equal.
    """
    return not any(each.kind is Kind.DOUBLE and not _is_written(each) for each in (left, right))


def _is_written(number: Expression) -> bool:
    """Whether a double may be one that the query wrote, which keeps its exact value."""
    match number:
        case ConstantValue():
            return True
        case Choice(_, then, otherwise):
            return _is_written(then) or _is_written(otherwise)
        case FunctionCall("behind" | "number", (*_, operand), _):
            return _is_written(operand)
        case _:
            return False


def simple(number: Expression, value: ColumnValue) -> Flags:
    """Which numbers are equal to others such exactly where their doubles are: those of few digits."""
    match number.kind:
        case Kind.UNTYPED:
            return np.zeros(1, np.bool_) if value.numbers is None else ~np.isnan(value.numbers)
        case Kind.INTEGER:
            assert value.numbers is not None
            return np.abs(value.numbers) < TOO_LARGE_INTEGER
        case _:
            assert value.numbers is not None
            few = isinstance(number, ConstantValue)  # the compiler has looked at it
            found: Flags = (np.abs(value.numbers) < SIMPLE) & few
            return found


def exact_numbers(value: ColumnValue) -> tuple[Numbers, States | None]:
    """Numbers of so few digits that doubles compare as they do (LAWS 2.3); others are unclear."""
    assert value.numbers is not None
    nothing = np.isnan(value.numbers)
    return value.numbers, worst(value.state, state_of(nothing, UNCLEAR, value.state))


# --- dateTimes --------------------------------------------------------------------------------------------


def ticks_of(value: ColumnValue) -> tuple[Indices, States | None]:
    """The nanoseconds since 1970 of dateTimes, or of texts that are; what columns do not read as such is unclear."""
    if value.ticks is not None:
        return value.ticks, value.state
    assert value.texts is not None
    found, wrong = np.empty(len(value.texts.starts), np.int64), np.empty(len(value.texts.starts), np.bool_)
    _read_moments(value.texts, found, wrong)
    return found, worst(value.state, state_of(wrong, UNCLEAR, value.state))


@compiled
def _number(data: Bytes, at: int, width: int) -> int:
    """The number that so many digits spell, `_WRONG` where they are none."""
    found = 0
    for place in range(at, at + width):
        if not _ZERO <= data[place] <= _NINE:
            return _WRONG
        found = found * 10 + (data[place] - _ZERO)
    return found


@compiled
def _minutes(data: Bytes, at: int, stop: int) -> int:
    """How far a zone is ahead of UTC, and a day more, so that it is not negative; `_WRONG` where it is none."""
    if at == stop or (at + 1 == stop and data[at] == _Z):
        return 1_440
    if at + 6 != stop or data[at + 3] != _COLON or data[at] not in (_MINUS, _PLUS):
        return _WRONG
    hours, minutes = _number(data, at + 1, 2), _number(data, at + 4, 2)
    if not (0 <= hours < 14 and 0 <= minutes < 60) and not (hours == 14 and minutes == 0):
        return _WRONG
    ahead = hours * 60 + minutes
    return 1_440 - ahead if data[at] == _MINUS else 1_440 + ahead


@compiled
def _read_moment(data: Bytes, at: int, stop: int) -> tuple[int, bool]:
    """The nanoseconds of a dateTime, and whether it is left to the law."""
    if stop - at < _WIDTH:
        return 0, True
    if data[at + 4] != _MINUS or data[at + 7] != _MINUS or data[at + 10] != _T:
        return 0, True
    if data[at + 13] != _COLON or data[at + 16] != _COLON:
        return 0, True
    year, month, day = _number(data, at, 4), _number(data, at + 5, 2), _number(data, at + 8, 2)
    hours, minutes, seconds = _number(data, at + 11, 2), _number(data, at + 14, 2), _number(data, at + 17, 2)
    if not (_FIRST_YEAR <= year <= _LAST_YEAR and 1 <= month <= 12 and day >= 1):
        return 0, True
    if not (0 <= hours < 24 and 0 <= minutes < 60 and 0 <= seconds < 60):
        return 0, True
    in_table = (year - _FIRST_YEAR) * 12 + month - 1
    days = _DAYS[in_table] + day - 1
    if days >= _DAYS[in_table + 1]:
        return 0, True
    place, part = at + _WIDTH, 0
    if place < stop and data[place] == _POINT:
        end = place + 1
        while end < stop and _ZERO <= data[end] <= _NINE:
            end += 1
        places = end - place - 1
        if not 1 <= places <= _MOST_PLACES:
            return 0, True
        part = _number(data, place + 1, places) * 10 ** (_MOST_PLACES - places)
        place = end
    zone = _minutes(data, place, stop)
    if zone == _WRONG:
        return 0, True
    whole = days * 86_400 + hours * 3_600 + minutes * 60 + seconds - (zone - 1_440) * 60
    return whole * _NANOSECONDS + part, False


@compiled
def _read_moments(texts: TextColumn, found: Indices, wrong: NDArray[np.bool_]) -> None:
    """The nanoseconds since 1970 of texts that are dateTimes, and which of them are left to the law."""
    for row in range(len(found)):
        found[row], wrong[row] = _read_moment(texts.data, texts.starts[row], texts.ends[row])
