"""Property trees: what sharing knows of a query over one stream (sharing paper, definition 3.2).

A tree has the paths that a query refers to, in the order of the schema (by name where there is none), and annotations:

* an *output* is an element that must be sent, and the condition under which; `whole` with all its content (a bullet),
  else the element itself, which is all that a query needs that returns `<hit/>` for each;
* a *window* with its preselection (which items enter) and postselection (which windows count);
* *aggregates*, over the window, or over the whole stream where there is none, each with its own preselection and with
  the condition under which its value is returned.

Conditions speak of one item and name absolute paths, existentially; in a tree with a window they speak of the window's
items together, and may name its aggregates.
The trees of a join (`forest.py`) have names, `$1` and so on, and their conditions may name the paths of one another.
Trees are in the paper's *plain* form: whatever a query looks at is an output, because the subscriber runs the query
itself over what it is sent.

Conditions are not pulled up to a common ancestor (3.2.2) in a tree, but where it is printed (`explain/trees.py`);
`guards` gives for each element the condition under which any part of it is needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.function import FunctionName
from anabranch.algebra.window import Extent
from anabranch.logic import fold, mapped
from anabranch.predicate import (
    EVERYTHING,
    NOTHING,
    And,
    Compare,
    Not,
    Or,
    Predicate,
    Term,
    and_,
    implies,
    or_,
    relax,
)
from anabranch.predicate import terms as terms_of
from anabranch.predicate.formula import Atom
from anabranch.stream.path import Path
from anabranch.stream.schema import Schema

Steps: TypeAlias = tuple[str, ...]
"""The element names of a path from the stream's root element down; without any, the stream as a whole."""

ITEM = 2
"""The number of steps that lead to an item: the root element and the item itself."""


@dataclass(frozen=True, slots=True)
class OutputAnnotation:
    """An element that must be sent where the condition holds."""

    path: Steps
    condition: Predicate = EVERYTHING
    whole: bool = True


@dataclass(frozen=True, slots=True)
class WindowAnnotation:
    """A window over the items at `path`; without a reference it counts them."""

    path: Steps
    extent: Extent
    reference: Steps | None = None
    pre: Predicate = EVERYTHING
    post: Predicate = EVERYTHING


@dataclass(frozen=True, slots=True)
class AggregateAnnotation:
    """An aggregate of the elements at `path` that pass `pre`: conditions, each with the number of steps before it."""

    function: FunctionName
    path: Steps
    pre: tuple[tuple[int, Predicate], ...] = ()
    selection: Predicate = NOTHING
    """The condition under which the value is needed."""

    @property
    def term(self) -> Term:
        """The term for its value in conditions, with the whole path, so that no two aggregates have the same term."""
        name = f"{self.function}({'/'.join(self.path[:ITEM])}: {aggregate_label(self)})"
        return Term(name, Path(()), "one" if AGGREGATES[self.function].is_total else "optional")


@dataclass(frozen=True, slots=True)
class PropertyTree:
    """The tree of a query, or of several that share a stream."""

    stream: str
    outputs: tuple[OutputAnnotation, ...] = ()
    window: WindowAnnotation | None = None
    aggregates: tuple[AggregateAnnotation, ...] = ()
    schema: Schema | None = field(default=None, compare=False, repr=False)
    input: str = ""
    """Its name among the trees of a join, which conditions write before its paths; a tree alone has none."""
    item: Steps = ()
    """The path of the items that the join's loop runs over."""

    @property
    def paths(self) -> tuple[Steps, ...]:
        """All paths that the query refers to, with those on the way to them, in the order of the schema."""
        named = {each.path for each in self.outputs} | {each.path for each in self.aggregates}
        conditions = [each.condition for each in self.outputs]
        for aggregate in self.aggregates:
            conditions += [aggregate.selection, *(each for _, each in aggregate.pre)]
        if self.window:
            named |= {self.window.path, self.window.reference or self.window.path}
            conditions += [self.window.pre, self.window.post]
        named |= {steps for each in conditions for steps in paths_of(each, self.input)}
        found = {steps[:length] for steps in named for length in range(1, len(steps) + 1)}
        return tuple(sorted(found, key=lambda steps: place(steps, self.schema)))

    @property
    def guards(self) -> Mapping[Steps, Predicate]:
        """For each path, the condition under which any output at or below it is needed."""
        found: defaultdict[Steps, list[Predicate]] = defaultdict(list)
        for output in self.outputs:
            for length in range(len(output.path) + 1):
                found[output.path[:length]].append(output.condition)
        return {path: union_of(conditions) for path, conditions in found.items()}


def place(steps: Steps, schema: Schema | None) -> tuple[tuple[int, str], ...]:
    """The sort key of a path: ancestors first, then the order of the schema, then undeclared elements by name."""
    found = []
    for depth, name in enumerate(steps):
        rank = 0
        if schema is not None and depth:
            children: Iterable[str] = ()
            if depth == 1:
                children = schema.items
            elif (part := schema.child(*steps[1:depth])) is not None:
                children = schema.declaration(part).children
            names = list(children)
            rank = names.index(name) if name in names else len(names)
        found.append((rank, name))
    return tuple(found)


# --- conditions -------------------------------------------------------------------------------------------


def item_term(steps: Steps, input: str = "") -> Term:
    """The term for a path in conditions; it may have any number of values, for items are not validated by a DTD."""
    return Term(input, Path(steps))


def is_value(term: Term) -> bool:
    """Whether a term is the value of an aggregate, which has no path."""
    return not term.path.steps


def paths_of(condition: Predicate, input: str = "") -> frozenset[Steps]:
    """The paths of an input that a condition names; aggregates are none."""
    return frozenset(term.path.steps for term in terms_of(condition) if term.input == input and not is_value(term))


def both(first: Predicate, second: Predicate) -> Predicate:
    """The conjunction of two conditions: one of them, where it implies the other."""
    if implies(second, first):
        return second
    return first if implies(first, second) else and_(first, second)


@lru_cache(maxsize=4_096)
def union(first: Predicate, second: Predicate) -> Predicate:
    """A condition that holds wherever one of two does; cached, because many elements have the same conditions."""
    if implies(second, first):
        return first
    return second if implies(first, second) else relax(first, second)


def union_of(conditions: Iterable[Predicate]) -> Predicate:
    """A condition that holds wherever any of the given ones does."""
    found: Predicate = NOTHING
    for each in dict.fromkeys(conditions):
        found = union(found, each)
    return found


def is_positive(condition: Predicate) -> bool:
    """Whether an item that does not fulfil the condition cannot come to fulfil it by losing elements.

    Arithmetic raises for several values and not for none; but a query for which it raises is sent all that it looks at.
    """
    return fold(condition, lambda _: True, all, all, lambda _: False)


def looked_at(condition: Predicate) -> Iterable[tuple[Term, Predicate]]:
    """Each term of a condition, and when its elements must be sent so that a subscriber can evaluate it again.

    Where a positive part does not hold, it does not hold for less of the item either, so its elements need not be sent
    there; a part with `not` must see its elements wherever the positive parts hold.
    """
    for each in conjuncts(condition):
        for term in sorted(terms_of(each), key=str):
            yield term, condition if is_positive(each) else positive_part(condition)


def positive_part(condition: Predicate) -> Predicate:
    """The condition without its negations, which is weaker."""
    match condition:
        case Not():
            return EVERYTHING
        case And(parts):
            return and_(*map(positive_part, parts))
        case Or(parts):
            return or_(*map(positive_part, parts))
        case _:
            return condition


def conjuncts(condition: Predicate) -> tuple[Predicate, ...]:
    """The parts of a conjunction; any other condition is its own only part."""
    return condition.parts if isinstance(condition, And) else (condition,)


def aggregate_label(aggregate: AggregateAnnotation) -> str:
    """`avg(c[x > 1]/y)`: the function, and the path from the item down with its conditions in their places."""
    text = ""
    conditions = dict(aggregate.pre)
    for depth in range(min(ITEM, len(aggregate.path)), len(aggregate.path) + 1):
        if depth > ITEM:
            text += f"{'/' if text else ''}{aggregate.path[depth - 1]}"
        if depth in conditions:
            text += f"{'' if text else '.'}[{condition_text(conditions[depth], aggregate.path[:depth])}]"
    return f"{aggregate.function}({text or '.'})"


# --- conditions as query text ----------------------------------------------------------------------------------


def condition_text(condition: Predicate, base: Steps) -> str:
    """The condition with paths relative to `base`."""
    return joined_text(condition, {"": (base, "")})


def joined_text(
    condition: Predicate, inputs: Mapping[str, tuple[Steps, str]], names: Mapping[str, str] = MappingProxyType({})
) -> str:
    """A condition over inputs, each given with a path and its variable; `names` are those of aggregates."""

    def rename(term: Term) -> Term:
        if not term.path.steps:
            return replace(term, input=names.get(term.input, term.input))
        base, variable = inputs[term.input]
        assert term.path.steps[: len(base)] == base
        return replace(term, input=variable, path=Path(term.path.steps[len(base) :]))

    return str(renamed(condition, rename))


def renamed(condition: Predicate, rename: Callable[[Term], Term]) -> Predicate:
    """The condition with each term replaced."""

    def visit(atom: Atom) -> Atom:
        if isinstance(atom, Compare):
            return replace(atom, term=rename(atom.term))
        return replace(atom, left=rename(atom.left), right=rename(atom.right))

    return mapped(condition, visit)
