"""Which groups of a stream need not hold their items: those that a query only looks at through aggregates.

    for $o in stream("s")/r/o group by $c := $o/customer
    let $spent := sum($o/amount) where count($o) > 1 order by $spent descending
    return <c name="{ $c }" land="{ doc("lands")/lands/land[@code = $o/land] }">{ $spent }</c>

needs of a group only its key, `sum($o/amount)`, `count($o)`, and the set of values of `$o/land`: a comparison asks
whether there is a value that compares so, not how often it is there.
`group_part` puts variables in the place of these; their names have a `#` in them, which no query can write.

What is aggregated must be computable item by item, so that the values of a group are those of its items one after the
other: a variable, a path down from nodes of the item with at most one predicate, which looks at nothing outside, or a
loop over such nodes whose rounds look at their own node (`language/windows/aggregates.py` has the reasons).
All other groups hold their items, and evaluating one takes time linear in its size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from anabranch.branch.display.folds import ATOMS, FOLDS
from anabranch.branch.display.groups.places import asked_below
from anabranch.branch.display.parts import GroupCount, GroupFold, GroupPart
from anabranch.language import ast
from anabranch.language.rewrite import bindings_in, bound_by, parts, rebuild
from anabranch.language.signatures import SIGNATURES
from anabranch.language.windows.aggregates import is_bare, is_ours, looks_at_own, with_paths
from anabranch.law.paths import base_of


def group_part(stream: str, pipeline: ast.Pipeline, registered: Collection[str]) -> GroupPart | None:
    """The groups that a pipeline makes of a stream, given that the clauses before `group by` distribute over its items.

    None where it makes no groups, or groups of groups; `registered` are the functions of the user.
    """
    clauses = pipeline.clauses
    at = next((place for place, each in enumerate(clauses) if isinstance(each, ast.GroupBy)), len(clauses))
    ahead, behind = clauses[:at], clauses[at + 1 :]
    if at == len(clauses) or any(isinstance(each, ast.OrderBy | ast.Count) for each in ahead):
        return None
    if any(isinstance(each, ast.GroupBy) for each in behind) or sum(isinstance(each, ast.Count) for each in behind) > 1:
        return None
    group = clauses[at]
    assert isinstance(group, ast.GroupBy)
    front = [name for each in ahead for name in bound_by(each)]
    names = [key.variable for key in group.keys]
    bound = bindings_in(pipeline)
    if any(bound[name] != times for name, times in Counter((*front, *names)).items()):
        return None  # a name is bound again somewhere
    seen = [name for name in front if name not in names]
    finder = _AggregateFinder(ahead, seen, registered)
    said = finder.behind(behind, pipeline.result, bound)
    if said is None:
        used = {part.name for part in parts((behind, pipeline.result)) if isinstance(part, ast.Variable)}
        return _part(stream, pipeline, ahead, group.keys, behind, pipeline.result, (), [n for n in seen if n in used])
    return _part(stream, pipeline, ahead, group.keys, *said, tuple(finder.folds.values()), ())


def _part(
    stream: str,
    pipeline: ast.Pipeline,
    ahead: tuple[ast.Clause, ...],
    keys: tuple[ast.GroupKey, ...],
    behind: tuple[ast.Clause, ...],
    result: ast.Expression,
    folds: tuple[GroupFold, ...],
    held: Sequence[str],
) -> GroupPart:
    count: GroupCount | None = None
    at = next((place for place, each in enumerate(behind) if isinstance(each, ast.Count)), None)
    if at is not None:
        (variable,) = bound_by(behind[at])
        rest = behind[at + 1 :]
        limit = asked_below(rest[0].condition, variable) if rest and isinstance(rest[0], ast.Where) else None
        count, behind = GroupCount(variable, rest, limit), behind[:at]
    return GroupPart(stream, pipeline, ahead, keys, behind, result, folds, tuple(held), count)


class _AggregateFinder:
    """Replaces the aggregates of the groups of one pipeline by variables."""

    def __init__(self, ahead: Sequence[ast.Clause], names: Sequence[str], registered: Collection[str]) -> None:
        self._names = names
        self._nodes = [name for name in _of_nodes(ahead) if name in names]
        self._is_hidden = not SIGNATURES.keys().isdisjoint(registered)
        self.folds: dict[tuple[str, ast.Expression], GroupFold] = {}

    def behind(
        self, clauses: tuple[ast.Clause, ...], result: ast.Expression, bound: Counter[str]
    ) -> tuple[tuple[ast.Clause, ...], ast.Expression] | None:
        """Clauses and result behind `group by`, with variables for aggregates; None where they need the items."""
        paths: dict[str, ast.Path | ast.Variable] = {}
        kept: list[ast.Clause] = []
        for each in clauses:
            match with_paths(each, paths):
                case ast.Let(name, ast.Path() | ast.Variable() as path) if bound[name] == 1 and self._is_bare(path):
                    paths[name] = path
                case other:
                    kept.append(other)
        said: tuple[tuple[ast.Clause, ...], ast.Expression] = with_paths((tuple(kept), result), paths)
        if self._is_hidden or any(isinstance(each, ast.ElementConstructor) and each.namespaces for each in parts(said)):
            return None
        said = self._visit(said)
        if any(isinstance(each, ast.Variable) and each.name in self._names for each in parts(said)):
            return None
        return said

    def _is_bare(self, path: ast.Expression) -> bool:
        return any(is_bare(path, name) for name in self._nodes)

    def _visit(self, node: Any) -> Any:
        match node:
            case ast.Call(name, (argument,)) if (function := name.removeprefix("fn:")) in FOLDS and self._is_apart(
                argument
            ):
                return self._fold(function, argument, node)
            case ast.Call(name, (argument,)) if name.removeprefix("fn:") == "distinct-values" and self._is_apart(
                argument
            ):
                return replace(node, arguments=(self._fold(ATOMS, argument, argument),))
            case ast.Comparison(_, left, right):
                sides = (
                    self._fold(ATOMS, each, each) if self._is_apart(each) else self._visit(each)
                    for each in (left, right)
                )
                return ast.Comparison(node.operator, *sides, span=node.span)
            case _:
                return rebuild(node, self._visit)

    def _fold(self, function: str, argument: ast.Expression, node: Any) -> ast.Variable:
        fold = GroupFold(f"{function}#{len(self.folds)}", function, argument)
        return ast.Variable(self.folds.setdefault((function, argument), fold).variable, span=node.span)

    def _is_apart(self, argument: ast.Expression) -> bool:
        """Whether an argument can be evaluated for each item of a group by itself."""
        match argument:
            case ast.Variable(name):
                return name in self._names
            case ast.Flwor((ast.For(variable, source, None),), where, (), result):
                is_plain = isinstance(source, ast.Variable) and source.name in self._names
                return (is_plain or self._is_bare(source)) and looks_at_own((where, result), variable)
            case _:
                return any(is_ours(argument, name) for name in self._nodes)


def _of_nodes(clauses: Sequence[ast.Clause]) -> list[str]:
    """The variables that are bound to nodes of the current item: no two items share a node."""
    found: list[str] = []
    for each in clauses:
        match each:
            case (
                ast.For(name, ast.Path() | ast.Filter() | ast.Variable() as source)
                | ast.PositionalFor(name, _, ast.Path() | ast.Filter() | ast.Variable() as source)
                | ast.Let(name, ast.Path() | ast.Filter() | ast.Variable() as source)
            ):
                match base_of(source):
                    case ast.Source("stream"):
                        found.append(name)
                    case ast.Variable(base) if base in found:
                        found.append(name)
    return found
