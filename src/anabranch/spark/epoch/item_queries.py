"""The subscriptions that tasks answer item by item: queries of one shape are compiled together, equal ones run once.

With sharing turned off, each query is compiled and evaluated by itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial

from anabranch.algebra.reactions.signature import Policy
from anabranch.columnar.items.programs import ItemQueries, ItemQuery
from anabranch.columnar.tables.table_columns import DocumentTables
from anabranch.language import parse
from anabranch.runtime.shapes import Shape, Shaped
from anabranch.runtime.standing import Standing, standing
from anabranch.runtime.units import Units
from anabranch.spark.evolution.following import ShapeGroup
from anabranch.spark.plan.documents import DocumentFile, load_all
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.kinds.kind import Functions, shapes_of
from anabranch.spark.plan.kinds.standing import ItemKind
from anabranch.stream.tree import Element
from anabranch.values.sequences import Values

_CACHED_QUERIES = 10_000
"""The number of queries whose evaluators are cached."""
_MOST_TABLES = 16
"""The number of documents whose tables are cached."""


@dataclass(frozen=True, slots=True)
class StreamQueries:
    """The numbered item queries of one stream, and its groups of queries that accents affect alike."""

    queries: list[ItemQueries] = field(default_factory=list)
    alike: list[ShapeGroup] = field(default_factory=list)

    @property
    def members(self) -> list[ItemQuery]:
        """The queries by their numbers."""
        return [member for group in self.queries for member in group.members]


def item_queries(
    plan: Plan,
    functions: Functions,
    roots: Mapping[str, Element],
    borders: Mapping[str, tuple[int, ...]],
    documents: tuple[DocumentFile, ...] = (),
    apart: frozenset[int] = frozenset(),
) -> dict[str, StreamQueries]:
    """The queries of each known stream; `borders` are the epochs in which a stream evolved.

    Equal queries run once if their stream did not evolve between their first epochs, and they end together if they take
    too much (LAWS 2.9); those of subscriptions `apart` might not.
    """
    streams = {stream.name: stream for stream in plan.streams}
    shapes = shapes_of(functions)
    found: dict[tuple[Shape, Policy, int, int | None, int | None], dict[Shaped, _Member]] = {}
    for each in plan.subscriptions:
        if each.kind != ItemKind.name or each.aborted:
            continue
        shaped = shapes.of(each.text)
        (stream,) = shaped.shape.standing.streams
        if stream not in streams:
            continue
        first = beginning(each, stream, borders.get(stream, ()))
        owner = None if plan.sharing and each.id not in apart else each.id
        group = shaped.shape, each.policy, first, each.most_overruns, owner
        member = found.setdefault(group, {}).setdefault(shaped, _Member(each.text, []))
        member.subscribers.append((each.id, each.name))
    by_stream = {name: StreamQueries() for name in streams}
    for (shape, policy, first, *_), members in found.items():
        (stream,) = shape.standing.streams
        held = by_stream[stream]
        standing_query, marks = shape.standing, shape.marks
        if not plan.sharing:
            (alone,) = members.values()
            standing_query, marks = _standing(alone.text, functions), ()
        made = [
            ItemQuery(
                tuple(each.subscribers),
                shaped.constants if plan.sharing else (),
                _Law(each.text, functions, _read_by(shape, documents), roots[stream]),
            )
            for shaped, each in members.items()
        ]
        tables = {each.document.name: _tables(each) for each in _read_by(shape, documents)}
        before = sum(len(each.members) for each in held.queries)
        hole = standing_query.expanded_hole
        assert hole is not None, "it answers item by item"
        held.queries.append(ItemQueries(hole, marks, made, standing_query.scope, tables, standing_query.at_top))
        numbers = range(before, before + len(made))
        held.alike.extend(_alike(shape, standing_query, policy, first, numbers, members, functions, roots[stream]))
    return by_stream


def _alike(
    shape: Shape,
    query: Standing,
    policy: Policy,
    first: int,
    numbers: range,
    members: Mapping[Shaped, _Member],
    functions: Functions,
    root: Element,
) -> list[ShapeGroup]:
    """Group the queries of a shape by how accents affect them: all together, or one by one if constants matter."""
    if not shape.computes_results:
        return [ShapeGroup(lambda: query, policy, first, numbers, root.namespaces)]
    texts = [each.text for each in members.values()]
    return [
        ShapeGroup(partial(_standing, text, functions), policy, first, range(number, number + 1), root.namespaces)
        for number, text in zip(numbers, texts, strict=True)
    ]


@lru_cache(maxsize=_CACHED_QUERIES)
def _standing(text: str, functions: Functions) -> Standing:
    return standing(parse(text), dict(functions))


def beginning(subscription: Registration, stream: str, borders: tuple[int, ...]) -> int:
    """The first epoch whose accents a subscription, or its branch, saw, rounded to the stream's borders; -1 for its
    beginning.
    """
    seen = bisect_left(borders, subscription.opened) if stream in subscription.missed else 0
    return borders[seen - 1] + 1 if seen else -1


@dataclass(frozen=True, slots=True)
class _Member:
    """A query, and the subscriptions with this query, by number and name."""

    text: str
    subscribers: list[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class _Law:
    """The reference evaluator of one query, created on first use."""

    text: str
    functions: Functions
    documents: tuple[DocumentFile, ...]
    root: Element

    def __call__(self, item: Element, forward: Callable[[Values], Values] | None = None) -> str:
        return _cached_units(self.text, self.functions).over(self.documents).item(self.root, item, forward).text


def _read_by(shape: Shape, documents: tuple[DocumentFile, ...]) -> tuple[DocumentFile, ...]:
    """The documents that queries of a shape read."""
    return tuple(each for each in documents if each.document.name in shape.standing.documents)


@lru_cache(maxsize=_MOST_TABLES)
def _tables(document: DocumentFile) -> DocumentTables:
    """The tables of a document, made once per process, when they are needed."""
    return DocumentTables(lambda: document.load().document)


class _CurrentUnits:
    """The evaluator of one query for the present versions of its documents; earlier versions are dropped."""

    def __init__(self, text: str, functions: Functions) -> None:
        self._text, self._functions = text, functions
        self._made: tuple[tuple[DocumentFile, ...], Units] | None = None

    def over(self, documents: tuple[DocumentFile, ...]) -> Units:
        """The evaluator over these documents."""
        if self._made is None or self._made[0] != documents:
            query = _standing(self._text, self._functions)
            self._made = documents, Units(query, dict(self._functions), load_all(documents))
        return self._made[1]


@lru_cache(maxsize=_CACHED_QUERIES)
def _cached_units(text: str, functions: Functions) -> _CurrentUnits:
    return _CurrentUnits(text, functions)
