"""Comparisons of a query as predicates: with constants, between two paths, and with one sum or difference.

`$x/en >= $y/en + 0.5` and `$x/en - $y/en <= 3` are predicates, with the rounding of doubles in them; anything further,
a product or a second sum, is not understood, and whoever asks is left with the paths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from anabranch.language import ast
from anabranch.predicate import EVERYTHING, Operator, Predicate, Term, compare, difference
from anabranch.sharing.tree import is_value

_LARGEST = 300
"""Constants with more digits before the point, or as many zeros behind it, may be beyond the doubles."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a condition."""

    predicate: Predicate
    exact: bool = True
    rest: tuple[ast.Expression, ...] = ()


def unknown(condition: ast.Expression) -> Found:
    """Nothing is known: the subscriber has to ask it."""
    return Found(EVERYTHING, False, (condition,))


@dataclass(frozen=True, slots=True)
class Of:
    """The values of a term; `exact`: what is said of them is said of those that the query looks at."""

    term: Term
    exact: bool


@dataclass(frozen=True, slots=True)
class _Constant:
    expression: ast.Expression


@dataclass(frozen=True, slots=True)
class _Sum:
    """`of + offset`"""

    of: Of
    offset: Fraction


@dataclass(frozen=True, slots=True)
class _Distance:
    """`first - second`"""

    first: Of
    second: Of


_Side: TypeAlias = Of | _Constant | _Sum | _Distance | None


def compared(comparison: ast.Comparison, term: Callable[[ast.Expression], Of | None]) -> Found:
    """What a comparison says; `term` recognises what there are predicates about."""
    left, right = _side(comparison.left, term), _side(comparison.right, term)
    found = _compared(left, comparison.operator, right) or _compared(right, _MIRRORED[comparison.operator], left)
    return found or unknown(comparison)


_MIRRORED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _side(expression: ast.Expression, term: Callable[[ast.Expression], Of | None]) -> _Side:
    match expression:
        case ast.Negation() | ast.Number() | ast.String():
            return _Constant(expression)
        case ast.Arithmetic(first, ((operator, second),)):
            return _arithmetic(_side(first, term), operator, _side(second, term))
        case _:
            return term(expression)


def _arithmetic(first: _Side, operator: str, second: _Side) -> _Side:
    match first, operator, second:
        case (Of() as of, "+" | "-", _Constant(expression)) | (_Constant(expression), "+", Of() as of):
            offset = _value(expression)
            if is_value(of.term) or not isinstance(offset, Fraction):
                return None
            return _Sum(of, -offset if operator == "-" else offset)
        case Of() as minuend, "-", Of() as subtrahend if not is_value(minuend.term) and not is_value(subtrahend.term):
            return _Distance(minuend, subtrahend)
        case _:
            return None


def _compared(left: _Side, operator: Operator, right: _Side) -> Found | None:
    """What is known with these two sides; None where they have to be turned round, or nothing is."""
    match left, right:
        case Of(term, exact), _Constant(expression):
            value = _value(expression, rounded=is_value(term) and not term.input.startswith("count"))
            if value is None or (is_value(term) and isinstance(value, str)):
                return None
            return Found(compare(term, operator, value), exact)
        case Of(first, exact), Of(second, other) if not is_value(first) and not is_value(second):
            return Found(difference(first, operator, second), exact and other)
        case Of(first, exact), _Sum(Of(second, other), offset) if not is_value(first):
            return Found(difference(first, operator, second, offset), exact and other)
        case _Distance(Of(first, exact), Of(second, other)), _Constant(expression):
            value = _value(expression)
            if not isinstance(value, Fraction):
                return None
            return Found(difference(first, operator, second, value, "distance"), exact and other)
        case _:
            return None


def _value(expression: ast.Expression, *, rounded: bool = False) -> Fraction | str | None:
    """A literal's value; against computed doubles it is `rounded` as the comparison would, to one name per double."""
    match expression:
        case ast.String(value):
            return value
        case ast.Negation(operand):
            positive = _value(operand, rounded=rounded)
            return -positive if isinstance(positive, Fraction) else None
        case ast.Number(text):
            number = Decimal(text)
            if number and abs(number.adjusted()) > _LARGEST:
                return None
            return Fraction(Decimal(repr(float(number)))) if rounded else Fraction(number)
        case _:
            return None
