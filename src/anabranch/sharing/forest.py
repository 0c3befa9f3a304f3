"""Property forests: what sharing knows of a query over several inputs (sharing paper, definition 5.1).

A forest has one tree for each `for` over a stream, so a self-join has several of one stream.
Its trees have names (`$1`, `$2`), and the condition of an output may name paths of any of them: it says for which
tuples of items the element is needed.
The paper's *join annotation* is the part of these conditions that names several inputs; here it is no object of its
own, because an `if` may give each output another one.

A joined forest stands for a stream of tuples: a tuple carries the needed parts of each of its items, and an item of
which nothing is needed is still there as an element (`normalize.forest_of` sees to that).
The windows of a step join are in its trees; an interval join has bounds in its conditions instead (figure 11).

A forest that is *apart* says nothing of how its inputs meet: its trees are like trees that stand alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, count
from typing import Literal, TypeAlias

from anabranch.predicate import EVERYTHING, And, Difference, Or, Predicate, Term, and_, hull, or_, terms
from anabranch.sharing.tree import PropertyTree, Steps, conjuncts, renamed, union_of

JoinKind: TypeAlias = Literal["step", "interval", "apart"]


@dataclass(frozen=True, slots=True)
class PropertyForest:
    """The trees of a query over several inputs, or of several such queries that share a join."""

    kind: JoinKind
    trees: tuple[PropertyTree, ...]
    smaller: tuple[tuple[Fraction, ...], ...] = ()
    """Sizes of windows, one for each input, for which a widened join fires before its own are first full."""

    @property
    def guard(self) -> Predicate:
        """The condition under which a tuple is sent at all."""
        return union_of(each.condition for tree in self.trees for each in tree.outputs)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of the inputs, in the order of the loops."""
        return tuple(tree.stream for tree in self.trees)

    @property
    def tuple_path(self) -> Steps:
        """The path to its tuples, which are named after all their items (figure 15)."""
        return tuple("_".join(tree.item[depth] for tree in self.trees) for depth in (0, 1))

    @property
    def sizes(self) -> tuple[Fraction, ...]:
        """The sizes of a step join's windows."""
        return tuple(tree.window.extent.size for tree in self.trees if tree.window)


def local(condition: Predicate, input: str) -> Predicate:
    """The condition that one over several inputs implies for a single input: it holds for each item of its tuples."""
    match condition:
        case And(parts):
            return and_(*(local(each, input) for each in parts))
        case Or(parts):
            return or_(*(local(each, input) for each in parts))
        case _:
            return condition if {term.input for term in terms(condition)} == {input} else EVERYTHING


def alone(tree: PropertyTree) -> PropertyTree:
    """A tree taken out of its forest: without a name, and with the conditions reduced to what they say of it alone."""

    def rename(term: Term) -> Term:
        return replace(term, input="") if term.path.steps else term

    def own(condition: Predicate) -> Predicate:
        return renamed(local(condition, tree.input), rename)

    outputs = tuple(replace(each, condition=own(each.condition)) for each in tree.outputs)
    window = replace(tree.window, pre=own(tree.window.pre), post=own(tree.window.post)) if tree.window else None
    return replace(tree, outputs=outputs, window=window, input="", item=())


# --- interval joins -----------------------------------------------------------------------------------------


def interval(condition: Predicate) -> Predicate:
    """A conjunction that is implied by a condition and bounds the same, so that items far apart may be forgotten."""
    return hull(condition) if isinstance(condition, Or) else condition


def is_bounded(forest: PropertyForest) -> bool:
    """Whether a condition ties all inputs together by bounds in both directions, as a query must (LAWS 3.4)."""
    above: set[tuple[Term, Term]] = set()
    for each in conjuncts(interval(forest.guard)):
        match each:
            case Difference(left, "<" | "<=", right):
                above.add((left, right))
            case Difference(left, ">" | ">=", right):
                above.add((right, left))
            case _:
                pass
    tied = {(left.input, right.input) for left, right in above if (right, left) in above}
    reached = {forest.trees[0].input}
    for _ in forest.trees:
        reached |= {second for first, second in tied if first in reached}
    return reached >= {tree.input for tree in forest.trees}


# --- names --------------------------------------------------------------------------------------------------


def labels(trees: Iterable[PropertyTree]) -> tuple[str, ...]:
    """A unique name for each input: its stream's name, made a valid element name, and numbered where it is taken."""
    names = (re.sub(r"[^\w.\-]", "_", tree.stream) for tree in trees)
    return tuple(numbered(name if re.match(r"[^\W\d]", name) else f"_{name}" for name in names))


def numbered(names: Iterable[str]) -> list[str]:
    """Names that are unique: each that is taken already gets a number, as in `a`, `a_2`."""
    found: list[str] = []
    for name in names:
        free = chain((name,), (f"{name}_{number}" for number in count(2)))
        found.append(next(each for each in free if each not in found))
    return found
