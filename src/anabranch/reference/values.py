"""Atomic values and what may be done with them: LAWS section 2, executable.

Python's own types stand for XQuery's: `int` for xs:integer, `Decimal` for xs:decimal, `float` for xs:double, `bool`,
and `str` for xs:string; text from items is `Untyped`.
Comparisons of text with numbers are exact, and so are sums: nothing is rounded before the end.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_DOWN, Context, Decimal, Overflow
from fractions import Fraction
from typing import TypeAlias

from anabranch.algebra.numbers import exact_number as exact_number
from anabranch.algebra.numbers import no_number, read_digits, shown, spell_decimal, spell_double
from anabranch.errors import DynamicError
from anabranch.language.ast import ArithmeticOperator, ComparisonOperator


class Untyped(str):
    """Text from an item, which has no type yet (xs:untypedAtomic)."""

    __slots__ = ()


class WrittenDouble(float):
    """A double as a query wrote it (`1.3e0`), which compares with text by its exact decimal value."""

    __slots__ = ("exact",)
    exact: Decimal

    def __new__(cls, text: str) -> WrittenDouble:
        self = super().__new__(cls, text)
        self.exact = read_digits(text)
        return self


Atomic: TypeAlias = str | bool | int | Decimal | float
Numeric: TypeAlias = int | Decimal | float

_EXACT = Context(prec=2_000)
"""Digits beyond these in one number are rounded off, so that hostile numbers stay cheap."""
_MOST_BITS = 6_600
"""About 2,000 digits: what goes beyond in integers is an overflow, lest squaring a few times fill the memory."""


# --- numbers ----------------------------------------------------------------------------------------------


def to_double(value: Atomic) -> float:
    """Cast to xs:double; raises FORG0001 for text that is no number."""
    match value:
        case float():
            return value
        case Untyped():
            number = exact_number(value)
            if number is None:
                raise no_number(value)
            return float(number)
        case str():
            raise DynamicError(f"a number is needed, not the string '{shown(value)}'", code="XPTY0004")
        case _:
            try:
                return float(value)
            except OverflowError:
                return math.inf if value > 0 else -math.inf


def as_number(value: Atomic) -> Numeric:
    """What arithmetic makes of a value: numbers stay, untyped text becomes a double."""
    match value:
        case bool():
            raise DynamicError("a number is needed, not a boolean", code="XPTY0004")
        case int() | Decimal() | float():
            return value
        case _:
            return to_double(value)


def spell(value: Atomic) -> str:
    """XQuery's spelling of a value (LAWS 2.1)."""
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int():
            return str(value)
        case Decimal():
            return spell_decimal(value)
        case float():
            return spell_double(value)


# --- arithmetic -------------------------------------------------------------------------------------------


def calculate(operator: ArithmeticOperator, left: Atomic, right: Atomic) -> Numeric:
    """One arithmetic operation with XQuery's promotions: integer to decimal to double."""
    a, b = as_number(left), as_number(right)
    if isinstance(a, float) or isinstance(b, float):
        return _calculate_double(operator, to_double(a), to_double(b))
    if operator in ("div", "mod") and b == 0:
        raise DynamicError("division by zero", code="FOAR0001")
    try:
        result = _calculate_exactly(operator, a, b)
    except Overflow:
        raise _overflow() from None
    if isinstance(result, int) and result.bit_length() > _MOST_BITS:
        raise _overflow()
    return result


def _overflow() -> DynamicError:
    return DynamicError("the number is too large", code="FOAR0002")


def _calculate_exactly(operator: ArithmeticOperator, a: int | Decimal, b: int | Decimal) -> int | Decimal:
    if operator == "div":
        x, y = Decimal(a), Decimal(b)
        scale = max(18, -_exponent(x), -_exponent(y))
        return _EXACT.divide(x, y).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_DOWN, _EXACT)
    if isinstance(a, int) and isinstance(b, int):
        match operator:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "mod":
                return a - b * _truncated(Fraction(a, b))
    x, y = Decimal(a), Decimal(b)
    match operator:
        case "+":
            return _EXACT.add(x, y)
        case "-":
            return _EXACT.subtract(x, y)
        case "*":
            return _EXACT.multiply(x, y)
        case "mod":
            return _EXACT.remainder(x, y)


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _truncated(ratio: Fraction) -> int:
    return math.floor(ratio) if ratio >= 0 else math.ceil(ratio)


def _calculate_double(operator: ArithmeticOperator, a: float, b: float) -> float:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "div":
            if b != 0:
                return a / b
            if a == 0 or math.isnan(a):
                return math.nan
            return math.copysign(math.inf, math.copysign(1, a) * math.copysign(1, b))
        case "mod":
            if b == 0 or math.isinf(a) or math.isnan(a) or math.isnan(b):
                return math.nan
            return math.fmod(a, b)


def negate(value: Atomic) -> Numeric:
    """Unary minus."""
    number = as_number(value)
    return -number if not isinstance(number, Decimal) else number.copy_negate()


# --- comparison -------------------------------------------------------------------------------------------


def compare(operator: ComparisonOperator, left: Atomic, right: Atomic) -> bool:
    """Compare two values as LAWS 2.3 says; raises where XQuery would."""
    match left, right:
        case Untyped(), Untyped():
            if operator not in ("=", "!="):
                a, b = exact_number(left), exact_number(right)
                if a is not None and b is not None:
                    return _holds(operator, a, b)
            return _holds(operator, str(left), str(right))
        case Untyped(), bool():
            return _holds(operator, _boolean(left), right)
        case bool(), Untyped():
            return _holds(operator, left, _boolean(right))
        case Untyped(), int() | Decimal() | float():
            return _holds(operator, *_text_and_number(left, right))
        case int() | Decimal() | float(), Untyped():
            value, number = _text_and_number(right, left)
            return _holds(operator, number, value)
        case bool(), bool():
            return _holds(operator, left, right)
        case str(), str():
            return _holds(operator, str(left), str(right))
        case bool() | str(), _:
            pass
        case _, bool() | str():
            pass
        case float(), _:
            return _holds(operator, float(left), to_double(right))
        case _, float():
            return _holds(operator, to_double(left), float(right))
        case _:
            return _holds(operator, left, right)
    raise DynamicError(f"a {kind_of(left)} and a {kind_of(right)} cannot be compared", code="XPTY0004")


def _text_and_number(text: Untyped, number: Numeric) -> tuple[Numeric, Numeric]:
    """Both in a form that compares exactly: decimals, except where the number was computed as a double."""
    if isinstance(number, float) and not isinstance(number, WrittenDouble):
        return to_double(text), number
    exact = exact_number(text)
    if exact is None:
        raise no_number(text)
    return exact, number.exact if isinstance(number, WrittenDouble) else number


def _holds(operator: ComparisonOperator, a: Atomic, b: Atomic) -> bool:
    if any(isinstance(each, Decimal) and each.is_nan() for each in (a, b)):
        return operator == "!="
    match operator:
        case "=":
            return a == b
        case "!=":
            return a != b
        case "<":
            return a < b  # type: ignore[operator]  # both are strings, booleans or numbers
        case "<=":
            return a <= b  # type: ignore[operator]
        case ">":
            return a > b  # type: ignore[operator]
        case ">=":
            return a >= b  # type: ignore[operator]


def _boolean(text: Untyped) -> bool:
    word = text.strip(" \t\r\n")
    if word not in ("true", "false", "1", "0"):
        raise DynamicError(f"'{shown(text)}' is no boolean", code="FORG0001")
    return word in ("true", "1")


def kind_of(value: Atomic) -> str:
    """What to call a value in a message."""
    return "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"


OrderRank: TypeAlias = tuple[int, Decimal | str]


def order_rank(key: Atomic | None) -> OrderRank:
    """Where a key sorts: empty first, then NaN, numbers by value, text by code point (LAWS 2.3)."""
    match key:
        case None:
            return 0, ""
        case Untyped():
            number = exact_number(key)
        case bool():
            number = Decimal(key)
        case str():
            number = None
        case int() | Decimal() | float():
            number = Decimal(key)
    if number is None:
        return 3, str(key)
    return (1, "") if number.is_nan() else (2, number)
