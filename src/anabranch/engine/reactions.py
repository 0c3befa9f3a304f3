"""What subscriptions did about the accents of a stream, for people.

Nobody writes that down: it follows from a query's lineage and policy, from when it began, and from what was said since
(LAWS 4), so it is found by letting outlets hear all of it once more.
Subscriptions that agree in these have one outlet, and thousands have a few.

A query over several streams hears them epoch by epoch, and within an epoch one after the other as it names them; only
which of two accents of one epoch let theirs out together may differ from the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from anabranch.algebra.signature import Policy
from anabranch.errors import Aborted
from anabranch.reference.evolving.lineage import Lineage
from anabranch.reference.evolving.outlet import Outlet
from anabranch.reference.evolving.tracing import lineage_of
from anabranch.spark.checkpoint import Checkpoint
from anabranch.spark.evolution_log import Logged, read_log
from anabranch.spark.manifest import Manifest
from anabranch.spark.plan import Plan, StreamPlan
from anabranch.spark.plans import Plans
from anabranch.spark.roles import shapes_of
from anabranch.spark.stream_views import Event, Said, view_from
from anabranch.stream.elements import Accent, DeadLetter, Place, Punctuation

Deed: TypeAlias = Literal["passes it on", "reckons with it", "ends"]
DEEDS: tuple[Deed, ...] = ("passes it on", "reckons with it", "ends")

_Place: TypeAlias = tuple[int, Place]
"""A partition, and where an element stands in it."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """What some subscriptions did about an accent."""

    deed: Deed
    subscriptions: tuple[str, ...]


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

    lineage: Lineage
    policy: Policy
    firsts: tuple[int, ...]
    """By input: the epoch with which they began, -1 for the beginning of the stream."""
    streams: tuple[StreamPlan, ...]
    """By input."""


def _groups(plan: Plan, stream: str) -> dict[_Group, list[str]]:
    """The subscriptions to a stream."""
    streams = {each.stream: each for each in plan.streams}
    shapes = shapes_of(())
    found: dict[_Group, list[str]] = {}
    for each in plan.subscriptions:
        query = shapes.of(each.text).shape.standing
        if stream in query.streams and set(query.streams) <= streams.keys():
            lineage = lineage_of(query)
            firsts = tuple(each.first if name in each.late else -1 for name in lineage.streams)
            group = _Group(lineage, each.policy, firsts, tuple(streams[name] for name in lineage.streams))
            found.setdefault(group, []).append(each.name)
    return found


@dataclass(frozen=True, slots=True)
class _Hearing:
    """A group that hears once more what was said."""

    checkpoint: Checkpoint
    logged: Mapping[str, Logged]
    group: _Group

    def deeds(self, stream: str) -> Iterator[tuple[_Place, Deed]]:
        """What the group did about what the partitions of a stream said, until it ended."""
        group = self.group
        outlet = Outlet(
            group.lineage,
            policy=group.policy,
            domains=[each.promises for each in group.streams],
            partitions=[each.partitions for each in group.streams],
        )
        for name, said, is_shown in self._sayings():
            inputs = [number for number, each in enumerate(group.lineage.streams) if each == name]
            deed = _deed(outlet, inputs, said)
            if deed is not None and name == stream and not is_shown:
                yield (said.partition, said.event.place), deed
            if deed == "ends":
                return

    def _sayings(self) -> Iterator[tuple[str, Said, bool]]:
        """By stream what the group was told, in order, and whether it was shown to it at its beginning."""
        later: list[tuple[int, str, Said]] = []
        for plan, first in dict.fromkeys(zip(self.group.streams, self.group.firsts, strict=True)):
            name, log = plan.stream, self.logged.get(plan.stream)
            view = view_from(self.checkpoint.evolution, plan, log, first)
            yield from ((name, said, True) for said in view.said[: view.shown])
            epochs = {
                (int(each.partition), each.element(name).place): each.epoch
                for each in (read_log(self.checkpoint.evolution, log) if log else ())
            }
            later += [(epochs[said.partition, said.event.place], name, said) for said in view.said[view.shown :]]
        later.sort(key=lambda each: each[0])
        yield from ((name, said, False) for _, name, said in later)


def _deed(outlet: Outlet, inputs: Sequence[int], said: Said) -> Deed | None:
    """What a query does about an element; None if it has nothing to do with it."""
    try:
        told = [accent for input in inputs for accent in _heard(outlet, input, said.partition, said.event)]
    except Aborted:
        return "ends"
    if not isinstance(said.event, Accent):
        return None
    if told:
        return "passes it on"
    path = said.event.evolution.path
    return "reckons with it" if any(outlet.lineage.reads(input, path) for input in inputs) else None


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
