"""Operators over columns that are calls: value comparisons, `idiv`, and those that the compiler puts between others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from anabranch.columnar.expressions.functions.function import TEXTUAL, ColumnFunction, taking
from anabranch.columnar.expressions.tree import (
    ColumnComparison,
    ConstantValue,
    Expression,
    FunctionCall,
    Junction,
    Kind,
)
from anabranch.columnar.expressions.values import (
    ABSENT,
    CLEAR,
    UNCLEAR,
    ColumnValue,
    doubles_of,
    spelled,
    state_of,
    worst,
)
from anabranch.columnar.match.condition import NO, YES
from anabranch.columnar.match.condition import UNCLEAR as UNCLEAR_VERDICT
from anabranch.language import ast
from anabranch.language.operators import VALUE_COMPARISONS
from anabranch.values.operators import ComparisonOperator

VALUE_OPERATORS: Mapping[str, ComparisonOperator] = dict(
    zip((f"op:{word}" for word in VALUE_COMPARISONS), ("=", "!=", "<", "<=", ">", ">="), strict=True)
)
"""By name of a value comparison: the general comparison that is the same between single values."""
_EXACT_QUOTIENT = 2.0**50
"""Below this, a quotient of whole numbers in doubles lies on the same side of each whole number as the true one."""
_MOST_RANGE = 64
_STATES = np.array([ABSENT, UNCLEAR, CLEAR], np.uint8)
"""By outcome of a condition: the state of a value that is there if it holds."""


def value_compared(operator: ComparisonOperator, left: Expression, right: Expression) -> Expression | None:
    """A value comparison as a condition, false for the empty sequence; None where the law has to raise an error."""
    untyped = [each.kind is Kind.UNTYPED for each in (left, right)]
    if not any(untyped):
        return ColumnComparison(operator, left, right)
    if any(each.kind not in TEXTUAL for each in (left, right)):
        return None
    return ColumnComparison(operator, *(_as_text(each) for each in (left, right)))


def _as_text(value: Expression) -> Expression:
    """Untyped text as a string, which is compared by its characters."""
    return FunctionCall("as-text", (value,), Kind.STRING) if value.kind is Kind.UNTYPED else value


def deeply_equal(left: Expression, right: Expression) -> Expression | None:
    """Whether two values, each of which may be nothing, are deep-equal; None where columns cannot tell."""
    if left.kind not in TEXTUAL or right.kind not in TEXTUAL:
        return None
    equal = ColumnComparison("=", _as_text(left), _as_text(right))
    if isinstance(left, ConstantValue) or isinstance(right, ConstantValue):
        return equal
    nothing = (
        FunctionCall("not", (FunctionCall("there", (each,), Kind.BOOLEAN),), Kind.BOOLEAN) for each in (left, right)
    )
    return Junction(False, (equal, Junction(True, tuple(nothing))))


def is_same(value: Expression, sought: Expression) -> Expression | None:
    """Whether a value is `eq` a literal; None where columns cannot tell."""
    numbers = (Kind.NUMBER, Kind.DOUBLE, Kind.INTEGER)
    match value.kind, sought.kind:
        case (one, other) if one in TEXTUAL and other in TEXTUAL:
            return ColumnComparison("=", _as_text(value), sought)
        case (one, other) if one in numbers and other in numbers:
            return ColumnComparison("=", value, sought)
        case (one, other) if one in (*TEXTUAL, *numbers) and other in (*TEXTUAL, *numbers):
            return ConstantValue(False)
        case _:
            return None


def spread(expression: ast.Expression) -> ast.Expression:
    """A short range between literals as the numbers in it; everything else as it is."""
    match expression:
        case ast.Call("op:to", (ast.Number(first), ast.Number(last))) if first.isdigit() and last.isdigit():
            numbers = range(int(first), int(last) + 1)
            if len(numbers) <= _MOST_RANGE:
                return ast.Sequence(tuple(ast.Number(str(each), span=expression.span) for each in numbers))
    return expression


def _whole_quotient_kind(values: Sequence[Expression]) -> Kind | None:
    fits = len(values) == 2 and all(each.kind in (Kind.UNTYPED, Kind.DOUBLE, Kind.INTEGER) for each in values)
    return Kind.INTEGER if fits else None


def _whole_quotient(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """A quotient without its fraction; what fails, and what is too large to be sure of, is left to the law."""
    (left, one), (right, other) = (doubles_of(each) for each in values)
    with np.errstate(all="ignore"):
        quotient = np.trunc(left / right)
    doubtful = ~np.isfinite(quotient) | ~np.isfinite(right) | (np.abs(left) >= _EXACT_QUOTIENT) | (right == 0)
    doubtful |= np.abs(quotient) >= _EXACT_QUOTIENT
    found = np.where(doubtful, 0.0, quotient) + 0.0  # no negative zero
    state = worst(one, other)
    return ColumnValue(kind, worst(state, state_of(np.broadcast_to(doubtful, count), UNCLEAR, state)), found)


# --- between others ---------------------------------------------------------------------------------------


def _where(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """A value where a condition holds, and none where it does not."""
    verdicts, value = values[0].verdicts, values[1]
    assert verdicts is not None
    state = _STATES[np.broadcast_to(verdicts, count)]
    if value.state is not None:
        state = np.where(state == CLEAR, value.state, state)
    return replace(value, kind=kind, state=state)


def _there(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """Whether there is a value."""
    (value,) = values
    state = np.zeros(count, np.uint8) if value.state is None else value.state
    found = np.array([YES, NO, 1], np.uint8)[state]
    return ColumnValue.truth(found).unclear_where(np.broadcast_to(value.unclear, count))


def _not(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    verdicts = values[0].verdicts
    assert verdicts is not None
    return ColumnValue.truth(np.uint8(YES - NO) - verdicts)


def _as_flag(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """A condition as a value that may be absent."""
    found = spelled(values[0], count)
    return ColumnValue(kind, found.state, texts=found.texts)


def _needed(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
    """A condition that fails where it does not hold."""
    verdicts = values[0].verdicts
    assert verdicts is not None
    return ColumnValue.truth(np.where(verdicts == YES, verdicts, np.uint8(UNCLEAR_VERDICT)))


OPERATORS_BETWEEN: Mapping[str, ColumnFunction] = {
    "op:idiv": ColumnFunction(_whole_quotient_kind, _whole_quotient),
    "where": ColumnFunction(lambda values: values[1].kind, _where),
    "there": ColumnFunction(lambda values: Kind.BOOLEAN, _there),
    "needed": ColumnFunction(taking((Kind.BOOLEAN,), (1,), Kind.BOOLEAN), _needed),
    "flag": ColumnFunction(taking((Kind.BOOLEAN,), (1,), Kind.FLAG), _as_flag),
    "not": ColumnFunction(taking((Kind.BOOLEAN,), (1,), Kind.BOOLEAN), _not),
}
