"""What is compared by exact value: numbers of few digits as doubles, dateTimes as nanoseconds (LAWS 2.3, 2.7).

A dateTime is read where it is written as nearly all items write it (`columnar/moments.py`), in a year in which
nanoseconds since 1970 fit 64 bits; any other text is left to the law, be it a dateTime or none.
"""

from __future__ import annotations

import numpy as np

from anabranch.columnar.expressions.tree import Choice, ConstantValue, Expression, FunctionCall, Kind
from anabranch.columnar.expressions.values import TOO_LARGE_INTEGER, UNCLEAR, ColumnValue, States, state_of, worst
from anabranch.columnar.moments import DATE_TIME, read_moments
from anabranch.columnar.scan.kernels import SIMPLE, Flags, Indices, Numbers

_PLACES = 9
_MOST = (1 << 63) - 1


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
    data, starts, ends = value.texts.data, value.texts.starts, value.texts.ends
    mantissas, places = np.zeros(len(starts), np.int64), np.full(len(starts), -1)
    read_moments(data, starts, ends, mantissas, places)
    powers = 10 ** np.maximum(_PLACES - places, 0)
    wrong = (places < 0) | (ends - starts < DATE_TIME) | (np.abs(mantissas) > _MOST // powers)
    return np.where(wrong, 0, mantissas) * powers, worst(value.state, state_of(wrong, UNCLEAR, value.state))
