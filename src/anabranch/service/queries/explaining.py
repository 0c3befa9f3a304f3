"""What a query would cost beside those that run, in words: a pass, the work for each item, what it remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anabranch.service.queries.checking import CheckedQuery, QueryExplanation
from anabranch.service.queries.sharing import QueryShare


@dataclass(frozen=True, slots=True)
class QueryCost:
    """The cost of one more query."""

    streams: str
    """Which streams have to be read for it."""
    per_item: str
    state: str


def cost_of(
    checked: CheckedQuery,
    explained: QueryExplanation,
    shares: Sequence[QueryShare],
    readers: Mapping[str, int],
    shapes: int,
) -> QueryCost:
    """The cost of a query; `readers` are those of its streams by now, and `shapes` the shapes of all."""
    return QueryCost(_passes(readers), _per_item(checked, explained, shares, shapes), _state(checked, explained))


def _passes(readers: Mapping[str, int]) -> str:
    fresh = [f"'{each}'" for each, count in readers.items() if not count]
    if not readers:
        return "none: it reads no stream"
    if not fresh:
        return "none: the stream is read already" if len(readers) == 1 else "none: the streams are read already"
    return f"one pass over {' and '.join(fresh)}, which nobody reads yet"


def _per_item(checked: CheckedQuery, explained: QueryExplanation, shares: Sequence[QueryShare], shapes: int) -> str:
    found, first = {each.what: each for each in shares}, explained.columns.partition("\n")[0]
    if "twin" in found and checked.registration.kind == "items":
        return f"nothing: it is answered with {_named(found['twin'])}"
    if not explained.is_columnar:
        return f"item by item and by itself, {first}"
    if "shape" in found:
        return f"in columns: one more row of constants beside {found['shape'].count:,} of its shape"
    if checked.registration.kind == "items":
        return f"in columns: its conditions are matched in one index with those of {shapes:,} other shapes"
    return first


def _named(share: QueryShare) -> str:
    return f"'{share.names[0]}'" if share.names else "another"


_KEEPS = {
    "items": "none",
    "unread": "none",
    "items in order": "the items that wait for those of other partitions, and no others",
    "windows by panes": "aggregates of the windows that are open, not their items: it does not grow with the stream",
    "sessions by panes": "aggregates of the sessions that are open, not their items: bounded by keys that are active",
    "windows": "the items of the windows that are open: bounded by a window's length and the stream's rate",
    "sessions": "the items of the sessions that are open: bounded by keys that are active",
    "step join": "the items of the windows that are open on each side, and no others",
    "interval join": "the items of each side that may still meet one: bounded by the interval",
    "chain": "what its loop holds, and the results of the windows that are open",
    "keyed join": "the items of each side whose keys are not closed: bounded by punctuations, or by 'retain'",
}
"""By kind of query in plans."""


def _state(checked: CheckedQuery, explained: QueryExplanation) -> str:
    if checked.endless.growth:
        return f"grows with the stream: {'; '.join(checked.endless.growth)}"
    if explained.keeps:
        return f"it keeps {'; '.join(explained.keeps)}"
    return _KEEPS.get(checked.registration.kind, "what it shows, and no items")
