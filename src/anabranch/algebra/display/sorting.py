"""Results in the order that a query asks for: by their keys, those with equal keys as their entries stand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import total_ordering
from typing import Any, Protocol, TypeAlias

from anabranch.algebra.display.ordered import Ordered
from anabranch.values.atomic import OrderRank

ResultId: TypeAlias = tuple[int, int]
"""A result: the number of its entry, and its own number among the results of that entry."""


@total_ordering
class _Descending:
    """A rank in descending order."""

    __slots__ = ("rank",)

    def __init__(self, rank: OrderRank) -> None:
        self.rank = rank

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.rank == other.rank

    def __lt__(self, other: _Descending) -> bool:
        return other.rank < self.rank

    def __hash__(self) -> int:
        return hash(self.rank)


_Key: TypeAlias = Any
"""The ranks of a result, or its only one; all results have as many."""
_FEW = 4
"""The number of results with an equal key that are looked at one after the other."""


class EntryPlaces(Protocol):
    """The order of the entries, which others keep up to date."""

    def precedes(self, one: int, other: int) -> bool: ...

    def in_order(self, some: Collection[int]) -> list[int]:
        """Some entries, in this order."""


class SortedResults:
    """`order by` as a state; `entries` is the order of the entries, which others keep up to date.

    Where a new result belongs is found in logarithmic time; ascending and descending keys may be mixed (LAWS 2.3).
    """

    def __init__(self, entries: EntryPlaces, descending: Sequence[bool]) -> None:
        self._entries = entries
        self._descending = descending
        self._is_sorted = bool(descending)
        self._reverses = any(descending)
        self._order: Ordered[ResultId, int] = Ordered(0)
        self._keys: dict[ResultId, _Key] = {}

    def __iter__(self) -> Iterator[ResultId]:
        """All results, in their order."""
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def place(self, thing: ResultId) -> int:
        """The place of a result in the order, from 0 on."""
        return self._order.before(thing)

    def at(self, place: int) -> ResultId:
        """The result at a place."""
        found = self._order.reaching(place + 1)
        assert found is not None, "there is something at each place"
        return found[0]

    def put(self, thing: ResultId, ranks: Sequence[OrderRank]) -> ResultId | None:
        """Add a result; returns the one that is now behind it."""
        key = self._key(ranks)
        behind = self._behind(thing, key)
        self._keys[thing] = key
        if behind is None:
            self._order.append(thing, 1)
        else:
            self._order.insert_before(behind, thing, 1)
        return behind

    def _behind(self, thing: ResultId, key: _Key) -> ResultId | None:
        """The result that a new one is to stand before."""
        last, keys = self._order.last, self._keys
        if last is None or keys[last] < key:  # mostly it becomes the last
            return None
        if self._is_sorted:
            behind = self._order.bisect(keys.__getitem__, key)
            for _ in range(_FEW):
                if behind is None or keys[behind] != key or self._stands_before(thing, behind):
                    return behind
                behind = self._order.next(behind)

        def is_behind(other: ResultId) -> bool:
            theirs = keys[other]
            return key < theirs if key != theirs else self._stands_before(thing, other)

        return self._order.search(is_behind) if is_behind(last) else None

    def fill(self, things: Mapping[ResultId, Sequence[OrderRank]]) -> list[ResultId]:
        """Add many results where there are none yet; returns them in their order."""
        entries = self._entries.in_order({entry for entry, _ in things})
        places = {entry: place for place, entry in enumerate(entries)}
        self._keys = {thing: self._key(ranks) for thing, ranks in things.items()}
        ordered = sorted(things, key=lambda thing: (self._keys[thing], places[thing[0]], thing[1]))
        for thing in ordered:
            self._order.append(thing, 1)
        return ordered

    def _key(self, ranks: Sequence[OrderRank]) -> _Key:
        if not self._reverses:
            return ranks[0] if len(ranks) == 1 else tuple(ranks)
        found = [_Descending(rank) if down else rank for rank, down in zip(ranks, self._descending, strict=True)]
        return found[0] if len(found) == 1 else tuple(found)

    def remove(self, thing: ResultId) -> None:
        """Remove a result."""
        self._order.remove(thing)
        del self._keys[thing]

    def _stands_before(self, thing: ResultId, other: ResultId) -> bool:
        """Whether a result with the same key as another stands before it in the document."""
        (entry, number), (their_entry, their_number) = thing, other
        return number < their_number if entry == their_entry else self._entries.precedes(entry, their_entry)
