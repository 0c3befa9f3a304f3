"""Direct constructors, read character by character.

Between `<a>` and `</a>` white space counts, quotes are text, and `{` leads back into expressions.
White space that stands alone between tags and braces is only layout and is dropped (XQuery's boundary space).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from anabranch.errors import Span
from anabranch.language import ast
from anabranch.language.parsing.cursor import NCNAME, resolve, with_line_feeds
from anabranch.stream.tree import XML_NAMESPACE

if TYPE_CHECKING:
    from anabranch.language.parsing.paths import PathParser

MAX_ATTRIBUTES = 256
RESERVED = (XML_NAMESPACE, "http://www.w3.org/2000/xmlns/")
"""The namespaces whose prefix is built in and cannot be declared."""
_NAME = re.compile(rf"{NCNAME}(?::{NCNAME})?")
_SPACE = re.compile(r"[ \t\r\n]*")
_CONTENT_END = re.compile(r"[<{}]")
_SPACES_IN_VALUE = str.maketrans("\t\n", "  ")


class ConstructorReader:
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
            if uri in RESERVED:
                raise self.fail(f"namespace '{uri}' cannot be declared", start, "XQST0070")
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
