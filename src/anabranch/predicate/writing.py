"""Exact numbers as texts."""

from __future__ import annotations

from fractions import Fraction


def number_text(value: Fraction) -> str:
    """A fraction as a decimal where it is one, else as a quotient."""
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
