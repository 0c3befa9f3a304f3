"""A query over columns: a condition that says which items it takes, and fragments that say what each of them gives.

Compiled is what reads plain paths and nothing that can fail in more ways than one:

    for $p in stream("s")/root/item[condition] where condition return result

with conditions of `and`, `or`, `not()` and comparisons of a path with a number or string literal, and results of
constructors, copies and `text()`; or such a path alone.
Any other query is answered item by item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import TypeAlias

from anabranch.columnar.condition import (
    NO,
    YES,
    Both,
    Condition,
    Either,
    Not,
    NumberTest,
    Settled,
    TextTest,
    Then,
    tests,
)
from anabranch.columnar.kernels import MOST_DIGITS
from anabranch.columnar.template import Part, Template
from anabranch.language import ast
from anabranch.stream.serialize import escape_attribute, escape_text


@dataclass(frozen=True, slots=True)
class Taken:
    """Bytes of the item: from `back` before one leaf's text to `ahead` behind that of another, or the same."""

    first: int
    last: int
    back: int = 0
    ahead: int = 0


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
        return _Compiler(root, template).hole(hole)
    except _Other:
        return None


class _Other(Exception):
    """The query is not made for columns."""


@dataclass(frozen=True, slots=True)
class _Compiler:
    root: str
    template: Template

    def hole(self, hole: ast.Expression) -> CompiledQuery:
        match hole:
            case ast.Flwor((ast.For(variable, source, None),), where, (), result):
                conditions, found = self.source(source)
                if not found:
                    return CompiledQuery(_one_after_the_other(conditions), ())
                if len(found) > 1:
                    raise _Other  # several rounds to an item
                scope = _Scope(self.template, variable, found[0])
                if where is not None:
                    conditions.append(scope.condition(where))
                return CompiledQuery(_one_after_the_other(conditions), _joined(scope.result(result)))
            case ast.Path():
                conditions, found = self.source(hole)
                return CompiledQuery(
                    _one_after_the_other(conditions), _joined([_copy(self.template.parts[each]) for each in found])
                )
            case _:
                raise _Other

    def source(self, source: ast.Expression) -> tuple[list[Condition], list[int]]:
        """The conditions in the path's predicates, and the parts that the path leads to."""
        match source:
            case ast.Path(ast.Source("stream"), (top, *steps)) if steps and not top.tail:
                pass
            case _:
                raise _Other
        found = [-1] if _child_name(top) == self.root else []
        conditions: list[Condition] = []
        for step in steps:
            found = [each for parent in found for each in _named_children(self.template, parent, step)]
            for predicate in step.tail:
                if len(found) > 1 or not isinstance(predicate, ast.Predicate):
                    raise _Other
                if found:
                    conditions.append(_Scope(self.template, None, found[0]).condition(predicate.condition))
        return conditions if found else [*conditions, Settled(NO)], found


@dataclass(frozen=True, slots=True)
class _Scope:
    """What names mean: a variable, or the context item where it is None, is one part of the template."""

    template: Template
    variable: str | None
    part: int

    def condition(self, expression: ast.Expression) -> Condition:
        match expression:
            case ast.And(operands):
                return Both(tuple(self.condition(each) for each in operands))
            case ast.Or(operands):
                return Either(tuple(self.condition(each) for each in operands))
            case ast.Call("not" | "fn:not", (operand,)):
                return Not(self.condition(operand))
            case ast.Comparison(operator, left, right):
                if _is_literal(left):
                    return self._test(_TURNED[operator], right, left)
                return self._test(operator, left, right)
            case ast.Path():
                return Settled(YES if self.parts(expression) else NO)
            case _:
                raise _Other

    def _test(self, operator: ast.ComparisonOperator, path: ast.Expression, literal: ast.Expression) -> Condition:
        """A comparison holds if it holds for one of the elements at the path."""
        tests: list[Condition] = []
        for part in self.parts(path):
            leaf = self._leaf(part)
            if isinstance(literal, ast.String):
                tests.append(TextTest(leaf, operator, literal.value.encode()))
            else:
                tests.append(NumberTest(leaf, operator, _simple_number(literal)))
        return Either(tuple(tests)) if tests else Settled(NO)

    def result(self, expression: ast.Expression) -> list[Fragment]:
        match expression:
            case ast.ElementConstructor():
                return self._constructor(expression)
            case ast.Sequence(items):
                return [fragment for each in items for fragment in self.result(each)]
            case ast.Path(start, (*steps, ast.Step("child", ast.KindTest("text"), (), False))):
                owners = self.parts(ast.Path(start, tuple(steps)))
                return [Taken(leaf, leaf) for leaf in map(self._leaf, owners)]
            case ast.Path() | ast.Variable():
                return [_copy(self.template.parts[each]) for each in self.parts(expression)]
            case _:
                raise _Other

    def _constructor(self, constructor: ast.ElementConstructor) -> list[Fragment]:
        names = [constructor.name, *(each.name for each in constructor.attributes)]
        if constructor.namespaces or any(":" in name for name in names) or len(set(names[1:])) < len(names) - 1:
            raise _Other
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
                    for number, each in enumerate(self.parts(expression)):
                        leaf = self._leaf(each)
                        value += [b" " if number else b"", Taken(leaf, leaf)]
        return value

    def parts(self, expression: ast.Expression) -> list[int]:
        """The parts at a plain path."""
        match expression:
            case ast.Variable(name) if name == self.variable:
                return [self.part]
            case ast.ContextItem() if self.variable is None:
                return [self.part]
            case ast.Path(start, steps):
                found = self.parts(ast.ContextItem() if start is None else start)
                for step in steps:
                    if step.tail:
                        raise _Other
                    found = [each for parent in found for each in _named_children(self.template, parent, step)]
                return found
            case _:
                raise _Other

    def _leaf(self, part: int) -> int:
        leaf = self.template.parts[part].leaf
        if leaf is None:
            raise _Other
        return leaf


_TURNED: dict[ast.ComparisonOperator, ast.ComparisonOperator] = {
    "=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=",
}  # fmt: skip


def _child_name(step: ast.Step) -> str:
    match step:
        case ast.Step("child", ast.NameTest(local, None), _, False) if local != "*":
            return local
        case _:
            raise _Other


def _named_children(template: Template, parent: int, step: ast.Step) -> list[int]:
    name = _child_name(step)
    return [each for each in template.children(parent) if template.parts[each].name == name]


def _is_literal(expression: ast.Expression) -> bool:
    return isinstance(expression, ast.String | ast.Number | ast.Negation)


def _simple_number(literal: ast.Expression) -> float:
    match literal:
        case ast.Negation(ast.Number() as number):
            return -_simple_number(number)
        case ast.Number(text):
            exact = Decimal(text)
            _, digits, exponent = exact.as_tuple()
            assert isinstance(exponent, int), "a literal is finite"
            if len(digits) + max(0, exponent) <= MOST_DIGITS and exponent >= -MOST_DIGITS:
                return float(exact)
    raise _Other


def _one_after_the_other(conditions: Sequence[Condition]) -> Condition:
    return reduce(Then, conditions) if conditions else Settled(YES)


def _copy(part: Part) -> Fragment:
    return part.fixed or Taken(part.first, part.last, part.back, part.ahead)


def _joined(fragments: Sequence[Fragment]) -> tuple[Fragment, ...]:
    """With neighbours that are fixed made one."""
    found: list[Fragment] = []
    for each in fragments:
        if isinstance(each, bytes) and found and isinstance(found[-1], bytes):
            found[-1] += each
        elif each:
            found.append(each)
    return tuple(found)
