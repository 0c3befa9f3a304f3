"""Queries that are answered item by item, in a stream that evolves (LAWS 4).

What an accent brings about depends on a query's lineage and on when it began, not on its constants: queries that agree
in these have one `Follower`, and thousands of subscriptions have a few.

Within a stretch of items in which nothing changes, a query that no unit change concerns is answered as ever, and so is
one whose answer has followed a change for all items (`columnar/items/evolution.py`).
The others are answered by the law: from the item's canonical values, and brought forward into the units that have been
announced in the answer.
A query that an accent has ended gives nothing more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TypeAlias

from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.reactions.signature import Policy
from anabranch.columnar.items.evolution import Changes
from anabranch.columnar.items.programs import ItemQuery
from anabranch.errors import Aborted
from anabranch.law.evolution.canonical import canonical
from anabranch.law.spelling import Namespaces
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.outlet import Outlet, accent_text
from anabranch.runtime.evolution.tracing import lineage_of
from anabranch.runtime.standing import Standing
from anabranch.spark.evolution.stream_views import Event, Said, StreamView
from anabranch.spark.plan.epoch_plan import StreamPlan
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.elements import Accent, Alter, DeadLetter, Item, Punctuation
from anabranch.stream.path import Path

_MOST_KEPT = 256


@dataclass(frozen=True)
class Alike:
    """Queries of one shape that began together, by their numbers."""

    shape: Standing
    policy: Policy
    first: int
    """The epoch they began with, -1 for the beginning of the stream."""
    numbers: range
    root: Namespaces
    """What the root of their stream declares."""

    @cached_property
    def lineage(self) -> Lineage:
        """Found only where a stream evolves."""
        return lineage_of(self.shape, roots=dict.fromkeys(self.shape.streams, self.root))


class Follower:
    """The output of queries of one lineage, as far as their stream has evolved."""

    def __init__(self, lineage: Lineage, stream: StreamPlan, policy: Policy) -> None:
        self.lineage = lineage
        self.stream = stream
        self.outlet = Outlet(lineage, policy=policy, domains=[stream.promises], partitions=[stream.partitions])
        self.told: list[Said] = []
        self.aborted: str | None = None
        """Why it is over."""

    def take(self, said: Said) -> tuple[Accent, ...]:
        """What comes out of what an element said."""
        self.told.append(said)
        if self.aborted is not None:
            return ()
        try:
            match said.event:
                case Accent():
                    return self.outlet.accent(0, said.event, said.partition)
                case Punctuation(where, place):
                    return () if where is None else self.outlet.punctuation(0, where, place, said.partition)
                case DeadLetter():
                    for doubt in said.event.doubts:
                        self.outlet.doubt(0, doubt.path, said.event.reason)
        except Aborted as error:
            self.aborted = error.message
        return ()


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


class Following:
    """The queries of a stream as they follow one range of it."""

    def __init__(
        self,
        stream: StreamPlan,
        partition: int,
        alike: Sequence[Alike],
        members: Sequence[ItemQuery],
        view: Callable[[int], StreamView],
        met: Iterable[Said],
    ) -> None:
        """`view` gives what those know who began with an epoch, `met` is what was said before the range in its own."""
        self._stream = stream
        self._partition = partition
        self._members = members
        self._views = {each.first: view(each.first).copy() for each in alike}
        for said in met:
            for every in self._views.values():
                every.take(said)
        self._followers: dict[tuple[Lineage, Policy, int], Follower] = {}
        for each in alike:
            kind = each.lineage, each.policy, each.first
            if kind not in self._followers:
                self._followers[kind] = follower_of(stream, *kind, self._views[each.first].said)
        self._alike = [(each, self._followers[each.lineage, each.policy, each.first]) for each in alike]
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
        """Go on behind what an element said; gives what that adds to whose answer."""
        said = Said(self._partition, event)
        self._groups = None
        for view in self._views.values():
            view.take(said)
        told = {follower: "".join(map(accent_text, follower.take(said))) for follower in self._followers.values()}
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
        for (_, policy, first), follower in self._followers.items():
            keep_follower(self._stream, policy, first, follower)


_Kind: TypeAlias = tuple[str, Lineage, Policy, int]
_kept: OrderedDict[_Kind, Follower] = OrderedDict()
"""The followers that have been left behind in this process."""


def follower_of(stream: StreamPlan, lineage: Lineage, policy: Policy, first: int, said: Sequence[Said]) -> Follower:
    """A follower that has been told all this, and nothing else, for nobody else."""
    follower = _kept.pop((stream.stream, lineage, policy, first), None)
    if follower is None or follower.stream != stream or follower.told != said[: len(follower.told)]:
        follower = Follower(lineage, stream, policy)
    for each in said[len(follower.told) :]:
        follower.take(each)
    return follower


def keep_follower(stream: StreamPlan, policy: Policy, first: int, follower: Follower) -> None:
    """Leave a follower to whoever goes on from there."""
    _kept[stream.stream, follower.lineage, policy, first] = follower
    while len(_kept) > _MOST_KEPT:
        _kept.popitem(last=False)
