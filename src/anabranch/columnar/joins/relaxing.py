"""One condition for several joins: where it is false for a pair, it is false in each of them.

It is not their exact union, which would cost as much as all of them.
Kept is what they all compare in the same way, with the weakest of their constants: of `$x/en >= $y/en + 0.5` and
`$x/en >= $y/en and $x/phc > 3` that is `$x/en >= $y/en`.
Adding a constant to a number rounds, and rounding keeps the order, so the weakest is the weakest in doubles too; and
as the same leaves are looked at, what is unclear in one of them is not false here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeAlias

from anabranch.columnar.joins.condition import Amount, BothOfPair, Compared, Computed, Constant, Leaf, PairCondition
from anabranch.columnar.match.condition import YES, Settled
from anabranch.values.operators import ComparisonOperator

_Pick: TypeAlias = Callable[[float, float], float]
_LOOSE: dict[ComparisonOperator, ComparisonOperator] = {">": ">=", "<": "<="}


def relaxed(conditions: Sequence[PairCondition]) -> PairCondition:
    """What is false only where all of them are."""
    return reduce(_either, dict.fromkeys(conditions))


def _either(one: PairCondition, other: PairCondition) -> PairCondition:
    if one == other:
        return one
    kept: dict[PairCondition, None] = {}
    for left in _conjuncts(one):
        for right in _conjuncts(other):
            if (found := _weaker(left, right)) is not None:
                kept[found] = None
    match tuple(kept):
        case ():
            return Settled(YES)
        case (only,):
            return only
        case several:
            return BothOfPair(several)


def _conjuncts(condition: PairCondition) -> tuple[PairCondition, ...]:
    return condition.operands if isinstance(condition, BothOfPair) else (condition,)


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


def _loose(operator: ComparisonOperator) -> ComparisonOperator:
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
        case Constant(number):
            return None, number
        case Computed("+", Leaf() as leaf, Constant(number)) | Computed("+", Constant(number), Leaf() as leaf):
            return leaf, number
        case Computed("-", Leaf() as leaf, Constant(number)):
            return leaf, -number
        case _:
            return None
