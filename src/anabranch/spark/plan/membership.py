"""The subscriptions of an epoch, and the branch that serves each.

A subscription keeps its first branch for good, and a branch lasts as long as one of its members; no answer depends on
other subscriptions (LAWS 3.7).
So a new subscription joins a branch only where the branch has seen exactly the same elements: both began with the same
epoch, or before any of their streams did.

A query that reads a stream of updates entry by entry may be divided into strands (`kinds/display.py`).
Strands need one more stage, and each strand reads and judges all updates; so they pay where there are many shards, and
more shards than such queries.
No answer depends on it, and a query keeps its number of strands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from operator import attrgetter

from anabranch.algebra.reactions.signature import Policy
from anabranch.runtime.standing import Standing
from anabranch.runtime.units import looks_outside
from anabranch.spark.plan.epoch_plan import MOST_STRANDS, Plan, Registration
from anabranch.spark.plan.kinds import decide, kind_of, read_query
from anabranch.spark.plan.kinds.kind import Functions, QueryContext, QueryKind
from anabranch.stream.limits import NO_CAPS, CostCaps
from anabranch.stream.reading.source import KnownStream

_MANY = 4
"""With fewer shards, reading all updates in each of them costs as much as it saves."""


def strands_for(asked: int | None, shards: int, others: int) -> int:
    """The number of strands of a new query, if it can be divided, beside `others` over updates; 0 for none.

    By default, shards are divided among such queries.
    """
    found = shards // (others + 1) if asked is None and shards >= _MANY else asked or 0
    return min(found, MOST_STRANDS) if found > 1 else 0


def subscriptions_of(
    before: Plan | None,
    wanted: Mapping[str, str],
    epoch: int,
    begun: Collection[str],
    streams: Collection[KnownStream],
    functions: Functions = (),
    *,
    endless: bool = True,
    sharing: bool = True,
    aborted: Mapping[int, str] | None = None,
    policies: Mapping[str, Policy] | None = None,
    caps: Callable[[str], CostCaps] = lambda name: NO_CAPS,
    timed: bool = False,
    strands: Callable[[int], int] = lambda others: 0,
    rooted: Collection[str] = (),
    checked: Collection[str] = (),
) -> tuple[tuple[Registration, ...], int]:
    """The subscriptions of an epoch, by their numbers, and the number of the next one.

    A subscription with the same query and policy as before continues, others begin here, with `caps`; `begun` are the
    streams that had elements before, and `endless` says that the streams' end is not waited for.
    Subscriptions that were `aborted` stay, and are answered no more.
    With `timed`, the answers of new ones are recorded with their moments.
    A query over updates gets `strands` of that number, which depends on the number of others, if it can be divided.
    For the streams in `rooted` the root element is known: a query with a path to it ends, for a root has no end.
    Roots in `checked` were known before: earlier subscriptions are not checked against them again.
    """
    ended, chosen = aborted or {}, policies or {}
    held = before.by_name if before else {}
    following = before.next_id if before else 0
    found: dict[str, Registration] = {}
    fresh: dict[str, str] = {}
    for name, text in wanted.items():  # all of them, whenever one comes: this has to be cheap
        each = held.get(name)
        if each is not None and each.text == text and each.policy == chosen.get(name, "accumulate"):
            found[name] = each if each.id not in ended else replace(each, aborted=ended[each.id])
        else:
            fresh[name] = text
    known = QueryContext({stream.name: stream for stream in streams}, functions, endless)
    queries = _decide_anew(found, before, known)
    branches = {_branch_key(each): each.branch for each in found.values() if each.family and not each.aborted}
    for name, text in fresh.items():
        query = kind_of(Registration(following, name, text, epoch, timed=timed), known)
        divided = strands(sum(each.shows and not each.aborted for each in found.values())) if query.shows else 0
        divided = divided if divided and query.can_be_divided(known) else 0
        limits = caps(name)
        new = Registration(
            following,
            name,
            text,
            epoch,
            query.name,
            query.streams,
            late=tuple(stream for stream in query.streams if stream in begun),
            family=query.family(text, divided) if sharing and query.is_branch else "",
            policy=chosen.get(name, "accumulate"),
            shows=query.shows,
            edited=query.edited,
            timed=timed and not query.shows,
            strands=divided,
            most_held=limits.held,
            most_overruns=limits.overruns,
        )
        if new.family and (branch := branches.setdefault(_branch_key(new), new.id)) != new.id:
            new = replace(new, joined=branch)
        found[name], queries[name] = new, query
        following += 1
    ends = _Outside({name: known.streams[name] for name in rooted})
    for name in fresh if set(rooted) <= set(checked) else found:
        each = found[name]
        if each.aborted or not known.streams.keys() >= set(each.streams):
            continue
        query = queries.get(name) or read_query(each, known)
        if query.standing is not None and (reason := ends.reason(query.standing)):
            found[name] = replace(each, aborted=reason)
    return tuple(sorted(found.values(), key=attrgetter("id"))), following


def _decide_anew(found: dict[str, Registration], before: Plan | None, known: QueryContext) -> dict[str, QueryKind]:
    """Decide the kinds of queries again whose streams have changed; gives their queries."""
    earlier = {each.name: each for each in before.streams} if before else {}
    changed = {name for name, stream in known.streams.items() if earlier.get(name) != stream}
    queries: dict[str, QueryKind] = {}
    for name, each in found.items() if changed else ():
        if not each.aborted and not changed.isdisjoint(each.streams):
            found[name], queries[name] = decide(each, known)
    return queries


class _Outside:
    """Which queries read the roots of their streams; cached by shape."""

    def __init__(self, streams: Mapping[str, KnownStream]) -> None:
        self._roots = {name: stream.root() for name, stream in streams.items()}
        self._known: dict[int, tuple[Standing, str | None]] = {}

    def reason(self, query: Standing) -> str | None:
        """Why a query ends, None where it goes on, or where a root is not known yet."""
        if not set(query.streams) <= self._roots.keys():
            return None
        if id(query) not in self._known:
            self._known[id(query)] = query, looks_outside(query, self._roots)
        return self._known[id(query)][1]


def _branch_key(subscription: Registration) -> tuple[str, Policy, CostCaps, int, tuple[str, ...]]:
    """What members of one branch have in common: the family, policy and caps, and the elements they see."""
    first = subscription.first if subscription.late else -1
    return subscription.family, subscription.policy, subscription.caps, first, subscription.late
