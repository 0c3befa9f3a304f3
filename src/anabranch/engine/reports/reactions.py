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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
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
from anabranch.law.history.changed import Dependence
from anabranch.runtime.evolution.follower import Follower
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import standing
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.evolution.log import Logged
from anabranch.spark.evolution.views import known_log
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.files import Plans
from anabranch.spark.plan.kinds.kind import shapes_of
from anabranch.spark.plan.kinds.operators import PlanKind
from anabranch.stream.elements import Accent, Place, Punctuation
from anabranch.stream.path import Path
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
    for group, names in _groups(going, stream).items():
        listener = _listener_of(group)
        for each, _ in _told(checkpoint, newest.evolution if newest else {}, group):
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
    checkpoint: Checkpoint, stream: str, newest: Manifest
) -> Mapping[_Place, tuple[SubscriptionReaction, ...]]:
    """By partition and place of an accent: the reactions of the newest epoch's subscriptions that it concerns."""
    plan = Plans(checkpoint).ran(newest.epoch)
    found: dict[_Place, dict[Deed, list[str]]] = {}
    for group, names in _groups(plan, stream).items():
        listener = _listener_of(group)
        for each, is_shown in _told(checkpoint, newest.evolution, group):
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

    asked: Lineage | Operators | Dependence
    policy: Policy
    firsts: tuple[int, ...]
    """By input: their first epoch, -1 for the beginning of the stream."""
    streams: tuple[KnownStream, ...]
    """By input."""


def _groups(plan: Plan, stream: str) -> dict[_SubscriberGroup, list[str]]:
    """The subscriptions to a stream."""
    streams = {each.name: each for each in plan.streams}
    roots = {name: each.namespaces for name, each in streams.items()}
    shapes = shapes_of(())
    found: dict[_SubscriberGroup, list[str]] = {}
    for each in plan.subscriptions:
        asked: Lineage | Operators | Dependence
        if each.kind == PlanKind.name:
            asked = read_plan(each.text)
            names = streams_of(asked)
        elif each.shows or each.edited:
            query = parse(each.text)
            names = named(query)
            if not set(names) <= streams.keys():
                continue
            if any(streams[name].source.updates for name in names):
                asked = _dependence(each.text, tuple((name, streams[name].source.time) for name in names))
            else:
                asked = lineage_of(standing(query, {}, each.text), roots=roots)
                names = asked.streams
        else:
            shape = shapes.of(each.text).shape
            asked = lineage_of(
                standing(parse(each.text), {}) if shape.computes_results else shape.standing, roots=roots
            )
            names = asked.streams
        if stream in names and set(names) <= streams.keys():
            firsts = tuple(each.first if name in each.late else -1 for name in names)
            group = _SubscriberGroup(asked, each.policy, firsts, tuple(streams[name] for name in names))
            found.setdefault(group, []).append(each.name)
    return found


@lru_cache(maxsize=256)
def _dependence(text: str, times: tuple[tuple[str, Path | None], ...]) -> Dependence:
    """The dependence of a query over updates; cached, for equal queries."""
    return Dependence.of(parse(text), dict(times))


def _told(
    checkpoint: Checkpoint | None, logged: Mapping[str, Logged], group: _SubscriberGroup
) -> Iterator[tuple[Announced, bool]]:
    """The events of a group, in order, and whether each was shown at its beginning."""
    later: list[tuple[int, Announced]] = []
    for plan, first in dict.fromkeys(zip(group.streams, group.firsts, strict=True)):
        log = logged.get(plan.name)
        if checkpoint is None or log is None:
            continue
        known = known_log(checkpoint.evolution, plan, log)
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
        case Dependence() as dependence:
            return _depending(dependence)
        case operators:
            return _operating(operators, group)


def _depending(asked: Dependence) -> _Listener:
    """A query over updates, which has no follower."""

    def listen(announced: Announced) -> Deed | None:
        event = announced.event
        reason = None if isinstance(event, Punctuation) else asked.ended_by(announced.stream, event)
        if reason:
            raise Aborted(reason)
        return None

    return listen


def _following(lineage: Lineage, group: _SubscriberGroup) -> _Listener:
    """A query with an outlet."""
    follower = Follower(lineage, group.policy, {each.name: each.source for each in group.streams})

    def listen(announced: Announced) -> Deed | None:
        accents = follower.hear(announced)
        if follower.aborted is not None:
            raise Aborted(follower.aborted)
        if not isinstance(announced.event, Accent):
            return None
        if accents:
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
