"""The ids of a stream, what they name, and which of them are forgotten (LAWS 5.8).

An id is *past* when it need not name its region any more: the region has newer ids, is an insertion that was deleted,
or stands in a version that was replaced.
A past id still names its region, until `MOST_PAST` others have become past behind it; then it is forgotten, and a
region that has no id left is *unnamed*: nothing can happen to it any more but that what it stands in is replaced.
So there are never many more ids than regions to be seen, however long a stream runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from typing import Literal

from anabranch.law.history.chains import Chain

MOST_PAST = 1_000
"""How many past ids stay known in each partition: the latest."""


@dataclass(frozen=True, slots=True)
class Named:
    """The region that an id names."""

    chain: Chain
    mutable: bool
    """Whether it is the id of a `mutable`, which no other region may take over."""


@dataclass(frozen=True, slots=True)
class Act:
    """What one region or update does: it adds a version to a chain, which is new except where one is replaced.

    Two act on an open end (`tokens.py`): `append` puts content before it, and `close` takes its id away.
    """

    kind: Literal["mutable", "replace", "before", "after", "append", "close"]
    chain: Chain
    anchor: Chain
    """The region that an insertion stands beside; else the chain itself."""
    at: Fraction
    own: str | None = None
    """The id that it takes, or takes away."""
    around: Chain | None = None
    """The region that a `mutable` is written in."""
    is_empty: bool = False
    """Whether the version has no content."""
    is_upsert: bool = False
    """Whether it is a `mutable` that an upsert has made, which is deleted for good (LAWS 5.9)."""

    @property
    def keeps_id(self) -> bool:
        """Whether no other region may take over its id."""
        return self.kind == "mutable" and not self.is_upsert


@dataclass(eq=False, slots=True)
class Registered:
    """What is known of a region beside its versions."""

    partition: int
    number: int
    """Regions are numbered as they come."""
    inserted: bool
    """Whether it stands beside another region, or came by an upsert; else it is a `mutable`."""
    around: Chain | None = None
    """The region in whose newest version it stands."""
    inner: dict[Chain, None] = field(default_factory=dict)
    """The regions that stand in its own."""
    ids: dict[str, None] = field(default_factory=dict)
    first: str | None = None
    newest: str | None = None
    is_deleted: bool = False
    """Whether it is an insertion whose newest version is a deletion."""
    is_over: bool = False
    """Whether it stands in a version that was replaced."""

    def needs(self, name: str) -> bool:
        """Whether one of its ids is not past."""
        return not self.is_over and not self.is_deleted and name in (self.first, self.newest)


class Register:
    """The ids of all partitions; `take` changes them."""

    def __init__(self) -> None:
        self.names: dict[int, dict[str, Named]] = {}
        """By partition, what each id means."""
        self.past: dict[int, dict[str, int]] = {}
        """By partition the past ids, the oldest first, each with a number that grows."""
        self.known: dict[Chain, Registered] = {}
        """The regions that have an id."""
        self.next_number = 0
        self.next_past = 0

    def of(self, partition: int) -> dict[str, Named]:
        """The ids that are known in a partition."""
        return self.names.setdefault(partition, {})

    def take(self, partition: int, acts: Iterable[Act]) -> list[Chain]:
        """Take what the regions and updates of one element do, in their order; gives the regions unnamed by that."""
        names = self.of(partition)
        past = self.past.setdefault(partition, {})
        concerned: dict[Chain, None] = {}
        for act in acts:
            concerned[act.chain] = None
            if act.kind == "append":
                continue
            if act.kind == "close":
                assert act.own is not None
                self._lose(partition, act.own)
                continue
            region = self._replaced(act) if act.kind == "replace" else self._added(act, partition)
            needed = region.first, region.newest
            if act.own is not None:
                if act.own in names and (before := names[act.own].chain) is not act.chain:
                    concerned[before] = None
                    self._lose(partition, act.own)
                self._name(act.own, act, region)
            self._settle(region, *needed, region.newest)
        for name in list(islice(past, max(0, len(past) - MOST_PAST))):
            concerned[names[name].chain] = None
            self._lose(partition, name)
        unnamed = [chain for chain in concerned if not self.known[chain].ids]
        for chain in unnamed:
            self._unname(chain)
        return unnamed

    def _replaced(self, act: Act) -> Registered:
        region = self.known[act.chain]
        self._end(region)
        was_deleted = region.is_deleted
        region.is_deleted = region.inserted and act.is_empty and (act.own is None or act.own not in region.ids)
        if region.is_deleted is not was_deleted:
            self.changed(act.chain, region)
        return region

    def _end(self, region: Registered) -> None:
        """Mark all regions inside a version that is replaced as over."""
        for chain in sorted(region.inner, key=lambda inner: self.known[inner].number):
            inner = self.known[chain]
            self._end(inner)
            inner.is_over, inner.around = True, None
            self.changed(chain, inner)
            self._settle(inner, inner.first, inner.newest)
        region.inner.clear()

    def _added(self, act: Act, partition: int) -> Registered:
        if act.kind == "mutable":
            around, is_over = act.around, act.around is not None and self.known[act.around].is_over
        else:
            anchor = self.known[act.anchor]
            around, is_over = anchor.around, anchor.is_over
        region = Registered(partition, self.next_number, not act.keeps_id, is_over=is_over, first=act.own)
        self.next_number += 1
        self.known[act.chain] = region
        if around is not None and not is_over:
            region.around = around
            self.known[around].inner[act.chain] = None
        return region

    def _name(self, name: str, act: Act, region: Registered) -> None:
        """Give a region an id that no other region has; it may be its own already."""
        self.names[region.partition][name] = Named(act.chain, act.keeps_id)
        region.newest = name
        region.ids[name] = None
        self.changed(act.chain, region)

    def _settle(self, region: Registered, *names: str | None) -> None:
        """Bring the table of past ids up to date for some ids of a region."""
        past = self.past[region.partition]
        for name in names:
            if name is None:
                continue
            if region.needs(name):
                if name in past:
                    self.past_changed(region.partition, name, past.pop(name))
            elif name not in past:
                past[name] = self.next_past
                self.past_changed(region.partition, name, self.next_past)
                self.next_past += 1

    def _lose(self, partition: int, name: str) -> None:
        """Take an id from its region."""
        chain = self.names[partition].pop(name).chain
        region = self.known[chain]
        del region.ids[name]
        if name in self.past[partition]:
            self.past_changed(partition, name, self.past[partition].pop(name))
        if name in (region.first, region.newest):
            region.first = None if region.first == name else region.first
            region.newest = None if region.newest == name else region.newest
            self.changed(chain, region)

    def _unname(self, chain: Chain) -> None:
        """Drop a region without ids; the regions inside it now belong to the region around it."""
        region = self.known.pop(chain)
        around = None if region.around is None else self.known[region.around]
        if around is not None:
            del around.inner[chain]
        for inner in region.inner:
            self.known[inner].around = region.around
            self.changed(inner, self.known[inner])
            if around is not None:
                around.inner[inner] = None
        self.changed(chain, region)

    # --- late subscriptions -------------------------------------------------------------------------------

    def copied_to(self, other: Register, chains: Mapping[Chain, Chain]) -> None:
        """Fill another register, which is empty yet, with the same; `chains` gives its chains for those here."""
        for chain, region in self.known.items():
            other.known[chains[chain]] = copy = replace(
                region,
                around=None if region.around is None else chains[region.around],
                inner={chains[inner]: None for inner in region.inner},
                ids=dict(region.ids),
            )
            other.changed(chains[chain], copy)
        for partition, names in self.names.items():
            other.names[partition] = {name: Named(chains[each.chain], each.mutable) for name, each in names.items()}
        for partition, past in self.past.items():
            other.past[partition] = dict(past)
            for name, number in past.items():
                other.past_changed(partition, name, number)
        other.next_number, other.next_past = self.next_number, self.next_past

    # --- hooks for a register that is written to disk -----------------------------------------------------

    def changed(self, chain: Chain, region: Registered) -> None:
        """Called when the record of a region has changed, or was dropped because the region is unnamed."""

    def past_changed(self, partition: int, name: str, number: int) -> None:
        """Called when an id has become past, or is so no longer; `number` is its place among past ids."""
