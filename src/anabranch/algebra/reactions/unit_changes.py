"""Filed unit changes: which of many concern an item, or a set of items, without asking each of them.

A change is filed under its number by the boxes of its set (`accents/index.py`), so one for `s = 1` is not met by an
item of another sensor.
A set that is told anew is filed anew; who evolves a path tells only the sets that name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from anabranch.algebra.accents.boxes import boxes, met
from anabranch.algebra.accents.conjunctions import is_conjunction, literals
from anabranch.algebra.accents.index import Box, Index
from anabranch.algebra.accents.items import spelled
from anabranch.algebra.accents.sets import below, names
from anabranch.algebra.reactions.readings import Reading
from anabranch.predicate import Predicate, terms
from anabranch.stream.path import Path


class Filed:
    """Sets of items by number."""

    def __init__(self) -> None:
        self._sets: dict[int, Predicate] = {}
        self._boxes: dict[int, list[tuple[int, Box]]] = {}
        self._index: Index[int] = Index()
        self._naming: dict[Path, set[int]] = {}
        """The numbers of the sets that have ever named a path."""
        self._next = 0

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, number: int) -> Predicate:
        return self._sets[number]

    def put(self, number: int, items: Predicate) -> None:
        """File a set, in place of the one that the number had."""
        for key, box in self._boxes.get(number, ()):
            self._index.take(key, box)
        self._sets[number] = items
        self._boxes[number] = []
        for box in (literals(items),) if is_conjunction(items) else boxes(items):
            self._index.put(self._next, box, number)
            self._boxes[number].append((self._next, box))
            self._next += 1
        for term in terms(items):
            self._naming.setdefault(term.path, set()).add(number)

    def naming(self, path: Path) -> list[int]:
        """The numbers of the sets that name a path, or something below it."""
        found = {number for each, numbers in self._naming.items() if below(each, path) for number in numbers}
        return sorted(number for number in found if names(self._sets[number], path))

    def tell(self, path: Path, told: Callable[[Predicate], Predicate]) -> None:
        """Tell the sets anew that name a path."""
        for number in self.naming(path):
            self.put(number, told(self._sets[number]))

    def of(self, reading: Reading) -> set[int]:
        """The numbers of the sets that an item is in."""
        return {number for _, number in self._index.of(reading.written(spelled))}

    def near(self, items: Predicate) -> set[int]:
        """The numbers of the sets that have items in common with one."""
        return {number for box in boxes(items) for number in self._overlapping(box)}

    def _overlapping(self, box: Box) -> Iterator[int]:
        return (number for _, other, number in self._index.near(box) if met(box, other) is not None)
