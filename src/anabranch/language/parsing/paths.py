"""The productions from a path down: steps, predicates, qualifiers, what a path may start from, and constructors.

Direct element constructors are read character by character: between `<a>` and `</a>` white space counts, quotes are
text, and `{` leads back into expressions.
White space that stands alone between tags and braces is only layout and is dropped (XQuery's boundary space).
"""

from __future__ import annotations

import re
from typing import Literal, cast

from anabranch.errors import Span
from anabranch.language import ast
from anabranch.language.checks.refusals import refuse
from anabranch.language.parsing.cursor import NCNAME, QueryToken, resolve, scan, with_line_feeds
from anabranch.language.parsing.lookups import LookupParser
from anabranch.values.instants import length_seconds
from anabranch.values.numbers import shown

MAX_ATTRIBUTES = 256
_NAME = re.compile(rf"{NCNAME}(?::{NCNAME})?")
_SPACE = re.compile(r"[ \t\r\n]*")
_CONTENT_END = re.compile(r"[<{}]")
_SPACES_IN_VALUE = str.maketrans("\t\n", "  ")
_DURATION = re.compile(r"PT?[0-9]")
_MONTHS = re.compile(r"P[0-9]+[YM]")
"""What begins as a duration does, and as one of years or months."""


class _ConstructorReader:
    """Reads the constructor whose `<` is at `start`."""

    def __init__(self, parser: PathParser, start: int) -> None:
        self.parser = parser
        self.text = parser.text
        self.at = start

    def fail(self, message: str, at: int, code: str = "XPST0003", hint: str | None = None) -> Exception:
        return self.parser.error(message, Span(at, min(at + 1, len(self.text))), code, hint)

    def skip_space(self) -> bool:
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        moved = found.end() > self.at
        self.at = found.end()
        return moved

    def name(self, what: str) -> str:
        found = _NAME.match(self.text, self.at)
        if found is None:
            raise self.fail(f"expected {what}", self.at, hint="for the operator '<', leave a space behind it")
        self.at = found.end()
        return found.group()

    # --- tags ---------------------------------------------------------------------------------------------

    def element(self) -> ast.ElementConstructor:
        with self.parser.deeper():
            return self.tags_and_content()

    def tags_and_content(self) -> ast.ElementConstructor:
        start = self.at
        self.at += 1
        name = self.name("an element name behind '<'")
        attributes: list[ast.AttributeConstructor] = []
        namespaces: dict[str, str] = {}
        while True:
            spaced = self.skip_space()
            if self.text.startswith("/>", self.at):
                self.at += 2
                content: tuple[ast.Content, ...] = ()
                break
            if self.text.startswith(">", self.at):
                self.at += 1
                content = self.content(name, start)
                break
            if not spaced:
                raise self.fail("expected white space, '>' or '/>'", self.at)
            self.attribute(attributes, namespaces)
        span = Span(start, self.at)
        return ast.ElementConstructor(name, tuple(attributes), tuple(namespaces.items()), content, span=span)

    def attribute(self, attributes: list[ast.AttributeConstructor], namespaces: dict[str, str]) -> None:
        start = self.at
        name = self.name("an attribute, '>' or '/>'")
        self.skip_space()
        if not self.text.startswith("=", self.at):
            raise self.fail(f"expected '=' behind attribute '{name}'", self.at)
        self.at += 1
        self.skip_space()
        quote = self.text[self.at : self.at + 1]
        if quote not in ('"', "'") or not quote:
            raise self.fail(f"expected the value of '{name}' in quotes", self.at)
        self.at += 1
        value = self.attribute_value(quote, start)
        prefix, _, local = name.rpartition(":")
        if name == "xmlns" or prefix == "xmlns":
            if any(isinstance(part, ast.Enclosed) for part in value):
                raise self.fail("a namespace must be literal", start, "XQST0022")
            declared = "" if name == "xmlns" else local
            if declared in namespaces:
                raise self.fail(f"namespace prefix '{declared}' is declared twice", start, "XQST0071")
            if declared in ("xml", "xmlns"):
                raise self.fail(f"prefix '{declared}' cannot be declared", start, "XQST0070")
            uri = "".join(part.value for part in value if isinstance(part, ast.Characters))
            if declared and not uri:
                raise self.fail(f"prefix '{declared}' cannot be undeclared", start, "XQST0085")
            namespaces[declared] = uri
            return
        if len(attributes) == MAX_ATTRIBUTES:
            raise self.fail(f"an element with more than {MAX_ATTRIBUTES} attributes", start)
        if any(each.name == name for each in attributes):
            raise self.fail(f"attribute '{name}' is given twice", start, "XQST0040")
        attributes.append(ast.AttributeConstructor(name, value, span=Span(start, self.at)))

    def attribute_value(self, quote: str, start: int) -> tuple[ast.Characters | ast.Enclosed, ...]:
        parts: list[ast.Characters | ast.Enclosed] = []
        plain: list[str] = []
        ends = re.compile(rf"[{quote}<{{}}]")
        while True:
            found = ends.search(self.text, self.at)
            if found is None:
                raise self.fail("this attribute value is never closed", start)
            at, mark = found.start(), found.group()
            literal = with_line_feeds(self.text[self.at : at]).translate(_SPACES_IN_VALUE)
            plain.append(resolve(literal, self.text, Span(self.at, at)))
            self.at = at + 1
            if mark == "<":
                raise self.fail("'<' cannot stand in an attribute value", at, hint="write '&lt;'")
            if self.text.startswith(mark, self.at):  # doubled, so the character itself
                plain.append(mark)
                self.at += 1
                continue
            if mark == "}":
                raise self.fail("'}' stands alone", at, hint="write '}}' for the character itself")
            if text := "".join(plain):
                parts.append(ast.Characters(text))
            plain = []
            if mark == quote:
                return tuple(parts)
            parts.append(self.enclosed(at))

    # --- content ------------------------------------------------------------------------------------------

    def content(self, name: str, start: int) -> tuple[ast.Content, ...]:
        parts: list[ast.Content] = []
        plain: list[str] = []
        keep = False  # whether the text collected has more than boundary space

        def flush() -> None:
            nonlocal plain, keep
            text = "".join(plain)
            if text and (keep or text.strip(" \t\r\n")):
                parts.append(ast.Characters(text))
            plain, keep = [], False

        while True:
            found = _CONTENT_END.search(self.text, self.at)
            if found is None:
                raise self.parser.error(
                    f"<{name}> is never closed", Span(start, start + 1 + len(name)), hint=f"close it with '</{name}>'"
                )
            at, mark = found.start(), found.group()
            if at > self.at:
                keep = keep or "&" in self.text[self.at : at]
                plain.append(resolve(self.text[self.at : at], self.text, Span(self.at, at)))
            self.at = at
            if mark != "<":
                if self.text.startswith(mark, at + 1):
                    plain.append(mark)
                    self.at = at + 2
                elif mark == "}":
                    raise self.fail("'}' stands alone", at, hint="write '}}' for the character itself")
                else:
                    flush()
                    self.at = at + 1
                    parts.append(self.enclosed(at))
            elif self.text.startswith("<![CDATA[", at):
                plain.append(with_line_feeds(self.up_to("]]>", at, 9, "CDATA section")))
                keep = True
            elif self.text.startswith("<!--", at):
                flush()
                comment = self.up_to("-->", at, 4, "comment")
                if "--" in comment or comment.endswith("-"):
                    raise self.fail("'--' cannot stand in a comment", at, "XQDY0072")
                parts.append(ast.CommentConstructor(comment, span=Span(at, self.at)))
            elif self.text.startswith("</", at):
                flush()
                self.closing_tag(name, at)
                return tuple(parts)
            elif self.text.startswith("<?", at):
                self.parser.jump(at)
                self.parser.direct_constructor()
            else:
                flush()
                parts.append(self.element())

    def closing_tag(self, name: str, at: int) -> None:
        self.at = at + 2
        closing = self.name("the name of the element to close")
        if closing != name:
            raise self.parser.error(
                f"</{closing}> closes <{name}>", Span(at, self.at), "XQST0118", hint=f"close it with '</{name}>'"
            )
        self.skip_space()
        if not self.text.startswith(">", self.at):
            raise self.fail("expected '>'", self.at)
        self.at += 1

    def up_to(self, end: str, at: int, opening: int, what: str) -> str:
        close = self.text.find(end, at + opening)
        if close < 0:
            raise self.fail(f"this {what} is never closed", at, hint=f"close it with '{end}'")
        self.at = close + len(end)
        return self.text[at + opening : close]

    def enclosed(self, start: int) -> ast.Enclosed:
        """`{ expression }`, whose `{` is just passed."""
        self.parser.jump(self.at)
        if self.parser.at_symbol("}"):
            value: ast.Expression = ast.Sequence(())
        else:
            value = self.parser.expr()
            if not self.parser.at_symbol("}"):
                self.parser.unexpected("'}'")
        self.at = self.parser.token.end
        return ast.Enclosed(value, span=Span(start, self.at))


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
_CLOCK = ("current-dateTime", "current-date", "current-time")
_BRACED = {
    **dict.fromkeys(("element", "attribute", "text", "document", "comment", "namespace"), "computed constructor"),
    "processing-instruction": "computed constructor",
    "try": "try and catch",
    **dict.fromkeys(("validate", "ordered", "unordered"), "validate, ordered and unordered"),
}


class PathParser(LookupParser):
    """Paths and primary expressions; `Parser` adds what may stand inside their brackets and braces."""

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
            return word in ("text", "node")
        if behind.text == "{" and word in ("map", "array"):
            return False
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

    def tail(self) -> tuple[ast.Tail, ...]:
        """Predicates and temporal qualifiers behind a step or a primary expression."""
        found: list[ast.Tail] = []
        while self.at_symbol("[", "#", "?") and not self.at_member():
            mark = self.advance()
            if mark.text == "[":
                condition = self.expr()
                self.expect("]")
                found.append(ast.Predicate(condition, span=self.since(mark.start)))
                continue
            if any(isinstance(each, ast.Qualifier) for each in found):
                raise refuse("several temporal qualifiers", self.text, mark.span)
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
        base = self.lookups(self.primary_expr(), start)
        while tail := self.tail():
            base = self.lookups(ast.Filter(base, tail, span=self.since(start)), start)
        return base

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
        reader = _ConstructorReader(self, start)
        constructor = reader.element()
        self.jump(reader.at)
        return constructor

    def function_call(self) -> ast.Expression:
        name = self.advance()
        if name.text.startswith("op:"):
            raise self.error("prefix 'op' is not declared", name.span, "XPST0081")
        if name.text == "function":
            raise refuse("inline function", self.text, name.span)
        if name.text in _KIND_TESTS:
            raise refuse("kind test", self.text, name.span)
        if name.text.removeprefix("fn:") in _OUTSIDE:
            raise refuse("outside access", self.text, name.span)
        if name.text.removeprefix("fn:") in _CLOCK:
            raise refuse("clock", self.text, name.span)
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
        """The name of a variable that is bound here."""
        self.expect("$")
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

    def no_type(self) -> None:
        if self.at_name("as"):
            raise refuse("type declaration", self.text, self.token.span)
