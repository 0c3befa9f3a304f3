"""Laying answers out: what compiled queries give for items in columns, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from anabranch.columnar.items import kernels
from anabranch.columnar.items.query import CompiledQuery, Fragment
from anabranch.columnar.scan.kernels import Bytes, Indices, Places
from anabranch.columnar.scan.shred import Shredded, Wanted


@dataclass(frozen=True, slots=True)
class Fragments:
    """Sets of fragments in the form the kernels take."""

    fragments: Indices
    sets: Indices
    """Where each set begins, and the last ends."""
    fixed: Bytes

    @staticmethod
    def of(sets: Sequence[Sequence[Fragment]], wanted: Wanted) -> Fragments:
        fixed = bytearray()
        found = np.empty((sum(map(len, sets)), 4), np.int64)
        for number, each in enumerate(fragment for given in sets for fragment in given):
            if isinstance(each, bytes):
                found[number] = -1, 0, len(fixed), len(fixed) + len(each)
                fixed += each
            else:
                found[number] = wanted.leaves.index(each.first), wanted.leaves.index(each.last), each.back, each.ahead
        return Fragments(found, np.cumsum([0, *map(len, sets)]), np.frombuffer(bytes(fixed), np.uint8))


NO_FRAGMENTS = Fragments(np.empty((0, 4), np.int64), np.zeros(1, np.int64), np.empty(0, np.uint8))


@dataclass(frozen=True, slots=True)
class Laid:
    """A compiled query with its fragments in the form the kernels take."""

    query: CompiledQuery
    fragments: Fragments

    @staticmethod
    def of(query: CompiledQuery, wanted: Wanted) -> Laid:
        return Laid(query, Fragments.of([query.fragments], wanted))


@dataclass(frozen=True, slots=True)
class Dealt:
    """Texts by owner: where those of each are, how long and how many they are, and how long the first is."""

    data: Bytes
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
    shredded: Shredded,
    fragments: Fragments,
    given: Indices,
    entries: Places,
    owners: Places,
    count: int,
    pieces: Sequence[bytes],
    scratch: Scratch,
) -> Dealt:
    """The texts of each of so many owners together, in the order in which they are.

    What is given for an entry is a set of fragments, or, below 0, the complement of the number of a piece.
    The texts are there until the scratch is used again.
    """
    ready = np.frombuffer(b"".join(pieces), np.uint8)
    bounds = np.array([*accumulate(map(len, pieces), initial=0)], np.int64)
    lengths, sources, places = (np.empty(len(entries), np.int64) for _ in range(3))
    owned = np.zeros((count, 3), np.int64)
    rows, sets, spans = fragments.fragments, fragments.sets, (shredded.starts, shredded.ends)
    kernels.measure_given(rows, sets, *spans, given, entries, bounds, owners, lengths, sources, owned)
    sizes, counts, firsts = owned[:, kernels.SIZE], owned[:, kernels.COUNT], owned[:, kernels.FIRST]
    ends = np.cumsum(sizes)
    data = scratch.of(int(ends[-1]) if count else 0)
    texts = shredded.data, rows, sets, fragments.fixed, *spans, given, entries, ready, bounds
    places_of = owners, lengths, sources, ends - sizes, places
    everything = (*texts, *places_of, data)
    kernels.deal(*everything)
    return Dealt(data, ends - sizes, sizes, counts, firsts)


def laid_out(
    shredded: Shredded,
    fragments: Fragments,
    picks: Indices,
    pieces: Sequence[bytes] = (),
) -> tuple[memoryview, Indices]:
    """The answers to the items that were picked, with pieces that are ready among them, and where each ends.

    A pick is the number of an entry, or, below 0, the complement of the number of a piece; there is one set of
    fragments.
    """
    ready = np.frombuffer(b"".join(pieces), np.uint8)
    bounds = np.array([*accumulate(map(len, pieces), initial=0)], np.int64)
    offsets = np.zeros(len(picks) + 1, np.int64)
    rows, sets, fixed = fragments.fragments, fragments.sets, fragments.fixed
    spans = shredded.starts, shredded.ends
    kernels.measure(rows, sets, *spans, picks, bounds, offsets)
    answers = np.empty(offsets[-1], np.uint8)
    kernels.lay_out(shredded.data, rows, sets, fixed, *spans, picks, ready, bounds, answers)
    return answers.data, offsets
