"""The versions of an expression that is no path: its values, one after another (LAWS 5.4).

A version begins at a moment after which the value is another one, and lives until just before the next begins.
A value is compared, and kept, as plain data (`values/written.py`): so what a version gives are copies.
A moment at which the expression fails gives a version without content; whoever asks for the present one then fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.stream.tree import Comment, Element, Instruction, Text, copy
from anabranch.values.function_items import FunctionItem
from anabranch.values.sequences import Value, Values
from anabranch.values.written import read_value, write_value

WrittenValues: TypeAlias = list[Any]
"""A value of an expression as plain data."""


def frozen(values: Values) -> WrittenValues:
    """A value as plain data, nodes by themselves; an error where it cannot be kept."""
    return [write_value(_alone(each)) for each in values]


def thawed(written: WrittenValues) -> Values:
    """A value from `frozen`."""
    return [read_value(each) for each in written]


def _alone(value: Value) -> Value:
    match value:
        case FunctionItem():
            raise DynamicError("a function has no past", code="FOTY0013")
        case Element() | Text() | Comment() | Instruction():
            return copy(value)
        case _:
            return value


@dataclass(frozen=True, slots=True)
class ValueVersion:
    """A value of an expression, and the time since which it had it."""

    start: Fraction
    written: WrittenValues

    @property
    def values(self) -> Values:
        """The value as copies."""
        return thawed(self.written)


def successive(values: Iterable[tuple[Fraction, WrittenValues]]) -> list[ValueVersion]:
    """The versions, newest first, of what had these values at moments of these times, given in their order."""
    versions: list[ValueVersion] = []
    for now, written in values:
        if not versions or versions[-1].written != written:
            versions.append(ValueVersion(now, written))
    return versions[::-1]


def chosen_values(
    versions: Sequence[ValueVersion], qualifier: ast.Qualifier, now: Fraction, failure: DynamicError | None = None
) -> Values:
    """The values of the versions that a qualifier asks for, given newest first; `failure` is that of the first."""
    if qualifier.kind == "version":
        most = int(qualifier.amount.text)
        asked = [each for each in range(len(versions)) if each == most or (qualifier.window and each < most)]
    else:
        then = now - qualifier.amount.exact
        ends = [None, *(each.start for each in versions)]
        lived = [place for place, end in enumerate(ends[: len(versions)]) if end is None or end > then]
        asked = [each for each in lived if qualifier.window or versions[each].start <= then]
    if failure is not None and 0 in asked:
        raise failure
    return [value for place in asked for value in versions[place].values]
