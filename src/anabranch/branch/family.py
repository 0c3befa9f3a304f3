"""Which subscriptions one branch can serve: those of a *family* that see the same elements.

Queries that say the same, whatever their variables are called, are *twins*: one computation serves them all.
Windows and joins are of one family, too, where they go over the same items: where their `for`s have the same sources
with the same conditions, and their windows the same references.
Sizes, steps and all that follows may differ.
Then the items are ordered, read, judged and kept once, and that is most of what a branch does; only what the queries
make of them is each one's own.
Queries that answer item by item, and are branches only because partitions must be merged, are of one family if they go
over the same stream.
Others are kept apart: where hardly an item is used by both there is little to share, and apart they can be on
different shards.

A family is written down as text and kept by its digest, so families are compared without reading queries again.
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
from anabranch.runtime.standing import Standing
from anabranch.stream.path import Path


def operator_of(standing: Standing, times: Mapping[str, Path | None], *, endless: bool) -> str:
    """The operator that a query needs over its streams; `times` are the paths to their items' times."""
    if standing.kind == "interval join" and not bounds_of(standing, times, endless=endless):
        return "whole"
    if standing.kind == "windows" and isinstance(standing.fors[0].window, ast.SessionWindow):
        return "sessions"
    return standing.kind


def twin_of(standing: Standing) -> str:
    """What two queries have in common when they are twins; errors name no variables, so not even those tell."""
    return _digest(print_query(with_plain_names(standing.query)))


def family_of(standing: Standing, operator: str) -> str:
    """The family of a query that remembers, with the operator that it needs."""
    if operator == "whole":
        return twin_of(standing)
    if operator == "items":
        return _digest(json.dumps([operator, standing.streams]))
    # what names mean at the hole is part of it, wherever they were declared
    names = sorted(standing.env.namespaces.items())
    return _digest(json.dumps([operator, standing.streams, names, print_query(with_plain_names(_sources(standing)))]))


def _sources(standing: Standing) -> ast.Query:
    """A query that has nothing but what decides which items a family looks at, and where they stand."""
    clauses = standing.flwor.clauses
    last = max(place for place, clause in enumerate(clauses) if any(clause is each for each in standing.fors))
    kept = tuple(replace(each, window=_unsized(each.window)) if isinstance(each, ast.For) else each for each in clauses)
    body = ast.Flwor(kept[: last + 1], None, (), ast.Sequence(()))
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
