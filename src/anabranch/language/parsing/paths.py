"""The productions from a path down: steps, predicates, qualifiers, and what a path may start from."""

from __future__ import annotations

import re
from typing import Literal, cast, get_args

from anabranch.language import ast
from anabranch.language.checks.refusals import refuse
from anabranch.language.contexts import stepped
from anabranch.language.objects import CALL
from anabranch.language.operators import UNWRITTEN
from anabranch.language.parsing.constructors import ConstructorReader
from anabranch.language.parsing.cursor import NCNAME, QueryToken, scan
from anabranch.language.parsing.lookups import LookupParser
from anabranch.language.parsing.prolog import with_types
from anabranch.stream.reading.json_names import named
from anabranch.values.instants import length_seconds
from anabranch.values.numbers import shown

_DURATION = re.compile(r"PT?[0-9]")
_MONTHS = re.compile(r"P[0-9]+[YM]")
"""The beginnings of a duration, and of one in years or months."""
_QNAME = re.compile(rf"{NCNAME}(?::{NCNAME})?")


_AXES = get_args(ast.Axis)
_KIND_TESTS = get_args(ast.NodeKind)
_NO_KIND_TESTS = ("item", "schema-element", "schema-attribute", "namespace-node")
_OUTSIDE = (
    *("collection", "uri-collection", "unparsed-text", "unparsed-text-lines"),
    *("environment-variable", "doc-available"),
)
_CLOCK = ("current-dateTime", "current-date", "current-time")
_BRACED = {
    "namespace": "namespace constructor",
    "validate": "validate",
}
_COMPUTED = ("element", "attribute", "text", "document", "comment", "processing-instruction")
_ORDERING = ("ordered", "unordered")


class PathParser(LookupParser):
    """Paths and primary expressions; `OperatorParser` adds what may stand inside their brackets and braces."""

    def block(self) -> ast.Expression:
        """An expression in braces."""
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
        while self.at_symbol("/", "//", "#", "?"):
            if self.at_symbol("#", "?"):  # a second qualifier is that of the path so far (LAWS 5.4)
                path = ast.Path(root, tuple(steps), span=self.since(start)) if steps else root
                assert path is not None
                root, steps = ast.Filter(path, self.tail(), span=self.since(start)), []
                continue
            deep = self.advance().text == "//"
            if self.begins_step():
                steps.append(self.axis_step(deep))
                continue
            if self.token.kind == "end" or (self.token.kind == "symbol" and not self.at_symbol("(", "$", "<")):
                self.unexpected("a step")
            if deep:
                steps.append(ast.Step("descendant-or-self", ast.KindTest("node"), span=self.token.span))
            before = ast.Path(root, tuple(steps), span=self.since(start)) if steps else root
            root, steps = stepped(before, self.postfix_expr(), self.fresh_variable, self.since(start)), []
        if not steps:
            assert root is not None
            return root
        if self.at_member():
            hint = "look the array up with '.', as in $o.tags[[1]]"
            raise self.error("'/' gives nodes, and an array is looked into here", self.token.span, hint=hint)
        return self.lookups(ast.Path(root, tuple(steps), span=self.since(start)), start)

    def begins_step(self, first: bool = False) -> bool:
        """Whether the current token begins an axis step; a `.` does so behind a `/` only."""
        if self.token.kind != "name":
            return self.at_symbol("@", "..", "*") or (self.at_symbol(".") and not first)
        word, behind = self.token.text, self.peek()
        if behind.text == "(" and behind.kind == "symbol":
            return word in _KIND_TESTS
        if behind.text == "{" and word in ("map", "array"):
            return False
        if word in (*_BRACED, *_COMPUTED, *_ORDERING):
            named = behind.kind == "name" and word not in _ORDERING and scan(self.text, behind.end).text == "{"
            if (behind.text == "{" and behind.kind == "symbol") or named:
                if word in _BRACED:
                    raise refuse(_BRACED[word], self.text, self.token.span)
                return False
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
            axis, test = "attribute", self.node_test("attribute")
        elif self.token.kind == "name" and self.peek().text == "::":
            word = self.advance()
            if word.text == "namespace":
                raise refuse("axis", self.text, word.span)
            if word.text not in _AXES:
                raise self.error(f"'{word.text}' is no axis", word.span, hint="use child, parent, self or attribute")
            self.advance()
            axis = cast(ast.Axis, word.text)
            test = self.node_test(axis)
        else:
            axis = "attribute" if self.at_name("attribute") and self.peek().text == "(" else "child"
            test = self.node_test(axis)
        tail = self.tail()
        return ast.Step(axis, test, tail, deep, span=self.since(start))

    def node_test(self, axis: ast.Axis = "child") -> ast.NameTest | ast.KindTest:
        if self.take("*"):
            if self.at_symbol(":") and self.peek().kind == "name":
                self.advance()
                return ast.NameTest(named(self.advance().text), "*")
            return ast.NameTest("*")
        if self.token.kind != "name":
            self.unexpected("a name, '*', text() or node()")
        name = self.token
        if self.peek().text == "(" and self.peek().kind == "symbol":
            if name.text not in _KIND_TESTS:
                raise refuse("kind test", self.text, name.span)
            return self.kind_test(axis)
        self.advance()
        if self.at_symbol(":") and self.token.start == name.end and self.peek().text == "*":
            self.advance()
            self.advance()
            return ast.NameTest("*", name.text)
        return _name_test(name.text)

    def kind_test(self, axis: ast.Axis) -> ast.NameTest | ast.KindTest:
        """`element(a)` where elements are meant anyway is the name test `a`, and so with attributes."""
        kind, _, name = self.item_type().removesuffix(")").partition("(")
        if kind == "document-node" and name:
            raise refuse("kind test", self.text, self.token.span)
        if kind in ("element", "attribute") and (kind == "attribute") == (axis == "attribute"):
            return _name_test(name) if name else ast.NameTest("*")
        if kind in ("attribute", "element") and name:
            raise refuse("kind test", self.text, self.token.span)
        return ast.KindTest(cast(ast.NodeKind, kind), name or None)

    def tail(self) -> tuple[ast.Tail, ...]:
        """Predicates and temporal qualifiers behind a step or a primary expression, up to a second qualifier."""
        found: list[ast.Tail] = []
        while self.at_symbol("[", "#", "?") and not self.at_member():
            if not self.at_symbol("[") and any(isinstance(each, ast.Qualifier) for each in found):
                break
            mark = self.advance()
            if mark.text == "[":
                condition = self.expr()
                self.expect("]")
                found.append(ast.Predicate(condition, span=self.since(mark.start)))
                continue
            window = self.take("[")
            if mark.text == "?" and not window and not self.at_amount():
                raise refuse("lookup", self.text, mark.span)
            amount = self.number("a version number") if mark.text == "#" else self.amount("a time in seconds")
            if window:
                self.expect("]")
            kind: Literal["version", "time"] = "version" if mark.text == "#" else "time"
            found.append(ast.Qualifier(kind, window, amount, span=self.since(mark.start)))
        return tuple(found)

    # --- primary expressions ------------------------------------------------------------------------------

    def postfix_expr(self) -> ast.Expression:
        start = self.token.start
        is_function = self.at_symbol("$", "(", "[", "{") or (self.at_name("function") and self.peek().text == "(")
        base = self.lookups(self.primary_expr(), start)
        while True:
            if is_function and self.at_symbol("("):
                base = ast.Call(CALL, (base, *self.arguments()), span=self.since(start))
            elif tail := self.tail():
                base = ast.Filter(base, tail, span=self.since(start))
            else:
                return base
            base = self.lookups(base, start)

    def arguments(self) -> tuple[ast.Expression, ...]:
        """What stands between the parentheses of a call."""
        self.expect("(")
        found: list[ast.Expression] = []
        while not self.at_symbol(")"):
            if found and not self.take(","):
                self.unexpected("',' or ')'")
            found.append(self.expr_single())
        self.expect(")")
        return tuple(found)

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
                return self.variable_reference()
            case "symbol", ".":
                self.advance()
                return ast.ContextItem(span=token.span)
            case "symbol", "(":
                return self.parenthesized_expr()
            case "symbol", "<":
                return self.direct_constructor()
            case "symbol", "{":
                return self.object_constructor(token.start)
            case "symbol", "[":
                return self.array_constructor()
            case "name", "map" | "array" if self.peek().text == "{":
                return self.named_constructor()
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
        reader = ConstructorReader(self, start)
        constructor = reader.element()
        self.jump(reader.at)
        return constructor

    def function_call(self) -> ast.Expression:
        name = self.advance()
        if name.text.startswith("op:") and name.text not in UNWRITTEN:
            raise self.error("prefix 'op' is not declared", name.span, "XPST0081")
        if name.text == "function" and self.at_symbol("("):
            return self.inline_function(name.start)
        if name.text in _COMPUTED and not self.at_symbol("("):
            return self.computed_constructor(name)
        if name.text in _ORDERING and self.at_symbol("{"):
            return self.block()  # the order is that of the sequence anyway
        if name.text in (*_KIND_TESTS, *_NO_KIND_TESTS):
            raise refuse("kind test", self.text, name.span)
        if name.text.removeprefix("fn:") in _OUTSIDE:
            raise refuse("outside access", self.text, name.span)
        if name.text.removeprefix("fn:") in _CLOCK:
            raise refuse("clock", self.text, name.span)
        if name.text in ("stream", "doc"):
            self.expect("(")
            given = self.string(f"the name of a {name.text}, in quotes")
            self.expect(")")
            kind: Literal["stream", "doc"] = "stream" if name.text == "stream" else "doc"
            return ast.Source(kind, given.text, span=self.since(name.start))
        arguments = self.arguments()
        if name.text.removeprefix("fn:") == "sum" and len(arguments) == 2:
            return self.sum_or_else(*arguments, start=name.start)
        return ast.Call(name.text, arguments, span=self.since(name.start))

    def sum_or_else(self, values: ast.Expression, otherwise: ast.Expression, *, start: int) -> ast.Expression:
        """`sum(values, zero)`: the sum, or `zero` where there are no values."""
        span, name = self.since(start), self.fresh_variable("values")
        given = ast.Variable(name, span=span)
        empty = ast.Call("empty", (given,), span=span)
        chosen = ast.If(empty, otherwise, ast.Call("sum", (given,), span=span), span=span)
        return ast.Flwor((ast.Let(name, values, span=values.span),), None, (), chosen, span=span)

    def inline_function(self, start: int) -> ast.InlineFunction:
        parameters, types = self.parameters(start)
        result = self.declared_type()
        body = with_types(parameters, types, self.block(), result)
        return ast.InlineFunction(parameters, body, span=self.since(start))

    def parameters(self, start: int) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
        """The parameters of a function, and the types that they declare."""
        self.expect("(")
        names: list[str] = []
        types: list[str | None] = []
        while not self.at_symbol(")"):
            if names and not self.take(","):
                self.unexpected("',' or ')'")
            name = self.variable_name()
            if name in names:
                raise self.error(f"parameter '${name}' is named twice", self.since(start), "XQST0039")
            names.append(name)
            types.append(self.declared_type())
        self.expect(")")
        return tuple(names), tuple(types)

    def computed_constructor(self, word: QueryToken) -> ast.Expression:
        """`element a { ... }` is `<a>{ ... }</a>`; what has no direct constructor is a call."""
        kind = word.text
        name: ast.Expression | None = None
        if kind in ("element", "attribute", "processing-instruction"):
            if self.at_symbol("{"):
                name = self.block()
            elif self.token.kind == "name":
                given = self.advance()
                name = ast.String(given.text, span=given.span)
            else:
                self.unexpected("a name or '{'")
        content = self.block()
        span = self.since(word.start)
        if kind == "element" and isinstance(name, ast.String) and _QNAME.fullmatch(name.value):
            inside = () if content == ast.Sequence(()) else (ast.Enclosed(content, span=content.span),)
            return ast.ElementConstructor(name.value, (), (), inside, span=span)
        return ast.Call(f"op:{kind}", (content,) if name is None else (name, content), span=span)

    # --- words --------------------------------------------------------------------------------------------

    def variable_name(self) -> str:
        """The name of a variable that is bound here."""
        self.expect("$")
        if self.token.kind == "name" and self.token.text.startswith("err:"):
            return self.advance().text
        self.bound.append(self.nc_name("a variable name").text)
        self.dotted = self.dotted or "." in self.bound[-1]
        return self.bound[-1]

    def nc_name(self, expected: str) -> QueryToken:
        if self.token.kind != "name" or ":" in self.token.text:
            self.unexpected(expected)
        return self.advance()

    def number(self, expected: str) -> ast.Number:
        if self.token.kind != "number":  # no place for an operator: a `|` behind it closes a window
            raise self.error(f"expected {expected}, found {self.token}", self.token.span)
        token = self.advance()
        return ast.Number(token.text, span=token.span)

    def at_amount(self) -> bool:
        """Whether a number comes, or a word that begins as a duration does."""
        return self.token.kind == "number" or (self.token.kind == "name" and bool(_DURATION.match(self.token.text)))

    def amount(self, expected: str) -> ast.Amount:
        """A number, or a dayTimeDuration such as `PT1M`."""
        if self.token.kind == "number" or not self.at_amount():
            return self.number(expected)
        token = self.token
        if length_seconds(token.text) is None:
            if _MONTHS.match(token.text):
                raise refuse("duration in months", self.text, token.span)
            hint = "as in PT30S, PT1M, PT1H30M or P1D"
            raise self.error(f"'{shown(token.text)}' is no duration", token.span, hint=hint)
        self.advance()
        return ast.Duration(token.text, span=token.span)

    def string(self, expected: str) -> QueryToken:
        if self.token.kind != "string":
            self.unexpected(expected)
        return self.advance()


def _name_test(text: str) -> ast.NameTest:
    """The test for a name as it is written, which may have a prefix."""
    prefix, _, local = text.rpartition(":")
    return ast.NameTest(local, prefix) if prefix else ast.NameTest(named(local))
