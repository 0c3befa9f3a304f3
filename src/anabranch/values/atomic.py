"""Atomic values and their operations: LAWS section 2, executable.

Python's own types stand for XQuery's: `int` for xs:integer, `Decimal` for xs:decimal, `float` for xs:double, `bool`,
and `str` for xs:string; text from items is `Untyped`; times and durations are those of `times.py`.
Comparisons of text with numbers are exact, and so are sums: nothing is rounded before the end.

Text that a unit change has made a number is `Measured` (LAWS 2.3, 4.3): as text it is unchanged, but it is compared,
ordered and summed as the exact number meant, which may have no spelling.
A number from JSON is text as well that is known to be a number (LAWS 7.1): it keeps its spelling, and is compared,
ordered and summed by its exact value; `null` is a value that no comparison holds for.
The result of an aggregate is `Rounded`: a double to every operation, which still knows its exact value when it leaves.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from anabranch.errors import DynamicError
from anabranch.logic import COMPARES
from anabranch.stream.affine import Affine
from anabranch.stream.tree import Measure
from anabranch.values.instants import moment_seconds
from anabranch.values.numbers import exact_number as exact_number
from anabranch.values.numbers import no_number, read_digits, shown, spell_decimal, spell_double
from anabranch.values.operators import ComparisonOperator
from anabranch.values.times import DURATIONS, TIMES, TimeValue, read_time


class Untyped(str):
    """Text from an item, which has no type yet (xs:untypedAtomic)."""

    __slots__ = ()


class Measured(Untyped):
    """Text from an item whose unit has changed: in XQuery's spelling of the nearest double, with the exact number."""

    __slots__ = ("measure",)
    measure: Measure

    def __new__(cls, text: str, measure: Measure) -> Measured:
        self = super().__new__(cls, text)
        self.measure = measure
        return self


class JsonNumber(Untyped):
    """A number as JSON wrote it: it meets numbers only, and keeps its spelling."""

    __slots__ = ()


class JsonNull:
    """JSON's `null`, a value of its own; `NULL` is the only instance."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return "null"


NULL = JsonNull()


class Rounded(float):
    """A computed double that knows the exact number it was rounded from."""

    __slots__ = ("exact",)
    exact: Fraction

    def __new__(cls, double: float, exact: Fraction) -> Rounded:
        self = super().__new__(cls, double)
        self.exact = exact
        return self


class WrittenDouble(float):
    """A double as a query wrote it (`1.3e0`), which compares with text by its exact decimal value."""

    __slots__ = ("exact",)
    exact: Decimal

    def __new__(cls, text: str) -> WrittenDouble:
        self = super().__new__(cls, text)
        self.exact = read_digits(text)
        return self


Atomic: TypeAlias = str | bool | int | Decimal | float | TimeValue | JsonNull
Numeric: TypeAlias = int | Decimal | float

_ONE = Fraction(1)


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
        case int() | Decimal():
            try:
                return float(value)
            except OverflowError:
                return math.inf if value > 0 else -math.inf
        case _:
            raise DynamicError(f"a number is needed, not the {kind_of(value)} '{value}'", code="XPTY0004")


def literal(text: str) -> Numeric:
    """The value of a number as a query writes it: an integer, a decimal or a double."""
    if "e" in text or "E" in text:
        return WrittenDouble(text)
    return Decimal(text) if "." in text else int(text)


def as_number(value: Atomic) -> Numeric:
    """The operand of arithmetic for a value: numbers stay, untyped text becomes a double."""
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
        case _:
            return str(value)


def exact_value(text: Untyped) -> Fraction | Decimal | None:
    """The exact number that text from an item means (INF and NaN as decimals), None where it is none."""
    return text.measure.number if isinstance(text, Measured) else exact_number(text)


def finite_value(text: Untyped) -> Fraction | None:
    """The exact number that text from an item means, None where it is none, or INF or NaN; for placing items."""
    number = exact_value(text)
    if isinstance(number, Decimal):
        return Fraction(number) if number.is_finite() else None
    return number


def measure_of(value: Atomic) -> Measure | None:
    """The measure that a text made of this value alone keeps."""
    match value:
        case Measured():
            return value.measure
        case Rounded():
            return Measure("0", Affine(_ONE, value.exact), value.exact, computed=True)
        case _:
            return None


# --- comparison -------------------------------------------------------------------------------------------


def compare(operator: ComparisonOperator, left: Atomic, right: Atomic) -> bool:
    """Compare two values by LAWS 2.3; raises where XQuery would."""
    if isinstance(left, JsonNull) or isinstance(right, JsonNull):
        return False
    if isinstance(left, JsonNumber) or isinstance(right, JsonNumber):
        return _json_compared(operator, left, right)
    if isinstance(left, TIMES) or isinstance(right, TIMES):
        return _times_compared(operator, left, right)
    match left, right:
        case Untyped(), Untyped():
            if isinstance(left, Measured) or isinstance(right, Measured):
                return _holds(operator, _needed(left), _needed(right))
            if operator not in ("=", "!="):
                a, b = exact_number(left), exact_number(right)
                if a is not None and b is not None:
                    return _holds(operator, a, b)
                if a is None and b is None and (times := _moments(left, right)):
                    return _holds(operator, *times)
            return _holds(operator, str(left), str(right))
        case Untyped(), bool():
            return _holds(operator, read_boolean(left), right)
        case bool(), Untyped():
            return _holds(operator, left, read_boolean(right))
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
    raise _not_comparable(left, right)


def _json_compared(operator: ComparisonOperator, left: Atomic, right: Atomic) -> bool:
    """Compare where one side is a number from JSON, which is compared with numbers only."""
    if isinstance(left, Untyped) and isinstance(right, Untyped):
        return _holds(operator, _needed(left), _needed(right))
    other = right if isinstance(left, JsonNumber) else left
    if isinstance(other, bool) or not isinstance(other, int | Decimal | float):
        raise _not_comparable(left, right)
    a, b = (Untyped(each) if isinstance(each, JsonNumber) else each for each in (left, right))
    return compare(operator, a, b)


def _not_comparable(left: Atomic, right: Atomic) -> DynamicError:
    message = f"a {kind_of(left)} and a {kind_of(right)} cannot be compared"
    return DynamicError(message, code="XPTY0004")


def _times_compared(operator: ComparisonOperator, left: Atomic, right: Atomic) -> bool:
    """Compare where one side is a time or a duration: untyped text beside it is read as one of its type."""
    a = read_time(type(right), left) if isinstance(left, Untyped) and isinstance(right, TIMES) else left
    b = read_time(type(left), right) if isinstance(right, Untyped) and isinstance(left, TIMES) else right
    if isinstance(a, TIMES) and isinstance(b, TIMES) and type(a) is type(b):
        return COMPARES[operator](a.number, b.number)
    if isinstance(a, DURATIONS) and isinstance(b, DURATIONS) and operator in ("=", "!="):
        return (a.number == b.number == 0) == (operator == "=")  # only zero months equal zero seconds
    raise _not_comparable(a, b)


def _moments(left: Untyped, right: Untyped) -> tuple[Fraction, Fraction] | None:
    """The moments of two texts, if both are dateTimes."""
    a = moment_seconds(left)
    b = None if a is None else moment_seconds(right)
    return None if a is None or b is None else (a, b)


def _text_and_number(text: Untyped, number: Numeric) -> tuple[Numeric | Fraction, Numeric]:
    """Both in a form that compares exactly: no double, unless the number was computed as one."""
    if isinstance(number, float) and not isinstance(number, WrittenDouble):
        return to_double(text), number
    return _needed(text), number.exact if isinstance(number, WrittenDouble) else number


def _needed(text: Untyped) -> Fraction | Decimal:
    exact = exact_value(text)
    if exact is None:
        raise no_number(text)
    return exact


def _holds(operator: ComparisonOperator, a: Atomic | Fraction, b: Atomic | Fraction) -> bool:
    if (isinstance(a, Decimal) and a.is_nan()) or (isinstance(b, Decimal) and b.is_nan()):
        return operator == "!="
    return COMPARES[operator](a, b)  # both are strings, booleans or numbers


def read_boolean(text: str) -> bool:
    """The boolean that a text spells; raises FORG0001."""
    word = text.strip(" \t\r\n")
    if word not in ("true", "false", "1", "0"):
        raise DynamicError(f"'{shown(text)}' is no boolean", code="FORG0001")
    return word in ("true", "1")


def kind_of(value: Atomic) -> str:
    """The name of a value's type in messages."""
    if isinstance(value, TIMES):
        return value.name
    if isinstance(value, JsonNull):
        return "null"
    if isinstance(value, JsonNumber):
        return "number"
    return "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"


# --- identity ---------------------------------------------------------------------------------------------

Identity: TypeAlias = tuple[str, object]


def identity(value: Atomic) -> Identity:
    """Equal for values that `distinct-values` treats as one: text by its characters, numbers by their values."""
    match value:
        case bool():
            return "boolean", value
        case JsonNull():
            return "null", None
        case JsonNumber():
            return "number", read_digits(value)
        case Measured():
            return "measured", value.measure.number
        case str():
            return "text", str(value)
        case float() if math.isnan(value):
            return "number", "NaN"
        case _ if isinstance(value, TIMES):  # zero months equal zero seconds
            return "duration" if isinstance(value, DURATIONS) and not value.number else value.name, value.number
        case _:
            return "number", value


def group_identity(key: Atomic | None) -> Identity:
    """Equal for keys of one group: text by its characters, numbers by their exact values (LAWS 3.8).

    A number from a change of unit is the text that spells it: so it equals what was written in that unit.
    """
    match key:
        case None:
            return "missing", None
        case Measured():
            return "text", str(key)
        case _:
            return identity(key)


# --- order ------------------------------------------------------------------------------------------------

OrderRank: TypeAlias = tuple[int, Decimal | Fraction | str]
NOTHING, NOT_A_NUMBER, NUMBER, MOMENT = range(4)
_TYPED: dict[type[TimeValue], int] = {kind: MOMENT + place for place, kind in enumerate(TIMES)}
TEXT = MOMENT + len(TIMES)
"""The order of types; between dateTimes and text are the other times, in the order of `TIMES`."""


def order_rank(key: Atomic | None) -> OrderRank:
    """The sort key: empty first, then NaN, numbers by value, times by theirs, text by code point (LAWS 2.3)."""
    number: Fraction | Decimal | None
    match key:
        case None:
            return NOTHING, ""
        case JsonNull():
            return NOTHING, "null"  # behind what is missing, before all else
        case Untyped():
            number = exact_value(key)
            if number is None and (moment := moment_seconds(key)) is not None:
                return MOMENT, moment
        case bool():
            number = Decimal(key)
        case str():
            number = None
        case int() | Decimal() | float():
            number = Decimal(key)
        case _:
            return _TYPED[type(key)], key.number
    if number is None:
        return TEXT, str(key)
    return (NOT_A_NUMBER, "") if isinstance(number, Decimal) and number.is_nan() else (NUMBER, number)
