"""Dataclasses as plain values, which JSON can write, and back: by the types of their fields, and nothing else.

Data that does not have these types is refused, so what was read from a file is what the code believes it to be.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Dicts, lists, texts, numbers and None that stand for a value; exact numbers and absolute paths are texts."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_written)


def from_plain(kind: type[T], plain: Any) -> T:
    """The value of a type that plain values stand for; raises ValueError where they do not."""
    return msgspec.convert(plain, kind, str_keys=True, dec_hook=_read)


def _written(value: Any) -> str:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Path):
        return str(value.absolute())
    raise TypeError(f"a {type(value).__name__} has no plain form")


def _read(kind: type, plain: Any) -> Any:
    if kind in (Fraction, Path) and isinstance(plain, str):
        return kind(plain)
    raise ValueError(f"no {kind.__name__} can be read from this")
