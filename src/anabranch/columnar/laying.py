"""Laying answers out: what compiled queries give for items in columns, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from anabranch.columnar import kernels_laying as kernels
from anabranch.columnar.kernels import Bytes, Flags, Indices, Places
from anabranch.columnar.query import CompiledQuery, Fragment
from anabranch.columnar.shred import Shredded, Wanted


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


@dataclass(frozen=True, slots=True)
class Laid:
    """A compiled query with its fragments in the form the kernels take."""

    query: CompiledQuery
    fragments: Fragments

    @staticmethod
    def of(query: CompiledQuery, wanted: Wanted) -> Laid:
        return Laid(query, Fragments.of([query.fragments], wanted))


@dataclass(frozen=True, slots=True)
class Store:
    """Texts in no order, some of them wanted more than once."""

    data: Bytes
    begins: Indices
    lengths: Indices

    @staticmethod
    def of(shredded: Shredded, fragments: Fragments, given: Indices, entries: Places) -> Store:
        """What is given for some entries, which are in order: a set of fragments for each."""
        begins, lengths = np.empty(len(entries), np.int64), np.empty(len(entries), np.int64)
        rows, sets, spans = fragments.fragments, fragments.sets, (shredded.starts, shredded.ends)
        size = kernels.measure_once(rows, sets, *spans, given, entries, begins, lengths)
        data = np.empty(size, np.uint8)
        kernels.lay_once(shredded.data, rows, sets, fragments.fixed, *spans, given, entries, begins, data)
        return Store(data, begins, lengths)

    def some(self, chosen: Indices | Flags) -> Store:
        """Some of them."""
        return Store(self.data, self.begins[chosen], self.lengths[chosen])

    def with_pieces(self, pieces: Sequence[bytes]) -> Store:
        """The same with more texts behind the others."""
        lengths = np.array([*map(len, pieces)], np.int64)
        begins = len(self.data) + np.cumsum(lengths) - lengths
        ready = np.frombuffer(b"".join(pieces), np.uint8)
        return Store(
            np.concatenate([self.data, ready]),
            np.concatenate([self.begins, begins]),
            np.concatenate([self.lengths, lengths]),
        )

    def dealt(self, owners: Places, count: int) -> Dealt:
        """The texts of each owner together, in the order in which they are."""
        sizes, counts, firsts = (np.zeros(count, np.int64) for _ in range(3))
        kernels.tally(owners, self.lengths, sizes, counts, firsts)
        ends = np.cumsum(sizes)
        data = np.empty(ends[-1] if count else 0, np.uint8)
        kernels.deal(self.data, self.begins, self.lengths, owners, ends - sizes, data)
        return Dealt(data, ends - sizes, sizes, counts, firsts)


@dataclass(frozen=True, slots=True)
class Dealt:
    """Texts by owner: where those of each are, how long and how many they are, and how long the first is."""

    data: Bytes
    begins: Indices
    sizes: Indices
    counts: Indices
    firsts: Indices


NO_TEXTS = Store(np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64))


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
