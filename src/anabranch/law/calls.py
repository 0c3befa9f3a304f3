"""Python functions that the user registers, called from queries.

An argument arrives as plain Python: None for nothing, a float for text that is a number, other text as str, a time or
duration as it is spelled, a list for several values.
What comes back may be None, a number, a string, a boolean, or a list of those.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import import_module, invalidate_caches
from operator import attrgetter
from typing import TypeAlias

from anabranch.errors import DynamicError
from anabranch.values.atomic import Atomic, Untyped, exact_number, spell
from anabranch.values.sequences import Values, operands
from anabranch.values.times import TIMES

PythonFunction: TypeAlias = Callable[..., object]


@dataclass(frozen=True, slots=True)
class ImportedFunction:
    """A function of a module, which every process imports for itself when it first calls it.

    So it travels to the tasks of a run as its name, and they find its module where the run does.
    """

    module: str
    attribute: str
    folder: str
    """Where the module is looked for after Python's own search path."""

    def __call__(self, *arguments: object) -> object:
        function = self.load()
        assert callable(function), "what cannot be called is refused before"
        return function(*arguments)

    def __str__(self) -> str:
        return f"{self.module}:{self.attribute}"

    def load(self) -> object:
        """The object that it names; raises errors of importing its module, and `AttributeError` if it is missing."""
        return _loaded(self)


@cache
def _loaded(function: ImportedFunction) -> object:
    if function.folder not in sys.path:
        sys.path.append(function.folder)  # behind the others: a file there must not take the place of a library
    invalidate_caches()
    return attrgetter(function.attribute)(import_module(function.module))


def call_python(function: PythonFunction, name: str, arguments: list[Values]) -> Values:
    """Call a registered function; whatever it raises concerns this round only."""
    given = [_argument(operands(values)) for values in arguments]
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
    if isinstance(value, TIMES):
        return spell(value)
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
