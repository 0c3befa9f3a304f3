"""Values: what an expression of the language that has at most one value for each row comes to over columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

from anabranch.columnar.expressions.aggregating import ROW_AGGREGATES
from anabranch.columnar.expressions.functions import FUNCTIONS
from anabranch.columnar.expressions.scope import NotColumnar, PathScope, Spot, blaming, literal_of, simple_literal
from anabranch.columnar.expressions.tree import (
    Choice,
    Clear,
    ColumnArithmetic,
    ColumnComparison,
    ConstantValue,
    Expression,
    FunctionCall,
    Junction,
    Kind,
    PartText,
    Presence,
    RowAggregate,
    RowCount,
    RowQuantifier,
    Truth,
    has_constant,
)
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.values.arithmetic import calculate
from anabranch.values.operators import ComparisonOperator

_NUMERIC = (Kind.UNTYPED, Kind.DOUBLE, Kind.INTEGER, Kind.DECIMAL)
TEXTUAL = (Kind.UNTYPED, Kind.STRING)
TRUE = ConstantValue(True)
_WORDS: Mapping[type, str] = {
    ast.Flwor: "the values of a loop",
    ast.ElementConstructor: "an element made by the query that is computed with",
    ast.Sequence: "several values, or none, that are computed with",
    ast.Filter: "a predicate on something computed",
    ast.Source: "a second stream or a document",
    ast.Root: "a path from the root",
}


@dataclass(frozen=True, slots=True)
class ValueScope(PathScope):
    """Compiles values and conditions."""

    @blaming
    def value(self, expression: ast.Expression) -> Expression:
        """The value of an expression that has at most one."""
        self.work.spend()
        match expression:
            case ast.String(text):
                return ConstantValue(text)
            case ast.Number() | ast.Negation(ast.Number()):
                return literal_of(expression)
            case ast.Variable(name) if name in self.names and not isinstance(self.names[name], Spot | tuple):
                found = self.names[name]
                assert not isinstance(found, Spot | tuple)
                return found
            case ast.Path(start, (*steps, ast.Step("child", ast.KindTest("text"), (), False))):
                inside = self._text(self.with_text_nodes(start, steps))
                return FunctionCall("text-node", (inside,), Kind.UNTYPED)
            case ast.Path() | ast.Variable() | ast.ContextItem():
                return self._text(self.spots(expression))
            case ast.Arithmetic(first, rest):
                found = self.value(first)
                for operator, operand in rest:
                    found = self._computed(operator, found, self.value(operand))
                return found
            case ast.Negation(operand):
                return self._computed("*", ConstantValue(-1), self._number(operand))
            case ast.If(condition, then, otherwise):
                one, other = self.value(then), self.value(otherwise)
                if one.kind is not other.kind:
                    raise NotColumnar("an `if` whose branches have values of different types")
                return Choice(self.truth(condition), one, other)
            case ast.Call(name, arguments):
                return self._call(name.removeprefix("fn:"), arguments)
            case ast.Comparison() | ast.And() | ast.Or() | ast.Quantified():
                return self.truth(expression)
            case ast.Flwor((ast.Let(name, value), *others), None, (), result):
                bound, clear = self.let(name, value)
                found = bound.value(ast.Flwor(tuple(others), None, (), result) if others else result)
                return found if clear is None else FunctionCall("behind", (clear, found), found.kind)
            case _:
                raise NotColumnar(_words(expression))

    def _computed(self, operator: str, left: Expression, right: Expression) -> Expression:
        """Arithmetic; between literals it is done here, exactly as the law does it."""
        if isinstance(left, ConstantValue) and isinstance(right, ConstantValue):
            if has_constant(left, self.work.marks) or has_constant(right, self.work.marks):
                raise NotColumnar("arithmetic with constants only", "write down what it comes to")
            try:
                return ConstantValue(calculate(operator, left.value, right.value))  # type: ignore[arg-type]
            except DynamicError:
                raise NotColumnar("a constant that fails") from None
        kinds = {left.kind, right.kind}
        if not kinds <= set(_NUMERIC):
            raise NotColumnar("arithmetic with what is no number")
        if not kinds & {Kind.UNTYPED, Kind.DOUBLE} and (kinds != {Kind.INTEGER} or operator == "div"):
            raise NotColumnar("exact decimal arithmetic", "number(...) computes with doubles")
        return ColumnArithmetic(operator, left, right)  # type: ignore[arg-type]

    def _number(self, expression: ast.Expression) -> Expression:
        found = self.value(expression)
        if found.kind not in (Kind.UNTYPED, Kind.DOUBLE):
            raise NotColumnar("a sign in front of a whole number or a decimal")  # -0 would show
        return found

    def _text(self, spots: Sequence[Spot]) -> PartText:
        """The one value that a path leads to."""
        if len(spots) != 1 or not spots[0].is_single:
            raise NotColumnar("a path to several values, or to none")
        return PartText(spots[0].text, spots[0].side)

    def _call(self, name: str, arguments: Sequence[ast.Expression]) -> Expression:
        match name, arguments:
            case (("true" | "false"), ()):
                return ConstantValue(name == "true")
            case (("not" | "boolean"), (operand,)):
                found = self.truth(operand)
                return FunctionCall("not", (found,), Kind.BOOLEAN) if name == "not" else found
            case (("exists" | "empty"), (operand,)) if self.is_path(operand):
                found = self._exists(self.spots(operand))
                return FunctionCall("not", (found,), Kind.BOOLEAN) if name == "empty" else found
            case "count", (operand,) if self.is_path(operand):
                return self._count(self._repeated(self.spots(operand), name))
            case aggregate, (operand,) if aggregate in ROW_AGGREGATES:
                return self._aggregate(aggregate, operand)
            case "data", (operand,):
                return self.value(operand)
        if name not in FUNCTIONS:
            raise NotColumnar(f"the function {name}()")
        function = FUNCTIONS[name]
        given = arguments or ((ast.ContextItem(),) if function.context else ())
        values = tuple(self.value(each) for each in given)
        kind = function.kind_of(values)
        if kind is None:
            raise NotColumnar(f"the function {name}() of such values")
        return FunctionCall(name, values, kind)

    def _count(self, spot: Spot) -> Expression:
        return RowCount(self.inner_frame(spot), Presence(spot.presence, spot.side), spot.side)

    def _aggregate(self, function: str, operand: ast.Expression) -> Expression:
        """An aggregate of what a path leads to in the rows of a repeated part, or of what a loop over these gives."""
        match operand:
            case ast.Flwor((ast.For(name, source, None),), where, (), result) if self.is_path(source):
                spot = self._repeated(self.spots(source), function)
                frame = self.inner_frame(spot)
                inside = self.bind_row(name, spot, frame)
                tests: list[Expression] = [] if spot.part == frame else [Presence(spot.presence, spot.side)]
                if where is not None:
                    tests.append(inside.truth(where))
                found = inside.value(result)
                if found.kind not in (Kind.UNTYPED, Kind.DOUBLE) or isinstance(found, ConstantValue):
                    raise NotColumnar(f"{function}() of what is no number")
                condition = Junction(True, tuple(tests)) if tests else None
                return RowAggregate(frame, function, condition, found, spot.side)
            case _:
                spot = self._repeated(self.spots(operand), function)
                text = PartText(spot.text, spot.side)
                return RowAggregate(self.inner_frame(spot), function, None, text, spot.side)

    def _repeated(self, spots: Sequence[Spot], function: str) -> Spot:
        if len(spots) != 1 or spots[0].is_single:
            raise NotColumnar(f"{function}() of what is not repeated")
        return spots[0]

    def _exists(self, spots: Sequence[Spot]) -> Expression:
        found: list[Expression] = []
        for spot in spots:
            there = Presence(spot.presence, spot.side)
            found.append(there if spot.is_single else RowQuantifier(self.inner_frame(spot), True, there, spot.side))
        return _either(found)

    @blaming
    def truth(self, expression: ast.Expression) -> Expression:
        """The effective boolean value of an expression."""
        self.work.spend()
        match expression:
            case ast.And(operands) | ast.Or(operands):
                return Junction(isinstance(expression, ast.And), tuple(self.truth(each) for each in operands))
            case ast.Comparison(operator, left, right):
                return self._compared(operator, left, right)
            case ast.Quantified(kind, ((name, source), *others), condition):
                rest = condition if not others else ast.Quantified(kind, tuple(others), condition)
                return self._quantified(kind == "some", name, self.spots(source), rest)
            case ast.Path() | ast.Variable() | ast.ContextItem() if self.is_path(expression):
                return self._exists(self.spots(expression))
            case _:
                found = self.value(expression)
                return found if found.kind is Kind.BOOLEAN else Truth(found)

    def _quantified(self, is_some: bool, name: str, spots: Sequence[Spot], condition: ast.Expression) -> Expression:
        found: list[Expression] = []
        for spot in spots:
            frame = -1 if spot.is_single else self.inner_frame(spot)
            inside = self.bind(name, spot) if spot.is_single else self.bind_row(name, spot, frame)
            holds = inside.truth(condition)
            if spot.part != frame:  # else each row is one
                there: Expression = Presence(spot.presence, spot.side)
                if not is_some:
                    there = FunctionCall("not", (there,), Kind.BOOLEAN)
                holds = Junction(is_some, (there, holds))
            found.append(holds if spot.is_single else RowQuantifier(frame, is_some, holds, spot.side))
        return _either(found) if is_some else Junction(True, tuple(found)) if found else TRUE

    def _compared(self, operator: ComparisonOperator, left: ast.Expression, right: ast.Expression) -> Expression:
        """Some value of one side against some of the other."""
        sides = self._alternatives(left), self._alternatives(right)
        if not all(sides) and not (self.is_path(left) and self.is_path(right)):
            raise NotColumnar("something computed that is compared with a path that leads nowhere")  # it may still fail
        found: list[Expression] = []
        for (first, frame), (second, other) in product(*sides):
            if frame is not None and other is not None:
                raise NotColumnar("a comparison of several values with several")
            _check_comparable(first, second)
            self.work.spend()
            test: Expression = ColumnComparison(operator, first, second)
            if frame is None and other is None:
                found.append(test)
                continue
            at, many = (other, second) if frame is None else (frame, first)
            assert at is not None
            assert isinstance(many, PartText), "only parts are repeated"
            found.append(RowQuantifier(at, True, test, many.side))
        return _either(found)

    def _alternatives(self, expression: ast.Expression) -> list[tuple[Expression, int | None]]:
        """The values that one side of a comparison may have, each with the frame further in that it stands in."""
        if not self.is_path(expression):
            return [(self.value(expression), None)]
        spots = self.spots(expression)
        return [(PartText(each.text, each.side), None if each.is_single else self.inner_frame(each)) for each in spots]

    def let(self, name: str, value: ast.Expression) -> tuple[Self, Expression | None]:
        """The scope behind a `let`, and what must be clear for it."""
        if self.is_path(value):
            return self.bind(name, tuple(self.spots(value))), None
        found = self.value(value)
        if found.kind is Kind.CONTENT:
            raise NotColumnar("a `let` of nodes")
        return self.bind(name, found), Clear(found)


def _words(expression: ast.Expression) -> str:
    """What an expression is called that is not made for columns."""
    if isinstance(expression, ast.Flwor) and expression.order:
        return "a loop with `order by`"
    return _WORDS.get(type(expression), "something else than a value of one item")


def _either(found: Sequence[Expression]) -> Expression:
    if not found:
        return ConstantValue(False)
    return found[0] if len(found) == 1 else Junction(False, tuple(found))


def _check_comparable(left: Expression, right: Expression) -> None:
    match left.kind, right.kind:
        case (one, other) if one in _NUMERIC and other in _NUMERIC:
            for each in (left, right):
                if isinstance(each, ConstantValue):
                    simple_literal(each)
        case (one, other) if one in TEXTUAL and other in TEXTUAL:
            pass
        case (Kind.BOOLEAN, Kind.BOOLEAN):
            pass
        case _:
            raise NotColumnar("a comparison of values of different types")
