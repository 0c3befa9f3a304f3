"""An index of boxes: finds the values whose boxes may overlap a given box.

Each box has one key: the first constant that it pins a term to (`s = 1`), else the first range it gives a term
(`ts >= 10 and ts < 20`), else none; boxes without a key are compared with all.
Ranges are sorted by their lower end, and the longest one limits how far back to search; so of ten thousand sensors, or
of ten thousand intervals of similar length, each lookup meets only its own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Reversible, Sequence
from fractions import Fraction
from typing import Generic, TypeAlias, TypeVar

from anabranch.algebra.accents.items import number, values
from anabranch.algebra.accents.sets import fulfils
from anabranch.predicate import Compare, Predicate, Term, and_
from anabranch.stream.tree import Element

Box: TypeAlias = tuple[Predicate, ...]
"""A conjunction of comparisons and denied comparisons."""
Pin: TypeAlias = tuple[tuple[Term, bool], object]
"""A term and the constant it equals; text and number are different pins."""
Held = TypeVar("Held")


def pins(box: Box) -> Iterator[Pin]:
    """The constants that terms of a box equal."""
    for each in box:
        if isinstance(each, Compare) and each.op == "=":
            yield (each.term, isinstance(each.constant, str)), each.constant


def bounds(box: Sequence[Predicate], term: Term) -> tuple[Fraction | None, Fraction | None]:
    """The least and the greatest number of a term in a box, by its comparisons; None for no bound."""
    low: Fraction | None = None
    high: Fraction | None = None
    for each in box:
        match each:
            case Compare(of, op, Fraction() as constant) if of == term and op != "!=":
                if op in ("=", ">", ">=") and (low is None or constant > low):
                    low = constant
                if op in ("=", "<", "<=") and (high is None or constant < high):
                    high = constant
            case _:
                pass
    return low, high


class Index(Generic[Held]):
    """Values for boxes, each under a key, in insertion order."""

    def __init__(self) -> None:
        self._all: dict[int, tuple[Box, Held]] = {}
        self._next = 0
        self._loose: dict[int, tuple[Box, Held]] = {}
        self._pinned: dict[tuple[Term, bool], dict[object, dict[int, tuple[Box, Held]]]] = {}
        self._ranged: dict[Term, _Ranges[Held]] = {}

    def copy(self) -> Index[Held]:
        """An equal index."""
        fresh: Index[Held] = Index()
        fresh._all, fresh._next, fresh._loose = dict(self._all), self._next, dict(self._loose)
        fresh._pinned = {
            of: {constant: dict(shelf) for constant, shelf in by_constant.items()}
            for of, by_constant in self._pinned.items()
        }
        fresh._ranged = {term: ranges.copy() for term, ranges in self._ranged.items()}
        return fresh

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, key: int) -> bool:
        return key in self._all

    def __getitem__(self, key: int) -> tuple[Box, Held]:
        return self._all[key]

    def items(self) -> Reversible[tuple[int, tuple[Box, Held]]]:
        """All values, by key."""
        return self._all.items()

    def add(self, box: Box, held: Held) -> int:
        """Add a value under a new key."""
        key, self._next = self._next, self._next + 1
        self.put(key, box, held)
        return key

    def put(self, key: int, box: Box, held: Held) -> None:
        """Set the value of a key; an earlier value had the same box."""
        self._all[key] = box, held
        pin, stretch = next(pins(box), None), _stretch(box)
        if pin is not None:
            self._pinned.setdefault(pin[0], {}).setdefault(pin[1], {})[key] = (box, held)
        elif stretch is not None:
            term, low, high = stretch
            self._ranged.setdefault(term, _Ranges()).put(key, low, high, (box, held))
        else:
            self._loose[key] = (box, held)

    def take(self, key: int) -> tuple[Box, Held]:
        """Remove the value of a key."""
        box, held = self._all.pop(key)
        pin, stretch = next(pins(box), None), _stretch(box)
        if pin is not None:
            shelf = self._pinned[pin[0]][pin[1]]
            del shelf[key]
            if not shelf:
                del self._pinned[pin[0]][pin[1]]
        elif stretch is not None:
            self._ranged[stretch[0]].take(key, stretch[1])
        else:
            del self._loose[key]
        return box, held

    def near(self, box: Box) -> Iterator[tuple[int, Box, Held]]:
        """All values whose box may overlap a box, unordered."""
        pinned = dict(pins(box))
        shelves = [self._loose]
        for of, by_constant in self._pinned.items():
            constant = pinned.get(of)
            if constant is None:
                shelves += by_constant.values()
            elif constant in by_constant:
                shelves.append(by_constant[constant])
        for shelf in shelves:
            for key, (held_box, held) in shelf.items():
                yield key, held_box, held
        for term, ranges in self._ranged.items():
            for key, (held_box, held) in ranges.near(*bounds(box, term)):
                yield key, held_box, held

    def of(self, tree: Element) -> Iterator[tuple[int, Held]]:
        """All values whose box holds an item, unordered."""
        found = list(self._loose.items())
        for (term, is_text), by_constant in self._pinned.items():
            for text in values(tree, term.path):
                found += by_constant.get(text if is_text else number(text), {}).items()
        for term, ranges in self._ranged.items():
            for text in values(tree, term.path):
                value = number(text)
                if isinstance(value, Fraction):
                    found += ranges.near(value, value)
        for key, (box, held) in found:
            if fulfils(tree, and_(*box)):
                yield key, held


def _stretch(box: Box) -> tuple[Term, Fraction, Fraction] | None:
    """The first term to which a box gives a range with two ends."""
    for each in box:
        if isinstance(each, Compare):
            low, high = bounds(box, each.term)
            if low is not None and high is not None:
                return each.term, low, high
    return None


class _Ranges(Generic[Held]):
    """Boxes by their range of one term."""

    def __init__(self) -> None:
        self._starts: list[tuple[Fraction, int]] = []
        self._held: dict[int, tuple[Fraction, tuple[Box, Held]]] = {}
        self._longest = Fraction(0)

    def copy(self) -> _Ranges[Held]:
        fresh: _Ranges[Held] = _Ranges()
        fresh._starts, fresh._held, fresh._longest = list(self._starts), dict(self._held), self._longest
        return fresh

    def put(self, key: int, low: Fraction, high: Fraction, held: tuple[Box, Held]) -> None:
        if key not in self._held:
            insort(self._starts, (low, key))
        self._held[key] = high, held
        self._longest = max(self._longest, high - low)

    def take(self, key: int, low: Fraction) -> None:
        del self._starts[bisect_left(self._starts, (low, key))]
        del self._held[key]

    def near(self, low: Fraction | None, high: Fraction | None) -> Iterator[tuple[int, tuple[Box, Held]]]:
        """The boxes whose range meets an interval, ends included."""
        first = 0 if low is None else bisect_left(self._starts, (low - self._longest, -1))
        last = len(self._starts) if high is None else bisect_right(self._starts, high, key=lambda each: each[0])
        for _, key in self._starts[first:last]:
            end, held = self._held[key]
            if low is None or end >= low:
                yield key, held
