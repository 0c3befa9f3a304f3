"""Loops over nodes of which a query looks at children with one plain text each, by their names: the usual updates.

`for $q in .../ticker where $q/quote >= $q/quote#1 * 1.1 order by $q/quote return <r>{ $q/name, $q/quote }</r>` needs of
a ticker three texts.
They are found in one pass over what is in the node, and closures compute with texts and doubles instead of lists of
nodes.
What these closures do follows `kept_nodes.py` case by case; whatever else a node holds, and whatever else a query asks,
is `Unusual`, and the closures over nodes are asked (`loops.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

from anabranch.branch.display.compiled_loops.kept_nodes import Unusual
from anabranch.branch.display.compiled_loops.steps import name_of
from anabranch.language import ast
from anabranch.law.history.chains import Content, Lived, Version
from anabranch.law.paths import base_of
from anabranch.logic import COMPARES
from anabranch.stream.serialize import escape_attribute, escape_text
from anabranch.stream.tree import Child, Element, Text
from anabranch.values.arithmetic import calculate_doubles
from anabranch.values.atomic import OrderRank, Untyped, WrittenDouble, literal, order_rank, spell, to_double
from anabranch.values.numbers import exact_number
from anabranch.values.operators import ArithmeticOperator, ComparisonOperator

_LONGEST = 1_000
"""The longest text that is read here: what longer ones cost is counted elsewhere."""
_MOST_NODES = 32
"""The most nodes that are looked at in one node of the loop, or in one version there."""
_MOST_ELEMENTS = 4_096
PLAIN_WORK = 8
"""The work of a round here, as that of closures over as many nodes is counted."""

Texts: TypeAlias = list[str | None]
"""The texts of a node, each under the number of a leaf; None where there is no such child."""
Double: TypeAlias = Callable[[Texts], float | None]
Condition: TypeAlias = Callable[[Texts], bool]
Written: TypeAlias = Callable[[Texts], str]
Operand: TypeAlias = Callable[[Texts], Any]


class _ChildText(NamedTuple):
    """A child of a name: that of now, or that of so many versions ago."""

    name: str
    versions: int


class PlainTexts:
    """Reads the texts of some children of a node: the *leaves*."""

    def __init__(self) -> None:
        self._leaves: dict[_ChildText, int] = {}
        self._now: dict[str, int] = {}
        """By name the leaves of now."""
        self._before: list[tuple[int, str, int]] = []
        """The others: how many versions ago, the name, and the number."""
        self._elements: dict[Child, int] = {}
        """By element without attributes, which entries share: the number of its leaf, or -1."""

    def leaf(self, name: str, versions: int) -> int:
        """The number of a leaf."""
        leaf = _ChildText(name, versions)
        if leaf not in self._leaves:
            number = self._leaves[leaf] = len(self._leaves)
            if versions:
                self._before.append((versions, name, number))
            else:
                self._now[name] = number
        return self._leaves[leaf]

    def read(self, content: Sequence[Content]) -> Texts:
        """The texts of all leaves in the content of a node."""
        if len(content) > _MOST_NODES:
            raise Unusual
        texts: Texts = [None] * len(self._leaves)
        known = self._elements
        for each in content:
            if type(each) is Lived:
                number = known.get(each.node)
                if number is None:
                    number = self._number(each.node)
                if number >= 0:
                    _put(texts, number, each)
                continue
            versions = each.versions  # type: ignore[union-attr]  # it is a chain
            lives = [_lives(version) for version in (versions if self._before else versions[-1:])]
            if not lives:
                continue
            for inner in lives[-1]:
                number = known.get(inner.node)
                if number is None:
                    number = self._number(inner.node)
                if number >= 0:
                    _put(texts, number, inner)
            for ago, name, number in self._before:
                for inner in lives[-1 - ago] if ago < len(lives) else ():
                    node = inner.node
                    if type(node) is Element and node.name.local == name and not node.name.uri:
                        if node.attributes or node.mark is not None:
                            raise Unusual
                        _put(texts, number, inner)
        return texts

    def _number(self, node: Child) -> int:
        """The number of the leaf of now that a node is; -1 for none."""
        if type(node) is not Element or node.name.uri:
            return -1
        number = self._now.get(node.name.local, -1)
        if node.attributes or node.mark is not None or node.message is not None:
            if number >= 0:
                raise Unusual
            return -1
        if len(self._elements) >= _MOST_ELEMENTS:
            self._elements.clear()
        self._elements[node] = number
        return number


def _lives(version: Version) -> list[Lived]:
    """What a version of a region holds; what one with regions directly in it shows is found by the law."""
    content = version.content
    if len(content) > _MOST_NODES:
        raise Unusual
    for each in content:
        if type(each) is not Lived:
            raise Unusual
    return cast("list[Lived]", content)


def _put(texts: Texts, number: int, lived: Lived) -> None:
    """Take the text of a leaf, the only one of its name."""
    if texts[number] is not None or lived.namespaces or len(lived.content) != 1:
        raise Unusual
    node = lived.content[0].node if type(lived.content[0]) is Lived else None
    if type(node) is not Text or node.measure is not None or len(node.value) > _LONGEST:
        raise Unusual
    texts[number] = node.value


PlainRound: TypeAlias = Callable[[Lived], tuple[tuple[OrderRank, ...], str] | None]
"""The result of a node: its ranks, and its text, which begins and ends with nodes; None where it has none."""


def plain_round(
    variable: str, where: ast.Expression | None, order: Sequence[ast.OrderKey], result: ast.Expression
) -> PlainRound:
    """The round of a loop as a function of the texts in a node; `Unusual` where it is none."""
    return _TextCompiler(variable).round(where, order, result)


class _TextCompiler:
    """Compiles expressions over the texts in a node."""

    def __init__(self, variable: str) -> None:
        self._variable = variable
        self._texts = PlainTexts()

    def round(self, where: ast.Expression | None, order: Sequence[ast.OrderKey], result: ast.Expression) -> PlainRound:
        holds = None if where is None else self._condition(where)
        keys = [self._rank(each.key) for each in order]
        written = self._element(result) if isinstance(result, ast.ElementConstructor) else self._nodes(result)
        read = self._texts.read
        (key,) = keys if len(keys) == 1 else (None,)

        def plainly(node: Lived) -> tuple[tuple[OrderRank, ...], str] | None:
            texts = read(node.content)
            if holds is not None and not holds(texts):
                return None
            ranks = (key(texts),) if key is not None else tuple([each(texts) for each in keys])
            text = written(texts)
            return (ranks, text) if text else None

        return plainly

    # --- values -------------------------------------------------------------------------------------------

    def _child(self, expression: ast.Expression) -> tuple[int, str] | None:
        """The number and the name of the leaf that a path finds; None for another expression."""
        if not isinstance(expression, ast.Path) or not isinstance(expression.start, ast.Variable):
            return None
        base = base_of(expression)
        if not isinstance(base, ast.Variable) or base.name != self._variable or len(expression.steps) != 1:
            return None
        (step,) = expression.steps
        if step.axis != "child" or step.deep or not isinstance(step.test, ast.NameTest):
            return None
        match step.tail:
            case ():
                versions = 0
            case (ast.Qualifier("version", False, ast.Number(text)),) if text.isdecimal() and int(text) > 0:
                versions = int(text)
            case _:
                return None
        name = name_of(step)
        return self._texts.leaf(name, versions), name

    def _double(self, expression: ast.Expression) -> Double:
        """An expression whose value is a double, or nothing."""
        found = self._child(expression)
        if found is not None:
            number, _ = found

            def read(texts: Texts) -> float | None:
                text = texts[number]
                return None if text is None else _double(text)

            return read
        match expression:
            case ast.Arithmetic(first, rest):
                return self._arithmetic(first, rest)
            case _:
                raise Unusual

    def _arithmetic(self, first: ast.Expression, rest: Sequence[tuple[ArithmeticOperator, ast.Expression]]) -> Double:
        """A chain of operations, each with an operand that is no literal, so that each is one on doubles."""
        operands = [first, *(each for _, each in rest)]
        if isinstance(first, ast.Number) and isinstance(operands[1], ast.Number):
            raise Unusual
        doubles = [_constant(each) if isinstance(each, ast.Number) else self._double(each) for each in operands]
        found = doubles[0]
        for (operator, _), double in zip(rest, doubles[1:], strict=True):
            found = _calculated(operator, found, double)
        return found

    def _condition(self, expression: ast.Expression) -> Condition:
        match expression:
            case ast.Comparison(operator, left, right):
                return self._comparison(operator, left, right)
            case ast.And(operands):
                every = [self._condition(each) for each in operands]
                return lambda texts: all(_truths(every, texts))
            case ast.Or(operands):
                some = [self._condition(each) for each in operands]
                return lambda texts: any(_truths(some, texts))
            case _:
                raise Unusual

    def _comparison(self, operator: ComparisonOperator, left: ast.Expression, right: ast.Expression) -> Condition:
        compares = COMPARES[operator]
        one, other = self._child(left), self._child(right)
        if one is not None and other is not None:
            exactly = str if operator in ("=", "!=") else _exact
            return _of_both(compares, _changed(one[0], exactly), _changed(other[0], exactly))
        if one is not None and isinstance(right, ast.Number | ast.String):
            read, value = _beside(right)
            return _of_both(compares, _changed(one[0], read), lambda texts: value)
        if other is not None and isinstance(left, ast.Number | ast.String):
            read, value = _beside(left)
            return _of_both(compares, lambda texts: value, _changed(other[0], read))
        if isinstance(left, ast.Number) and isinstance(right, ast.Number):
            raise Unusual
        doubles = [_constant(each) if isinstance(each, ast.Number) else self._double(each) for each in (left, right)]
        return _of_both(compares, *doubles)

    def _rank(self, key: ast.Expression) -> Callable[[Texts], OrderRank]:
        found = self._child(key)
        if found is not None:
            untyped = _changed(found[0], Untyped)
            return lambda texts: order_rank(untyped(texts))
        double = self._double(key)
        return lambda texts: order_rank(double(texts))

    # --- results ------------------------------------------------------------------------------------------

    def _nodes(self, expression: ast.Expression) -> Written:
        """A leaf, or some in a row, as they are copied."""
        items = expression.items if isinstance(expression, ast.Sequence) else (expression,)
        found = [self._child(each) for each in items]
        tags = [(each[0], f"<{each[1]}>", f"</{each[1]}>") for each in found if each is not None]
        if not tags or len(tags) < len(items):
            raise Unusual

        def copied(texts: Texts) -> str:
            out = ""
            for number, start, end in tags:
                text = texts[number]
                if text is not None:
                    out += f"{start}{escape_text(text)}{end}"
            return out

        return copied

    def _element(self, constructor: ast.ElementConstructor) -> Written:
        names = [constructor.name, *(each.name for each in constructor.attributes)]
        if constructor.namespaces or any(":" in each for each in names) or len(set(names[1:])) < len(names) - 1:
            raise Unusual
        parts: list[str | Written] = [f"<{constructor.name}"]
        for attribute in constructor.attributes:
            parts.append(f' {attribute.name}="')
            for each in attribute.value:
                if isinstance(each, ast.Characters):
                    parts.append(escape_attribute(each.value))
                else:
                    parts.append(_escaped(self._spelled(each.value)))
            parts.append('"')
        start = _joined(parts)
        inside = _joined([self._content(each) for each in constructor.content])
        name = constructor.name

        def element(texts: Texts) -> str:
            content = inside(texts)
            return f"{start(texts)}>{content}</{name}>" if content else f"{start(texts)}/>"

        return element

    def _spelled(self, expression: ast.Expression) -> Written:
        """A value as text."""
        found = self._child(expression)
        if found is not None:
            number, _ = found
            return lambda texts: texts[number] or ""
        double = self._double(expression)

        def spelled(texts: Texts) -> str:
            value = double(texts)
            return "" if value is None else spell(value)

        return spelled

    def _content(self, content: ast.Content) -> str | Written:
        match content:
            case ast.Characters(value):
                return escape_text(value)
            case ast.ElementConstructor():
                return self._element(content)
            case ast.Enclosed(ast.Arithmetic() as expression):
                return self._spelled(expression)  # digits and letters only
            case ast.Enclosed(expression):
                return self._nodes(expression)
            case _:
                raise Unusual


def _joined(parts: Sequence[str | Written]) -> Written:
    """Texts one behind the other."""
    if all(isinstance(each, str) for each in parts):
        whole = "".join([each for each in parts if isinstance(each, str)])
        return lambda texts: whole
    if len(parts) == 1 and not isinstance(parts[0], str):
        return parts[0]
    return lambda texts: "".join([each if isinstance(each, str) else each(texts) for each in parts])


def _escaped(text: Written) -> Written:
    return lambda texts: escape_attribute(text(texts))


def _constant(number: ast.Number) -> Double:
    value = to_double(literal(number.text))
    return lambda texts: value


def _calculated(operator: ArithmeticOperator, left: Double, right: Double) -> Double:
    def calculated(texts: Texts) -> float | None:
        a, b = left(texts), right(texts)
        return None if a is None or b is None else calculate_doubles(operator, a, b)

    return calculated


def _truths(conditions: Sequence[Condition], texts: Texts) -> list[bool]:
    """The truth of all conditions, whatever some of them decide: an error in one is the law's business."""
    return [each(texts) for each in conditions]


def _of_both(compares: Callable[[Any, Any], bool], left: Operand, right: Operand) -> Condition:
    """A comparison of two values, false where one of them is missing."""

    def compared(texts: Texts) -> bool:
        a, b = left(texts), right(texts)
        return a is not None and b is not None and compares(a, b)

    return compared


def _changed(number: int, read: Callable[[str], Any]) -> Operand:
    """The text of a leaf, read in some way; None where it is missing."""

    def changed(texts: Texts) -> Any:
        text = texts[number]
        return None if text is None else read(text)

    return changed


def _beside(value: ast.Number | ast.String) -> tuple[Callable[[str], Any], Any]:
    """How a text is read that is compared with a literal, and the literal."""
    if isinstance(value, ast.String):
        return str, value.value
    number = literal(value.text)
    return _exact, number.exact if isinstance(number, WrittenDouble) else number


@lru_cache(maxsize=4_096)
def _double(text: str) -> float:
    number = exact_number(text)
    if number is None:
        raise Unusual
    return float(number)


def _exact(text: str) -> Decimal:
    number = exact_number(text)
    if number is None or number.is_nan():
        raise Unusual
    return number
