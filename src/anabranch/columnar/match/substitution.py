"""Expressions with other constants: queries of one shape are compiled once, and then each gets its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from anabranch.columnar.expressions.tree import (
    Choice,
    Clear,
    ColumnArithmetic,
    ColumnComparison,
    Constant,
    ConstantValue,
    ContentOf,
    Expression,
    FirstOfValue,
    Fragment,
    FunctionCall,
    JsonText,
    Junction,
    Made,
    RowExtreme,
    RowFold,
    RowKey,
    RowLoop,
    RowPlace,
    RowQuantifier,
    RowSource,
    Truth,
    Wrapped,
    constant_of,
)


def with_constants(expression: Expression, values: Mapping[Constant, Constant]) -> Expression:
    """An expression with other constants."""

    def changed(part: Expression | None) -> Expression | None:
        return None if part is None else with_constants(part, values)

    match expression:
        case ConstantValue(value):
            constant = constant_of(expression)
            if constant in values:
                return _literal(value, values[constant])
            if isinstance(constant, float) and -constant in values:
                return _literal(value, -float(values[-constant]))
            return expression
        case ColumnArithmetic(_, left, right) | ColumnComparison(_, left, right):
            return replace(expression, left=with_constants(left, values), right=with_constants(right, values))
        case Junction(_, operands):
            return replace(expression, operands=tuple(with_constants(each, values) for each in operands))
        case FunctionCall(_, arguments, _):
            return replace(expression, arguments=tuple(with_constants(each, values) for each in arguments))
        case Choice(condition, then, otherwise):
            return Choice(*(with_constants(each, values) for each in (condition, then, otherwise)))
        case Truth(operand) | Clear(operand) | JsonText(operand) | RowExtreme(_, _, operand):
            return replace(expression, operand=with_constants(operand, values))
        case RowQuantifier(_, _, condition):
            return replace(expression, condition=with_constants(condition, values))
        case RowPlace(_, _, condition):
            return replace(expression, condition=changed(condition))
        case RowFold(_, sources, arguments):
            fresh = (
                replace(each, condition=changed(each.condition), value=changed(each.value), order=_keys(each, values))
                for each in sources
            )
            given = tuple(with_constants(each, values) for each in arguments)
            return replace(expression, sources=tuple(fresh), arguments=given)
        case RowLoop(_, condition, content):
            found = with_constants(content, values)
            return replace(expression, condition=changed(condition), content=found, order=_keys(expression, values))
        case FirstOfValue(_, text, condition):
            return replace(expression, text=with_constants(text, values), condition=changed(condition))
        case ContentOf(fragments):
            return ContentOf(tuple(fragment_with(each, values) for each in fragments))
        case _:
            return expression


def _keys(rows: RowSource | RowLoop, values: Mapping[Constant, Constant]) -> tuple[RowKey, ...]:
    return tuple(RowKey(with_constants(each.value, values), each.descending) for each in rows.order)


def fragment_with(fragment: Fragment, values: Mapping[Constant, Constant]) -> Fragment:
    """A fragment with other constants."""
    match fragment:
        case Made(expression):
            return Made(with_constants(expression, values))
        case Wrapped(content, end_tag):
            return Wrapped(tuple(fragment_with(each, values) for each in content), end_tag)
        case _:
            return fragment


def _literal(before: str | int | Decimal | float, value: Constant) -> ConstantValue:
    """A literal of the same type as another."""
    match before, value:
        case str(), bytes():
            return ConstantValue(value.decode())
        case int(), float():
            return ConstantValue(int(value))
        case Decimal(), float():
            return ConstantValue(Decimal(repr(value)))
        case _:
            raise AssertionError("constants of one shape are of one type")
