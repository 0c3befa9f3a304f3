"""The loops of a query over its streams: found, analysed, and replaced by others.

A tuple of a join is sent as one element with one element for each of its items (figure 15 of the sharing paper):
`<photon_photon><photon1>...</photon1>...`, as `render.render_join` writes it.
A join that is served by such tuples loops over these elements, and inside over their items (`over_tuples`); windows and
preselections are left out, and so are conditions that hold for every tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from anabranch.language import ast
from anabranch.language.rewrite import bindings_in, parts, rebuild, with_part
from anabranch.predicate import And, Or, Predicate, and_
from anabranch.sharing.forest import PropertyForest, labels
from anabranch.sharing.rules.conditions import (
    Meaning,
    Names,
    OpaqueValue,
    Recogniser,
    StreamNodes,
    locate,
    no_aggregate,
    understand,
)
from anabranch.sharing.tree import AggregateAnnotation


@dataclass(frozen=True, slots=True)
class Loop:
    """`for $first in stream("s")/root/item[...]` with the clauses after it, and its query."""

    query: ast.Query
    flwor: ast.Flwor
    first: ast.For
    source: ast.Path

    def where(self) -> tuple[ast.Expression, ...]:
        """The conjuncts of the `where`."""
        return conjuncts_of(self.flwor.where)

    def replaced(self, new: ast.Flwor) -> ast.Query:
        """The query with another loop in the place of this one."""
        return with_part(self.query, self.flwor, new)


def loop_of(query: ast.Query) -> Loop | None:
    """The loop over the items of a query's only stream, if the query reads the stream nowhere else."""
    if sum(isinstance(part, ast.Source) for part in parts(query)) > 1:
        return None
    for part in parts(query.body):
        match part:
            case ast.Flwor((ast.For(_, ast.Path(ast.Source(), (root, item)) as source) as first, *_)):
                plain = locate(replace(source, steps=(root, replace(item, tail=()))), {})
                tail = all(isinstance(each, ast.Predicate) for each in item.tail)
                known = plain is not None and plain.complete and not plain.tails and tail
                return Loop(query, part, first, source) if known else None
    return None


def child(name: str) -> ast.Step:
    """A step to the elements of a name."""
    return ast.Step("child", ast.NameTest(name))


def predicates(path: ast.Path) -> tuple[ast.Expression, ...]:
    """The conditions at the end of a path."""
    return tuple(each.condition for each in path.steps[-1].tail if isinstance(each, ast.Predicate))


def with_predicates(path: ast.Path, conditions: Iterable[ast.Expression]) -> ast.Path:
    """The path with these conditions at its end in place of its own."""
    *above, last = path.steps
    return replace(path, steps=(*above, replace(last, tail=tuple(map(ast.Predicate, conditions)))))


def names_of(clauses: Iterable[ast.For | ast.Let], names: Names, values: Mapping[str, AggregateAnnotation]) -> Names:
    """The names in scope behind clauses: a variable is one of the given values, or the nodes of a path, or opaque."""
    for clause in clauses:
        found = locate(clause.value if isinstance(clause, ast.Let) else clause.source, names)
        meaning: Meaning = values.get(clause.variable, OpaqueValue())
        if found is not None and found.complete and found.base.path:
            if isinstance(clause, ast.For) and clause.window is None:
                meaning = replace(found.base, path=found.path, exact=False)
            elif isinstance(clause, ast.Let) and not found.tails:
                meaning = replace(found.base, path=found.path)
        names = {**names, clause.variable: meaning}
    return names


def conjuncts_of(condition: ast.Expression | None) -> tuple[ast.Expression, ...]:
    """The conjuncts of a condition; without a condition, none."""
    if condition is None:
        return ()
    return condition.operands if isinstance(condition, ast.And) else (condition,)


def conjunction(conditions: Iterable[ast.Expression]) -> ast.Expression | None:
    """The conjunction of conditions; of none, None."""
    match tuple(conditions):
        case ():
            return None
        case (single,):
            return single
        case several:
            return ast.And(several)


def split(
    asked: Iterable[ast.Expression], names: Names, aggregate: Recogniser = no_aggregate
) -> tuple[Predicate, tuple[ast.Expression, ...]]:
    """The exactly understood part of some conditions, and the conditions that are not."""
    known: list[Predicate] = []
    others: list[ast.Expression] = []
    for each in asked:
        found = understand(each, names, aggregate)
        if found.exact and not found.rest:
            known.append(found.predicate)
        else:
            others.append(each)
    return and_(*known), tuple(others)


def over_tuples(query: ast.Query, forest: PropertyForest, stream: str) -> ast.Query:
    """A checked join over the tuples of a forest that has all it needs, and may have more.

    All conditions are evaluated again, except those that hold for every tuple and cannot raise an error.
    A loop that has exactly one item in each tuple is replaced by a path, which is evaluated in columns.

    `for $x in stream("s")/r/i|count 2| for $y in stream("u")/r/i|count 2| where $x/k = $y/k and $x/v > 2 return $y/v`
    `for $tuple in stream("j")/r_r/i_i where $tuple/s/v > 2 return $tuple/u/v`
    """
    flwors = (part for part in parts(query.body) if isinstance(part, ast.Flwor))
    join = next(each for each in flwors if any(map(input_path, each.clauses)))
    asked = [each for each in conjuncts_of(join.where) if not _is_settled(each, join, forest)]
    rest = loops_over_tuples(replace(join, where=conjunction(asked)), forest, stream)
    return with_part(query, join, _with_paths(rest))


def _is_settled(condition: ast.Expression, join: ast.Flwor, forest: PropertyForest) -> bool:
    """Whether a condition holds for every tuple and raises for none: it compares two elements (LAWS 2.3).

    A tuple is sent where the condition of the forest holds or raises an error.
    """
    loops = (each.variable for each in join.clauses if isinstance(each, ast.For) and input_path(each))
    names: Names = {
        name: StreamNodes(tree.item, input=tree.input) for name, tree in zip(loops, forest.trees, strict=True)
    }
    match condition:
        case ast.Comparison(_, ast.Path(ast.Variable(first)), ast.Path(ast.Variable(second))):
            known, others = split([condition], names)
            return {first, second} <= names.keys() and not others and _asks(forest.guard, known)
        case _:
            return False


def _asks(guard: Predicate, known: Predicate) -> bool:
    """Whether a condition has another as a conjunct in all its disjuncts, so that it is false where the other is."""
    match guard:
        case And(parts):
            return any(_asks(each, known) for each in parts)
        case Or(parts):
            return all(_asks(each, known) for each in parts)
        case _:
            return guard == known


def _with_paths(loop: ast.Flwor) -> ast.Flwor:
    """A loop over tuples in which each inner loop over the one item of a tuple is replaced by a path."""
    first, *others = loop.clauses
    bound = bindings_in(loop)
    paths: dict[str, ast.Path] = {}
    for clause in others:
        match clause:
            case ast.For(name, ast.Path(ast.Variable(outer), steps) as path) if outer == first.variable:
                if bound[name] == 1 and not any(each.tail for each in steps):
                    paths[name] = path

    def visit(node: Any) -> Any:
        node = rebuild(node, visit)
        match node:
            case ast.Variable(name) if name in paths:
                return paths[name]
            case ast.Path(ast.Path(start, above), below):
                return replace(node, start=start, steps=(*above, *below))
            case _:
                return node

    kept = tuple(visit(each) for each in others if each.variable not in paths)
    order = tuple(visit(each) for each in loop.order)
    return ast.Flwor((first, *kept), visit(loop.where), order, visit(loop.result), span=loop.span)


def input_path(clause: ast.For | ast.Let) -> ast.Path | None:
    """The path from a stream that a clause loops over, if it is one input of the join."""
    match clause:
        case ast.For(_, ast.Path(ast.Source()) as source):
            return source
        case _:
            return None


def loops_over_tuples(join: ast.Flwor, forest: PropertyForest, stream: str) -> ast.Flwor:
    """The join with loops over the items inside the tuples."""
    trees = forest.trees
    steps = tuple(map(child, forest.tuple_path))
    taken = {part.variable for part in parts(join) if isinstance(part, ast.For | ast.Let)}
    name = next(each for each in (f"tuple{number or ''}" for number in count()) if each not in taken)
    clauses: list[ast.For | ast.Let] = [ast.For(name, ast.Path(ast.Source("stream", stream), steps))]
    inputs = iter(zip(trees, labels(trees), strict=True))
    for clause in join.clauses:
        if isinstance(clause, ast.For) and (source := input_path(clause)):
            tree, label = next(inputs)
            whole = any(each.whole and each.path == tree.item for each in tree.outputs)
            inside = ast.Path(ast.Variable(name), (child(label), child(tree.item[1])) if whole else (child(label),))
            asked = () if clause.window else predicates(source)
            clause = replace(clause, source=with_predicates(inside, asked), window=None)
        clauses.append(clause)
    return replace(join, clauses=tuple(clauses))
