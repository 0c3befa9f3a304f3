"""Exact numbers of values, rounded once, at the end (LAWS 2.1, 2.2).

Sums are taken in fractions, so neither the order nor the grouping of values can show.
The exact value is kept (`Rounded`), so that a result in another unit is not rounded twice (LAWS 4.3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from anabranch.errors import DynamicError
from anabranch.stream.affine import MAX_DIGITS
from anabranch.values.atomic import Atomic, JsonNull, Rounded, Untyped, exact_value, kind_of, to_double
from anabranch.values.numbers import nearest_double, summand
from anabranch.values.sequences import Values
from anabranch.values.times import DURATIONS, TIMES, DateTime, Duration, TimeValue

_MORE_BITS = 2 * math.ceil(MAX_DIGITS * math.log2(10)) + 120


def exact_numbers(values: Iterable[Atomic]) -> list[Fraction | float]:
    """The exact numbers of values; floats only for INF and NaN. Raises for the first value that is no number."""
    return [_exact(value) for value in values]


def exact_sum(values: Iterable[Atomic | Fraction]) -> Fraction | float:
    """The exact sum of all values as a fraction; a float only where INF or NaN is among them."""
    total, special = Fraction(0), 0.0
    for value in values:
        number = value if isinstance(value, Fraction) else _exact(value)
        if isinstance(number, float):
            special += number
        else:
            total += number
    return total if special == 0 else special


def _exact(value: Atomic) -> Fraction | float:
    number = exact_value(value) if isinstance(value, Untyped) else value
    if isinstance(number, TIMES):
        raise DynamicError(f"a {kind_of(value)} is no number", code="FORG0006")
    if isinstance(number, bool | str | JsonNull) or number is None:
        raise not_summed(value)
    if isinstance(number, Decimal):
        number = summand(number)
    return number if isinstance(number, float) and not math.isfinite(number) else Fraction(number)


def not_summed(value: Atomic) -> DynamicError:
    """The error of a sum that meets a value whose type is that of no number."""
    try:
        to_double(value)
    except DynamicError as error:
        return error
    return DynamicError(f"a {kind_of(value)} cannot be summed", code="FORG0006")


def integers_in(values: Sequence[Atomic]) -> list[int] | None:
    """Values that are all integers; None where one is not."""
    found = [each for each in values if isinstance(each, int) and not isinstance(each, bool)]
    return found if len(found) == len(values) else None


def rounded(exact: Fraction | float) -> float:
    """The double of an aggregate (LAWS 2.2)."""
    return exact if isinstance(exact, float) else Rounded(nearest_double(exact), exact)


def root(square: Fraction) -> Fraction:
    """The square root; where it is irrational, a fraction that no unit change and no rounding can distinguish from it.

    Let the square be `p / q`.
    An irrational root, scaled by a fraction of at most MAX_DIGITS digits, is further from every number of 54 bits,
    where doubles round up or down, than 2**-112 / (p or q) / (that scale)**2, relatively; this is nearer.
    """
    p, q = square.numerator, square.denominator
    above, below = math.isqrt(p), math.isqrt(q)
    if above * above == p and below * below == q:
        return Fraction(above, below)
    bits = max(p.bit_length(), q.bit_length()) + _MORE_BITS
    return Fraction(2 * math.isqrt(p * q << 2 * bits) + 1, q << bits + 1)


def extreme(values: list[Atomic], greatest: bool) -> Values:
    """The least or greatest value: a double for numbers (LAWS 2.1), else one of their type; empty for no values."""
    if not values:
        return []
    if all(isinstance(each, bool) for each in values):
        return [any(values) if greatest else all(values)]
    if all(isinstance(each, str) and not isinstance(each, Untyped) for each in values):
        strings = [str(each) for each in values]
        return [max(strings) if greatest else min(strings)]
    if times := _times(values):
        return [(max if greatest else min)(times, key=lambda each: each.number)]  # of equal ones, the first
    if any(isinstance(each, (bool, str, JsonNull, *TIMES)) and not isinstance(each, Untyped) for each in values):
        raise of_several_kinds()
    doubles = [to_double(each) for each in values]
    if any(math.isnan(each) for each in doubles):
        return [math.nan]
    found = max(doubles) if greatest else min(doubles)
    if math.isinf(found):
        return [found]
    nearest = [Fraction(_exact(value)) for value, double in zip(values, doubles, strict=True) if double == found]
    return [Rounded(found, max(nearest) if greatest else min(nearest))]


def _times(values: Sequence[Atomic]) -> list[TimeValue] | None:
    """Values that are all of one type of times or durations; text that is a dateTime counts as one (LAWS 2.3)."""
    found = [DateTime.read(each) if isinstance(each, Untyped) else each for each in values]
    times = [each for each in found if isinstance(each, TIMES)]
    return times if len(times) == len(values) and len(set(map(type, times))) == 1 else None


def of_several_kinds() -> DynamicError:
    """The error for values that cannot be ordered or summed together."""
    return DynamicError("values of several kinds have neither a sum nor a least or greatest", code="FORG0006")


def durations_in(values: Sequence[Atomic]) -> list[Duration] | None:
    """Values that are durations of one type, to be summed; None where no value is a time or duration."""
    if not any(isinstance(each, TIMES) for each in values):
        return None
    found = [each for each in values if isinstance(each, DURATIONS)]
    if len(found) < len(values) or len(set(map(type, found))) > 1:
        raise of_several_kinds()
    return found


def extreme_number(number: Decimal | Fraction) -> float:
    """The double of an exact number that is the least or the greatest, as `extreme` gives it."""
    double = nearest_double(number) if isinstance(number, Fraction) else float(number)
    return (
        double
        if math.isinf(double)
        else Rounded(double, Fraction(number if isinstance(number, Fraction) else summand(number)))
    )
