"""Tests that are found by *keys*, of which an entry has any number, and each of which few entries have.

The patterns that a text contains are its keys, and so are the conditions that hold for a row of a repeated part.
A condition with a key is listed under it (`arranging.py`), so an entry meets only the conditions of its own keys.

On such an axis the rank of an entry only says whether its keys are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.match.forms import AxisKind, FormConstant
from anabranch.columnar.match.kernels import EntryKeys
from anabranch.columnar.match.patterns import PatternIndex
from anabranch.columnar.match.ranks import UNKNOWN
from anabranch.columnar.scan import kernels as scan_kernels
from anabranch.columnar.scan.kernels import Places
from anabranch.columnar.scan.shred import Shredded

KEYED = frozenset((AxisKind.PATTERN, AxisKind.ROWS))


class FoundKeys(NamedTuple):
    """Keys of entries, on one axis."""

    entries: Places
    keys: Places
    """Pairs of an entry and a key that it has, in the order of entries."""
    open_entries: Places
    open_keys: Places
    """Pairs of an entry and a key that it may have, which the law must decide, in the order of entries."""


class KeyIndex(Protocol):
    """The keys of one axis."""

    count: int
    """How many keys there are."""
    share: float
    """The estimated part of all entries that has one of the keys."""

    def places(self, given: Sequence[FormConstant]) -> Places:
        """The numbers of some of the keys."""

    def find(self, shredded: Shredded, ranks: Places) -> FoundKeys | None:
        """The keys of all entries, and their ranks; None if they are too many."""


MOST_KEYS = 1 << 22
"""The number of keys that may be found in one batch."""
_NO_KEYS = np.empty(0, np.int32)
_LETTERS = 8
"""The estimate for patterns: one of 8 texts contains a pattern of one byte, one of 64 a pattern of two bytes."""


class PatternKeys:
    """The patterns that the texts in a row may contain."""

    def __init__(self, row: int, patterns: Sequence[bytes]) -> None:
        self._row = row
        self._numbers = {each: number for number, each in enumerate(patterns)}
        self._index = PatternIndex.of(patterns)
        self.count = len(patterns)
        self.share = max(1 / self.count, float(_LETTERS) ** -float(np.median([*map(len, patterns)])))

    def places(self, given: Sequence[FormConstant]) -> Places:
        return np.array([self._numbers[each] for each in given if isinstance(each, bytes)], np.int32)

    def find(self, shredded: Shredded, ranks: Places) -> FoundKeys | None:
        starts, ends = shredded.starts[self._row], shredded.ends[self._row]
        unknown = starts == scan_kernels.UNCLEAR
        ranks[:] = np.where(unknown, np.int32(UNKNOWN), np.int32(0))
        texts = TextColumn(shredded.data, np.maximum(starts, 0), np.maximum(ends, 0))
        found = self._index.find_few(texts, MOST_KEYS if len(starts) > 1 else self.count)
        if found is None:
            return None
        known = ~unknown[found[0]]
        return FoundKeys(found[0][known], found[1][known], _NO_KEYS, _NO_KEYS)


def entry_keys(entries: int, count: int, found: Sequence[FoundKeys], firsts: Sequence[int]) -> EntryKeys:
    """The keys of entries on all axes; `count` is the number of keys, and `firsts` the first key of each axis."""
    owners, keys = [_NO_KEYS], [_NO_KEYS]
    for each, first in zip(found, firsts, strict=True):
        owners += [each.entries, each.open_entries]
        keys += [each.keys + np.int32(first), ~(each.open_keys + np.int32(first))]
    owner, key = np.concatenate(owners), np.concatenate(keys)
    if sum(map(len, owners)) > max(map(len, owners)):
        order = np.argsort(owner, kind="stable")
        owner, key = owner[order], key[order]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=entries))])
    return EntryKeys(bounds, key, np.full(count, -1, np.int64), np.full(count, -1, np.int64))
