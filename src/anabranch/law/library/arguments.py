"""Arguments of functions, as XQuery converts them: texts, numbers and whole numbers; and the only collation."""

from __future__ import annotations

import math
from decimal import Decimal

from anabranch.errors import DynamicError
from anabranch.values.atomic import Atomic, Rounded, Untyped, as_number, kind_of, to_double
from anabranch.values.casts import CASTS
from anabranch.values.sequences import Values, at_most_one

CODEPOINTS = "http://www.w3.org/2005/xpath-functions/collation/codepoint"
"""The collation by characters."""


def text_of(values: Values, what: str) -> str | None:
    """An argument of type xs:string?"""
    value = at_most_one(values, what)
    if value is None:
        return None
    if not isinstance(value, str):
        raise DynamicError(f"{what} takes text, not a {kind_of(value)}", code="XPTY0004")
    return str(value)


def needed_text(values: Values, what: str) -> str:
    """An argument of type xs:string."""
    text = text_of(values, what)
    if text is None:
        raise DynamicError(f"{what} needs a text", code="XPTY0004")
    return text


def whole_of(values: Values, what: str) -> int | None:
    """An argument of type xs:integer?"""
    value = at_most_one(values, what)
    return None if value is None else whole(value, what)


def needed_whole(values: Values, what: str) -> int:
    """An argument of type xs:integer."""
    found = whole_of(values, what)
    if found is None:
        raise DynamicError(f"{what} needs a whole number", code="XPTY0004")
    return found


def whole(value: Atomic, what: str) -> int:
    """A value as a whole number: an integer, or untyped text that spells one."""
    if isinstance(value, Untyped) or (isinstance(value, Rounded) and value == value // 1):
        value = CASTS["xs:integer"](value)  # what min() and kin give is a double, whatever they are given (LAWS 2.1)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DynamicError(f"{what} takes whole numbers, not a {kind_of(value)}", code="XPTY0004")
    return value


def double_of(values: Values, what: str) -> float | None:
    """An argument of type xs:double?"""
    value = at_most_one(values, what)
    return None if value is None else float(to_double(as_number(value)))


def numeric_of(values: Values, what: str) -> int | Decimal | float | None:
    """An argument of type xs:numeric?"""
    value = at_most_one(values, what)
    return None if value is None else as_number(value)


def check_collation(values: Values | None) -> None:
    """Refuse every collation but that by characters."""
    if values is not None and needed_text(values, "a collation") != CODEPOINTS:
        raise DynamicError("texts are compared by their characters only", code="FOCH0002")


def is_nan(value: Atomic) -> bool:
    """Whether a value is the double that is no number."""
    return isinstance(value, float) and math.isnan(value)
