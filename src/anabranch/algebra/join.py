"""Join: the pairs of items, one of each input, whose keys are equal.

Law: every pair comes out once, when the second of the two arrives, as one item that has what both have; a key that both
call by the same name once, as the first input wrote it.
Keys are compared as `=` compares (LAWS 2.3): as text, but as numbers where a unit change has made one a number.
Windows bound a join in time; they are a matter of what is fed to it.

Signature (accents 6.2, as repaired by LAWS 4.2 c): the keys are foundation, and merge paths pair by pair.
Items: remembered, in canonical values.
Accents: on a key, an alter comes out for both keys, for pairs of which both sides have gone through it; all others pass
at once. What is remembered is written in the unit of the output when it leaves, and stripped of a dropped path.
Punctuations: come out when both inputs have given them; what can meet no item any more is forgotten.
What the signature does not cover: the inputs have no other paths in common; an add of a path that has been added on the
other input aborts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from anabranch.algebra.accents.boxes import empty
from anabranch.algebra.accents.items import number
from anabranch.algebra.accents.sets import term
from anabranch.algebra.operator import Work
from anabranch.algebra.readings import Reading, holds, without
from anabranch.algebra.signature import Paths, Signature
from anabranch.errors import DynamicError
from anabranch.predicate import Compare, Predicate, and_, compare, not_, or_
from anabranch.stream.path import Path
from anabranch.stream.tree import Element, copy


@dataclass(frozen=True, slots=True)
class Join:
    """The pairs whose `keys` are equal: for each a path of the first input and one of the second."""

    keys: tuple[tuple[Path, Path], ...]
    arity: int = 2

    @property
    def signature(self) -> Signature:
        keys = Paths.of(path for pair in self.keys for path in pair)
        return Signature(foundation=keys, pairs=self.keys, disjoint=True)

    def start(self) -> Work:
        return _Pairing(self.keys)


class _Pairing:
    """All items of both inputs that may still meet one."""

    def __init__(self, keys: tuple[tuple[Path, Path], ...]) -> None:
        self._keys = keys
        self.failures: list[DynamicError] = []
        self._kept: tuple[list[Reading], list[Reading]] = ([], [])

    def item(self, input: int, reading: Reading) -> Iterable[Reading]:
        self._kept[input].append(reading)
        pairs = ((reading, other) if input == 0 else (other, reading) for other in self._kept[1 - input])
        return [self._joined(*pair) for pair in pairs if self._meet(*pair)]

    def forget(self, input: int, path: Path, where: Predicate) -> None:
        kept = self._kept[input]
        kept[:] = [replace(each, tree=without(each.tree, path)) if holds(where, each) else each for each in kept]

    def close(self, closed: Predicate, inputs: Sequence[Predicate]) -> Iterable[Reading]:
        for side, kept in enumerate(self._kept):
            kept[:] = [each for each in kept if not empty(and_(self._partners(side, each), not_(inputs[1 - side])))]
        return ()

    def _meet(self, left: Reading, right: Reading) -> bool:
        return all(
            any(_equal(a, b, as_numbers) for a in left.texts(mine) for b in right.texts(other))
            for mine, other in self._keys
            for as_numbers in [left.is_measured(mine) or right.is_measured(other)]
        )

    def _partners(self, side: int, reading: Reading) -> Predicate:
        """What an item of the other input has to fulfil to meet this one; numbers also where text would do."""
        return and_(
            *(
                or_(*(each for text in reading.texts(pair[side]) for each in _equals(pair[1 - side], text)))
                for pair in self._keys
            )
        )

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
        return Reading(both, {**maps, **left.maps})


def _equal(a: str, b: str, as_numbers: bool) -> bool:
    if as_numbers:
        return number(a) is not None and number(a) == number(b)
    return a == b


def _equals(path: Path, text: str) -> Iterator[Compare]:
    yield compare(term(path), "=", text)
    value = number(text)
    if isinstance(value, Fraction):
        yield compare(term(path), "=", value)
