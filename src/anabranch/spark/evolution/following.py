"""Queries that are answered item by item, in a stream that evolves (LAWS 4).

Queries that agree in their lineage and in when they began have one follower (`runtime/evolution/follower.py`).

Within a stretch of items in which nothing changes, a query that no unit change concerns is answered as ever, and so is
one whose answer has followed a change for all items (`columnar/items/evolution.py`).
The others are answered by the law: from the item's canonical values, and brought forward into the units that have been
announced in the answer.
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
"""What a follower depends on beside the stream: the epoch is that from which on it sees the stream, -1 for all."""


@dataclass(frozen=True)
class ShapeGroup:
    """Queries of one lineage that began together, by their numbers."""

    query: Callable[[], Standing]
    """One of them, or their shape: what they agree in is enough for the lineage."""
    policy: Policy
    first: int
    """The epoch they began with, -1 for the beginning of the stream."""
    numbers: range
    root: Namespaces
    """What the root of their stream declares."""

    @cached_property
    def lineage(self) -> Lineage:
        """Found only where a stream evolves."""
        query = self.query()
        return lineage_of(query, roots=dict.fromkeys(query.streams, self.root))

    @property
    def kind(self) -> Kind:
        return self.lineage, self.policy, self.first


@dataclass(frozen=True, slots=True)
class Group:
    """Queries that evolve alike, in a stretch in which nothing changes."""

    numbers: range
    units: Mapping[Path, Changes | None]
    follower: Follower

    def is_home(self, path: Path, changes: Changes, times: int) -> bool:
        """Whether values leave as they are written, in all of so many places of the answer."""
        targets = self.follower.lineage.targets(0, Alter(path, changes[-1][1]))
        if len(targets) != times or not all(each.origin.is_copy for each in targets):
            return False
        if all(not box for box, _ in changes):
            net = reduce(Affine.then, (by for _, by in changes), IDENTITY)
            return all(self.follower.outlet.unit(each.at) == net for each in targets)
        return self.follower.outlet.in_step(0, path)


class RangeFollowing:
    """The queries of a stream as they follow one range of it."""

    def __init__(
        self,
        stream: KnownStream,
        partition: int,
        alike: Sequence[ShapeGroup],
        members: Sequence[ItemQuery],
        view: Callable[[int], StreamView],
        met: Iterable[Announced],
    ) -> None:
        """`view` gives what those know who began with an epoch; `met` are the events before the range in its own."""
        self._stream = stream
        self._partition = partition
        self._members = members
        self._views = {each.first: view(each.first).copy() for each in alike}
        for announced in met:
            for every in self._views.values():
                every.take(announced)
        self._followers: dict[Kind, Follower] = {}
        for each in alike:
            if each.kind not in self._followers:
                self._followers[each.kind] = follower_of(stream, each.kind, self._views[each.first].told)
        self._alike = [(each, self._followers[each.kind]) for each in alike]
        self._of = {number: each for each in self._alike for number in each[0].numbers}
        self._over = {number for each, follower in self._alike if follower.aborted for number in each.numbers}
        self.aborted: dict[int, str] = {}
        """By query: why it has ended in this range."""
        self._groups: tuple[Group, ...] | None = None

    @property
    def silent(self) -> frozenset[int]:
        """The queries that are over."""
        return frozenset((*self._over, *self.aborted))

    @property
    def groups(self) -> tuple[Group, ...]:
        """The queries that evolve alike, as they stand now."""
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
        """Go on behind an event; gives what that adds to whose answer."""
        announced = Announced(self._stream.name, self._partition, event)
        self._groups = None
        for view in self._views.values():
            view.take(announced)
        is_json = self._stream.form.format == "json"
        told: dict[Follower, str] = {}
        for each in self._followers.values():
            json = is_json and each.lineage.gives_items
            told[each] = "".join(accent_text(accent, json=json) for accent in each.hear(announced))
        for group, follower in self._alike:
            for number in group.numbers:
                if follower.aborted is not None and number not in self._over:
                    self.aborted.setdefault(number, follower.aborted)
                elif told[follower]:
                    yield number, told[follower]

    def piece(self, number: int, item: Item) -> str:
        """What an item adds to the answer of a query."""
        group, follower = self._of[number]
        return self._members[number].slow(canonical(item.tree, self._evolution(group.first)), follower.outlet.forward)

    def keep(self) -> None:
        """Leave the followers to the ranges behind this one."""
        for kind, follower in self._followers.items():
            keep_follower(self._stream, kind, follower, self._views[kind[2]].told)


_left = cache.ProcessCache()
"""The followers that lie in this process."""


def fresh_follower(stream: KnownStream, kind: Kind) -> Follower:
    """A follower at the beginning of a stream."""
    lineage, policy, _ = kind
    return Follower(lineage, policy, {stream.name: stream.source})


def follower_of(stream: KnownStream, kind: Kind, told: Sequence[Announced]) -> Follower:
    """A follower that has been told all this, and nothing else, for nobody else."""
    follower, known = _left.take((stream, kind)) or (None, [])
    if follower is None or known != told[: len(known)]:
        follower, known = fresh_follower(stream, kind), []
    for each in told[len(known) :]:
        follower.hear(each)
    return follower


def keep_follower(stream: KnownStream, kind: Kind, follower: Follower, told: Sequence[Announced]) -> None:
    """Leave a follower to whoever goes on from there, in the same process."""
    _left.put((stream, kind), (follower, told))
