"""Sets of texts: the values that a term can still have under several comparisons.

A text is seen twice, as a string and as a number, and comparisons restrict one or the other: so a set of texts is a
range of strings together with a range of finite numbers and those of the special kinds (INF, -INF, NaN, and words,
which are no numbers) that are still possible.
Both views are treated as independent, unless only one string is left, whose number is then known; this can only make a
set too large, so an empty set is really empty.
Both orders are taken as dense (between two strings, and between two numbers, there is always another), except for
whole numbers.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Generic, TypeVar

from anabranch.logic import Operator
from anabranch.predicate.formula import AnyText, Domain, Finite, Integers, Reals

INF, MINUS_INF, NAN, WORD = "INF", "-INF", "NaN", "word"
NUMERIC = frozenset((INF, MINUS_INF, NAN))
SPECIAL = NUMERIC | {WORD}

Value = TypeVar("Value", Fraction, str)

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d+))?", re.ASCII)
_LONGEST, _LARGEST = 300, 300
"""Longer numbers, in digits or exponent, are not computed with."""


@dataclass(frozen=True, slots=True)
class ValueRange(Generic[Value]):
    """The values from `low` to `high` (None: no bound), each end included or not, without some points."""

    low: Value | None = None
    high: Value | None = None
    low_open: bool = False
    high_open: bool = False
    without: frozenset[Value] = frozenset()

    def meet(self, other: ValueRange[Value]) -> ValueRange[Value]:
        """The intersection."""
        if self.low is self.high is None and not self.without:
            return other
        if other.low is other.high is None and not other.without:
            return self
        low, low_open = self.low, self.low_open
        if other.low is not None and (low is None or other.low >= low):
            low_open = other.low_open or (low_open and low == other.low)
            low = other.low
        high, high_open = self.high, self.high_open
        if other.high is not None and (high is None or other.high <= high):
            high_open = other.high_open or (high_open and high == other.high)
            high = other.high
        return ValueRange(low, high, low_open, high_open, self.without | other.without)

    @property
    def empty(self) -> bool:
        """Whether it is empty, in a dense order."""
        if self.low is None or self.high is None or self.low < self.high:
            return False
        return self.low > self.high or self.low_open or self.high_open or self.low in self.without

    def __contains__(self, value: Value) -> bool:
        return not (
            (self.low is not None and (value < self.low or (self.low_open and value == self.low)))
            or (self.high is not None and (value > self.high or (self.high_open and value == self.high)))
            or value in self.without
        )


def span(op: Operator, value: Value) -> ValueRange[Value]:
    """The values with this relation to `value`."""
    match op:
        case "=":
            return ValueRange(value, value)
        case "!=":
            return ValueRange(without=frozenset((value,)))
        case "<" | "<=":
            return ValueRange(high=value, high_open=op == "<")
        case ">" | ">=":
            return ValueRange(low=value, low_open=op == ">")


NO_NUMBERS: ValueRange[Fraction] = ValueRange(Fraction(0), Fraction(0), True, True)


@dataclass(frozen=True, slots=True)
class Texts:
    """A set of texts; `choice` lists them where the domain does, `whole` allows only integers as numbers."""

    numbers: ValueRange[Fraction] = ValueRange()
    special: frozenset[str] = SPECIAL
    strings: ValueRange[str] = ValueRange()
    whole: bool = False
    choice: frozenset[str] | None = None

    def meet(self, other: Texts) -> Texts:
        """The intersection."""
        choice = other.choice if self.choice is None else self.choice
        if self.choice is not None and other.choice is not None:
            choice = self.choice & other.choice
        return Texts(
            self.numbers.meet(other.numbers),
            self.special & other.special,
            self.strings.meet(other.strings),
            self.whole or other.whole,
            choice,
        ).settled()

    def settled(self) -> Texts:
        """The same set with its consequences for numbers: whole ends, and the number of a single text."""
        numbers = _whole(self.numbers) if self.whole else self.numbers
        strings = self.strings
        if self.choice is None and not (strings.low is not None and strings.low == strings.high):
            return self if numbers is self.numbers else Texts(numbers, self.special, strings, self.whole)
        named = self.choice if self.choice is not None else frozenset((strings.low or "",))
        choice = frozenset(each for each in named if each in strings and self._allows(number_of(each)))
        if len(choice) != 1:
            return Texts(numbers if choice else NO_NUMBERS, self.special, strings, self.whole, choice)
        number = number_of(*choice)
        if isinstance(number, Fraction):
            return Texts(ValueRange(number, number), frozenset(), strings, False, choice)
        special = self.special if number is None else frozenset((number,))
        return Texts(NO_NUMBERS if number is not None else numbers, special, strings, False, choice)

    def _allows(self, number: Fraction | str | None) -> bool:
        if isinstance(number, Fraction):
            return number in self.numbers and not (self.whole and number.denominator != 1)
        return number is None or number in self.special

    @property
    def empty(self) -> bool:
        """Whether no text is left."""
        if self.choice is not None:
            return not self.choice
        return self.strings.empty or (self.numbers.empty and not self.special)


@lru_cache(maxsize=1_000)
def texts_of(domain: Domain) -> Texts:
    """All texts of a domain."""
    match domain:
        case AnyText():
            return Texts()
        case Reals(low, high):
            return Texts(ValueRange(low, high), frozenset())
        case Integers(low, high):
            return Texts(ValueRange(low, high), frozenset(), whole=True).settled()
        case Finite(texts):
            return Texts(choice=texts).settled()


def fulfilling(op: Operator, constant: Fraction | str, with_words: bool) -> Texts:
    """The texts with this relation to a constant; `with_words` includes words for a number."""
    if isinstance(constant, str):
        return Texts(strings=span(op, constant))
    special = {"<": {MINUS_INF}, "<=": {MINUS_INF}, ">": {INF}, ">=": {INF}, "!=": NUMERIC, "=": ()}[op]
    return Texts(span(op, constant), frozenset(special) | ({WORD} if with_words else frozenset()))


def number_of(text: str) -> Fraction | str | None:
    """The number that a text spells, its special kind, or None where it would be too long."""
    text = text.strip(" \t\r\n")
    if text in ("INF", "+INF"):
        return INF
    if text in (MINUS_INF, NAN):
        return text
    found = _NUMBER.fullmatch(text)
    if found is None:
        return WORD
    if len(text) > _LONGEST or abs(int(found[1] or 0)) > _LARGEST:
        return None
    return Fraction(text)


@lru_cache(maxsize=10_000)
def _whole(numbers: ValueRange[Fraction]) -> ValueRange[Fraction]:
    """The same whole numbers, with ends that are whole."""
    low, high = numbers.low, numbers.high
    if low is not None:
        low = Fraction(math.floor(low) + 1 if numbers.low_open else math.ceil(low))
        while low in numbers.without:
            low += 1
    if high is not None:
        high = Fraction(math.ceil(high) - 1 if numbers.high_open else math.floor(high))
        while high in numbers.without:
            high -= 1
    return ValueRange(low, high, without=numbers.without)
