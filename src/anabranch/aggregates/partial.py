"""Partials: all that has to be known of some values, for aggregates that are put together from parts.

Law (LAWS 2.1, 2.2): the value of an aggregate is that over all values at once, whatever parts the values came in and in
which order the parts are merged.
A *partial* tells, each by a letter:

* `c`: how many values there are;
* `s`: their true sum, an integer with a number of decimal places: integers do not lose digits, so it is as exact after
  months as on the first day, and its size grows with the logarithm of what was summed;
  what a unit change has made a fraction that is no decimal is summed beside it;
  and which of INF, -INF and NaN are among the values; NaN makes every aggregate NaN, both infinities a sum;
* `l`, `g`: the least and the greatest as doubles, each with its place in the stream, because -0 and 0 are equal and the
  earlier one is the answer; and exactly, for a result that leaves in another unit is not rounded twice (LAWS 4.3);
* `q`: the true sum of the squares, and `v`: all values, each with how often it occurs; both only where asked for;
* how many of the values are dateTimes, with the first and the last of them: where all values are, that is the least or
  greatest (LAWS 2.3); to every other aggregate they are texts that are no numbers, and so a failure is noted, too;
* the first failure: a path that failed comes before a text that is no number, because a path is followed to its end
  before anything is summed, and of two of a kind the earlier one counts;
  with it, for the dead letter, the item in which the path failed, or the first of those whose texts are no numbers.

`merge` is associative and commutative, and `Partial()` is its neutral element.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any, Literal, NamedTuple

from anabranch.errors import DynamicError
from anabranch.stream.elements import MOST_NAMED
from anabranch.values.instants import moment_seconds
from anabranch.values.numbers import exact_number, nearest_double, no_number, summand

COLUMNS = "cslg"
"""What columns of panes hold, and what travels between peers."""
POSITIVE, NEGATIVE, NAN = 1, 2, 4
"""What a partial notes of values that no sum can hold."""
_ALONE = {POSITIVE: math.inf, NEGATIVE: -math.inf}
_NOTHING = Fraction(0)
_MOST_PLACES = 40
"""A fraction with more decimal places than these is not held as a decimal."""


class Ranked(NamedTuple):
    """A double and its place in the stream."""

    value: float
    order: int
    exact: Fraction | None = None
    """What it was rounded from; None where its shortest spelling says so."""

    @property
    def number(self) -> Fraction:
        """The exact value of what is finite."""
        return Fraction(repr(self.value)) if self.exact is None else self.exact


class TextMoment(NamedTuple):
    """A text that is a dateTime: its seconds, its place in the stream, and itself; of equal ones the earlier counts."""

    seconds: Fraction
    order: int
    text: str


class TextMoments(NamedTuple):
    """What is known of values that are dateTimes."""

    values: int
    """How many there are."""
    first: TextMoment
    last: TextMoment

    def merge(self, other: TextMoments) -> TextMoments:
        """What is known of both; of equal ones at one place, those of an item, its own is the earlier."""
        first = min(self.first, other.first, key=lambda each: (each.seconds, each.order))
        last = min(self.last, other.last, key=lambda each: (-each.seconds, each.order))
        return TextMoments(self.values + other.values, first, last)

    def moved(self, base: int) -> TextMoments:
        """The same, so many places further on in the stream."""
        first, last = (each._replace(order=each.order + base) for each in (self.first, self.last))
        return self._replace(first=first, last=last)


class ItemAt(NamedTuple):
    """An item of a stream as a dead letter shows it: where it stands, and its text."""

    file: str
    offset: int
    raw: str


class Failure(NamedTuple):
    """Why there is no value; the least of several is the one to tell."""

    stage: Literal[0, 1]
    """0 where following the path failed, 1 where what it led to is no number."""
    order: int
    message: str
    code: str | None
    items: tuple[tuple[int, ItemAt], ...] = ()
    """The items that the dead letter names, and one more where it cannot name all; with their places in the stream."""
    values: int = 1
    """How many texts are no numbers."""

    @property
    def error(self) -> DynamicError:
        return DynamicError(self.message, code=self.code).given((self,))

    @staticmethod
    def read(fields: Sequence[Any]) -> Failure:
        """The failure that was written as these fields; an earlier release wrote no items."""
        stage, order, message, code, *more = fields
        items, values = more or ((), 1)
        return Failure(stage, order, message, code, tuple((at, ItemAt(*item)) for at, item in items), values)

    def moved(self, base: int) -> Failure:
        """The same, so many places further on in the stream."""
        items = tuple((at + base, item) for at, item in self.items)
        return self._replace(order=self.order + base, items=items)

    def merge(self, other: Failure) -> Failure:
        """What there is to tell of both."""
        first = self if self[:2] <= other[:2] else other
        if first.stage == 0:
            return first
        named = {(item.file, item.offset): (at, item) for at, item in sorted((*other.items, *self.items), reverse=True)}
        items = tuple(sorted(named.values()))[: MOST_NAMED + 1]
        return first._replace(items=items, values=self.values + other.values)


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
    rest: Fraction = _NOTHING
    """The sum of those that are no decimals."""
    squares: Fraction = _NOTHING
    values: Mapping[Fraction | float, int] = field(default_factory=dict, hash=False)
    """How often each value occurs, but for NaN."""
    moments: TextMoments | None = None

    @staticmethod
    def of(value: str | Fraction, order: int, item: ItemAt | None = None, needs: str = COLUMNS) -> Partial:
        """What is known of one value, as an item spells it or as a unit change has made it.

        `order` is its place in the stream, and `item` what a dead letter shows of the item that has it; `needs` are the
        letters of what is asked for.
        """
        exact: Fraction | float
        if isinstance(value, Fraction):
            exact, here, places = value, _ranked(nearest_double(value), order, value), _places(value)
            if places is None:
                found = Partial(1, 0, 0, 0, here, here, rest=value)
            else:
                found = Partial(1, int(value * 10**places), places, 0, here, here)
        else:
            number = exact_number(value)
            if number is None:
                error = no_number(value)
                failure = Failure(1, order, error.message, error.code, _named(item, order))
                seconds = moment_seconds(value)
                moment = None if seconds is None else TextMoment(seconds, order, value)
                return Partial(1, failure=failure, moments=moment and TextMoments(1, moment, moment))
            added = summand(number)
            exact = added if isinstance(added, float) and not math.isfinite(added) else Fraction(added)
            told = None if isinstance(added, float) else Fraction(added)
            place = None if number.is_nan() else _ranked(float(number), order, told)
            found = Partial(1, *_parts(added), place, place)
        if "q" in needs and isinstance(exact, Fraction):
            found = replace(found, squares=exact**2)
        if "v" in needs and exact == exact:
            found = replace(found, values={exact: 1})
        return found

    @staticmethod
    def failed(error: DynamicError, order: int, item: ItemAt | None = None) -> Partial:
        """What is known of values that could not be had."""
        return Partial(failure=Failure(0, order, error.message, error.code, _named(item, order)))

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
            self.rest + other.rest if self.rest or other.rest else _NOTHING,
            self.squares + other.squares if self.squares or other.squares else _NOTHING,
            _counted(self.values, other.values),
            self.moments.merge(other.moments) if self.moments and other.moments else self.moments or other.moments,
        )

    def moved(self, base: int) -> Partial:
        """The same, so many places further on in the stream."""
        least, greatest, failure, moments = self.least, self.greatest, self.failure, self.moments
        return replace(
            self,
            least=least and least._replace(order=least.order + base),
            greatest=greatest and greatest._replace(order=greatest.order + base),
            failure=failure and failure.moved(base),
            moments=moments and moments.moved(base),
        )

    @property
    def sum(self) -> Fraction | float:
        """The true sum."""
        if self.special:
            return _ALONE.get(self.special, math.nan)
        return Fraction(self.total, 10**self.places) + self.rest


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


def _places(value: Fraction) -> int | None:
    """The number of decimal places by which a fraction is a whole number; None where there are too many, or none."""
    rest, places = value.denominator, [0, 0]
    for number, prime in enumerate((2, 5)):
        while rest % prime == 0 and places[number] <= _MOST_PLACES:
            rest //= prime
            places[number] += 1
    return max(places) if rest == 1 else None


def _ranked(double: float, order: int, exact: Fraction | None) -> Ranked:
    """A value with what it was rounded from, where that has to be told."""
    plain = Ranked(double, order)
    if exact is None or not math.isfinite(double) or plain.number == exact:
        return plain
    return plain._replace(exact=exact)


def _better(a: Ranked | None, b: Ranked | None, *, lower: bool) -> Ranked | None:
    """The lower or the higher of two values; of equal doubles the earlier, with the exact value of the better."""
    if a is None or b is None:
        return a or b
    if a.value == b.value:
        first = a if a.order <= b.order else b
        if a.exact is b.exact:
            return first
        return _ranked(first.value, first.order, min(a.number, b.number) if lower else max(a.number, b.number))
    return a if (a.value < b.value) == lower else b


def _counted(a: Mapping[Fraction | float, int], b: Mapping[Fraction | float, int]) -> Mapping[Fraction | float, int]:
    """How often each value occurs in either."""
    if not a or not b:
        return a or b
    few, many = sorted((a, b), key=len)
    return {**many, **{each: times + many.get(each, 0) for each, times in few.items()}}


def _first(a: Failure | None, b: Failure | None) -> Failure | None:
    if a is None or b is None:
        return a or b
    return a.merge(b)


def _named(item: ItemAt | None, order: int) -> tuple[tuple[int, ItemAt], ...]:
    return () if item is None else ((order, item),)
