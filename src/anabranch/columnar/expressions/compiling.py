"""The compiler: what an expression of the language comes to over the columns of one look.

Compiled is whatever looks at one item and whose work is bounded by its size: paths of child and attribute steps, with
`//` and `*`, arithmetic, comparisons, `and`, `or`, `if`, `let`, quantifiers, the functions of `functions.py`,
constructors, and loops over repeated parts.
Anything else raises `NotColumnar`, with the construct that is to blame, and is answered by the law.

A part that is repeated makes a *frame*: its occurrences are rows, as items are.
What stands in a frame further in than where an expression is evaluated is a sequence there.

The law counts steps (LAWS 2.6) and columns do not, so work is bounded here: a query has at most `MOST_NODES` nodes, an
item that fits at most `LONGEST_FITTING` bytes (`scan/cutter.py`), and loops nest only as elements do.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import wraps
from itertools import product
from typing import TypeAlias, TypeVar

from anabranch.columnar.expressions.functions import FUNCTIONS
from anabranch.columnar.expressions.tree import (
    Around,
    Choice,
    Clear,
    ColumnArithmetic,
    ColumnComparison,
    Constant,
    ContentOf,
    Expression,
    Fragment,
    FunctionCall,
    Junction,
    Kind,
    Literal,
    Made,
    PartsInOrder,
    PartText,
    Presence,
    RowCount,
    RowExtreme,
    RowLoop,
    RowQuantifier,
    Taken,
    Truth,
    has_constant,
    walk,
)
from anabranch.columnar.match.condition import NO, ItemTest, NumberTest, PresenceTest, Settled, TextTest
from anabranch.columnar.match.forms import AFTER
from anabranch.columnar.scan.kernels import MOST_DIGITS
from anabranch.columnar.scan.look import Look, PartColumn
from anabranch.columnar.scan.template import PLAIN
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.evaluate import number
from anabranch.logic import MIRRORED, And, Not, Operator, Or, Tree
from anabranch.stream.serialize import escape_attribute, escape_text
from anabranch.values.arithmetic import calculate
from anabranch.values.operators import ComparisonOperator

MOST_NODES = 2_000
_NUMERIC = (Kind.UNTYPED, Kind.DOUBLE, Kind.INTEGER, Kind.DECIMAL)
_TEXTUAL = (Kind.UNTYPED, Kind.STRING)
_TRUE = Literal(True)


class NotColumnar(Exception):
    """Something is not made for columns; its text says what."""

    def __init__(self, construct: str) -> None:
        super().__init__(construct)
        self.construct = construct
        self.expression: ast.Expression | None = None
        """The innermost expression of the query that is to blame."""

    def blame(self, expression: ast.Expression) -> NotColumnar:
        """The same, said of an expression unless it is known of one inside."""
        self.expression = self.expression or expression
        return self


_Compiled = TypeVar("_Compiled")


def _blaming(
    compile_one: Callable[[LookScope, ast.Expression], _Compiled],
) -> Callable[[LookScope, ast.Expression], _Compiled]:
    """Have what is not made for columns say which expression it is."""

    @wraps(compile_one)
    def compiled(scope: LookScope, expression: ast.Expression) -> _Compiled:
        try:
            return compile_one(scope, expression)
        except NotColumnar as reason:
            raise reason.blame(expression) from None

    return compiled


class Work:
    """Counts the nodes that are made for one query; knows its marks, which stand for other constants."""

    def __init__(self, marks: Container[Constant] = ()) -> None:
        self.marks = marks
        self._left = MOST_NODES

    def spend(self, nodes: int = 1) -> None:
        """Make so many nodes; `NotColumnar` where they become too many."""
        self._left -= nodes
        if self._left < 0:
            raise NotColumnar("a query of so many parts")


@dataclass(frozen=True, slots=True)
class Spot:
    """A part of all items of a look, as it is reached from somewhere; part -1 is the root around items."""

    look: Look
    part: int
    bound: int = -1
    """The frame whose row it is reached from, -1 for an item."""
    side: int = 0

    @property
    def is_single(self) -> bool:
        """Whether there is at most one of it where it is reached from."""
        return self.look.frames[self.part] == self.bound

    @property
    def text(self) -> PartColumn:
        """The column of its text; only what holds nothing else has one."""
        if not self.look.parts[self.part].has_text:
            raise NotColumnar("the text of an element with elements in it")
        return self.part

    @property
    def whole(self) -> PartColumn:
        """The column of all of it."""
        if self.look.parts[self.part].name.startswith("@"):
            raise NotColumnar("an attribute that is copied")
        return ~self.part

    @property
    def presence(self) -> PartColumn:
        """A column that is there where the part is."""
        return self.look.presence(self.part)

    def steps(self, step: ast.Step) -> list[Spot]:
        """What a step leads to, its predicates not looked at."""
        match step:
            case ast.Step("child" | "attribute" as axis, ast.NameTest(local, None), _, deep):
                pass
            case ast.Step("descendant", ast.NameTest(local, None), _, False):
                axis, deep = "child", True
            case _:
                raise NotColumnar("a step that is no name")
        starts = (self.part, *self.look.descendants(self.part)) if deep else (self.part,)
        found = []
        for child in (child for start in starts for child in self.look.children(start)):
            name = self.look.parts[child].name
            is_attribute = name.startswith("@")
            if is_attribute == (axis == "attribute") and local in ("*", name.removeprefix("@")):
                found.append(replace(self, part=child))
        return found


Binding: TypeAlias = Spot | tuple[Spot, ...] | Expression


@dataclass(frozen=True, slots=True)
class LookScope:
    """What names stand for; None is the name of the context item."""

    names: Mapping[str | None, Binding]
    work: Work = field(default_factory=Work)
    frame: int = -1
    """The frame whose rows are looked at, -1 for items."""

    def bind(self, name: str | None, value: Binding) -> LookScope:
        """With one name more."""
        return LookScope({**self.names, name: value}, self.work, self.frame)

    def bind_row(self, name: str, spot: Spot, frame: int) -> LookScope:
        """With one name more, which stands for what a row of a frame further in leads to."""
        return LookScope({**self.names, name: replace(spot, bound=frame)}, self.work, frame)

    # --- paths --------------------------------------------------------------------------------------------

    @_blaming
    def spots(self, expression: ast.Expression) -> list[Spot]:
        """What a path without predicates leads to."""
        match expression:
            case ast.Variable(name) if name in self.names:
                return self._bound(name)
            case ast.ContextItem() if None in self.names:
                return self._bound(None)
            case ast.Path(start, steps):
                found = self.spots(ast.ContextItem() if start is None else start)
                for step in steps:
                    if step.tail:
                        raise NotColumnar("a predicate inside an item")
                    found = list(dict.fromkeys(each for spot in found for each in spot.steps(step)))
                    self.work.spend(1 + len(found))
                return found
            case _:
                raise NotColumnar("a path that starts from something computed")

    def _bound(self, name: str | None) -> list[Spot]:
        self.work.spend()
        match self.names[name]:
            case Spot() as spot:
                return [spot]
            case tuple() as spots:
                return list(spots)
            case _:
                raise NotColumnar("a path that starts from something computed")

    def _is_path(self, expression: ast.Expression) -> bool:
        """Whether nodes are meant, and not a value."""
        match expression:
            case ast.Variable(name):
                return name in self.names and isinstance(self.names[name], Spot | tuple)
            case ast.Path() | ast.ContextItem():
                return True
            case _:
                return False

    # --- conditions ---------------------------------------------------------------------------------------

    @_blaming
    def condition(self, expression: ast.Expression) -> Tree[ItemTest]:
        """A condition on one item, as far as possible in tests against constants, which an index can find."""
        match expression:
            case ast.And(operands):
                return And(tuple(self.condition(each) for each in operands))
            case ast.Or(operands):
                return Or(tuple(self.condition(each) for each in operands))
            case ast.Call("not" | "fn:not", (operand,)):
                return Not(self.condition(operand))
            case ast.Call("boolean" | "fn:boolean" | "exists" | "fn:exists", (operand,)) if self._is_path(operand):
                return self._presence(self.spots(operand))
            case ast.Call("empty" | "fn:empty", (operand,)) if self._is_path(operand):
                return Not(self._presence(self.spots(operand)))
            case ast.Call("starts-with" | "fn:starts-with", (text, ast.String(value))) if value:
                found = self.value(text)
                if found.kind in _TEXTUAL and not isinstance(found, Literal):
                    return _prefixed(found, value.encode())
            case ast.Comparison(operator, left, right):
                if _is_literal(left) and not _is_literal(right):
                    operator, left, right = MIRRORED[operator], right, left
                if _is_literal(right):
                    return self._tested(operator, left, right)
            case ast.Quantified("some", ((name, source),), ast.Comparison(operator, left, right)):
                inside = self.bind(name, tuple(self.spots(source)))
                if _is_literal(left):
                    operator, left, right = MIRRORED[operator], right, left
                if _is_literal(right) and inside._is_path(left):
                    return inside._tested(operator, left, right)
            case ast.Path() | ast.Variable() if self._is_path(expression):
                return self._presence(self.spots(expression))
        return NumberTest(self.truth(expression), "=", 1.0)

    def _presence(self, spots: Sequence[Spot]) -> Tree[ItemTest]:
        tests: list[ItemTest] = []
        for spot in spots:
            if spot.is_single:
                tests.append(PresenceTest(spot.presence))
            else:
                tests.append(NumberTest(RowQuantifier(self._frame(spot), True, Presence(spot.presence)), "=", 1.0))
        return _any_of(tests)

    def _tested(self, operator: Operator, left: ast.Expression, right: ast.Expression) -> Tree[ItemTest]:
        """A comparison with a literal holds if it holds for one of the values."""
        if not self._is_path(left):
            return self._value_tested(operator, self.value(left), right)
        tests: list[ItemTest] = []
        for spot in self.spots(left):
            if spot.is_single:
                tests.append(_column_test(operator, spot.text, right))
                continue
            frame, text = self._frame(spot), PartText(spot.text, spot.side)
            if isinstance(right, ast.String) or operator in ("=", "!="):
                found = ColumnComparison(operator, text, _literal(right))
                tests.append(NumberTest(RowQuantifier(frame, True, found), "=", 1.0))
            else:
                extreme = RowExtreme(frame, operator in (">", ">="), text)
                tests.append(NumberTest(extreme, operator, simple_number(right)))
        return _any_of(tests)

    def _value_tested(self, operator: Operator, left: Expression, right: ast.Expression) -> Tree[ItemTest]:
        match left.kind, isinstance(right, ast.String):
            case (Kind.UNTYPED | Kind.STRING, True):
                return TextTest(left, operator, right.value.encode()) if isinstance(right, ast.String) else Settled(NO)
            case (Kind.UNTYPED | Kind.DOUBLE | Kind.INTEGER, False) if not isinstance(left, Literal):
                return NumberTest(left, operator, simple_number(right))
            case _:
                raise NotColumnar("a comparison of values of different types")

    # --- values -------------------------------------------------------------------------------------------

    @_blaming
    def value(self, expression: ast.Expression) -> Expression:
        """The value of an expression that has at most one."""
        self.work.spend()
        match expression:
            case ast.String(text):
                return Literal(text)
            case ast.Number() | ast.Negation(ast.Number()):
                return _literal(expression)
            case ast.Variable(name) if name in self.names and not isinstance(self.names[name], Spot | tuple):
                found = self.names[name]
                assert not isinstance(found, Spot | tuple)
                return found
            case ast.Path(start, (*steps, ast.Step("child", ast.KindTest("text"), (), False))):
                inside = self._text(self.spots(ast.Path(start, tuple(steps))))
                return FunctionCall("text-node", (inside,), Kind.UNTYPED)
            case ast.Path() | ast.Variable() | ast.ContextItem():
                return self._text(self.spots(expression))
            case ast.Arithmetic(first, rest):
                found = self.value(first)
                for operator, operand in rest:
                    found = self._computed(operator, found, self.value(operand))
                return found
            case ast.Negation(operand):
                return self._computed("*", Literal(-1), self._number(operand))
            case ast.If(condition, then, otherwise):
                one, other = self.value(then), self.value(otherwise)
                if one.kind is not other.kind:
                    raise NotColumnar("branches of different types")
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
                raise NotColumnar(f"a {type(expression).__name__}")

    def _computed(self, operator: str, left: Expression, right: Expression) -> Expression:
        """Arithmetic; between literals it is done here, exactly as the law does it."""
        if isinstance(left, Literal) and isinstance(right, Literal):
            if has_constant(left, self.work.marks) or has_constant(right, self.work.marks):
                raise NotColumnar("arithmetic with constants only")
            try:
                return Literal(calculate(operator, left.value, right.value))  # type: ignore[arg-type]
            except DynamicError:
                raise NotColumnar("a constant that fails") from None
        kinds = {left.kind, right.kind}
        if not kinds <= set(_NUMERIC):
            raise NotColumnar("arithmetic with what is no number")
        if not kinds & {Kind.UNTYPED, Kind.DOUBLE} and (kinds != {Kind.INTEGER} or operator == "div"):
            raise NotColumnar("exact decimal arithmetic")
        return ColumnArithmetic(operator, left, right)  # type: ignore[arg-type]

    def _number(self, expression: ast.Expression) -> Expression:
        found = self.value(expression)
        if found.kind not in (Kind.UNTYPED, Kind.DOUBLE):
            raise NotColumnar("a sign in front of this")  # -0 would show
        return found

    def _text(self, spots: Sequence[Spot]) -> PartText:
        """The one value that a path leads to."""
        if len(spots) != 1 or not spots[0].is_single:
            raise NotColumnar("a path to several values, or to none")
        return PartText(spots[0].text, spots[0].side)

    def _call(self, name: str, arguments: Sequence[ast.Expression]) -> Expression:
        match name, arguments:
            case (("true" | "false"), ()):
                return Literal(name == "true")
            case (("not" | "boolean"), (operand,)):
                found = self.truth(operand)
                return FunctionCall("not", (found,), Kind.BOOLEAN) if name == "not" else found
            case (("exists" | "empty"), (operand,)) if self._is_path(operand):
                found = self._exists(self.spots(operand))
                return FunctionCall("not", (found,), Kind.BOOLEAN) if name == "empty" else found
            case "count", (operand,) if self._is_path(operand):
                return self._count(self.spots(operand))
            case "data", (operand,):
                return self.value(operand)
        if name not in FUNCTIONS:
            raise NotColumnar(f"{name}()")
        function = FUNCTIONS[name]
        given = arguments or ((ast.ContextItem(),) if function.context else ())
        values = tuple(self.value(each) for each in given)
        kind = function.kind_of(values)
        if kind is None:
            raise NotColumnar(f"{name}() of such values")
        return FunctionCall(name, values, kind)

    def _count(self, spots: Sequence[Spot]) -> Expression:
        if len(spots) != 1 or spots[0].is_single:
            raise NotColumnar("count() of what is not repeated")
        return RowCount(self._frame(spots[0]), Presence(spots[0].presence))

    def _exists(self, spots: Sequence[Spot]) -> Expression:
        found: list[Expression] = []
        for spot in spots:
            there = Presence(spot.presence)
            found.append(there if spot.is_single else RowQuantifier(self._frame(spot), True, there))
        return _either(found)

    @_blaming
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
            case ast.Path() | ast.Variable() | ast.ContextItem() if self._is_path(expression):
                return self._exists(self.spots(expression))
            case _:
                found = self.value(expression)
                return found if found.kind is Kind.BOOLEAN else Truth(found)

    def _quantified(self, is_some: bool, name: str, spots: Sequence[Spot], condition: ast.Expression) -> Expression:
        found: list[Expression] = []
        for spot in spots:
            if spot.is_single:
                there: Expression = Presence(spot.presence)
                holds = self.bind(name, spot).truth(condition)
                if not is_some:
                    there = FunctionCall("not", (there,), Kind.BOOLEAN)
                found.append(Junction(is_some, (there, holds)))
            else:
                frame = self._frame(spot)
                inside = self.bind_row(name, spot, frame)
                found.append(RowQuantifier(frame, is_some, inside.truth(condition)))
        return _either(found) if is_some else Junction(True, tuple(found)) if found else _TRUE

    def _compared(self, operator: ComparisonOperator, left: ast.Expression, right: ast.Expression) -> Expression:
        """Some value of one side against some of the other."""
        sides = self._alternatives(left), self._alternatives(right)
        if not all(sides):
            raise NotColumnar("a comparison with a path that leads nowhere")
        found: list[Expression] = []
        for (first, frame), (second, other) in product(*sides):
            if frame is not None and other is not None:
                raise NotColumnar("a comparison of several values with several")
            _check_comparable(first, second)
            self.work.spend()
            test: Expression = ColumnComparison(operator, first, second)
            at = other if frame is None else frame
            found.append(test if at is None else RowQuantifier(at, True, test))
        return _either(found)

    def _alternatives(self, expression: ast.Expression) -> list[tuple[Expression, int | None]]:
        """The values that one side of a comparison may have, each with the frame further in that it stands in."""
        if not self._is_path(expression):
            return [(self.value(expression), None)]
        spots = self.spots(expression)
        return [(PartText(each.text, each.side), None if each.is_single else self._frame(each)) for each in spots]

    def _frame(self, spot: Spot) -> int:
        """The frame of a spot, which is just inside of the one that it is reached from."""
        frame = spot.look.frames[spot.part]
        parent = spot.look.parts[frame].parent
        around = spot.look.frames[parent] if parent >= 0 else -1
        if around != spot.bound or spot.bound != self.frame:
            raise NotColumnar("a path through repeated parts inside of repeated parts")
        return frame

    def let(self, name: str, value: ast.Expression) -> tuple[LookScope, Expression | None]:
        """The scope behind a `let`, and what must be clear for it."""
        if self._is_path(value):
            return self.bind(name, tuple(self.spots(value))), None
        found = self.value(value)
        if found.kind is Kind.CONTENT:
            raise NotColumnar("a `let` of nodes")
        return self.bind(name, found), Clear(found)

    # --- results ------------------------------------------------------------------------------------------

    @_blaming
    def result(self, expression: ast.Expression) -> list[Fragment]:
        """What an expression gives as content, in fragments."""
        self.work.spend()
        match expression:
            case ast.ElementConstructor():
                return self._constructor(expression)
            case ast.Sequence(items):
                if sum(not self._gives_nodes(each) for each in items) > 1:
                    raise NotColumnar("several values side by side")
                return [fragment for each in items for fragment in self.result(each)]
            case ast.Flwor(clauses, where, (), inside):
                return self._looped(clauses, where, inside)
            case ast.Path(start, (*steps, ast.Step("child", ast.KindTest("text"), (), False))):
                return self._each(self.spots(ast.Path(start, tuple(steps))), lambda spot: Taken(spot.text, spot.side))
            case ast.Path() | ast.Variable() if self._is_path(expression):
                return self._each(self.spots(expression), lambda spot: Taken(spot.whole, spot.side))
            case ast.If(condition, then, otherwise) if self._gives_nodes(then) and self._gives_nodes(otherwise):
                one, other = (ContentOf(tuple(self.result(each))) for each in (then, otherwise))
                return [Made(Choice(self.truth(condition), one, other))]
            case _:
                found = self.value(expression)
                if not is_plain(found):
                    raise NotColumnar("text that must be escaped")
                return [Made(found)]

    def _gives_nodes(self, expression: ast.Expression) -> bool:
        match expression:
            case ast.ElementConstructor():
                return True
            case ast.Sequence(items):
                return all(self._gives_nodes(each) for each in items)
            case ast.Flwor(clauses, _, _, result):
                scope = self
                for clause in clauses:
                    bound = clause.source if isinstance(clause, ast.For) else clause.value
                    nodes = scope._is_path(bound)
                    scope = scope.bind(clause.variable, () if nodes else _TRUE)
                return scope._gives_nodes(result)
            case ast.If(_, then, otherwise):
                return self._gives_nodes(then) and self._gives_nodes(otherwise)
            case _:
                return self._is_path(expression)

    def _each(self, spots: Sequence[Spot], fragment: Callable[[Spot], Taken]) -> list[Fragment]:
        """What a path leads to, in document order."""
        if not spots:
            return []
        if len(spots) > 1:
            columns = tuple(each.column for each in map(fragment, spots))
            if not all(each.is_single and each.bound == self.frame and not each.side for each in spots):
                raise NotColumnar("a path to repeated parts of different names")
            return [Made(PartsInOrder(columns))]
        (spot,) = spots
        if spot.is_single:
            return [fragment(spot)]
        frame = self._frame(spot)
        return [Made(RowLoop(frame, None, ContentOf((fragment(replace(spot, bound=frame)),))))]

    def _looped(
        self, clauses: Sequence[ast.For | ast.Let], where: ast.Expression | None, inside: ast.Expression
    ) -> list[Fragment]:
        if not clauses:
            content = self.result(inside)
            if where is None:
                return content
            return [Made(Choice(self.truth(where), ContentOf(tuple(content)), ContentOf(())))]
        first, *others = clauses
        match first:
            case ast.Let(name, value):
                scope, clear = self.let(name, value)
                found = scope._looped(others, where, inside)
                if clear is None:
                    return found
                return [Made(FunctionCall("behind", (clear, ContentOf(tuple(found))), Kind.CONTENT))]
            case ast.For(name, source, None) if self._is_path(source):
                if not self._gives_nodes(ast.Flwor(tuple(clauses), where, (), inside)):
                    raise NotColumnar("a loop whose rounds give values side by side")
                spots = self.spots(source)
                if len(spots) > 1:
                    raise NotColumnar("a loop over parts of different names")
                return [fragment for spot in spots for fragment in self._rounds(name, spot, others, where, inside)]
            case _:
                raise NotColumnar("a loop over values")

    def _rounds(
        self,
        name: str,
        spot: Spot,
        others: Sequence[ast.For | ast.Let],
        where: ast.Expression | None,
        inside: ast.Expression,
    ) -> list[Fragment]:
        if spot.is_single:
            content = ContentOf(tuple(self.bind(name, spot)._looped(others, where, inside)))
            return [Made(Choice(Presence(spot.presence), content, ContentOf(())))]
        frame = self._frame(spot)
        scope = self.bind_row(name, spot, frame)
        condition = None
        if where is not None and not others:
            condition, where = scope.truth(where), None
        return [Made(RowLoop(frame, condition, ContentOf(tuple(scope._looped(others, where, inside)))))]

    # --- constructors -------------------------------------------------------------------------------------

    def _constructor(self, constructor: ast.ElementConstructor) -> list[Fragment]:
        names = [constructor.name, *(each.name for each in constructor.attributes)]
        if constructor.namespaces or any(":" in name for name in names) or len(set(names[1:])) < len(names) - 1:
            raise NotColumnar("a constructor with namespaces")
        tag: list[Fragment] = [f"<{constructor.name}".encode()]
        for attribute in constructor.attributes:
            tag += [f' {attribute.name}="'.encode(), *self._attribute_value(attribute), b'"']
        content: list[Fragment] = []
        for part in constructor.content:
            match part:
                case ast.Characters(value):
                    content.append(escape_text(value).encode())
                case ast.CommentConstructor(value):
                    content.append(f"<!--{value}-->".encode())
                case ast.ElementConstructor():
                    content += self._constructor(part)
                case ast.Enclosed(expression):
                    content += self.result(expression)
        end = f"</{constructor.name}>".encode()
        if not any(content):
            return [*tag, b"/>"]
        if any(isinstance(each, bytes) and each for each in content) or any(map(_is_element, content)):
            return [*tag, b">", *content, end]
        return [*tag, Around(tuple(content), end)]

    def _attribute_value(self, attribute: ast.AttributeConstructor) -> list[Fragment]:
        value: list[Fragment] = []
        for part in attribute.value:
            match part:
                case ast.Characters(text):
                    value.append(escape_attribute(text).encode())
                case ast.Enclosed(expression):
                    found = self.value(expression)
                    if not is_plain(found):
                        raise NotColumnar("text that must be escaped")
                    value.append(Taken(found.column, found.side) if isinstance(found, PartText) else Made(found))
        return value


def _is_element(fragment: Fragment) -> bool:
    """Whether a fragment is certain to give something: an element of its own."""
    return isinstance(fragment, Around)


def _any_of(tests: Sequence[ItemTest]) -> Tree[ItemTest]:
    if not tests:
        return Settled(NO)
    return tests[0] if len(tests) == 1 else Or(tuple(tests))


def _either(found: Sequence[Expression]) -> Expression:
    if not found:
        return Literal(False)
    return found[0] if len(found) == 1 else Junction(False, tuple(found))


def _prefixed(text: Expression, prefix: bytes) -> Tree[ItemTest]:
    """Texts with a prefix lie between it and what follows all of them: no byte of a text is 255."""
    column = text.column if isinstance(text, PartText) else text
    return And((TextTest(column, ">=", prefix), TextTest(column, "<", prefix + AFTER)))


def _column_test(operator: Operator, column: PartColumn, literal: ast.Expression) -> ItemTest:
    if isinstance(literal, ast.String):
        return TextTest(column, operator, literal.value.encode())
    return NumberTest(column, operator, simple_number(literal))


def _check_comparable(left: Expression, right: Expression) -> None:
    match left.kind, right.kind:
        case (one, other) if one in _NUMERIC and other in _NUMERIC:
            for each in (left, right):
                if isinstance(each, Literal):
                    simple_literal(each)
        case (one, other) if one in _TEXTUAL and other in _TEXTUAL:
            pass
        case (Kind.BOOLEAN, Kind.BOOLEAN):
            pass
        case _:
            raise NotColumnar("a comparison of values of different types")


def _is_literal(expression: ast.Expression) -> bool:
    """Whether it is a number or a string as the query wrote it."""
    match expression:
        case ast.String() | ast.Number() | ast.Negation(ast.Number()):
            return True
        case _:
            return False


def _literal(expression: ast.Expression) -> Literal:
    match expression:
        case ast.String(text):
            return Literal(text)
        case ast.Number(text):
            found = number(text)
        case ast.Negation(ast.Number(text)):
            found = -number(text)  # type: ignore[operator]
        case _:
            raise NotColumnar("no literal")
    if isinstance(found, float):
        return Literal(float(found))
    assert isinstance(found, int | Decimal)
    return Literal(found)


def simple_literal(literal: Literal) -> None:
    """Check that a number has few enough digits to be compared as a double."""
    if isinstance(literal.value, int | Decimal):
        _simple(Decimal(literal.value))


def simple_number(literal: ast.Expression) -> float:
    """A number literal of few enough digits to be compared as a double."""
    match literal:
        case ast.Negation(ast.Number() as inside):
            return -simple_number(inside)
        case ast.Number(text):
            return _simple(Decimal(text))
    raise NotColumnar("no number")


def _simple(exact: Decimal) -> float:
    _, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int), "a literal is finite"
    if len(digits) + max(0, exponent) <= MOST_DIGITS and exponent >= -MOST_DIGITS:
        return float(exact)
    raise NotColumnar("a number of so many digits")


def is_plain(expression: Expression) -> bool:
    """Whether the text of a value is written as it is wherever it stands: parts' texts are, so look at literals."""
    literals = (each.value for each in walk(expression) if isinstance(each, Literal))
    texts = (each.encode() for each in literals if isinstance(each, str))
    return all(byte >= 128 or PLAIN[byte] for text in texts for byte in text)
