"""SQL text to sqlglot's tree, with the place of each node in the text.

sqlglot reads RisingWave's dialect; this parser adds that `SESSION(` begins a function, and where each node ends.
Text is hostile: its length, its number of tokens and its nesting are bounded before sqlglot sees it, since that
recurses, and takes exponential time for brackets inside one another.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import TypeVar

from sqlglot import exp
from sqlglot.dialects.risingwave import RisingWave
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parsers.risingwave import RisingWaveParser
from sqlglot.tokenizer_core import Token, TokenType

from anabranch.errors import QueryError, Span
from anabranch.language.parsing.cursor import check_characters
from anabranch.sql.refusals import refuse_sql

MAX_TOKENS = 20_000
MAX_DEPTH = 32
"""How deep parentheses and CASE may nest; sqlglot recurses some twenty calls for each."""
MAX_BRACKETS = 64
MAX_BRACKET_DEPTH = 2

E = TypeVar("E", bound=exp.Expr)
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIXES = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.INTERVAL}
_DOT = TokenType.DOT
_NESTING = {*_OPENING, *_CLOSING, *_PREFIXES, _DOT}
_SECOND = {TokenType.ON, TokenType.FROM, TokenType.L_BRACKET}
"""The second words of what is refused before it is parsed."""
_CLOSED = re.compile(r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|--[^\n]*|/\*(?:[^*]|\*(?!/))*+\*/|[^'"/-]+|.""", re.DOTALL)
"""Strings, names and comments that are closed, and whatever else there is."""
_DIALECT = RisingWave()
WORDS = (exp.Literal, exp.Identifier)
"""Nodes of one token, whose own place is known, and which have no others in them."""
PLAIN = {str, bool, type(None)}
"""What is said of a node without another node."""
_NO_START = sys.maxsize


class _Misread(ParseError):
    """What the parser cannot read, at a token."""

    def __init__(self, message: str, token: Token | None) -> None:
        super().__init__(message)
        self.token = token
        """None for the end of the text."""


class _SqlParser(RisingWaveParser):
    """RisingWave's parser, whose nodes know where they end."""

    FUNC_TOKENS = {*RisingWaveParser.FUNC_TOKENS, TokenType.SESSION}  # noqa: RUF012  # sqlglot's own form of tables

    def expression(self, instance: E, token: Token | None = None, comments: list[str] | None = None) -> E:
        found = super().expression(instance, token, comments)
        if self._prev:
            found.meta["last"] = self._prev.end
        return found

    def raise_error(self, message: str, token: Token | None = None) -> None:
        raise _Misread(message, token or self._curr or None)


def read_statement(text: str) -> tuple[exp.Expr, Mapping[int, Span]]:
    """The one statement of a text, and the places of its nodes by their identity."""
    tokens, parser = _tokens(text), _parser(text)
    try:
        statements = parser.parse(tokens, text)
    except _Misread as error:
        raise _unexpected(text, error.token) from None
    except RecursionError:
        raise _too_deep(text, Span(0, len(text))) from None
    except (ParseError, ValueError, AttributeError, TypeError, KeyError, IndexError):  # sqlglot's, for odd input
        raise QueryError("this is no query in SQL", text=text, span=Span(0, len(text))) from None
    given = [each for each in statements if each is not None]
    if len(given) != 1:
        place = next((each.start for each in tokens if each.token_type == TokenType.SEMICOLON), 0)
        raise refuse_sql("several statements", text, Span(place, place + 1))
    return given[0], _places(given[0])


def _parser(text: str) -> _SqlParser:
    try:
        return _SqlParser(error_level=ErrorLevel.IMMEDIATE, dialect=_DIALECT)
    except TypeError:  # mypyc's, for what extends a compiled class
        message = "sqlglot was loaded in its compiled variant before, which cannot read SQL for us"
        hint = "import anabranch.sql before sqlglot, or uninstall sqlglotc"
        raise QueryError(message, text=text, span=Span(0, 0), hint=hint) from None


def _unexpected(text: str, token: Token | None) -> QueryError:
    if token is None:
        end = len(text.rstrip())
        return QueryError("the query ends too early", text=text, span=Span(end, end + 1))
    span = Span(token.start, token.end + 1)
    found = text[span.start : span.end]
    message = f"'{found[:40]}' is not expected here"
    hint = "strings stand in single quotes" if found.startswith('"') else None
    return QueryError(message, text=text, span=span, hint=hint)


def _too_deep(text: str, span: Span) -> QueryError:
    return QueryError(f"nested more than {MAX_DEPTH} deep", text=text, span=span)


def _tokens(text: str) -> list[Token]:
    """The tokens of a text that is neither too long nor too deep and asks for something."""
    check_characters(text)
    try:
        tokens: list[Token] = _DIALECT.tokenize(text)
    except TokenError:
        raise _unread(text) from None
    if len(tokens) > MAX_TOKENS:
        message = f"the query has more than {MAX_TOKENS:,} words and signs"
        raise QueryError(message, text=text, span=Span(0, 0), hint="split it into several subscriptions")
    _check_nesting(text, tokens)
    first = next((each for each in tokens if each.token_type != TokenType.L_PAREN), None)
    if first is None:
        raise QueryError("the query is empty", text=text, span=Span(0, 0))
    if first.token_type not in (TokenType.SELECT, TokenType.WITH):
        raise refuse_sql("statement other than SELECT", text, Span(first.start, first.end + 1))
    for each, following in pairwise(tokens):
        if following.token_type not in _SECOND:
            continue
        match each.token_type, following.token_type:
            case _, TokenType.ON if each.text.upper() == "EMIT":
                raise refuse_sql("EMIT", text, Span(each.start, following.end + 1))
            case TokenType.COMMA, TokenType.FROM:
                raise _unexpected(text, following)
            case TokenType.ARRAY, TokenType.L_BRACKET:
                raise refuse_sql("array", text, Span(each.start, following.end + 1))
    return tokens


def _check_nesting(text: str, tokens: list[Token]) -> None:
    """Parentheses, brackets and CASE inside one another, operators in front of one another, and names behind."""
    depth = brackets = bracket_depth = prefixes = dots = 0
    before = None
    for each in tokens:
        kind = each.token_type
        dots = dots + 1 if kind == _DOT else dots if before == _DOT else 0
        before = kind
        if kind not in _NESTING:
            prefixes = 0
            continue
        depth += (kind in _OPENING) - (kind in _CLOSING)
        brackets += kind == TokenType.L_BRACKET
        bracket_depth += (kind == TokenType.L_BRACKET) - (kind == TokenType.R_BRACKET)
        prefixes = prefixes + 1 if kind in _PREFIXES else 0
        if max(depth, prefixes, dots) > MAX_DEPTH or bracket_depth > MAX_BRACKET_DEPTH or brackets > MAX_BRACKETS:
            raise _too_deep(text, Span(each.start, each.end + 1))


def _unread(text: str) -> QueryError:
    """The error for text that has no tokens: a quote or comment that is never closed."""
    for found in _CLOSED.finditer(text):
        mark = "/*" if text.startswith("/*", found.start()) and len(found[0]) == 1 else found[0]
        if mark in ("'", '"', "/*"):
            hint = f"close it with {'*/' if mark == '/*' else mark}"
            span = Span(found.start(), found.start() + len(mark))
            return QueryError("this is never closed", text=text, span=span, hint=hint)
    return QueryError("this is no query in SQL", text=text, span=Span(0, len(text)))


def _places(root: exp.Expr) -> dict[int, Span]:
    """Where nodes stand: from the first token of what is in them to the last.

    Nodes forget what is above them, which nobody asks for: a tree without cycles is freed as soon as it is translated.
    """
    nodes, above = [root], [0]
    starts, ends = [_NO_START], [0]
    places: dict[int, Span] = {}
    for at, node in enumerate(nodes):  # which grows as it goes
        node.parent = None
        for given in node.args.values():
            if given.__class__ in PLAIN:
                continue
            for each in given if isinstance(given, list) else (given,):
                if isinstance(each, WORDS):
                    each.parent = None
                    meta: dict[str, int] = each.meta
                    if "end" in meta:
                        start, end = meta["start"], meta["end"] + 1
                        places[id(each)] = Span(start, end)
                        if start < starts[at]:
                            starts[at] = start
                        if end > ends[at]:
                            ends[at] = end
                elif isinstance(each, exp.Expr):
                    nodes.append(each)
                    above.append(at)
                    starts.append(_NO_START)
                    ends.append(0)
    for at in range(len(nodes) - 1, -1, -1):  # what is below a node stands behind it
        node, start, end = nodes[at], starts[at], ends[at]
        meta = node.meta
        first, last = meta.get("start", start), max(meta.get("end", -1), meta.get("last", -1))
        start = first if first < start else start
        end = last + 1 if last >= end else end
        if end == 0:
            continue
        start = start if start < end else end - 1
        places[id(node)] = Span(start, end)
        over = above[at]
        if start < starts[over]:
            starts[over] = start
        if end > ends[over]:
            ends[over] = end
    return places
