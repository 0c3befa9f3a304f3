"""Unit changes: the maps `a*x + b` with `a > 0` that an accent may apply to a path.

The wire gives a map as an arithmetic expression in `.`, say `(. - 32) * 5 div 9`.
It is reduced while it is parsed: every partial result is a pair (a, b) of exact fractions, so there is no expression
tree, and an expression that is not affine is found at the operator that makes it so.
Because `a > 0`, a map keeps the order of values and always has an inverse; other modules rely on both.

Guarantees: nothing is rounded; `parse(str(map)) == map` for every map that `parse` returns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from anabranch.errors import StreamError

MAX_LENGTH = 1_000
MAX_DEPTH = 50
MAX_DIGITS = 200
"""The most digits a numerator or denominator may have; it keeps written maps below MAX_LENGTH."""

_TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)|(?P<sign>div(?![\w.\-])|[-+*().]))")
_HINT = "write a unit change as arithmetic in '.', as in (. - 32) * 5 div 9"


@dataclass(frozen=True, slots=True)
class Affine:
    """The map `x -> a*x + b`, increasing and exact."""

    a: Fraction
    b: Fraction

    def __post_init__(self) -> None:
        if self.a <= 0:
            raise StreamError("a unit change must be increasing", hint=_HINT)

    def __call__(self, x: Fraction) -> Fraction:
        return self.a * x + self.b

    def then(self, after: Affine) -> Affine:
        """This map followed by another: `f.then(g)(x) == g(f(x))`."""
        return Affine(self.a * after.a, after(self.b))

    def inverse(self) -> Affine:
        """The map back: `f.then(f.inverse()) == IDENTITY`."""
        return Affine(1 / self.a, -self.b / self.a)

    def __str__(self) -> str:
        scaled = "." if self.a == 1 else f". * {_written(self.a)}"
        if not self.b:
            return scaled
        return f"{scaled} {'+' if self.b > 0 else '-'} {_written(abs(self.b))}"


_CALL = re.compile(r"([A-Za-z][\w:.-]{0,60})\s*\(")

IDENTITY = Affine(Fraction(1), Fraction(0))


def parse(text: str) -> Affine:
    """Read an expression of `.`, numbers, `+ - * div` and parentheses; StreamError where it is no increasing map."""
    if len(text) > MAX_LENGTH:
        raise StreamError(f"a unit change may have at most {MAX_LENGTH:,} characters, this has {len(text):,}")
    parser = _AffineParser(text)
    a, b = parser.sum(0)
    if parser.token:
        raise parser.unexpected("an operator")
    if a <= 0:
        what = "does not depend on '.'" if a == 0 else "decreases"
        raise StreamError(f"a unit change must be increasing, this one {what}", hint=_HINT)
    if any(part >= 10**MAX_DIGITS for value in (a, b) for part in (abs(value.numerator), value.denominator)):
        raise StreamError(f"a unit change may have fractions of at most {MAX_DIGITS} digits")
    return Affine(a, b)


def _written(value: Fraction) -> str:
    return f"{value.numerator}" if value.denominator == 1 else f"{value.numerator} div {value.denominator}"


class _AffineParser:
    """One method per level of precedence; each returns the pair (a, b) of the part that it has parsed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.start = self.end = 0
        self.token = ""
        self.is_number = False
        self.advance()

    def advance(self) -> None:
        """Step to the next token; the empty token is the end."""
        found = _TOKEN.match(self.text, self.end)
        if found:
            self.is_number = found["number"] is not None
            self.token = found["number"] or found["sign"]
            self.start, self.end = found.end() - len(self.token), found.end()
        else:
            rest = self.text[self.end :]
            self.start = self.end + len(rest) - len(rest.lstrip())
            self.token, self.is_number = "", False
            if call := _CALL.match(self.text, self.start):
                raise self.error(f"'{call[1]}()' would turn text into a number, but numbers are mapped", self.start)
            if self.start < len(self.text):
                raise self.unexpected("a number, '.' or an operator")

    def unexpected(self, wanted: str) -> StreamError:
        """The error for the current token, with its place."""
        return self.error(f"expected {wanted}", self.start)

    def error(self, message: str, position: int) -> StreamError:
        return StreamError(f"{message} at character {position + 1} of the unit change", hint=_HINT)

    def sum(self, depth: int) -> tuple[Fraction, Fraction]:
        a, b = self.product(depth)
        while self.token in ("+", "-"):
            sign = 1 if self.token == "+" else -1
            self.advance()
            more_a, more_b = self.product(depth)
            a, b = a + sign * more_a, b + sign * more_b
        return a, b

    def product(self, depth: int) -> tuple[Fraction, Fraction]:
        a, b = self.factor(depth)
        while self.token in ("*", "div"):
            operator, place = self.token, self.start
            self.advance()
            more_a, more_b = self.factor(depth)
            if operator == "*":
                if a and more_a:
                    raise self.error("'.' is multiplied by itself", place)
                a, b = a * more_b + b * more_a, b * more_b
            else:
                if more_a:
                    raise self.error("division by '.'", place)
                if not more_b:
                    raise self.error("division by zero", place)
                a, b = a / more_b, b / more_b
        return a, b

    def factor(self, depth: int) -> tuple[Fraction, Fraction]:
        sign = 1
        while self.token in ("+", "-"):
            sign = -sign if self.token == "-" else sign
            self.advance()
        a, b = self.operand(depth)
        return sign * a, sign * b

    def operand(self, depth: int) -> tuple[Fraction, Fraction]:
        if self.is_number:
            value = Fraction(self.token)
            self.advance()
            return Fraction(0), value
        if self.token == ".":
            self.advance()
            return Fraction(1), Fraction(0)
        if self.token == "(":
            if depth == MAX_DEPTH:
                raise self.error(f"more than {MAX_DEPTH} open parentheses", self.start)
            self.advance()
            inner = self.sum(depth + 1)
            if self.token != ")":
                raise self.unexpected("')'")
            self.advance()
            return inner
        raise self.unexpected("a number, '.' or '('")
