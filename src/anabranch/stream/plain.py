"""Dataclasses as JSON-compatible values, and back, by the types of their fields alone.

Data of other types is refused, so what was read from a file has the types that the code expects.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from anabranch.storage import Location

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """A value as dicts, lists, texts, numbers and None; exact numbers and absolute paths are texts."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_written)


def from_plain(kind: type[T], plain: Any) -> T:
    """The value of a type from plain values; raises ValueError where they do not fit."""
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
