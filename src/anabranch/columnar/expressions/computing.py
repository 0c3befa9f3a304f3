"""The compiler of values: expressions of the language with at most one value for each row, over columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

from anabranch.columnar.expressions.functions import FUNCTIONS
from anabranch.columnar.expressions.functions.casts import is_castable
from anabranch.columnar.expressions.functions.function import NUMERIC
from anabranch.columnar.expressions.functions.operators import (
    VALUE_OPERATORS,
    deeply_equal,
    is_same,
    value_compared,
)
from anabranch.columnar.expressions.functions.times import arithmetic, as_time
from anabranch.columnar.expressions.junctions import (
    all_of,
    behind,
    either,
    negated,
    summand,
)
from anabranch.columnar.expressions.literals import alike, check_comparable, literal_of, simple_literal, told
from anabranch.columnar.expressions.objects.lookups import (
    as_flag,
    as_text,
    compared,
    null_last,
    typed_truth,
    untyped,
    untyped_source,
)
from anabranch.columnar.expressions.rows.folding import FOLDS, MEMBERS_JOINED
from anabranch.columnar.expressions.scope import CHECKED, ChosenNodes, Meant, behind_first, blaming, words_for
from anabranch.columnar.expressions.sequences import LAST, PLACE, POSITION, SAME, TRUE, Needed, SequenceScope
from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.tree import (
    TIMES,
    Choice,
    Clear,
    ColumnArithmetic,
    ConstantValue,
    Expression,
    FunctionCall,
    Junction,
    Kind,
    RowFold,
    RowQuantifier,
    has_constant,
)
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.objects import JSON
from anabranch.values.arithmetic import calculate
from anabranch.values.operators import ComparisonOperator

_FIRST = ast.Variable("(first)")
"""A variable that no query can name: the first of several values."""
_OTHERS = {Kind.STRING, *TIMES}
_USES = {"count": Needed.COUNT, "string-join": Needed.ORDER, MEMBERS_JOINED: Needed.GIVEN}
"""By function of sequences: what it makes of the values; others take them in any order."""


@dataclass(frozen=True, slots=True)
class ValueScope(SequenceScope):
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
                assert not isinstance(found, Spot | tuple | Meant)
                return found.value if isinstance(found, ChosenNodes) else found
            case ast.Path(start, (*steps, ast.Step("child", ast.KindTest("text"), (), False))):
                return FunctionCall("text-node", (self._text(self.with_text_nodes(start, steps)),), Kind.UNTYPED)
            case ast.Path() | ast.Variable() | ast.ContextItem() | ast.Filter() | ast.Call() if self.is_path(
                expression
            ):
                return self._text(self.filtered_spots(expression))
            case ast.Arithmetic(first, rest):
                found = self.value(first)
                for operator, operand in rest:
                    found = self._computed(operator, found, self.value(operand))
                return found
            case ast.Negation(operand):
                return self._computed("*", ConstantValue(-1), self._number(operand))
            case ast.If(condition, then, otherwise):
                return self._chosen(self.truth(condition), then, otherwise)
            case ast.Call(name, (left, right)) if name in VALUE_OPERATORS:
                values = [self.value(each) for each in (left, right)]
                there = Junction(True, tuple(FunctionCall("there", (each,), Kind.BOOLEAN) for each in values))
                return behind([Clear(each) for each in values], _given_where(there, self.truth(expression)))
            case ast.Call(name, arguments):
                return self._call(name.removeprefix("fn:"), arguments)
            case ast.Cast("castable", operand, name, optional):
                return self._castable(self.value(operand), name, optional=optional)
            case ast.Cast(_, operand, name, optional):
                found = self._call(name, (operand,))
                return found if optional else behind([self._needed(operand)], found)
            case ast.Filter(ast.Sequence(items), (ast.Positional(ast.Number("1")),)) if items:
                return self._first(items)
            case ast.Filter(ast.Call("tokenize" | "fn:tokenize", arguments), (ast.Positional(ast.Number() as place),)):
                return self._call("token", (*arguments, place))
            case ast.Comparison() | ast.And() | ast.Or() | ast.Quantified():
                return self.truth(expression)
            case ast.Flwor((ast.Let(name, value), *_), _, ()):
                bound, clear = self.let(name, value)
                found = bound.value(behind_first(expression))
                return found if clear is None else FunctionCall("behind", (clear, found), found.kind)
            case ast.Flwor((ast.For(name, source, None), *_), _, ()):
                return self._round(name, source, behind_first(expression))
            case _:
                raise NotColumnar(words_for(expression))

    def written(self, expression: ast.Expression) -> Expression:
        """The value of an expression that has at most one, for other uses than comparison."""
        return self.value(expression)

    def order_keys(self, expression: ast.Expression) -> list[Expression]:
        """What rows are sorted by for one key of an `order by`."""
        if not self.is_path(expression) and self.may_be_null(expression):
            raise NotColumnar("an order by what is chosen and may be null", "non-null(...) of each")
        found = untyped(self.written(expression))
        if _is_decimal(found):
            raise NotColumnar("an order by decimals that are computed", "number(...) computes with doubles")
        return [found, *(null_last(self.filtered_spots(expression)) if self.is_path(expression) else ())]

    def _computed(self, operator: str, left: Expression, right: Expression) -> Expression:
        """Arithmetic; between literals it is done here, exactly as the law does it."""
        if isinstance(left, ConstantValue) and isinstance(right, ConstantValue):
            if has_constant(left, self.work.marks) or has_constant(right, self.work.marks):
                raise NotColumnar("arithmetic with constants only", "write down what it comes to")
            try:
                return ConstantValue(calculate(operator, left.value, right.value))  # type: ignore[arg-type]
            except DynamicError:
                raise NotColumnar("a constant that fails") from None
        left, right = summand(untyped(left)), summand(untyped(right))
        kinds = {left.kind, right.kind}
        is_double = kinds <= set(NUMERIC) and kinds & {Kind.UNTYPED, Kind.DOUBLE}
        if is_double or (kinds == {Kind.INTEGER} and operator != "div"):
            return ColumnArithmetic(operator, left, right)  # type: ignore[arg-type]
        found = arithmetic(operator, left, right)  # type: ignore[arg-type]
        if found is None:
            raise NotColumnar("arithmetic with what is no number")
        return found

    def _chosen(self, condition: Expression, then: ast.Expression, otherwise: ast.Expression) -> Expression:
        """The value of one branch or the other, of which one may be empty."""
        match then, otherwise:
            case _, ast.Sequence(()):
                return _given_where(condition, self.value(then))
            case ast.Sequence(()), _:
                return _given_where(negated(condition), self.value(otherwise))
        one, other = self.value(then), self.value(otherwise)
        if {one.kind, other.kind} == {Kind.BOOLEAN, Kind.FLAG}:
            one, other = as_flag(one), as_flag(other)
        if one.kind is not other.kind:
            raise NotColumnar("an `if` whose branches have values of different types")
        return Choice(condition, one, other)

    def _first(self, items: Sequence[ast.Expression]) -> Expression:
        """The first value that is there; an error in another one is an error, too."""
        values = self.candidates(items, atomized=True)
        found = values[-1]
        for each in reversed(values[:-1]):
            if each.kind is not found.kind:
                raise NotColumnar("the first of several values of different types")
            found = each if each.kind is Kind.BOOLEAN else Choice(is_there(each), each, found)
        return behind([Clear(each) for each in values], found)

    def candidates(self, items: Sequence[ast.Expression], *, atomized: bool = False) -> list[Expression]:
        """The values of which the first that is there is meant; `null` is one, and left to the law.

        Nodes are candidates where values are asked for.
        """
        if not atomized and any(self.gives_nodes(each, some=True) for each in items):
            raise NotColumnar("the first of several nodes", "string(...) of each")
        return [self._candidate(each) for each in items]

    def _candidate(self, item: ast.Expression) -> Expression:
        value = self.value(ast.Call("data", (item,), span=item.span))
        if not self.may_be_null(item):
            return value
        spots = self.filtered_spots(item) if self.is_path(item) else []
        if not spots or not all(each.is_single for each in spots):
            raise NotColumnar("the first of several values that may be null", "non-null(...) of each")
        return behind([Clear(self.not_null(each)) for each in spots], value)

    def _round(self, name: str, source: ast.Expression, rest: ast.Expression) -> Expression:
        """The value of a loop that has one round at most."""
        match source:
            case ast.Call("non-null", (path,)) if self.is_path(path):
                pass
            case _ if self.is_path(source) and not self.is_typed(source):
                spots = self.filtered_spots(source)
                if len(spots) != 1 or not spots[0].is_single:
                    raise NotColumnar("the values of a loop")
                there = self.nodes_at(spots[0]).condition or TRUE
                found = self.bind(name, spots[0].bare).value(rest)
                return behind(self.asked(spots), _given_where(there, found))
            case _ if self.gives_nodes(source, some=True) or self.may_be_null(source):
                raise NotColumnar("the values of a loop")
        value = self.value(source)
        if value.kind is Kind.BOOLEAN:
            raise NotColumnar("the values of a loop")
        found = self.bind(name, value).value(rest)
        return behind([Clear(value)], _given_where(FunctionCall("there", (value,), Kind.BOOLEAN), found))

    def _castable(self, value: Expression, name: str, *, optional: bool) -> Expression:
        found = told(is_castable(value, name), "castable") if value.kind is not Kind.CONTENT else None
        if found is None:
            raise NotColumnar("a cast of nodes")
        if not optional:
            return found
        return Junction(False, (negated(FunctionCall("there", (value,), Kind.BOOLEAN)), found))

    def _only_of(self, operand: ast.Expression) -> Expression:
        """The value of what may be one of several parts."""
        spots = self.filtered_spots(operand) if self.is_path(operand) else []
        if len(spots) == 1:
            return self._text([replace(spots[0], is_chosen=True)])
        return self.value(operand)

    def _needed(self, operand: ast.Expression) -> Expression:
        """Unclear where there is no value."""
        there = FunctionCall("there", (self.value(operand),), Kind.BOOLEAN)
        return Clear(FunctionCall("needed", (there,), Kind.BOOLEAN))

    def _number(self, expression: ast.Expression) -> Expression:
        found = untyped(self.value(expression))
        return found

    def _text(self, spots: Sequence[Spot]) -> Expression:
        """The single value of a path."""
        if not spots:
            return FunctionCall("where", (ConstantValue(False), ConstantValue("")), Kind.UNTYPED)
        if len(spots) == 1 and not spots[0].is_single and (spots[0].is_chosen or self.is_looked_up(spots[0])):
            value = RowFold("only one", (self.values_at(spots[0]),), (), spots[0].kind, self.frame)
            return behind(self.asked(spots), value)
        if len(spots) > 1 or not spots[0].is_single:
            raise NotColumnar("a path to several values")
        (spot,) = spots
        text = spot.string_value
        return text if spot.condition is None else FunctionCall("where", (spot.condition, text), spot.kind)

    def _call(self, name: str, arguments: Sequence[ast.Expression]) -> Expression:
        match name, arguments:
            case (("true" | "false"), ()):
                return ConstantValue(name == "true")
            case (("position" | "last"), ()):
                return self.value(ast.Variable(POSITION if name == "position" else LAST))
            case _, (ast.Variable() as looped, *condition) if name == PLACE:
                return self.place(looped, condition[0] if condition else None)
            case (("not" | "boolean"), (operand,)):
                found = self.truth(operand)
                return FunctionCall("not", (found,), Kind.BOOLEAN) if name == "not" else found
            case (("exists" | "empty"), (operand,)):
                found = self._exists(operand)
                return negated(found) if name == "empty" else found
            case (("data" | "non-null"), (operand,)):
                return self.value(operand)
            case _, (operand,) if name in CHECKED:
                return behind(self.number_checked(name, operand), self._only_of(operand))
            case "deep-equal", (left, right) if not self.gives_nodes(ast.Sequence(tuple(arguments)), some=True):
                return told(deeply_equal(self.value(left), self.value(right)), "deep-equal()")
            case (("name" | "local-name"), _):
                return self._name(arguments[0] if arguments else ast.ContextItem(), local=name == "local-name")
            case _, (operand, *others) if name in FOLDS:
                return self.folded(name, operand, others)
        if name in JSON:
            raise NotColumnar("an object or array that is not just given", "lookups of what is in it")
        if name not in FUNCTIONS:
            raise NotColumnar(f"'{name[3:]}'" if name.startswith("op:") else f"the function {name}()")
        function = FUNCTIONS[name]
        given = arguments or ((ast.ContextItem(),) if function.context else ())
        values = tuple(self.value(each) for each in given)
        if not function.typed:
            values = tuple(map(as_text if name in ("string", "concat", "xs:string") else untyped, values))
        values = tuple(as_time(name, summand(each)) for each in values)
        kind = function.kind_of(values)
        if kind is None:
            raise NotColumnar(f"the function {name}() of such values")
        return FunctionCall(name, values, kind)

    def folded(self, name: str, operand: ast.Expression, others: Sequence[ast.Expression]) -> Expression:
        """The result of a function of `rows/folding.py` over a sequence."""
        sequence = self.sequence(operand, _USES.get(name, Needed.VALUES))
        if name != "string-join" and any(_is_decimal(each.value) for each in sequence.sources):
            raise NotColumnar(f"{name}() of decimals that are computed", "number(...) computes with doubles")
        sequence = replace(sequence, sources=tuple(map(untyped_source, sequence.sources)))
        if name in ("min", "max") and {each.value and each.value.kind for each in sequence.sources} <= _OTHERS:
            name = f"{name} of others"
        arguments = tuple(untyped(self.value(each)) for each in others)
        for each in sequence.sources:
            if isinstance(each.value, ConstantValue):
                simple_literal(each.value)
        kind = FOLDS[name].kind_of(sequence.sources, arguments)
        if kind is None:
            raise NotColumnar(f"the function {name}() of such values")
        return behind(sequence.clears, RowFold(name, sequence.sources, arguments, kind, self.frame))

    def _name(self, operand: ast.Expression, *, local: bool) -> Expression:
        spots = self.filtered_spots(operand) if self.is_path(operand) else []
        if len(spots) != 1 or not spots[0].is_single:
            raise NotColumnar("the name of several nodes, or of none")
        there = self.nodes_at(spots[0]).condition or TRUE
        name = spots[0].called(local=local)
        return behind(self.asked(spots), Choice(there, ConstantValue(name), ConstantValue("")))

    def _exists(self, operand: ast.Expression) -> Expression:
        found = self.sequence(operand, Needed.COUNT)
        clears = (*found.clears, *self._value_clears(found))
        return behind(clears, either([self._some_row(each, None) for each in found.sources]))

    @blaming
    def truth(self, expression: ast.Expression) -> Expression:
        """The effective boolean value of an expression."""
        self.work.spend()
        match expression:
            case ast.And(operands) | ast.Or(operands):
                return Junction(isinstance(expression, ast.And), tuple(self.truth(each) for each in operands))
            case ast.Comparison(operator, left, right):
                return self._compared(operator, left, right)
            case ast.Call(name, (left, right)) if name in VALUE_OPERATORS:
                one, other = self.value(left), self.value(right)
                check_comparable(one, other)
                if Kind.FLAG in (one.kind, other.kind):
                    return compared(VALUE_OPERATORS[name], one, other)
                return told(value_compared(VALUE_OPERATORS[name], one, other), f"'{name[3:]}'")
            case ast.Call(name, (left, right)) if name == SAME:
                return told(is_same(self.value(left), self.value(right)), "index-of()")
            case ast.Quantified(kind, ((name, source), *others), condition):
                if others or kind != "some":
                    rest = ast.Quantified(kind, tuple(others), condition) if others else condition
                    return self._quantified(kind == "some", name, self.filtered_spots(source), rest)
                spots, asked = self.looped_spots(name, source, condition)
                return self._quantified(True, name, spots, asked)
            case _ if self.is_path(expression) and not self.is_typed(expression):
                return self._exists(expression)
            case _ if self.gives_nodes(expression, some=True):
                raise NotColumnar("whether there are nodes among others", "exists(...)")
            case _:
                found = self.written(expression)
                if found.kind in TIMES:
                    raise NotColumnar("a time as a condition")
                return found if found.kind is Kind.BOOLEAN else typed_truth(found)

    def _quantified(
        self, is_some: bool, name: str, spots: Sequence[Spot], condition: ast.Expression | None
    ) -> Expression:
        """Whether a condition holds for some of the nodes at some spots, or for all; None always holds."""
        found: list[Expression] = []
        for spot in spots:
            nodes = self.nodes_at(spot)
            inside = self.bind(name, spot.bare) if spot.is_single else self.bind_row(name, spot.bare, nodes.frame)
            holds = TRUE if condition is None else inside.truth(condition)
            if nodes.condition is not None:  # else each row is one
                holds = Junction(is_some, (nodes.condition if is_some else negated(nodes.condition), holds))
            found.append(holds if spot.is_single else RowQuantifier(nodes.frame, is_some, holds, self.frame, spot.side))
        return behind(self.asked(spots), either(found) if is_some else all_of(found) or TRUE)

    def _compared(self, operator: ComparisonOperator, left: ast.Expression, right: ast.Expression) -> Expression:
        """A general comparison: some value of one side with some value of the other."""
        if self.mixes_types(left):
            return self._first_compared(left, lambda found: self.bind_first(found)._compared(operator, _FIRST, right))
        if self.mixes_types(right):
            return self._first_compared(right, lambda found: self.bind_first(found)._compared(operator, left, _FIRST))
        sides = self.sequence(left), self.sequence(right)
        found: list[Expression] = []
        for one, other in product(*(each.sources for each in sides)):
            if one.frame != self.frame and other.frame != self.frame:
                raise NotColumnar("a comparison of several values with several")
            assert one.value is not None
            assert other.value is not None
            sides_of_one = alike(one.value, other.value)
            check_comparable(*sides_of_one)
            self.work.spend()
            deep, single = (one, other) if one.frame != self.frame else (other, one)
            test = self._some_row(single, compared(operator, *sides_of_one))
            found.append(test if deep is single else self._some_row(deep, test))
        is_pair = all(len(each.sources) == 1 and each.sources[0].frame == self.frame for each in sides)
        if is_pair and not any(each.sources[0].condition or each.clears for each in sides):
            return found[0]
        clears = [clear for each in sides for clear in (*each.clears, *self._value_clears(each))]
        return behind(clears, either(found))

    def mixes_types(self, expression: ast.Expression) -> bool:
        """Whether an expression is the first of several values, and these are of different types."""
        scope, meant = self.meant(expression)
        match meant:
            case ast.Filter(ast.Sequence(items), (ast.Positional(ast.Number("1")),)) if items:
                return len({each.kind for each in scope.candidates(items, atomized=True)}) > 1
            case _:
                return False

    def _first_compared(self, first: ast.Expression, test: Callable[[Expression], Expression]) -> Expression:
        """A test of the first value that is there, which is written for each of their types."""
        scope, meant = self.meant(first)
        assert isinstance(meant, ast.Filter)
        assert isinstance(meant.base, ast.Sequence)
        values = scope.candidates(meant.base.items, atomized=True)
        found = test(values[-1])
        for each in reversed(values[:-1]):
            found = Choice(is_there(each), test(each), found)
        return behind([Clear(each) for each in values], found)

    def bind_first(self, value: Expression) -> Self:
        """The scope in which the first of several values is one of them."""
        return self.bind(_FIRST.name, value)

    def let(self, name: str, value: ast.Expression) -> tuple[Self, Expression | None]:
        """The scope behind a `let`, and the expression that must be clear for it."""
        if self.is_path(value):
            spots = self.filtered_spots(value)
            return self.bind(name, tuple(spots)), all_of(self.asked(spots))
        found = None if self.may_be_null(value) else self._only_value(value)
        if found is None:
            return self.bind(name, Meant(value, self.names)), self.clear_of(value)
        chosen = self.gives_nodes(value, some=True)
        return self.bind(name, ChosenNodes(found) if chosen else found), Clear(found)

    def _only_value(self, expression: ast.Expression) -> Expression | None:
        """The value of an expression; None where it has several, or elements or objects that are given as they are."""
        try:
            found = self.value(expression)
        except NotColumnar:
            return None
        return None if found.kind is Kind.CONTENT else found

    def clear_of(self, expression: ast.Expression) -> Expression | None:
        """What must be clear for an expression with any number of values."""
        found = self.sequence(expression, Needed.ORDER)
        return all_of([*found.clears, *self._value_clears(found)])


def _given_where(condition: Expression, value: Expression) -> Expression:
    """A value where a condition holds, and none elsewhere."""
    found = as_flag(value)
    return FunctionCall("where", (condition, found), found.kind)


def is_there(value: Expression) -> Expression:
    """Whether a value is there; a condition always is."""
    return TRUE if value.kind is Kind.BOOLEAN else FunctionCall("there", (value,), Kind.BOOLEAN)


def _is_decimal(value: Expression | None) -> bool:
    """Whether a value is an exact decimal that was computed."""
    return value is not None and value.kind is Kind.DECIMAL and not isinstance(value, ConstantValue)
