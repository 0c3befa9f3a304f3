"""A part of a query over the entries of a stream, taken apart for what it may share with other queries.

A *loop* is `for $x in path where c1 and c2 order by k return r`.
Its path, each of its conditions, and its result by itself, are known by their texts, in which variables have plain
names: parts with equal texts have equal values wherever they stand, so one evaluation of an entry serves all queries.

A condition that compares something with a constant *bounds* it.
Of all queries that compare the same thing, those that an entry can concern are found by its value (`bounds.py`):
where one condition is false, the whole is, whatever the others say or raise (LAWS 2.4).
So is `$q/quote >= $q/quote#1 * 1.1` a bound on the ratio of the two, and `$a >= $b + 5` one on their difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias

from anabranch.branch.display.evaluation import AnswerScope
from anabranch.branch.display.parts import EachPart
from anabranch.language import ast
from anabranch.language.printer import print_query
from anabranch.language.rewrite import conjuncts, parts, with_plain_names
from anabranch.law.env import Env
from anabranch.sharing.needs import needs_of
from anabranch.values.atomic import Numeric, WrittenDouble, literal
from anabranch.values.operators import TURNED, ComparisonOperator

_MOST_CONDITIONS = 8
"""Behind so many conditions that take too many steps, one that is false still decides (`law/steps.py`)."""
_NOTHING = ast.Sequence(())


@dataclass(frozen=True, slots=True)
class SharedText:
    """An expression of a loop, over the variable that the loop binds; equal ones have an equal `key`."""

    key: str
    source: str
    """The key of what the loop goes through; empty where the expression is no part of a loop."""
    expression: ast.Flwor
    """The loop with this expression as its result, and nothing else; with the order, where it is the loop's result."""
    env: Env
    """What names mean around the loop."""

    @property
    def value(self) -> ast.Expression:
        return self.expression.result

    @property
    def loop(self) -> ast.For:
        """The loop without its conditions."""
        (found,) = self.expression.clauses
        assert isinstance(found, ast.For)
        return found


@dataclass(frozen=True, slots=True)
class Compared:
    """What a condition compares with a constant: a value, or the ratio or difference of two."""

    of: SharedText
    to: SharedText | None = None
    how: Literal["value", "ratio", "difference"] = "value"

    @property
    def key(self) -> tuple[str, str, str]:
        """Equal where the same is compared."""
        return self.of.key, "" if self.to is None else self.to.key, self.how


@dataclass(frozen=True, slots=True)
class NumberBound:
    """The numbers from `low` to `high`, or some more; None where there is no bound."""

    low: Fraction | None
    high: Fraction | None

    def within(self, other: NumberBound) -> NumberBound:
        """The numbers that are in both."""
        lows = [each for each in (self.low, other.low) if each is not None]
        highs = [each for each in (self.high, other.high) if each is not None]
        return NumberBound(max(lows) if lows else None, min(highs) if highs else None)

    @property
    def is_narrow(self) -> bool:
        return self.low is not None and self.high is not None


Bound: TypeAlias = NumberBound | str
"""A text stands for itself alone."""


@dataclass(frozen=True, slots=True)
class LoopTest:
    """One of the conditions of a loop that must all hold."""

    text: SharedText
    """The condition; of a comparison with a constant, the other side, whose value serves all constants."""
    operator: ComparisonOperator | None = None
    constant: str | Numeric | None = None


@dataclass(frozen=True)
class EntryLoop:
    """A part that distributes, taken apart."""

    result: SharedText
    """What a round gives, with its order; or all of the part, where it is evaluated as a whole."""
    tests: tuple[LoopTest, ...] = ()
    bounds: tuple[tuple[Compared, Bound], ...] = ()
    seconds: frozenset[Fraction] = frozenset()
    """How many seconds after a change of an entry time alone may give it a result where it had none."""

    @property
    def is_ordered(self) -> bool:
        return bool(self.result.expression.order)

    @cached_property
    def bound(self) -> tuple[Compared, Bound] | None:
        """The bound that leaves the least to be looked at; None where there is none."""
        found: dict[tuple[str, str, str], tuple[Compared, Bound]] = {}
        for compared, bound in self.bounds:
            _, known = found.setdefault(compared.key, (compared, bound))
            if isinstance(known, NumberBound) and isinstance(bound, NumberBound):
                found[compared.key] = compared, known.within(bound)
        return min(found.values(), key=lambda each: _width(each[1]), default=None)


def _width(bound: Bound) -> int:
    if isinstance(bound, str):
        return 0
    return 2 if not bound.is_narrow else 0 if bound.low == bound.high else 1


def loop_of(part: EachPart, query: ast.Query, scope: AnswerScope) -> EntryLoop | None:
    """A part of a query, taken apart; None where another query cannot share what it evaluates."""
    if part.beside or query.functions or any(_is_elsewhere(each) for each in parts(part.expression)):
        return None
    return _LoopReader(query, scope).loop(part.expression)


def _is_elsewhere(node: object) -> bool:
    """Whether a part of a query depends on more than an entry: on documents, windows, or functions that it makes."""
    return isinstance(node, ast.InlineFunction | ast.Window) or (isinstance(node, ast.Source) and node.kind == "doc")


class _LoopReader:
    """Takes the parts of one query apart."""

    def __init__(self, query: ast.Query, scope: AnswerScope) -> None:
        self._query, self._env = query, scope.env
        self._scope = repr(sorted(scope.env.namespaces.items()))

    def loop(self, expression: ast.Expression) -> EntryLoop:
        match expression:
            case ast.Flwor((ast.For(_, source, None) as first,), where, order, result) if not any(
                isinstance(each, ast.Variable) for each in parts(source)
            ):
                tests = list(conjuncts(where))
                if len(tests) <= _MOST_CONDITIONS:
                    given = self._text(first, result, order)
                    bounds = tuple(bound for test in tests for bound in self._bounds(first, test))
                    found = tuple(self._test(first, test) for test in tests)
                    asked: ast.Expression = expression
                    if isinstance(result, ast.ElementConstructor):  # it has none only where a condition is false
                        asked = replace(expression, order=(), result=_NOTHING)
                    return EntryLoop(given, found, bounds, self._seconds(asked))
        return EntryLoop(self._text(None, expression), seconds=self._seconds(expression))

    def _seconds(self, expression: ast.Expression) -> frozenset[Fraction]:
        if not any(isinstance(each, ast.Qualifier) and each.kind == "time" for each in parts(expression)):
            return frozenset()
        needs = needs_of(replace(self._query, body=expression))
        return frozenset(each for stream in needs.streams for each in needs.seconds(stream))

    def _text(self, first: ast.For | None, value: ast.Expression, order: tuple[ast.OrderKey, ...] = ()) -> SharedText:
        body = value if first is None else ast.Flwor((first,), None, order, value)
        plain = with_plain_names(replace(self._query, body=body))
        if first is None:
            return SharedText(self._key(plain), "", ast.Flwor((), None, (), plain.body), self._env)
        assert isinstance(plain.body, ast.Flwor)
        source = replace(plain, body=replace(plain.body, order=(), result=_NOTHING))
        return SharedText(self._key(plain), self._key(source), plain.body, self._env)

    def _key(self, plain: ast.Query) -> str:
        return f"{self._scope} {print_query(plain)}"

    def _test(self, first: ast.For, test: ast.Expression) -> LoopTest:
        match _oriented(test):
            case operator, value, constant:
                return LoopTest(self._text(first, value), operator, constant)
            case _:
                return LoopTest(self._text(first, test))

    def _bounds(self, first: ast.For, test: ast.Expression) -> Iterator[tuple[Compared, Bound]]:
        """The bounds that a condition sets."""
        match _oriented(test):
            case "=", value, str(constant):
                yield Compared(self._text(first, value)), constant
            case operator, value, constant if not isinstance(constant, str) and operator != "!=":
                yield Compared(self._text(first, value)), _bound(operator, _exact(constant))
            case None if isinstance(test, ast.Comparison):
                yield from self._relation(first, test.operator, test.left, test.right)
                yield from self._relation(first, TURNED[test.operator], test.right, test.left)

    def _relation(
        self, first: ast.For, operator: ComparisonOperator, left: ast.Expression, right: ast.Expression
    ) -> Iterator[tuple[Compared, Bound]]:
        """`a >= b * 1.1` and `a >= b + 5`, which bound the ratio and the difference of `a` and `b`."""
        if operator == "!=" or not isinstance(right, ast.Arithmetic) or len(right.rest) != 1:
            return
        ((operation, second),) = right.rest
        pairs = [(right.first, second)] if operation == "-" else [(right.first, second), (second, right.first)]
        for other, written in pairs if operation in ("*", "+", "-") else ():
            constant = _constant(written)
            if constant is None or isinstance(constant, str) or _constant(other) is not None:
                continue
            by = -_exact(constant) if operation == "-" else _exact(constant)
            how: Literal["ratio", "difference"] = "ratio" if operation == "*" else "difference"
            yield Compared(self._text(first, left), self._text(first, other), how), _bound(operator, by)


def _bound(operator: ComparisonOperator, constant: Fraction) -> NumberBound:
    match operator:
        case "=":
            return NumberBound(constant, constant)
        case "<" | "<=":
            return NumberBound(None, constant)
        case _:
            return NumberBound(constant, None)


def _oriented(test: ast.Expression) -> tuple[ComparisonOperator, ast.Expression, str | Numeric] | None:
    """A comparison with a constant, which stands on the right."""
    if not isinstance(test, ast.Comparison):
        return None
    left, right = _constant(test.left), _constant(test.right)
    if left is None and right is not None:
        return test.operator, test.left, right
    if right is None and left is not None:
        return TURNED[test.operator], test.right, left
    return None


def _constant(expression: ast.Expression) -> str | Numeric | None:
    match expression:
        case ast.String(text):
            return text
        case ast.Number(text):
            return literal(text)
        case _:
            return None


def _exact(constant: Numeric) -> Fraction:
    """The number that a constant is."""
    return Fraction(constant.exact if isinstance(constant, WrittenDouble) else constant)
