"""The reactions of subscriptions to the accents of a stream, past or planned, for people.

Reactions are not logged: they follow from a query's lineage and policy, from its first epoch, and from the events since
(LAWS 4), so they are computed by replaying these to fresh followers.
Subscriptions that agree in these share one follower, and thousands have a few.
A plan of operators gets the events itself; whether a path in doubt has ended it depends on an item, and does not show.
A query over updates has no follower, and ends at an accent on a path that it reads (LAWS 4.5).

A query over several streams gets their events epoch by epoch, and within an epoch stream by stream in its order; only
which of two accents of one epoch come out together may differ from the run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from anabranch.algebra.accents.events import Announced
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.sets import items_of
from anabranch.algebra.plans.interpret import Plan as Operators
from anabranch.algebra.plans.interpret import RunningPlan
from anabranch.algebra.plans.written import read_plan, streams_of
from anabranch.algebra.reactions.course import Change, Closing
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch.plans.plans import partitioned, source_of
from anabranch.errors import Aborted
from anabranch.language import parse
from anabranch.law.arrivals.past import named
from anabranch.law.history.display_units import alters_in
from anabranch.runtime.evolution.follower import Follower
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import standing
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.evolution.log import Logged
from anabranch.spark.evolution.views import KnownLog, known_log
from anabranch.spark.plan.epoch_plan import Plan, Registration
from anabranch.spark.plan.files import Plans
from anabranch.spark.plan.kinds.kind import shapes_of
from anabranch.spark.plan.kinds.operators import PlanKind
from anabranch.stream.elements import Accent, Place, Punctuation
from anabranch.stream.reading.source import KnownStream

Deed: TypeAlias = Literal["passes it on", "reckons with it", "ends"]
DEEDS: tuple[Deed, ...] = ("passes it on", "reckons with it", "ends")

_Place: TypeAlias = tuple[int, Place]
"""A partition, and the place of an element in it."""
_Listener: TypeAlias = Callable[[Announced], Deed | None]
"""The reaction of a query to an event, None if it does not concern it; Aborted where it ends."""


@dataclass(frozen=True, slots=True)
class SubscriptionReaction:
    """The reaction of some subscriptions to an accent."""

    deed: Deed
    subscriptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    """The reactions of a stream's subscriptions to an accent that would come next."""

    reactions: tuple[SubscriptionReaction, ...]
    reasons: Mapping[str, str]
    """By subscription: why it would end."""
    others: tuple[str, ...]
    """The subscriptions that it does not concern."""


def forecast(
    checkpoint: Checkpoint | None, newest: Manifest | None, plan: Plan, announced: Sequence[Announced], stream: str
) -> Forecast:
    """The reactions of a plan's subscriptions to further accents of a stream, each in another partition."""
    did: dict[Deed, list[str]] = {}
    reasons: dict[str, str] = {}
    others: list[str] = []
    going = replace(plan, subscriptions=tuple(each for each in plan.subscriptions if not each.aborted))
    logs = _Logs(checkpoint, newest.evolution if newest else {})
    for group, names in _groups(going, stream).items():
        listener = _listener_of(group)
        for each, _ in _told(logs, group):
            _deed(listener, each)
        found = [_deed(listener, each) for each in announced]
        deed = next((deed for deed in reversed(DEEDS) if deed in (each for each, _ in found)), None)
        if deed is None:
            others += names
        else:
            did.setdefault(deed, []).extend(names)
            reasons |= {name: reason for _, reason in found if reason for name in names}
    return Forecast(_reactions(did), reasons, tuple(others))


def reactions(
    checkpoint: Checkpoint, stream: str, newest: Manifest, plan: Plan | None = None
) -> Mapping[_Place, tuple[SubscriptionReaction, ...]]:
    """By partition and place of an accent: the reactions of the newest epoch's subscriptions that it concerns.

    `plan` is that of the newest epoch, where the caller has it.
    """
    found: dict[_Place, dict[Deed, list[str]]] = {}
    logs = _Logs(checkpoint, newest.evolution)
    for group, names in _groups(plan or Plans(checkpoint).ran(newest.epoch), stream).items():
        listener = _listener_of(group)
        for each, is_shown in _told(logs, group):
            deed, _ = _deed(listener, each)
            if deed is not None and each.stream == stream and not is_shown:
                found.setdefault((each.partition, each.event.place), {}).setdefault(deed, []).extend(names)
            if deed == "ends":
                break
    return {place: _reactions(did) for place, did in found.items()}


def _reactions(did: Mapping[Deed, Sequence[str]]) -> tuple[SubscriptionReaction, ...]:
    return tuple(SubscriptionReaction(deed, tuple(did[deed])) for deed in DEEDS if deed in did)


@dataclass(frozen=True)
class _SubscriberGroup:
    """Subscriptions with equal reactions."""

    asked: Lineage | Operators
    policy: Policy
    firsts: tuple[int, ...]
    """By input: their first epoch, -1 for the beginning of the stream."""
    names: tuple[str, ...]
    """By input: its stream."""
    streams: tuple[KnownStream, ...] = field(compare=False)
    """The same; in one plan the name tells all, and a schema cannot be hashed."""


def _groups(plan: Plan, stream: str) -> dict[_SubscriberGroup, list[str]]:
    """The subscriptions to a stream.

    Those with the same question, policy and beginning are of one group, and lineage is found once for them.
    """
    streams = {each.name: each for each in plan.streams}
    roots = {name: each.namespaces for name, each in streams.items()}
    alike: dict[Hashable, list[tuple[int, Registration]]] = {}
    for number, each in enumerate(plan.subscriptions):
        if not each.streams or stream in each.streams:
            alike.setdefault((_question(each), each.policy, each.first, each.late), []).append((number, each))
    found: dict[_SubscriberGroup, list[tuple[int, str]]] = {}
    for members in alike.values():
        group = _group_of(members[0][1], streams, roots)
        if group is not None and any(each.name == stream for each in group.streams):
            found.setdefault(group, []).extend((number, each.name) for number, each in members)
    return {group: [name for _, name in sorted(members)] for group, members in found.items()}


def _question(subscription: Registration) -> Hashable:
    """What subscriptions with one lineage have in common: the shape, where no result is computed from constants."""
    if subscription.kind == PlanKind.name or subscription.shows or subscription.edited:
        return subscription.text
    shape = shapes_of(()).of(subscription.text).shape
    return subscription.text if shape.computes_results else shape


def _group_of(
    subscription: Registration, streams: Mapping[str, KnownStream], roots: Mapping[str, Mapping[str, str]]
) -> _SubscriberGroup | None:
    """The group of a subscription; None where one of its streams is not there."""
    text = subscription.text
    asked: Lineage | Operators
    if subscription.kind == PlanKind.name:
        asked = read_plan(text)
        names = streams_of(asked)
    elif subscription.shows or subscription.edited:
        query = parse(text)
        names = named(query)
        if not set(names) <= streams.keys():
            return None
        is_display = all(streams[name].source.updates for name in names)
        asked = lineage_of(standing(query, {}, text), roots=roots, is_display=is_display)
        names = tuple(each for names_of in asked.streams for each in names_of)
    else:
        shape = shapes_of(()).of(text).shape
        asked = lineage_of(standing(parse(text), {}) if shape.computes_results else shape.standing, roots=roots)
        names = tuple(each for names_of in asked.streams for each in names_of)
    if not set(names) <= streams.keys():
        return None
    firsts = tuple(subscription.first if name in subscription.late else -1 for name in names)
    known = tuple(streams[name] for name in names)
    return _SubscriberGroup(asked, subscription.policy, firsts, tuple(names), known)


class _Logs:
    """The logs of streams, read once for all groups: apart from those that tasks in this process read on in."""

    def __init__(self, checkpoint: Checkpoint | None, logged: Mapping[str, Logged]) -> None:
        self._checkpoint = checkpoint
        self._logged = logged
        self._read: dict[str, KnownLog] = {}

    def of(self, stream: KnownStream) -> KnownLog | None:
        """The log of a stream; None where it has none."""
        logged = self._logged.get(stream.name)
        if self._checkpoint is None or logged is None:
            return None
        if stream.name not in self._read:
            found = self._read[stream.name] = known_log(self._checkpoint.evolution, stream, None)
            if not found.read_on(self._checkpoint.evolution, logged):
                raise logged.damaged(self._checkpoint.evolution)
        return self._read[stream.name]


def _told(logs: _Logs, group: _SubscriberGroup) -> Iterator[tuple[Announced, bool]]:
    """The events of a group, in order, and whether each was shown at its beginning."""
    later: list[tuple[int, Announced]] = []
    streams = {each.name: each for each in group.streams}
    for name, first in dict.fromkeys(zip(group.names, group.firsts, strict=True)):
        known = logs.of(streams[name])
        if known is None:
            continue
        view = known.view(first)
        yield from ((each, True) for each in view.events[: view.initial])
        since = view.events[view.initial :]
        later += zip(known.epochs[len(known.epochs) - len(since) :], since, strict=True)
    later.sort(key=lambda each: each[0])
    yield from ((each, False) for _, each in later)


def _deed(listener: _Listener, announced: Announced) -> tuple[Deed | None, str]:
    """The reaction of a query to an event, and why it ends."""
    try:
        return listener(announced), ""
    except Aborted as error:
        return "ends", error.message


def _listener_of(group: _SubscriberGroup) -> _Listener:
    match group.asked:
        case Lineage() as lineage:
            return _following(lineage, group)
        case operators:
            return _operating(operators, group)


def _following(lineage: Lineage, group: _SubscriberGroup) -> _Listener:
    """A query with an outlet."""
    follower = Follower(lineage, group.policy, {each.name: each.source for each in group.streams})

    def listen(announced: Announced) -> Deed | None:
        accents = follower.hear(announced)
        if follower.aborted is not None:
            raise Aborted(follower.aborted)
        if not isinstance(announced.event, Accent):
            return None
        if alters_in(accents) if lineage.is_display else accents:
            return "passes it on"
        return "reckons with it" if follower.reads(announced) else None

    return listen


def _operating(plan: Operators, group: _SubscriberGroup) -> _Listener:
    """A plan of operators, without items."""
    partitions = {each.name: len(each.source.partitions) for each in group.streams}
    promises = {
        source_of(each.name, number): Evolution.of(each.source).domains
        for each in group.streams
        for number in range(partitions[each.name])
    }
    query = RunningPlan(partitioned(plan, partitions), policy=group.policy, promises=promises)

    def listen(announced: Announced) -> Deed | None:
        source = source_of(announced.stream, announced.partition)
        match announced.event:
            case Accent(where, evolution):
                told = list(query.take(source, Change(items_of(where), evolution)))
                if any(isinstance(each, Change) for each in told):
                    return "passes it on"
                return "reckons with it" if query.looks_at(source, evolution.path) else None
            case Punctuation(where) if where is not None:
                list(query.take(source, Closing(items_of(where))))
        return None

    return listen
