"""Which subscriptions an epoch has, and which branch serves each.

A subscription keeps the branch it began with for good, and a branch lasts as long as one of its members; nobody's
answer depends on who else is there (LAWS 3.7).
So a new subscription joins a branch only where the branch has seen exactly what is in front of the new one: both
began with the same epoch, or before any of their streams did.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from operator import attrgetter

from anabranch.algebra.reactions.signature import Policy
from anabranch.branch.display.branch import DisplayQuery
from anabranch.branch.family import family_of, twin_of
from anabranch.branch.past.queries import RecalledQuery
from anabranch.branch.remote.written import is_sent
from anabranch.runtime.standing import Standing
from anabranch.runtime.units import looks_outside
from anabranch.spark.plan.dividing import can_be_divided
from anabranch.spark.plan.epoch_plan import Plan, StreamPlan, Subscription
from anabranch.spark.plan.roles import Functions, Role, role_of
from anabranch.stream.path import Path
from anabranch.stream.reading.parse import parse_root


def subscriptions_of(
    before: Plan | None,
    wanted: Mapping[str, str],
    epoch: int,
    begun: Collection[str],
    streams: Collection[StreamPlan],
    functions: Functions = (),
    *,
    endless: bool = True,
    sharing: bool = True,
    aborted: Mapping[int, str] | None = None,
    policies: Mapping[str, Policy] | None = None,
    timed: bool = False,
    strands: Callable[[int], int] = lambda others: 0,
    rooted: Collection[str] = (),
    checked: Collection[str] = (),
) -> tuple[tuple[Subscription, ...], int]:
    """The subscriptions of an epoch, by their numbers, and the number that the next one gets.

    Who was there with the same query and policy goes on, others begin here; `begun` are the streams that had elements
    before, and `endless` says that nobody waits for the streams' end.
    Those that were `aborted` stay what they are, and are answered no more.
    Where `timed`, the answers of new ones are told with their moments.
    One over updates is answered in so many `strands`, which depends on how many others there are, if it can be.
    Of the streams in `rooted` the root element is known: a query with a path to it ends, for a root has no end.
    Those in `checked` were known before, so who was there then need not be asked again.
    """
    ended, chosen = aborted or {}, policies or {}
    known = before.subscriptions if before else ()
    held = {each.name: replace(each, aborted=ended[each.id]) if each.id in ended else each for each in known}
    following = before.next_id if before else 0
    found = {
        name: held[name]
        for name, text in wanted.items()
        if name in held and (held[name].text, held[name].policy) == (text, chosen.get(name, "accumulate"))
    }
    branches = {_sight(each): each.branch for each in found.values() if each.family and not each.aborted}
    by_name = {stream.stream: stream for stream in streams}
    for name, text in wanted.items():
        if name in found:
            continue
        role = role_of(Subscription(following, name, text, epoch, timed=timed), by_name, functions)
        late = tuple(stream for stream in role.streams if stream in begun)
        divided = strands(sum(each.shows and not each.aborted for each in found.values())) if role.shows else 0
        divided = divided if divided and can_be_divided(role, by_name, functions) else 0
        family = _family(role, by_name, divided, endless=endless) if sharing and role.is_branch else ""
        policy = chosen.get(name, "accumulate")
        new = replace(role.subscription, late=late, family=family, policy=policy, strands=divided)
        new = replace(new, shows=role.shows, edited=role.edited, timed=timed and not role.shows)
        if family and (branch := branches.setdefault(_sight(new), new.id)) != new.id:
            new = replace(new, joined=branch)
        found[name] = new
        following += 1
    ends = _Outside({name: by_name[name] for name in rooted})
    fresh = set(rooted) - set(checked)
    for name, each in found.items():
        if each.aborted or (name in held and not fresh):
            continue
        if reason := ends.reason(role_of(each, by_name, functions)):
            found[name] = replace(each, aborted=reason)
    return tuple(sorted(found.values(), key=attrgetter("id"))), following


class _Outside:
    """Which queries look at the roots of their streams; those of one shape are asked once."""

    def __init__(self, streams: Mapping[str, StreamPlan]) -> None:
        self._roots = {name: parse_root(stream.root.encode()) for name, stream in streams.items()}
        self._known: dict[int, tuple[Standing, str | None]] = {}

    def reason(self, role: Role) -> str | None:
        """Why a query ends, None where it goes on, or where a root is not known yet."""
        query = role.query
        if not isinstance(query, Standing) or not set(query.streams) <= self._roots.keys():
            return None
        if id(query) not in self._known:
            self._known[id(query)] = query, looks_outside(query, self._roots)
        return self._known[id(query)][1]


def _family(role: Role, streams: Mapping[str, StreamPlan], strands: int, *, endless: bool) -> str:
    if isinstance(role.query, DisplayQuery | RecalledQuery):
        divided = f" in {strands} strands" if strands else ""
        return f"history{divided} {role.subscription.text}"  # only twins share one
    if is_sent(role.subscription.text):
        return f"sent {role.subscription.text}"  # and of these as well, whatever query it was made of
    if not isinstance(role.query, Standing):
        return ""  # what the builder made goes by itself
    if role.panes is not None:
        return twin_of(role.standing)
    given = {name: streams[name].time for name in role.standing.streams}
    times = {name: None if path is None else Path.parse(path) for name, path in given.items()}
    return family_of(role.standing, times, endless=endless)


def _sight(subscription: Subscription) -> tuple[str, Policy, int, tuple[str, ...]]:
    """What members of one branch have in common: the family and the policy, and the elements they see."""
    first = subscription.first if subscription.late else -1
    return subscription.family, subscription.policy, first, subscription.late
