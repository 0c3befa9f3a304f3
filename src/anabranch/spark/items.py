"""The subscriptions that tasks answer item by item, as columns take them: alike ones together, equal ones once.

With sharing turned off each is by itself, compiled from its own text and judged alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial

from anabranch.columnar.programs import ItemQueries, ItemQuery
from anabranch.language import ast, parse
from anabranch.reference.shapes import Constant, Shape
from anabranch.reference.standing import Standing, standing
from anabranch.reference.units import Units
from anabranch.spark.plan import Plan
from anabranch.spark.roles import Functions, documents_of, remembers, shapes_of
from anabranch.stream.tree import Element

_UNITS = 10_000
"""For so many queries the law is kept ready."""


def item_queries(plan: Plan, functions: Functions, roots: Mapping[str, Element]) -> dict[str, list[ItemQueries]]:
    """The queries of each stream that is there."""
    streams = {stream.stream: stream for stream in plan.streams}
    shapes = shapes_of(functions)
    subscribers: dict[tuple[Shape, tuple[Constant, ...], int], list[tuple[int, str]]] = {}
    texts: dict[tuple[Shape, tuple[Constant, ...], int], str] = {}
    for each in plan.subscriptions:
        shaped = shapes.of(each.text)
        query = shaped.shape.standing
        if set(query.streams) <= streams.keys() and not remembers(query, streams):
            key = shaped.shape, shaped.constants, 0 if plan.sharing else each.id
            subscribers.setdefault(key, []).append((each.id, each.name))
            texts[key] = each.text
    members: dict[Shape, list[ItemQuery]] = {}
    found: dict[str, list[ItemQueries]] = {name: [] for name in streams}
    for key, asked in subscribers.items():
        shape, constants, _ = key
        (stream,) = shape.standing.streams
        slow = partial(_piece, texts[key], functions, plan.documents, roots[stream])
        if plan.sharing:
            if shape not in members:
                members[shape] = []
                found[stream].append(ItemQueries(_hole(shape.standing), shape.marks, members[shape]))
            members[shape].append(ItemQuery(tuple(asked), constants, slow))
        else:
            hole = _hole(standing(parse(texts[key]), dict(functions)))
            found[stream].append(ItemQueries(hole, (), [ItemQuery(tuple(asked), (), slow)]))
    return found


def _hole(query: Standing) -> ast.Expression | None:
    return None if query.documents else query.plain_hole


def _piece(
    text: str, functions: Functions, documents: tuple[tuple[str, str], ...], root: Element, item: Element
) -> str:
    return _units(text, functions, documents).item(root, item).text


@lru_cache(maxsize=_UNITS)
def _units(text: str, functions: Functions, documents: tuple[tuple[str, str], ...]) -> Units:
    return Units(standing(parse(text), dict(functions)), dict(functions), documents_of(documents))
