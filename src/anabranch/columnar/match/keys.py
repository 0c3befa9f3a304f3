"""Tests that are found by *keys*: what an entry has any number of, and what few entries have.

The patterns that a text contains are its keys, and so are the values of a repeated part.
A condition that asks for a key is listed under it (`arranging.py`), so an entry meets the conditions that ask for what
it has and no others.

On such an axis the rank of an entry only says whether all its keys are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from anabranch.columnar.expressions.patterns import PatternIndex
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import Constant
from anabranch.columnar.match import kernels
from anabranch.columnar.match.forms import AxisKind, NumberRanking, TestAxis, TextRanking
from anabranch.columnar.match.kernels import EntryKeys
from anabranch.columnar.scan import kernels as scan_kernels
from anabranch.columnar.scan.kernels import Places
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.wanted import WantedColumns

KEYED = frozenset((AxisKind.PATTERN, AxisKind.ROW_NUMBER, AxisKind.ROW_TEXT))


class KeyIndex(Protocol):
    """The keys of one axis."""

    count: int
    """How many keys there are."""
    share: float
    """The part of all entries that is taken to have one of them."""

    def places(self, given: Sequence[Constant]) -> Places:
        """The numbers of some of the keys."""

    def find(self, shredded: Shredded, ranks: Places) -> tuple[Places, Places] | None:
        """The entries and keys that belong together, and the ranks of all entries; None if they are too many."""


def key_index(axis: TestAxis, wanted: WantedColumns, constants: set[Constant]) -> KeyIndex:
    """The index of an axis that has keys."""
    row = wanted.rows[axis.column]
    if axis.kind is AxisKind.PATTERN:
        return _Patterns(row, sorted(each for each in constants if isinstance(each, bytes)))
    assert isinstance(axis.column, int), "a repeated part is read"
    return _RowValues(row, wanted.look.frames[axis.column], constants, are_texts=axis.kind is AxisKind.ROW_TEXT)


MOST_KEYS = 1 << 22
"""So many keys may be found in one batch."""
_LETTERS = 8
"""One of so many texts is taken to contain a pattern of one byte, and of these again as many one of two bytes."""


class _Patterns:
    """The patterns that the texts in a row may contain."""

    def __init__(self, row: int, patterns: Sequence[bytes]) -> None:
        self._row = row
        self._numbers = {each: number for number, each in enumerate(patterns)}
        self._index = PatternIndex.of(patterns)
        self.count = len(patterns)
        self.share = max(1 / self.count, float(_LETTERS) ** -float(np.median([*map(len, patterns)])))

    def places(self, given: Sequence[Constant]) -> Places:
        return np.array([self._numbers[each] for each in given if isinstance(each, bytes)], np.int32)

    def find(self, shredded: Shredded, ranks: Places) -> tuple[Places, Places] | None:
        starts, ends = shredded.starts[self._row], shredded.ends[self._row]
        unknown = starts == scan_kernels.UNCLEAR
        ranks[:] = np.where(unknown, np.int32(kernels.UNKNOWN), np.int32(0))
        texts = TextColumn(shredded.data, np.maximum(starts, 0), np.maximum(ends, 0))
        found = self._index.find_few(texts, MOST_KEYS if len(starts) > 1 else self.count)
        if found is None or not unknown.any():
            return found
        known = ~unknown[found[0]]
        return found[0][known], found[1][known]


class _RowValues:
    """The values that the rows of a repeated part may have."""

    def __init__(self, row: int, frame: int, constants: set[Constant], *, are_texts: bool) -> None:
        self._row, self._frame = row, frame
        self._ranking: TextRanking | NumberRanking
        if are_texts:
            self._ranking = TextRanking(row, sorted(each for each in constants if isinstance(each, bytes)))
        else:
            self._ranking = NumberRanking(row, sorted({float(each) for each in constants}))
        self.count = self._ranking.size // 2 - 1
        self.share = 1 / self.count

    def places(self, given: Sequence[Constant]) -> Places:
        return self._ranking.places(given)

    def find(self, shredded: Shredded, ranks: Places) -> tuple[Places, Places] | None:
        frame = shredded.frame(self._frame)
        rows, owners = frame.rows_in(shredded.first + np.arange(len(shredded.fits)))
        found = np.empty(frame.starts.shape[1], np.int32)
        self._ranking.rank(replace(shredded, starts=frame.starts, ends=frame.ends, values=frame.values), found)
        found = found[rows]
        ranks[:] = np.where(shredded.fits, np.int32(0), np.int32(kernels.UNKNOWN))
        ranks[owners[found == kernels.UNKNOWN]] = kernels.UNKNOWN
        is_key = (found & 1 == 1) & (found != self._ranking.size - 1) & (found >= 0)
        return owners[is_key].astype(np.int32), found[is_key] >> 1


def entry_keys(entries: int, count: int, found: Sequence[tuple[Places, Places]], firsts: Sequence[int]) -> EntryKeys:
    """The keys of entries on all axes, of which there are `count`; those of an axis are numbered from its first on."""
    owners = np.concatenate([np.empty(0, np.int32), *(each for each, _ in found)])
    keys = np.concatenate(
        [np.empty(0, np.int32), *(each + np.int32(first) for (_, each), first in zip(found, firsts, strict=True))]
    )
    bounds = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=entries))])
    if len(found) > 1:
        keys = keys[np.argsort(owners, kind="stable")]
    return EntryKeys(bounds, keys, np.full(count, -1, np.int64))
