"""Order: items sorted by keys, as far as they are complete.

Law (LAWS 2.3): items are held until they are closed, by a punctuation or at the end, and those released together come
out in the order of their canonical values at the keys, the first key first; two numbers compare as numbers, numbers
come before text, an item without a value before all; of equals the earlier item comes first.
A window or a group is sorted by ordering its items and closing them together.

Signature: the keys are foundation (LAWS 4.6).
Items: held, in canonical values, and written in the unit of the output when they leave; no unit change affects their
order, since all are increasing and all values are compared in one unit.
Accents: pass at once; held items lose a dropped path, as in a join (LAWS 4.2 c).
Punctuations: pass, after the items that they release.
What the signature does not cover: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from anabranch.algebra.accents.items import number
from anabranch.algebra.operators.operator import Ended, Work
from anabranch.algebra.operators.state import reading_from_json, reading_to_json
from anabranch.algebra.reactions.readings import Reading, holds, without
from anabranch.algebra.reactions.signature import AccentSignature, Paths
from anabranch.errors import DynamicError
from anabranch.predicate import Predicate
from anabranch.stream.path import Path
from anabranch.values.instants import moment_seconds


@dataclass(frozen=True, slots=True)
class Key:
    """A path to sort by, ascending by default."""

    path: Path
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.path} descending" if self.descending else str(self.path)


@dataclass(frozen=True, slots=True)
class Order:
    """The items by their `keys`."""

    keys: tuple[Key, ...]
    arity: int = 1

    @property
    def signature(self) -> AccentSignature:
        return AccentSignature(foundation=Paths.of(key.path for key in self.keys))

    def __str__(self) -> str:
        return f"order by {', '.join(map(str, self.keys))}"

    def start(self) -> Work:
        return _Sorting(self.keys)


class _Sorting:
    """The items that may still be followed by an earlier one."""

    def __init__(self, keys: tuple[Key, ...]) -> None:
        self.failures: list[DynamicError] = []
        self._keys = keys
        self._kept: list[Reading] = []

    def item(self, input: int, reading: Reading) -> Iterable[Reading]:
        several = next((key.path for key in self._keys if len(reading.texts(key.path)) > 1), None)
        if several is None:
            self._kept.append(reading)
        else:
            self.failures.append(DynamicError(f"an item has several values at '{several}'", code="XPTY0004"))
        return ()

    def forget(self, input: int, path: Path, where: Predicate) -> None:
        self._kept = [
            replace(each, tree=without(each.tree, path)) if holds(where, each) else each for each in self._kept
        ]

    def close(self, closed: Predicate, has_ended: Ended) -> Iterable[Reading]:
        done = [each for each in self._kept if holds(closed, each)]
        if done:
            gone = set(map(id, done))
            self._kept = [each for each in self._kept if id(each) not in gone]
        ranked = [(each, [_rank(each.texts(key.path)) for key in self._keys]) for each in done]
        for index, key in reversed(list(enumerate(self._keys))):  # sorting is stable, also when reversed
            ranked.sort(key=lambda pair: pair[1][index], reverse=key.descending)
        return [each for each, _ in ranked]

    def save(self) -> list[Any]:
        return [reading_to_json(each) for each in self._kept]

    def restore(self, rows: Iterable[Any]) -> None:
        self._kept = [reading_from_json(each) for each in rows]


def _rank(texts: Sequence[str]) -> tuple[int, Fraction | Decimal | int, str]:
    """Nothing, then NaN, then numbers, then dateTimes, then text (LAWS 2.3)."""
    if not texts:
        return 0, 0, ""
    value = number(texts[0])
    if value is None:
        moment = moment_seconds(texts[0])
        return (4, 0, texts[0]) if moment is None else (3, moment, "")
    return (1, 0, "") if isinstance(value, Decimal) and value.is_nan() else (2, value, "")
