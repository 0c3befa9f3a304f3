"""Python functions that the user registers, called from queries.

An argument arrives as plain Python: None for nothing, a float for text that is a number, other text as str, a list
for several values.
What comes back may be None, a number, a string, a boolean, or a list of those.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

from anabranch.errors import DynamicError
from anabranch.reference.sequences import Values, atomize
from anabranch.reference.values import Atomic, Untyped, exact_number

PythonFunction: TypeAlias = Callable[..., object]


def call_python(function: PythonFunction, name: str, arguments: list[Values]) -> Values:
    """Call a registered function; whatever it raises concerns this round only."""
    given = [_argument(atomize(values)) for values in arguments]
    try:
        result = function(*given)
    except Exception as error:
        raise DynamicError(f"function '{name}' failed: {type(error).__name__}: {error}", code="FOER0000") from error
    return _result(result, name)


def _argument(values: list[Atomic]) -> object:
    plain = [_plain(value) for value in values]
    return None if not plain else plain[0] if len(plain) == 1 else plain


def _plain(value: Atomic) -> object:
    if isinstance(value, Untyped):
        number = exact_number(value)
        return str(value) if number is None else float(number)
    return float(value) if isinstance(value, float) else value


def _result(result: object, name: str) -> Values:
    match result:
        case None:
            return []
        case bool() | int() | float() | Decimal() | str():
            return [result]
        case list() | tuple():
            return [value for each in result for value in _result(each, name)]
        case _:
            raise DynamicError(
                f"function '{name}' gave a {type(result).__name__}, not a number, text or list of them", code="XPTY0004"
            )
