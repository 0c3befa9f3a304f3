"""Conditions and paths of queries, as predicates over the paths of a stream.

A path is followed as long as its steps are child steps by name; predicates on the way are noted with their places.

A condition is understood as far as possible: the predicate holds wherever the condition does, and may hold elsewhere
too, so it can decide what is sent.
Where the predicate says exactly what the condition says, `exact` is set, and only then may it be negated.
The parts that are not understood are left to the subscriber, who is sent everything these parts look at: `rest`.

A predicate is about an item as a whole: about any of the values at a path.
So it is exact for a variable that stands for the item itself, and too wide for one that runs over elements inside:
`$c/ra > 5 and $c/dec > 5` asks for one `c` with both, `c/ra > 5 and c/dec > 5` for two that may differ (LAWS, case 4).

Comparisons are understood with constants, between two paths, and with one sum or difference:
`$x/en >= $y/en + 0.5` and `$x/en - $y/en <= 3` are predicates, with the rounding of doubles in them.
A product or a second sum is not understood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from anabranch.aggregates import AGGREGATES
from anabranch.language import ast
from anabranch.language.rewrite import parts as parts_of
from anabranch.logic import MIRRORED
from anabranch.predicate import (
    EVERYTHING,
    NOTHING,
    Operator,
    Predicate,
    Term,
    and_,
    can_raise,
    compare,
    difference,
    not_,
    or_,
)
from anabranch.sharing.tree import ITEM, AggregateAnnotation, Steps, is_value, item_term


@dataclass(frozen=True, slots=True)
class StreamNodes:
    """A variable that stands for nodes of the stream, all at one path.

    `exact`: a condition on them is exactly the same condition on the item, or on the window.
    `usable`: a condition on them implies a condition on the item at all.
    `window`: they are all items of a window together.
    """

    path: Steps
    exact: bool = True
    usable: bool = True
    window: bool = False
    input: str = ""
    """The tree of a forest that they belong to."""


@dataclass(frozen=True, slots=True)
class OpaqueValue:
    """A variable that stands for a computed value, or for nodes that are sent whole already."""


Meaning: TypeAlias = StreamNodes | AggregateAnnotation | OpaqueValue
Names: TypeAlias = Mapping[str, Meaning]
"""The meaning of each variable in scope."""
CONTEXT = "."
"""The name under which the node that a predicate looks at stands among the variables."""


def stream_name(name: str) -> str:
    """The name under which a stream as a whole may be given a meaning, where a query reads several."""
    return f"stream({name})"


@dataclass(frozen=True, slots=True)
class LocatedPath:
    """A path of child steps from nodes of the stream: where it leads, and the predicates on the way."""

    path: Steps
    base: StreamNodes
    """Where it starts: at a variable's nodes, or at the stream itself, whose path has no steps."""
    tails: tuple[tuple[int, tuple[ast.Expression, ...]], ...] = ()
    """Predicates, each with the number of steps it stands behind."""
    complete: bool = True
    """False where a step without a rule ends what is known; `path` then leads to the element above it."""

    @property
    def from_stream(self) -> bool:
        """Whether the path starts at the stream itself, and not at nodes of a variable."""
        return not self.base.path


def locate(expression: ast.Expression, names: Names) -> LocatedPath | None:
    """Where a path leads; None for what is no path from the stream."""
    match expression:
        case ast.Variable(name):
            meaning = names.get(name)
            return LocatedPath(meaning.path, meaning) if isinstance(meaning, StreamNodes) else None
        case ast.ContextItem():
            return locate(ast.Variable(CONTEXT), names)
        case ast.Source("stream", name):
            stream = names.get(stream_name(name), StreamNodes(()))
            return LocatedPath((), stream) if isinstance(stream, StreamNodes) else None
        case ast.Filter(base, tail):
            filtered = locate(base, names)
            return None if filtered is None else _with_tail(filtered, tail)
        case ast.Path(start, steps):
            found = locate(ast.ContextItem() if start is None else start, names)
            for step in steps:
                if found is None or not found.complete:
                    break
                found = _step(found, step)
            return found
        case _:
            return None


def _step(found: LocatedPath, step: ast.Step) -> LocatedPath:
    match step:
        case ast.Step("child", ast.NameTest(name, None), tail, False) if name != "*":
            longer = LocatedPath((*found.path, name), found.base, found.tails)
            return _with_tail(longer, tail)
        case ast.Step("self", ast.KindTest("node"), tail, False):
            return _with_tail(found, tail)
        case _:
            return LocatedPath(found.path, found.base, found.tails, complete=False)


def _with_tail(found: LocatedPath, tail: tuple[ast.Tail, ...]) -> LocatedPath:
    if not tail:
        return found
    conditions = tuple(each.condition for each in tail if isinstance(each, ast.Predicate))
    complete = found.complete and len(conditions) == len(tail)
    return LocatedPath(found.path, found.base, (*found.tails, (len(found.path), conditions)), complete)


Recogniser: TypeAlias = Callable[[ast.Expression, Names], AggregateAnnotation | None]
"""A function that recognises an expression as an aggregate of the tree; None for any other expression."""

_LARGEST = 300
"""Constants with more digits before the point, or as many zeros behind it, may be beyond the doubles."""


@dataclass(frozen=True, slots=True)
class Understood:
    """A condition as far as it is understood: its predicate, whether that is exact, and the parts that are not."""

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
        outside = any(isinstance(part, ast.Variable | ast.Source) for part in parts_of(conditions))
        if depth < ITEM or not all(each.exact for each in known) or outside:
            return None
        parts[depth] = and_(parts.get(depth, EVERYTHING), *(each.predicate for each in known))
    return tuple(parts.items())


def raises_first(found: LocatedPath, names: Names, aggregate: Recogniser = no_aggregate) -> bool:
    """Whether a predicate of a path may raise before another one is asked, which in a conjunction would hide that."""
    known = []
    for depth, conditions in found.tails:
        inside = {**names, CONTEXT: StreamNodes(found.path[:depth], input=found.base.input)}
        known += [understand(each, inside, aggregate).predicate for each in conditions]
    return any(map(can_raise, known[:-1]))


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
    """The predicate of a comparison; None where its sides have to be exchanged, or nothing is known."""
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
