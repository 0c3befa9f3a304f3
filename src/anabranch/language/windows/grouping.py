"""Windows whose groups are seen through aggregates only (LAWS 3.8).

    for $w in stream("s")/r/i |t diff 60| return
      for $o in $w let $n := $o/n group by $k := $o/k let $s := sum($n) order by $s return <g k="{$k}">{ $s }</g>

reads of each group nothing but its key and the sum of `$o/n`.
`groups_of` turns it into a query about one group, in the form of a query about one window:

    for $o in stream("s")/r/i |t diff 60| return (let $s := sum($o/n) order by $s return <g k="{$k}">{ $s }</g>)

whose aggregates `aggregated` takes out (`aggregates.py`); the variables of the keys are bound nowhere in it, nor are
those that stand for the bounds of the window, which all its groups have in common.

Made for this are groups of the items of a window by paths that lead to single texts, by a text that is made of such, by
a condition, whose outcome is a text as good as any, or by what a lookup finds, which is told apart by its JSON.
In front of the `group by` only names for paths may stand, and a condition on each item behind them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from anabranch.language import ast
from anabranch.language.rewrite import bindings_in, parts
from anabranch.language.windows.aggregates import is_bare, is_lookup, is_ours, looks_at_own, with_bounds, with_paths

_TEXTUAL = frozenset(
    (
        *("string", "concat", "substring", "substring-before", "substring-after"),
        *("upper-case", "lower-case", "normalize-space", "translate"),
    )
)
"""Functions that make a text of texts and numbers."""

_CONDITIONS = frozenset(("not", "exists", "empty", "boolean", "contains", "starts-with", "ends-with"))


KeyKind: TypeAlias = Literal["untyped", "string", "boolean", "json"]
"""What a key is: text of an item, text that a function has made, the outcome of a condition, or what a lookup finds."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """What a query reads of the groups of its windows."""

    flwor: ast.Flwor
    """The query about one group, whose variable is in the place of the window's."""
    clause: ast.For
    """The loop in it that stands for the window's."""
    where: ast.Expression | None
    """The condition that an item must fulfil to be in a group."""
    names: tuple[str, ...]
    keys: tuple[ast.Expression, ...]
    """The variables of the keys, and what they are in each item."""
    kinds: tuple[KeyKind, ...]


def groups_of(flwor: ast.Flwor, clause: ast.For) -> Grouping | None:
    """The grouping of an expression over a window; None where it has none, or reads more than its groups."""
    match flwor:
        case ast.Flwor(
            (only,),
            None,
            (),
            ast.Pipeline((ast.For(item, ast.Variable(window), None), *others), result),
        ) if only is clause and window == clause.variable:
            pass
        case _:
            return None
    at = next((place for place, each in enumerate(others) if isinstance(each, ast.GroupBy)), len(others))
    ahead, behind = others[:at], others[at + 1 :]
    if at == len(others) or not all(isinstance(each, ast.Let | ast.Where | ast.OrderBy | ast.Count) for each in behind):
        return None
    group = others[at]
    assert isinstance(group, ast.GroupBy)
    asked: ast.Expression | None = None
    match ahead:
        case [*ahead, ast.Where(asked)]:
            pass
    paths = _named(ahead, item)
    if paths is None:
        return None
    names = tuple(key.variable for key in group.keys)
    bound = bindings_in(flwor)
    if any(bound[name] != times for name, times in Counter((window, item, *paths, *names)).items()):
        return None  # a name means something else somewhere
    where: ast.Expression | None = with_paths(asked, paths)
    values = [paths.get(key.variable) if key.value is None else with_paths(key.value, paths) for key in group.keys]
    keys = tuple(each for each in values if each is not None)
    kinds = tuple(kind for each in values if (kind := _kind(each, item)) is not None)
    body = _behind_group(behind, result, {name: path for name, path in paths.items() if name not in names}, item, bound)
    body = with_bounds(body, window)
    is_apart = where is None or looks_at_own(where, item)
    if len(kinds) < len(names) or not is_apart or any(part == ast.Variable(window) for part in parts(body)):
        return None
    loop = replace(clause, variable=item)
    return Grouping(ast.Flwor((loop,), None, (), body, span=flwor.span), loop, where, names, keys, kinds)


def _named(clauses: Sequence[ast.Clause], item: str) -> dict[str, ast.Path | ast.Variable] | None:
    """The names for paths from an item that clauses give; None where they do anything else."""
    paths: dict[str, ast.Path | ast.Variable] = {}
    for each in clauses:
        match with_paths(each, paths):
            case ast.Let(name, ast.Path() | ast.Variable() as path) if is_bare(path, item):
                paths[name] = path
            case _:
                return None
    return paths


def _behind_group(
    clauses: Sequence[ast.Clause],
    result: ast.Expression,
    paths: Mapping[str, ast.Path | ast.Variable],
    item: str,
    bound: Mapping[str, int],
) -> ast.Pipeline:
    """The clauses behind a `group by`, with paths in the place of the names for them."""
    known = dict(paths)
    kept: list[ast.Clause] = []
    for each in clauses:
        match with_paths(each, known):
            case ast.Let(name, ast.Path() | ast.Variable() as path) if bound[name] == 1 and is_bare(path, item):
                known[name] = path
            case other:
                kept.append(other)
    return ast.Pipeline(tuple(kept), with_paths(result, known), span=result.span)


def _kind(key: ast.Expression | None, item: str) -> KeyKind | None:
    """The kind of a key; None for a key that is neither text nor a condition."""
    match key:
        case ast.Call(name, (_, *_) as arguments) if name.removeprefix("fn:") in _TEXTUAL:
            return "string" if all(isinstance(each, ast.Number) or _kind(each, item) for each in arguments) else None
        case ast.Comparison() | ast.And() | ast.Or():
            return "boolean" if looks_at_own(key, item) else None
        case ast.Call(name, (_, *_)) if name.removeprefix("fn:") in _CONDITIONS:
            return "boolean" if looks_at_own(key, item) else None
        case ast.String():
            return "string"
        case ast.Call() if is_lookup(key, item):
            return "json"
        case None:
            return None
        case _:
            return "untyped" if is_ours(key, item) else None
