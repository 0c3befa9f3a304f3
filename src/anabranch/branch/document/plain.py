"""State as plain data: numbers, texts and lists that can be written as JSON, and read back.

Fractions and large numbers are written in hexadecimal, which takes linear time and has no largest.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from anabranch.values.atomic import OrderRank
from anabranch.values.numbers import read_fraction, write_fraction


def write_rank(rank: OrderRank) -> Any:
    """A rank of `order by`."""
    level, value = rank
    match value:
        case str():
            return [level, value]
        case Decimal():
            return [level, "decimal", str(value)]
        case Fraction():
            return [level, "fraction", write_fraction(value)]


def read_rank(data: Any) -> OrderRank:
    """What `write_rank` has written."""
    match data:
        case [level, "decimal", text]:
            return level, Decimal(text)
        case [level, "fraction", text]:
            return level, read_fraction(text)
        case [level, text]:
            return level, text
        case _:
            raise AssertionError(data)
