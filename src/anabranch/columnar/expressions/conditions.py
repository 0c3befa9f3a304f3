"""The compiler of conditions: as far as possible tests against constants, which an index can find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anabranch.columnar.expressions.computing import ValueScope
from anabranch.columnar.expressions.functions.function import TEXTUAL
from anabranch.columnar.expressions.functions.operators import VALUE_OPERATORS
from anabranch.columnar.expressions.junctions import behind
from anabranch.columnar.expressions.literals import (
    check_comparable,
    column_test,
    double_of,
    is_literal,
    literal_of,
    literals,
    prefixed,
    simple_number,
)
from anabranch.columnar.expressions.scope import blaming
from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.tree import (
    ColumnComparison,
    ConstantValue,
    Expression,
    FunctionCall,
    Kind,
    PartText,
    Presence,
    RowExtreme,
    RowQuantifier,
    Truth,
)
from anabranch.columnar.match.condition import (
    NO,
    ItemTest,
    NumberTest,
    PresenceTest,
    Settled,
    TextTest,
    any_of,
    any_tree,
)
from anabranch.columnar.scan.kernels import SIMPLE
from anabranch.language import ast
from anabranch.logic import MIRRORED, And, Not, Operator, Or, Tree


@dataclass(frozen=True, slots=True)
class ConditionScope(ValueScope):
    """Compiles the conditions of queries."""

    @blaming
    def condition(self, expression: ast.Expression) -> Tree[ItemTest]:
        """A condition on one item, as far as possible as tests against constants, which an index can find."""
        match expression:
            case ast.And(operands):
                return And(tuple(self.condition(each) for each in operands))
            case ast.Or(operands):
                return Or(tuple(self.condition(each) for each in operands))
            case ast.Call("not" | "fn:not", (operand,)):
                return Not(self.condition(operand))
            case ast.Call("boolean" | "fn:boolean" | "exists" | "fn:exists", (operand,)) if self._is_nodes(operand):
                return self._presence(self.spots(operand))
            case ast.Call("boolean" | "fn:boolean", (operand,)):
                return self.condition(operand)
            case ast.Call("empty" | "fn:empty", (operand,)) if self._is_nodes(operand):
                return Not(self._presence(self.spots(operand)))
            case ast.Call("starts-with" | "fn:starts-with", (text, ast.String(value))) if value:
                found = self.value(text)
                if found.kind in TEXTUAL and not isinstance(found, ConstantValue):
                    return prefixed(found, value.encode())
            case ast.Comparison(operator, left, right):
                if literals(left) and not literals(right):
                    operator, left, right = MIRRORED[operator], right, left
                is_tested = self._is_bare(left) or (self._is_value(left) and not self.mixes_types(left))
                if literals(right) and is_tested:
                    return any_tree([self._tested(operator, left, each) for each in literals(right)])
                beyond = self._extremes(operator, left, right)
                if beyond is not None:
                    return beyond
            case ast.Call(name, (left, right)) if name in VALUE_OPERATORS:
                operator = VALUE_OPERATORS[name]
                if isinstance(left, ast.String):
                    operator, left, right = MIRRORED[operator], right, left
                if isinstance(right, ast.String) and self._is_bare(left) and self._is_single(left):
                    return self._tested(operator, left, right)
            case ast.Quantified("some", ((name, source),), ast.Comparison(operator, left, right)):
                if literals(left):
                    operator, left, right = MIRRORED[operator], right, left
                if literals(right) and _starts_from(left, name) and self._is_bare(source):
                    inside = self.bind(name, tuple(self.spots(source)))
                    if inside._is_bare(left):
                        return any_tree([inside._tested(operator, left, each) for each in literals(right)])
            case _ if self._is_nodes(expression):
                return self._presence(self.spots(expression))
        found = self.truth(expression)
        match found:
            case ColumnComparison("=", PartText(column, 0, Kind.STRING), ConstantValue("true")):
                return TextTest(column, "=", b"true")  # a truth value of JSON
            case _:
                return NumberTest(found, "=", 1.0)

    def predicate_test(self, expression: ast.Expression) -> Tree[ItemTest]:
        """The condition of a predicate on an item; a number would be a position, which is an error."""
        found = self.condition(expression)
        match found:
            case NumberTest(Truth(operand)) if operand.kind not in TEXTUAL:
                raise NotColumnar("a number as a predicate")
            case _:
                return found

    def _is_bare(self, expression: ast.Expression) -> bool:
        """Whether an expression is a path without predicates, and so not to text nodes."""
        if not self.is_path(expression) or is_text_path(expression):
            return False
        spots = self.filtered_spots(expression)
        return not any(each.asked or each.is_array or (each.is_typed and each.condition) for each in spots)

    def _is_nodes(self, expression: ast.Expression) -> bool:
        """The same, where it leads to nodes and not to values of JSON."""
        return self._is_bare(expression) and not self.is_typed(expression)

    def _is_single(self, path: ast.Expression) -> bool:
        """Whether a path leads to one part at most."""
        spots = self.spots(path)
        return len(spots) == 1 and spots[0].is_single

    def _presence(self, spots: Sequence[Spot]) -> Tree[ItemTest]:
        tests: list[ItemTest] = []
        for spot in spots:
            if spot.is_single:
                tests.append(PresenceTest(spot.presence))
            else:
                there = Presence(spot.presence, spot.side)
                found = RowQuantifier(self.frame_of(spot), True, there, self.frame, spot.side)
                tests.append(NumberTest(found, "=", 1.0))
        return any_of(tests)

    def _tested(self, operator: Operator, left: ast.Expression, right: ast.Expression) -> Tree[ItemTest]:
        """A comparison with a literal, which holds if it holds for one of the values."""
        if not self.is_path(left):
            return self._value_tested(operator, self.value(left), right)
        tests: list[ItemTest] = []
        for spot in self.spots(left):
            text = spot.string_value
            check_comparable(text, literal_of(right))
            if spot.is_single:
                is_read = isinstance(text, PartText)
                test = column_test(operator, spot.text, right) if is_read else self._value_tested(operator, text, right)
                tests.append(test)
                continue
            frame = self.frame_of(spot)
            if isinstance(right, ast.String) or operator in ("=", "!=") or abs(simple_number(right)) >= SIMPLE:
                found = ColumnComparison(operator, text, literal_of(right))
                tests.append(NumberTest(RowQuantifier(frame, True, found, self.frame, spot.side), "=", 1.0))
            else:
                extreme = RowExtreme(frame, operator in (">", ">="), text, self.frame, spot.side)
                tests.append(NumberTest(extreme, operator, simple_number(right)))
        return any_of(tests)

    def _extremes(self, operator: Operator, left: ast.Expression, right: ast.Expression) -> Tree[ItemTest] | None:
        """Whether a selected value of a repeated part is beyond a number, tested on the greatest or least of them."""
        if operator in ("=", "!=") or isinstance(right, ast.String) or not is_literal(right) or not self.is_path(left):
            return None
        spots = [] if is_text_path(left) else self.opened(self.filtered_spots(left))
        number = simple_number(right)
        if not spots or any(each.is_single for each in spots) or abs(number) >= SIMPLE:
            return None
        tests: list[ItemTest] = []
        for spot in spots:
            if spot.is_chosen:  # one value, so that two comparisons of it are one interval
                tests.append(self._value_tested(operator, self._text([spot]), right))
                continue
            text = spot.string_value
            check_comparable(text, literal_of(right))
            if spot.condition is not None:
                text = FunctionCall("where", (spot.condition, text), spot.kind)
            found = RowExtreme(self.frame_of(spot), operator in (">", ">="), text, self.frame, spot.side)
            tests.append(NumberTest(behind(self.asked([spot]), found), operator, number))
        return any_of(tests)

    def _value_tested(self, operator: Operator, left: Expression, right: ast.Expression) -> ItemTest:
        match left.kind, isinstance(right, ast.String):
            case (Kind.UNTYPED | Kind.STRING, True):
                return TextTest(left, operator, right.value.encode()) if isinstance(right, ast.String) else Settled(NO)
            case (Kind.DOUBLE | Kind.DECIMAL as kind, False) if not isinstance(left, ConstantValue):
                if kind is Kind.DOUBLE and operator != "!=":  # NaN may be among them
                    return NumberTest(left, operator, double_of(right))
                if kind is Kind.DECIMAL:
                    check_comparable(left, literal_of(right))
                return NumberTest(ColumnComparison(operator, left, literal_of(right)), "=", 1.0)
            case (Kind.UNTYPED | Kind.INTEGER | Kind.NUMBER, False) if not isinstance(left, ConstantValue):
                number = simple_number(right)
                if left.kind is Kind.INTEGER and abs(number) >= SIMPLE:
                    raise NotColumnar("a number of so many digits")
                return NumberTest(left, operator, number)
            case _:
                raise NotColumnar("a comparison of values of different types")


def _starts_from(expression: ast.Expression, name: str) -> bool:
    """Whether an expression is a variable, or a path from it."""
    start = expression.start if isinstance(expression, ast.Path) else expression
    return isinstance(start, ast.Variable) and start.name == name


def is_text_path(expression: ast.Expression) -> bool:
    """Whether a path has a kind test, such as `text()`, among its steps."""
    return isinstance(expression, ast.Path) and any(isinstance(each.test, ast.KindTest) for each in expression.steps)
