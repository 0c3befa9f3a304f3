"""From query text to tokens, one at a time, where the parser asks for the next.

XQuery cannot be scanned ahead: inside `<a> ... </a>` the same characters mean something else, and only the parser
knows where a constructor begins.
So the scanner keeps no state: `scan(text, position)` gives the token that starts at or behind `position`, and the
parser decides where to go on.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from anabranch.errors import QueryError, Span

Kind: TypeAlias = Literal["name", "number", "string", "symbol", "end"]

MAX_DIGITS = 1_000
NCNAME = r"[^\W\d][\w.\-]*"
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


class Token(NamedTuple):
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


def scan(text: str, position: int) -> Token:
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
            raise QueryError(
                f"this number has more than {MAX_DIGITS} digits", text=text, span=Span(position, end), code="FOAR0002"
            )
        if end < len(text) and (text[end].isalpha() or text[end] == "_"):
            raise QueryError(
                f"'{text[end]}' follows the number '{value}' directly",
                text=text,
                span=Span(end, end + 1),
                code="XPST0003",
                hint="put a space between them",
            )
    elif kind == "symbol":
        value = _SPELLINGS.get(value, value)
    return Token(kind, value, position, end)


def _skip(text: str, position: int) -> int:
    """Behind white space and comments, which nest."""
    while True:
        if found := _SPACE.match(text, position):
            position = found.end()
        if not text.startswith("(:", position):
            return position
        start, depth = position, 0
        while True:
            edge = _COMMENT_EDGE.search(text, position)
            if edge is None:
                raise QueryError(
                    "this comment is never closed",
                    text=text,
                    span=Span(start, start + 2),
                    code="XPST0003",
                    hint="close it with ':)'",
                )
            depth += 1 if edge.group() == "(:" else -1
            position = edge.end()
            if depth == 0:
                break


def _no_token(text: str, position: int) -> Token:
    if position >= len(text):
        return Token("end", "", len(text), len(text))
    if text[position] in "\"'":
        raise QueryError(
            "this string is never closed",
            text=text,
            span=Span(position, position + 1),
            code="XPST0003",
            hint=f"close it with {text[position]}",
        )
    raise QueryError(
        f"unexpected character {text[position]!a}", text=text, span=Span(position, position + 1), code="XPST0003"
    )


def with_line_feeds(raw: str) -> str:
    """Every end of line as one line feed, as XQuery reads its text; a reference is no end of line."""
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
            raise QueryError(
                "'&' begins no known reference",
                text=text,
                span=span,
                code="XPST0003" if found is None else "XQST0090",
                hint="write '&amp;' for the character itself; &lt; &gt; &quot; &apos; and &#...; are known",
            )
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
