"""Conditions of SQL, which are true, false or unknown, as conditions of XQuery, which are true or false (LAWS 8.2).

No comparison with NULL holds in XQuery either.
So a condition is written twice where that matters: when it holds, and when it fails; where it does neither, it is
unknown.
`NOT` swaps the two, and WHERE and HAVING ask only for what holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from sqlglot import exp

from anabranch.errors import Span
from anabranch.language import ast
from anabranch.logic import COMPARES
from anabranch.sql.functions import CASTS, FUNCTIONS, call
from anabranch.sql.scope import SqlNames, SqlScope, nodes_in
from anabranch.sql.times import bare
from anabranch.values.operators import TURNED, ComparisonOperator

OPERATORS: dict[type[exp.Expr], ComparisonOperator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}
OPPOSITES: dict[ComparisonOperator, ComparisonOperator] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}
CONDITIONS = (
    *(exp.And, exp.Or, exp.Not, exp.Between, exp.In, exp.Like, exp.Escape, exp.Is),
    *(exp.NullSafeEQ, exp.NullSafeNEQ),
)
"""What is a condition by its writing, apart from comparisons."""
_UNDEFINED = (exp.Div, exp.Mod, exp.Pow, exp.Sqrt, exp.Ln)
"""Operations that have no result for some numbers."""
_OF_INFINITIES = (exp.Add, exp.Sub, exp.Mul)
"""Operations that have none for two infinite numbers, or for an infinite one and 0."""


class SqlConditions(SqlNames):
    """Conditions; `SqlExpressions` adds the values in them."""

    def value(self, node: exp.Expr, scope: SqlScope) -> ast.Expression:
        raise AssertionError("SqlExpressions gives this")

    def operand(self, node: exp.Expr, scope: SqlScope) -> ast.Expression:
        raise AssertionError("SqlExpressions gives this")

    def present(self, value: ast.Expression) -> ast.Expression:
        raise AssertionError("SqlExpressions gives this")

    def holds(self, node: exp.Expr, scope: SqlScope) -> ast.Expression:
        """When a condition is true."""
        return self._is(node, scope, true=True)

    def fails(self, node: exp.Expr, scope: SqlScope) -> ast.Expression:
        """When a condition is false."""
        return self._is(node, scope, true=False)

    def conjuncts(self, node: exp.Expr, scope: SqlScope) -> list[ast.Expression]:
        """All that must hold for a condition."""
        return list(_flat(self.holds(each, scope) for each in _chain(node, exp.And)))

    def _is(self, node: exp.Expr, scope: SqlScope, *, true: bool) -> ast.Expression:
        span = self.made(node)
        if (operator := OPERATORS.get(type(node))) is not None:
            self.check_args(node, ("this", "expression"))
            return self._compared(operator, node.this, node.args["expression"], scope, span, true=true)
        match node:
            case exp.Paren():
                return self._is(node.this, scope, true=true)
            case exp.Not():
                self.check_args(node, ("this",))
                return self._is(node.this, scope, true=not true)
            case exp.And() | exp.Or():
                operands = (self._is(each, scope, true=true) for each in _chain(node, type(node)))
                if isinstance(node, exp.And) == true:
                    return ast.And(tuple(_flat(operands)), span=span)
                return ast.Or(tuple(operands), span=span)
            case exp.Boolean():
                return call("true" if bool(node.this) == true else "false", (), span)
            case exp.Null():
                return call("false", (), span)
            case exp.Between():
                self.check_args(node, ("this", "low", "high"))
                return self._between(node, scope, span, true=true)
            case exp.In():
                return self._in(node, scope, span, true=true)
            case exp.Like() | exp.Escape():
                return self._like(node, scope, span, true=true)
            case exp.Is():
                return self._is_what(node, scope, span, true=true)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._distinct(node, scope, span, equal=isinstance(node, exp.NullSafeEQ) == true)
            case _:
                value = self.value(node, scope)
                if true:
                    return value
                return ast.Comparison("=", value, call("false", (), span), span=span)

    # --- comparisons --------------------------------------------------------------------------------------

    def _compared(
        self,
        operator: ComparisonOperator,
        left: exp.Expr,
        right: exp.Expr,
        scope: SqlScope,
        span: Span,
        *,
        true: bool = True,
    ) -> ast.Expression:
        if not true and operator not in ("=", "!=") and _may_be_nan(left, right):
            sides = self.operand(left, scope), self.operand(right, scope)
            there = [call("exists", (self.present(each),), span) for each in sides]
            return ast.And((*there, call("not", (ast.Comparison(operator, *sides, span=span),), span)), span=span)
        operator = operator if true else OPPOSITES[operator]
        a = self._beside(left, operator, right, scope)
        b = self._beside(right, TURNED[operator], left, scope)
        return ast.Comparison(operator, a, b, span=span)

    def _beside(self, node: exp.Expr, operator: ComparisonOperator, other: exp.Expr, scope: SqlScope) -> ast.Expression:
        """A side of a comparison; a literal beside a call decides how that is written, so no other may stand there."""
        if (plain := self._plain(node, operator, other, scope)) is not None:
            return plain
        value = self.operand(node, scope)
        function = FUNCTIONS.get(type(bare(other)))
        if isinstance(value, ast.String | ast.Number) and function is not None and function.of_nothing is not None:
            return replace(value, span=self.derived(node))
        return value

    def _plain(
        self, node: exp.Expr, operator: ComparisonOperator, other: exp.Expr, scope: SqlScope
    ) -> ast.Expression | None:
        """A call whose value for NULL, which is not NULL, does not pass the comparison with a literal anyway."""
        node, other = bare(node), bare(other)
        function = FUNCTIONS.get(type(node))
        if function is None or function.of_nothing is None or not isinstance(other, exp.Literal):
            return None
        if any(not isinstance(node.args.get(each), exp.Literal | None) for each in function.arguments[1:]):
            return None
        of_nothing = function.of_nothing
        try:
            literal = str(other.this) if other.is_string else float(other.this)
        except ValueError:
            return None
        if isinstance(of_nothing, str) != isinstance(literal, str) or COMPARES[operator](of_nothing, literal):
            return None
        return self.called(node, scope, strict=False)

    def called(self, node: exp.Expr, scope: SqlScope, *, strict: bool) -> ast.Expression:
        raise AssertionError("SqlExpressions gives this")

    def _between(self, node: exp.Between, scope: SqlScope, span: Span, *, true: bool) -> ast.Expression:
        low = self._compared(">=", node.this, node.args["low"], scope, span, true=true)
        high = self._compared("<=", node.this, node.args["high"], scope, span, true=true)
        return ast.And((low, high), span=span) if true else ast.Or((low, high), span=span)

    def _in(self, node: exp.In, scope: SqlScope, span: Span, *, true: bool) -> ast.Expression:
        if node.args.get("query") is not None:
            raise self.refuse("subquery", node.args["query"])
        self.check_args(node, ("this", "expressions"))
        value = self.operand(node.this, scope)
        items = [each for each in node.expressions if not isinstance(bare(each), exp.Null)]
        if true:
            among = tuple(self.operand(each, scope) for each in items)
            if not among:
                return call("false", (), span)
            listed = among[0] if len(among) == 1 else ast.Sequence(among, span=span)
            return ast.Comparison("=", value, listed, span=span)
        if len(items) < len(node.expressions):
            return call("false", (), span)  # with NULL among them none is surely different
        apart = tuple(ast.Comparison("!=", value, self.operand(each, scope), span=self.made(each)) for each in items)
        return apart[0] if len(apart) == 1 else ast.And(apart, span=span)

    def _distinct(self, node: exp.Binary, scope: SqlScope, span: Span, *, equal: bool) -> ast.Expression:
        """IS [NOT] DISTINCT FROM, which is never unknown."""
        left, right = self.operand(node.left, scope), self.operand(node.right, scope)
        missing = [call("empty", (self.present(each),), span) for each in (left, right)]
        if equal:
            return ast.Or((ast.Comparison("=", left, right, span=span), ast.And(tuple(missing), span=span)), span=span)
        differ = ast.Comparison("!=", missing[0], missing[1], span=span)
        return ast.Or((ast.Comparison("!=", left, right, span=span), differ), span=span)

    def _is_what(self, node: exp.Is, scope: SqlScope, span: Span, *, true: bool) -> ast.Expression:
        self.check_args(node, ("this", "expression"))
        what = node.expression
        negated = isinstance(what, exp.Not)
        what = what.this if negated else what
        true = true != negated
        match what:
            case exp.Null():
                value = self.present(self.value(node.this, scope))
                return call("empty" if true else "exists", (value,), span)
            case exp.Boolean():
                found = self._is(node.this, scope, true=bool(what.this))
                return found if true else call("not", (found,), span)
            case _:
                raise self.refuse("IS", node)

    # --- patterns -----------------------------------------------------------------------------------------

    def _like(self, node: exp.Expr, scope: SqlScope, span: Span, *, true: bool) -> ast.Expression:
        """LIKE, as the plainest test that says the same; patterns of RE2 take linear time."""
        escape = "\\"
        if isinstance(node, exp.Escape):
            mark = node.expression
            if not isinstance(mark, exp.Literal) or not mark.is_string or len(mark.name) > 1:
                raise self.refuse("pattern that is no literal", mark)
            escape, node = mark.name, node.this
        if not isinstance(node, exp.Like):
            raise self.refuse("ESCAPE", node)
        self.check_args(node, ("this", "expression", "negate"))
        true = true != bool(node.args.get("negate"))
        pattern = node.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise self.refuse("pattern that is no literal", pattern)
        parts = _parts(pattern.name, escape)
        if parts is None:
            raise self.error("the pattern ends with its escape", pattern)
        value = self.operand(node.this, scope)
        there = call("exists", (self.present(value),), span)
        if all(each is None for each in parts) and parts:
            return there if true else call("false", (), span)
        test = _test(value, parts, self.derived(node))
        if isinstance(test, ast.Comparison):
            return test if true else ast.Comparison("!=", test.left, test.right, span=span)
        return test if true else ast.And((there, call("not", (test,), span)), span=span)


def _may_be_nan(*sides: exp.Expr) -> bool:
    """Whether one side of a comparison may be NaN, of which neither a comparison of order nor its opposite holds.

    That is where something is divided or rooted, or made of two values that both may be infinite; columns and what is
    added to them are not, nor are times.
    """
    nodes = [node for side in sides for node in nodes_in(side)]
    if any(isinstance(each, exp.Interval) for each in nodes):
        return False
    return any(
        isinstance(each, _UNDEFINED)
        or (isinstance(each, exp.Cast) and CASTS.get(each.to.this) == "xs:double")
        or (isinstance(each, _OF_INFINITIES) and not any(map(_is_finite, (each.left, each.right))))
        for each in nodes
    )


def _is_finite(node: exp.Expr) -> bool:
    """Whether a node is a number other than 0, as it is written."""
    node = bare(node)
    return isinstance(node, exp.Literal) and any(digit in str(node.this) for digit in "123456789")


def _parts(pattern: str, escape: str) -> list[str | int | None] | None:
    """The parts of a pattern: texts, None for `%`, and how many `_` stand side by side; None where it is none."""
    parts: list[str | int | None] = []
    at = 0
    while at < len(pattern):
        mark = pattern[at]
        if escape and mark == escape:
            at += 1
            if at == len(pattern):
                return None
            mark = pattern[at]
        elif mark == "%":
            if not parts or parts[-1] is not None:
                parts.append(None)
            at += 1
            continue
        elif mark == "_":
            parts.append(1)
            at += 1
            continue
        if parts and isinstance(parts[-1], str):
            parts[-1] += mark
        else:
            parts.append(mark)
        at += 1
    return parts


def _test(value: ast.Expression, parts: list[str | int | None], span: Span) -> ast.Expression:
    def string(text: str) -> ast.String:
        return ast.String(text, span=span)  # not as it was written, so it stands where the whole condition does

    match parts:
        case []:
            return ast.Comparison("=", value, string(""), span=span)
        case [str() as text]:
            return ast.Comparison("=", value, string(text), span=span)
        case [str() as text, None]:
            return call("starts-with", (value, string(text)), span)
        case [None, str() as text]:
            return call("ends-with", (value, string(text)), span)
        case [None, str() as text, None]:
            return call("contains", (value, string(text)), span)
    write: Callable[[str], str] = lambda text: re.sub(r"[\\.\[\](){}*+?|^$-]", r"\\\g<0>", text)  # noqa: E731
    written = "".join(".*" if each is None else "." if isinstance(each, int) else write(each) for each in parts)
    return call("matches", (value, string(f"^{written}$"), string("s")), span)


def _flat(conditions: Iterable[ast.Expression]) -> Iterator[ast.Expression]:
    """Conditions that all must hold, one by one."""
    for each in conditions:
        if isinstance(each, ast.And):
            yield from each.operands
        else:
            yield each


def _chain(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of an operator that is written several times, from left to right."""
    operands: list[exp.Expr] = []
    while type(node) is kind:
        operands.append(node.args["expression"])
        node = node.this
    return [node, *reversed(operands)]
