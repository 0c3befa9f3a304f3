"""Aggregate: `min`, `max`, `sum`, `count` and `avg` over the values in a window, put together from parts.

Law (LAWS 2.1, 2.2): the value of an aggregate over a window is that over all its values at once, whatever parts the
values came in and in which order the parts are merged.
A *partial* is all that has to be known of a part:

* how many values there are;
* their true sum, an integer with a number of decimal places: integers do not lose digits, so it is as exact after
  months as on the first day, and its size grows with the logarithm of what was summed;
* which of INF, -INF and NaN are among them; NaN makes every aggregate NaN, both infinities a sum;
* the least and the greatest as doubles, each with its place in the stream, because -0 and 0 are equal and the earlier
  one is the answer;
* the first failure: a path that failed comes before a text that is no number, because a path is followed to its end
  before anything is summed, and of two of a kind the earlier one counts.

`merge` is associative and commutative, and `Partial()` is its neutral element.

Signature: what an aggregate answers follows from function, path, the items' selection and the window.
Items: a partial each, merged by pane, and by window of panes.
Accents, updates: not followed yet; a stream that carries them is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Literal, NamedTuple, TypeAlias

from anabranch.algebra.numbers import exact_number, nearest_double, no_number, summand
from anabranch.errors import DynamicError

Function: TypeAlias = Literal["min", "max", "sum", "count", "avg"]

POSITIVE, NEGATIVE, NAN = 1, 2, 4
"""What a partial notes of values that no sum can hold."""
_ALONE = {POSITIVE: math.inf, NEGATIVE: -math.inf}


class Ranked(NamedTuple):
    """A double and its place in the stream."""

    value: float
    order: int


class Failure(NamedTuple):
    """Why there is no value; the least of several is the one to tell."""

    stage: Literal[0, 1]
    """0 where following the path failed, 1 where what it led to is no number."""
    order: int
    message: str
    code: str | None

    @property
    def error(self) -> DynamicError:
        return DynamicError(self.message, code=self.code)


@dataclass(frozen=True, slots=True)
class Partial:
    """What is known of some values."""

    count: int = 0
    total: int = 0
    """The sum of those that are finite, in units of 10**-places."""
    places: int = 0
    special: int = 0
    least: Ranked | None = None
    greatest: Ranked | None = None
    failure: Failure | None = None

    @staticmethod
    def of(text: str, order: int) -> Partial:
        """What is known of one value, as an item spells it; `order` is its place in the stream."""
        number = exact_number(text)
        if number is None:
            error = no_number(text)
            return Partial(1, failure=Failure(1, order, error.message, error.code))
        here = None if number.is_nan() else Ranked(float(number), order)
        total, places, special = _parts(summand(number))
        return Partial(1, total, places, special, here, here)

    @staticmethod
    def failed(error: DynamicError, order: int) -> Partial:
        """What is known of values that could not be had."""
        return Partial(failure=Failure(0, order, error.message, error.code))

    def merge(self, other: Partial) -> Partial:
        """What is known of the values of both."""
        places = max(self.places, other.places)
        return Partial(
            self.count + other.count,
            self.total * 10 ** (places - self.places) + other.total * 10 ** (places - other.places),
            places,
            self.special | other.special,
            _better(self.least, other.least, lower=True),
            _better(self.greatest, other.greatest, lower=False),
            _first(self.failure, other.failure),
        )

    def moved(self, base: int) -> Partial:
        """The same, so many places further on in the stream."""
        least, greatest, failure = self.least, self.greatest, self.failure
        return replace(
            self,
            least=least and least._replace(order=least.order + base),
            greatest=greatest and greatest._replace(order=greatest.order + base),
            failure=failure and failure._replace(order=failure.order + base),
        )

    def value(self, function: Function) -> int | float | None:
        """The aggregate, None for the empty sequence; raises the first failure, if it concerns the function."""
        if self.failure and (self.failure.stage == 0 or function != "count"):
            raise self.failure.error
        match function:
            case "count":
                return self.count
            case "sum":
                return nearest_double(self._sum) if self.count else 0
            case "avg":
                return nearest_double(self._sum / self.count) if self.count else None
            case "min":
                return self._extreme(self.least)
            case "max":
                return self._extreme(self.greatest)

    @property
    def _sum(self) -> Fraction | float:
        if self.special:
            return _ALONE.get(self.special, math.nan)
        return Fraction(self.total, 10**self.places)

    def _extreme(self, found: Ranked | None) -> float | None:
        return math.nan if self.special & NAN else found and found.value


def merged(partials: Iterable[Partial]) -> Partial:
    """All of some partials as one."""
    return reduce(Partial.merge, partials, Partial())


def _parts(number: Decimal | float) -> tuple[int, int, int]:
    """A summand as an integer, its decimal places, and what is special about it."""
    if isinstance(number, float):
        return 0, 0, NAN if math.isnan(number) else POSITIVE if number > 0 else NEGATIVE if number < 0 else 0
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "a number in digits is finite"
    mantissa = int(Decimal((sign, digits, 0)))
    return (mantissa, -exponent, 0) if exponent <= 0 else (mantissa * 10**exponent, 0, 0)


def _better(a: Ranked | None, b: Ranked | None, *, lower: bool) -> Ranked | None:
    """The lower or the higher of two values; of equal ones the earlier."""
    if a is None or b is None:
        return a or b
    if a.value == b.value:
        return a if a.order <= b.order else b
    return a if (a.value < b.value) == lower else b


def _first(a: Failure | None, b: Failure | None) -> Failure | None:
    if a is None or b is None:
        return a or b
    return a if a[:2] <= b[:2] else b
