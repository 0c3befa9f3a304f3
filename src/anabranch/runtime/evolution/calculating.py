"""Calculations with parts (`parts.py`): affine in one path, or nothing in particular (LAWS 4.7)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from anabranch.runtime.evolution.lineage import Origin
from anabranch.runtime.evolution.parts import Computed, Constant, Nodes, Other, Part, Parts, looks_of
from anabranch.values.operators import ArithmeticOperator

MOST_DIGITS = 100
"""The most digits that a constant may have to be reckoned with here."""


def operand(found: Parts) -> Part:
    """What takes part in a calculation."""
    match found:
        case (Constant() | Computed() as only,):
            return only
        case (Nodes() as only,) if only.is_known and not only.many and only.path.steps:
            return Computed(Origin(only.input, only.path), only.always)
        case _:
            return Other(looks_of(found))


def calculated(operator: ArithmeticOperator, left: Part, right: Part) -> Part:
    """What a calculation gives, as long as it is affine in one path."""
    match left, operator, right:
        case Constant(x), "+" | "-" | "*" | "div", Constant(y) if operator != "div" or y:
            return _bounded(Constant(_numbers(operator, x, y)))
        case Computed(origin), "+" | "-", Constant(y):
            return _bounded(replace(left, origin=replace(origin, b=_numbers(operator, origin.b, y))))
        case (Computed() as of, "+", Constant(x)) | (Constant(x), "+", Computed() as of):
            return _bounded(replace(of, origin=replace(of.origin, b=of.origin.b + x)))
        case Constant(x), "-", Computed(origin):
            return _bounded(replace(right, origin=replace(origin, a=-origin.a, b=x - origin.b)))
        case (Computed() as of, "*", Constant(x)) | (Constant(x), "*", Computed() as of) if x:
            return _bounded(replace(of, origin=replace(of.origin, a=of.origin.a * x, b=of.origin.b * x)))
        case Computed(origin), "+" | "-", Computed(other) if _alike(origin, other):
            a, b = _numbers(operator, origin.a, other.a), _numbers(operator, origin.b, other.b)
            return _bounded(replace(left, origin=replace(origin, a=a, b=b))) if a else Other(left.of)
        case Computed(origin), "div", Constant(y) if y:
            return _bounded(replace(left, origin=replace(origin, a=origin.a / y, b=origin.b / y)))
        case _:
            return Other(left.of | right.of)


def _alike(origin: Origin, other: Origin) -> bool:
    """Whether two numbers are computed from one and the same."""
    return replace(origin, a=other.a, b=other.b) == other


def _numbers(operator: str, x: Fraction, y: Fraction) -> Fraction:
    match operator:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
        case _:
            return x / y


def _bounded(part: Constant | Computed) -> Part:
    """The part, unless its numbers have become too long to go on with."""
    numbers = (part.value,) if isinstance(part, Constant) else (part.origin.a, part.origin.b)
    longest = max(max(abs(each.numerator), each.denominator) for each in numbers)
    return part if longest < 10 ** (2 * MOST_DIGITS) else Other(part.of)
