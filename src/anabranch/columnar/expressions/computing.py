"""The compiler of values: expressions of the language with at most one value for each row, over columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

from anabranch.columnar.expressions.folding import FOLDS
from anabranch.columnar.expressions.functions import (
    FUNCTIONS,
    NUMERIC,
    TEXTUAL,
    VALUE_OPERATORS,
    deeply_equal,
    spread,
    value_compared,
)
from anabranch.columnar.expressions.junctions import (
    all_of,
    behind,
    either,
    negated,
    summand,
    text_node,
    then,
    there_only,
)
from anabranch.columnar.expressions.literals import check_comparable, literal_of, simple_literal, told
from anabranch.columnar.expressions.objects.lookups import (
    as_text,
    compared,
    null_last,
    typed_truth,
    untyped,
    untyped_source,
)
from anabranch.columnar.expressions.objects.lookups import there as value_there
from anabranch.columnar.expressions.scope import ChosenNodes, NotColumnar, Spot, blaming, words_for
from anabranch.columnar.expressions.tree import (
    Choice,
    Clear,
    ColumnArithmetic,
    ColumnComparison,
    ConstantValue,
    Expression,
    FirstOfValue,
    FunctionCall,
    Junction,
    Kind,
    PartText,
    Presence,
    RowFold,
    RowPlace,
    RowQuantifier,
    RowSource,
    Truth,
    has_constant,
)
from anabranch.columnar.tables.lookups import LookupScope
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.objects import JSON
from anabranch.values.arithmetic import calculate
from anabranch.values.operators import ComparisonOperator

TRUE = ConstantValue(True)


@dataclass(frozen=True, slots=True)
class CompiledSequence:
    """The sources of a sequence, and the expressions that must be clear for any use of it: an error hides the rest."""

    sources: tuple[RowSource, ...]
    clears: tuple[Expression, ...] = ()

    def __add__(self, other: CompiledSequence) -> CompiledSequence:
        return CompiledSequence((*self.sources, *other.sources), (*self.clears, *other.clears))


_NOTHING = CompiledSequence(())
_FIRST: Expression = ConstantValue(1)
POSITION, LAST = "position()", "last()"
"""The names of these functions in a scope; no variable has such a name."""


@dataclass(frozen=True, slots=True)
class ValueScope(LookupScope):
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
                raise NotColumnar(words_for(expression))

    def written(self, expression: ast.Expression) -> Expression:
        """The value of an expression that has at most one, for other uses than comparison."""
        found = self.value(expression)
        if found.kind is Kind.MOMENT:
            raise NotColumnar("a time that is not only compared")
        return found

    def order_keys(self, expression: ast.Expression) -> list[Expression]:
        """What rows are sorted by for one key of an `order by`."""
        found = untyped(self.written(expression))
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
        left, right = untyped(left), untyped(right)
        kinds = {left.kind, right.kind}
        if not kinds <= set(NUMERIC):
            raise NotColumnar("arithmetic with what is no number")
        if not kinds & {Kind.UNTYPED, Kind.DOUBLE} and (kinds != {Kind.INTEGER} or operator == "div"):
            raise NotColumnar("exact decimal arithmetic", "number(...) computes with doubles")
        return ColumnArithmetic(operator, summand(left), summand(right))  # type: ignore[arg-type]

    def _number(self, expression: ast.Expression) -> Expression:
        found = untyped(self.value(expression))
        if found.kind not in (Kind.UNTYPED, Kind.DOUBLE, Kind.INTEGER):
            raise NotColumnar("a sign in front of a decimal")
        return found

    def _text(self, spots: Sequence[Spot]) -> Expression:
        """The single value of a path."""
        if not spots:
            return FunctionCall("where", (ConstantValue(False), ConstantValue("")), Kind.UNTYPED)
        if len(spots) == 1 and not spots[0].is_single and (spots[0].is_chosen or self.is_looked_up(spots[0])):
            value = RowFold("only one", (self._values_at(spots[0]),), (), spots[0].kind, self.frame)
            return behind(self.asked(spots), value)
        if len(spots) > 1 or not spots[0].is_single:
            raise NotColumnar("a path to several values")
        (spot,) = spots
        text = PartText(spot.text, spot.side, spot.kind)
        return text if spot.condition is None else FunctionCall("where", (spot.condition, text), spot.kind)

    # --- sequences ----------------------------------------------------------------------------------------

    def predicate(self, spot: Spot, condition: ast.Expression) -> Expression:
        """The condition of a predicate on a spot, behind earlier conditions; tested only where the part is there."""
        frame = self._frame_of(spot)
        inside = self.bind(None, spot.bare) if spot.is_single else self.bind_row(None, spot.bare, frame)
        holds = inside.truth(condition)
        if isinstance(holds, Truth) and holds.operand.kind not in TEXTUAL:
            raise NotColumnar("a number as a predicate")
        return self._held(spot, frame, holds)

    def position(self, spot: Spot, condition: ast.Expression, counted: int) -> Expression:
        """The condition of a predicate that may be a position; of a part that is there at most once, that is 1."""
        frame = self._frame_of(spot)
        inside = self.bind(None, spot.bare) if spot.is_single else self.bind_row(None, spot.bare, frame)
        place, last = _FIRST, _FIRST
        if spot.part == frame and counted != frame:
            place, last = (RowPlace(frame, is_last, spot.condition, counted) for is_last in (False, True))
        elif not spot.is_single and counted == self.frame:
            raise NotColumnar("a position among parts of repeated parts")
        holds = inside.bind(POSITION, place).bind(LAST, last).truth(condition)
        if isinstance(holds, Truth) and holds.operand.kind not in TEXTUAL:
            check_comparable(place, holds.operand)
            holds = ColumnComparison("=", place, holds.operand)
        return self._held(spot, frame, holds)

    def _held(self, spot: Spot, frame: int, holds: Expression) -> Expression:
        """A condition on a part that is there, tested behind the earlier conditions."""
        if spot.part != frame:
            holds = Junction(True, (Presence(spot.presence, spot.side), holds))
        return then(spot.condition, holds)

    def _frame_of(self, spot: Spot) -> int:
        """The frame in whose rows a spot has at most one value."""
        return self.frame if spot.is_single else self.frame_of(spot)

    @blaming
    def sequence(self, expression: ast.Expression, *, counted: bool = False, ordered: bool = False) -> CompiledSequence:
        """The values of a sequence, or only their number (`counted`); they are in their order only with `ordered`."""
        self.work.spend()
        match expression:
            case ast.Call("op:to") if spread(expression) is not expression:
                return self.sequence(spread(expression), counted=counted, ordered=ordered)
            case ast.Sequence(items):
                parts = (self.sequence(each, counted=counted, ordered=ordered) for each in items)
                return sum(parts, _NOTHING)
            case ast.Call("data" | "fn:data", (operand,)):
                return self.sequence(operand, counted=counted, ordered=ordered)
            case ast.Call("non-null", (operand,)):
                values = self.sequence(operand, ordered=ordered)
                return replace(values, sources=tuple(map(there_only, values.sources))) if counted else values
            case ast.Call("distinct-values" | "fn:distinct-values", (operand,)):
                return self._distinct(self.sequence(operand, ordered=ordered), counted=counted)
            case ast.If(condition, then, otherwise):
                holds = self.truth(condition)
                sides = (self.sequence(each, counted=counted, ordered=ordered) for each in (then, otherwise))
                one, other = map(self._where, (holds, negated(holds)), sides)
                return one + other
            case ast.Flwor((ast.For(_, source, None), *_), _, (), _) if self.is_path(source):
                return self._loop_sequence(expression, counted=counted, ordered=ordered)
            case ast.Path(start, (*steps, ast.Step("child", ast.KindTest("text"), (), False))):
                spots = self.with_text_nodes(start, steps)
                texts = [replace(each, value=text_node(each.value)) for each in map(self._values_at, spots)]
                found = list(map(there_only, texts)) if counted else texts
            case _ if self.is_path(expression):
                spots = self.filtered_spots(expression)
                spots = spots if counted else self.opened(spots)
                found = [self.nodes_at(each) if counted else self._values_at(each) for each in spots]
            case _:
                single = RowSource(self.frame, None, self.value(expression), self.side)
                return CompiledSequence((there_only(single) if counted else single,))
        if ordered and len(found) > 1:
            raise NotColumnar("the values of parts of different names in a row")
        return CompiledSequence(tuple(found), tuple(self.asked(spots)))

    def _distinct(self, sequence: CompiledSequence, *, counted: bool) -> CompiledSequence:
        """A sequence of texts without duplicates."""
        match sequence.sources:
            case (RowSource(frame, condition, value) as source,) if value is not None and value.kind in TEXTUAL:
                if frame != self.frame:
                    first = FirstOfValue(frame, value, condition, self.frame)
                    source = replace(source, condition=then(condition, first))
                return replace(sequence, sources=(there_only(source) if counted else source,))
            case _:
                raise NotColumnar("distinct values of several parts, or of numbers", "string(...) of one part")

    def _values_at(self, spot: Spot) -> RowSource:
        side = self.side if spot.is_single else spot.side
        return RowSource(self._frame_of(spot), spot.condition, PartText(spot.text, spot.side, spot.kind), side)

    def nodes_at(self, spot: Spot) -> RowSource:
        """The nodes of a path; without a condition each row of its frame is one."""
        frame = self._frame_of(spot)
        there: Expression | None = None if spot.part == frame else Presence(spot.presence, spot.side)
        if spot.is_typed:
            there = value_there(spot)
        condition = then(there, spot.condition) if spot.condition is not None else there
        return RowSource(frame, condition, None, self.side if spot.is_single else spot.side)

    def asked(self, spots: Sequence[Spot]) -> list[Expression]:
        """Expressions that are clear where all predicates on the way to some spots are."""
        return [
            Clear(each) if self._lies_in(frame, spot) else self._everywhere(frame, Clear(each), spot.side)
            for spot in spots
            for frame, each in spot.asked
        ]

    def _lies_in(self, frame: int, spot: Spot) -> bool:
        """Whether the current rows lie in rows of a frame."""
        mine = self.frame if self.side == spot.side else -1
        look = spot.look if self.work.tables is None else self.work.tables.look
        while mine not in (-1, frame):
            parent = look.parts[mine].parent
            mine = look.frames[parent] if parent >= 0 else -1
        return mine == frame

    def _everywhere(self, frame: int, clear: Expression, side: int) -> Expression:
        """An expression that is clear where `clear` is in all rows of a frame, if that is an inner one."""
        return clear if frame == self.frame else RowQuantifier(frame, False, clear, self.frame, side)

    def _where(self, condition: Expression, sequence: CompiledSequence) -> CompiledSequence:
        """A sequence under one more condition, which is tested first."""
        sources = tuple(replace(each, condition=then(condition, each.condition)) for each in sequence.sources)
        clears = (Junction(False, (negated(condition), each)) for each in sequence.clears)
        return CompiledSequence(sources, (Clear(condition), *clears))

    def _loop_sequence(self, loop: ast.Flwor, *, counted: bool, ordered: bool) -> CompiledSequence:
        """The results of the rounds of a loop."""
        first, *rest = loop.clauses
        assert isinstance(first, ast.For)
        spots, where = self.looped_spots(first.variable, first.source, loop.where, rest)
        if ordered and len(spots) > 1:
            raise NotColumnar("the values of parts of different names in a row")
        found = CompiledSequence((), tuple(self.asked(spots)))
        for spot in spots:
            nodes, others = self.nodes_at(spot), rest
            variable, bare = first.variable, spot.bare
            scope = self.bind(variable, bare) if spot.is_single else self.bind_row(variable, bare, nodes.frame)
            condition = nodes.condition
            while others and isinstance(others[0], ast.Let):
                scope, clear = scope.let(others[0].variable, others[0].value)
                condition, others = condition if clear is None else then(condition, clear), others[1:]
            if others:
                given = scope.sequence(replace(loop, clauses=tuple(others)), counted=counted, ordered=ordered)
            else:
                if where is not None:
                    condition = then(condition, scope.truth(where))
                given = scope.sequence(loop.result, counted=counted, ordered=ordered)
            if ordered and len(given.sources) > 1:
                raise NotColumnar("a loop whose rounds give several values")
            if condition is not None:
                given = scope._where(condition, given)
            clears = tuple(self._everywhere(nodes.frame, each, nodes.side) for each in given.clears)
            found += CompiledSequence(given.sources, clears)
        return found

    def _value_clears(self, sequence: CompiledSequence) -> list[Expression]:
        """That the values of a sequence are clear, and whether they are there; what is read is, or is no error."""
        found: list[Expression] = []
        for each in sequence.sources:
            if each.condition is not None and not isinstance(each.condition, Presence):
                found.append(self._everywhere(each.frame, Clear(each.condition), each.side))
            if each.value is not None and not _is_read(each.value):
                clear: Expression = Clear(each.value)
                if each.condition is not None:
                    clear = Junction(False, (negated(each.condition), clear))
                found.append(self._everywhere(each.frame, clear, each.side))
        return found

    def _some_row(self, source: RowSource, test: Expression | None) -> Expression:
        """Whether there is a value of a sequence for which a test holds."""
        asked = all_of([each for each in (source.condition, test) if each is not None]) or TRUE
        if source.frame == self.frame:
            return asked
        return RowQuantifier(source.frame, True, asked, self.frame, source.side)

    def _call(self, name: str, arguments: Sequence[ast.Expression]) -> Expression:
        match name, arguments:
            case (("true" | "false"), ()):
                return ConstantValue(name == "true")
            case (("position" | "last"), ()):
                return self.value(ast.Variable(POSITION if name == "position" else LAST))
            case (("not" | "boolean"), (operand,)):
                found = self.truth(operand)
                return FunctionCall("not", (found,), Kind.BOOLEAN) if name == "not" else found
            case (("exists" | "empty"), (operand,)):
                found = self._exists(operand)
                return negated(found) if name == "empty" else found
            case (("data" | "non-null"), (operand,)):
                return self.value(operand)
            case "zero-or-one", (operand,) if not self.gives_nodes(operand, some=True):
                return self.value(operand)
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
        spelled = as_text if name in ("string", "concat") else untyped
        values = tuple(spelled(self.value(each)) for each in given)
        kind = function.kind_of(values)
        if kind is None:
            raise NotColumnar(f"the function {name}() of such values")
        return FunctionCall(name, values, kind)

    def folded(self, name: str, operand: ast.Expression, others: Sequence[ast.Expression]) -> Expression:
        """The result of a function of `folding.py` over a sequence."""
        sequence = self.sequence(operand, counted=name == "count", ordered=name == "string-join")
        sequence = replace(sequence, sources=tuple(map(untyped_source, sequence.sources)))
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
        found = self.sequence(operand, counted=True)
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
        sides = self.sequence(left), self.sequence(right)
        found: list[Expression] = []
        for one, other in product(*(each.sources for each in sides)):
            if one.frame != self.frame and other.frame != self.frame:
                raise NotColumnar("a comparison of several values with several")
            assert one.value is not None
            assert other.value is not None
            check_comparable(one.value, other.value)
            self.work.spend()
            deep, single = (one, other) if one.frame != self.frame else (other, one)
            test = self._some_row(single, compared(operator, one.value, other.value))
            found.append(test if deep is single else self._some_row(deep, test))
        is_pair = all(len(each.sources) == 1 and each.sources[0].frame == self.frame for each in sides)
        if is_pair and not any(each.sources[0].condition for each in sides):
            return found[0]
        clears = [clear for each in sides for clear in (*each.clears, *self._value_clears(each))]
        return behind(clears, either(found))

    def let(self, name: str, value: ast.Expression) -> tuple[Self, Expression | None]:
        """The scope behind a `let`, and the expression that must be clear for it."""
        if self.is_path(value):
            spots = self.filtered_spots(value)
            return self.bind(name, tuple(spots)), all_of(self.asked(spots))
        found = self.value(value)
        if found.kind is Kind.CONTENT:
            raise NotColumnar("a `let` of nodes")
        chosen = self.gives_nodes(value, some=True)
        return self.bind(name, ChosenNodes(found) if chosen else found), Clear(found)


def _is_read(value: Expression) -> bool:
    """Whether a value raises nothing by itself; an object in the place of a value of JSON does."""
    match value:
        case PartText(_, _, Kind.UNTYPED) | ConstantValue():
            return True
        case _:
            return False
