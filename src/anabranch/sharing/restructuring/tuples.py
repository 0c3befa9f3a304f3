"""Join queries over tuples that have been made already: reading the elements of figure 15.

A tuple travels as one element with one for each of its items: `<photon_photon><photon1>...</photon1>...`, as
`render.render_join` writes it.
The restructuring query of a join runs over these elements, its loops over the items inside; windows and preselections
are gone, and of the `where` all that is exactly understood and was asked of every tuple on the way: so the optimised
forest sends of each item what is returned, and what is still asked.

The bounds of an interval join stay, for a join without them would have to wait for ever (LAWS 3.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from types import MappingProxyType

from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.predicate import EVERYTHING, Predicate, implies, terms
from anabranch.sharing.forest import PropertyForest, is_bounded, labels
from anabranch.sharing.match import missing
from anabranch.sharing.restructuring.loop import (
    child,
    conjunction,
    conjuncts_of,
    names_of,
    predicates,
    split,
    with_loop,
    with_predicates,
)
from anabranch.sharing.rules.conditions import CONTEXT, Conditions, Names, Nodes
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
    join = next((each for each in flwors if any(map(_source, each.clauses))), None)
    if plain.kind == "apart" or join is None:
        return None
    gone, rest = _without_asked(join, plain)
    forest = _selected(derive_forest(with_loop(query, join, rest), schemas), gone)
    bounded = forest.kind == plain.kind and (forest.kind == "step" or is_bounded(forest))
    if not bounded or not implies(forest.guard, gone) or not _is_within(forest, plain):
        forest, rest = plain, join
    return RestructuredJoin(forest, with_loop(query, join, _over_tuples(rest, forest, stream)))


def over_tuples(query: ast.Query, forest: PropertyForest, stream: str) -> ast.Query:
    """A checked join over the tuples of a forest that has all it needs, and may have more: all is asked again."""
    flwors = (part for part in parts(query.body) if isinstance(part, ast.Flwor))
    join = next(each for each in flwors if any(map(_source, each.clauses)))
    return with_loop(query, join, _over_tuples(join, forest, stream))


def _source(clause: ast.For | ast.Let) -> ast.Path | None:
    """The path from a stream that a clause runs over: it is one input of the join."""
    match clause:
        case ast.For(_, ast.Path(ast.Source()) as source):
            return source
        case _:
            return None


def _without_asked(join: ast.Flwor, plain: PropertyForest) -> tuple[Predicate, ast.Flwor]:
    """What is asked of tuples on the way, and the join that is left to ask the rest; windows keep what enters them."""
    conditions = Conditions(lambda expression, names: None)
    interval = plain.kind == "interval"
    gone: Predicate = EVERYTHING
    clauses: list[ast.For | ast.Let] = []
    names: Names = {}
    inputs = iter(plain.trees)
    for clause in join.clauses:
        if isinstance(clause, ast.For) and (source := _source(clause)):
            tree = next(inputs)
            here = Nodes(tree.item, input=tree.input)
            names = {**names, clause.variable: here}
            if interval:
                known, others = split(conditions, predicates(source), {CONTEXT: here})
                gone = both(gone, known)
                clause = replace(clause, source=with_predicates(source, others))
        else:
            names = names_of([clause], names, {})
        clauses.append(clause)
    kept: list[ast.Expression] = []
    for each in conjuncts_of(join.where):
        known, others = split(conditions, [each], names)
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


def _over_tuples(join: ast.Flwor, forest: PropertyForest, stream: str) -> ast.Flwor:
    """The join with its loops over the items of the tuples."""
    trees = forest.trees
    steps = tuple(child("_".join(tree.item[depth] for tree in trees)) for depth in (0, 1))
    taken = {part.variable for part in parts(join) if isinstance(part, ast.For | ast.Let)}
    name = next(each for each in (f"tuple{number or ''}" for number in count()) if each not in taken)
    clauses: list[ast.For | ast.Let] = [ast.For(name, ast.Path(ast.Source("stream", stream), steps))]
    inputs = iter(zip(trees, labels(trees), strict=True))
    for clause in join.clauses:
        if isinstance(clause, ast.For) and (source := _source(clause)):
            tree, label = next(inputs)
            whole = any(each.whole and each.path == tree.item for each in tree.outputs)
            inside = ast.Path(ast.Variable(name), (child(label), child(tree.item[1])) if whole else (child(label),))
            asked = () if clause.window else predicates(source)
            clause = replace(clause, source=with_predicates(inside, asked), window=None)
        clauses.append(clause)
    return replace(join, clauses=tuple(clauses))
