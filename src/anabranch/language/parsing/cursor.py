"""The parser's place in the text: the current token, what may follow, and the errors about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from anabranch.errors import QueryError, Span
from anabranch.language.checks.refusals import refuse
from anabranch.language.parsing.scanner import Token, scan

MAX_CHARACTERS = 200_000
MAX_DEPTH = 64
"""How deep expressions may nest; the parser recurses this deep and no deeper."""
MAX_NESTING = 128
"""How many constructs may stand inside one another; checks and evaluation recurse this deep and no deeper."""

_NO_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What is no character in XML, and so neither in a query nor in an answer."""

_REFUSED_OPERATORS = {
    "|": "union operator",
    "union": "union operator",
    "intersect": "intersect and except",
    "except": "intersect and except",
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), "value comparison"),
    **dict.fromkeys(("is", "<<", ">>"), "node comparison"),
    "to": "range expression",
    "||": "string concatenation operator",
    "!": "simple map operator",
    "=>": "arrow operator",
    "idiv": "integer division",
    **dict.fromkeys(("instance", "treat", "castable", "cast"), "type expression"),
    "[": "map or array",
    "%": "inline function",
    "?": "unary lookup",
}


class Cursor:
    """One current token; `advance` moves on, `peek` looks one further."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARACTERS:
            raise QueryError(
                f"the query has {len(text):,} characters, more than the {MAX_CHARACTERS:,} allowed",
                text=text[:200],
                span=Span(0, 0),
                hint="split it into several subscriptions",
            )
        if found := _NO_CHARACTER.search(text):
            raise QueryError(
                f"character {found.group()!a} cannot stand in a query",
                text=text,
                span=Span(found.start(), found.end()),
                code="XPST0003",
            )
        self.text = text
        self.token = scan(text, 0)
        self._ahead: Token | None = None
        self._end = 0
        self._depth = 0

    def advance(self) -> Token:
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

    def peek(self) -> Token:
        """The token behind the current one."""
        if self._ahead is None:
            self._ahead = scan(self.text, self.token.end)
        return self._ahead

    def since(self, start: int) -> Span:
        """From `start` to the end of the last token passed."""
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

    def expect(self, symbol: str) -> Token:
        if not self.at_symbol(symbol):
            self.unexpected(f"'{symbol}'")
        return self.advance()

    def expect_name(self, name: str) -> Token:
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
