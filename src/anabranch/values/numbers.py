"""Numbers as items spell them: exact, and rounded where they must be a double.

A text is a number if xs:double accepts it, and its value is the decimal it spells (LAWS 2.2, 2.3).
"""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from anabranch.errors import DynamicError

_READING = Context(prec=2_000, Emax=1_100, Emin=-1_100, traps=[])
"""Text beyond these exponents, which no double reaches, is INF or 0; its exact fraction could be huge."""

_SHORT = 32
_DOUBLE = re.compile(
    r"[ \t\r\n]*(?:([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(NaN|[+-]?INF))[ \t\r\n]*\Z", re.ASCII
)


def exact_number(text: str) -> Decimal | None:
    """The value of a text that is a number of xs:double (INF and NaN among them), else None."""
    return _short_number(text) if len(text) <= _SHORT else _number(text)


@lru_cache(maxsize=4_096)
def _short_number(text: str) -> Decimal | None:
    """The same for a short text: most conditions and results read a value more than once."""
    return _number(text)


def _number(text: str) -> Decimal | None:
    found = _DOUBLE.match(text)
    if found is None:
        return None
    digits, special = found.groups()
    return Decimal(special.replace("INF", "Infinity")) if special else read_digits(digits)


def read_digits(digits: str) -> Decimal:
    """The value of a number in digits, with or without an exponent."""
    number = _READING.create_decimal(digits)
    return number if not number.is_nan() else Decimal(float(digits))  # an exponent beyond all limits


def summand(number: Decimal) -> Decimal | float:
    """The summand of a number: itself, or a float where it is INF or NaN or beyond every double."""
    if number.is_finite() and abs(number.adjusted()) <= 1_100:
        return number
    return float(number)  # INF, NaN or 0: its digits would only cost time


def nearest_double(value: Fraction | float) -> float:
    """The double nearest to a fraction (LAWS 2.2)."""
    if isinstance(value, float):
        return value
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def no_number(text: str) -> DynamicError:
    """The error for a text that had to be a number."""
    return DynamicError(f"'{shown(text)}' is no number", code="FORG0001")


def shown(text: str) -> str:
    """A text as quoted in a message."""
    return text if len(text) <= 40 else text[:37] + "..."


def spell_double(value: float) -> str:
    """XQuery's spelling of a double (LAWS 2.1)."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    shortest = Decimal(repr(float(value)))
    if 1e-6 <= abs(value) < 1e6:
        return spell_decimal(shortest)
    sign, digits, _ = shortest.as_tuple()
    figures = "".join(map(str, digits)).rstrip("0")
    return f"{'-' if sign else ''}{figures[0]}.{figures[1:] or '0'}E{shortest.adjusted()}"


def spell_decimal(value: Decimal) -> str:
    """XQuery's spelling of a decimal."""
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def write_fraction(number: Fraction) -> str:
    """An exact number in hexadecimal, which takes linear time and has no limit in Python."""
    return f"{number.numerator:x}/{number.denominator:x}"


def read_fraction(text: str) -> Fraction:
    """The number from `write_fraction`."""
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator, 16), int(denominator, 16))
