"""Conditions of queries as predicates over the paths of a stream.

A condition is understood as far as possible: the predicate holds wherever the condition does, and may hold elsewhere
too, so it can decide what is sent.
Where the predicate says exactly what the condition says, `exact` is set, and only then may it be negated.
The parts that are not understood are left to the subscriber, who is sent everything these parts look at: `rest`.

A predicate speaks of an item as a whole: of any of the values at a path.
So it is exact for a variable that stands for the item itself, and too wide for one that runs over elements inside:
`$c/ra > 5 and $c/dec > 5` asks for one `c` with both, `c/ra > 5 and c/dec > 5` for two that may differ (LAWS, case 4).

Comparisons are understood with constants, between two paths, and with one sum or difference:
`$x/en >= $y/en + 0.5` and `$x/en - $y/en <= 3` are predicates, with the rounding of doubles in them.
A product or a second sum is not understood.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from anabranch.aggregates import AGGREGATES
from anabranch.language import ast
from anabranch.language.rewrite import parts as parts_of
from anabranch.predicate import (
    EVERYTHING,
    NOTHING,
    Operator,
    Predicate,
    Term,
    and_,
    compare,
    difference,
    not_,
    or_,
)
from anabranch.predicate.formula import MIRRORED
from anabranch.sharing.rules.paths import CONTEXT, LocatedPath, Names, StreamNodes, locate
from anabranch.sharing.tree import ITEM, AggregateAnnotation, is_value, item_term

Recogniser: TypeAlias = Callable[[ast.Expression, Names], AggregateAnnotation | None]
"""Tells which aggregate of the tree an expression is, if any."""

_LARGEST = 300
"""Constants with more digits before the point, or as many zeros behind it, may be beyond the doubles."""


@dataclass(frozen=True, slots=True)
class Understood:
    """What is known of a condition."""

    predicate: Predicate
    exact: bool = True
    rest: tuple[ast.Expression, ...] = ()


def no_aggregate(expression: ast.Expression, names: Names) -> None:
    """The recogniser of a query whose aggregates, if any, are no part of a tree."""


def understand(condition: ast.Expression, names: Names, aggregate: Recogniser = no_aggregate) -> Understood:
    """What is known of a condition."""
    match condition:
        case ast.And(operands):
            parts = [understand(each, names, aggregate) for each in operands]
            predicate = and_(*(each.predicate for each in parts))
            return Understood(predicate, all(p.exact for p in parts), tuple(r for p in parts for r in p.rest))
        case ast.Or(operands):
            parts = [understand(each, names, aggregate) for each in operands]
            if any(each.rest for each in parts):
                return _unknown(condition)
            return Understood(or_(*(each.predicate for each in parts)), all(each.exact for each in parts))
        case ast.Call("not" | "fn:not", (operand,)):
            inner = understand(operand, names, aggregate)
            return Understood(not_(inner.predicate)) if inner.exact else _unknown(condition)
        case ast.Call("true" | "fn:true", ()):
            return Understood(EVERYTHING)
        case ast.Call("false" | "fn:false", ()):
            return Understood(NOTHING)
        case ast.Comparison(operator, left, right):
            sides = _operand(left, names, aggregate), _operand(right, names, aggregate)
            found = _compared(sides[0], operator, sides[1]) or _compared(sides[1], MIRRORED[operator], sides[0])
            return found or _unknown(condition)
        case _:
            return _unknown(condition)


def _unknown(condition: ast.Expression) -> Understood:
    return Understood(EVERYTHING, False, (condition,))


def conditions_on_way(found: LocatedPath, names: Names, aggregate: Recogniser) -> list[tuple[Names, Understood]]:
    """What each predicate of a path says of the item, with the names in scope inside the predicate."""
    parts: list[tuple[Names, Understood]] = []
    for depth, conditions in found.tails:
        at_item = depth <= len(found.base.path) or (found.from_stream and depth == ITEM)
        usable = found.base.usable and depth >= ITEM
        here = replace(found.base, path=found.path[:depth], exact=found.base.exact and at_item, usable=usable)
        inside: Names = {**names, CONTEXT: here}
        parts += [(inside, understand(each, inside, aggregate)) for each in conditions]
    return parts


def conditions_at_nodes(
    found: LocatedPath, names: Names, aggregate: Recogniser = no_aggregate
) -> tuple[tuple[int, Predicate], ...] | None:
    """The predicates of a path as conditions on the nodes they stand at; None where one is not understood exactly."""
    parts: dict[int, Predicate] = {}
    for depth, conditions in found.tails:
        inside = {**names, CONTEXT: StreamNodes(found.path[:depth], input=found.base.input)}
        known = [understand(each, inside, aggregate) for each in conditions]
        if depth < ITEM or not all(each.exact for each in known) or _names_others(conditions):
            return None
        parts[depth] = and_(parts.get(depth, EVERYTHING), *(each.predicate for each in known))
    return tuple(parts.items())


def _names_others(conditions: tuple[ast.Expression, ...]) -> bool:
    """Whether a condition looks at more than the node it stands at."""
    return any(isinstance(part, ast.Variable | ast.Source) for part in parts_of(conditions))


# --- comparisons ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _TermValues:
    """The values of a term; `exact`: they are exactly those that the query looks at."""

    term: Term
    exact: bool


@dataclass(frozen=True, slots=True)
class _Literal:
    expression: ast.Expression


@dataclass(frozen=True, slots=True)
class _Shifted:
    """`values + offset`"""

    values: _TermValues
    offset: Fraction


@dataclass(frozen=True, slots=True)
class _Distance:
    """`first - second`"""

    first: _TermValues
    second: _TermValues


_Operand: TypeAlias = _TermValues | _Literal | _Shifted | _Distance | None


def _operand(expression: ast.Expression, names: Names, aggregate: Recogniser) -> _Operand:
    match expression:
        case ast.Negation() | ast.Number() | ast.String():
            return _Literal(expression)
        case ast.Arithmetic(first, ((operator, second),)):
            return _arithmetic(_operand(first, names, aggregate), operator, _operand(second, names, aggregate))
    value = aggregate(expression, names)
    if value is not None:
        return _TermValues(value.term, True)
    found = locate(expression, names)
    if found is None or not found.complete or found.tails or found.from_stream or not found.base.usable:
        return None
    return _TermValues(item_term(found.path, found.base.input), found.base.exact)


def _arithmetic(first: _Operand, operator: str, second: _Operand) -> _Operand:
    match first, operator, second:
        case (_TermValues() as values, "+" | "-", _Literal(expression)) | (
            _Literal(expression),
            "+",
            _TermValues() as values,
        ):
            offset = _constant(expression)
            if is_value(values.term) or not isinstance(offset, Fraction):
                return None
            return _Shifted(values, -offset if operator == "-" else offset)
        case _TermValues() as one, "-", _TermValues() as other if not is_value(one.term) and not is_value(other.term):
            return _Distance(one, other)
        case _:
            return None


def _compared(left: _Operand, operator: Operator, right: _Operand) -> Understood | None:
    """What is known with these two sides; None where they have to be turned round, or nothing is known."""
    match left, right:
        case _TermValues(term, exact), _Literal(expression):
            value = _constant(
                expression, rounded=is_value(term) and AGGREGATES[term.input.partition("(")[0]].kind != "integer"
            )
            if value is None or (is_value(term) and isinstance(value, str)):
                return None
            return Understood(compare(term, operator, value), exact)
        case _TermValues(first, exact), _TermValues(second, other) if not is_value(first) and not is_value(second):
            return Understood(difference(first, operator, second), exact and other)
        case _TermValues(first, exact), _Shifted(_TermValues(second, other), offset) if not is_value(first):
            return Understood(difference(first, operator, second, offset), exact and other)
        case _Distance(_TermValues(first, exact), _TermValues(second, other)), _Literal(expression):
            value = _constant(expression)
            if not isinstance(value, Fraction):
                return None
            return Understood(difference(first, operator, second, value, "distance"), exact and other)
        case _:
            return None


def _constant(expression: ast.Expression, *, rounded: bool = False) -> Fraction | str | None:
    """A literal's value; against computed doubles it is `rounded` to a double as the comparison itself rounds it."""
    match expression:
        case ast.String(value):
            return value
        case ast.Negation(operand):
            positive = _constant(operand, rounded=rounded)
            return -positive if isinstance(positive, Fraction) else None
        case ast.Number(text):
            number = Decimal(text)
            if number and abs(number.adjusted()) > _LARGEST:
                return None
            return Fraction(Decimal(repr(float(number)))) if rounded else Fraction(number)
        case _:
            return None
