"""The productions between a whole expression and a path: operators, conditions, `switch`, `try`.

Shorthand is read as what it stands for: `a || b` as `concat(a, b)`, `a => f(b)` as `f(a, b)`, `a ! b` as a loop,
`switch` and `typeswitch` as conditions; operators that compute are calls (`language/operators.py`).
"""

from __future__ import annotations

from typing import Literal, cast

from anabranch.language import ast
from anabranch.language.checks.refusals import refuse
from anabranch.language.contexts import mapped
from anabranch.language.operators import NAMED, VALUE_COMPARISONS
from anabranch.language.parsing.paths import PathParser
from anabranch.values.casts import CASTS
from anabranch.values.operators import ArithmeticOperator, ComparisonOperator

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_KEYWORDS = ("for", "let", "some", "every", "if", "switch", "typeswitch", "try")
_LEVELS = {
    "||": 0,
    "to": 1,
    "+": 2,
    "-": 2,
    "*": 3,
    "div": 3,
    "mod": 3,
    "idiv": 3,
    "|": 4,
    "union": 4,
    "intersect": 5,
    "except": 5,
}
"""How tightly operators bind, the loosest first."""
CAUGHT = (
    *("err:code", "err:description", "err:value", "err:module", "err:line-number", "err:column-number"),
    "err:additional",
)
"""The variables that are bound where an error is caught."""


class OperatorParser(PathParser):
    """Expressions; `Parser` adds the prolog and FLWR."""

    source_depth = -1
    """How deep the source of the innermost `for` stands: a `|` there begins a window."""

    def expr(self) -> ast.Expression:
        start = self.token.start
        items = [self.expr_single()]
        while self.take(","):
            items.append(self.expr_single())
        return items[0] if len(items) == 1 else ast.Sequence(tuple(items), span=self.since(start))

    def expr_single(self) -> ast.Expression:
        with self.deeper():
            if self.token.kind == "name" and (parsed := self.keyword_expression()) is not None:
                return parsed
            return self.or_expr()

    def keyword_expression(self) -> ast.Expression | None:
        """The expression that the current name begins, if the token behind makes it a keyword."""
        word = self.token.text
        if word not in _KEYWORDS:
            return None
        behind = self.peek()
        match word:
            case "for" | "let" if behind.text == "$":
                return self.flwor_expr()
            case "for" if behind.text in ("tumbling", "sliding"):
                raise refuse("window clause", self.text, behind.span)
            case "some" | "every" if behind.text == "$":
                return self.quantified_expr()
            case "if" if behind.text in ("(", "$"):
                return self.if_expr()
            case "switch" if behind.text == "(":
                return self.switch_expr()
            case "typeswitch" if behind.text == "(":
                return self.typeswitch_expr()
            case "try" if behind.text == "{":
                return self.try_expr()
        return None

    def flwor_expr(self) -> ast.Flwor | ast.Pipeline:
        raise AssertionError("Parser gives this")

    # --- conditions ---------------------------------------------------------------------------------------

    def if_expr(self) -> ast.If:
        start = self.advance().start
        if self.at_symbol("(") and self.peek().text == ")":
            raise self.error("'if' needs a condition", self.peek().span)
        condition = self.expr_single()
        self.expect_name("then")
        then = self.expr_single()
        self.expect_name("else")
        return ast.If(condition, then, self.expr_single(), span=self.since(start))

    def switch_expr(self) -> ast.Expression:
        """`switch`, as one condition behind the other: values are compared as deep-equal() compares them."""
        start = self.advance().start
        operand = self.parenthesized_expr()
        value = self.fresh_variable("case")
        cases: list[tuple[ast.Expression, ast.Expression]] = []
        while self.at_name("case"):
            tests: list[ast.Expression] = []
            while self.take_name("case"):
                each = self.expr_single()
                single = ast.Call("zero-or-one", (ast.Call("data", (each,), span=each.span),), span=each.span)
                tests.append(ast.Call("deep-equal", (ast.Variable(value), single), span=each.span))
            self.expect_name("return")
            condition = tests[0] if len(tests) == 1 else ast.Or(tuple(tests), span=tests[0].span)
            cases.append((condition, self.expr_single()))
        if not cases:
            self.unexpected("'case'")
        self.expect_name("default")
        self.expect_name("return")
        given = ast.Call("zero-or-one", (ast.Call("data", (operand,), span=operand.span),), span=operand.span)
        return self.chosen(value, given, cases, self.expr_single(), start)

    def typeswitch_expr(self) -> ast.Expression:
        start = self.advance().start
        operand = self.parenthesized_expr()
        value = self.fresh_variable("case")
        cases: list[tuple[ast.Expression, ast.Expression]] = []
        while self.at_name("case"):
            at = self.advance().start
            name = self.variable_name() if self.at_symbol("$") else None
            if name is not None:
                self.expect_name("as")
            types = [self.sequence_type()]
            while self.take("|"):
                types.append(self.sequence_type())
            tests = [self.instance(ast.Variable(value), each, at) for each in types]
            condition = tests[0] if len(tests) == 1 else ast.Or(tuple(tests), span=self.since(at))
            self.expect_name("return")
            cases.append((condition, self.case_result(name, value)))
        if not cases:
            self.unexpected("'case'")
        self.expect_name("default")
        name = self.variable_name() if self.at_symbol("$") else None
        self.expect_name("return")
        return self.chosen(value, operand, cases, self.case_result(name, value), start)

    def case_result(self, name: str | None, value: str) -> ast.Expression:
        """The result of a case, which may have a name for the value."""
        result = self.expr_single()
        if name is None:
            return result
        return ast.Flwor((ast.Let(name, ast.Variable(value)),), None, (), result, span=result.span)

    def chosen(
        self,
        name: str,
        value: ast.Expression,
        cases: list[tuple[ast.Expression, ast.Expression]],
        otherwise: ast.Expression,
        start: int,
    ) -> ast.Flwor:
        """The result of the first case that holds for a value, which has a name."""
        span = self.since(start)
        for condition, result in reversed(cases):
            otherwise = ast.If(condition, result, otherwise, span=span)
        return ast.Flwor((ast.Let(name, value, span=value.span),), None, (), otherwise, span=span)

    def try_expr(self) -> ast.Call:
        """`try`, as a call with the body and, for each `catch`, its codes and its body as functions."""
        start = self.advance().start
        arguments: list[ast.Expression] = [ast.InlineFunction((), self.block(), span=self.since(start))]
        if not self.at_name("catch"):
            self.unexpected("'catch'")
        while self.take_name("catch"):
            at = self.token.start
            codes = [self.error_name()]
            while self.take("|"):
                codes.append(self.error_name())
            arguments.append(ast.String(" ".join(codes), span=self.since(at)))
            arguments.append(ast.InlineFunction(CAUGHT, self.block(), span=self.since(at)))
        return ast.Call("op:try", tuple(arguments), span=self.since(start))

    def error_name(self) -> str:
        """A name test for the code of an error."""
        test = self.node_test()
        if not isinstance(test, ast.NameTest):
            self.unexpected("the name of an error, or '*'")
        return f"{test.prefix}:{test.local}" if test.prefix else test.local

    def block(self) -> ast.Expression:
        """`{ expression }`; `{ }` is the empty sequence."""
        start = self.expect("{").start
        if self.take("}"):
            return ast.Sequence((), span=self.since(start))
        body = self.expr()
        self.expect("}")
        return body

    def quantified_expr(self) -> ast.Quantified:
        kind = self.advance()
        bindings: list[tuple[str, ast.Expression]] = []
        while not bindings or self.take(","):
            variable = self.variable_name()
            declared = self.declared_type()
            self.expect_name("in")
            source = self.expr_single()
            bindings.append((variable, source if declared is None else self.typed(source, _several(declared))))
        self.expect_name("satisfies")
        condition = self.expr_single()
        which: Literal["some", "every"] = "some" if kind.text == "some" else "every"
        return ast.Quantified(which, tuple(bindings), condition, span=self.since(kind.start))

    # --- operators, loosest binding first -----------------------------------------------------------------

    def or_expr(self) -> ast.Expression:
        start = self.token.start
        operands = [self.and_expr()]
        while self.at_name("or"):
            self.advance()
            operands.append(self.and_expr())
        return operands[0] if len(operands) == 1 else ast.Or(tuple(operands), span=self.since(start))

    def and_expr(self) -> ast.Expression:
        start = self.token.start
        operands = [self.comparison_expr()]
        while self.at_name("and"):
            self.advance()
            operands.append(self.comparison_expr())
        return operands[0] if len(operands) == 1 else ast.And(tuple(operands), span=self.since(start))

    def at_comparison(self) -> bool:
        return self.at_symbol(*_COMPARISONS, "<<", ">>") or self.at_name(*VALUE_COMPARISONS, "is")

    def comparison_expr(self) -> ast.Expression:
        start = self.token.start
        left = self.operator_expr()
        if not self.at_comparison():
            return left
        operator = self.advance().text
        right = self.operator_expr()
        if self.at_comparison():
            raise self.error("comparisons do not chain", self.token.span, hint="join them with 'and'")
        if operator in _COMPARISONS:
            return ast.Comparison(cast(ComparisonOperator, operator), left, right, span=self.since(start))
        return ast.Call(NAMED[operator], (left, right), span=self.since(start))

    # The operators between a comparison and a type share one level of recursion, so that nested parentheses do not use
    # up Python's stack: each production is given the operand that was read before it.

    def operator_expr(self, least: int = 0) -> ast.Expression:
        """Operands with operators between them that bind as tightly as the level `least`, or tighter."""
        start = self.token.start
        found = self.type_expr()
        while (level := self.operator_level()) >= least:
            match level:
                case 0:
                    found = self.concatenation(found, start)
                case 1:
                    found = self.range(found, start)
                case 2:
                    found = self.sum(found, start)
                case 3:
                    found = self.product(found, start)
                case 4:
                    found = self.union(found, start)
                case _:
                    found = self.intersection(found, start)
        return found

    def operator_level(self) -> int:
        """How tightly the current operator binds; -1 where there is none."""
        token = self.token
        level = _LEVELS.get(token.text, -1) if token.kind in ("symbol", "name") else -1
        if token.text == "|" and self.depth == self.source_depth:
            return -1  # directly behind the source of a `for` a window begins
        return level

    def concatenation(self, first: ast.Expression, start: int) -> ast.Expression:
        operands = [first]
        while self.take("||"):
            operands.append(self.operator_expr(1))
        return ast.Call("concat", tuple(operands), span=self.since(start))

    def range(self, first: ast.Expression, start: int) -> ast.Expression:
        self.advance()
        last = self.operator_expr(2)
        if self.at_name("to"):
            self.unexpected("an operator or the end of the query")
        return ast.Call("op:to", (first, last), span=self.since(start))

    def sum(self, first: ast.Expression, start: int) -> ast.Expression:
        rest: list[tuple[ArithmeticOperator, ast.Expression]] = []
        while self.at_symbol("+", "-"):
            operator = cast(ArithmeticOperator, self.advance().text)
            rest.append((operator, self.operator_expr(3)))
        return ast.Arithmetic(first, tuple(rest), span=self.since(start))

    def product(self, first: ast.Expression, start: int) -> ast.Expression:
        rest: list[tuple[ArithmeticOperator, ast.Expression]] = []
        while self.at_symbol("*") or self.at_name("div", "mod", "idiv"):
            operator = self.advance().text
            operand = self.operator_expr(4)
            if operator != "idiv":
                rest.append((cast(ArithmeticOperator, operator), operand))
                continue
            span = self.since(start)
            dividend = ast.Arithmetic(first, tuple(rest), span=span) if rest else first
            first, rest = ast.Call("op:idiv", (dividend, operand), span=span), []
        return ast.Arithmetic(first, tuple(rest), span=self.since(start)) if rest else first

    def union(self, first: ast.Expression, start: int) -> ast.Expression:
        self.advance()
        return ast.Call("op:union", (first, self.operator_expr(5)), span=self.since(start))

    def intersection(self, first: ast.Expression, start: int) -> ast.Expression:
        name = NAMED[self.advance().text]
        return ast.Call(name, (first, self.operator_expr(6)), span=self.since(start))

    def type_expr(self) -> ast.Expression:
        """An operand with the arrows, casts and type tests behind it, the tightest first."""
        start = self.token.start
        found = self.unary_expr()
        if self.at_symbol("=>"):
            found = self.arrow(found, start)
        if self.token.kind != "name":
            return found
        found = self.cast("castable", self.cast("cast", found))
        if self.at_name("treat") and self.peek().text == "as":
            self.advance()
            self.advance()
            name = self.sequence_type()
            found = ast.Call("op:treat", (found, ast.String(name, span=self.since(start))), span=self.since(start))
        if self.at_name("instance") and self.peek().text == "of":
            self.advance()
            self.advance()
            found = self.instance(found, self.sequence_type(), start)
        return found

    def instance(self, operand: ast.Expression, name: str, start: int) -> ast.Call:
        span = self.since(start)
        return ast.Call("op:instance", (operand, ast.String(name, span=span)), span=span)

    def cast(self, kind: Literal["cast", "castable"], operand: ast.Expression) -> ast.Expression:
        """`cast as type` or `castable as type` behind an operand, if it is there."""
        if not self.at_name(kind):
            return operand
        self.advance()
        self.expect_name("as")
        if self.token.kind == "name" and self.token.text not in CASTS:
            raise refuse("type expression", self.text, self.token.span)
        if self.token.kind != "name":
            self.unexpected("the name of a type")
        name = self.advance().text
        optional = self.take("?")
        return ast.Cast(kind, operand, name, optional, span=self.since(operand.span.start))

    def arrow(self, found: ast.Expression, start: int) -> ast.Expression:
        """`a => f(b)` is `f(a, b)`."""
        while self.take("=>"):
            if self.token.kind == "name":
                called = self.function_call()
                if not isinstance(called, ast.Call):
                    raise self.error("an arrow leads to the call of a function", called.span)
                found = ast.Call(called.name, (found, *called.arguments), span=self.since(start))
                continue
            function = self.parenthesized_expr() if self.at_symbol("(") else self.primary_expr()
            found = ast.Call("op:call", (function, found, *self.arguments()), span=self.since(start))
        return found

    def unary_expr(self) -> ast.Expression:
        if not self.at_symbol("-", "+"):
            start = self.token.start
            found = self.path_expr()
            while self.take("!"):  # `a ! b` is a loop over `a`
                found = mapped(found, self.path_expr(), self.fresh_variable, self.since(start))
            return found
        sign = self.advance()
        with self.deeper():
            operand = self.unary_expr()
        span = self.since(sign.start)
        negated = ast.Negation(operand, span=span)
        # `+e` makes a number of `e`; so does negating twice, and it needs no construct of its own.
        return negated if sign.text == "-" else ast.Negation(negated, span=span)

    # --- types --------------------------------------------------------------------------------------------

    def typed(self, value: ast.Expression, name: str) -> ast.Expression:
        """A value that must be of a declared type."""
        if name in ("item()*", "item()**"):
            return value
        return ast.Call("op:typed", (value, ast.String(name, span=value.span)), span=value.span)


def _several(name: str) -> str:
    """The type of a sequence of values, each of which is of the type given."""
    return name if name == "empty-sequence()" else f"{name.rstrip('?*+')}*"
