"""Item queries over a stream that evolves (LAWS 4).

Queries with the same lineage that began together share one follower (`runtime/evolution/follower.py`).

Within a stretch without events, a query is answered in columns as usual if no unit change concerns it, or if its answer
has followed a change for all items (`columnar/items/evolution.py`).
Other queries are answered by the law: from the item's canonical values, converted to the units that were announced in
the answer.
A query that an accent has ended gives nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TypeAlias

from anabranch.algebra.accents.events import Announced, Event
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch import cache
from anabranch.columnar.items.evolution import Changes
from anabranch.columnar.items.programs import ItemQuery
from anabranch.law.evolution.canonical import canonical
from anabranch.law.spelling import Namespaces
from anabranch.runtime.evolution.follower import Follower
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.outlet import accent_text
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing
from anabranch.spark.evolution.views import StreamView
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.elements import Alter, Item
from anabranch.stream.path import Path
from anabranch.stream.reading.source import KnownStream

Kind: TypeAlias = tuple[Lineage, Policy, int]
"""What a follower depends on beside the stream; the number is the first epoch that it sees, -1 for all."""


@dataclass(frozen=True)
class ShapeGroup:
    """The numbers of queries of one lineage that began together."""

    query: Callable[[], Standing]
    """One of them, or their shape: it is enough for the lineage."""
    policy: Policy
    first: int
    """Their first epoch, -1 for the beginning of the stream."""
    numbers: range
    root: Namespaces
    """The namespaces of their stream's root."""

    @cached_property
    def lineage(self) -> Lineage:
        """Computed only where a stream evolves."""
        query = self.query()
        return lineage_of(query, roots=dict.fromkeys(query.streams, self.root))

    @property
    def kind(self) -> Kind:
        return self.lineage, self.policy, self.first


@dataclass(frozen=True, slots=True)
class Group:
    """Queries that accents affect alike, in a stretch without events."""

    numbers: range
    units: Mapping[Path, Changes | None]
    follower: Follower

    def is_home(self, path: Path, changes: Changes, times: int) -> bool:
        """Whether values leave as they are written, in all `times` places of the answer."""
        targets = self.follower.lineage.targets(0, Alter(path, changes[-1][1]))
        if len(targets) != times or not all(each.origin.is_copy for each in targets):
            return False
        if all(not box for box, _ in changes):
            net = reduce(Affine.then, (by for _, by in changes), IDENTITY)
            return all(self.follower.outlet.unit(each.at) == net for each in targets)
        return self.follower.outlet.in_step(0, path)


class RangeFollowing:
    """The queries of a stream as they follow the events of one range."""

    def __init__(
        self,
        stream: KnownStream,
        partition: int,
        alike: Sequence[ShapeGroup],
        members: Sequence[ItemQuery],
        view: Callable[[int], StreamView],
        earlier: Iterable[Announced],
    ) -> None:
        """`view` gives the stream's view from an epoch on; `earlier` are the events before the range in its epoch."""
        self._stream = stream
        self._partition = partition
        self._members = members
        self._views = {each.first: view(each.first).copy() for each in alike}
        for announced in earlier:
            for every in self._views.values():
                every.take(announced)
        self._followers: dict[Kind, Follower] = {}
        for each in alike:
            if each.kind not in self._followers:
                self._followers[each.kind] = follower_of(stream, each.kind, self._views[each.first].events)
        self._alike = [(each, self._followers[each.kind]) for each in alike]
        self._group_of = {number: each for each in self._alike for number in each[0].numbers}
        self._ended_before = {number for each, follower in self._alike if follower.aborted for number in each.numbers}
        self.aborted: dict[int, str] = {}
        """By query: why it ended in this range."""
        self._groups: tuple[Group, ...] | None = None

    @property
    def silent(self) -> frozenset[int]:
        """The queries that have ended."""
        return frozenset((*self._ended_before, *self.aborted))

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of queries that accents affect alike, at this place."""
        if self._groups is None:
            altered = {first: self._evolution(first).altered() for first in self._views}
            self._groups = tuple(
                Group(
                    each.numbers,
                    {path: unit for path, unit in altered[each.first].items() if follower.lineage.reads(0, path)},
                    follower,
                )
                for each, follower in self._alike
            )
        return self._groups

    def _evolution(self, first: int) -> Evolution:
        return self._views[first].evolutions[self._partition]

    def take(self, event: Event) -> Iterator[tuple[int, str]]:
        """Apply an event; gives by query the text that it adds to the answer."""
        announced = Announced(self._stream.name, self._partition, event)
        self._groups = None
        for view in self._views.values():
            view.take(announced)
        json_items = self._stream.json_items
        told: dict[Follower, str] = {}
        for each in self._followers.values():
            json = each.lineage.outputs.form(json_items) == "json"
            told[each] = "".join(accent_text(accent, json=json) for accent in each.hear(announced))
        for group, follower in self._alike:
            for number in group.numbers:
                if follower.aborted is not None and number not in self._ended_before:
                    self.aborted.setdefault(number, follower.aborted)
                elif told[follower]:
                    yield number, told[follower]

    def piece(self, number: int, item: Item) -> str:
        """The text that an item adds to the answer of a query."""
        group, follower = self._group_of[number]
        return self._members[number].slow(canonical(item.tree, self._evolution(group.first)), follower.outlet.forward)

    def keep(self) -> None:
        """Cache the followers for the ranges behind this one."""
        for kind, follower in self._followers.items():
            keep_follower(self._stream, kind, follower, self._views[kind[2]].events)


_cached = cache.ProcessCache()
"""The followers cached by this process."""


def fresh_follower(stream: KnownStream, kind: Kind) -> Follower:
    """A follower at the beginning of a stream."""
    lineage, policy, _ = kind
    return Follower(lineage, policy, {stream.name: stream.source})


def follower_of(stream: KnownStream, kind: Kind, events: Sequence[Announced]) -> Follower:
    """A follower that has received exactly these events, for the caller alone."""
    follower, known = _cached.take((stream, kind)) or (None, [])
    if follower is None or known != events[: len(known)]:
        follower, known = fresh_follower(stream, kind), []
    for each in events[len(known) :]:
        follower.hear(each)
    return follower


def keep_follower(stream: KnownStream, kind: Kind, follower: Follower, events: Sequence[Announced]) -> None:
    """Cache a follower for a later range in this process."""
    _cached.put((stream, kind), (follower, events))
