"""Conditions over columns: which items a query takes.

A condition is made of Boolean trees (`logic.py`) over tests of leaves.
It has three outcomes for an item: no, yes, and *unclear*, which leaves it to the reference evaluator.
Unclear is what may raise an error (text that is no number) or has too many digits for a double; `and` and `or` go on
over it where the other side decides, as LAWS 2.4 has it for errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan import kernels
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
    """The number in a leaf against a literal of few enough digits to be compared as a double (LAWS 2.3)."""

    leaf: int
    operator: Operator
    number: float


@dataclass(frozen=True, slots=True)
class TextTest:
    """The text of a leaf against a string."""

    leaf: int
    operator: Operator
    text: bytes


ItemTest: TypeAlias = Settled | NumberTest | TextTest
Condition: TypeAlias = tuple[Tree[ItemTest], ...]
"""Trees that must all hold, one after the other: none is looked at where one before it is unclear, whose error its own
would hide."""
ALWAYS: Condition = (Settled(YES),)


def tests(condition: Condition) -> list[NumberTest | TextTest]:
    """The comparisons in a condition."""
    found: Iterator[ItemTest] = leaves(And(condition))
    return [each for each in found if not isinstance(each, Settled)]


def judge(condition: Condition, shredded: Shredded) -> Verdicts:
    """The outcome for each entry; an entry that does not fit is judged by numbers alone, where they are known."""

    def test(leaf: ItemTest) -> Verdicts:
        match leaf:
            case Settled(verdict):
                return np.where(shredded.fits, np.uint8(verdict), np.uint8(UNCLEAR))
            case NumberTest(number, operator, constant):
                values = shredded.values[_row(shredded, number)]
                return _verdicts(operator, values, constant, np.isnan(values))
            case TextTest(text, operator, constant):
                row = _row(shredded, text)
                order = np.empty(len(shredded.fits), np.int8)
                other = np.frombuffer(constant, np.uint8)
                kernels.compare(shredded.data, shredded.starts[row], shredded.ends[row], other, order)
                return _verdicts(operator, order, 0, ~shredded.fits)

    def then(before: Verdicts, behind: Verdicts) -> Verdicts:
        return np.where(before == UNCLEAR, before, np.minimum(before, behind))

    return reduce(then, (fold(tree, test, least, greatest, opposite) for tree in condition))


def least(parts: Iterator[Verdicts]) -> Verdicts:
    """What `and` gives."""
    return reduce(np.minimum, parts)


def greatest(parts: Iterator[Verdicts]) -> Verdicts:
    """What `or` gives."""
    return reduce(np.maximum, parts)


def opposite(verdicts: Verdicts) -> Verdicts:
    """What `not` gives."""
    return YES - verdicts


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
    operator: Operator,
    left: NDArray[np.float64] | NDArray[np.int8],
    right: float,
    unclear: NDArray[np.bool_],
) -> Verdicts:
    found: Verdicts = OPERATORS[operator](left, right).view(np.uint8) * np.uint8(YES)
    found[unclear] = UNCLEAR
    return found
