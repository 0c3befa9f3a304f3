"""Values: what an expression of the language that has at most one value for each row comes to over columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

from anabranch.columnar.expressions.folding import FOLDS
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
    RowFold,
    RowQuantifier,
    RowSource,
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
_ORDERED = ("string-join",)
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
                return FunctionCall("text-node", (self._text(self.with_text_nodes(start, steps)),), Kind.UNTYPED)
            case ast.Path() | ast.Variable() | ast.ContextItem() | ast.Filter() if self.is_path(expression):
                return self._text(self.filtered_spots(expression))
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
        return ColumnArithmetic(operator, _operand(left), _operand(right))  # type: ignore[arg-type]

    def _number(self, expression: ast.Expression) -> Expression:
        found = self.value(expression)
        if found.kind not in (Kind.UNTYPED, Kind.DOUBLE, Kind.INTEGER):
            raise NotColumnar("a sign in front of a decimal")
        return found

    def _text(self, spots: Sequence[Spot]) -> Expression:
        """The one value that a path leads to."""
        if len(spots) != 1 or not spots[0].is_single:
            raise NotColumnar("a path to several values, or to none")
        (spot,) = spots
        text = PartText(spot.text, spot.side)
        return text if spot.condition is None else FunctionCall("where", (spot.condition, text), Kind.UNTYPED)

    # --- sequences ----------------------------------------------------------------------------------------

    def predicate(self, spot: Spot, condition: ast.Expression) -> Expression:
        """What a predicate asks of a spot, and whatever was asked before it: only of what is there."""
        frame, bare = self._frame_of(spot), replace(spot, condition=None)
        inside = self.bind(None, bare) if spot.is_single else self.bind_row(None, bare, frame)
        holds = inside.truth(condition)
        if isinstance(holds, Truth) and holds.operand.kind not in TEXTUAL:
            raise NotColumnar("a number as a predicate")
        if spot.part != frame:
            holds = Junction(True, (Presence(spot.presence), holds))
        if spot.condition is None:
            return holds
        both = Junction(True, (spot.condition, holds))
        return FunctionCall("behind", (Clear(spot.condition), both), Kind.BOOLEAN)

    def _frame_of(self, spot: Spot) -> int:
        """The frame in whose rows a spot has at most one value."""
        return self.frame if spot.is_single else self.frame_of(spot)

    @blaming
    def sources(self, expression: ast.Expression, *, counted: bool = False, ordered: bool = False) -> list[RowSource]:
        """The values of a sequence, or what is counted of it: in the order of values only where they are `ordered`."""
        self.work.spend()
        match expression:
            case ast.Sequence(items):
                return [source for each in items for source in self.sources(each, counted=counted, ordered=ordered)]
            case ast.Call("data" | "fn:data", (operand,)):
                return self.sources(operand, counted=counted, ordered=ordered)
            case ast.If(condition, then, otherwise):
                holds = self.truth(condition)
                sides = zip((holds, _not(holds)), (then, otherwise), strict=True)
                return [
                    self._source_where(side, source)
                    for side, branch in sides
                    for source in self.sources(branch, counted=counted, ordered=ordered)
                ]
            case ast.Flwor((ast.For(name, source, None), *others), where, (), result) if self.is_path(source):
                return self._rounds_sources(name, source, others, where, result, counted=counted, ordered=ordered)
            case ast.Path(start, (*steps, ast.Step("child", ast.KindTest("text"), (), False))):
                found = [self._node_source(each, counted=False) for each in self.with_text_nodes(start, steps)]
                texts = [replace(each, value=_text_node(each.value)) for each in found]
                found = [self._there(each) for each in texts] if counted else texts
            case _ if self.is_path(expression):
                found = [self._node_source(each, counted=counted) for each in self.filtered_spots(expression)]
            case ast.ElementConstructor() if counted:
                self._compiles(expression)
                return [RowSource(self.frame, None, None)]
            case _:
                single = RowSource(self.frame, None, self.value(expression))
                return [self._there(single) if counted else single]
        if ordered and len(found) > 1:
            raise NotColumnar("the values of parts of different names in a row")
        return found

    def _compiles(self, expression: ast.Expression) -> None:
        """Check that nothing can fail in an element that is only counted."""
        raise NotColumnar("elements of the query that are counted")

    def _node_source(self, spot: Spot, *, counted: bool) -> RowSource:
        frame = self._frame_of(spot)
        if not counted:
            return RowSource(frame, spot.condition, PartText(spot.text, spot.side))
        there = () if spot.part == frame else (Presence(spot.presence),)
        asked = (*there, *(() if spot.condition is None else (spot.condition,)))
        return RowSource(frame, _all_of(asked), None)

    def _there(self, source: RowSource) -> RowSource:
        assert source.value is not None
        there = FunctionCall("there", (source.value,), Kind.BOOLEAN)
        return self._source_where(there, replace(source, value=None))

    def _source_where(self, condition: Expression, source: RowSource) -> RowSource:
        """A source under one condition more, which is asked first."""
        if source.condition is None:
            return replace(source, condition=condition)
        both = Junction(True, (condition, source.condition))
        return replace(source, condition=FunctionCall("behind", (Clear(condition), both), Kind.BOOLEAN))

    def _rounds_sources(
        self,
        name: str,
        source: ast.Expression,
        others: Sequence[ast.For | ast.Let],
        where: ast.Expression | None,
        result: ast.Expression,
        *,
        counted: bool,
        ordered: bool,
    ) -> list[RowSource]:
        """What the rounds of a loop give."""
        spots = self.filtered_spots(source)
        if ordered and len(spots) > 1:
            raise NotColumnar("the values of parts of different names in a row")
        found: list[RowSource] = []
        for spot in spots:
            frame, bare = self._frame_of(spot), replace(spot, condition=None)
            scope = self.bind(name, bare) if spot.is_single else self.bind_row(name, bare, frame)
            asked = [] if spot.part == frame else [Presence(spot.presence)]
            conditions: list[Expression] = asked + ([] if spot.condition is None else [spot.condition])
            rest = list(others)
            while rest and isinstance(rest[0], ast.Let):
                scope, clear = scope.let(rest[0].variable, rest[0].value)
                conditions += [] if clear is None else [clear]
                rest = rest[1:]
            if rest:
                given = scope.sources(ast.Flwor(tuple(rest), where, (), result), counted=counted, ordered=ordered)
            else:
                conditions += [] if where is None else [scope.truth(where)]
                given = scope.sources(result, counted=counted, ordered=ordered)
            if ordered and len(given) > 1:
                raise NotColumnar("a loop whose rounds give several values")
            for each in given:
                for condition in reversed(conditions):
                    each = scope._source_where(condition, each)
                found.append(each)
        return found

    def _clears(self, source: RowSource) -> list[Expression]:
        """What must be clear before anything is said of the values of a sequence: whether they are there, and what."""
        found: list[Expression] = []
        if source.condition is not None:
            found.append(Clear(source.condition))
        if source.value is not None and not isinstance(source.value, PartText | ConstantValue):
            clear: Expression = Clear(source.value)
            if source.condition is not None:
                clear = Junction(False, (_not(source.condition), clear))
            found.append(clear)
        if source.frame == self.frame:
            return found
        return [RowQuantifier(source.frame, False, each, self.frame) for each in found]

    def _some_row(self, source: RowSource, test: Expression | None) -> Expression:
        """Whether there is a value of a sequence for which a test holds."""
        asked = _all_of([each for each in (source.condition, test) if each is not None]) or TRUE
        return asked if source.frame == self.frame else RowQuantifier(source.frame, True, asked, self.frame)

    def _call(self, name: str, arguments: Sequence[ast.Expression]) -> Expression:
        match name, arguments:
            case (("true" | "false"), ()):
                return ConstantValue(name == "true")
            case (("not" | "boolean"), (operand,)):
                found = self.truth(operand)
                return FunctionCall("not", (found,), Kind.BOOLEAN) if name == "not" else found
            case (("exists" | "empty"), (operand,)):
                found = self._exists(operand)
                return _not(found) if name == "empty" else found
            case "data", (operand,):
                return self.value(operand)
            case (("name" | "local-name"), _):
                return self._name(arguments[0] if arguments else ast.ContextItem())
            case _, (operand, *others) if name in FOLDS:
                return self.folded(
                    name, self.sources(operand, counted=name == "count", ordered=name in _ORDERED), others
                )
        if name not in FUNCTIONS:
            raise NotColumnar(f"the function {name}()")
        function = FUNCTIONS[name]
        given = arguments or ((ast.ContextItem(),) if function.context else ())
        values = tuple(self.value(each) for each in given)
        kind = function.kind_of(values)
        if kind is None:
            raise NotColumnar(f"the function {name}() of such values")
        return FunctionCall(name, values, kind)

    def folded(self, name: str, sources: Sequence[RowSource], others: Sequence[ast.Expression]) -> Expression:
        """What a function of `folding.py` makes of a sequence."""
        arguments = tuple(self.value(each) for each in others)
        kind = FOLDS[name].kind_of(sources, arguments)
        if kind is None:
            raise NotColumnar(f"the function {name}() of such values")
        return RowFold(name, tuple(sources), arguments, kind, self.frame)

    def _name(self, operand: ast.Expression) -> Expression:
        spots = self.filtered_spots(operand) if self.is_path(operand) else []
        if len(spots) != 1 or not spots[0].is_single:
            raise NotColumnar("the name of several nodes, or of none")
        there = self._node_source(spots[0], counted=True).condition or TRUE
        return Choice(there, ConstantValue(spots[0].name), ConstantValue(""))

    def _exists(self, operand: ast.Expression) -> Expression:
        found = self.sources(operand, counted=True)
        return self._clearly(
            [each for each in found if not _is_presence(each)], [self._some_row(each, None) for each in found]
        )

    def _clearly(self, sources: Sequence[RowSource], tests: Sequence[Expression]) -> Expression:
        """Whether one of some tests holds, once it is clear what the sequences are that they look at."""
        clears = list(dict.fromkeys(clear for each in sources for clear in self._clears(each)))
        if not clears:
            return _either(tests)
        return FunctionCall("behind", (_all_of(clears) or TRUE, _either(tests)), Kind.BOOLEAN)

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
                return self._quantified(kind == "some", name, self.filtered_spots(source), rest)
            case _ if self.is_path(expression):
                return self._exists(expression)
            case _:
                found = self.value(expression)
                return found if found.kind is Kind.BOOLEAN else Truth(found)

    def _quantified(self, is_some: bool, name: str, spots: Sequence[Spot], condition: ast.Expression) -> Expression:
        found: list[Expression] = []
        for spot in spots:
            frame, bare = self._frame_of(spot), replace(spot, condition=None)
            inside = self.bind(name, bare) if spot.is_single else self.bind_row(name, bare, frame)
            holds = inside.truth(condition)
            there = self._node_source(spot, counted=True).condition
            if there is not None:  # else each row is one
                holds = Junction(is_some, (there if is_some else _not(there), holds))
            found.append(holds if spot.is_single else RowQuantifier(frame, is_some, holds, self.frame))
        filtered = [self._node_source(each, counted=True) for each in spots if each.condition is not None]
        if is_some:
            return self._clearly(filtered, found)
        return self._clearly(filtered, [_all_of(found) or TRUE])

    def _compared(self, operator: ComparisonOperator, left: ast.Expression, right: ast.Expression) -> Expression:
        """Some value of one side against some of the other."""
        sides = self.sources(left), self.sources(right)
        if not all(sides):
            raise NotColumnar("a comparison with a path that leads nowhere")
        found: list[Expression] = []
        for one, other in product(*sides):
            if one.frame != self.frame and other.frame != self.frame:
                raise NotColumnar("a comparison of several values with several")
            assert one.value is not None
            assert other.value is not None
            _check_comparable(one.value, other.value)
            self.work.spend()
            deep, single = (one, other) if one.frame != self.frame else (other, one)
            test = ColumnComparison(operator, one.value, other.value)
            asked = (
                self._some_row(single, test) if deep is single else self._some_row(deep, self._some_row(single, test))
            )
            found.append(asked)
        alone = [len(side) == 1 and side[0].frame == self.frame and side[0].condition is None for side in sides]
        several = [each for side, is_alone in zip(sides, alone, strict=True) if not is_alone for each in side]
        return self._clearly(several, found)

    def let(self, name: str, value: ast.Expression) -> tuple[Self, Expression | None]:
        """The scope behind a `let`, and what must be clear for it."""
        if self.is_path(value):
            spots = self.filtered_spots(value)
            clears = [
                clear
                for each in spots
                if each.condition
                for clear in self._clears(self._node_source(each, counted=True))
            ]
            return self.bind(name, tuple(spots)), _all_of(clears)
        found = self.value(value)
        if found.kind is Kind.CONTENT:
            raise NotColumnar("a `let` of nodes")
        return self.bind(name, found), Clear(found)


def _words(expression: ast.Expression) -> str:
    """What an expression is called that is not made for columns."""
    if isinstance(expression, ast.Flwor) and expression.order:
        return "a loop with `order by`"
    return _WORDS.get(type(expression), "something else than a value of one item")


def _operand(number: Expression) -> Expression:
    """A number to compute with: the sum of nothing is an integer, and a sum else a double."""
    match number:
        case RowFold("sum"):
            return replace(number, name="sum of some")
        case Choice(_, then, otherwise):
            return replace(number, then=_operand(then), otherwise=_operand(otherwise))
        case FunctionCall(_, arguments, Kind.DOUBLE):
            return replace(number, arguments=tuple(map(_operand, arguments)))
        case _:
            return number


def _text_node(text: Expression | None) -> Expression:
    assert text is not None
    return FunctionCall("text-node", (text,), Kind.UNTYPED)


def _is_presence(source: RowSource) -> bool:
    """Whether it is asked only if something is there, which is always clear."""
    return source.condition is None or isinstance(source.condition, Presence)


def _not(truth: Expression) -> Expression:
    return FunctionCall("not", (truth,), Kind.BOOLEAN)


def _all_of(found: Sequence[Expression]) -> Expression | None:
    if not found:
        return None
    return found[0] if len(found) == 1 else Junction(True, tuple(found))


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
