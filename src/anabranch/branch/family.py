"""Which subscriptions one branch can serve: those of a *family* that see the same elements.

Queries that are equal up to the names of variables are *twins*: one computation serves them all.
Windows and joins are of one family if they read the same items: if their `for`s have the same sources and conditions,
and their windows the same reference paths.
Sizes, steps and all that follows may differ; of a join by keys all but the keys.
Then items are ordered, read, judged and held once, which is most of the work of a branch; only the results are computed
for each query.
Item queries, which are branches only because partitions must be merged, are of one family if they read the same stream.
Other queries have branches of their own: where few items are used by both there is little to share, and separate
branches can be on different shards.

A family is identified by the digest of a text, so families are compared without parsing queries again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

from anabranch.branch.joins.interval import bounds_of
from anabranch.language import ast
from anabranch.language.printer import print_query
from anabranch.language.rewrite import with_plain_names
from anabranch.runtime.standing import Standing, keys_of
from anabranch.stream.path import Path


def operator_of(standing: Standing, times: Mapping[str, Path | None], *, endless: bool) -> str:
    """The operator for a query over its streams; `times` are their time paths."""
    if standing.kind in ("interval join", "keyed join"):
        if bounds_of(standing, times, endless=endless):
            return "interval join"
        return "keyed join" if endless and keys_of(standing) else "whole"
    if standing.kind == "windows" and isinstance(standing.fors[0].window, ast.SessionWindow):
        return "sessions"
    return standing.kind


def twin_of(query: ast.Query) -> str:
    """The digest that twins have in common; errors name no variables, so twins fail alike, too."""
    return _digest(print_query(with_plain_names(query)))


def family_of(standing: Standing, operator: str) -> str:
    """The digest of the family of a query with this operator."""
    if operator == "whole":
        return twin_of(standing.query)
    if operator == "items":
        return _digest(json.dumps([operator, standing.streams]))
    # the scope of names at the hole is part of it, wherever they were declared
    names = sorted(standing.env.namespaces.items())
    shared = print_query(with_plain_names(_sources(standing, by_keys=operator == "keyed join")))
    return _digest(json.dumps([operator, standing.streams, names, shared]))


def _sources(standing: Standing, *, by_keys: bool) -> ast.Query:
    """A query with only the parts that decide which items a family reads, and in which order; perhaps its keys."""
    clauses = standing.flwor.clauses
    last = max(place for place, clause in enumerate(clauses) if any(clause is each for each in standing.fors))
    kept = tuple(replace(each, window=_unsized(each.window)) if isinstance(each, ast.For) else each for each in clauses)
    keys = (ast.Comparison("=", each.left.value, each.right.value) for each in keys_of(standing) if by_keys)
    body = ast.Flwor(kept[: last + 1], ast.And(found) if (found := tuple(keys)) else None, (), ast.Sequence(()))
    return replace(standing.query, body=body)


def _unsized(window: ast.Window | None) -> ast.Window | None:
    match window:
        case None:
            return None
        case ast.SessionWindow():
            return replace(window, gap=ast.Number("1"))
        case _:
            return replace(window, size=ast.Number("1"), step=None)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
