"""The optimised form of a join (sharing paper, 3.2.3 and appendix A): what of the tuples a subscriber needs.

Of the join's `where`, what is understood exactly and was asked of every tuple on the way is not asked again, so that
elements that only such a condition looks at need not be sent.
Production sends the tuples of the plain forest, because they are shared by several joins, and asks the rest again
(`over_tuples`).
The bounds of an interval join stay, for a join without them would have to wait for ever (LAWS 3.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from anabranch.language import ast
from anabranch.language.rewrite import parts, with_part
from anabranch.predicate import EVERYTHING, Predicate, implies, terms
from anabranch.sharing.forest import PropertyForest, is_bounded
from anabranch.sharing.loops import (
    conjunction,
    conjuncts_of,
    input_path,
    loops_over_tuples,
    names_of,
    predicates,
    split,
    with_predicates,
)
from anabranch.sharing.match import missing
from anabranch.sharing.rules.conditions import CONTEXT, Names, StreamNodes
from anabranch.sharing.rules.derive import derive_forest
from anabranch.sharing.tree import both
from anabranch.stream.schema import Schema


@dataclass(frozen=True, slots=True)
class RestructuredJoin:
    """The tuples that are sent to a subscriber, and the query that makes its answer of them."""

    forest: PropertyForest
    query: ast.Query


def restructure_join(
    query: ast.Query, stream: str, schemas: Mapping[str, Schema] = MappingProxyType({})
) -> RestructuredJoin | None:
    """The optimised form of a checked join, over the named stream of its tuples; None for what is no join."""
    plain = derive_forest(query, schemas)
    flwors = (part for part in parts(query.body) if isinstance(part, ast.Flwor))
    join = next((each for each in flwors if any(map(input_path, each.clauses))), None)
    if plain.kind == "apart" or join is None:
        return None
    gone, rest = _without_asked(join, plain)
    forest = _selected(derive_forest(with_part(query, join, rest), schemas), gone)
    bounded = forest.kind == plain.kind and (forest.kind == "step" or is_bounded(forest))
    if not bounded or not implies(forest.guard, gone) or not _is_within(forest, plain):
        forest, rest = plain, join
    return RestructuredJoin(forest, with_part(query, join, loops_over_tuples(rest, forest, stream)))


def _without_asked(join: ast.Flwor, plain: PropertyForest) -> tuple[Predicate, ast.Flwor]:
    """What is asked of tuples on the way, and the join that is left to ask the rest; windows keep what enters them."""
    interval = plain.kind == "interval"
    gone: Predicate = EVERYTHING
    clauses: list[ast.For | ast.Let] = []
    names: Names = {}
    inputs = iter(plain.trees)
    for clause in join.clauses:
        if isinstance(clause, ast.For) and (source := input_path(clause)):
            tree = next(inputs)
            here = StreamNodes(tree.item, input=tree.input)
            names = {**names, clause.variable: here}
            if interval:
                known, others = split(predicates(source), {CONTEXT: here})
                gone = both(gone, known)
                clause = replace(clause, source=with_predicates(source, others))
        else:
            names = names_of([clause], names, {})
        clauses.append(clause)
    kept: list[ast.Expression] = []
    for each in conjuncts_of(join.where):
        known, others = split([each], names)
        if others or (interval and len({term.input for term in terms(known)}) > 1):
            kept.append(each)
        else:
            gone = both(gone, known)
    return gone, replace(join, clauses=tuple(clauses), where=conjunction(kept))


def _selected(forest: PropertyForest, condition: Predicate) -> PropertyForest:
    """A forest of only those tuples that fulfil a condition."""
    trees = (
        replace(tree, outputs=tuple(replace(each, condition=both(condition, each.condition)) for each in tree.outputs))
        for tree in forest.trees
    )
    return replace(forest, trees=tuple(trees))


def _is_within(forest: PropertyForest, plain: PropertyForest) -> bool:
    """Whether the plain form has all that is sent."""
    return not any(list(missing(*trees)) for trees in zip(plain.trees, forest.trees, strict=True))
