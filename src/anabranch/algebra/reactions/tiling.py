"""Tilings: what holds for items, told by disjoint boxes of items; for all other items one and the same thing holds.

An operator that coordinates inputs has to know, for sets of items, who carries a path and in which unit.
One accent concerns few of all the items that accents have spoken of, so what is asked is always asked of a part of the
items, and only the tiles near it are met (`accents/index.py`): one among ten thousand where descriptions pin a constant
or a stretch, `s = 1` say.

Tiles that say the same are put together where they meet anyway.
Descriptions of many different paths that cross each other fall into exponentially many parts; where there are many more
tiles than accents, it is given up with a StreamError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from anabranch.algebra.accents.boxes import MOST_COMBINED, boxes, combined, met, rest
from anabranch.algebra.accents.index import Box, Index
from anabranch.errors import StreamError
from anabranch.predicate import EVERYTHING, Predicate, and_, not_, or_

MOST_TILES = 20_000
Said = TypeVar("Said")


class Tiling(Generic[Said]):
    """What is said of items; `change` alone says something else."""

    def __init__(self, elsewhere: Said) -> None:
        self.elsewhere = elsewhere
        self._tiles: Index[Said] = Index()
        self._literals: dict[int, frozenset[Predicate]] = {}
        self._changes = 0

    def __len__(self) -> int:
        return len(self._tiles)

    def mapped(self, tell: Callable[[Predicate], Predicate]) -> Tiling[Said]:
        """The same of items that are told otherwise."""
        fresh = Tiling(self.elsewhere)
        fresh._changes = self._changes
        for _, (box, said) in self._tiles.items():
            for each in boxes(tell(and_(*box))):
                fresh._put(each, said)
        return fresh

    def over(self, items: Predicate) -> Iterator[tuple[Predicate, Said]]:
        """Some items in disjoint parts, with what holds for each."""
        for box in boxes(items):
            near = [(part, said) for _, part, said in self._meeting(box)]
            yield from ((and_(*part), said) for part, said in near)
            yield from ((and_(*part), self.elsewhere) for part in rest(box, [part for part, _ in near]))

    def says(self) -> set[Said]:
        """All that holds for some items; what holds elsewhere is among it even if there is no elsewhere."""
        return {self.elsewhere, *(said for _, (_, said) in self._tiles.items())}

    def where(self, holds: Callable[[Said], bool], items: Predicate = EVERYTHING) -> Predicate:
        """Those of some items for which something holds."""
        return or_(*(part for part, said in self.over(items) if holds(said)))

    def change(self, items: Predicate, becomes: Callable[[Said], Said]) -> None:
        """Something else holds for some items."""
        self._changes += 1
        if items == EVERYTHING:
            self._change_all(becomes)
            return
        for box in boxes(items):
            near = list(self._meeting(box))
            for key, part, said in near:
                tile, _ = self._tiles[key]
                if becomes(said) != said:
                    self._take(key)
                    self._put(part, becomes(said))
                    for each in rest(tile, [part]):
                        self._put(each, said)
            for each in rest(box, [part for _, part, _ in near]):
                self._put(each, becomes(self.elsewhere))
            self._unite(box)

    def _change_all(self, becomes: Callable[[Said], Said]) -> None:
        tiles = [(box, becomes(said)) for _, (box, said) in self._tiles.items()]
        self.elsewhere = becomes(self.elsewhere)
        self._tiles = Index()
        self._literals.clear()
        for box, said in tiles:
            self._put(box, said)

    def _unite(self, box: Box) -> None:
        """Put tiles together that say the same, around a box."""
        near: dict[Said, list[int]] = {}
        for key, _, said in self._tiles.near(box):
            near.setdefault(said, []).append(key)
        for said, keys in near.items():
            if 1 < len(keys) <= MOST_COMBINED:
                united = boxes(combined(or_(*(and_(*self._tiles[key][0]) for key in keys))))
                if len(united) < len(keys):
                    for key in keys:
                        self._take(key)
                    for each in united:
                        self._put(each, said)

    def _meeting(self, box: Box) -> Iterator[tuple[int, Box, Said]]:
        """The tiles that have items of a box, and what they have of it."""
        wanted = frozenset(box)
        for key, tile, said in self._tiles.near(box):
            # what is left of the items beside many tiles denies each of them: no need to look at all that it denies
            less, more = (tile, wanted) if len(tile) < len(box) else (box, self._literals[key])
            if any(not_(literal) in more for literal in less):
                continue
            part = met(tile, box)  # the tile first: what tells it from its neighbours is what it is filed under
            if part is not None:
                yield key, part, said

    def _put(self, box: Box, said: Said) -> None:
        if said != self.elsewhere:
            if len(self._tiles) > MOST_TILES + 4 * self._changes:
                raise StreamError("the described items fall into too many parts")
            self._literals[self._tiles.add(box, said)] = frozenset(box)

    def _take(self, key: int) -> None:
        self._tiles.take(key)
        del self._literals[key]
