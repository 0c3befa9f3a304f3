"""Conditions combined: `and`, `or` and `not`, tests that follow others, and values that are unclear with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anabranch.columnar.expressions.tree import (
    Choice,
    Clear,
    ColumnComparison,
    ConstantValue,
    Expression,
    FunctionCall,
    Junction,
    Kind,
    Presence,
    RowFold,
    RowPlace,
    RowSource,
)


def then(first: Expression | None, second: Expression | None) -> Expression:
    """Two conditions, of which the second is only tested where the first is clear and holds."""
    if first is None or second is None:
        found = first or second
        assert found is not None
        return found
    both = Junction(True, (first, second))
    if isinstance(first, Presence):
        return both
    return FunctionCall("behind", (Clear(first), both), Kind.BOOLEAN)


def behind(clears: Sequence[Expression], found: Expression) -> Expression:
    """A value that is also unclear where one of some expressions is."""
    clear = all_of(list(dict.fromkeys(clears)))
    return found if clear is None else FunctionCall("behind", (clear, found), found.kind)


def negated(truth: Expression) -> Expression:
    """The opposite of a condition."""
    return FunctionCall("not", (truth,), Kind.BOOLEAN)


def all_of(found: Sequence[Expression]) -> Expression | None:
    """Conditions that must all hold; None where there is none."""
    if not found:
        return None
    return found[0] if len(found) == 1 else Junction(True, tuple(found))


def either(found: Sequence[Expression]) -> Expression:
    """Conditions of which one must hold."""
    if not found:
        return ConstantValue(False)
    return found[0] if len(found) == 1 else Junction(False, tuple(found))


def summand(number: Expression) -> Expression:
    """A number as an operand: the sum of nothing is an integer and no double, so it is unclear there."""
    match number:
        case RowFold("sum", kind=Kind.DOUBLE):
            return replace(number, name="sum of some")
        case Choice(_, then, otherwise):
            return replace(number, then=summand(then), otherwise=summand(otherwise))
        case FunctionCall(_, arguments, Kind.DOUBLE):
            return replace(number, arguments=tuple(map(summand, arguments)))
        case _:
            return number


def is_certain(expression: Expression) -> bool:
    """Whether it is known beforehand that an expression is clear in all rows: places and numbers, compared."""
    match expression:
        case RowPlace(_, _, condition):
            return condition is None or is_certain(condition)
        case ConstantValue(int()):
            return True
        case ColumnComparison(_, left, right):
            return is_certain(left) and is_certain(right)
        case Junction(_, operands):
            return all(map(is_certain, operands))
        case _:
            return False


def text_node(text: Expression | None) -> Expression:
    """The text node of an element with a text."""
    assert text is not None
    return FunctionCall("text-node", (text,), Kind.UNTYPED)


def there_only(source: RowSource) -> RowSource:
    """Whether there are values, and no longer which."""
    assert source.value is not None
    there = FunctionCall("there", (source.value,), Kind.BOOLEAN)
    return replace(source, condition=then(source.condition, there), value=None)
