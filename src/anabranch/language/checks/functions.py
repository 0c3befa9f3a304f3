"""Static checks of the functions that a query declares: they end, and do not call each other too deep."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from anabranch.errors import QueryError
from anabranch.language import ast
from anabranch.language.checks.refusals import refuse
from anabranch.language.parsing.cursor import MAX_NESTING
from anabranch.language.rewrite import deepest, parts


def check_functions(query: ast.Query, text: str) -> None:
    """Refuse functions that call themselves, and those that call others too deep."""
    declared = {function.name: function for function in query.functions}
    calls = {
        name: {each.name for each in parts(function.body) if isinstance(each, ast.Call)}
        for name, function in declared.items()
    }
    try:
        inner_first = [name for name in TopologicalSorter(calls).static_order() if name in calls]
    except CycleError as error:
        first = next(function for name, function in declared.items() if name in error.args[1])
        raise refuse("recursive function", text, first.span) from None
    depths: dict[str, int] = {}
    for name in inner_first:
        depths[name], _ = deepest(declared[name], depths)
    nesting, place = deepest(query.body, depths)
    if max(nesting, *depths.values(), 0) > MAX_NESTING:
        message = f"functions call each other more than {MAX_NESTING} constructs deep"
        raise QueryError(message, text=text, span=place)
