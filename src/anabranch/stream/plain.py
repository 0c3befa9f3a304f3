"""Dataclasses as JSON-compatible values, and back, by the types of their fields alone.

Data of other types is refused, so what was read from a file has the types that the code expects.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import msgspec

from anabranch.storage import Location

T = TypeVar("T")

_described: set[Any] = set()
"""The types that were read at least once."""
_describing = Lock()


def to_plain(value: Any) -> Any:
    """A value as dicts, lists, texts, numbers and None; exact numbers and absolute paths are texts."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_written)


def from_plain(kind: type[T], plain: Any) -> T:
    """The value of a type from plain values; raises ValueError where they do not fit.

    With the first value of a type msgspec makes a description of its fields, and hands it to other threads before it is
    complete, which ends the process (seen with 0.22); so first values are read one at a time.
    """
    if kind in _described:
        return _converted(kind, plain)
    with _describing:
        try:
            return _converted(kind, plain)
        finally:
            _described.add(kind)


def _converted(kind: type[T], plain: Any) -> T:
    return msgspec.convert(plain, kind, str_keys=True, dec_hook=_read)


def _written(value: Any) -> str:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Path):
        return str(value.absolute())
    if isinstance(value, Location):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no plain form")


def _read(kind: type, plain: Any) -> Any:
    if kind in (Fraction, Path) and isinstance(plain, str):
        return kind(plain)
    if kind is Location and isinstance(plain, str):
        return Location.of(plain)
    raise ValueError(f"no {kind.__name__} can be read from this")
