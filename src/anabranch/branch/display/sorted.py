"""Things in the order of their keys, those with equal keys in the order of the entries they come from.

It is `order by` as a state: what stands first, what stands behind something, and where something new belongs, each in
logarithmic time (LAWS 5.6: a sorted answer cannot be adjusted from itself alone).
Ascending and descending keys may be mixed; ranks are those of LAWS 2.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import total_ordering
from typing import TypeAlias

from anabranch.algebra.history.ordered import Ordered
from anabranch.values.atomic import OrderRank

ResultId: TypeAlias = tuple[int, int]
"""The number of the entry that something comes from, and its own among what comes from there."""


@total_ordering
class _Descending:
    """A rank that comes before those it is greater than."""

    __slots__ = ("rank",)

    def __init__(self, rank: OrderRank) -> None:
        self.rank = rank

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.rank == other.rank

    def __lt__(self, other: _Descending) -> bool:
        return other.rank < self.rank

    def __hash__(self) -> int:
        return hash(self.rank)


_Key: TypeAlias = tuple[OrderRank | _Descending, ...]


class SortedResults:
    """An order of things; `entries` is that of their entries, which others keep up to date."""

    def __init__(self, entries: Ordered[int, int], descending: Sequence[bool]) -> None:
        self._entries = entries
        self._descending = descending
        self._order: Ordered[ResultId, int] = Ordered(0)
        self._keys: dict[ResultId, _Key] = {}

    def __len__(self) -> int:
        return len(self._order)

    @property
    def first(self) -> ResultId | None:
        return self._order.first

    @property
    def last(self) -> ResultId | None:
        return self._order.last

    def behind(self, thing: ResultId) -> ResultId | None:
        """The thing behind another."""
        return self._order.next(thing)

    def put(self, thing: ResultId, ranks: Sequence[OrderRank]) -> ResultId | None:
        """A new thing; gives the one that now stands behind it."""
        key = self._key(ranks)
        last = self._order.last
        behind: ResultId | None = None
        if last is not None and self._precedes(thing, key, last):  # mostly it is the last itself
            behind = self._order.search(lambda other: self._precedes(thing, key, other))
        self._keys[thing] = key
        if behind is None:
            self._order.append(thing, 1)
        else:
            self._order.insert_before(behind, thing, 1)
        return behind

    def fill(self, things: Mapping[ResultId, Sequence[OrderRank]]) -> list[ResultId]:
        """Put many things where there are none yet; gives them in their order."""
        places = {entry: place for place, entry in enumerate(self._entries)}
        self._keys = {thing: self._key(ranks) for thing, ranks in things.items()}
        ordered = sorted(things, key=lambda thing: (self._keys[thing], places[thing[0]], thing[1]))
        for thing in ordered:
            self._order.append(thing, 1)
        return ordered

    def _key(self, ranks: Sequence[OrderRank]) -> _Key:
        return tuple(_Descending(rank) if down else rank for rank, down in zip(ranks, self._descending, strict=True))

    def remove(self, thing: ResultId) -> None:
        """Take a thing out."""
        self._order.remove(thing)
        del self._keys[thing]

    def _precedes(self, thing: ResultId, key: _Key, other: ResultId) -> bool:
        theirs = self._keys[other]
        if key != theirs:
            return key < theirs
        (entry, number), (their_entry, their_number) = thing, other
        return number < their_number if entry == their_entry else self._entries.precedes(entry, their_entry)
