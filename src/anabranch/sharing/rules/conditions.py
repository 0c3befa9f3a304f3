"""Conditions of queries as predicates over the paths of a stream, and what the variables of a query mean there.

A condition is understood as far as it can be: what `found` says holds wherever the condition does, perhaps elsewhere
too, so it may decide what is sent.
Where the predicate says exactly the same as the condition, `exact` is set, and only then may it be negated.
What is not understood is left to the subscriber, who needs all that it looks at: `rest` are those parts.

A predicate speaks of an item as a whole, of any values at a path.
So it is exact for a variable that stands for the item itself, and too wide for one that runs over elements inside:
`$c/ra > 5 and $c/dec > 5` asks for one `c` with both, `c/ra > 5 and c/dec > 5` for two that may differ (LAWS, case 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from anabranch.language import ast
from anabranch.language.rewrite import parts as parts_of
from anabranch.predicate import EVERYTHING, NOTHING, Predicate, and_, not_, or_
from anabranch.sharing.rules.comparing import Found, Of, compared, unknown
from anabranch.sharing.tree import ITEM, AggregateAnnotation, Steps, item_term


@dataclass(frozen=True, slots=True)
class Nodes:
    """A variable that stands for nodes of the stream, all at one path.

    `exact`: conditions on them are exactly those on the item, or on the window.
    `usable`: conditions on them say something of the item at all.
    """

    path: Steps
    exact: bool = True
    usable: bool = True
    window: bool = False
    input: str = ""
    """Which tree of a forest they belong to."""


@dataclass(frozen=True, slots=True)
class Something:
    """A variable that stands for a value, or for nodes that have already been asked for whole."""


Meaning: TypeAlias = Nodes | AggregateAnnotation | Something
Names: TypeAlias = Mapping[str, Meaning]
CONTEXT = "."
"""The name of the node that a predicate looks at."""


def stream_name(name: str) -> str:
    """The name under which a stream as a whole may be given a meaning, where a query reads several."""
    return f"stream({name})"


@dataclass(frozen=True, slots=True)
class Located:
    """A path of child steps from nodes of the stream: where it leads, and the predicates on the way."""

    path: Steps
    base: Nodes
    tails: tuple[tuple[int, tuple[ast.Expression, ...]], ...] = ()
    """Predicates, each with the number of steps it stands behind."""
    complete: bool = True
    """False where a step without a rule ends what is known; `path` then leads to the element above it."""


def locate(expression: ast.Expression, names: Names) -> Located | None:
    """Where a path leads; None for what is no path from the stream."""
    match expression:
        case ast.Variable(name):
            meaning = names.get(name)
            return Located(meaning.path, meaning) if isinstance(meaning, Nodes) else None
        case ast.ContextItem():
            return locate(ast.Variable(CONTEXT), names)
        case ast.Source("stream", name):
            stream = names.get(stream_name(name), Nodes(()))
            return Located((), stream) if isinstance(stream, Nodes) else None
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


def _step(found: Located, step: ast.Step) -> Located:
    match step:
        case ast.Step("child", ast.NameTest(name, None), tail, False) if name != "*":
            longer = Located((*found.path, name), found.base, found.tails)
            return _with_tail(longer, tail)
        case ast.Step("self", ast.KindTest("node"), tail, False):
            return _with_tail(found, tail)
        case _:
            return Located(found.path, found.base, found.tails, complete=False)


def _with_tail(found: Located, tail: tuple[ast.Predicate | ast.Qualifier, ...]) -> Located:
    if not tail:
        return found
    conditions = tuple(each.condition for each in tail if isinstance(each, ast.Predicate))
    complete = found.complete and len(conditions) == len(tail)
    return Located(found.path, found.base, (*found.tails, (len(found.path), conditions)), complete)


class Conditions:
    """Turns conditions into predicates; `aggregate` recognises the calls that are aggregates of the tree."""

    def __init__(self, aggregate: Callable[[ast.Expression, Names], AggregateAnnotation | None]) -> None:
        self._aggregate = aggregate

    def find(self, condition: ast.Expression, names: Names) -> Found:
        """What is known of a condition."""
        match condition:
            case ast.And(operands):
                parts = [self.find(each, names) for each in operands]
                predicate = and_(*(each.predicate for each in parts))
                return Found(predicate, all(p.exact for p in parts), tuple(r for p in parts for r in p.rest))
            case ast.Or(operands):
                parts = [self.find(each, names) for each in operands]
                if any(each.rest for each in parts):
                    return unknown(condition)
                return Found(or_(*(each.predicate for each in parts)), all(each.exact for each in parts))
            case ast.Call("not" | "fn:not", (operand,)):
                inner = self.find(operand, names)
                return Found(not_(inner.predicate)) if inner.exact else unknown(condition)
            case ast.Call("true" | "fn:true", ()):
                return Found(EVERYTHING)
            case ast.Call("false" | "fn:false", ()):
                return Found(NOTHING)
            case ast.Comparison():
                return compared(condition, lambda each: self._term(each, names))
            case _:
                return unknown(condition)

    def on_way(self, found: Located, names: Names) -> list[tuple[Names, Found]]:
        """What each predicate on a path says of the item, with the names that it was read with."""
        parts: list[tuple[Names, Found]] = []
        for depth, conditions in found.tails:
            at_item = depth <= len(found.base.path) or (not found.base.path and depth == ITEM)
            usable = found.base.usable and depth >= ITEM
            here = replace(found.base, path=found.path[:depth], exact=found.base.exact and at_item, usable=usable)
            inside: Names = {**names, CONTEXT: here}
            parts += [(inside, self.find(each, inside)) for each in conditions]
        return parts

    def at_nodes(self, found: Located, names: Names) -> tuple[tuple[int, Predicate], ...] | None:
        """The predicates on a path as what they say of the nodes they stand at; None where that cannot be said."""
        parts: dict[int, Predicate] = {}
        for depth, conditions in found.tails:
            inside = {**names, CONTEXT: Nodes(found.path[:depth], input=found.base.input)}
            known = [self.find(each, inside) for each in conditions]
            if depth < ITEM or not all(each.exact for each in known) or _names_others(conditions):
                return None
            parts[depth] = and_(parts.get(depth, EVERYTHING), *(each.predicate for each in known))
        return tuple(parts.items())

    def _term(self, expression: ast.Expression, names: Names) -> Of | None:
        aggregate = self._aggregate(expression, names)
        if aggregate is not None:
            return Of(aggregate.term, True)
        found = locate(expression, names)
        if found is None or not found.complete or found.tails or not found.base.path or not found.base.usable:
            return None
        return Of(item_term(found.path, found.base.input), found.base.exact)


def _names_others(conditions: tuple[ast.Expression, ...]) -> bool:
    """Whether a condition looks at more than the node it stands at."""
    return any(isinstance(part, ast.Variable | ast.Source) for part in parts_of(conditions))
