"""Laying answers out: what compiled queries give for items in columns, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from anabranch.columnar.items import kernels
from anabranch.columnar.items.kernels import Fragments, ItemLeaves, OwnedTexts, ReadyPieces
from anabranch.columnar.items.query import CompiledQuery, Fragment
from anabranch.columnar.scan.kernels import Bytes, Indices
from anabranch.columnar.scan.shred import Shredded, WantedLeaves

NO_FRAGMENTS = Fragments(np.empty((0, 4), np.int64), np.zeros(1, np.int64), np.empty(0, np.uint8))


def fragments_of(sets: Sequence[Sequence[Fragment]], wanted: WantedLeaves) -> Fragments:
    """Sets of fragments in the form the kernels take."""
    fixed = bytearray()
    found = np.empty((sum(map(len, sets)), 4), np.int64)
    for number, each in enumerate(fragment for given in sets for fragment in given):
        if isinstance(each, bytes):
            found[number] = -1, 0, len(fixed), len(fixed) + len(each)
            fixed += each
        else:
            found[number] = wanted.leaves.index(each.first), wanted.leaves.index(each.last), each.back, each.ahead
    return Fragments(found, np.cumsum([0, *map(len, sets)]), np.frombuffer(bytes(fixed), np.uint8))


def ready_pieces(pieces: Sequence[bytes]) -> ReadyPieces:
    """Texts as the kernels take them."""
    bounds = np.array([*accumulate(map(len, pieces), initial=0)], np.int64)
    return ReadyPieces(np.frombuffer(b"".join(pieces), np.uint8), bounds)


@dataclass(frozen=True, slots=True)
class Laid:
    """A compiled query with its fragments in the form the kernels take."""

    query: CompiledQuery
    fragments: Fragments

    @staticmethod
    def of(query: CompiledQuery, wanted: WantedLeaves) -> Laid:
        return Laid(query, fragments_of([query.fragments], wanted))


@dataclass(frozen=True, slots=True)
class Dealt:
    """Texts by owner: where those of each are, how long and how many they are, and how long the first is."""

    data: Bytes
    lengths: Indices
    """Of all texts, as they were given."""
    begins: Indices
    sizes: Indices
    counts: Indices
    firsts: Indices


class Scratch:
    """Room for bytes that are gone when the next are put there: large arrays that are always new are slow to touch."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def of(self, size: int) -> Bytes:
        if len(self._bytes) < size:
            self._bytes = np.empty(size + size // 4, np.uint8)
        return self._bytes[:size]


def dealt(
    shredded: Shredded, fragments: Fragments, texts: OwnedTexts, count: int, pieces: Sequence[bytes], scratch: Scratch
) -> Dealt:
    """The texts of each of so many owners together, in the order in which they are.

    They are there until the scratch is used again.
    """
    ready = ready_pieces(pieces)
    lengths, sources = (np.empty(len(texts.items), np.int64) for _ in range(2))
    owned = np.zeros((count, 3), np.int64)
    given = ItemLeaves(shredded.data, shredded.starts, shredded.ends), fragments, ready, texts, lengths, sources
    kernels.measure(*given, owned)
    sizes, counts, firsts = owned[:, kernels.SIZE], owned[:, kernels.COUNT], owned[:, kernels.FIRST]
    ends = np.cumsum(sizes)
    data = scratch.of(int(ends[-1]) if count else 0)
    kernels.deal(*given, ends - sizes, data)
    return Dealt(data, lengths, ends - sizes, sizes, counts, firsts)


def laid_out(
    shredded: Shredded, fragments: Fragments, picks: Indices, pieces: Sequence[bytes]
) -> tuple[Bytes, Indices]:
    """The answers to the items that were picked, with pieces that are ready among them, and where each ends.

    A pick is the number of an entry, or, below 0, the complement of the number of a piece; there is one set of
    fragments.
    """
    texts = OwnedTexts(np.minimum(picks, 0), picks.astype(np.int32), np.zeros(len(picks), np.int32))
    found = dealt(shredded, fragments, texts, 1, pieces, Scratch())
    return found.data, np.concatenate([[0], np.cumsum(found.lengths)])
