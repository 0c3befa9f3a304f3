"""Conditions over columns: which items a query takes.

A condition is made of Boolean trees (`logic.py`) over tests of columns, read or computed.
It has three outcomes for an item: no, yes, and *unclear*, which leaves it to the reference evaluator.
Unclear is what may raise an error (text that is no number) or has too many digits for a double; `and` and `or` go on
over it where the other side decides, as LAWS 2.4 has it for errors.
A number of many digits is compared as the double nearest to it, which is unclear only where it equals the constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions import texts
from anabranch.columnar.expressions.numbers import read_doubles
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import Column, Constant
from anabranch.columnar.scan import kernels
from anabranch.columnar.scan.kernels import Indices, Numbers
from anabranch.columnar.scan.look import PartColumn
from anabranch.columnar.scan.shred import Shredded
from anabranch.logic import And, Operator, Tree, fold, leaves

Verdicts: TypeAlias = NDArray[np.uint8]
NO, UNCLEAR, YES = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Settled:
    """The same for all items that fit the template."""

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
class PresenceTest:
    """Whether an item has anything in a column."""

    column: Column


@dataclass(frozen=True, slots=True)
class PatternTest:
    """Whether the text of a column contains another; what is absent is an empty text, as `contains` takes it."""

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
    """Whether a row of a repeated part has a value: a number of few enough digits, or a text."""

    column: PartColumn
    value: Constant


ColumnTest: TypeAlias = NumberTest | TextTest | PresenceTest | PatternTest | SumTest | RowTest
ItemTest: TypeAlias = Settled | ColumnTest
Condition: TypeAlias = tuple[Tree[ItemTest], ...]
"""Trees that must all hold, one after the other: none is looked at where one before it is unclear, whose error its own
would hide."""
ALWAYS: Condition = (Settled(YES),)


def tests(condition: Condition) -> list[ColumnTest]:
    """The tests of columns in a condition."""
    found: Iterator[ItemTest] = leaves(And(condition))
    return [each for each in found if not isinstance(each, Settled)]


def columns_of(condition: Condition) -> set[Column]:
    """The columns that a condition looks at."""
    return {column for each in tests(condition) for column in _columns(each)}


def numbers_of(condition: Condition) -> set[Column]:
    """Those of them whose numbers it looks at."""
    return {column for each in tests(condition) if _is_number_test(each) for column in _columns(each)}


def columns_as_written(condition: Condition) -> set[Column]:
    """The columns of which a condition needs more than on which side of a constant their numbers are."""
    asked = (each for each in tests(condition) if not isinstance(each, NumberTest | PresenceTest))
    found = {column for each in asked for column in _columns(each)}
    return found | {column for column in columns_of(condition) if not isinstance(column, int)}


def _columns(test: ColumnTest) -> tuple[Column, ...]:
    return (test.column, test.addend) if isinstance(test, SumTest) else (test.column,)


def _is_number_test(test: ColumnTest) -> bool:
    match test:
        case NumberTest() | SumTest():
            return True
        case RowTest(_, value):
            return isinstance(value, float)
        case _:
            return False


def judge(condition: Condition, shredded: Shredded) -> Verdicts:
    """The outcome for each entry; an entry that does not fit is judged by numbers alone, where they are known."""

    def test(leaf: ItemTest) -> Verdicts:
        match leaf:
            case Settled(verdict):
                return np.where(shredded.fits, np.uint8(verdict), np.uint8(UNCLEAR))
            case NumberTest(column, operator, constant):
                row = shredded.row(column)
                values = shredded.values[row]
                verdicts = _verdicts(operator, values, constant, np.isnan(values), shredded.starts[row])
                entries, doubles = long_numbers(shredded, row)
                if len(entries):
                    certain = (doubles != constant) & ~np.isnan(doubles)
                    holds = OPERATORS[operator](doubles, constant)[certain]
                    verdicts[entries[certain]] = np.where(holds, np.uint8(YES), np.uint8(NO))
                return verdicts
            case TextTest(column, operator, constant):
                row = shredded.row(column)
                order = np.empty(len(shredded.fits), np.int8)
                other = np.frombuffer(constant, np.uint8)
                starts = shredded.starts[row]
                kernels.compare(shredded.data, starts, shredded.ends[row], other, order)
                return _verdicts(operator, order, 0, starts < 0, starts)
            case PresenceTest(column):
                starts = shredded.starts[shredded.row(column)]
                found: Verdicts = (starts >= 0).view(np.uint8) * np.uint8(YES)
                found[starts == kernels.UNCLEAR] = UNCLEAR
                return found
            case PatternTest():
                return _pattern_verdicts(leaf, shredded)
            case SumTest():
                return _sum_verdicts(leaf, shredded)
            case RowTest():
                return _row_verdicts(leaf, shredded)

    def then(before: Verdicts, behind: Verdicts) -> Verdicts:
        return np.where(before == UNCLEAR, before, np.minimum(before, behind))

    return reduce(then, (fold(tree, test, least, greatest, opposite) for tree in condition))


def long_numbers(shredded: Shredded, row: int) -> tuple[Indices, Numbers]:
    """The entries whose texts are no simple numbers, and the doubles nearest to them; NaN for what may be no number."""
    entries = np.flatnonzero(np.isnan(shredded.values[row]) & (shredded.starts[row] >= 0))
    doubles, kinds = np.empty(len(entries)), np.empty(len(entries), np.uint8)
    if len(entries):
        spans = shredded.starts[row].take(entries), shredded.ends[row].take(entries)
        read_doubles(TextColumn(shredded.data, *spans), doubles, kinds)
    return entries, doubles


def least(parts: Iterator[Verdicts]) -> Verdicts:
    """What `and` gives."""
    return reduce(np.minimum, parts)


def greatest(parts: Iterator[Verdicts]) -> Verdicts:
    """What `or` gives."""
    return reduce(np.maximum, parts)


def opposite(verdicts: Verdicts) -> Verdicts:
    """What `not` gives."""
    return YES - verdicts


OPERATORS = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _verdicts(
    operator: Operator,
    left: NDArray[np.float64] | NDArray[np.int8],
    right: float,
    unknown: NDArray[np.bool_],
    starts: NDArray[np.int32],
) -> Verdicts:
    found: Verdicts = OPERATORS[operator](left, right).view(np.uint8) * np.uint8(YES)
    nothing = (starts[unknown] == kernels.ABSENT) | (starts[unknown] == kernels.NOT_A_NUMBER)
    found[unknown] = np.where(nothing, np.uint8(NO), np.uint8(UNCLEAR))
    return found


def _pattern_verdicts(test: PatternTest, shredded: Shredded) -> Verdicts:
    row = shredded.row(test.column)
    starts, ends = shredded.starts[row], shredded.ends[row]
    there = TextColumn(shredded.data, np.maximum(starts, 0), np.maximum(ends, 0))
    found: Verdicts = texts.contains(there, TextColumn.of(test.text)).view(np.uint8) * np.uint8(YES)
    found[starts == kernels.UNCLEAR] = UNCLEAR
    return found


def _sum_verdicts(test: SumTest, shredded: Shredded) -> Verdicts:
    rows = shredded.row(test.column), shredded.row(test.addend)
    (values, others), (starts, more) = ([each[row] for row in rows] for each in (shredded.values, shredded.starts))
    found: Verdicts = OPERATORS[test.operator](values, others + test.number).view(np.uint8) * np.uint8(YES)
    nothing, unread = np.isnan(values), np.isnan(others)
    found[nothing | unread] = NO
    found[(nothing & (starts != kernels.ABSENT)) | (unread & (more != kernels.ABSENT))] = UNCLEAR
    return found


def _row_verdicts(test: RowTest, shredded: Shredded) -> Verdicts:
    assert shredded.wanted is not None, "only what was shredded has repeated parts"
    frame = shredded.frame(shredded.wanted.look.frames[test.column])
    picks, owners = frame.rows_in(shredded.first + np.arange(len(shredded.fits)))
    starts, ends = frame.starts.take(picks, axis=1), frame.ends.take(picks, axis=1)
    values = frame.values.take(picks, axis=1)
    inside = replace(shredded, fits=np.ones(len(picks), np.bool_), starts=starts, ends=ends, values=values)
    leaf: ItemTest
    if isinstance(test.value, bytes):
        leaf = TextTest(test.column, "=", test.value)
    else:
        leaf = NumberTest(test.column, "=", test.value)
    found = np.where(shredded.fits, np.uint8(NO), np.uint8(UNCLEAR))
    known = shredded.fits[owners]
    np.maximum.at(found, owners[known], judge((leaf,), inside)[known])
    return found
