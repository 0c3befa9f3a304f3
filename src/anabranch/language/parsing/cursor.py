"""From query text to tokens, one at a time, where the parser asks for the next.

XQuery cannot be scanned ahead: inside `<a> ... </a>` the same characters mean something else, and only the parser
knows where a constructor begins.
So the scanner keeps no state: `scan(text, position)` gives the token that starts at or behind `position`, and the
parser decides where to go on.

A `Cursor` is the parser's place in the text: the current token, what may follow, and the errors about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple, NoReturn, TypeAlias

from anabranch.errors import QueryError, Span
from anabranch.language.checks.refusals import refuse

Kind: TypeAlias = Literal["name", "number", "string", "symbol", "end"]

MAX_DIGITS = 1_000
NCNAME = r"[^\W\d][\w.\-]*"
NCNAME_ALONE = re.compile(NCNAME)
_SPACE = re.compile(r"[ \t\r\n]+")
_TOKEN = re.compile(
    rf"(?P<name>{NCNAME}(?::{NCNAME})?)"
    r"|(?P<number>(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][+-]?[0-9]+)?)"
    r"""|(?P<string>"(?:[^"]|"")*"|'(?:[^']|'')*')"""
    r"|(?P<symbol>:=|!=|<=|>=|<<|>>|//|\.\.|::|\|\||=>|[()\[\]{},;/@$=<>+\-*|#?.!:%≤≥≠])"
)
_COMMENT_EDGE = re.compile(r"\(:|:\)")
_REFERENCE = re.compile(r"&(?:#([0-9]{1,7})|#x([0-9a-fA-F]{1,6})|(lt|gt|amp|quot|apos));")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_SPELLINGS = {"≤": "<=", "≥": ">=", "≠": "!="}
"""The signs the papers print; they mean the operators beside them."""


class QueryToken(NamedTuple):
    kind: Kind
    text: str
    """What was written; for a string its value, references and doubled quotes resolved."""
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    def __str__(self) -> str:
        match self.kind:
            case "end":
                return "the end of the query"
            case "string":
                return "a string"
            case _:
                return f"'{self.text}'"


def scan(text: str, position: int) -> QueryToken:
    """The first token at or behind `position`; white space and comments are passed over."""
    position = _skip(text, position)
    found = _TOKEN.match(text, position)
    if found is None:
        return _no_token(text, position)
    kind: Kind = found.lastgroup  # type: ignore[assignment]  # the pattern's groups are the kinds
    value, end = found.group(), found.end()
    if kind == "string":
        quote = value[0]
        value = resolve(value[1:-1].replace(quote * 2, quote), text, Span(position, end))
    elif kind == "number":
        if end - position > MAX_DIGITS:
            raise _error(text, position, end, f"this number has more than {MAX_DIGITS} digits", code="FOAR0002")
        if end < len(text) and (text[end].isalpha() or text[end] == "_"):
            message = f"'{text[end]}' follows the number '{value}' directly"
            raise _error(text, end, end + 1, message, "put a space between them")
    elif kind == "symbol":
        value = _SPELLINGS.get(value, value)
    return QueryToken(kind, value, position, end)


def _skip(text: str, position: int) -> int:
    """The position behind white space and comments, which nest."""
    while True:
        if found := _SPACE.match(text, position):
            position = found.end()
        if not text.startswith("(:", position):
            return position
        start, depth = position, 0
        while True:
            edge = _COMMENT_EDGE.search(text, position)
            if edge is None:
                raise _error(text, start, start + 2, "this comment is never closed", "close it with ':)'")
            depth += 1 if edge.group() == "(:" else -1
            position = edge.end()
            if depth == 0:
                break


def _no_token(text: str, position: int) -> QueryToken:
    if position >= len(text):
        return QueryToken("end", "", len(text), len(text))
    if text[position] in "\"'":
        hint = f"close it with {text[position]}"
        raise _error(text, position, position + 1, "this string is never closed", hint)
    raise _error(text, position, position + 1, f"unexpected character {text[position]!a}")


def _error(
    text: str, start: int, end: int, message: str, hint: str | None = None, code: str = "XPST0003"
) -> QueryError:
    return QueryError(message, text=text, span=Span(start, end), code=code, hint=hint)


def with_line_feeds(raw: str) -> str:
    """Text with every end of line as one line feed, as XQuery reads it; a character reference stays as it is."""
    return raw.replace("\r\n", "\n").replace("\r", "\n") if "\r" in raw else raw


def resolve(raw: str, text: str, span: Span) -> str:
    """Replace character references and the five built-in entities; `text` and `span` are for the error."""
    raw = with_line_feeds(raw)
    if "&" not in raw:
        return raw
    parts: list[str] = []
    at = 0
    while (amp := raw.find("&", at)) >= 0:
        found = _REFERENCE.match(raw, amp)
        character = _character(found) if found else None
        if found is None or character is None:
            hint = "write '&amp;' for the character itself; &lt; &gt; &quot; &apos; and &#...; are known"
            code = "XPST0003" if found is None else "XQST0090"
            raise _error(text, span.start, span.end, "'&' begins no known reference", hint, code)
        parts += (raw[at:amp], character)
        at = found.end()
    return "".join((*parts, raw[at:]))


def _character(reference: re.Match[str]) -> str | None:
    decimal, hexadecimal, entity = reference.groups()
    if entity:
        return _ENTITIES[entity]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    valid = code in (0x9, 0xA, 0xD) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF
    return chr(code) if valid else None


MAX_CHARACTERS = 200_000
MAX_DEPTH = 64
"""How deep expressions may nest; the parser recurses this deep and no deeper."""
MAX_NESTING = 128
"""How many constructs may stand inside one another; checks and evaluation recurse this deep and no deeper."""

_NO_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Code points that are no characters in XML, and so stand neither in a query nor in an answer."""

_REFUSED_OPERATORS = {
    "%": "annotation",
    "?": "unary lookup",
}


def check_characters(text: str) -> None:
    """Refuse a text that is too long for a query, or has characters that cannot stand in one."""
    if len(text) > MAX_CHARACTERS:
        message = f"the query has {len(text):,} characters, more than the {MAX_CHARACTERS:,} allowed"
        raise QueryError(message, text=text[:200], span=Span(0, 0), hint="split it into several subscriptions")
    if found := _NO_CHARACTER.search(text):
        raise _error(text, *found.span(), f"character {found.group()!a} cannot stand in a query")


class Cursor:
    """One current token; `advance` moves on, `peek` looks one further."""

    def __init__(self, text: str) -> None:
        check_characters(text)
        self.text = text
        self.token = scan(text, 0)
        self._ahead: QueryToken | None = None
        self._end = 0
        self._depth = 0
        self._fresh: set[str] = set()

    @property
    def depth(self) -> int:
        """How many expressions are open."""
        return self._depth

    def fresh_variable(self, name: str) -> str:
        """A name that no variable of the query has."""
        number = 1
        while f"${name}{number}" in self.text or f"{name}{number}" in self._fresh:
            number += 1
        self._fresh.add(f"{name}{number}")
        return f"{name}{number}"

    def advance(self) -> QueryToken:
        """Pass over the current token and give it."""
        token = self.token
        self._end = token.end
        self.token = self._ahead or scan(self.text, token.end)
        self._ahead = None
        return token

    def jump(self, position: int) -> None:
        """Go on at a place in the text, as behind a constructor."""
        self._end = position
        self._ahead = None
        self.token = scan(self.text, position)

    def peek(self) -> QueryToken:
        """The token behind the current one."""
        if self._ahead is None:
            self._ahead = scan(self.text, self.token.end)
        return self._ahead

    def since(self, start: int) -> Span:
        """The span from `start` to the end of the last token passed."""
        return Span(start, self._end)

    def at_symbol(self, *symbols: str) -> bool:
        return self.token.kind == "symbol" and self.token.text in symbols

    def at_name(self, *names: str) -> bool:
        return self.token.kind == "name" and self.token.text in names

    def take(self, symbol: str) -> bool:
        """Pass over the symbol if it is there."""
        if self.at_symbol(symbol):
            self.advance()
            return True
        return False

    def take_name(self, name: str) -> bool:
        """Pass over the word if it is there."""
        if self.at_name(name):
            self.advance()
            return True
        return False

    def expect(self, symbol: str) -> QueryToken:
        if not self.at_symbol(symbol):
            self.unexpected(f"'{symbol}'")
        return self.advance()

    def expect_name(self, name: str) -> QueryToken:
        if not self.at_name(name):
            self.unexpected(f"'{name}'")
        return self.advance()

    def unexpected(self, expected: str) -> NoReturn:
        """Say what was expected; an operator that the language refuses is refused by its name."""
        refused = _REFUSED_OPERATORS.get(self.token.text) if self.token.kind in ("symbol", "name") else None
        if refused:
            raise refuse(refused, self.text, self.token.span)
        raise self.error(f"expected {expected}, found {self.token}", self.token.span)

    def error(self, message: str, span: Span, code: str = "XPST0003", hint: str | None = None) -> QueryError:
        return QueryError(message, text=self.text, span=span, code=code, hint=hint)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Count one level of nesting while inside."""
        if self._depth == MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} deep", self.token.span, hint="bind inner parts with 'let'")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
