"""What subscriptions did about the accents of a stream, or would do about another one, for people.

Nobody writes that down: it follows from a query's lineage and policy, from when it began, and from what was said since
(LAWS 4), so it is found by letting outlets hear all of it once more.
Subscriptions that agree in these have one outlet, and thousands have a few.
A plan of operators hears it itself; that a path in doubt has ended it shows with an item, and so not here.
A query over updates hears nothing, and ends where an accent is on a path that it reads (LAWS 4.5).

A query over several streams hears them epoch by epoch, and within an epoch one after the other as it names them; only
which of two accents of one epoch let theirs out together may differ from the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from anabranch.algebra.accents.sets import items_of
from anabranch.algebra.plans.interpret import Plan as Operators
from anabranch.algebra.plans.interpret import Query
from anabranch.algebra.plans.written import is_plan, read_plan, streams_of
from anabranch.algebra.reactions.course import Change, Closing
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch.plans.sources import partitioned, source_of
from anabranch.errors import Aborted
from anabranch.language import parse
from anabranch.law.arrivals.past import named
from anabranch.law.history.changed import Dependence
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.outlet import Outlet
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import standing
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.evolution.log import Logged, read_log
from anabranch.spark.evolution.stream_views import Event, Said, view_from
from anabranch.spark.plan.epoch_plan import Plan, StreamPlan
from anabranch.spark.plan.files import Plans
from anabranch.spark.plan.roles import shapes_of
from anabranch.stream.elements import Accent, DeadLetter, Place, Punctuation
from anabranch.stream.path import Path

Deed: TypeAlias = Literal["passes it on", "reckons with it", "ends"]
DEEDS: tuple[Deed, ...] = ("passes it on", "reckons with it", "ends")

_Place: TypeAlias = tuple[int, Place]
"""A partition, and where an element stands in it."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """What some subscriptions did about an accent."""

    deed: Deed
    subscriptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the subscriptions to a stream would do about an accent that comes next."""

    reactions: tuple[Reaction, ...]
    reasons: Mapping[str, str]
    """By subscription: why it would end."""
    others: tuple[str, ...]
    """Those that it does not concern."""


def forecast(
    checkpoint: Checkpoint | None, newest: Manifest | None, plan: Plan, said: Sequence[Said], stream: str
) -> Forecast:
    """What the subscriptions of a plan would do about accents that came next, one in each partition that says one."""
    evolution = newest.evolution if newest else {}
    did: dict[Deed, list[str]] = {}
    reasons: dict[str, str] = {}
    others: list[str] = []
    going = replace(plan, subscriptions=tuple(each for each in plan.subscriptions if not each.aborted))
    for group, names in _groups(going, stream).items():
        found, reason = _Hearing(checkpoint, evolution, group).foretold(stream, said)
        if found is None:
            others += names
        else:
            did.setdefault(found, []).extend(names)
            reasons |= dict.fromkeys(names, reason) if reason else {}
    return Forecast(tuple(Reaction(deed, tuple(did[deed])) for deed in DEEDS if deed in did), reasons, tuple(others))


def reactions(checkpoint: Checkpoint, stream: str, newest: Manifest) -> Mapping[_Place, tuple[Reaction, ...]]:
    """By partition and place of an accent, what the subscriptions of the newest epoch did that it concerns."""
    file = Plans(checkpoint.plans).of(newest.epoch)
    assert file is not None, "an epoch with a manifest has a plan"
    found: dict[_Place, dict[Deed, list[str]]] = {}
    for group, names in _groups(file.load(), stream).items():
        for place, deed in _Hearing(checkpoint, newest.evolution, group).deeds(stream):
            found.setdefault(place, {}).setdefault(deed, []).extend(names)
    return {
        place: tuple(Reaction(deed, tuple(did[deed])) for deed in DEEDS if deed in did) for place, did in found.items()
    }


@dataclass(frozen=True)
class _Group:
    """Subscriptions to which the same happens."""

    asked: Lineage | Operators | Dependence
    policy: Policy
    firsts: tuple[int, ...]
    """By input: the epoch with which they began, -1 for the beginning of the stream."""
    streams: tuple[StreamPlan, ...]
    """By input."""


def _groups(plan: Plan, stream: str) -> dict[_Group, list[str]]:
    """The subscriptions to a stream."""
    streams = {each.stream: each for each in plan.streams}
    roots = {name: each.namespaces for name, each in streams.items()}
    shapes = shapes_of(())
    found: dict[_Group, list[str]] = {}
    for each in plan.subscriptions:
        asked: Lineage | Operators | Dependence
        if is_plan(each.text):
            asked = read_plan(each.text)
            names = streams_of(asked)
        elif each.shows or each.edited:
            query = parse(each.text)
            names = named(query)
            if not set(names) <= streams.keys():
                continue
            if any(streams[name].updates for name in names):
                asked = _dependence(each.text, tuple((name, streams[name].time) for name in names))
            else:
                asked = lineage_of(standing(query, {}, each.text), roots=roots)
                names = asked.streams
        else:
            asked = lineage_of(shapes.of(each.text).shape.standing, roots=roots)
            names = asked.streams
        if stream in names and set(names) <= streams.keys():
            firsts = tuple(each.first if name in each.late else -1 for name in names)
            group = _Group(asked, each.policy, firsts, tuple(streams[name] for name in names))
            found.setdefault(group, []).append(each.name)
    return found


@lru_cache(maxsize=256)
def _dependence(text: str, times: tuple[tuple[str, str | None], ...]) -> Dependence:
    """What a query over updates depends on; equal queries have one."""
    return Dependence.of(parse(text), {name: None if time is None else Path.parse(time) for name, time in times})


@dataclass(frozen=True, slots=True)
class _Hearing:
    """A group that hears once more what was said."""

    checkpoint: Checkpoint | None
    logged: Mapping[str, Logged]
    group: _Group

    def foretold(self, stream: str, fresh: Sequence[Said]) -> tuple[Deed | None, str]:
        """What the group would do about more that was said, behind all there is, and why it would end."""
        ear = _ear_of(self.group)
        for name, said, _ in self._sayings():
            ear.deed(name, said)
        did = [ear.deed(stream, each) for each in fresh]
        return next((deed for deed in reversed(DEEDS) if deed in did), None), ear.reason

    def deeds(self, stream: str) -> Iterator[tuple[_Place, Deed]]:
        """What the group did about what the partitions of a stream said, until it ended."""
        ear = _ear_of(self.group)
        for name, said, is_shown in self._sayings():
            deed = ear.deed(name, said)
            if deed is not None and name == stream and not is_shown:
                yield (said.partition, said.event.place), deed
            if deed == "ends":
                return

    def _sayings(self) -> Iterator[tuple[str, Said, bool]]:
        """By stream what the group was told, in order, and whether it was shown to it at its beginning."""
        later: list[tuple[int, str, Said]] = []
        for plan, first in dict.fromkeys(zip(self.group.streams, self.group.firsts, strict=True)):
            name, log = plan.stream, self.logged.get(plan.stream)
            if self.checkpoint is None or log is None:
                continue
            view = view_from(self.checkpoint.evolution, plan, log, first)
            yield from ((name, said, True) for said in view.said[: view.shown])
            epochs = {
                (int(each.partition), each.element(name).place): each.epoch
                for each in read_log(self.checkpoint.evolution, log)
            }
            later += [(epochs[said.partition, said.event.place], name, said) for said in view.said[view.shown :]]
        later.sort(key=lambda each: each[0])
        yield from ((name, said, False) for _, name, said in later)


def _ear_of(group: _Group) -> _Outlets | _Operators | _Depending:
    match group.asked:
        case Lineage():
            return _Outlets(group)
        case Dependence():
            return _Depending(group.asked)
        case _:
            return _Operators(group)


@dataclass(slots=True)
class _Depending:
    """A query over updates, which follows nothing."""

    asked: Dependence
    reason: str = ""
    """Why it has ended."""

    def deed(self, stream: str, said: Said) -> Deed | None:
        """Whether the query ends with an element."""
        if isinstance(said.event, Punctuation):
            return None
        self.reason = self.asked.ended_by(stream, said.event) or ""
        return "ends" if self.reason else None


class _Outlets:
    """The outlet of a query."""

    def __init__(self, group: _Group) -> None:
        assert isinstance(group.asked, Lineage)
        self.reason = ""
        """Why it has ended."""
        self._lineage = group.asked
        self._outlet = Outlet(
            group.asked,
            policy=group.policy,
            domains=[each.promises for each in group.streams],
            partitions=[each.partitions for each in group.streams],
        )

    def deed(self, stream: str, said: Said) -> Deed | None:
        """What a query does about an element; None if it has nothing to do with it."""
        inputs = [number for number, each in enumerate(self._lineage.streams) if each == stream]
        try:
            told = [accent for input in inputs for accent in _heard(self._outlet, input, said.partition, said.event)]
        except Aborted as error:
            self.reason = error.message
            return "ends"
        if not isinstance(said.event, Accent):
            return None
        if told:
            return "passes it on"
        path = said.event.evolution.path
        return "reckons with it" if any(self._lineage.reads(input, path) for input in inputs) else None


class _Operators:
    """A plan of operators, which sees no items."""

    def __init__(self, group: _Group) -> None:
        assert not isinstance(group.asked, Lineage | Dependence)
        self.reason = ""
        """Why it has ended."""
        promises = {
            source_of(each.stream, number): each.promises for each in group.streams for number in range(each.partitions)
        }
        plan = partitioned(group.asked, {each.stream: each.partitions for each in group.streams})
        self._query = Query(plan, policy=group.policy, promises=promises)

    def deed(self, stream: str, said: Said) -> Deed | None:
        """What the plan does about an element; None if it has nothing to do with it."""
        source, event = source_of(stream, said.partition), said.event
        try:
            match event:
                case Accent(where, evolution):
                    told = list(self._query.take(source, Change(items_of(where), evolution)))
                    if any(isinstance(each, Change) for each in told):
                        return "passes it on"
                    return "reckons with it" if self._query.looks_at(source, evolution.path) else None
                case Punctuation(where) if where is not None:
                    list(self._query.take(source, Closing(items_of(where))))
        except Aborted as error:
            self.reason = error.message
            return "ends"
        return None


def _heard(outlet: Outlet, input: int, partition: int, event: Event) -> tuple[Accent, ...]:
    match event:
        case Accent():
            return outlet.accent(input, event, partition)
        case Punctuation(where, place) if where is not None:
            return outlet.punctuation(input, where, place, partition)
        case DeadLetter(doubts=doubts, reason=reason):
            for doubt in doubts:
                outlet.doubt(input, doubt.path, reason)
    return ()
