"""The productions from a path down: steps, predicates, qualifiers, and what a path may start from."""

from __future__ import annotations

from typing import Literal, cast

from anabranch.language import ast
from anabranch.language.checks.refusals import refuse
from anabranch.language.parsing.constructors import parse_constructor
from anabranch.language.parsing.cursor import Cursor
from anabranch.language.parsing.scanner import Token, scan

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


class PathParser(Cursor):
    """Paths and primary expressions; `Parser` adds what may stand inside their brackets and braces."""

    def expr(self) -> ast.Expression:
        """Expressions with commas between them."""
        raise AssertionError("the parser gives this")

    def expr_single(self) -> ast.Expression:
        """One expression, without commas."""
        raise AssertionError("the parser gives this")

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
            if arguments and not self.take(","):
                self.unexpected("',' or ')'")
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
        if self.token.kind != "number":  # no place for an operator: a `|` behind it closes a window
            raise self.error(f"expected {expected}, found {self.token}", self.token.span)
        token = self.advance()
        return ast.Number(token.text, span=token.span)

    def string(self, expected: str) -> Token:
        if self.token.kind != "string":
            self.unexpected(expected)
        return self.advance()

    def no_type(self) -> None:
        if self.at_name("as"):
            raise refuse("type declaration", self.text, self.token.span)
