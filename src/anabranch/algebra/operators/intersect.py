"""Intersect: the items that two inputs have in common.

Law: an item comes out for each pair of equal items, one of each input, none of them in two pairs; it comes when the
second of the two arrives, as the first input wrote it.
Items are equal if they have the same canonical values at the same paths.

Signature (accents 6.2): all paths are merge paths, as for Union.
Items: wait for an equal item. Accents: as for Union; waiting items are in canonical values and need no change.
Punctuations: come out when both inputs have given them; an item whose partners are closed on the other input is
dropped.
What the signature does not cover: a waiting item keeps a dropped path, since without it, it would equal other items.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from anabranch.algebra.accents.items import leaves
from anabranch.algebra.accents.sets import term
from anabranch.algebra.operators.operator import Ended, Work
from anabranch.algebra.operators.state import reading_from_json, reading_to_json
from anabranch.algebra.reactions.readings import Reading
from anabranch.algebra.reactions.signature import ALL_PATHS, AccentSignature
from anabranch.errors import DynamicError
from anabranch.predicate import Predicate, and_, compare
from anabranch.stream.path import Path

_Key: TypeAlias = tuple[tuple[Path, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Intersect:
    """The items that both inputs have."""

    arity: int = 2

    @property
    def signature(self) -> AccentSignature:
        return AccentSignature(merge=ALL_PATHS, computes=ALL_PATHS)

    def __str__(self) -> str:
        return "intersect"

    def start(self) -> Work:
        return _Meeting()


class _Meeting(Work):
    """The items of each input that have no partner yet."""

    def __init__(self) -> None:
        self.failures: list[DynamicError] = []
        self._waiting: tuple[list[tuple[_Key, Reading]], list[tuple[_Key, Reading]]] = ([], [])

    def item(self, input: int, reading: Reading) -> Iterable[Reading]:
        key = _key(reading)
        others = self._waiting[1 - input]
        for index, (other, waiting) in enumerate(others):
            if key == other:
                del others[index]
                return (reading if input == 0 else waiting,)
        self._waiting[input].append((key, reading))
        return ()

    def close(self, closed: Predicate, has_ended: Ended) -> Iterable[Reading]:
        for side, waiting in enumerate(self._waiting):
            waiting[:] = [each for each in waiting if not has_ended(1 - side, _equals(each[0]))]
        return ()

    def save(self) -> list[Any]:
        return [[side, reading_to_json(each)] for side, waiting in enumerate(self._waiting) for _, each in waiting]

    def restore(self, rows: Iterable[Any]) -> None:
        for side, row in rows:
            reading = reading_from_json(row)
            self._waiting[side].append((_key(reading), reading))


def _equals(key: _Key) -> Predicate:
    """The items with these values, and possibly others."""
    return and_(*(compare(term(path), "=", text) for path, texts in key for text in texts[:1]))


def _key(reading: Reading) -> _Key:
    return tuple(sorted((path, tuple(reading.texts(path))) for path in leaves(reading.tree)))
