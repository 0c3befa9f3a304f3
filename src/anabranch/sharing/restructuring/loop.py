"""The loops of a query over its streams: found, taken apart, and replaced by others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anabranch.language import ast
from anabranch.language.rewrite import parts, rebuild
from anabranch.predicate import Predicate, and_
from anabranch.sharing.rules.conditions import Recogniser, no_aggregate, understand
from anabranch.sharing.rules.paths import Meaning, Names, OpaqueValue, locate
from anabranch.sharing.tree import AggregateAnnotation, Steps


@dataclass(frozen=True, slots=True)
class Loop:
    """`for $first in stream("s")/root/item[...]` with the clauses behind it, and where it stands."""

    query: ast.Query
    flwor: ast.Flwor
    first: ast.For
    source: ast.Path

    @property
    def item(self) -> Steps:
        return tuple(step.test.local for step in self.source.steps if isinstance(step.test, ast.NameTest))

    def where(self) -> tuple[ast.Expression, ...]:
        """The conjuncts of the `where`."""
        return conjuncts_of(self.flwor.where)

    def replaced(self, new: ast.Flwor) -> ast.Query:
        """The query with another loop in the place of this one."""
        return with_loop(self.query, self.flwor, new)


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


def with_loop(query: ast.Query, old: ast.Flwor, new: ast.Flwor) -> ast.Query:
    """The query with one loop in the place of another."""

    def visit(node: Any) -> Any:
        return new if node is old else rebuild(node, visit)

    return replace(query, body=visit(query.body))


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
    """What is exactly understood of some conditions, and those that are not."""
    known: list[Predicate] = []
    others: list[ast.Expression] = []
    for each in asked:
        found = understand(each, names, aggregate)
        if found.exact and not found.rest:
            known.append(found.predicate)
        else:
            others.append(each)
    return and_(*known), tuple(others)
