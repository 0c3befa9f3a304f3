"""Which places of a sequence a query asks for, where its text tells that (LAWS 3.10).

    (...)[3]                (...)[position() <= 10]         head(...)       subsequence(..., 1, 10)
    (...)[last()]           (...)[position() > last() - 3]  tail(...)

are intervals of places, counted from the front or from the back, whose borders are written as numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor

from anabranch.branch.display.parts import PlaceInterval
from anabranch.language import ast
from anabranch.values.operators import TURNED, ComparisonOperator

_NONE = PlaceInterval(0, 0)


def sliced(expression: ast.Expression) -> tuple[ast.Expression, PlaceInterval] | None:
    """The sequence that an expression takes some places of, and these places; None for any other expression."""
    match expression:
        case ast.Filter(base, (*tail, ast.Positional(condition))):
            interval = _asked(condition)
            below = ast.Filter(base, tuple(tail), span=expression.span) if tail else base
        case ast.Call(name, (below, *numbers)):
            interval = _called(name.removeprefix("fn:"), numbers)
        case _:
            return None
    return None if interval is None else (below, interval)


def _called(name: str, numbers: Sequence[ast.Expression]) -> PlaceInterval | None:
    borders = [_number(each) for each in numbers]
    match name, borders:
        case "head", []:
            return PlaceInterval(0, 1)
        case "tail", []:
            return PlaceInterval(1, None)
        case "subsequence", [Fraction() as start]:
            return PlaceInterval(max(_rounded(start) - 1, 0), None)
        case "subsequence", [Fraction() as start, Fraction() as length]:
            first = _rounded(start)
            return _between(first - 1, first + _rounded(length) - 1)
        case _:
            return None


def _asked(condition: ast.Expression) -> PlaceInterval | None:
    """The places for which a condition holds."""
    match condition:
        case ast.Comparison(operator, left, right):
            if _is_call(left, "position"):
                return _compared(operator, right)
            return _compared(TURNED[operator], left) if _is_call(right, "position") else None
        case ast.And(operands):
            return _in_all([_asked(each) for each in operands])
        case _:
            return _compared("=", condition)


def _in_all(several: Sequence[PlaceInterval | None]) -> PlaceInterval | None:
    """The places that are in all of some intervals."""
    found: PlaceInterval | None = several[0]
    for each in several[1:]:
        if found is None or each is None or found.is_from_back != each.is_from_back:
            return None
        ends = [end for end in (found.end, each.end) if end is not None]
        first = max(found.first, each.first)
        found = PlaceInterval(first, max(first, min(ends)) if ends else None, found.is_from_back)
    return found


def _compared(operator: ComparisonOperator, border: ast.Expression) -> PlaceInterval | None:
    """The places that compare so with a border."""
    number, back = _number(border), _behind_last(border)
    if number is not None:
        match operator:
            case "=":
                return _between(number - 1, number) if number.denominator == 1 and number > 0 else _NONE
            case "<=":
                return _between(0, floor(number))
            case "<":
                return _between(0, ceil(number) - 1)
            case ">=":
                return PlaceInterval(max(ceil(number) - 1, 0), None)
            case ">":
                return PlaceInterval(max(floor(number), 0), None)
    if back is not None:
        match operator:
            case "=":
                return PlaceInterval(back, back + 1, is_from_back=True)
            case "<=":
                return PlaceInterval(back, None, is_from_back=True)
            case "<":
                return PlaceInterval(back + 1, None, is_from_back=True)
            case ">=":
                return PlaceInterval(0, back + 1, is_from_back=True)
            case ">":
                return PlaceInterval(0, back, is_from_back=True)
    return None


def _between(first: Fraction | int, end: Fraction | int) -> PlaceInterval:
    start = max(int(first), 0)
    return PlaceInterval(start, max(int(end), start))


def _behind_last(border: ast.Expression) -> int | None:
    """How many places before the last one a border is: 0 for `last()`, 3 for `last() - 3`."""
    match border:
        case ast.Arithmetic(first, (("-", ast.Number() as number),)) if _is_call(first, "last"):
            exact = _number(number)
            return int(exact) if exact is not None and exact.denominator == 1 else None
        case _:
            return 0 if _is_call(border, "last") else None


def _number(expression: ast.Expression) -> Fraction | None:
    match expression:
        case ast.Number(text) if "e" not in text and "E" not in text:
            return Fraction(text)
        case ast.Negation(operand):
            found = _number(operand)
            return None if found is None else -found
        case _:
            return None


def _rounded(number: Fraction) -> int:
    return floor(number + Fraction(1, 2))


def _is_call(expression: ast.Expression, name: str) -> bool:
    return isinstance(expression, ast.Call) and expression.name.removeprefix("fn:") == name and not expression.arguments


def asked_below(condition: ast.Expression, variable: str) -> int | None:
    """The greatest number for which a condition on a number may hold, `$variable <= 3`; None where that is unknown."""
    match condition:
        case ast.Comparison(operator, ast.Variable(name), border) if name == variable:
            found = _compared(operator, border)
        case ast.Comparison(operator, border, ast.Variable(name)) if name == variable:
            found = _compared(TURNED[operator], border)
        case _:
            return None
    return None if found is None or found.is_from_back else found.end
