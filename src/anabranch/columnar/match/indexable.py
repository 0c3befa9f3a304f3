"""Computed conditions as tests that an index can find, where a computed column contains a constant.

The compiler makes a boolean column of every condition that is no comparison of a column with a constant.
A column is computed for all items, so thousands of conditions with other constants in them would cost thousands of
columns.
Some of them are equivalent to a test of columns without the constant:

    contains(text, K)                    whether a text contains a pattern
    ends-with(text, K)                   whether the text with a mark at its end contains the pattern with that mark
    a >= b + K, and the like             a number against the sum of another and a constant
    text >= xs:dateTime(K)               a moment against another
    some $v in v satisfies condition     whether a row of a repeated part fulfils the condition

A result may imply a condition, too: a loop whose `where` holds for no row gives nothing.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from anabranch.columnar.expressions.functions.strings import ENDED
from anabranch.columnar.expressions.literals import LARGEST, simple_literal
from anabranch.columnar.expressions.spots import NotColumnar
from anabranch.columnar.expressions.tree import (
    Choice,
    Clear,
    Column,
    ColumnArithmetic,
    ColumnComparison,
    Constant,
    ConstantValue,
    ContentOf,
    Expression,
    Fragment,
    FunctionCall,
    Junction,
    Kind,
    Made,
    PartText,
    Presence,
    RowLoop,
    RowQuantifier,
    RowsFound,
    constant_of,
    has_constant,
)
from anabranch.columnar.match.condition import (
    Condition,
    ItemTest,
    MomentTest,
    NumberTest,
    PatternTest,
    PresenceTest,
    RowTest,
    SumTest,
    TextTest,
    columns_of,
)
from anabranch.columnar.match.forms import AFTER
from anabranch.columnar.scan.kernels import SIMPLE
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.logic import MIRRORED, And, Not, Operator, Or, Tree, mapped

_DOUBLES = (Kind.UNTYPED, Kind.DOUBLE, Kind.NUMBER)
_TEXTS = (Kind.UNTYPED, Kind.STRING)


def indexable(condition: Condition, look: Look, marks: Container[Constant]) -> Condition:
    """An equivalent condition; `marks` stand for constants that differ from query to query."""
    found = _Conversion(look, marks)

    def test(leaf: ItemTest) -> Tree[ItemTest]:
        match leaf:
            case NumberTest(column, "=", 1.0) if not isinstance(column, int):
                return found.tests(column) or leaf
            case _:
                return leaf

    return tuple(mapped(each, test) for each in condition)


def asked_by_result(fragments: Sequence[Fragment], look: Look, marks: Container[Constant]) -> Condition:
    """The condition under which fragments give anything, as far as an index can find it."""
    match fragments:
        case (Made(RowLoop(frame, condition, _, -1, 0)),) if condition is not None:
            asked: Expression = RowQuantifier(frame, True, condition)
        case (Made(FunctionCall("behind", (clear, RowLoop(frame, condition, _, -1, 0)), _)),) if _says_found(clear):
            asked = RowQuantifier(frame, True, condition or ConstantValue(True))
        case (Made(Choice(asked, _, ContentOf(()))),):
            pass
        case _:
            return ()
    found = _Conversion(look, marks).tests(asked)
    return () if found is None else (found,)


@dataclass(frozen=True, slots=True)
class _Conversion:
    """Converts boolean expressions to tests."""

    look: Look
    marks: Container[Constant]
    frame: int = -1
    """The repeated part for whose rows they are evaluated, -1 for items."""

    def tests(self, expression: Expression) -> Tree[ItemTest] | None:
        """Tests that hold where an expression is true, and are unclear where it is; None where that gains nothing."""
        match expression:
            case Junction(is_and, operands):
                found = [self.tests(each) for each in operands]
                if not any(found):
                    return None
                parts = tuple(each or _is_true(operand) for each, operand in zip(found, operands, strict=True))
                return And(parts) if is_and else Or(parts)
            case FunctionCall("behind", (clear, operand), _) if not has_constant(clear, self.marks):
                inside = self.tests(operand)
                if inside is None:
                    return None
                return Or((And((_is_true(clear), inside)), NumberTest(clear, "=", 0.0)))  # unclear where `clear` is
            case FunctionCall("not", (operand,), _):
                inside = self.tests(operand)
                return None if inside is None else Not(inside)
            case FunctionCall("behind", (clear, operand), _) if _says_found(clear):
                return self.tests(operand)
            case FunctionCall("contains", (text, ConstantValue(str() as pattern)), _) if text.kind in _TEXTS:
                return None if has_constant(text, self.marks) else PatternTest(self._column(text), pattern.encode())
            case FunctionCall("ends-with", (text, ConstantValue(str() as suffix)), _) if suffix and text.kind in _TEXTS:
                ended = FunctionCall(ENDED, (text,), Kind.STRING)
                return None if has_constant(text, self.marks) else PatternTest(ended, suffix.encode() + AFTER)
            case ColumnComparison(
                operator, left, FunctionCall("xs:dateTime" | "xs:date" as name, (ConstantValue(str() as text),), _)
            ):
                return self._moment(operator, left, name, text)
            case ColumnComparison(
                operator, FunctionCall("xs:dateTime" | "xs:date" as name, (ConstantValue(str() as text),), _), right
            ):
                return self._moment(MIRRORED[operator], right, name, text)
            case ColumnComparison(operator, left, ConstantValue() as literal):
                return self._compared(operator, left, literal)
            case ColumnComparison(operator, ConstantValue() as literal, right):
                return self._compared(MIRRORED[operator], right, literal)
            case ColumnComparison(operator, left, right):
                return self._sum(operator, left, right) or self._sum(MIRRORED[operator], right, left)
            case Presence(column, 0) if self._is_here(column):
                return PresenceTest(column)
            case RowQuantifier(frame, is_some, condition, -1, 0) if self.frame < 0 and self._is_outermost(frame):
                inside = _Conversion(self.look, self.marks, frame).tests(condition)
                if inside is None or any(has_constant(each, self.marks) for each in columns_of((inside,))):
                    return None
                return RowTest(frame, (inside,)) if is_some else Not(RowTest(frame, (Not(inside),)))
            case _:
                return None

    def _is_here(self, column: PartColumn) -> bool:
        """Whether a part has at most one value in each row."""
        part = column if column >= 0 else ~column
        return part < len(self.look.of_items.parts) and self.look.frames[part] == self.frame

    def _column(self, value: Expression) -> Column:
        """The column of a value in a test: a part as it is read, if it has one value in each row."""
        match value:
            case PartText(column, 0) if self._is_here(column):
                return column
            case _:
                return value

    def _is_outermost(self, frame: int) -> bool:
        """Whether a repeated part lies in no other."""
        parent = self.look.parts[frame].parent
        return parent < 0 or self.look.frames[parent] < 0

    def _compared(self, operator: Operator, left: Expression, literal: ConstantValue) -> ItemTest | None:
        """A value against a literal."""
        if isinstance(left, ConstantValue) or has_constant(left, self.marks):
            return None
        constant = constant_of(literal)
        column = left if self.frame < 0 else self._column(left)  # a column of items may be in the unit of other queries
        if isinstance(constant, bytes):
            return TextTest(column, operator, constant) if left.kind in _TEXTS else None
        try:
            simple_literal(literal)
        except NotColumnar:
            return None
        match left.kind:
            case Kind.UNTYPED | Kind.NUMBER:
                is_known = True
            case Kind.INTEGER:
                is_known = abs(constant) < SIMPLE
            case Kind.DOUBLE:
                is_known = abs(constant) < LARGEST and operator != "!="  # NaN may be among them
            case _:
                is_known = False
        return NumberTest(column, operator, constant) if is_known else None

    def _moment(self, operator: Operator, left: Expression, name: str, text: str) -> MomentTest | None:
        """A dateTime or a date, or a text that is cast to one, against a literal."""
        match left:
            case FunctionCall(cast, (inside,), _) if cast == name and inside.kind in _TEXTS:
                left = inside
        if isinstance(left, ConstantValue) or has_constant(left, self.marks):
            return None
        column = left if self.frame < 0 else self._column(left)
        return MomentTest(column, operator, text.encode(), name == "xs:date")

    def _sum(self, operator: Operator, left: Expression, right: Expression) -> SumTest | None:
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
        if addend.kind not in _DOUBLES or left.kind not in (*_DOUBLES, Kind.INTEGER):
            return None
        if has_constant(left, self.marks) or has_constant(addend, self.marks):
            return None
        return SumTest(_double(left), operator, _double(addend), sign * float(constant_of(literal)))


def _says_found(clear: Expression) -> bool:
    """Whether a condition only says that looked-up rows are known, which reading these rows implies anyway."""
    match clear:
        case Junction(True, operands):
            return all(map(_says_found, operands))
        case Clear(RowsFound(_, _, -1)):
            return True
        case _:
            return False


def _is_true(expression: Expression) -> NumberTest:
    return NumberTest(expression, "=", 1.0)


def _double(expression: Expression) -> Expression:
    """A number that is computed, though it be read: in a row of its own, where a unit of the column is not applied."""
    return (
        ColumnArithmetic("*", expression, ConstantValue(1))
        if expression.kind in (Kind.UNTYPED, Kind.NUMBER)
        else expression
    )
