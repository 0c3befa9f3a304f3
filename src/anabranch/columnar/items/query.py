"""A query over columns: a condition that says which items it takes, and fragments that say what each of them gives.

Compiled is what reads plain paths and nothing that can fail in more ways than one:

    for $p in stream("s")/root/item[condition] where condition return result

with conditions of `and`, `or`, `not()` and comparisons of a path with a number or string literal, and results of
constructors, copies, `text()`, and loops over paths of the item; or such a path alone.
`return if (condition) then result else ()`, as abstract queries have it, is the same as `where`.
Any other query is answered item by item.

Loops inside loops are written out here, so their number is bounded, and a query beyond that is left to the law, which
counts its steps (LAWS 2.6).
What is compiled never comes near the limit there: the law visits for an item the nodes that are visited here for its
template, once each, at most `MOST_VISITS`, and copies no more than `MOST_VISITS // COPIED` times; an item that fits a
template has at most `LONGEST_FITTING` bytes (`columnar/scan/shred.py`), which are 256 steps to copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeAlias

from anabranch.columnar.match.condition import (
    ALWAYS,
    NO,
    YES,
    Condition,
    ItemTest,
    NumberTest,
    Settled,
    TextTest,
    tests,
)
from anabranch.columnar.scan.kernels import MOST_DIGITS
from anabranch.columnar.scan.template import Template
from anabranch.language import ast
from anabranch.logic import MIRRORED, And, Not, Operator, Or, Tree
from anabranch.stream.serialize import escape_attribute, escape_text

MOST_VISITS = 100_000
COPIED = 100
"""So many visits is a copy worth."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Bytes of the item: from `back` before one leaf's text to `ahead` behind that of another, or the same."""

    first: int
    last: int
    back: int = 0
    ahead: int = 0
    side: int = 0
    """Which of the items of a pair it is, in a join."""

    def meets(self, other: Taken, template: Template) -> bool:
        """Whether the other begins in the item where this ends."""
        follows = other.side == self.side and other.first == self.last + 1
        return follows and self.ahead + other.back == len(template.pieces[other.first])


Fragment: TypeAlias = bytes | Taken


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """What a query takes and gives, for items that fit the template it was compiled for."""

    condition: Condition
    fragments: tuple[Fragment, ...]

    @property
    def numbers(self) -> set[int]:
        """The leaves whose numbers it looks at."""
        return {each.leaf for each in tests(self.condition) if isinstance(each, NumberTest)}

    @property
    def leaves(self) -> set[int]:
        """All leaves it looks at or copies."""
        copied = {leaf for each in self.fragments if isinstance(each, Taken) for leaf in (each.first, each.last)}
        return copied | {each.leaf for each in tests(self.condition)}


def compile_query(hole: ast.Expression, root: str, template: Template) -> CompiledQuery | None:
    """Compile what a query does with one item; None where it is not made for columns.

    `root` is the name of the stream's root; neither it nor the query may stand in a namespace.
    """
    try:
        return _compiled(hole, root, template)
    except Other:
        return None


class Other(Exception):
    """The query is not made for columns."""


class Visits:
    """Counts what is written out for one template."""

    def __init__(self) -> None:
        self._left = MOST_VISITS

    def spend(self, visits: int) -> None:
        """Visit so many elements of the template; `Other` where they become too many."""
        self._left -= visits
        if self._left < 0:
            raise Other


def _compiled(hole: ast.Expression, root: str, template: Template) -> CompiledQuery:
    match hole:
        case ast.Flwor((ast.For(variable, source, None),), where, (), result):
            conditions, found = source_spots(source, root, template)
            if not found:
                return CompiledQuery(tuple(conditions) or ALWAYS, ())
            if len(found) > 1:
                raise Other  # several rounds to an item
            scope = Scope({variable: found[0]})
            if where is not None:
                conditions.append(scope.condition(where))
            while isinstance(result, ast.If) and result.otherwise == ast.Sequence(()):
                conditions.append(scope.condition(result.condition))
                result = result.then
            return CompiledQuery(tuple(conditions) or ALWAYS, joined(scope.result(result), (template,)))
        case ast.Path():
            conditions, found = source_spots(hole, root, template)
            return CompiledQuery(tuple(conditions) or ALWAYS, joined([each.copy for each in found], (template,)))
        case _:
            raise Other


def source_spots(
    source: ast.Expression, root: str, template: Template, side: int = 0
) -> tuple[list[Tree[ItemTest]], list[Spot]]:
    """The conditions in the predicates of a path over a stream, and what the path leads to."""
    match source:
        case ast.Path(ast.Source("stream"), (top, *steps)) if steps and not top.tail:
            pass
        case _:
            raise Other
    found = [Spot(template, -1, side)] if _child_name(top) in (root, "*") else []
    conditions: list[Tree[ItemTest]] = []
    for step in steps:
        found = [each for parent in found for each in parent.children(step)]
        for predicate in step.tail:
            if len(found) > 1 or not isinstance(predicate, ast.Predicate):
                raise Other
            if found:
                conditions.append(Scope({None: found[0]}).condition(predicate.condition))
    return conditions if found else [*conditions, Settled(NO)], found


@dataclass(frozen=True, slots=True)
class Spot:
    """An element of all items that fit a template, by the number of its part; -1 is the root around them."""

    template: Template
    number: int
    side: int = 0

    @property
    def leaf(self) -> int:
        """The gap that is its text; only what holds nothing else has one."""
        leaf = self.template.parts[self.number].leaf
        if leaf is None:
            raise Other
        return leaf

    @property
    def copy(self) -> Fragment:
        """All of it."""
        part = self.template.parts[self.number]
        return part.fixed or Taken(part.first, part.last, part.back, part.ahead, self.side)

    @property
    def text(self) -> Fragment:
        """What it holds."""
        return Taken(self.leaf, self.leaf, side=self.side)

    @property
    def nodes(self) -> int:
        """At least as many as there are nodes in it."""
        part = self.template.parts[self.number]
        return len(part.fixed) if part.fixed else sum(map(len, self.template.pieces[part.first : part.last + 2]))

    def children(self, step: ast.Step) -> list[Spot]:
        """What a step leads to."""
        name, parts = _child_name(step), self.template.parts
        found = (each for each in self.template.children(self.number) if name in (parts[each].name, "*"))
        return [Spot(self.template, each, self.side) for each in found]


@dataclass(frozen=True, slots=True)
class Scope:
    """What names stand for; None is the name of the context item."""

    names: Mapping[str | None, Spot]
    visits: Visits = field(default_factory=Visits)

    def condition(self, expression: ast.Expression) -> Tree[ItemTest]:
        """A condition on one item."""
        match expression:
            case ast.And(operands):
                return And(tuple(self.condition(each) for each in operands))
            case ast.Or(operands):
                return Or(tuple(self.condition(each) for each in operands))
            case ast.Call("not" | "fn:not", (operand,)):
                return Not(self.condition(operand))
            case ast.Comparison(operator, left, right):
                if is_literal(left):
                    return self._test(MIRRORED[operator], right, left)
                return self._test(operator, left, right)
            case ast.Path():
                return Settled(YES if self.spots(expression) else NO)
            case _:
                raise Other

    def _test(self, operator: Operator, path: ast.Expression, literal: ast.Expression) -> Tree[ItemTest]:
        """A comparison holds if it holds for one of the elements at the path."""
        tests: list[ItemTest] = []
        for spot in self.spots(path):
            if isinstance(literal, ast.String):
                tests.append(TextTest(spot.leaf, operator, literal.value.encode()))
            else:
                tests.append(NumberTest(spot.leaf, operator, simple_number(literal)))
        return Or(tuple(tests)) if tests else Settled(NO)

    def result(self, expression: ast.Expression) -> list[Fragment]:
        """What an expression gives, in fragments."""
        match expression:
            case ast.ElementConstructor():
                return self._constructor(expression)
            case ast.Sequence(items):
                return [fragment for each in items for fragment in self.result(each)]
            case ast.Flwor((ast.For(variable, ast.Path() as path, None),), None, (), inside):
                scopes = (Scope({**self.names, variable: each}, self.visits) for each in self.spots(path))
                return [fragment for each in scopes for fragment in each.result(inside)]
            case ast.Path(start, (*steps, ast.Step("child", ast.KindTest("text"), (), False))):
                return [self._text(each) for each in self.spots(ast.Path(start, tuple(steps)))]
            case ast.Path() | ast.Variable():
                return [self._copy(each) for each in self.spots(expression)]
            case _:
                raise Other

    def _copy(self, spot: Spot) -> Fragment:
        fragment = spot.copy
        self.visits.spend(COPIED + spot.nodes)
        return fragment

    def _text(self, spot: Spot) -> Fragment:
        self.visits.spend(COPIED)
        return spot.text

    def _constructor(self, constructor: ast.ElementConstructor) -> list[Fragment]:
        names = [constructor.name, *(each.name for each in constructor.attributes)]
        if constructor.namespaces or any(":" in name for name in names) or len(set(names[1:])) < len(names) - 1:
            raise Other
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
        if not any(content):
            return [*tag, b"/>"]
        return [*tag, b">", *content, f"</{constructor.name}>".encode()]

    def _attribute_value(self, attribute: ast.AttributeConstructor) -> list[Fragment]:
        value: list[Fragment] = []
        for part in attribute.value:
            match part:
                case ast.Characters(text):
                    value.append(escape_attribute(text).encode())
                case ast.Enclosed(expression):
                    for number, each in enumerate(self.spots(expression)):
                        value += [b" " if number else b"", self._text(each)]
        return value

    def spots(self, expression: ast.Expression) -> list[Spot]:
        """What a plain path leads to."""
        match expression:
            case ast.Variable(name) if name in self.names:
                self.visits.spend(1)
                return [self.names[name]]
            case ast.ContextItem() if None in self.names:
                self.visits.spend(1)
                return [self.names[None]]
            case ast.Path(start, steps):
                found = self.spots(ast.ContextItem() if start is None else start)
                for step in steps:
                    if step.tail:
                        raise Other
                    found = [each for parent in found for each in parent.children(step)]
                    self.visits.spend(1 + len(found))
                return found
            case _:
                raise Other


def _child_name(step: ast.Step) -> str:
    """The name that a step asks for; `*` for any."""
    match step:
        case ast.Step("child", ast.NameTest(local, None), _, False):
            return local
        case _:
            raise Other


def is_literal(expression: ast.Expression) -> bool:
    """Whether it is a number or a string as the query wrote it."""
    return isinstance(expression, ast.String | ast.Number | ast.Negation)


def simple_number(literal: ast.Expression) -> float:
    """A number literal of few enough digits to be compared as a double."""
    match literal:
        case ast.Negation(ast.Number() as number):
            return -simple_number(number)
        case ast.Number(text):
            exact = Decimal(text)
            _, digits, exponent = exact.as_tuple()
            assert isinstance(exponent, int), "a literal is finite"
            if len(digits) + max(0, exponent) <= MOST_DIGITS and exponent >= -MOST_DIGITS:
                return float(exact)
    raise Other


def joined(fragments: Sequence[Fragment], templates: Sequence[Template]) -> tuple[Fragment, ...]:
    """With neighbours that are fixed made one, and those that are neighbours in the item; templates are by side."""
    found: list[Fragment] = []
    for each in fragments:
        match found[-1] if found else None, each:
            case bytes() as before, bytes():
                found[-1] = before + each
            case Taken() as before, Taken() if before.meets(each, templates[before.side]):
                found[-1] = replace(before, last=each.last, ahead=each.ahead)
            case _ if each:
                found.append(each)
    return tuple(found)
