"""Conditions over pairs of items: which pairs a join gives.

They have the three outcomes of `columnar/match/condition.py`; what is unclear of a pair is left to the reference
evaluator.
Whatever looks at one side only is judged once per item, before any pair is there, so that a pair costs no more than
what really compares the two.

Exactness (LAWS 2.3): numbers of at most 15 digits compare as doubles as they would exactly; arithmetic is that of
doubles, operation by operation in the order in which it was written; `=` and `!=` between two texts compare texts.
An expression is unclear where one of its leaves is, not where its value is NaN: that may be what was computed.

*Relaxed* is one condition for several joins: where it is false for a pair, it is false in each of them.
It is not their exact union, which would cost as much as all of them.
Kept is what they all compare in the same way, with the weakest of their constants: of `$x/en >= $y/en + 0.5` and
`$x/en >= $y/en and $x/phc > 3` that is `$x/en >= $y/en`.
Adding a constant to a number rounds, and rounding keeps the order, so the weakest is the weakest in doubles too; and
as the same leaves are looked at, what is unclear in one of them is not false here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.joins.kernels import same_text
from anabranch.columnar.match.condition import (
    OPERATORS,
    UNCLEAR,
    YES,
    Condition,
    Settled,
    Verdicts,
    greatest,
    judge,
    least,
    opposite,
)
from anabranch.columnar.scan.kernels import Indices
from anabranch.columnar.scan.look import PartColumn
from anabranch.columnar.scan.shred import Shredded
from anabranch.logic import And, Operator, Tree, fold, leaves

# --- numbers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leaf:
    """The number in a leaf, or its text."""

    side: int
    column: PartColumn


@dataclass(frozen=True, slots=True)
class NumberConstant:
    number: float


@dataclass(frozen=True, slots=True)
class PairArithmetic:
    """Division is not among these: there the sign of a zero would show."""

    operator: Literal["+", "-", "*"]
    left: Amount
    right: Amount


Amount: TypeAlias = Leaf | NumberConstant | PairArithmetic

# --- conditions -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OneSided:
    """A condition on one item of the pair."""

    side: int
    condition: Condition


@dataclass(frozen=True, slots=True)
class Compared:
    operator: Operator
    left: Amount
    right: Amount


@dataclass(frozen=True, slots=True)
class SameText:
    """Whether two leaves have the same text, or with `!=` whether they do not."""

    operator: Literal["=", "!="]
    left: Leaf
    right: Leaf


PairTest: TypeAlias = Settled | OneSided | Compared | SameText
PairCondition: TypeAlias = Tree[PairTest]


def pair_tests(condition: PairCondition) -> Iterator[PairTest]:
    """What it asks of a pair."""
    return leaves(condition)


def leaves_of(part: PairTest | Amount) -> set[Leaf]:
    """The leaves that pairs are compared by; those of conditions on one item are not among them."""
    match part:
        case Leaf():
            return {part}
        case Compared(_, left, right) | PairArithmetic(_, left, right) | SameText(_, left, right):
            return leaves_of(left) | leaves_of(right)
        case Settled() | NumberConstant() | OneSided():
            return set()


# --- judging ----------------------------------------------------------------------------------------------

_Picks: TypeAlias = tuple[Indices, Indices]
"""The numbers of the items of some pairs, by side."""
_Numbers: TypeAlias = NDArray[np.float64] | float
_Unclear: TypeAlias = NDArray[np.bool_] | None
_COMPUTE: dict[str, Callable[[_Numbers, _Numbers], Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}


_Judge: TypeAlias = Callable[[_Picks], Verdicts]
_Sided: TypeAlias = tuple[_Judge, set[int]]
"""How pairs are judged, and the sides that are looked at."""
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

    def _condition(self, condition: PairCondition) -> _Sided:
        """How a condition is judged, and the sides it looks at."""
        return fold(
            condition,
            self._test,
            lambda parts: self._combined(least, parts),
            lambda parts: self._combined(greatest, parts),
            lambda part: self._folded(lambda picks: opposite(part[0](picks)), part[1]),
        )

    def _test(self, test: PairTest) -> _Sided:
        match test:
            case Settled(verdict):
                return lambda picks: np.full(len(picks[0]), verdict, np.uint8), set()
            case OneSided(side, inner):
                return _known(side, judge(inner, self._sides[side])), {side}
            case Compared(operator, left, right):
                (a, on_left), (b, on_right) = self._amount(left), self._amount(right)
                return self._folded(lambda picks: _compared(operator, a(picks), b(picks)), on_left | on_right)
            case SameText(operator, left, right):
                return self._folded(self._same_text(operator, left, right), {left.side, right.side})

    def _combined(self, by: Callable[[Iterator[Verdicts]], Verdicts], parts: Iterator[_Sided]) -> _Sided:
        found = list(parts)
        on = set().union(*(sides for _, sides in found))
        return self._folded(lambda picks: by(judging(picks) for judging, _ in found), on)

    def _folded(self, judging: _Judge, on: set[int]) -> _Sided:
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
            same_text(a, picks[left.side], b, picks[right.side], found)
            verdicts: Verdicts = (found if operator == "=" else ~found).view(np.uint8) * np.uint8(YES)
            for text, mine in ((a, picks[left.side]), (b, picks[right.side])):
                if text.starts.min(initial=0) < 0:
                    verdicts[text.starts.take(mine) < 0] = UNCLEAR
            return verdicts

        return judging

    def _text(self, leaf: Leaf) -> TextColumn:
        side, row = self._sides[leaf.side], self._row(leaf)
        return TextColumn(side.data, side.starts[row], side.ends[row])

    def _amount(self, amount: Amount) -> tuple[_Read, set[int]]:
        """How an amount is read, and the sides it is read from."""
        match amount:
            case NumberConstant(number):
                return lambda _: (number, None), set()
            case Leaf(side):
                numbers = self._sides[side].values[self._row(amount)]
                return _column(side, numbers, np.isnan(numbers)), {side}
            case PairArithmetic(operator, left, right):
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
        return self._sides[leaf.side].row(leaf.column)


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


def _compared(operator: Operator, left: tuple[_Numbers, _Unclear], right: tuple[_Numbers, _Unclear]) -> Verdicts:
    found: Verdicts = OPERATORS[operator](left[0], right[0]).view(np.uint8) * np.uint8(YES)
    unclear = _either(left[1], right[1])
    if unclear is not None:
        found[unclear] = UNCLEAR
    return found


def _either(left: _Unclear, right: _Unclear) -> _Unclear:
    if left is None or right is None:
        return right if left is None else left
    return left | right


# --- one condition for several joins ---------------------------------------------------------------------------


_Pick: TypeAlias = Callable[[float, float], float]
_LOOSE: dict[Operator, Operator] = {">": ">=", "<": "<="}


def relaxed(conditions: Sequence[PairCondition]) -> PairCondition:
    """What is false only where all of them are."""
    return reduce(_relaxed, dict.fromkeys(conditions))


def _relaxed(one: PairCondition, other: PairCondition) -> PairCondition:
    if one == other:
        return one
    kept: dict[PairCondition, None] = {}
    for left in _conjuncts(one):
        for right in _conjuncts(other):
            if (found := _weaker(left, right)) is not None:
                kept[found] = None
    parts = tuple(kept) or (Settled(YES),)
    return And(parts) if len(parts) > 1 else parts[0]


def _conjuncts(condition: PairCondition) -> tuple[PairCondition, ...]:
    return condition.parts if isinstance(condition, And) else (condition,)


def _weaker(one: PairCondition, other: PairCondition) -> PairCondition | None:
    """The weaker of two comparisons of the same; None where they have nothing in common."""
    if one == other:
        return one
    match one, other:
        case Compared(operator, a, b), Compared(also, c, d) if _loose(operator) == _loose(also) in (">=", "<="):
            larger, smaller = (max, min) if _loose(operator) == ">=" else (min, max)
            left, right = _extreme(a, c, larger), _extreme(b, d, smaller)
            if left is not None and right is not None:
                return Compared(operator if operator == also else _loose(operator), left, right)
    return None


def _loose(operator: Operator) -> Operator:
    return _LOOSE.get(operator, operator)


def _extreme(one: Amount, other: Amount, pick: _Pick) -> Amount | None:
    """The one of two amounts that is picked whatever the items are; None where that depends on them."""
    if one == other:
        return one
    a, b = _shifted(one), _shifted(other)
    if a is None or b is None or a[0] != b[0]:
        return None
    return one if pick(a[1], b[1]) == a[1] else other


def _shifted(amount: Amount) -> tuple[Leaf | None, float] | None:
    """A leaf, or none, and what is added to it."""
    match amount:
        case Leaf():
            return amount, 0.0
        case NumberConstant(number):
            return None, number
        case PairArithmetic("+", Leaf() as leaf, NumberConstant(number)) | PairArithmetic(
            "+", NumberConstant(number), Leaf() as leaf
        ):
            return leaf, number
        case PairArithmetic("-", Leaf() as leaf, NumberConstant(number)):
            return leaf, -number
        case _:
            return None
