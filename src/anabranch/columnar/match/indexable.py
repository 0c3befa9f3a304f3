"""Computed conditions as tests that an index can find, where a constant stands inside of what is computed.

The compiler makes a boolean column of every condition that is no comparison of a column with a constant.
A column is computed for all items, so thousands of conditions with other constants in them would cost thousands of
columns. Some of them say the same as a test of columns without the constant:

    contains(text, K)                whether a text contains a pattern
    a >= b + K, and the like         a number against the sum of another and a constant
    some $v in v satisfies $v = K    whether a repeated part has a value
"""

from __future__ import annotations

from collections.abc import Container

from anabranch.columnar.expressions.tree import (
    Column,
    ColumnArithmetic,
    ColumnComparison,
    Constant,
    ConstantValue,
    Expression,
    FunctionCall,
    Kind,
    PartText,
    RowQuantifier,
    constant_of,
    has_constant,
)
from anabranch.columnar.match.condition import (
    Condition,
    ItemTest,
    NumberTest,
    PatternTest,
    RowTest,
    SumTest,
)
from anabranch.columnar.scan.look import Look
from anabranch.logic import MIRRORED, Operator, Tree, mapped

_DOUBLES = (Kind.UNTYPED, Kind.DOUBLE)
_TEXTS = (Kind.UNTYPED, Kind.STRING)


def indexable(condition: Condition, look: Look, marks: Container[Constant]) -> Condition:
    """The same condition; `marks` stand for constants that differ from query to query."""

    def test(leaf: ItemTest) -> Tree[ItemTest]:
        match leaf:
            case NumberTest(column, "=", 1.0) if not isinstance(column, int):
                return _test(column, look, marks) or leaf
            case _:
                return leaf

    return tuple(mapped(each, test) for each in condition)


def _test(expression: Expression, look: Look, marks: Container[Constant]) -> ItemTest | None:
    """A test that holds where a boolean expression is true, and is unclear where it is; None if there is none."""
    match expression:
        case FunctionCall("contains", (text, ConstantValue(str() as pattern)), _) if text.kind in _TEXTS:
            column: Column = text.column if isinstance(text, PartText) else text
            return None if has_constant(text, marks) else PatternTest(column, pattern.encode())
        case ColumnComparison(operator, left, right):
            return _sum(operator, left, right, marks) or _sum(MIRRORED[operator], right, left, marks)
        case RowQuantifier(frame, True, ColumnComparison("=", PartText(part), ConstantValue() as literal)):
            return (
                RowTest(part, constant_of(literal))
                if look.frames[part] == frame and _is_outermost(frame, look)
                else None
            )
        case _:
            return None


def _is_outermost(frame: int, look: Look) -> bool:
    """Whether a repeated part lies in no other."""
    parent = look.parts[frame].parent
    return parent < 0 or look.frames[parent] < 0


def _sum(operator: Operator, left: Expression, right: Expression, marks: Container[Constant]) -> SumTest | None:
    """A number against a sum in doubles, of which one side is a literal."""
    match right:
        case ColumnArithmetic("+", addend, ConstantValue() as literal) | ColumnArithmetic(
            "+", ConstantValue() as literal, addend
        ):
            sign = 1.0
        case ColumnArithmetic("-", addend, ConstantValue() as literal):
            sign = -1.0
        case ColumnArithmetic("-", ConstantValue() as literal, other):
            addend, sign = ColumnArithmetic("*", ConstantValue(-1), other), 1.0
        case _:
            return None
    if addend.kind not in _DOUBLES or left.kind not in (*_DOUBLES, Kind.INTEGER) or isinstance(left, ConstantValue):
        return None
    if has_constant(left, marks) or has_constant(addend, marks):
        return None
    return SumTest(_double(left), operator, _double(addend), sign * float(constant_of(literal)))


def _double(expression: Expression) -> Expression:
    """A number that is computed, though it be read: in a row of its own, where a unit of the column is not applied."""
    return ColumnArithmetic("*", expression, ConstantValue(1)) if expression.kind is Kind.UNTYPED else expression
