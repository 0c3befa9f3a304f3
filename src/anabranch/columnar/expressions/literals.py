"""Literals of queries as columns compare them, and which values can be compared at all."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from anabranch.columnar.expressions.functions.function import NUMERIC, TEXTUAL
from anabranch.columnar.expressions.functions.operators import spread
from anabranch.columnar.expressions.spots import NotColumnar
from anabranch.columnar.expressions.tree import TIMES, ConstantValue, Expression, FunctionCall, Kind, PartText
from anabranch.columnar.match.condition import ItemTest, NumberTest, TextTest
from anabranch.columnar.match.forms import AFTER
from anabranch.columnar.scan.kernels import MOST_DIGITS, SIMPLE
from anabranch.columnar.scan.look import PartColumn
from anabranch.language import ast
from anabranch.logic import And, Operator, Tree
from anabranch.values.arithmetic import negate
from anabranch.values.atomic import WrittenDouble, literal, to_double
from anabranch.values.numbers import read_digits

LARGEST = 10**30
"""Constants are below, so that their differences are no trouble to the index."""
_COMPARED = (*NUMERIC, Kind.NUMBER)
_READ = tuple(each for each in TIMES if each is not Kind.MOMENT)
"""Types as which text is read beside them; as dateTimes it is by each comparison."""


def is_literal(expression: ast.Expression) -> bool:
    """Whether it is a number or a string as the query wrote it."""
    match expression:
        case ast.String() | ast.Number() | ast.Negation(ast.Number()):
            return True
        case _:
            return False


def literal_of(expression: ast.Expression) -> ConstantValue:
    """A literal with its value."""
    match expression:
        case ast.String(text):
            return ConstantValue(text)
        case ast.Number(text):
            found = literal(text)
        case ast.Negation(ast.Number(text)):
            found = negate(literal(text))
        case _:
            raise NotColumnar("no literal")
    assert isinstance(found, int | Decimal | float)
    return ConstantValue(found)


def simple_literal(literal: ConstantValue) -> None:
    """Check that a number can be compared as a double."""
    if isinstance(literal.value, WrittenDouble):
        _simple(literal.value.exact)
    elif isinstance(literal.value, int | Decimal):
        _simple(Decimal(literal.value))


def simple_number(literal: ast.Expression) -> float:
    """A number literal that can be compared as a double."""
    match literal:
        case ast.Negation(ast.Number() as inside):
            return -simple_number(inside)
        case ast.Number(text):
            return _simple(read_digits(text))
    raise NotColumnar("a literal that is no number")


def double_of(literal: ast.Expression) -> float:
    """The double nearest to a number literal."""
    value = literal_of(literal).value
    assert not isinstance(value, str), "a number is meant"
    found = to_double(value)
    if abs(found) >= LARGEST:
        raise NotColumnar("a number so large")
    return found


def _simple(exact: Decimal) -> float:
    """A number as a double; a text of few digits that has the same double is the same number."""
    _, digits, exponent = exact.as_tuple()
    if not isinstance(exponent, int):  # an exponent beyond all limits (LAWS 2.3)
        raise NotColumnar("a number so large")
    if len(digits) + max(0, exponent) <= MOST_DIGITS and exponent >= -MOST_DIGITS:
        return float(exact)
    if SIMPLE <= abs(exact) < LARGEST:
        return float(exact)  # no text of few digits has this double
    raise NotColumnar(f"a number of more than {MOST_DIGITS} digits")


def told(found: Expression | None, what: str) -> Expression:
    """What columns can tell; where they cannot, that is said of what was asked."""
    if found is None:
        raise NotColumnar(f"{what} of values of different types")
    return found


def alike(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Two values to be compared; text without a type is read as the date, time or duration beside it."""
    match left.kind, right.kind:
        case (Kind.UNTYPED, kind) if kind in _READ:
            return FunctionCall(f"xs:{kind.value}", (left,), kind), right
        case (kind, Kind.UNTYPED) if kind in _READ:
            return left, FunctionCall(f"xs:{kind.value}", (right,), kind)
        case _:
            return left, right


def check_comparable(left: Expression, right: Expression) -> None:
    """Refuse to compare what only the law compares."""
    match left.kind, right.kind:
        case (one, other) if one in _COMPARED and other in _COMPARED:
            for each in (left, right):
                if isinstance(each, ConstantValue):
                    simple_literal(each)
        case (one, other) if one in TEXTUAL and other in TEXTUAL:
            pass
        case (Kind.BOOLEAN | Kind.FLAG, Kind.BOOLEAN | Kind.FLAG):
            pass
        case (Kind.MOMENT, Kind.UNTYPED) | (Kind.UNTYPED, Kind.MOMENT):
            pass
        case (one, other) if one is other and one in TIMES:
            pass
        case _:
            raise NotColumnar("a comparison of values of different types")


def literals(expression: ast.Expression) -> Sequence[ast.Expression]:
    """The literals that an expression is, one or a list of them; none where it is something else."""
    listed = spread(expression)
    items = listed.items if isinstance(listed, ast.Sequence) else (listed,)
    return items if all(map(is_literal, items)) else ()


def prefixed(text: Expression, prefix: bytes) -> Tree[ItemTest]:
    """Texts with a prefix lie between it and what follows all of them: no byte of a text is 255."""
    column = text.column if isinstance(text, PartText) else text
    return And((TextTest(column, ">=", prefix), TextTest(column, "<", prefix + AFTER)))


def column_test(operator: Operator, column: PartColumn, literal: ast.Expression) -> ItemTest:
    """What is read against a literal."""
    if isinstance(literal, ast.String):
        return TextTest(column, operator, literal.value.encode())
    return NumberTest(column, operator, simple_number(literal))
