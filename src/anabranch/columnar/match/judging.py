"""Conditions judged one by one: the verdicts of each on the entries of a batch.

The index (`index.py`) finds the same for thousands of conditions together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions import texts
from anabranch.columnar.expressions.numbers import read_doubles
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.match.condition import (
    NO,
    OPERATORS,
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
    Verdicts,
    columns_of,
)
from anabranch.columnar.match.rows import frame_rows
from anabranch.columnar.moments import read_dates, read_ticks, ticks_in
from anabranch.columnar.scan import kernels
from anabranch.columnar.scan.kernels import Indices, Numbers
from anabranch.columnar.scan.shred import Shredded
from anabranch.logic import Operator, fold


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
            case MomentTest():
                return _moment_verdicts(leaf, shredded)
            case PresenceTest(column):
                starts = shredded.starts[shredded.row(column)]
                there = (starts >= 0) | (starts == kernels.NOT_A_NUMBER)
                found: Verdicts = there.view(np.uint8) * np.uint8(YES)
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
    """The verdicts of `and`."""
    return reduce(np.minimum, parts)


def greatest(parts: Iterator[Verdicts]) -> Verdicts:
    """The verdicts of `or`."""
    return reduce(np.maximum, parts)


def opposite(verdicts: Verdicts) -> Verdicts:
    """The verdicts of `not`."""
    return YES - verdicts


def _verdicts(
    operator: Operator,
    left: NDArray[np.float64] | NDArray[np.int8] | Indices,
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


def _moment_verdicts(test: MomentTest, shredded: Shredded) -> Verdicts:
    row, moment = shredded.row(test.column), ticks_in(test.text, is_date=test.is_date)
    if moment is None:
        return np.full(len(shredded.fits), UNCLEAR, np.uint8)
    starts = shredded.starts[row]
    read = read_dates if test.is_date else read_ticks
    ticks, known = read(shredded.data, np.maximum(starts, 0), np.where(starts < 0, 0, shredded.ends[row]))
    return _verdicts(test.operator, ticks, moment, ~known, starts)


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
    rows, owners, doubtful = frame_rows(shredded, test.frame, shredded.wanted.computing(columns_of(test.condition)))
    found = np.where(shredded.fits, np.uint8(NO), np.uint8(UNCLEAR))
    if doubtful is not None:
        found[doubtful] = UNCLEAR
    known = shredded.fits[owners]
    np.maximum.at(found, owners[known], judge(test.condition, rows)[known])
    return found
