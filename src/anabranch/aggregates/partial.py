"""Partials: the statistics of some values from which aggregates are computed, and which can be merged.

Law (LAWS 2.1, 2.2): the value of an aggregate is that over all values at once, whatever parts the values came in and in
which order the parts are merged.
A *partial* has, each with a letter:

* `c`: the number of values;
* `s`: their exact sum, an integer with a number of decimal places: integers lose no digits, so it is as exact after
  months as on the first day, and its size grows with the logarithm of what was summed;
  fractions from unit changes that are no decimals are summed beside it;
  and which of INF, -INF and NaN are among the values; NaN makes every aggregate NaN, both infinities make a sum NaN;
* `l`, `g`: the least and the greatest as doubles, each with its place in the stream, because -0 and 0 are equal and the
  earlier one is the answer; and exactly, for a result that leaves in another unit is not rounded twice (LAWS 4.3);
* `q`: the exact sum of the squares, and `v`: all values, each with its multiplicity; both only where needed;
* the number of values that are dateTimes, with the first and the last of them: where all values are, that is the least
  or greatest (LAWS 2.3); to every other aggregate they are texts that are no numbers, so a failure is recorded, too;
* the number of values that are strings or booleans by their type, as JSON has them, with the least and the greatest:
  where all values are of one such type, that is the answer (LAWS 2.1); a failure is recorded for them, too;
* the first failure: a path that failed comes before a text that is no number, because a path is evaluated completely
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

from anabranch.aggregates.exact import not_summed
from anabranch.errors import DynamicError
from anabranch.stream.elements import MOST_NAMED
from anabranch.values.instants import moment_seconds
from anabranch.values.numbers import exact_number, nearest_double, no_number, summand

COLUMNS = "cslg"
"""The letters that columns of panes hold, and that peers exchange."""
POSITIVE, NEGATIVE, NAN = 1, 2, 4
"""Values that no sum can hold, as flags."""
_ALONE = {POSITIVE: math.inf, NEGATIVE: -math.inf}
_NOTHING = Fraction(0)
_MOST_PLACES = 40
"""A fraction with more decimal places is not held as a decimal."""


class Ranked(NamedTuple):
    """A double and its place in the stream."""

    value: float
    order: int
    exact: Fraction | None = None
    """The exact number it was rounded from; None where that is its shortest spelling."""

    @property
    def number(self) -> Fraction:
        """The exact value of a finite one."""
        return Fraction(repr(self.value)) if self.exact is None else self.exact


class TextMoment(NamedTuple):
    """A text that is a dateTime: seconds, place in the stream, and text; of equal ones the earlier counts."""

    seconds: Fraction
    order: int
    text: str


class TextMoments(NamedTuple):
    """The dateTimes among the values."""

    values: int
    """Their number."""
    first: TextMoment
    last: TextMoment

    def merge(self, other: TextMoments) -> TextMoments:
        """The dateTimes of both; of equal ones at one place, within an item, its own is the earlier."""
        first = min(self.first, other.first, key=lambda each: (each.seconds, each.order))
        last = min(self.last, other.last, key=lambda each: (-each.seconds, each.order))
        return TextMoments(self.values + other.values, first, last)

    def moved(self, base: int) -> TextMoments:
        """The same, `base` places later in the stream."""
        first, last = (each._replace(order=each.order + base) for each in (self.first, self.last))
        return self._replace(first=first, last=last)


class Typed(NamedTuple):
    """A value that is no number by its type, as a lookup finds it in JSON (LAWS 7.1)."""

    value: str | bool


class TypedValues(NamedTuple):
    """The strings and booleans among the values."""

    values: int
    """Their number."""
    least: str | bool | None
    greatest: str | bool | None
    """Both are None where there are strings and booleans, which have no order between them."""

    def merge(self, other: TypedValues) -> TypedValues:
        """The strings and booleans of both."""
        values = self.values + other.values
        match self, other:
            case (TypedValues(_, str(a), str(b)), TypedValues(_, str(c), str(d))):
                return TypedValues(values, min(a, c), max(b, d))
            case (TypedValues(_, bool(a), bool(b)), TypedValues(_, bool(c), bool(d))):
                return TypedValues(values, a and c, b or d)
            case _:
                return TypedValues(values, None, None)


class ItemAt(NamedTuple):
    """An item of a stream as shown in a dead letter: its place and its text."""

    file: str
    offset: int
    raw: str


class Failure(NamedTuple):
    """Why there is no value; of several failures the least counts."""

    stage: Literal[0, 1]
    """0 where evaluating the path failed, 1 where its value is no number."""
    order: int
    message: str
    code: str | None
    items: tuple[tuple[int, ItemAt], ...] = ()
    """The items that the dead letter names, and one more where it cannot name all; with their places in the stream."""
    values: int = 1
    """The number of texts that are no numbers."""

    @property
    def error(self) -> DynamicError:
        return DynamicError(self.message, code=self.code).given((self,))

    @staticmethod
    def read(fields: Sequence[Any]) -> Failure:
        """The failure from its written fields; an earlier release wrote no items."""
        stage, order, message, code, *more = fields
        items, values = more or ((), 1)
        return Failure(stage, order, message, code, tuple((at, ItemAt(*item)) for at, item in items), values)

    def moved(self, base: int) -> Failure:
        """The same, `base` places later in the stream."""
        items = tuple((at + base, item) for at, item in self.items)
        return self._replace(order=self.order + base, items=items)

    def merge(self, other: Failure) -> Failure:
        """The failure of both together."""
        first = self if self[:2] <= other[:2] else other
        if first.stage == 0:
            return first
        named = {(item.file, item.offset): (at, item) for at, item in sorted((*other.items, *self.items), reverse=True)}
        items = tuple(sorted(named.values()))[: MOST_NAMED + 1]
        return first._replace(items=items, values=self.values + other.values)


@dataclass(frozen=True, slots=True)
class Partial:
    """The statistics of some values."""

    count: int = 0
    total: int = 0
    """The sum of the finite decimals, in units of 10**-places."""
    places: int = 0
    special: int = 0
    least: Ranked | None = None
    greatest: Ranked | None = None
    failure: Failure | None = None
    rest: Fraction = _NOTHING
    """The sum of fractions that are no decimals."""
    squares: Fraction = _NOTHING
    values: Mapping[Fraction | float, int] = field(default_factory=dict, hash=False)
    """The multiplicity of each value, except NaN."""
    moments: TextMoments | None = None
    typed: TypedValues | None = None

    @staticmethod
    def of(value: str | Fraction | Typed, order: int, item: ItemAt | None = None, needs: str = COLUMNS) -> Partial:
        """The partial of one value, as an item spells it, as its type has it, or as a unit change has computed it.

        `order` is its place in the stream, and `item` its item as shown in a dead letter; `needs` are the letters of
        the statistics wanted.
        """
        exact: Fraction | float
        if isinstance(value, Typed):
            error = not_summed(value.value)
            failure = Failure(1, order, error.message, error.code, _named(item, order))
            return Partial(1, failure=failure, typed=TypedValues(1, value.value, value.value))
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
            known = None if isinstance(added, float) else Fraction(added)
            place = None if number.is_nan() else _ranked(float(number), order, known)
            found = Partial(1, *_parts(added), place, place)
        if "q" in needs and isinstance(exact, Fraction):
            found = replace(found, squares=exact**2)
        if "v" in needs and exact == exact:
            found = replace(found, values={exact: 1})
        return found

    @staticmethod
    def failed(error: DynamicError, order: int, item: ItemAt | None = None) -> Partial:
        """The partial of values that could not be evaluated."""
        return Partial(failure=Failure(0, order, error.message, error.code, _named(item, order)))

    def merge(self, other: Partial) -> Partial:
        """The partial of the values of both."""
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
            self.typed.merge(other.typed) if self.typed and other.typed else self.typed or other.typed,
        )

    def moved(self, base: int) -> Partial:
        """The same, `base` places later in the stream."""
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
        """The exact sum."""
        if self.special:
            return _ALONE.get(self.special, math.nan)
        return Fraction(self.total, 10**self.places) + self.rest


def merged(partials: Iterable[Partial]) -> Partial:
    """All of some partials as one."""
    return reduce(Partial.merge, partials, Partial())


def _parts(number: Decimal | float) -> tuple[int, int, int]:
    """A summand as an integer, its decimal places, and its flags."""
    if isinstance(number, float):
        return 0, 0, NAN if math.isnan(number) else POSITIVE if number > 0 else NEGATIVE if number < 0 else 0
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "a number in digits is finite"
    mantissa = int(Decimal((sign, digits, 0)))
    return (mantissa, -exponent, 0) if exponent <= 0 else (mantissa * 10**exponent, 0, 0)


def _places(value: Fraction) -> int | None:
    """The number of decimal places of a fraction; None where there are too many, or it is no decimal."""
    rest, places = value.denominator, [0, 0]
    for number, prime in enumerate((2, 5)):
        while rest % prime == 0 and places[number] <= _MOST_PLACES:
            rest //= prime
            places[number] += 1
    return max(places) if rest == 1 else None


def _ranked(double: float, order: int, exact: Fraction | None) -> Ranked:
    """A value with its exact number, where the double alone does not determine it."""
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
    """The multiplicities of both together."""
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
