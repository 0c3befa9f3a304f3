"""Conditions over columns: which items a query takes.

A condition is made of Boolean trees (`logic.py`) over tests of columns, read or computed.
It has three outcomes for an item: no, yes, and *unclear*, which leaves it to the reference evaluator.
A test is unclear that may raise an error (text that is no number) or whose value has too many digits for a double;
`and` and `or` ignore it where the other side decides, as LAWS 2.4 has it for errors.
A number of many digits is compared as the double nearest to it, which is unclear only where it equals the constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions.tree import Column, read_columns, read_numbers
from anabranch.logic import And, Operator, Or, Tree, leaves

Verdicts: TypeAlias = NDArray[np.uint8]
NO, UNCLEAR, YES = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Settled:
    """A verdict that is the same for all items that fit the look."""

    verdict: int


@dataclass(frozen=True, slots=True)
class NumberTest:
    """The number in a column against a literal that can be compared as a double (LAWS 2.3)."""

    column: Column
    operator: Operator
    number: float


@dataclass(frozen=True, slots=True)
class TextTest:
    """The text of a column against a string."""

    column: Column
    operator: Operator
    text: bytes


@dataclass(frozen=True, slots=True)
class MomentTest:
    """The dateTime in a column against that of a text; unclear for all items where the text is no dateTime."""

    column: Column
    operator: Operator
    text: bytes
    is_date: bool = False
    """Whether both are dates."""


@dataclass(frozen=True, slots=True)
class PresenceTest:
    """Whether an item has anything in a column."""

    column: Column


@dataclass(frozen=True, slots=True)
class PatternTest:
    """Whether the text of a column contains another; a missing text counts as empty, as in `contains`."""

    column: Column
    text: bytes


@dataclass(frozen=True, slots=True)
class SumTest:
    """The number in a column against the sum of that in another and a literal, in doubles."""

    column: Column
    operator: Operator
    addend: Column
    number: float


@dataclass(frozen=True, slots=True)
class RowTest:
    """Whether a condition holds for one of the rows of a repeated part, which lies in no other repeated part."""

    frame: int
    condition: Condition
    """Its columns are those of the rows; values of the item around them are computed for each row."""


ColumnTest: TypeAlias = NumberTest | TextTest | MomentTest | PresenceTest | PatternTest | SumTest | RowTest
ItemTest: TypeAlias = Settled | ColumnTest
Condition: TypeAlias = tuple[Tree[ItemTest], ...]
"""Trees that must all hold, in order: where one is unclear, the condition is, whatever the later ones say, since the
law may raise its error."""
ALWAYS: Condition = (Settled(YES),)


def tests(condition: Condition) -> list[ColumnTest]:
    """The tests of columns in a condition."""
    found: Iterator[ItemTest] = leaves(And(condition))
    return [each for each in found if not isinstance(each, Settled)]


def columns_of(condition: Condition) -> set[Column]:
    """The columns that a condition reads; for values computed for rows, the columns that they are computed from."""
    return {column for each in tests(condition) for column in _columns(each)}


def numbers_of(condition: Condition) -> set[Column]:
    """The columns whose numbers a condition reads."""
    return {column for each in tests(condition) for column in _number_columns(each)}


def columns_as_written(condition: Condition) -> set[Column]:
    """The columns that a condition reads for more than comparing their numbers with constants."""
    asked = (each for each in tests(condition) if not isinstance(each, NumberTest | PresenceTest))
    found = {column for each in asked for column in _columns(each)}
    return found | {column for column in columns_of(condition) if not isinstance(column, int)}


def _columns(test: ColumnTest) -> set[Column]:
    match test:
        case SumTest(column, _, addend):
            return {column, addend}
        case RowTest(_, condition):
            return {part for column in columns_of(condition) for part in read_columns(column)}
        case _:
            return {test.column}


def _number_columns(test: ColumnTest) -> set[Column]:
    match test:
        case NumberTest() | SumTest():
            return _columns(test)
        case RowTest(_, condition):
            computed = {column for column in columns_of(condition) if not isinstance(column, int)}
            return {part for column in numbers_of(condition) | computed for part in read_numbers(column)}
        case _:
            return set()


def any_tree(found: Sequence[Tree[ItemTest]]) -> Tree[ItemTest]:
    """What holds where one of some trees does."""
    return found[0] if len(found) == 1 else Or(tuple(found))


def any_of(tests: Sequence[ItemTest]) -> Tree[ItemTest]:
    """What holds where one of some tests does, of which there may be none."""
    if not tests:
        return Settled(NO)
    return tests[0] if len(tests) == 1 else Or(tuple(tests))


OPERATORS = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
