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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from anabranch.columnar.expressions.computing import TEXTUAL, TRUE, ValueScope
from anabranch.columnar.expressions.scope import (
    NotColumnar,
    Spot,
    blaming,
    double_of,
    is_literal,
    literal_of,
    simple_number,
)
from anabranch.columnar.expressions.tree import (
    Choice,
    ColumnComparison,
    ConstantValue,
    ContentOf,
    Expression,
    Fragment,
    FunctionCall,
    Junction,
    Kind,
    Made,
    PartsInOrder,
    PartText,
    Presence,
    RowAggregate,
    RowLoop,
    RowQuantifier,
    Taken,
    Wrapped,
    walk,
)
from anabranch.columnar.match.condition import NO, ItemTest, NumberTest, PresenceTest, Settled, TextTest
from anabranch.columnar.match.forms import AFTER
from anabranch.columnar.scan.kernels import SIMPLE
from anabranch.columnar.scan.look import PartColumn
from anabranch.columnar.scan.template import PLAIN
from anabranch.language import ast
from anabranch.logic import MIRRORED, And, Not, Operator, Or, Tree
from anabranch.stream.serialize import escape_attribute, escape_text


@dataclass(frozen=True, slots=True)
class LookScope(ValueScope):
    """Compiles the conditions and results of queries."""

    @blaming
    def condition(self, expression: ast.Expression) -> Tree[ItemTest]:
        """A condition on one item, as far as possible in tests against constants, which an index can find."""
        match expression:
            case ast.And(operands):
                return And(tuple(self.condition(each) for each in operands))
            case ast.Or(operands):
                return Or(tuple(self.condition(each) for each in operands))
            case ast.Call("not" | "fn:not", (operand,)):
                return Not(self.condition(operand))
            case ast.Call("boolean" | "fn:boolean" | "exists" | "fn:exists", (operand,)) if self.is_path(operand):
                return self._presence(self.spots(operand))
            case ast.Call("empty" | "fn:empty", (operand,)) if self.is_path(operand):
                return Not(self._presence(self.spots(operand)))
            case ast.Call("starts-with" | "fn:starts-with", (text, ast.String(value))) if value:
                found = self.value(text)
                if found.kind in TEXTUAL and not isinstance(found, ConstantValue):
                    return _prefixed(found, value.encode())
            case ast.Comparison(operator, left, right):
                if is_literal(left) and not is_literal(right):
                    operator, left, right = MIRRORED[operator], right, left
                if is_literal(right):
                    return self._tested(operator, left, right)
            case ast.Quantified("some", ((name, source),), ast.Comparison(operator, left, right)):
                inside = self.bind(name, tuple(self.spots(source)))
                if is_literal(left):
                    operator, left, right = MIRRORED[operator], right, left
                if is_literal(right) and _starts_from(left, name):
                    return inside._tested(operator, left, right)
            case ast.Path() | ast.Variable() if self.is_path(expression):
                return self._presence(self.spots(expression))
        return NumberTest(self.truth(expression), "=", 1.0)

    def _presence(self, spots: Sequence[Spot]) -> Tree[ItemTest]:
        tests: list[ItemTest] = []
        for spot in spots:
            if spot.is_single:
                tests.append(PresenceTest(spot.presence))
            else:
                tests.append(NumberTest(RowQuantifier(self.inner_frame(spot), True, Presence(spot.presence)), "=", 1.0))
        return _any_of(tests)

    def _tested(self, operator: Operator, left: ast.Expression, right: ast.Expression) -> Tree[ItemTest]:
        """A comparison with a literal holds if it holds for one of the values."""
        if not self.is_path(left):
            return self._value_tested(operator, self.value(left), right)
        tests: list[ItemTest] = []
        for spot in self.spots(left):
            if spot.is_single:
                tests.append(_column_test(operator, spot.text, right))
                continue
            frame, text = self.inner_frame(spot), PartText(spot.text, spot.side)
            if isinstance(right, ast.String) or operator in ("=", "!="):
                found = ColumnComparison(operator, text, literal_of(right))
                tests.append(NumberTest(RowQuantifier(frame, True, found), "=", 1.0))
            else:
                extreme = RowAggregate(frame, "max" if operator in (">", ">=") else "min", None, text)
                tests.append(NumberTest(extreme, operator, simple_number(right)))
        return _any_of(tests)

    def _value_tested(self, operator: Operator, left: Expression, right: ast.Expression) -> Tree[ItemTest]:
        match left.kind, isinstance(right, ast.String):
            case (Kind.UNTYPED | Kind.STRING, True):
                return TextTest(left, operator, right.value.encode()) if isinstance(right, ast.String) else Settled(NO)
            case (Kind.DOUBLE, False) if (
                not isinstance(left, ConstantValue) and operator == "!="
            ):  # NaN may be among them
                return NumberTest(ColumnComparison(operator, left, literal_of(right)), "=", 1.0)
            case (Kind.DOUBLE, False) if not isinstance(left, ConstantValue):
                return NumberTest(left, operator, double_of(right))
            case (Kind.UNTYPED | Kind.INTEGER, False) if not isinstance(left, ConstantValue):
                number = simple_number(right)
                if left.kind is Kind.INTEGER and abs(number) >= SIMPLE:
                    raise NotColumnar("a number of so many digits")
                return NumberTest(left, operator, number)
            case _:
                raise NotColumnar("a comparison of values of different types")

    # --- results ------------------------------------------------------------------------------------------

    @blaming
    def result(self, expression: ast.Expression) -> list[Fragment]:
        """What an expression gives as content, in fragments."""
        self.work.spend()
        match expression:
            case ast.ElementConstructor():
                return self._constructor(expression)
            case ast.Sequence(items):
                if sum(not self._gives_nodes(each) for each in items) > 1:
                    raise NotColumnar("several values side by side", "elements around them")
                return [fragment for each in items for fragment in self.result(each)]
            case ast.Flwor(clauses, where, (), inside):
                return self.rounds(clauses, where, inside)
            case ast.Path(start, (*steps, ast.Step("child", ast.KindTest("text"), (), False))):
                return self._each(self.with_text_nodes(start, steps), lambda spot: Taken(spot.text, spot.side))
            case ast.Path() | ast.Variable() if self.is_path(expression):
                return self._each(self.spots(expression), lambda spot: Taken(spot.whole, spot.side))
            case ast.If(condition, then, otherwise):
                one, other = (ContentOf(tuple(self.result(each))) for each in (then, otherwise))
                return [Made(Choice(self.truth(condition), one, other))]
            case _:
                found = self.value(expression)
                if not is_plain(found):
                    raise NotColumnar("text of the query that must be escaped")
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
                    nodes = scope.is_path(bound)
                    scope = scope.bind(clause.variable, () if nodes else TRUE)
                return scope._gives_nodes(result)
            case ast.If(_, then, otherwise):
                return self._gives_nodes(then) and self._gives_nodes(otherwise)
            case _:
                return self.is_path(expression)

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
        frames = self.inner_frames(spot)
        found: Fragment = fragment(replace(spot, bound=frames[-1]))
        for frame in reversed(frames):
            found = Made(RowLoop(frame, None, ContentOf((found,))))
        return [found]

    def rounds(
        self, clauses: Sequence[ast.For | ast.Let], where: ast.Expression | None, inside: ast.Expression
    ) -> list[Fragment]:
        """What the rounds of a loop give, one behind the other; without clauses there is one."""
        if not clauses:
            content = self.result(inside)
            if where is None:
                return content
            return [Made(Choice(self.truth(where), ContentOf(tuple(content)), ContentOf(())))]
        first, *others = clauses
        match first:
            case ast.Let(name, value):
                scope, clear = self.let(name, value)
                found = scope.rounds(others, where, inside)
                if clear is None:
                    return found
                return [Made(FunctionCall("behind", (clear, ContentOf(tuple(found))), Kind.CONTENT))]
            case ast.For(name, source, None) if self.is_path(source):
                if not self._gives_nodes(ast.Flwor(tuple(clauses), where, (), inside)):
                    raise NotColumnar("a loop whose rounds give values", "elements around them")
                spots = self.spots(source)
                if len(spots) > 1:
                    raise NotColumnar("a loop over parts of different names", "a loop for each name")
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
            content = ContentOf(tuple(self.bind(name, spot).rounds(others, where, inside)))
            return [Made(Choice(Presence(spot.presence), content, ContentOf(())))]
        frame = self.inner_frame(spot)
        scope = self.bind_row(name, spot, frame)
        condition: Expression | None = None if spot.part == frame else Presence(spot.presence)
        if where is not None and not others:
            holds, where = scope.truth(where), None
            condition = holds if condition is None else Junction(True, (condition, holds))
        return [Made(RowLoop(frame, condition, ContentOf(tuple(scope.rounds(others, where, inside)))))]

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
                case ast.Enclosed(expression) if not content and self._is_new_attribute(expression, names):
                    (spot,) = self.spots(expression)
                    tag += _copied_attribute(spot)
                    names.append(spot.name)
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
        return [*tag, Wrapped(tuple(content), end)]

    def _is_new_attribute(self, expression: ast.Expression, names: Sequence[str]) -> bool:
        """Whether an expression leads to an attribute, copied to an element that has none of that name."""
        match expression:
            case ast.Path(_, (*_, ast.Step(test=ast.KindTest()))):  # those are no attributes
                return False
        spots = self.spots(expression) if self.is_path(expression) else []
        return len(spots) == 1 and spots[0].is_attribute and spots[0].is_single and spots[0].name not in names[1:]

    def _attribute_value(self, attribute: ast.AttributeConstructor) -> list[Fragment]:
        value: list[Fragment] = []
        for part in attribute.value:
            match part:
                case ast.Characters(text):
                    value.append(escape_attribute(text).encode())
                case ast.Enclosed(expression):
                    found = self.value(expression)
                    if not is_plain(found):
                        raise NotColumnar("text of the query that must be escaped")
                    value.append(Taken(found.column, found.side) if isinstance(found, PartText) else Made(found))
        return value


def _copied_attribute(spot: Spot) -> list[Fragment]:
    written = ContentOf((f' {spot.name}="'.encode(), Taken(spot.text, spot.side), b'"'))
    return [Made(Choice(Presence(spot.presence), written, ContentOf(())))]


def _is_element(fragment: Fragment) -> bool:
    """Whether a fragment is certain to give something: an element of its own."""
    return isinstance(fragment, Wrapped)


def _starts_from(expression: ast.Expression, name: str) -> bool:
    """Whether it is a variable, or a path from there."""
    start = expression.start if isinstance(expression, ast.Path) else expression
    return isinstance(start, ast.Variable) and start.name == name


def _any_of(tests: Sequence[ItemTest]) -> Tree[ItemTest]:
    if not tests:
        return Settled(NO)
    return tests[0] if len(tests) == 1 else Or(tuple(tests))


def _prefixed(text: Expression, prefix: bytes) -> Tree[ItemTest]:
    """Texts with a prefix lie between it and what follows all of them: no byte of a text is 255."""
    column = text.column if isinstance(text, PartText) else text
    return And((TextTest(column, ">=", prefix), TextTest(column, "<", prefix + AFTER)))


def _column_test(operator: Operator, column: PartColumn, literal: ast.Expression) -> ItemTest:
    if isinstance(literal, ast.String):
        return TextTest(column, operator, literal.value.encode())
    return NumberTest(column, operator, simple_number(literal))


def is_plain(expression: Expression) -> bool:
    """Whether the text of a value is written as it is wherever it stands: parts' texts are, so look at literals."""
    literals = (each.value for each in walk(expression) if isinstance(each, ConstantValue))
    texts = (each.encode() for each in literals if isinstance(each, str))
    return all(byte >= 128 or PLAIN[byte] for text in texts for byte in text)
