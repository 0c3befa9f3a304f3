"""Query text to tree: recursive descent, one method per production, one word of lookahead.

The grammar is XQuery's for what both share, with WXQuery's windows behind a `for` path and the temporal
qualifiers `#` and `?` behind steps and parentheses.
Names are not reserved: `for`, `if` and the rest are keywords only where what follows makes them so.
What the language refuses by name is in `language/checks/refusals.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, cast

from anabranch.errors import QueryError
from anabranch.language import ast
from anabranch.language.checks.refusals import refuse
from anabranch.language.clauses import expression_of
from anabranch.language.parsing.cursor import MAX_NESTING, QueryToken
from anabranch.language.parsing.paths import PathParser
from anabranch.language.positions import with_positions
from anabranch.language.rewrite import deepest, with_clear_names
from anabranch.values.casts import CASTS
from anabranch.values.operators import ArithmeticOperator, ComparisonOperator

_DECLARABLE = (
    *("namespace", "default", "function", "variable", "option", "context", "module", "schema"),
    *("boundary-space", "base-uri", "construction", "ordering", "copy-namespaces", "decimal-format", "%"),
)
"""What makes `declare` and `import` in front of it keywords."""
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


def parse(text: str, name: str | None = None) -> ast.Query:
    """Read a query; `name` (a file's, say) is shown in errors. Raises `QueryError` with the place."""
    try:
        return with_positions(Parser(text).main_module())
    except QueryError as error:
        error.name = name
        raise


class Parser(PathParser):
    """The productions above a path: prolog, operators, FLWR."""

    # --- prolog -------------------------------------------------------------------------------------------

    def main_module(self) -> ast.Query:
        if self.at_name("xquery") and self.peek().text in ("version", "encoding"):
            while not self.at_symbol(";") and self.token.kind != "end":
                self.advance()
            self.expect(";")
        namespaces: dict[str, str] = {}
        functions: list[ast.Function] = []
        while self.at_name("declare", "import") and self.peek().text in _DECLARABLE:
            self.prolog_declaration(namespaces, functions)
        start = self.token.start
        body = self.expr()
        if self.token.kind != "end":
            self.unexpected("an operator or the end of the query")
        query = ast.Query(body, tuple(namespaces.items()), tuple(functions), span=self.since(start))
        if self.dotted:
            query = with_clear_names(query)
        nesting, place = deepest(query)
        if nesting > MAX_NESTING:
            raise self.error(f"more than {MAX_NESTING} constructs inside one another", place)
        return query

    def prolog_declaration(self, namespaces: dict[str, str], functions: list[ast.Function]) -> None:
        first = self.advance()
        if first.text == "import":
            raise refuse("module import", self.text, first.span)
        what = self.advance()
        match what.text:
            case "namespace":
                prefix = self.nc_name("a prefix")
                self.expect("=")
                self.declare_namespace(namespaces, prefix.text, prefix)
            case "default" if self.at_name("element"):
                self.advance()
                self.expect_name("namespace")
                self.declare_namespace(namespaces, "", what)
            case "function":
                functions.append(self.function_declaration(what.start))
            case _:
                raise refuse("prolog declaration", self.text, what.span)
        self.expect(";")

    def declare_namespace(self, namespaces: dict[str, str], prefix: str, at: QueryToken) -> None:
        if prefix in namespaces:
            raise self.error(f"namespace prefix '{prefix}' is declared twice", at.span, "XQST0033")
        if prefix in ("xml", "xmlns"):
            raise self.error(f"prefix '{prefix}' cannot be declared", at.span, "XQST0070")
        namespaces[prefix] = self.string("a namespace in quotes").text

    def function_declaration(self, start: int) -> ast.Function:
        if self.token.kind != "name":
            self.unexpected("a function name")
        name = self.advance()
        if ":" not in name.text:
            raise self.error(
                f"function '{name.text}' needs a prefix", name.span, "XQST0045", f"call it 'local:{name.text}'"
            )
        self.expect("(")
        parameters: list[str] = []
        while not self.at_symbol(")"):
            if parameters and not self.take(","):
                self.unexpected("',' or ')'")
            parameter = self.variable_name()
            if parameter in parameters:
                raise self.error(f"parameter '${parameter}' is named twice", self.since(start), "XQST0039")
            parameters.append(parameter)
            self.no_type()
        self.expect(")")
        self.no_type()
        self.expect("{")
        body = self.expr()
        self.expect("}")
        self.bound.clear()
        return ast.Function(name.text, tuple(parameters), body, span=name.span)

    # --- expressions, loosest binding first ---------------------------------------------------------------

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
        if word not in ("for", "let", "some", "every", "if", "switch", "typeswitch"):
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
            case "switch" | "typeswitch" if behind.text == "(":
                raise refuse("switch and typeswitch", self.text, self.token.span)
        return None

    def if_expr(self) -> ast.If:
        start = self.advance().start
        condition = self.expr_single()
        self.expect_name("then")
        then = self.expr_single()
        self.expect_name("else")
        return ast.If(condition, then, self.expr_single(), span=self.since(start))

    def quantified_expr(self) -> ast.Quantified:
        kind, outside = self.advance(), len(self.bound)
        bindings: list[tuple[str, ast.Expression]] = []
        while not bindings or self.take(","):
            variable = self.variable_name()
            self.no_type()
            self.expect_name("in")
            with self.before(1):
                bindings.append((variable, self.expr_single()))
        self.expect_name("satisfies")
        condition = self.expr_single()
        del self.bound[outside:]
        which: Literal["some", "every"] = "some" if kind.text == "some" else "every"
        return ast.Quantified(which, tuple(bindings), condition, span=self.since(kind.start))

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

    def comparison_expr(self) -> ast.Expression:
        start = self.token.start
        left = self.additive_expr()
        if not self.at_symbol(*_COMPARISONS):
            return left
        operator = cast(ComparisonOperator, self.advance().text)
        right = self.additive_expr()
        if self.at_symbol(*_COMPARISONS):
            raise self.error("comparisons do not chain", self.token.span, hint="join them with 'and'")
        return ast.Comparison(operator, left, right, span=self.since(start))

    def additive_expr(self) -> ast.Expression:
        start = self.token.start
        first = self.multiplicative_expr()
        rest: list[tuple[ArithmeticOperator, ast.Expression]] = []
        while self.at_symbol("+", "-"):
            operator = cast(ArithmeticOperator, self.advance().text)
            rest.append((operator, self.multiplicative_expr()))
        return ast.Arithmetic(first, tuple(rest), span=self.since(start)) if rest else first

    def multiplicative_expr(self) -> ast.Expression:
        start = self.token.start
        first = self.castable_expr()
        rest: list[tuple[ArithmeticOperator, ast.Expression]] = []
        while self.at_symbol("*") or self.at_name("div", "mod"):
            operator = cast(ArithmeticOperator, self.advance().text)
            rest.append((operator, self.castable_expr()))
        return ast.Arithmetic(first, tuple(rest), span=self.since(start)) if rest else first

    def castable_expr(self) -> ast.Expression:
        return self.type_expr("castable", self.type_expr("cast", self.unary_expr()))

    def type_expr(self, kind: Literal["cast", "castable"], operand: ast.Expression) -> ast.Expression:
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

    def unary_expr(self) -> ast.Expression:
        if not self.at_symbol("-", "+"):
            return self.path_expr()
        sign = self.advance()
        with self.deeper():
            operand = self.unary_expr()
        span = self.since(sign.start)
        negated = ast.Negation(operand, span=span)
        # `+e` makes a number of `e`; so does negating twice, and it needs no construct of its own.
        return negated if sign.text == "-" else ast.Negation(negated, span=span)

    # --- FLWR ---------------------------------------------------------------------------------------------

    def flwor_expr(self) -> ast.Flwor | ast.Pipeline:
        start, outside = self.token.start, len(self.bound)
        clauses: list[ast.Clause] = []
        while self.begins_clause():
            clauses += self.clause()
        if not self.at_name("return"):
            bound = all(isinstance(each, ast.For | ast.PositionalFor | ast.Let) for each in clauses)
            self.unexpected("'where', 'order by' or 'return'" if bound else "'return'")
        if len(clauses) > MAX_NESTING:
            raise self.error(f"more than {MAX_NESTING} constructs inside one another", self.since(start))
        self.advance()
        result = self.expr_single()
        del self.bound[outside:]
        return expression_of(tuple(clauses), result, self.since(start))

    def begins_clause(self) -> bool:
        if self.at_name("for", "let", "count"):
            return self.peek().text == "$"
        if self.at_name("stable"):
            return self.peek().text == "order"
        return self.at_name("where", "group", "order")

    def clause(self) -> Iterator[ast.Clause]:
        """The next clause, or several where commas stand between bindings."""
        start = self.token.start
        match self.token.text:
            case "for" | "let":
                binding = self.for_binding if self.advance().text == "for" else self.let_binding
                yield binding()
                while self.take(","):
                    yield binding()
            case "where":
                self.advance()
                yield ast.Where(self.expr_single(), span=self.since(start))
            case "count":
                self.advance()
                yield ast.Count(self.variable_name(), span=self.since(start))
            case "group":
                yield ast.GroupBy(self.group_by(), span=self.since(start))
            case _:
                yield ast.OrderBy(self.order_by(), span=self.since(start))

    def for_binding(self) -> ast.For | ast.PositionalFor:
        start = self.token.start
        variable = self.variable_name()
        self.no_type()
        if self.at_name("allowing"):
            raise refuse("allowing empty", self.text, self.token.span)
        position: str | None = None
        if self.at_name("at"):
            at = self.advance()
            position = self.variable_name()
            if position == variable:
                raise self.error(f"variable '${variable}' is named twice", self.since(at.start), "XQST0089")
        self.expect_name("in")
        with self.before(1 if position is None else 2):
            source = self.expr_single()
        window = self.window() if self.at_symbol("|") else None
        if position is None:
            return ast.For(variable, source, window, span=self.since(start))
        if window is not None:
            raise refuse("positional variable", self.text, self.since(start))
        return ast.PositionalFor(variable, position, source, span=self.since(start))

    def let_binding(self) -> ast.Let:
        start = self.token.start
        variable = self.variable_name()
        self.no_type()
        self.expect(":=")
        with self.before(1):
            value = self.expr_single()
        return ast.Let(variable, value, span=self.since(start))

    def window(self) -> ast.Window:
        start = self.advance().start
        if self.at_name("count") and self.peek().kind == "number":
            self.advance()
            size = self.number("a window size")
            step = self.number("a step size") if self.take_name("step") else None
            self.window_end(None if step else "step")
            return ast.CountWindow(size, step, span=self.since(start))
        if self.token.kind != "name" and not self.at_symbol("/", "@", "."):
            self.unexpected("'count' and a number, or a path and 'diff' or 'gap'")
        reference = self.window_path("the window's reference is no path", start)
        if self.take_name("gap"):
            return self.session(reference, start)
        if not self.take_name("diff"):
            hint = "as in |det_time diff 60| or |det_time gap 60|"
            raise self.error(f"expected 'diff' or 'gap', found {self.token}", self.token.span, hint=hint)
        extent = self.amount("a window size")
        every = self.amount("a step size") if self.take_name("step") else None
        self.window_end(None if every else "step")
        return ast.TimeWindow(reference, extent, every, span=self.since(start))

    def session(self, reference: ast.Path, start: int) -> ast.SessionWindow:
        gap = self.amount("a gap")
        by = self.window_path("the key of a session is no path", self.token.start) if self.take_name("by") else None
        self.window_end(None if by else "by")
        return ast.SessionWindow(reference, gap, by, span=self.since(start))

    def window_path(self, refusal: str, start: int) -> ast.Path:
        path = self.path_expr()
        if not isinstance(path, ast.Path):
            raise self.error(refusal, self.since(start), hint="as in |det_time diff 60| or |det_time gap 60 by user|")
        return path

    def window_end(self, before: str | None) -> None:
        """The bar that closes a window; `before` is what might stand in front of it."""
        if not self.at_symbol("|"):
            self.unexpected(f"'{before}' or '|'" if before else "'|'")
        self.advance()

    def order_by(self) -> tuple[ast.OrderKey, ...]:
        if self.at_name("stable"):
            self.advance()  # sorting is stable anyway
        self.expect_name("order")
        self.expect_name("by")
        keys: list[ast.OrderKey] = []
        while not keys or self.take(","):
            start = self.token.start
            key = self.expr_single()
            descending = self.at_name("descending")
            if self.at_name("ascending", "descending"):
                self.advance()
            if self.at_name("empty", "collation"):
                raise refuse("order modifier", self.text, self.token.span)
            keys.append(ast.OrderKey(key, descending, span=self.since(start)))
        return tuple(keys)

    def group_by(self) -> tuple[ast.GroupKey, ...]:
        self.expect_name("group")
        self.expect_name("by")
        keys: list[ast.GroupKey] = []
        while not keys or self.take(","):
            start = self.token.start
            variable = self.variable_name()
            self.no_type()
            with self.before(1):
                value = self.expr_single() if self.take(":=") else None
            if self.at_name("collation"):
                raise refuse("collation of a group", self.text, self.token.span)
            keys.append(ast.GroupKey(variable, value, span=self.since(start)))
        return tuple(keys)
