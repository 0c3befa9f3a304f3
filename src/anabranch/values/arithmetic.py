"""Arithmetic: XQuery's promotions, integer to decimal to double; everything except doubles is exact, within bounds."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_DOWN, Context, Decimal, Overflow
from fractions import Fraction

from anabranch.errors import DynamicError
from anabranch.values.atomic import Atomic, Numeric, as_number, to_double
from anabranch.values.operators import ArithmeticOperator
from anabranch.values.time_arithmetic import calculate_times
from anabranch.values.times import TIMES, TimeValue

_EXACT = Context(prec=2_000)
"""Digits beyond these in one number are rounded off, so that hostile numbers stay cheap."""
_MOST_BITS = 6_600
"""About 2,000 digits: larger integers overflow, lest squaring a few times fill the memory."""


def calculate(operator: ArithmeticOperator, left: Atomic, right: Atomic) -> Numeric | TimeValue:
    """One arithmetic operation with XQuery's promotions: integer to decimal to double."""
    if isinstance(left, TIMES) or isinstance(right, TIMES):
        return calculate_times(operator, left, right)
    a, b = as_number(left), as_number(right)
    if isinstance(a, float) or isinstance(b, float):
        return calculate_doubles(operator, to_double(a), to_double(b))
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


def calculate_doubles(operator: ArithmeticOperator, a: float, b: float) -> float:
    """One operation on doubles."""
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
    if isinstance(number, Decimal):
        return number.copy_negate() if number else number  # a decimal has no negative zero
    return -number
