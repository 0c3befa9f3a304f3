"""Conditions over columns: which items a query takes.

A condition has three outcomes for an item: no, yes, and *unclear*, which leaves it to the reference evaluator.
Unclear is what may raise an error (text that is no number) or has too many digits for a double; `and` and `or` go on
over it where the other side decides, as LAWS 2.4 has it for errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan import kernels
from anabranch.columnar.scan.shred import Shredded
from anabranch.values.operators import ComparisonOperator

Verdicts: TypeAlias = NDArray[np.uint8]
NO, UNCLEAR, YES = 0, 1, 2
"""What `and` gives is the least of its operands', what `or` gives the greatest."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The same for all items that fit the template."""

    verdict: int


@dataclass(frozen=True, slots=True)
class NumberTest:
    """The number in a leaf against a literal of few enough digits to be compared as a double (LAWS 2.3)."""

    leaf: int
    operator: ComparisonOperator
    number: float


@dataclass(frozen=True, slots=True)
class TextTest:
    """The text of a leaf against a string."""

    leaf: int
    operator: ComparisonOperator
    text: bytes


@dataclass(frozen=True, slots=True)
class Both:
    operands: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Either:
    operands: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Condition


@dataclass(frozen=True, slots=True)
class Then:
    """Like `Both`, but the second is not looked at where the first is unclear: its error would hide the first's."""

    first: Condition
    second: Condition


Condition: TypeAlias = Settled | NumberTest | TextTest | Both | Either | Not | Then


def tests(condition: Condition) -> list[NumberTest | TextTest]:
    """The comparisons in a condition."""
    match condition:
        case Settled():
            return []
        case NumberTest() | TextTest():
            return [condition]
        case Both(operands) | Either(operands):
            return [test for each in operands for test in tests(each)]
        case Not(operand):
            return tests(operand)
        case Then(first, second):
            return tests(first) + tests(second)


def judge(condition: Condition, shredded: Shredded) -> Verdicts:
    """The outcome for each entry; an entry that does not fit is judged by numbers alone, where they are known."""
    match condition:
        case Settled(verdict):
            return np.where(shredded.fits, np.uint8(verdict), np.uint8(UNCLEAR))
        case NumberTest(leaf, operator, number):
            values = shredded.values[_row(shredded, leaf)]
            return _verdicts(operator, values, number, np.isnan(values))
        case TextTest(leaf, operator, text):
            row = _row(shredded, leaf)
            order = np.empty(len(shredded.fits), np.int8)
            other = np.frombuffer(text, np.uint8)
            kernels.compare(shredded.data, shredded.starts[row], shredded.ends[row], other, order)
            return _verdicts(operator, order, 0, ~shredded.fits)
        case Both(operands):
            return reduce(np.minimum, (judge(each, shredded) for each in operands))
        case Either(operands):
            return reduce(np.maximum, (judge(each, shredded) for each in operands))
        case Not(operand):
            return YES - judge(operand, shredded)
        case Then(first, second):
            before = judge(first, shredded)
            return np.where(before == UNCLEAR, before, np.minimum(before, judge(second, shredded)))


def _row(shredded: Shredded, leaf: int) -> int:
    assert shredded.wanted is not None, "only what was shredded is judged"
    return shredded.wanted.leaves.index(leaf)


OPERATORS = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _verdicts(
    operator: ComparisonOperator,
    left: NDArray[np.float64] | NDArray[np.int8],
    right: float,
    unclear: NDArray[np.bool_],
) -> Verdicts:
    found: Verdicts = OPERATORS[operator](left, right).view(np.uint8) * np.uint8(YES)
    found[unclear] = UNCLEAR
    return found
