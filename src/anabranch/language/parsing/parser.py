"""Query text to tree: recursive descent, one method per production, one word of lookahead.

The grammar is XQuery's for what both share, with WXQuery's windows behind a `for` path and the temporal
qualifiers `#` and `?` behind steps and parentheses.
Names are not reserved: `for`, `if` and the rest are keywords only where what follows makes them so.
What the language refuses by name is in `language/checks/refusals.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from anabranch.errors import QueryError
from anabranch.language import ast
from anabranch.language.checks.refusals import refuse
from anabranch.language.clauses import expression_of
from anabranch.language.parsing.constructors import RESERVED
from anabranch.language.parsing.cursor import MAX_NESTING, QueryToken
from anabranch.language.parsing.operators import OperatorParser
from anabranch.language.parsing.prolog import always_of, with_globals, with_types
from anabranch.language.positions import with_positions
from anabranch.language.rewrite import deepest, free_variables, with_clear_names

_ENCODING = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_DECLARABLE = (
    *("namespace", "default", "function", "variable", "option", "context", "module", "schema"),
    *("boundary-space", "base-uri", "construction", "ordering", "copy-namespaces", "decimal-format", "%"),
)
"""The words that make a `declare` or `import` in front of them a keyword."""


def parse(text: str, name: str | None = None) -> ast.Query:
    """Read a query; `name` (a file's, say) is shown in errors. Raises `QueryError` with the place."""
    try:
        return with_positions(Parser(text).main_module())
    except QueryError as error:
        error.name = name
        raise


class Parser(OperatorParser):
    """The productions at the top: prolog and FLWR."""

    # --- prolog -------------------------------------------------------------------------------------------

    def main_module(self) -> ast.Query:
        if self.at_name("xquery") and self.peek().text in ("version", "encoding"):
            self.version_declaration()
        namespaces: dict[str, str] = {}
        functions: list[ast.Function] = []
        variables: list[ast.Let] = []
        while self.at_name("declare", "import") and self.peek().text in _DECLARABLE:
            self.prolog_declaration(namespaces, functions, variables)
        start = self.token.start
        body = self.expr()
        if self.token.kind != "end":
            self.unexpected("an operator or the end of the query")
        declared = tuple((prefix, uri) for prefix, uri in namespaces.items() if uri or not prefix)
        query = ast.Query(body, declared, tuple(functions), span=self.since(start))
        self.check_variables(variables)
        query = with_globals(query, variables)
        if self.dotted:
            query = with_clear_names(query)
        nesting, place = deepest(query)
        if nesting > MAX_NESTING:
            raise self.error(f"more than {MAX_NESTING} constructs inside one another", place)
        return query

    def check_variables(self, variables: list[ast.Let]) -> None:
        """Refuse a declared variable whose value uses one that is not declared."""
        names = {each.variable for each in variables}
        for each in variables:
            for name in sorted(free_variables(each.value)):
                if name not in names - {each.variable}:
                    raise self.error(f"no variable is called '${name}'", each.span, "XPST0008")

    def version_declaration(self) -> None:
        self.advance()
        if self.take_name("version"):
            version = self.string("the version, in quotes")
            if version.text not in ("1.0", "3.0", "3.1"):
                raise self.error(f"version '{version.text}' is not known", version.span, "XQST0031")
        if self.take_name("encoding"):
            encoding = self.string("the encoding, in quotes")
            if not _ENCODING.fullmatch(encoding.text):
                raise self.error(f"'{encoding.text}' is no encoding", encoding.span, "XQST0087")
        self.expect(";")

    def prolog_declaration(
        self, namespaces: dict[str, str], functions: list[ast.Function], variables: list[ast.Let]
    ) -> None:
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
            case "variable":
                variables.append(self.variable_declaration(variables))
            case _:
                raise refuse("prolog declaration", self.text, what.span)
        self.expect(";")

    def declare_namespace(self, namespaces: dict[str, str], prefix: str, at: QueryToken) -> None:
        if prefix in namespaces:
            raise self.error(f"namespace prefix '{prefix}' is declared twice", at.span, "XQST0033")
        if prefix in ("xml", "xmlns"):
            raise self.error(f"prefix '{prefix}' cannot be declared", at.span, "XQST0070")
        uri = self.string("a namespace in quotes").text
        if uri in RESERVED:
            raise self.error(f"namespace '{uri}' cannot be declared", at.span, "XQST0070")
        namespaces[prefix] = uri

    def variable_declaration(self, others: list[ast.Let]) -> ast.Let:
        start = self.token.start
        name = self.variable_name()
        if any(each.variable == name for each in others):
            raise self.error(f"variable '${name}' is declared twice", self.since(start), "XQST0049")
        declared = self.declared_type()
        if self.at_name("external"):
            raise refuse("external variable", self.text, self.token.span)
        self.expect(":=")
        value = self.expr_single()
        return ast.Let(name, value if declared is None else self.typed(value, declared), span=self.since(start))

    def function_declaration(self, start: int) -> ast.Function:
        if self.token.kind != "name":
            self.unexpected("a function name")
        name = self.advance()
        if ":" not in name.text:
            raise self.error(
                f"function '{name.text}' needs a prefix", name.span, "XQST0045", f"call it 'local:{name.text}'"
            )
        outside = len(self.bound)
        parameters, types = self.parameters(start)
        result = self.declared_type()
        if self.at_name("external"):
            raise refuse("outside access", self.text, self.token.span)
        body = with_types(parameters, types, self.block(), result)
        del self.bound[outside:]
        return ast.Function(name.text, parameters, body, span=name.span)

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
                yield from binding()
                while self.take(","):
                    yield from binding()
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

    def for_binding(self) -> Iterator[ast.Clause]:
        start = self.token.start
        variable = self.variable_name()
        declared = self.declared_type()
        allows_empty = self.at_name("allowing")
        if allows_empty:
            self.advance()
            self.expect_name("empty")
        position: str | None = None
        if self.at_name("at"):
            at = self.advance()
            position = self.variable_name()
            if position == variable:
                raise self.error(f"variable '${variable}' is named twice", self.since(at.start), "XQST0089")
        self.expect_name("in")
        with self.before(1 if position is None else 2):
            source = self.loop_source()
        window = self.window() if self.at_symbol("|") else None
        if window is not None and (position is not None or allows_empty):
            raise refuse("allowing empty" if allows_empty else "positional variable", self.text, self.since(start))
        if position is None and not allows_empty:
            yield ast.For(variable, source, window, span=self.since(start))
        else:
            yield ast.PositionalFor(variable, position, source, allows_empty, span=self.since(start))
        if declared is not None and not always_of(source, declared):
            span = self.since(start)
            yield ast.Let(variable, self.typed(ast.Variable(variable, span=span), declared), span=span)

    def loop_source(self) -> ast.Expression:
        """What a `for` runs over; a `|` behind it begins a window."""
        before, self.source_depth = self.source_depth, self.depth + 1
        try:
            return self.expr_single()
        finally:
            self.source_depth = before

    def let_binding(self) -> Iterator[ast.Clause]:
        start = self.token.start
        variable = self.variable_name()
        declared = self.declared_type()
        self.expect(":=")
        with self.before(1):
            value = self.expr_single()
        yield ast.Let(variable, value if declared is None else self.typed(value, declared), span=self.since(start))

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
        """The bar that closes a window; `before` is a word that may stand in front of it, for the error."""
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
            if self.take_name("empty"):
                if not self.at_name("greatest", "least"):
                    self.unexpected("'greatest' or 'least'")
                if self.advance().text == "greatest":
                    rank = ast.Call("op:empty-rank", (key,), span=key.span)
                    keys.append(ast.OrderKey(rank, descending, span=self.since(start)))
            if self.at_name("collation"):
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
            declared = self.declared_type()
            with self.before(1):
                value = self.expr_single() if self.take(":=") else None
            if declared is not None and value is None:
                raise refuse("type declaration", self.text, self.since(start))
            if declared is not None and value is not None:
                value = self.typed(ast.Call("data", (value,), span=value.span), declared)
            if self.at_name("collation"):
                raise refuse("collation of a group", self.text, self.token.span)
            keys.append(ast.GroupKey(variable, value, span=self.since(start)))
        return tuple(keys)
