"""Predicates as query text, with parentheses only where the grammar needs them.

A term is written as its input and its path, constants as decimals and quoted strings.
A fraction that is no decimal, which only a unit change brings about, is written as a quotient (`1 div 3`); a query
rounds it.
"""

from __future__ import annotations

from fractions import Fraction

from anabranch.predicate.formula import EVERYTHING, NOTHING, And, Compare, Difference, Not, Or, Predicate


def to_text(predicate: Predicate) -> str:
    """The predicate as a condition of the query language."""
    match predicate:
        case And(()):
            return "true()"
        case Or(()):
            return "false()"
        case And(parts):
            return " and ".join(_operand(part, isinstance(part, And | Or)) for part in parts)
        case Or(parts):
            return " or ".join(_operand(part, isinstance(part, Or)) for part in parts)
        case Not(part):
            return f"not({to_text(part)})"
        case Compare(term, op, str() as constant):
            return f"{term} {op} {_quoted(constant)}"
        case Compare(term, op, Fraction() as constant):
            return f"{term} {op} {number_text(constant)}"
        case Difference(left, op, right, None):
            return f"{left} {op} {right}"
        case Difference(left, op, right, Fraction() as offset, "distance"):
            return f"{left} - {right} {op} {number_text(offset)}"
        case Difference(left, op, right, Fraction() as offset):
            return f"{left} {op} {right} {'-' if offset < 0 else '+'} {number_text(abs(offset))}"
    raise AssertionError(predicate)


def number_text(value: Fraction) -> str:
    """A fraction as the decimal that it is, else as a quotient."""
    rest = value.denominator
    twos = fives = 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return f"{value.numerator} div {value.denominator}"
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    whole, behind = (digits[:-places], digits[-places:]) if places else (digits, "")
    return f"{'-' if value < 0 else ''}{whole}{'.' if behind else ''}{behind}"


def _operand(part: Predicate, loose: bool) -> str:
    """A part that binds no tighter than its place stands in parentheses, unless it is true() or false()."""
    return f"({to_text(part)})" if loose and part not in (EVERYTHING, NOTHING) else to_text(part)


def _quoted(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("'", "''").replace("\r", "&#xD;")
    return f"'{escaped}'"
