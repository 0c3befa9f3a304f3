"""Conditions over tuples of items: which tuples a join gives.

They have the three outcomes of `columnar/match/condition.py`; a tuple that is unclear is left to the reference
evaluator.
A condition on one side is judged once per item, before any tuple is formed, so that a tuple costs only the comparisons
of its items.
Such a comparison is an expression like others (`expressions/tree.py`), whose leaves name the side that they read.

`relaxed` gives one condition for several joins: where it is false for a tuple, all of theirs are.
It is not their exact union, which would cost as much as all of them.
It keeps the comparisons that all of them have, with the weakest of their constants: for `$x/en >= $y/en + 0.5` and
`$x/en >= $y/en and $x/phc > 3` that is `$x/en >= $y/en`.
Adding a constant to a number rounds, and rounding keeps the order, so the weakest is the weakest in doubles too; and
as the same parts are read, a tuple that is unclear in one of them is not false here.
Two rules ensure that.
Two untyped values are compared as times or texts where they are no numbers (LAWS 2.3), but adding to such a text is an
error; so beside a comparison with a sum, zero is added, and the text is unclear here, too.
And two untyped numbers are compared by exact value, so they may differ where their doubles are equal; so beside such a
comparison, equal doubles are let pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from anabranch.columnar.expressions.rows.comparing import is_exact
from anabranch.columnar.expressions.tree import (
    ColumnArithmetic,
    ColumnComparison,
    ConstantValue,
    Expression,
    Kind,
    PartText,
)
from anabranch.columnar.match.condition import YES, Condition, NumberTest, Settled
from anabranch.logic import And, Operator, Tree, leaves


@dataclass(frozen=True, slots=True)
class OneSided:
    """A condition on one item of the tuple."""

    side: int
    condition: Condition


@dataclass(frozen=True, slots=True)
class TupleTest:
    """An expression over several items of the tuple, which is true or not."""

    expression: Expression


TupleCondition: TypeAlias = Tree[Settled | OneSided | TupleTest]


def tuple_tests(condition: TupleCondition) -> Iterator[Settled | OneSided | TupleTest]:
    """The tests of a condition."""
    return leaves(condition)


def conjuncts(condition: TupleCondition) -> tuple[TupleCondition, ...]:
    """The conditions that must all hold."""
    return condition.parts if isinstance(condition, And) else (condition,)


# --- one condition for several joins ---------------------------------------------------------------------------


_Pick: TypeAlias = Callable[[float, float], float]
_LOOSE: dict[Operator, Operator] = {">": ">=", "<": "<="}


def relaxed(conditions: Sequence[TupleCondition]) -> TupleCondition:
    """A condition that is false only where all of some are."""
    return reduce(_relaxed, dict.fromkeys(conditions))


def _relaxed(one: TupleCondition, other: TupleCondition) -> TupleCondition:
    if one == other:
        return one
    kept: dict[TupleCondition, None] = {}
    for left in conjuncts(one):
        for right in conjuncts(other):
            if (found := _weaker(left, right)) is not None:
                kept[found] = None
    parts = tuple(kept) or (Settled(YES),)
    return And(parts) if len(parts) > 1 else parts[0]


def _weaker(one: TupleCondition, other: TupleCondition) -> TupleCondition | None:
    """A condition that two comparisons of the same values imply; None where they have nothing in common."""
    if one == other:
        return one
    match one, other:
        case (
            TupleTest(ColumnComparison(operator, a, b)),
            TupleTest(ColumnComparison(also, c, d)),
        ) if _loose(operator) == _loose(also) in (">=", "<="):
            larger, smaller = (max, min) if _loose(operator) == ">=" else (min, max)
            left, right = _extreme(a, c, larger), _extreme(b, d, smaller)
            if left is not None and right is not None:
                if _are_untyped(left, right) and not _are_untyped(a, b, c, d):
                    right = ColumnArithmetic("+", right, ConstantValue(0))
                is_loose = operator != also or is_exact(a, b) or is_exact(c, d)
                return TupleTest(ColumnComparison(_loose(operator) if is_loose else operator, left, right))
        case (
            OneSided(side, (NumberTest(column, operator, number),)),
            OneSided(too, (NumberTest(same, also, second),)),
        ) if (side, column) == (too, same) and _loose(operator) == _loose(also) in (">=", "<="):
            weakest = min(number, second) if _loose(operator) == ">=" else max(number, second)
            test = NumberTest(column, operator if operator == also else _loose(operator), weakest)
            return OneSided(side, (test,))
    return None


def _loose(operator: Operator) -> Operator:
    return _LOOSE.get(operator, operator)


def _are_untyped(*values: Expression) -> bool:
    return all(each.kind is Kind.UNTYPED for each in values)


def _extreme(one: Expression, other: Expression, pick: _Pick) -> Expression | None:
    """The greater or smaller of two numbers, as `pick` says, if it is the same for all items; None where it is not."""
    if one == other:
        return one
    a, b = _shifted(one), _shifted(other)
    if a is None or b is None or a[0] != b[0]:
        return None
    return one if pick(a[1], b[1]) == a[1] else other


def _shifted(number: Expression) -> tuple[PartText, float] | None:
    """The part of a number, and the constant that is added to it."""
    match number:
        case PartText():
            return number, 0.0
        case ColumnArithmetic("+" | "-" as operator, PartText() as part, ConstantValue() as added):
            pass
        case ColumnArithmetic("+" as operator, ConstantValue() as added, PartText() as part):
            pass
        case _:
            return None
    if added.kind in (Kind.STRING, Kind.BOOLEAN):
        return None
    return part, float(added.value) if operator == "+" else -float(added.value)
