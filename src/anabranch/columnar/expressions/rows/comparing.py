"""How the values of many rows compare (LAWS 2.3).

Numbers compare by exact value where neither was computed as a double, and doubles stand for these; texts without a type
compare as numbers, as dateTimes or as text.
"""

from __future__ import annotations

import numpy as np

from anabranch.columnar.expressions import texts
from anabranch.columnar.expressions.numbers import NO_NUMBER, read_doubles
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import TIMES, Choice, ConstantValue, Expression, FunctionCall, Kind
from anabranch.columnar.expressions.values import (
    ABSENT,
    CLEAR,
    SHORTEST_MOMENT,
    TOO_LARGE_INTEGER,
    UNCLEAR,
    ColumnValue,
    States,
    doubles_of,
    state_of,
    ticks_of,
    worst,
)
from anabranch.columnar.match.condition import NO, OPERATORS, YES
from anabranch.columnar.match.condition import UNCLEAR as UNCLEAR_VERDICT
from anabranch.columnar.moments import read_ticks
from anabranch.columnar.scan.kernels import SIMPLE, Flags
from anabranch.values.operators import ComparisonOperator


def values_compared(
    operator: ComparisonOperator,
    left: tuple[Expression, ColumnValue],
    right: tuple[Expression, ColumnValue],
    count: int,
) -> ColumnValue:
    """The outcomes of a comparison in many rows, given the expressions of both sides and their values."""
    (first, one), (second, other) = left, right
    kinds = {first.kind, second.kind}
    if kinds == {Kind.BOOLEAN}:
        assert one.verdicts is not None
        assert other.verdicts is not None
        sides = np.broadcast_to(one.verdicts, count), np.broadcast_to(other.verdicts, count)
        verdicts = OPERATORS[operator](*sides).astype(np.uint8) * np.uint8(YES)
        verdicts[(sides[0] == UNCLEAR_VERDICT) | (sides[1] == UNCLEAR_VERDICT)] = UNCLEAR_VERDICT
        return ColumnValue.truth(verdicts)
    if not kinds.isdisjoint(TIMES):
        (times, known), (others, also) = ticks_of(one), ticks_of(other)
        holds, state = OPERATORS[operator](times, others), worst(known, also)
    elif kinds <= {Kind.UNTYPED, Kind.STRING} and (Kind.STRING in kinds or operator in ("=", "!=")):
        holds, state = texts_compared(operator, one, other), worst(one.state, other.state)
    else:
        (a, known), (b, also) = doubles_of(one), doubles_of(other)
        holds, state = OPERATORS[operator](a, b), worst(known, also)
        if is_exact(first, second):
            doubtful = (a == b) & ~(simple(first, one) & simple(second, other))
            state = worst(state, state_of(doubtful, UNCLEAR, state))
        if kinds == {Kind.UNTYPED} and state is not None:
            holds, state = order_beside_numbers(operator, one, other, holds, state)
    verdicts = np.broadcast_to(holds, count).astype(np.uint8) * np.uint8(YES)
    if state is not None:
        state = np.broadcast_to(state, count)
        verdicts[state == ABSENT] = NO
        verdicts[state == UNCLEAR] = UNCLEAR_VERDICT
    return ColumnValue.truth(verdicts)


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
    """Which numbers have so few digits that two of them are equal exactly where their doubles are."""
    match number.kind:
        case Kind.UNTYPED | Kind.NUMBER:
            return np.zeros(1, np.bool_) if value.numbers is None else ~np.isnan(value.numbers)
        case Kind.INTEGER:
            assert value.numbers is not None
            return np.abs(value.numbers) < TOO_LARGE_INTEGER
        case _:
            assert value.numbers is not None
            few = isinstance(number, ConstantValue)  # the compiler has checked it
            found: Flags = (np.abs(value.numbers) < SIMPLE) & few
            return found


def are_no_numbers(column: TextColumn) -> Flags:
    """Which texts are certainly no numbers."""
    numbers, kinds = np.empty(len(column.starts)), np.empty(len(column.starts), np.uint8)
    read_doubles(column, numbers, kinds)
    found: Flags = kinds == NO_NUMBER
    return found


def may_be_moments(column: TextColumn) -> Flags:
    """Which texts may be dateTimes, which do not compare as text: those long enough, with a digit or blank in front."""
    found: Flags = column.ends - column.starts >= SHORTEST_MOMENT
    found[found] = column.data[column.starts[found]] <= ord("9")
    return found


def order_beside_numbers(
    operator: ComparisonOperator, left: ColumnValue, right: ColumnValue, holds: Flags, state: States
) -> tuple[Flags, States]:
    """The comparison of untyped values, given that of numbers: dateTimes and other texts are added (LAWS 2.3)."""
    holds, state = (each.copy() for each in np.broadcast_arrays(holds, state))
    rows = np.flatnonzero(state == UNCLEAR)
    for value in (left, right):
        if value.state is not None:
            rows = rows[np.broadcast_to(value.state, len(state))[rows] == CLEAR]
    sides: list[TextColumn] = []
    for value in (left, right):
        assert value.texts is not None
        sides.append(value.texts.take(rows) if len(value.texts.starts) > 1 else value.texts.repeated(len(rows)))
    (times, known), (others, also) = (read_ticks(each.data, each.starts, each.ends) for each in sides)
    are_times = known & also
    holds[rows[are_times]] = OPERATORS[operator](times, others)[are_times]
    are_texts = ~(may_be_moments(sides[0]) & may_be_moments(sides[1])) & (
        are_no_numbers(sides[0]) | are_no_numbers(sides[1])
    )
    texts_hold = OPERATORS[operator](texts.order_of(*sides), 0)
    holds[rows[are_texts]] = texts_hold[are_texts]
    state[rows[are_times | are_texts]] = CLEAR
    return holds, state


def texts_compared(operator: ComparisonOperator, left: ColumnValue, right: ColumnValue) -> Flags:
    """Compare texts row by row."""
    assert left.texts is not None
    assert right.texts is not None
    if operator in ("=", "!="):
        same = texts.equal(left.texts, right.texts)
        return same if operator == "=" else ~same
    holds: Flags = OPERATORS[operator](texts.order_of(left.texts, right.texts), 0)
    return holds
