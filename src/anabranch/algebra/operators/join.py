"""Join: the pairs of items, one of each input, whose keys are equal, or near each other.

Law: every pair comes out once, when the second of the two arrives, as one item with the content of both; a key of the
same name once, as the first input wrote it.
Keys are compared as `=` compares (LAWS 2.3): as text, but as numbers where a unit change has made one a number.
Two paths that have to lie `within` a distance are compared as numbers, the distance included (LAWS 3.5, the interval
join).

Signature (accents 6.2, as repaired by LAWS 4.2 c): the keys are foundation, and merge paths pair by pair.
Items: held, in canonical values, and filed by the first key.
Accents: an alter of a key comes out for both keys, for pairs of which both sides have gone through it; all others pass
at once. Held items are written in the unit of the output when they leave, without dropped paths.
Punctuations: come out when both inputs have given them; items that can have no more partners are dropped.
What the signature does not cover: the inputs have no other paths in common; an add of a path that was added on the
other input aborts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from anabranch.algebra.accents.items import number
from anabranch.algebra.accents.sets import term
from anabranch.algebra.operators.operator import Ended, Work
from anabranch.algebra.operators.state import reading_from_json, reading_to_json
from anabranch.algebra.reactions.readings import Reading, holds, without
from anabranch.algebra.reactions.signature import AccentSignature, Paths
from anabranch.errors import DynamicError
from anabranch.predicate import Compare, Predicate, and_, compare, or_
from anabranch.predicate.writing import number_text
from anabranch.stream.path import Path
from anabranch.stream.tree import Element, copy


@dataclass(frozen=True, slots=True)
class Join:
    """The pairs whose `keys` are equal: for each a path of the first input and one of the second."""

    keys: tuple[tuple[Path, Path], ...]
    within: tuple[Within, ...] = ()
    arity: int = 2

    @property
    def signature(self) -> AccentSignature:
        both = (*self.keys, *((each.mine, each.other) for each in self.within))
        pairs = tuple(tuple(enumerate(pair)) for pair in both)
        return AccentSignature(foundation=Paths.of(path for pair in both for path in pair), pairs=pairs, disjoint=True)

    def __str__(self) -> str:
        near = (f"{each.mine} within {number_text(each.distance)} of {each.other}" for each in self.within)
        return f"join on {' and '.join((*(f'{mine} = {other}' for mine, other in self.keys), *near))}"

    def start(self) -> Work:
        return _Pairing(self)


@dataclass(frozen=True, slots=True)
class Within:
    """A path of each input, of different names, and the largest distance of their values."""

    mine: Path
    other: Path
    distance: Fraction


class _FiledReadings:
    """The items of an input that may still have partners, in their order, filed by their first key."""

    def __init__(self, key: Path | None) -> None:
        self.key = key
        self._readings: list[Reading] = []
        self._places: dict[str, list[int]] = {}

    def __iter__(self) -> Iterator[Reading]:
        return iter(self._readings)

    def add(self, reading: Reading) -> None:
        for label in _labels(reading, self.key):
            self._places.setdefault(label, []).append(len(self._readings))
        self._readings.append(reading)

    def keep(self, readings: Iterable[Reading]) -> None:
        """Hold these in the place of all others."""
        kept = list(readings)
        self._readings, self._places = [], {}
        for each in kept:
            self.add(each)

    def like(self, reading: Reading, key: Path | None) -> list[Reading]:
        """Those that may have the first key of an item of the other input; all where there is no key."""
        if key is None:
            return self._readings
        places = {place for label in _labels(reading, key) for place in self._places.get(label, ())}
        return [self._readings[place] for place in sorted(places)]


def _labels(reading: Reading, key: Path | None) -> set[str]:
    """What an item is filed under: items with equal keys have a label in common."""
    texts = [] if key is None else list(reading.texts(key))
    return {f"t{text}" for text in texts} | {f"n{value}" for text in texts if (value := number(text)) is not None}


class _Pairing:
    """All items of both inputs that may still have partners."""

    def __init__(self, operator: Join) -> None:
        self._keys = operator.keys
        self._within = operator.within
        self.failures: list[DynamicError] = []
        mine, other = operator.keys[0] if operator.keys else (None, None)
        self._kept = _FiledReadings(mine), _FiledReadings(other)

    def item(self, input: int, reading: Reading) -> Iterable[Reading]:
        self._kept[input].add(reading)
        others = self._kept[1 - input].like(reading, self._kept[input].key)
        pairs = ((reading, other) if input == 0 else (other, reading) for other in others)
        return [self._joined(*pair) for pair in pairs if self._meet(*pair)]

    def forget(self, input: int, path: Path, where: Predicate) -> None:
        kept = self._kept[input]
        kept.keep(replace(each, tree=without(each.tree, path)) if holds(where, each) else each for each in kept)

    def close(self, closed: Predicate, has_ended: Ended) -> Iterable[Reading]:
        for side, kept in enumerate(self._kept):
            kept.keep(each for each in kept if not has_ended(1 - side, self._partners(side, each)))
        return ()

    def save(self) -> list[Any]:
        return [[side, reading_to_json(each)] for side, kept in enumerate(self._kept) for each in kept]

    def restore(self, rows: Iterable[Any]) -> None:
        for side, row in rows:
            self._kept[side].add(reading_from_json(row))

    def _meet(self, left: Reading, right: Reading) -> bool:
        return all(
            any(_equal(a, b, as_numbers) for a in left.texts(mine) for b in right.texts(other))
            for mine, other in self._keys
            for as_numbers in [left.is_measured(mine) or right.is_measured(other)]
        ) and all(
            any(abs(a - b) <= each.distance for a in _finite(left, each.mine) for b in _finite(right, each.other))
            for each in self._within
        )

    def _partners(self, side: int, reading: Reading) -> Predicate:
        """The items of the other input that are partners of this one; numbers also where text would do."""
        equal = (
            or_(*(each for text in reading.texts(pair[side]) for each in _equals(pair[1 - side], text)))
            for pair in self._keys
        )
        near = (
            or_(*(_near(theirs, value, each.distance) for value in _finite(reading, mine)))
            for each in self._within
            for mine, theirs in [(each.mine, each.other) if side == 0 else (each.other, each.mine)]
        )
        return and_(*equal, *near)

    def _joined(self, left: Reading, right: Reading) -> Reading:
        same = [mine for mine, other in self._keys if mine == other]
        tree, other = left.tree, right.tree
        for path in same:
            other = without(other, path)
        both = Element(tree.name, {**other.namespaces, **tree.namespaces})
        for attribute in (*tree.attributes, *other.attributes):
            both.set(attribute.name, attribute.value)
        for child in (*tree.children, *other.children):
            both.append(copy(child))
        maps = {path: by for path, by in right.maps.items() if path not in same}
        return Reading(both, {**maps, **left.maps}, {**right.unknown, **left.unknown})


def _finite(reading: Reading, path: Path) -> list[Fraction]:
    return [each for each in reading.numbers(path) if isinstance(each, Fraction)]


def _near(path: Path, value: Fraction, distance: Fraction) -> Predicate:
    return and_(compare(term(path), ">=", value - distance), compare(term(path), "<=", value + distance))


def _equal(a: str, b: str, as_numbers: bool) -> bool:
    if as_numbers:
        return number(a) is not None and number(a) == number(b)
    return a == b


def _equals(path: Path, text: str) -> Iterator[Compare]:
    yield compare(term(path), "=", text)
    value = number(text)
    if isinstance(value, Fraction):
        yield compare(term(path), "=", value)
