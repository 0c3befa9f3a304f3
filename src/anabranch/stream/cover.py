"""What a punctuation covers: values along a path below which no item follows, or single ones (LAWS 3.2, 4.8)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from anabranch.logic import COMPARES, And, Not, Or
from anabranch.stream.description import Comparison, Description
from anabranch.stream.elements import Punctuation
from anabranch.stream.path import Path, per_second


def passed(punctuation: Punctuation, path: Path | None, time: Path | None) -> Fraction | float | None:
    """The largest `v` such that no item with a value below `v` at `path` follows; infinity, or None for no such `v`.

    A heartbeat is about times, in seconds, so it covers the stream's declared time path alone.
    A `path` of None is one without a name.
    """
    if punctuation.where is not None:
        return covered_below(punctuation.where, path)
    if punctuation.at is None or path is None or path != time:
        return None
    return Fraction(punctuation.at) * per_second(time)


def covered_below(description: Description, path: Path | None) -> Fraction | float | None:
    """The largest `v` such that a description holds for every item with a value below `v` at `path`.

    Of several conditions joined by `or`, each is taken on its own.
    """
    return _below(description, path, True)


def _below(description: Description, path: Path | None, wanted: bool) -> Fraction | float | None:
    """The largest `v` such that a description holds, or with `wanted` false does not hold, for all values below."""
    match description:
        case Comparison(at, op, Decimal() | Fraction() as constant) if at == path:
            return Fraction(constant) if (op in ("<", "<=", "!=")) == wanted else None
        case Not(part):
            return _below(part, path, not wanted)
        case And(parts) | Or(parts):
            found = [_below(part, path, wanted) for part in parts]
            known = [each for each in found if each is not None]
            if isinstance(description, And) == wanted:  # all parts must agree
                return min(known, default=math.inf) if len(known) == len(found) else None
            return max(known, default=None)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class KnownValue:
    """What is known of an item's value at a path: the number that its text is, if any, and else the text."""

    number: Fraction | None = None
    text: str | None = None


def covers_values(description: Description, values: Mapping[Path, KnownValue]) -> bool:
    """Whether a description holds for every item that has these values, whatever its others are.

    Of several conditions joined by `or`, each is taken on its own.
    """
    return _verdict(description, values) is True


def _verdict(description: Description, values: Mapping[Path, KnownValue]) -> bool | None:
    """Whether a description holds for the items with these values; None where others decide."""
    match description:
        case Comparison(path, op, constant):
            known = values.get(path)
            if known is None:
                return None
            if not isinstance(constant, str):
                return known.number is not None and bool(COMPARES[op](known.number, Fraction(constant)))
            return None if known.text is None else bool(COMPARES[op](known.text, constant))
        case Not(part):
            found = _verdict(part, values)
            return None if found is None else not found
        case And(parts) | Or(parts):
            decisive = isinstance(description, Or)
            verdicts = [_verdict(part, values) for part in parts]
            return decisive if decisive in verdicts else None if None in verdicts else not decisive
