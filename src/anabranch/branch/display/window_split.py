"""Loops over windows of a stream of updates: what is kept of each node so that windows can be corrected (LAWS 5.10).

A query that sees its windows through aggregates only needs the shares of a node in these
(`language/windows/aggregates.py`), one that groups them its keys besides (`language/windows/grouping.py`); for any
other query, windows are evaluated with their content.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from anabranch.branch.display.parts import EditedWindowPart
from anabranch.language import ast
from anabranch.language.windows.aggregates import Aggregated, aggregated
from anabranch.language.windows.grouping import groups_of


def edited_windows(stream: str, flwor: ast.Flwor, at: int, registered: Collection[str]) -> EditedWindowPart:
    """A loop whose clause number `at` runs over windows of a stream; `registered` are the functions of the user."""
    clause = flwor.clauses[at]
    assert isinstance(clause, ast.For)
    plain = EditedWindowPart(stream, flwor, clause, flwor.clauses[:at], flwor, variable=clause.variable)
    found = aggregated(flwor, clause, registered)
    if found is not None:
        return _folded(plain, found)
    grouping = groups_of(flwor, clause)
    if grouping is None:
        return plain
    found = aggregated(grouping.flwor, grouping.clause, registered)
    if found is None:
        return plain
    plain = replace(plain, where=grouping.where, names=grouping.names, keys=grouping.keys)
    return replace(_folded(plain, found), variable=grouping.clause.variable)


def _folded(plain: EditedWindowPart, found: Aggregated) -> EditedWindowPart:
    at = next(place for place, each in enumerate(found.flwor.clauses) if isinstance(each, ast.For) and each.window)
    behind = found.flwor.clauses[at + 1 :]
    return replace(plain, seen=found.flwor, behind=behind, is_folded=True, calls=found.calls, paths=found.paths)
