"""Which comparisons of numbers are by exact value, and which doubles stand for one value (LAWS 2.3)."""

from __future__ import annotations

import numpy as np

from anabranch.columnar.expressions.tree import Choice, ConstantValue, Expression, FunctionCall, Kind
from anabranch.columnar.expressions.values import TOO_LARGE_INTEGER, ColumnValue
from anabranch.columnar.scan.kernels import SIMPLE, Flags


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
