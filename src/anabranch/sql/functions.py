"""The scalar functions of SQL that have a twin in XQuery (LAWS 8.4).

In SQL a function of NULL is NULL; many functions of XQuery take nothing for the empty text, or for 0 as its length.
So each says what it gives for nothing: where that is nothing as well, its call is all there is to write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from anabranch.errors import Span
from anabranch.language import ast

Build = Callable[[Sequence[ast.Expression], Span], ast.Expression]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A function: what its arguments are called in sqlglot, and the expression that it is."""

    arguments: tuple[str, ...]
    build: Build
    of_nothing: str | int | None = None
    """What the expression gives where its first argument is nothing; None for nothing."""
    needed: int = 1
    """How many of the arguments must be there."""
    repeats: bool = False
    """Whether the expression has its first argument several times, which then is a name, or little else."""


def call(name: str, arguments: Sequence[ast.Expression], span: Span) -> ast.Call:
    """The call of a function of XQuery."""
    return ast.Call(name, tuple(arguments), span=span)


def _named(name: str) -> Build:
    return lambda arguments, span: call(name, arguments, span)


def _without(pattern: str) -> Build:
    def build(arguments: Sequence[ast.Expression], span: Span) -> ast.Expression:
        return call("replace", (arguments[0], ast.String(pattern, span=span), ast.String("", span=span)), span)

    return build


def date_of(arguments: Sequence[ast.Expression], span: Span) -> ast.Expression:
    """The date of a value that spells a date or a dateTime."""
    text = call("xs:string", arguments, span)
    return call("xs:date", (_BEFORE_TIME((text,), span),), span)


def moment_of(value: ast.Expression, span: Span) -> ast.Expression:
    """The dateTime that a text spells, or the midnight of the date that it spells."""
    is_moment = call("contains", (value, ast.String("T", span=span)), span)
    midnight = call("xs:dateTime", (call("xs:date", (value,), span),), span)
    return ast.If(is_moment, call("xs:dateTime", (value,), span), midnight, span=span)


def _replaced(arguments: Sequence[ast.Expression], span: Span) -> ast.Expression:
    text, old, _ = arguments
    replaced = call("replace", (*arguments, ast.String("q", span=span)), span)  # as it is written, not as a pattern
    if isinstance(old, ast.String) and old.value:
        return replaced
    nothing = ast.Comparison("=", old, ast.String("", span=span), span=span)  # which is nowhere
    return ast.If(nothing, call("string", (text,), span), replaced, span=span)


def _left(arguments: Sequence[ast.Expression], span: Span) -> ast.Expression:
    """The first characters; all but the last ones where the length is negative."""
    text, length = arguments
    but = ast.Arithmetic(call("string-length", (text,), span), (("+", length),), span=span)
    return call("substring", (text, ast.Number("1", span=span), _unless_negative(length, length, but, span)), span)


def _right(arguments: Sequence[ast.Expression], span: Span) -> ast.Expression:
    """The last characters; all but the first ones where the length is negative."""
    text, length = arguments
    one = ast.Number("1", span=span)
    start = ast.Arithmetic(call("string-length", (text,), span), (("-", length), ("+", one)), span=span)
    but = ast.Arithmetic(one, (("-", length),), span=span)
    return call("substring", (text, _unless_negative(length, start, but, span)), span)


def _unless_negative(
    value: ast.Expression, usual: ast.Expression, otherwise: ast.Expression, span: Span
) -> ast.Expression:
    """One expression where a value is negative, and the usual one where it is not, as no literal is."""
    if isinstance(value, ast.Number):
        return usual
    negative = ast.Comparison("<", value, ast.Number("0", span=span), span=span)
    return ast.If(negative, otherwise, usual, span=span)


def _rounded(arguments: Sequence[ast.Expression], span: Span) -> ast.Expression:
    """XQuery rounds what lies in the middle up, and SQL away from zero (LAWS 8.4)."""
    value, *digits = arguments
    opposite = call("round", (ast.Negation(value, span=span), *digits), span)
    return _unless_negative(value, call("round", arguments, span), ast.Negation(opposite, span=span), span)


def _position(arguments: Sequence[ast.Expression], span: Span) -> ast.Expression:
    before = call("string-length", (call("substring-before", arguments, span),), span)
    found = ast.Arithmetic(before, (("+", ast.Number("1", span=span)),), span=span)
    return ast.If(call("contains", arguments, span), found, ast.Number("0", span=span), span=span)


_BEFORE_TIME = _without("[T ].*$")

FUNCTIONS: Mapping[type[exp.Expr], ScalarFunction] = {
    exp.Upper: ScalarFunction(("this",), _named("upper-case"), ""),
    exp.Lower: ScalarFunction(("this",), _named("lower-case"), ""),
    exp.Length: ScalarFunction(("this",), _named("string-length"), 0),
    exp.Substring: ScalarFunction(("this", "start", "length"), _named("substring"), "", 2),
    exp.Left: ScalarFunction(("this", "expression"), _left, "", 2),
    exp.Right: ScalarFunction(("this", "expression"), _right, "", 2),
    exp.StrPosition: ScalarFunction(("this", "substr"), _position, 0, 2),
    exp.Replace: ScalarFunction(("this", "expression", "replacement"), _replaced, "", 3),
    exp.Translate: ScalarFunction(("this", "from_", "to"), _named("translate"), "", 3),
    exp.Abs: ScalarFunction(("this",), _named("abs")),
    exp.Round: ScalarFunction(("this", "decimals"), _rounded, repeats=True),
    exp.Floor: ScalarFunction(("this",), _named("floor")),
    exp.Ceil: ScalarFunction(("this",), _named("ceiling")),
    exp.Sqrt: ScalarFunction(("this",), _named("math:sqrt")),
    exp.Exp: ScalarFunction(("this",), _named("math:exp")),
    exp.Ln: ScalarFunction(("this",), _named("math:log")),
    exp.Pow: ScalarFunction(("this", "expression"), _named("math:pow"), None, 2),
}
TRIMS: Mapping[str, Build] = {
    "": _without("^ +| +$"),
    "BOTH": _without("^ +| +$"),
    "LEADING": _without("^ +"),
    "TRAILING": _without(" +$"),
}
"""TRIM by the side that it is asked for."""

CASTS: Mapping[exp.DType, str] = {
    **dict.fromkeys((exp.DType.INT, exp.DType.BIGINT, exp.DType.SMALLINT, exp.DType.TINYINT), "xs:integer"),
    **dict.fromkeys((exp.DType.DOUBLE, exp.DType.FLOAT), "xs:double"),
    exp.DType.DECIMAL: "xs:decimal",
    **dict.fromkeys((exp.DType.VARCHAR, exp.DType.TEXT, exp.DType.CHAR), "xs:string"),
    exp.DType.BOOLEAN: "xs:boolean",
    **dict.fromkeys((exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.DATETIME), "xs:dateTime"),
    exp.DType.DATE: "xs:date",
    exp.DType.TIME: "xs:time",
}
EXTRACTS: Mapping[str, str] = {
    "YEAR": "year",
    "MONTH": "month",
    "DAY": "day",
    "HOUR": "hours",
    "MINUTE": "minutes",
    "SECOND": "seconds",
}
DATE_PARTS = ("YEAR", "MONTH", "DAY")
"""Those that a date has as well."""
CLOCKS = (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.Localtime, exp.Localtimestamp)
"""Functions that ask for the time."""
