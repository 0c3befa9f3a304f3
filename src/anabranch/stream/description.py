"""Descriptions: the predicates of `where`, which select the items that an accent or punctuation is about.

A description compares paths with constants and joins the comparisons by `and`, `or` and `not(...)`; `true()`, or
nothing at all, describes every item.
It is smaller than a condition of the query language on purpose: every description is an exact set of items (LAWS 4.4),
and sets can be compared, subtracted and mapped.
A constant is a number or a string, which determines how values compare; a number without a decimal spelling, which only
a unit change produces, is a quotient (`t > 50 div 3`).

Guarantees: `parse(str(d)) == d` for every description within the caps; decimals are kept exactly, and equal ones
(`1.3`, `1.30`) are equal descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias, cast

from anabranch.errors import StreamError
from anabranch.logic import EVERYTHING, MIRRORED, And, Not, Operator, Or, Tree, leaves
from anabranch.stream.path import Path

MAX_LENGTH = 10_000
MAX_DEPTH = 50

_STEP = r"@?[^\W\d][\w.\-]*(?::[^\W\d][\w.\-]*)?"
_TOKEN = re.compile(
    rf"""\s*(?:
        (?P<number>-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?![\w.]))
      | (?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<name>(?:\./)?{_STEP}(?:/{_STEP})*|\.(?![\w./@]))
      | (?P<sign>!=|<=|>=|[=<>()])
    )""",
    re.VERBOSE,
)
_HINT = "write comparisons of a path with a constant, as in region = 'A' and s <= 10"


@dataclass(frozen=True, slots=True)
class Comparison:
    """`path op constant`; an item without the path does not fulfil it."""

    path: Path
    op: Operator
    constant: Decimal | Fraction | str

    def __str__(self) -> str:
        match self.constant:
            case Decimal() as number:
                return f"{self.path} {self.op} {number:f}"
            case Fraction(numerator=numerator, denominator=denominator):
                return f"{self.path} {self.op} {numerator} div {denominator}"
            case text:
                quoted = text.replace("'", "''")
                return f"{self.path} {self.op} '{quoted}'"


Description: TypeAlias = Tree[Comparison]


def paths(description: Description) -> frozenset[Path]:
    """All paths that a description names."""
    compared: Iterator[Comparison] = leaves(description)
    return frozenset(each.path for each in compared)


def parse(text: str) -> Description:
    """Read the text of a `where`; blank text describes every item; StreamError with the place of what is wrong."""
    if len(text) > MAX_LENGTH:
        raise StreamError(f"a description may have at most {MAX_LENGTH:,} characters, this has {len(text):,}")
    parser = _DescriptionParser(text)
    if not parser.token:
        return EVERYTHING
    description = parser.alternatives(0)
    if parser.token:
        raise parser.unexpected("'and', 'or' or the end")
    return description


class _DescriptionParser:
    """One method per level of precedence, one token of lookahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.start = self.end = 0
        self.kind: str | None = None
        self.token = ""
        self.advance()

    def advance(self) -> str:
        """Step to the next token and return the one left behind; the empty token is the end."""
        left = self.token
        found = _TOKEN.match(self.text, self.end)
        if found:
            assert found.lastgroup is not None
            self.kind, self.token = found.lastgroup, found[found.lastgroup]
            self.start, self.end = found.span(found.lastgroup)
        else:
            rest = self.text[self.end :]
            self.start = self.end + len(rest) - len(rest.lstrip())
            self.kind, self.token = None, ""
            if self.start < len(self.text):
                raise self.unexpected("a path, a number, a quoted string or an operator")
        return left

    def unexpected(self, wanted: str) -> StreamError:
        """The error for the current token, with its place."""
        return self.error(f"expected {wanted}", self.start)

    def error(self, message: str, position: int) -> StreamError:
        return StreamError(f"{message} at character {position + 1} of the description", hint=_HINT)

    def expect(self, sign: str) -> None:
        if self.token != sign:
            raise self.unexpected(f"'{sign}'")
        self.advance()

    def alternatives(self, depth: int) -> Description:
        parts = [self.conjunction(depth)]
        while self.token == "or":
            self.advance()
            parts.append(self.conjunction(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def conjunction(self, depth: int) -> Description:
        parts = [self.condition(depth)]
        while self.token == "and":
            self.advance()
            parts.append(self.condition(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def condition(self, depth: int) -> Description:
        if self.token == "(":
            return self.group(depth)
        if self.kind != "name":
            return self.comparison()
        place, name = self.start, self.advance()
        if self.token != "(":  # names are not reserved: `not = 1` compares a path called 'not'
            return Comparison(self.path(name, place), self.operator(), self.constant())
        match name:
            case "not":
                return Not(self.group(depth))
            case "true":
                self.advance()
                self.expect(")")
                return EVERYTHING
            case _:
                raise self.error(f"unknown function '{name}'", place)

    def group(self, depth: int) -> Description:
        if depth == MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} open parentheses", self.start)
        self.expect("(")
        inner = self.alternatives(depth + 1)
        self.expect(")")
        return inner

    def comparison(self) -> Comparison:
        """`constant op path`, with the sides exchanged."""
        constant, op = self.constant(wanted="a path, a constant, 'not(' or '('"), self.operator()
        if self.kind != "name":
            raise self.unexpected("a path")
        place = self.start
        return Comparison(self.path(self.advance(), place), MIRRORED[op], constant)

    def path(self, name: str, place: int) -> Path:
        try:
            return Path.parse(name, itself=True)
        except StreamError as error:
            raise self.error(error.message, place) from None

    def operator(self) -> Operator:
        if self.token not in MIRRORED:
            raise self.unexpected("one of = != < <= > >=")
        return cast(Operator, self.advance())

    def constant(self, wanted: str = "a number or a quoted string") -> Decimal | Fraction | str:
        match self.kind:
            case "number":
                return self.number()
            case "string":
                quoted = self.advance()
                return quoted[1:-1].replace(quoted[0] * 2, quoted[0])
            case _:
                raise self.unexpected(wanted)

    def number(self) -> Decimal | Fraction:
        number = Decimal(self.advance())
        if self.token != "div":
            return number
        self.advance()
        if self.kind != "number":
            raise self.unexpected("a number")
        if not Decimal(self.token):
            raise self.error("division by zero", self.start)
        return Fraction(number) / Fraction(self.advance())
