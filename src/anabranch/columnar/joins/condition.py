"""Conditions over pairs of items: which pairs a join gives.

They have the three outcomes of `columnar/match/condition.py`; what is unclear of a pair is left to the reference
evaluator.
Whatever looks at one side only is judged once per item, before any pair is there, so that a pair costs no more than
what really compares the two.

Exactness (LAWS 2.3): numbers of at most 15 digits compare as doubles as they would exactly; arithmetic is that of
doubles, operation by operation in the order in which it was written; `=` and `!=` between two texts compare texts.
An expression is unclear where one of its leaves is, not where its value is NaN: that may be what was computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.joins.kernels_pairs import same_text
from anabranch.columnar.match.condition import OPERATORS, UNCLEAR, YES, Condition, Settled, Verdicts, judge
from anabranch.columnar.scan.kernels import Indices
from anabranch.columnar.scan.shred import Shredded
from anabranch.values.operators import ComparisonOperator

# --- numbers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leaf:
    """The number in a leaf, or its text."""

    side: int
    leaf: int


@dataclass(frozen=True, slots=True)
class Constant:
    number: float


@dataclass(frozen=True, slots=True)
class Computed:
    """Division is not among these: there the sign of a zero would show."""

    operator: Literal["+", "-", "*"]
    left: Amount
    right: Amount


Amount: TypeAlias = Leaf | Constant | Computed

# --- conditions -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition on one item of the pair."""

    side: int
    condition: Condition


@dataclass(frozen=True, slots=True)
class Compared:
    operator: ComparisonOperator
    left: Amount
    right: Amount


@dataclass(frozen=True, slots=True)
class SameText:
    """Whether two leaves have the same text, or with `!=` whether they do not."""

    operator: Literal["=", "!="]
    left: Leaf
    right: Leaf


@dataclass(frozen=True, slots=True)
class BothOfPair:
    operands: tuple[PairCondition, ...]


@dataclass(frozen=True, slots=True)
class EitherOfPair:
    operands: tuple[PairCondition, ...]


@dataclass(frozen=True, slots=True)
class NotOfPair:
    operand: PairCondition


PairCondition: TypeAlias = Settled | Judged | Compared | SameText | BothOfPair | EitherOfPair | NotOfPair


def leaves_of(part: PairCondition | Amount) -> set[Leaf]:
    """The leaves that pairs are compared by; those of conditions on one item are not among them."""
    match part:
        case Leaf():
            return {part}
        case Compared(_, left, right) | Computed(_, left, right) | SameText(_, left, right):
            return leaves_of(left) | leaves_of(right)
        case BothOfPair(operands) | EitherOfPair(operands):
            return set().union(*map(leaves_of, operands))
        case NotOfPair(operand):
            return leaves_of(operand)
        case Settled() | Constant() | Judged():
            return set()


def judged_of(condition: PairCondition) -> list[Judged]:
    """The conditions on one item in it."""
    match condition:
        case Judged():
            return [condition]
        case BothOfPair(operands) | EitherOfPair(operands):
            return [found for each in operands for found in judged_of(each)]
        case NotOfPair(operand):
            return judged_of(operand)
        case _:
            return []


# --- judging ----------------------------------------------------------------------------------------------

_Picks: TypeAlias = tuple[Indices, Indices]
"""The numbers of the items of some pairs, by side."""
_Numbers: TypeAlias = NDArray[np.float64] | float
_Unclear: TypeAlias = NDArray[np.bool_] | None
_COMPUTE: dict[str, Callable[[_Numbers, _Numbers], Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}


_Judge: TypeAlias = Callable[[_Picks], Verdicts]
_Read: TypeAlias = Callable[[_Picks], tuple[_Numbers, _Unclear]]


class PairJudge:
    """Judges pairs of items that lie in columns."""

    def __init__(self, condition: PairCondition, sides: tuple[Shredded, Shredded]) -> None:
        self._sides = sides
        self._everything = tuple(np.arange(len(each.fits)) for each in sides)
        self._judge, _ = self._condition(condition)
        self._unfit = tuple(None if each.fits.all() else ~each.fits for each in sides)
        self._last: tuple[Indices, Indices, Verdicts] | None = None

    def verdicts(self, x: Indices, y: Indices) -> Verdicts:
        """The outcome for each pair; a pair of which an item does not fit is unclear.

        Whoever asks next for the very same pairs is told what was found.
        """
        if self._last is None or self._last[0] is not x or self._last[1] is not y:
            self._last = x, y, self._verdicts(x, y)
        return self._last[2]

    def _verdicts(self, x: Indices, y: Indices) -> Verdicts:
        with np.errstate(all="ignore"):
            found = self._judge((x, y))
        for unfit, picks in zip(self._unfit, (x, y), strict=True):
            if unfit is not None:
                found = np.where(unfit.take(picks), np.uint8(UNCLEAR), found)
        return found

    def _condition(self, condition: PairCondition) -> tuple[_Judge, set[int]]:
        """How a condition is judged, and the sides it looks at."""
        match condition:
            case Settled(verdict):
                return lambda picks: np.full(len(picks[0]), verdict, np.uint8), set()
            case Judged(side, inner):
                return _known(side, judge(inner, self._sides[side])), {side}
            case Compared(operator, left, right):
                (a, on_left), (b, on_right) = self._amount(left), self._amount(right)
                return self._folded(lambda picks: _compared(operator, a(picks), b(picks)), on_left | on_right)
            case SameText(operator, left, right):
                return self._folded(self._same_text(operator, left, right), {left.side, right.side})
            case BothOfPair(operands):
                return self._combined(np.minimum, [self._condition(each) for each in operands])
            case EitherOfPair(operands):
                return self._combined(np.maximum, [self._condition(each) for each in operands])
            case NotOfPair(operand):
                inside, on = self._condition(operand)
                return self._folded(lambda picks: YES - inside(picks), on)

    def _combined(self, by: np.ufunc, operands: list[tuple[_Judge, set[int]]]) -> tuple[_Judge, set[int]]:
        judges = [each for each, _ in operands]
        on = set().union(*(each for _, each in operands))
        return self._folded(lambda picks: reduce(by, (each(picks) for each in judges)), on)

    def _folded(self, judging: _Judge, on: set[int]) -> tuple[_Judge, set[int]]:
        """What looks at one side only is judged here and now, for all of its items."""
        if len(on) != 1:
            return judging, on
        (side,) = on
        everything = self._everything[side]
        with np.errstate(all="ignore"):
            return _known(side, judging((everything, everything))), on

    def _same_text(self, operator: Literal["=", "!="], left: Leaf, right: Leaf) -> _Judge:
        a, b = self._text(left), self._text(right)

        def judging(picks: _Picks) -> Verdicts:
            found = np.empty(len(picks[0]), np.bool_)
            same_text(*a, picks[left.side], *b, picks[right.side], found)
            return (found if operator == "=" else ~found).view(np.uint8) * np.uint8(YES)

        return judging

    def _text(self, leaf: Leaf) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:
        side, row = self._sides[leaf.side], self._row(leaf)
        return side.data, side.starts[row], side.ends[row]

    def _amount(self, amount: Amount) -> tuple[_Read, set[int]]:
        """How an amount is read, and the sides it is read from."""
        match amount:
            case Constant(number):
                return lambda _: (number, None), set()
            case Leaf(side):
                numbers = self._sides[side].values[self._row(amount)]
                return _column(side, numbers, np.isnan(numbers)), {side}
            case Computed(operator, left, right):
                (a, on_left), (b, on_right) = self._amount(left), self._amount(right)
                on = on_left | on_right
                if len(on) != 1:
                    return lambda picks: _computed(operator, a(picks), b(picks)), on
                (side,) = on
                everything = self._everything[side]
                with np.errstate(all="ignore"):
                    found, unclear = _computed(operator, a((everything, everything)), b((everything, everything)))
                assert isinstance(found, np.ndarray), "it looks at the items of a side"
                return _column(side, found, unclear), on

    def _row(self, leaf: Leaf) -> int:
        wanted = self._sides[leaf.side].wanted
        assert wanted is not None, "only what was shredded is judged"
        return wanted.leaves.index(leaf.leaf)


def _known(side: int, verdicts: Verdicts) -> _Judge:
    return lambda picks: verdicts.take(picks[side])


def _column(side: int, numbers: NDArray[np.float64], unclear: _Unclear) -> _Read:
    if unclear is None or not unclear.any():
        return lambda picks: (numbers.take(picks[side]), None)
    return lambda picks: (numbers.take(picks[side]), unclear.take(picks[side]))


def _computed(
    operator: str, left: tuple[_Numbers, _Unclear], right: tuple[_Numbers, _Unclear]
) -> tuple[_Numbers, _Unclear]:
    return _COMPUTE[operator](left[0], right[0]), _either(left[1], right[1])


def _compared(
    operator: ComparisonOperator, left: tuple[_Numbers, _Unclear], right: tuple[_Numbers, _Unclear]
) -> Verdicts:
    found: Verdicts = OPERATORS[operator](left[0], right[0]).view(np.uint8) * np.uint8(YES)
    unclear = _either(left[1], right[1])
    if unclear is not None:
        found[unclear] = UNCLEAR
    return found


def _either(left: _Unclear, right: _Unclear) -> _Unclear:
    if left is None or right is None:
        return right if left is None else left
    return left | right
