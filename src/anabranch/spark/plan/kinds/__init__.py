"""The kinds of queries: decided once, when a subscription is registered, and stored in the plan by name.

A new kind of query is a class in a module of this folder, and a line in `_ORDER`.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from anabranch.errors import StateError
from anabranch.spark.plan.epoch_plan import Registration
from anabranch.spark.plan.kinds.chained import ChainedKind
from anabranch.spark.plan.kinds.display import DisplayKind
from anabranch.spark.plan.kinds.growing import GrowingKind
from anabranch.spark.plan.kinds.kind import QueryContext, QueryKind
from anabranch.spark.plan.kinds.operators import PlanKind
from anabranch.spark.plan.kinds.past import PastKind
from anabranch.spark.plan.kinds.remote import (
    EvolvingTupleKind,
    RemotePaneKind,
    RemoteTupleKind,
    RemoteWindowKind,
    TupleReaderKind,
)
from anabranch.spark.plan.kinds.standing import (
    BlockingKind,
    IntervalJoinKind,
    ItemKind,
    KeyedJoinKind,
    OrderedItemKind,
    PaneKind,
    SessionKind,
    SessionPaneKind,
    StepJoinKind,
    UnreadKind,
    WindowKind,
)

_ORDER: tuple[type[QueryKind], ...] = (
    RemoteTupleKind,
    EvolvingTupleKind,
    TupleReaderKind,
    RemotePaneKind,
    RemoteWindowKind,
    PlanKind,
    PastKind,
    DisplayKind,
    ChainedKind,
    UnreadKind,
    ItemKind,
    OrderedItemKind,
    PaneKind,
    WindowKind,
    SessionPaneKind,
    SessionKind,
    StepJoinKind,
    IntervalJoinKind,
    KeyedJoinKind,
    GrowingKind,
    BlockingKind,
)
"""A query is of the first kind that can read it."""
KINDS = MappingProxyType({each.name: each for each in _ORDER})
"""All kinds, by their names in plans."""


def decide(asked: Registration, known: QueryContext) -> tuple[Registration, QueryKind]:
    """Decide the kind of a subscription's query; gives the subscription with its kind, and the query."""
    query = kind_of(asked, known)
    return replace(asked, kind=query.name, streams=query.streams), query


def kind_of(asked: Registration, known: QueryContext) -> QueryKind:
    """The query of a subscription whose kind is not decided yet, as one of its kind."""
    for each in _ORDER:
        if (query := each.read(asked, known)) is not None:
            return query
    raise AssertionError("the last kind takes all queries")


def read_query(asked: Registration, known: QueryContext) -> QueryKind:
    """The query of a subscription whose kind is decided, over known streams."""
    query = KINDS[asked.kind].read(asked, known)
    if query is None:
        raise StateError(f"'{asked.name}' was registered as '{asked.kind}', and this release does not take it for that")
    return query


def alone_as(name: str, text: str, known: QueryContext) -> QueryKind | None:
    """A query without a property tree, which is explained by itself; None for others."""
    asked = Registration(-1, name, text, 0)
    kinds = (PlanKind, PastKind, DisplayKind, GrowingKind)
    return next((query for each in kinds if (query := each.read(asked, known)) is not None), None)


def not_begun(name: str, text: str, known: QueryContext) -> Registration:
    """A subscription before its first epoch."""
    found, query = decide(Registration(-1, name, text, 0), known)
    return replace(found, shows=query.shows, edited=query.edited)
