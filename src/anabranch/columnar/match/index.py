"""Thousands of conditions matched together: an index over predicates.

A `Matcher` is built for some conditions and finds, batch by batch, which of them match which entries.
Its cost follows the items and their matches, hardly the number of conditions:

* each value is ranked once among all constants it is compared with (`forms.py`);
* each clause of a condition lies in the cells of a *grid* that it touches, over the one or two axes on which it is
  narrowest, so an entry is only tried with the clauses of its cell; where conditions are few, clauses are bits
  (`arranging.py`);
* a clause with a key, such as a pattern in a text, is listed under the key, and an entry is only tried with the clauses
  of the keys that it has (`keys.py`);
* conditions on the rows of a repeated part are matched with the rows, by another such index, and are keys of the
  entries that the rows lie in;
* conditions of one form (`forms.py`) are arranged together, and differ in numbers only.

A value that is not known concerns only the conditions that read it; they are evaluated in three-valued logic.
The outcome is that of `judging.judge` for every condition and entry, with one difference that no answer shows: an entry
that does not fit never matches, it is only left open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from anabranch.columnar.match import kernels
from anabranch.columnar.match.arranging import Arranged, axes_of
from anabranch.columnar.match.condition import NO, UNCLEAR, YES, Condition, NumberTest, tests
from anabranch.columnar.match.forms import Alike, AxisKind, FormConstant, NumberRanking, TestAxis
from anabranch.columnar.match.judging import judge
from anabranch.columnar.match.kernels import OPEN, TAKEN, EntryKeys, Hits, Pairs, deal
from anabranch.columnar.match.keys import FoundKeys, KeyIndex, PatternKeys, entry_keys
from anabranch.columnar.match.ranks import UNKNOWN
from anabranch.columnar.match.rows import frame_rows
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers, Places
from anabranch.columnar.scan.shred import Shredded
from anabranch.columnar.scan.wanted import WantedColumns

_ROOM, _MOST_PAIRS = 1 << 12, 1 << 20
"""Room for pairs: to begin with, and at most, unless there is but one entry."""
_EDGE = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Matches:
    """The matches of some conditions with the entries of a batch."""

    count: int
    """How many conditions there are."""
    conditions: Places
    pairs: Places
    """The pairs of a condition and an entry that matches it, in the order of entries."""
    open_conditions: Indices
    open_entries: Indices
    """The pairs that are left to the law, in the order of entries."""

    def part(self, first: int, last: int) -> Matches:
        """The matches of some of the conditions, which are then numbered from 0 on."""
        if (first, last) == (0, self.count):
            return self
        taken = (self.conditions >= first) & (self.conditions < last)
        opened = (self.open_conditions >= first) & (self.open_conditions < last)
        return Matches(
            last - first,
            self.conditions[taken] - np.int32(first),
            self.pairs[taken],
            self.open_conditions[opened] - first,
            self.open_entries[opened],
        )

    @property
    def hits(self) -> Hits:
        """The pairs that match, in the order of conditions."""
        found = Hits(np.empty(len(self.pairs), np.int32), np.zeros(self.count + 1, np.int64))
        deal(self.conditions, self.pairs, found)
        return found

    def without(self, gone: Flags) -> Matches:
        """The matches without those of some conditions."""
        kept, opened = ~gone[self.conditions], ~gone[self.open_conditions]
        taken = self.conditions[kept], self.pairs[kept]
        return Matches(self.count, *taken, self.open_conditions[opened], self.open_entries[opened])

    def opened(self, unclear: Flags) -> Matches:
        """The matches, of which some are left to the law after all."""
        conditions = np.concatenate([self.open_conditions, self.conditions[unclear]])
        entries = np.concatenate([self.open_entries, self.pairs[unclear]])
        order = np.argsort(entries, kind="stable")
        return Matches(self.count, self.conditions[~unclear], self.pairs[~unclear], conditions[order], entries[order])


_NONE = np.empty(0, np.int64)
NO_MATCHES = Matches(0, np.empty(0, np.int32), np.empty(0, np.int32), _NONE, _NONE)


class Matcher:
    """Conditions ready to be matched; they are numbered from 0 on."""

    def __init__(
        self, count: int, groups: Sequence[Alike], others: Sequence[tuple[int, Condition]], wanted: WantedColumns
    ):
        """`others` are conditions without a form, by number; `wanted` says which column is in which row."""
        self._count = count
        self._others = others
        self._wanted = wanted
        axes = axes_of(groups, wanted, _key_index)
        self._rankings = list(axes.rankings.values())
        self._keys = list(axes.keys.values())
        self._first_keys = axes.first_keys
        self._laid = Arranged(axes, groups)
        numbers = np.array([*chain.from_iterable(each.numbers for each in groups)], np.int32)
        self._numbers = numbers
        self.share = self._laid.share
        """The estimated part of all entries that meets one of the conditions."""
        self._is_ordered = bool((numbers == np.arange(len(numbers))).all())
        self._pairs = _room(len(numbers), _ROOM)
        """The pairs of the last batch."""

    def constants(self, row: int) -> Numbers:
        """The numbers that the column in a row is compared with, rising."""
        formed = (each.constants for each in self._rankings if isinstance(each, NumberRanking) and each.row == row)
        found = (each for _, condition in self._others for each in tests(condition))
        single = {
            each.number for each in found if isinstance(each, NumberTest) and self._wanted.rows[each.column] == row
        }
        return np.unique(np.concatenate([*formed, np.array(sorted(single), np.float64)]))

    def match(self, shredded: Shredded) -> Matches | None:
        """Match the entries of a batch, which was shredded for the same `wanted`; None where there are too many pairs.

        The result is valid until the next batch is matched.
        """
        if not self._has_formed(shredded):
            return None
        if not self._others:
            (taken, at), (opened, where) = map(self._part, (TAKEN, OPEN))
            return Matches(self._count, taken, at, opened.astype(np.int64), where.astype(np.int64))
        found = [[self._part(kind)] for kind in (TAKEN, OPEN)]
        for number, condition in self._others:
            verdicts = judge(condition, shredded)
            verdicts = np.where(shredded.fits | (verdicts == NO), verdicts, np.uint8(UNCLEAR))
            for part, outcome in zip(found, (YES, UNCLEAR), strict=True):
                entries = np.flatnonzero(verdicts == outcome).astype(np.int32)
                part.append((np.full(len(entries), number, np.int32), entries))
        pairs = [tuple(map(np.concatenate, zip(*part, strict=True))) for part in found]
        turns = (np.argsort(entries, kind="stable") for _, entries in pairs)
        pairs = [tuple(each[turn] for each in part) for part, turn in zip(pairs, turns, strict=True)]
        (taken, at), (opened, where) = pairs
        return Matches(self._count, taken, at, opened.astype(np.int64), where.astype(np.int64))

    def _part(self, kind: int) -> tuple[Places, Places]:
        """The conditions and entries of the pairs that match, or that are open."""
        count = self._pairs.counts[kind]
        conditions, entries = self._pairs.conditions[kind, :count], self._pairs.entries[kind, :count]
        return (conditions if self._is_ordered else self._numbers[conditions]), entries

    def _has_formed(self, shredded: Shredded) -> bool:
        """Find the pairs of conditions that have a form; False if they are too many for one batch."""
        most = _MOST_PAIRS if len(shredded.fits) > 1 else _EDGE
        entries = len(shredded.fits)
        ranks = np.empty((len(self._rankings) + len(self._keys), entries), np.int32)
        for row, ranking in enumerate(self._rankings):
            ranking.rank(shredded, ranks[row])
        keys = []
        for row, index in enumerate(self._keys, len(self._rankings)):
            found = index.find(shredded, ranks[row])
            if found is None:
                return False
            keys.append(found)
        held = entry_keys(entries, self._first_keys[-1], keys, self._first_keys[:-1])
        while not self._found(shredded, ranks, held):
            room = self._pairs.entries.shape[1]
            if room >= most:
                return False
            self._pairs = _room(len(self._numbers), 2 * room)
        return True

    def _found(self, shredded: Shredded, ranks: Places, held: EntryKeys) -> bool:
        """Find the pairs; whether there was room for them."""
        self._pairs.seen.fill(-1)
        self._pairs.counts.fill(0)
        given = shredded.fits, ranks, self._laid.conditions, held, self._laid.lists
        match self._laid.places:
            case kernels.Bits() as bits:
                return kernels.match_few(*given, bits, self._pairs)
            case kernels.Cells() as cells:
                return kernels.match(*given, cells, self._pairs)


def _room(conditions: int, pairs: int) -> Pairs:
    rooms = (np.empty((2, pairs), np.int32) for _ in range(2))
    return Pairs(np.empty(conditions, np.int64), np.zeros(2, np.int64), *rooms)


def _key_index(axis: TestAxis, wanted: WantedColumns, constants: set[FormConstant]) -> KeyIndex:
    """The index of an axis that has keys."""
    if axis.kind is AxisKind.PATTERN:
        return PatternKeys(wanted.rows[axis.column], sorted(each for each in constants if isinstance(each, bytes)))
    return _RowKeys(axis, wanted, sorted(each for each in constants if isinstance(each, tuple)))


class _RowKeys:
    """The conditions of one form on the rows of a repeated part as keys, found by an index over the rows."""

    def __init__(self, axis: TestAxis, wanted: WantedColumns, conditions: Sequence[tuple[FormConstant, ...]]) -> None:
        """Conditions are given by their constants."""
        assert isinstance(axis.column, int), "a repeated part is read"
        assert axis.rows is not None, "a condition on rows has a form"
        self._frame = axis.column
        self._wanted = wanted.computing(axis.rows.columns)
        self._numbers = {each: number for number, each in enumerate(conditions)}
        self.count = len(conditions)
        self._matcher = Matcher(self.count, [Alike(axis.rows, range(self.count), conditions)], (), self._wanted)
        self.share = self._matcher.share

    def places(self, given: Sequence[FormConstant]) -> Places:
        return np.array([self._numbers[each] for each in given if isinstance(each, tuple)], np.int32)

    def find(self, shredded: Shredded, ranks: Places) -> FoundKeys | None:
        ranks[:] = np.where(shredded.fits, np.int32(0), np.int32(UNKNOWN))
        rows, owners, doubtful = frame_rows(shredded, self._frame, self._wanted)
        if doubtful is not None:
            ranks[doubtful] = UNKNOWN
        found = self._matcher.match(rows)
        if found is None:
            return None if len(shredded.fits) > 1 else self._of_one(rows)
        entries, open_entries = owners[found.pairs], owners[found.open_entries]
        kept, opened = shredded.fits[entries], shredded.fits[open_entries]
        given = entries[kept], found.conditions[kept], open_entries[opened], found.open_conditions[opened]
        return FoundKeys(*(each.astype(np.int32) for each in given))

    def _of_one(self, rows: Shredded) -> FoundKeys:
        """The keys of the only entry, whose rows are matched one by one."""
        held, opened = (np.zeros(self.count, np.bool_) for _ in range(2))
        for row in range(len(rows.fits)):
            found = self._matcher.match(rows.part(row, row + 1))
            assert found is not None, "there is room for one entry, whatever it meets"
            held[found.conditions] = opened[found.open_conditions] = True
        keys, more = (np.flatnonzero(each).astype(np.int32) for each in (held, opened))
        return FoundKeys(np.zeros_like(keys), keys, np.zeros_like(more), more)
