"""Query text to tree: recursive descent, one method per production, one word of lookahead.

The grammar is XQuery's for what both share, with WXQuery's windows behind a `for` path and the temporal
qualifiers `#` and `?` behind steps and parentheses.
Names are not reserved: `for`, `if` and the rest are keywords only where what follows makes them so.
What the language refuses by name is in `refusals.py`.
"""

from __future__ import annotations

from typing import Literal, cast

from anabranch.errors import QueryError
from anabranch.language import ast
from anabranch.language.constructors import parse_constructor
from anabranch.language.cursor import Cursor
from anabranch.language.refusals import refuse
from anabranch.language.scanner import Token, scan

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_AXES = ("child", "attribute", "parent", "self", "descendant", "descendant-or-self")
_OTHER_AXES = (
    *("ancestor", "ancestor-or-self", "following", "following-sibling", "preceding", "preceding-sibling"),
    "namespace",
)
_KIND_TESTS = (
    *("comment", "element", "attribute", "document-node", "processing-instruction", "item"),
    *("schema-element", "schema-attribute", "namespace-node"),
)
_OUTSIDE = (
    *("collection", "uri-collection", "unparsed-text", "unparsed-text-lines"),
    *("environment-variable", "doc-available"),
)
_BRACED = {
    **dict.fromkeys(("element", "attribute", "text", "document", "comment", "namespace"), "computed constructor"),
    "processing-instruction": "computed constructor",
    **dict.fromkeys(("map", "array"), "map or array"),
    "try": "try and catch",
    **dict.fromkeys(("validate", "ordered", "unordered"), "validate, ordered and unordered"),
}


def parse(text: str, name: str | None = None) -> ast.Query:
    """Read a query; `name` (a file's, say) is shown in errors. Raises `QueryError` with the place."""
    try:
        return Parser(text).main_module()
    except QueryError as error:
        error.name = name
        raise


class Parser(Cursor):
    # --- prolog -------------------------------------------------------------------------------------------

    def main_module(self) -> ast.Query:
        if self.at_name("xquery") and self.peek().text in ("version", "encoding"):
            while not self.at_symbol(";") and self.token.kind != "end":
                self.advance()
            self.expect(";")
        namespaces: dict[str, str] = {}
        functions: list[ast.Function] = []
        while self.at_name("declare", "import") and self.peek().kind == "name":
            self.prolog_declaration(namespaces, functions)
        start = self.token.start
        body = self.expr()
        if self.token.kind != "end":
            self.unexpected("an operator or the end of the query")
        return ast.Query(body, tuple(namespaces.items()), tuple(functions), span=self.since(start))

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

    def declare_namespace(self, namespaces: dict[str, str], prefix: str, at: Token) -> None:
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
            if parameters:
                self.expect(",")
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
        kind = self.advance()
        bindings: list[tuple[str, ast.Expression]] = []
        while not bindings or self.take(","):
            variable = self.variable_name()
            self.no_type()
            self.expect_name("in")
            bindings.append((variable, self.expr_single()))
        self.expect_name("satisfies")
        condition = self.expr_single()
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
        operator = cast(ast.ComparisonOperator, self.advance().text)
        right = self.additive_expr()
        if self.at_symbol(*_COMPARISONS):
            raise self.error("comparisons do not chain", self.token.span, hint="join them with 'and'")
        return ast.Comparison(operator, left, right, span=self.since(start))

    def additive_expr(self) -> ast.Expression:
        start = self.token.start
        first = self.multiplicative_expr()
        rest: list[tuple[ast.ArithmeticOperator, ast.Expression]] = []
        while self.at_symbol("+", "-"):
            operator = cast(ast.ArithmeticOperator, self.advance().text)
            rest.append((operator, self.multiplicative_expr()))
        return ast.Arithmetic(first, tuple(rest), span=self.since(start)) if rest else first

    def multiplicative_expr(self) -> ast.Expression:
        start = self.token.start
        first = self.unary_expr()
        rest: list[tuple[ast.ArithmeticOperator, ast.Expression]] = []
        while self.at_symbol("*") or self.at_name("div", "mod"):
            operator = cast(ast.ArithmeticOperator, self.advance().text)
            rest.append((operator, self.unary_expr()))
        return ast.Arithmetic(first, tuple(rest), span=self.since(start)) if rest else first

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

    def flwor_expr(self) -> ast.Flwor:
        start = self.token.start
        clauses: list[ast.For | ast.Let] = []
        while self.at_name("for", "let") and self.peek().text == "$":
            clause = self.for_binding if self.advance().text == "for" else self.let_binding
            clauses.append(clause())
            while self.take(","):
                clauses.append(clause())
        where: ast.Expression | None = None
        if self.at_name("where"):
            self.advance()
            where = self.expr_single()
            if self.at_name("for", "let", "where"):
                raise refuse("clause behind where", self.text, self.token.span)
        if self.at_name("group"):
            raise refuse("group by", self.text, self.token.span)
        if self.at_name("count"):
            raise refuse("count clause", self.text, self.token.span)
        order = self.order_by()
        if not self.at_name("return"):
            self.unexpected("'return'" if where or order else "'where', 'order by' or 'return'")
        self.advance()
        return ast.Flwor(tuple(clauses), where, order, self.expr_single(), span=self.since(start))

    def for_binding(self) -> ast.For:
        start = self.token.start
        variable = self.variable_name()
        self.no_type()
        if self.at_name("at"):
            raise refuse("positional variable", self.text, self.token.span)
        if self.at_name("allowing"):
            raise refuse("allowing empty", self.text, self.token.span)
        self.expect_name("in")
        source = self.expr_single()
        window = self.window() if self.at_symbol("|") else None
        return ast.For(variable, source, window, span=self.since(start))

    def let_binding(self) -> ast.Let:
        start = self.token.start
        variable = self.variable_name()
        self.no_type()
        self.expect(":=")
        return ast.Let(variable, self.expr_single(), span=self.since(start))

    def window(self) -> ast.CountWindow | ast.TimeWindow:
        start = self.advance().start
        if self.at_name("count") and self.peek().kind == "number":
            self.advance()
            size, step = self.number("a window size"), self.window_step()
            return ast.CountWindow(size, step, span=self.since(start))
        if self.token.kind != "name" and not self.at_symbol("/", "@", "."):
            self.unexpected("'count' and a number, or a path and 'diff'")
        reference = self.path_expr()
        if not isinstance(reference, ast.Path):
            raise self.error("the window's reference is no path", self.since(start), hint="as in |det_time diff 60|")
        self.expect_name("diff")
        size, step = self.number("a window size"), self.window_step()
        return ast.TimeWindow(reference, size, step, span=self.since(start))

    def window_step(self) -> ast.Number | None:
        step = None
        if self.at_name("step"):
            self.advance()
            step = self.number("a step size")
        if not self.at_symbol("|"):
            self.unexpected("'|'" if step else "'step' or '|'")
        self.advance()
        return step

    def order_by(self) -> tuple[ast.OrderKey, ...]:
        if self.at_name("stable") and self.peek().text == "order":
            self.advance()  # sorting is stable anyway
        if not self.at_name("order"):
            return ()
        self.advance()
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

    # --- paths --------------------------------------------------------------------------------------------

    def path_expr(self) -> ast.Expression:
        start = self.token.start
        if self.at_symbol("//"):
            root: ast.Expression | None = ast.Root(span=self.token.span)
            steps: list[ast.Step] = []
        elif self.at_symbol("/"):
            slash = self.advance()
            root = ast.Root(span=slash.span)
            if not self.begins_step():
                return root
            steps = [self.axis_step(deep=False)]
        else:
            first = self.axis_step(deep=False) if self.begins_step(first=True) else self.postfix_expr()
            root, steps = (None, [first]) if isinstance(first, ast.Step) else (first, [])
        while self.at_symbol("/", "//"):
            deep = self.advance().text == "//"
            if not self.begins_step():
                if self.at_name(*_KIND_TESTS):
                    raise refuse("kind test", self.text, self.token.span)
                if self.at_symbol("(", "$", "<") or self.token.kind not in ("symbol", "end"):
                    raise refuse("expression as a step", self.text, self.token.span)
                self.unexpected("a step")
            steps.append(self.axis_step(deep))
        if not steps:
            assert root is not None
            return root
        return ast.Path(root, tuple(steps), span=self.since(start))

    def begins_step(self, first: bool = False) -> bool:
        """Whether the current token begins an axis step; a `.` does so behind a `/` only."""
        if self.token.kind != "name":
            return self.at_symbol("@", "..", "*") or (self.at_symbol(".") and not first)
        word, behind = self.token.text, self.peek()
        if behind.text == "(" and behind.kind == "symbol":
            return word in ("text", "node")
        if behind.text == "{" and word in _BRACED:
            raise refuse(_BRACED[word], self.text, self.token.span)
        if behind.kind == "name" and word in _BRACED and scan(self.text, behind.end).text == "{":
            raise refuse(_BRACED[word], self.text, self.token.span)
        return True

    def axis_step(self, deep: bool) -> ast.Step:
        start = self.token.start
        axis: ast.Axis = "child"
        test: ast.NameTest | ast.KindTest
        if self.take(".."):
            axis, test = "parent", ast.KindTest("node")
        elif self.take("."):
            axis, test = "self", ast.KindTest("node")
        elif self.take("@"):
            axis, test = "attribute", self.node_test()
        elif self.token.kind == "name" and self.peek().text == "::":
            word = self.advance()
            if word.text in _OTHER_AXES:
                raise refuse("axis", self.text, word.span)
            if word.text not in _AXES:
                raise self.error(f"'{word.text}' is no axis", word.span, hint="use child, parent, self or attribute")
            self.advance()
            axis, test = cast(ast.Axis, word.text), self.node_test()
        else:
            test = self.node_test()
        tail = self.tail()
        return ast.Step(axis, test, tail, deep, span=self.since(start))

    def node_test(self) -> ast.NameTest | ast.KindTest:
        if self.take("*"):
            if self.at_symbol(":") and self.peek().kind == "name":
                self.advance()
                return ast.NameTest(self.advance().text, "*")
            return ast.NameTest("*")
        if self.token.kind != "name":
            self.unexpected("a name, '*', text() or node()")
        name = self.advance()
        if self.at_symbol("("):
            if name.text in _KIND_TESTS:
                raise refuse("kind test", self.text, name.span)
            if name.text not in ("text", "node"):
                raise refuse("expression as a step", self.text, name.span)
            self.advance()
            self.expect(")")
            return ast.KindTest("text" if name.text == "text" else "node")
        if self.at_symbol(":") and self.token.start == name.end and self.peek().text == "*":
            self.advance()
            self.advance()
            return ast.NameTest("*", name.text)
        prefix, _, local = name.text.rpartition(":")
        return ast.NameTest(local, prefix or None)

    def tail(self) -> tuple[ast.Predicate | ast.Qualifier, ...]:
        """Predicates and temporal qualifiers behind a step or a primary expression."""
        found: list[ast.Predicate | ast.Qualifier] = []
        while self.at_symbol("[", "#", "?"):
            mark = self.advance()
            if mark.text == "[":
                condition = self.expr()
                self.expect("]")
                found.append(ast.Predicate(condition, span=self.since(mark.start)))
                continue
            if any(isinstance(each, ast.Qualifier) for each in found):
                raise refuse("several temporal qualifiers", self.text, mark.span)
            window = self.take("[")
            if mark.text == "?" and not window and self.token.kind != "number":
                raise refuse("lookup", self.text, mark.span)
            amount = self.number("a version number" if mark.text == "#" else "a time in seconds")
            if window:
                self.expect("]")
            kind: Literal["version", "time"] = "version" if mark.text == "#" else "time"
            found.append(ast.Qualifier(kind, window, amount, span=self.since(mark.start)))
        return tuple(found)

    # --- primary expressions ------------------------------------------------------------------------------

    def postfix_expr(self) -> ast.Expression:
        start = self.token.start
        base = self.primary_expr()
        tail = self.tail()
        return ast.Filter(base, tail, span=self.since(start)) if tail else base

    def primary_expr(self) -> ast.Expression:
        token = self.token
        match token.kind, token.text:
            case "string", value:
                self.advance()
                return ast.String(value, span=token.span)
            case "number", digits:
                self.advance()
                return ast.Number(digits, span=token.span)
            case "symbol", "$":
                return ast.Variable(self.variable_name(), span=self.since(token.start))
            case "symbol", ".":
                self.advance()
                return ast.ContextItem(span=token.span)
            case "symbol", "(":
                return self.parenthesized_expr()
            case "symbol", "<":
                return self.direct_constructor()
            case "name", _:
                return self.function_call()
        self.unexpected("an expression")

    def parenthesized_expr(self) -> ast.Expression:
        start = self.advance().start
        if self.take(")"):
            return ast.Sequence((), span=self.since(start))
        inner = self.expr()
        self.expect(")")
        return inner

    def direct_constructor(self) -> ast.ElementConstructor:
        start = self.token.start
        if self.text.startswith("<?", start):
            raise refuse("processing instruction constructor", self.text, self.token.span)
        constructor, end = parse_constructor(self, start)
        self.jump(end)
        return constructor

    def function_call(self) -> ast.Expression:
        name = self.advance()
        if name.text == "function":
            raise refuse("inline function", self.text, name.span)
        if name.text in _KIND_TESTS:
            raise refuse("kind test", self.text, name.span)
        if name.text.removeprefix("fn:") in _OUTSIDE:
            raise refuse("outside access", self.text, name.span)
        self.expect("(")
        if name.text in ("stream", "doc"):
            given = self.string(f"the name of a {name.text}, in quotes")
            self.expect(")")
            kind: Literal["stream", "doc"] = "stream" if name.text == "stream" else "doc"
            return ast.Source(kind, given.text, span=self.since(name.start))
        arguments: list[ast.Expression] = []
        while not self.at_symbol(")"):
            if arguments:
                self.expect(",")
            arguments.append(self.expr_single())
        self.expect(")")
        return ast.Call(name.text, tuple(arguments), span=self.since(name.start))

    # --- words --------------------------------------------------------------------------------------------

    def variable_name(self) -> str:
        self.expect("$")
        return self.nc_name("a variable name").text

    def nc_name(self, expected: str) -> Token:
        if self.token.kind != "name" or ":" in self.token.text:
            self.unexpected(expected)
        return self.advance()

    def number(self, expected: str) -> ast.Number:
        if self.token.kind != "number":
            self.unexpected(expected)
        token = self.advance()
        return ast.Number(token.text, span=token.span)

    def string(self, expected: str) -> Token:
        if self.token.kind != "string":
            self.unexpected(expected)
        return self.advance()

    def no_type(self) -> None:
        if self.at_name("as"):
            raise refuse("type declaration", self.text, self.token.span)
