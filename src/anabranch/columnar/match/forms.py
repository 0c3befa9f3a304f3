"""Conditions in a normal form, so that thousands of them can be matched together (`index.py`).

Conditions that differ in their constants only have one *form*.
A form has stages, one behind the other; a stage is a disjunction of clauses, a clause a conjunction of tests.
Kleene's three-valued logic is a distributive lattice with De Morgan's laws, so a stage in this normal form has the same
outcome as the condition it came from, unclear ones too.

A condition has no form where it is always unclear, where an early stage depends on the look, which may differ for other
items, or where its normal form is too large; such a condition is judged by itself.

Values become *ranks* among the constants that they are compared with: a constant has an odd rank, a value between two
constants an even one; a missing value has the last rank, and an unknown one has -1.
So every comparison tests whether a rank lies in an interval, whatever the type of the values.
A comparison with a missing value is false (LAWS 2.3), so its negation is the opposite comparison, or that the value is
missing.
The rank of a number is searched in its cell: the span of the constants is divided into a few times as many cells as
there are constants, and the number of a cell, (value - least) * scale, never falls while values rise, however it is
rounded.
Texts are compared by their first eight bytes as one number, and by the rest where these are equal.
DateTimes are compared by their nanoseconds; a constant whose nanoseconds do not fit has no rank, and its condition is
judged by itself, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, product
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from anabranch.columnar.expressions.tree import Column, Constant
from anabranch.columnar.match.condition import (
    UNCLEAR,
    YES,
    Condition,
    ItemTest,
    MomentTest,
    NumberTest,
    PatternTest,
    PresenceTest,
    RowTest,
    Settled,
    SumTest,
    TextTest,
)
from anabranch.columnar.match.judging import long_numbers
from anabranch.columnar.match.ranks import (
    rank_numbers,
    rank_presence,
    rank_sums,
    rank_texts,
    rank_ticks,
    text_keys,
)
from anabranch.columnar.match.substitution import with_constants
from anabranch.columnar.moments import read_dates, read_ticks, ticks_in
from anabranch.columnar.scan.kernels import Places
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.logic import OPPOSITE, And, Not, Operator, Or, Tree, mapped

MOST_CLAUSES = 64


class AxisKind(Enum):
    """What a test reads of a column."""

    NUMBER = "number"
    TEXT = "text"
    MOMENT = "moment"
    DATE = "date"
    """The dateTime of its text."""
    PRESENCE = "presence"
    """Whether there is a value."""
    PATTERN = "pattern"
    """The patterns that its text contains."""
    SUM = "sum"
    """Its number, compared with the sum of another column and a constant."""
    ROWS = "rows"
    """The conditions of one form that hold for one of the rows of a repeated part."""


class TestAxis(NamedTuple):
    """What a test reads."""

    column: Column
    """For ROWS: the repeated part."""
    kind: AxisKind
    addend: Column | None = None
    rows: Form | None = None


class Test(NamedTuple):
    """A comparison on an axis with a constant, which is given by its number."""

    axis: TestAxis
    operator: Operator
    constant: int


class Missing(NamedTuple):
    """Whether an item has no value on an axis."""

    axis: TestAxis


class Fixed(NamedTuple):
    """A test with one outcome for all items that fit the look; it is unclear for others."""

    holds: bool


FormConstant: TypeAlias = "Constant | tuple[FormConstant, ...]"
"""A constant of a form; for a condition on rows, which has a form of its own, the tuple of its constants."""
Clause: TypeAlias = tuple[Test | Missing | Fixed, ...]
Stage: TypeAlias = tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """The common structure of conditions that differ in constants only."""

    stages: tuple[Stage, ...]

    @property
    def axes(self) -> tuple[TestAxis, ...]:
        """The axes of its tests."""
        tests = (test for stage in self.stages for clause in stage for test in clause)
        return tuple(dict.fromkeys(test.axis for test in tests if not isinstance(test, Fixed)))

    @property
    def columns(self) -> Iterator[Column]:
        """The columns of its axes, but for those inside rows."""
        for axis in self.axes:
            if axis.rows is None:
                yield axis.column
            if axis.addend is not None:
                yield axis.addend

    @property
    def is_settled(self) -> bool:
        """Whether the look decides one of its tests."""
        return any(isinstance(test, Fixed) for stage in self.stages for clause in stage for test in clause)


def formed(condition: Condition) -> tuple[Form, tuple[FormConstant, ...]] | None:
    """The form of a condition and its constants; None where it must be judged by itself.

    Whether the constants have ranks is another question (`has_ranks`).
    """
    constants: list[FormConstant] = []
    try:
        stages = tuple(_clauses(each, constants) for each in condition)
    except _TooLarge:
        return None
    form = Form(stages)
    large = 1
    for stage in stages:
        large *= len(stage)
    is_early = any(isinstance(test, Fixed) for stage in stages[:-1] for clause in stage for test in clause)
    return None if is_early or large > MOST_CLAUSES else (form, tuple(constants))


def has_ranks(form: Form, constants: Sequence[FormConstant]) -> bool:
    """Whether all constants of a condition have ranks: a text that is compared as a dateTime may be none."""
    for test in chain.from_iterable(chain.from_iterable(form.stages)):
        if isinstance(test, Test):
            constant = constants[test.constant]
            if isinstance(constant, tuple) and test.axis.rows and not has_ranks(test.axis.rows, constant):
                return False
            times = {AxisKind.MOMENT: False, AxisKind.DATE: True}
            if test.axis.kind in times and isinstance(constant, bytes):
                is_date = times[test.axis.kind]
                if ticks_in(constant, is_date=is_date) is None:
                    return False
    return True


def substituted(condition: Condition, values: Mapping[Constant, Constant]) -> Condition:
    """A condition with other constants; a number may occur in it with the opposite sign."""

    def test(leaf: ItemTest) -> Tree[ItemTest]:
        match leaf:
            case NumberTest(column, operator, constant):
                return NumberTest(_column_with(column, values), operator, _number_with(constant, values))
            case SumTest(column, operator, addend, constant):
                columns = _column_with(column, values), _column_with(addend, values)
                return SumTest(columns[0], operator, columns[1], _number_with(constant, values))
            case TextTest(column, operator, constant):
                return TextTest(_column_with(column, values), operator, _text_with(constant, values))
            case MomentTest(column, operator, constant, is_date):
                return MomentTest(_column_with(column, values), operator, _text_with(constant, values), is_date)
            case PatternTest(column, constant):
                return PatternTest(_column_with(column, values), _text_with(constant, values))
            case RowTest(frame, inside):
                return RowTest(frame, substituted(inside, values))
            case PresenceTest() | Settled():
                return leaf

    return tuple(mapped(each, test) for each in condition)


def _column_with(column: Column, values: Mapping[Constant, Constant]) -> Column:
    return column if isinstance(column, int) else with_constants(column, values)


def _number_with(number: float, values: Mapping[Constant, Constant]) -> float:
    """The replacement of a number, which may occur with the opposite sign."""
    turned = -1.0 if number not in values and -number in values else 1.0
    return turned * float(values.get(turned * number, turned * number))


def _text_with(text: bytes, values: Mapping[Constant, Constant]) -> bytes:
    """The replacement of a text; a prefix with AFTER behind it is replaced by its prefix."""
    if text.endswith(AFTER):
        return _text_with(text.removesuffix(AFTER), values) + AFTER
    found = values.get(text, text)
    assert isinstance(found, bytes), "a text is replaced by a text"
    return found


AFTER = b"\xff"
"""A prefix with this behind it is greater than all texts with the prefix, since no byte of a text is 255."""


_AXES = {NumberTest: AxisKind.NUMBER, TextTest: AxisKind.TEXT, MomentTest: AxisKind.MOMENT}


class _TooLarge(Exception):
    pass


def _clauses(tree: Tree[ItemTest], constants: list[FormConstant], *, negated: bool = False) -> Stage:
    """The normal form of one stage."""
    match tree:
        case Settled(verdict):
            if verdict == UNCLEAR:
                raise _TooLarge
            return ((Fixed((verdict == YES) != negated),),)
        case (
            NumberTest(column, operator, constant)
            | TextTest(column, operator, constant)
            | MomentTest(column, operator, constant)
        ):
            constants.append(constant)
            is_date = isinstance(tree, MomentTest) and tree.is_date
            axis = TestAxis(column, AxisKind.DATE if is_date else _AXES[type(tree)])
            if not negated:
                return ((Test(axis, operator, len(constants) - 1),),)
            return (Test(axis, OPPOSITE[operator], len(constants) - 1),), (Missing(axis),)
        case SumTest(column, operator, addend, constant):
            constants.append(constant)
            axis = TestAxis(column, AxisKind.SUM, addend)
            if not negated:
                return ((Test(axis, operator, len(constants) - 1),),)
            return (Test(axis, OPPOSITE[operator], len(constants) - 1),), (Missing(axis),)
        case PatternTest(column, constant):
            constants.append(constant)
            axis = TestAxis(column, AxisKind.PATTERN)
            return ((Test(axis, "!=" if negated else "=", len(constants) - 1),),)
        case RowTest(frame, condition):
            inside = formed(condition)
            if inside is None:
                raise _TooLarge
            constants.append(inside[1])
            axis = TestAxis(frame, AxisKind.ROWS, rows=inside[0])
            return ((Test(axis, "!=" if negated else "=", len(constants) - 1),),)
        case PresenceTest(column):
            axis = TestAxis(column, AxisKind.PRESENCE)
            if negated:
                return ((Missing(axis),),)
            constants.append(1.0)
            return ((Test(axis, "=", len(constants) - 1),),)
        case Not(part):
            return _clauses(part, constants, negated=not negated)
        case And(parts) | Or(parts):
            stages = [_clauses(each, constants, negated=negated) for each in parts]
            found = _all(stages) if isinstance(tree, And) != negated else _any(stages)
            if len(found) > MOST_CLAUSES:
                raise _TooLarge
            return found


def _any(stages: Sequence[Stage]) -> Stage:
    return tuple(clause for stage in stages for clause in stage)


def _all(stages: Sequence[Stage]) -> Stage:
    found: Stage = ((),)
    for stage in stages:
        if len(found) * len(stage) > MOST_CLAUSES:
            raise _TooLarge
        found = tuple((*before, *clause) for before, clause in product(found, stage))
    return found


@dataclass(frozen=True, slots=True)
class Alike:
    """Conditions of one form: their numbers, and for each its constants."""

    form: Form
    numbers: Sequence[int]
    constants: Sequence[tuple[FormConstant, ...]]


def gathered(conditions: Iterable[tuple[int, Condition]]) -> tuple[list[Alike], list[tuple[int, Condition]]]:
    """Conditions with their numbers, those of one form together; and those without a form."""
    alike: dict[Form, tuple[list[int], list[tuple[FormConstant, ...]]]] = {}
    others: list[tuple[int, Condition]] = []
    for number, condition in conditions:
        found = formed(condition)
        if found is None or not has_ranks(*found):
            others.append((number, condition))
            continue
        form, constants = found
        numbers, rows = alike.setdefault(form, ([], []))
        numbers.append(number)
        rows.append(constants)
    return [Alike(form, *each) for form, each in alike.items()], others


# --- ranks -----------------------------------------------------------------------------------------------------


_CELLS = 4
"""The number of cells per constant."""


class Ranking(Protocol):
    """The constants of one axis."""

    size: int
    """How many ranks there are."""

    def places(self, given: Sequence[FormConstant]) -> Places:
        """The numbers of some of the constants."""

    def rank(self, shredded: Shredded, ranks: Places) -> None:
        """Set the ranks of all entries."""


def ranking_of(axis: TestAxis, wanted: WantedColumns, constants: Iterable[FormConstant]) -> Ranking:
    """The ranking of an axis."""
    row = wanted.rows[axis.column]
    match axis.kind:
        case AxisKind.SUM:
            assert axis.addend is not None, "a sum has two columns"
            return _Sums(row, wanted.rows[axis.addend], _numbers_in(constants))
        case AxisKind.TEXT:
            return TextRanking(row, sorted(each for each in set(constants) if isinstance(each, bytes)))
        case AxisKind.NUMBER:
            return NumberRanking(row, _numbers_in(constants))
        case AxisKind.MOMENT:
            return _Moments(row, [each for each in constants if isinstance(each, bytes)], is_date=False)
        case AxisKind.DATE:
            return _Moments(row, [each for each in constants if isinstance(each, bytes)], is_date=True)
        case AxisKind.PRESENCE:
            return _Presence(row)
        case _:
            raise AssertionError("such an axis has keys")


def _numbers_in(constants: Iterable[FormConstant]) -> list[float]:
    return sorted({each for each in constants if isinstance(each, float)})


class _Presence:
    """The ranking of presence: its only constant stands for 'there is a value'."""

    size = 4

    def __init__(self, row: int) -> None:
        self._row = row

    def places(self, given: Sequence[FormConstant]) -> Places:
        return np.zeros(len(given), np.int32)

    def rank(self, shredded: Shredded, ranks: Places) -> None:
        rank_presence(shredded.starts[self._row], self.size - 1, ranks)


class NumberRanking:
    """The numbers that the column in a row is compared with."""

    def __init__(self, row: int, constants: Sequence[float]) -> None:
        self.size = 2 * len(constants) + 2
        self.row = row
        self.constants = found = np.array(constants)
        count = _CELLS * len(found)
        span = found[-1] - found[0]
        self._least, self._scale = float(found[0]), float(count / span) if span else 0.0
        own = np.minimum(((found - self._least) * self._scale).astype(np.int64), count - 1)
        self._cells = np.searchsorted(own, np.arange(count + 1))
        self._searched = np.append(found, np.nan)

    def places(self, given: Sequence[FormConstant]) -> Places:
        return np.searchsorted(self.constants, np.array(given, np.float64)).astype(np.int32)

    def rank(self, shredded: Shredded, ranks: Places) -> None:
        cells = self._cells, self._least, self._scale
        given = shredded.values[self.row], shredded.starts[self.row], self.size - 1
        rank_numbers(*given, self._searched, *cells, ranks)
        entries, doubles = long_numbers(shredded, self.row)
        if len(entries):
            places = np.searchsorted(self.constants, doubles)
            known = ~np.isnan(doubles) & (self.constants[np.minimum(places, len(self.constants) - 1)] != doubles)
            ranks[entries[known]] = 2 * places[known]


class _Moments:
    """The dateTimes that the column in a row is compared with, or else the dates, as they are written."""

    def __init__(self, row: int, constants: Iterable[bytes], *, is_date: bool) -> None:
        self._row = row
        self._read = read_dates if is_date else read_ticks
        self._ticks = {each: ticks_in(each, is_date=is_date) for each in constants}
        self._constants = np.unique(np.array([each for each in self._ticks.values() if each is not None], np.int64))
        self.size = 2 * len(self._constants) + 2

    def places(self, given: Sequence[FormConstant]) -> Places:
        ticks = [self._ticks[each] for each in given if isinstance(each, bytes)]
        return np.searchsorted(self._constants, np.array(ticks, np.int64)).astype(np.int32)

    def rank(self, shredded: Shredded, ranks: Places) -> None:
        starts = shredded.starts[self._row]
        ends = np.where(starts < 0, np.int32(0), shredded.ends[self._row])
        ticks, known = self._read(shredded.data, np.maximum(starts, 0), ends)
        rank_ticks(ticks, known, starts, self.size - 1, self._constants, ranks)


class _Sums:
    """The constants that are added to the numbers in one row; those in another row are compared with the sums."""

    def __init__(self, row: int, addend: int, constants: Sequence[float]) -> None:
        self.size = 2 * len(constants) + 2
        self._rows = row, addend
        self._constants = np.array(constants)

    def places(self, given: Sequence[FormConstant]) -> Places:
        return np.searchsorted(self._constants, np.array(given, np.float64)).astype(np.int32)

    def rank(self, shredded: Shredded, ranks: Places) -> None:
        (values, starts), (addends, others) = ((shredded.values[row], shredded.starts[row]) for row in self._rows)
        rank_sums(values, starts, addends, others, self.size - 1, self._constants, ranks)


class TextRanking:
    """The texts that the column in a row is compared with."""

    def __init__(self, row: int, constants: Sequence[bytes]) -> None:
        self.size = 2 * len(constants) + 2
        self._row = row
        self._numbers = {each: number for number, each in enumerate(constants)}
        self._joined = np.frombuffer(b"".join(constants) + b"\0", np.uint8)
        self._bounds = np.cumsum([0, *map(len, constants)])
        self._keys = np.empty(len(constants), np.uint64)
        text_keys(self._joined, self._bounds, self._keys)

    def places(self, given: Sequence[FormConstant]) -> Places:
        return np.array([self._numbers[each] for each in given if isinstance(each, bytes)], np.int32)

    def rank(self, shredded: Shredded, ranks: Places) -> None:
        spans = shredded.starts[self._row], shredded.ends[self._row]
        rank_texts(shredded.data, *spans, self.size - 1, self._joined, self._bounds, self._keys, ranks)
