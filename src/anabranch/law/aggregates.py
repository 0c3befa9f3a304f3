"""Aggregates: exact sums, and the least and greatest of values (LAWS 2.1, 2.2).

Sums are taken in fractions, so neither the order nor the grouping of values can show; the one rounding is at the end,
and what was rounded is kept, so that a result that leaves in another unit is not rounded twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from anabranch.errors import DynamicError
from anabranch.values.atomic import Atomic, Rounded, Untyped, exact_value, kind_of, to_double
from anabranch.values.numbers import nearest_double, summand


def exact_sum(values: Iterable[Atomic]) -> Fraction | float:
    """The true sum of all values as a fraction; a float only where INF or NaN is among them."""
    total, special = Fraction(0), 0.0
    for value in values:
        number = exact_value(value) if isinstance(value, Untyped) else value
        if isinstance(number, bool | str) or number is None:
            to_double(value)  # raises for what is no number
            raise DynamicError(f"a {kind_of(value)} cannot be summed", code="FORG0006")
        if isinstance(number, Decimal):
            number = summand(number)
        if isinstance(number, float) and not math.isfinite(number):
            special += number
        else:
            total += Fraction(number)
    return total if special == 0 else special


def rounded(exact: Fraction | float) -> float:
    """The double that an aggregate gives (LAWS 2.2)."""
    return exact if isinstance(exact, float) else Rounded(nearest_double(exact), exact)


def extreme(values: list[Atomic], greatest: bool) -> Atomic | None:
    """The least or greatest value: a double for numbers (LAWS 2.1), a string for strings."""
    if not values:
        return None
    if all(isinstance(each, str) and not isinstance(each, Untyped) for each in values):
        strings = [str(each) for each in values]
        return max(strings) if greatest else min(strings)
    if any(isinstance(each, bool) or (isinstance(each, str) and not isinstance(each, Untyped)) for each in values):
        raise DynamicError("values of several kinds have no least or greatest", code="FORG0006")
    doubles = [to_double(each) for each in values]
    if any(math.isnan(each) for each in doubles):
        return math.nan
    found = max(doubles) if greatest else min(doubles)
    if math.isinf(found):
        return found
    nearest = [_exact(value) for value, double in zip(values, doubles, strict=True) if double == found]
    return Rounded(found, max(nearest) if greatest else min(nearest))


def _exact(value: Atomic) -> Fraction:
    """The exact value of what is a finite number."""
    number = exact_value(value) if isinstance(value, Untyped) else value
    assert number is not None
    assert not isinstance(number, str)
    return Fraction(summand(number) if isinstance(number, Decimal) else number)
