"""Tilings: a function on items, by disjoint boxes of items; all other items have one and the same value.

An operator that coordinates inputs needs, for sets of items, which carry a path and in which unit.
One accent concerns few of all the items that accents have named, so queries are about a part of the items, and only the
tiles near it are visited (`accents/index.py`): one among ten thousand where descriptions pin a constant or an interval,
such as `s = 1`.

Tiles of equal value are merged where they are visited anyway.
Descriptions of many different paths that overlap fall into exponentially many parts; where there are many more tiles
than accents, the tiling is abandoned with a StreamError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from anabranch.algebra.accents.boxes import MOST_COMBINED, boxes, combined, met, rest
from anabranch.algebra.accents.index import Box, Index
from anabranch.errors import StreamError
from anabranch.predicate import EVERYTHING, Predicate, and_, not_, or_

MOST_TILES = 20_000
Value = TypeVar("Value")


class Tiling(Generic[Value]):
    """A function on items; `change` alone changes it."""

    def __init__(self, elsewhere: Value) -> None:
        self.elsewhere = elsewhere
        self._tiles: Index[Value] = Index()
        self._literals: dict[int, frozenset[Predicate]] = {}
        self._changes = 0

    def __len__(self) -> int:
        return len(self._tiles)

    def mapped(self, tell: Callable[[Predicate], Predicate]) -> Tiling[Value]:
        """The same values for rewritten sets."""
        fresh = Tiling(self.elsewhere)
        fresh._changes = self._changes
        for _, (box, value) in self._tiles.items():
            for each in boxes(tell(and_(*box))):
                fresh._put(each, value)
        return fresh

    def over(self, items: Predicate) -> Iterator[tuple[Predicate, Value]]:
        """Some items in disjoint parts, with the value of each."""
        for box in boxes(items):
            near = [(part, value) for _, part, value in self._meeting(box)]
            yield from ((and_(*part), value) for part, value in near)
            yield from ((and_(*part), self.elsewhere) for part in rest(box, [part for part, _ in near]))

    def says(self) -> set[Value]:
        """All values; the value elsewhere is included even if the tiles cover everything."""
        return {self.elsewhere, *(value for _, (_, value) in self._tiles.items())}

    def where(self, holds: Callable[[Value], bool], items: Predicate = EVERYTHING) -> Predicate:
        """Those of some items whose value fulfils a condition."""
        return or_(*(part for part, value in self.over(items) if holds(value)))

    def change(self, items: Predicate, becomes: Callable[[Value], Value]) -> None:
        """Change the values of some items."""
        self._changes += 1
        if items == EVERYTHING:
            self._change_all(becomes)
            return
        for box in boxes(items):
            near = list(self._meeting(box))
            for key, part, value in near:
                tile, _ = self._tiles[key]
                if becomes(value) != value:
                    self._take(key)
                    self._put(part, becomes(value))
                    for each in rest(tile, [part]):
                        self._put(each, value)
            for each in rest(box, [part for _, part, _ in near]):
                self._put(each, becomes(self.elsewhere))
            self._unite(box)

    def _change_all(self, becomes: Callable[[Value], Value]) -> None:
        tiles = [(box, becomes(value)) for _, (box, value) in self._tiles.items()]
        self.elsewhere = becomes(self.elsewhere)
        self._tiles = Index()
        self._literals.clear()
        for box, value in tiles:
            self._put(box, value)

    def _unite(self, box: Box) -> None:
        """Merge tiles of equal value around a box."""
        near: dict[Value, list[int]] = {}
        for key, _, value in self._tiles.near(box):
            near.setdefault(value, []).append(key)
        for value, keys in near.items():
            if 1 < len(keys) <= MOST_COMBINED:
                united = boxes(combined(or_(*(and_(*self._tiles[key][0]) for key in keys))))
                if len(united) < len(keys):
                    for key in keys:
                        self._take(key)
                    for each in united:
                        self._put(each, value)

    def _meeting(self, box: Box) -> Iterator[tuple[int, Box, Value]]:
        """The tiles that overlap a box, with the overlap."""
        wanted = frozenset(box)
        for key, tile, value in self._tiles.near(box):
            # a remainder beside many tiles denies each of them: these need not be visited
            less, more = (tile, wanted) if len(tile) < len(box) else (box, self._literals[key])
            if any(not_(literal) in more for literal in less):
                continue
            part = met(tile, box)  # the tile first: its index key separates it from its neighbours
            if part is not None:
                yield key, part, value

    def _put(self, box: Box, value: Value) -> None:
        if value != self.elsewhere:
            if len(self._tiles) > MOST_TILES + 4 * self._changes:
                raise StreamError("the described items fall into too many parts")
            self._literals[self._tiles.add(box, value)] = frozenset(box)

    def _take(self, key: int) -> None:
        self._tiles.take(key)
        del self._literals[key]
