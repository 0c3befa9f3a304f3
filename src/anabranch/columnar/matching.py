"""Thousands of conditions judged together: an index over predicates.

A `Matcher` is built for some conditions and asked batch by batch which of them take which entries.
Its cost follows the items and their matches, hardly the number of conditions:

* each value is ranked once among all constants it is compared with (`ranking.py`);
* each clause of a condition lies in the cells of a *grid* that it touches, over the one or two axes on which it is
  narrowest, so an entry is only tried with the clauses of its cell; where conditions are few, clauses are bits
  (`clause_bits.py`);
* conditions of one form (`forms.py`) are arranged together (`arranging.py`), and differ in numbers only.

What is unclear for a value that is not known concerns only the conditions that look at it; they are judged in three
values.
The answer is that of `condition.judge` for every condition and entry, with one difference that cannot be seen: an entry
that does not fit is never taken, only left open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from anabranch.columnar import kernels_matching as kernels
from anabranch.columnar.arranging import Alike, Arranged, gathered, rankings_of
from anabranch.columnar.condition import NO, UNCLEAR, YES, Condition, judge
from anabranch.columnar.kernels import Indices, Places
from anabranch.columnar.shred import Shredded, Wanted

_ROOM, _MOST_PAIRS = 1 << 12, 1 << 20
"""Room for pairs: to begin with, and at most, unless there is but one entry."""
_EDGE = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Matches:
    """What some conditions make of the entries of a batch."""

    count: int
    """How many conditions there are."""
    conditions: Places
    pairs: Places
    """Each pair of a condition and an entry that it takes, in the order of entries."""
    open_conditions: Indices
    open_entries: Indices
    """The pairs that are left to the law, in the order of entries."""

    def part(self, first: int, last: int) -> Matches:
        """What some of the conditions make of them, which are numbered from 0 on then."""
        taken = (self.conditions >= first) & (self.conditions < last)
        opened = (self.open_conditions >= first) & (self.open_conditions < last)
        return Matches(
            last - first,
            self.conditions[taken] - np.int32(first),
            self.pairs[taken],
            self.open_conditions[opened] - first,
            self.open_entries[opened],
        )

    @cached_property
    def bounds(self) -> Indices:
        """The entries that condition `c` takes are `entries[bounds[c] : bounds[c + 1]]`."""
        return self._by_condition[0]

    @cached_property
    def entries(self) -> Indices:
        return self.pairs[self._by_condition[1]].astype(np.int64)

    @cached_property
    def _by_condition(self) -> tuple[Indices, Indices]:
        bounds, turn = np.zeros(self.count + 1, np.int64), np.empty(len(self.pairs), np.int64)
        kernels.by_condition(self.conditions, bounds, turn)
        return bounds, turn

    def taken(self, condition: int) -> Indices:
        """The entries that a condition takes."""
        return self.entries[self.bounds[condition] : self.bounds[condition + 1]]


_NONE = np.empty(0, np.int64)
NO_MATCHES = Matches(0, np.empty(0, np.int32), np.empty(0, np.int32), _NONE, _NONE)


class Matcher:
    """Conditions ready to be matched; they are numbered from 0 on."""

    def __init__(self, count: int, groups: Sequence[Alike], others: Sequence[tuple[int, Condition]], wanted: Wanted):
        """`others` are conditions without a form, by number; `wanted` says which leaf is in which row."""
        self._count = count
        self._others = others
        rankings = rankings_of(groups, wanted)
        self._rankings = list(rankings.values())
        self._laid = Arranged(rankings, groups)
        numbers = np.array([*chain.from_iterable(each.numbers for each in groups)], np.int64)
        self._numbers = numbers
        self._is_ordered = bool((numbers == np.arange(len(numbers))).all())
        self._seen = np.empty(len(numbers), np.int64)
        self._pairs_found = np.empty((4, _ROOM), np.int32)
        """Room for pairs, which are gone with the next batch."""

    @staticmethod
    def of(conditions: Sequence[Condition], wanted: Wanted) -> Matcher:
        """The matcher of some conditions."""
        return Matcher(len(conditions), *gathered(enumerate(conditions)), wanted)

    def match(self, shredded: Shredded) -> Matches | None:
        """Judge the entries of a batch, which was cut for the same `wanted`; None where fewer must be shown at once.

        What is found is there until the next batch is judged.
        """
        pairs = self._pairs(shredded)
        if pairs is None:
            return None
        conditions, entries, open_conditions, open_entries = pairs
        for number, condition in self._others:
            verdicts = judge(condition, shredded)
            verdicts = np.where(shredded.fits | (verdicts == NO), verdicts, np.uint8(UNCLEAR))
            for outcome, found, entered in ((YES, conditions, entries), (UNCLEAR, open_conditions, open_entries)):
                these = np.flatnonzero(verdicts == outcome)
                found.append(np.full(len(these), number, np.int32))
                entered.append(these.astype(np.int32))
        taken, at = np.concatenate(conditions), np.concatenate(entries)
        opened, where = np.concatenate(open_conditions), np.concatenate(open_entries)
        if self._others:
            turn = np.argsort(at, kind="stable")
            taken, at = taken[turn], at[turn]
            turn = np.argsort(where, kind="stable")
            opened, where = opened[turn], where[turn]
        return Matches(self._count, taken, at, opened.astype(np.int64), where.astype(np.int64))

    def _pairs(self, shredded: Shredded) -> tuple[list[Places], list[Places], list[Places], list[Places]] | None:
        """The pairs of conditions that have a form; None if they are too many for one batch."""
        most = _MOST_PAIRS if len(shredded.fits) > 1 else _EDGE
        ranks = np.empty((len(self._rankings), len(shredded.fits)), np.int32)
        for row, ranking in enumerate(self._rankings):
            ranking.rank(shredded, ranks[row])
        while True:
            room = self._pairs_found
            self._seen.fill(-1)
            given = (shredded.fits, ranks, *self._laid.arrays, self._seen, *room)
            taken, opened, done = kernels.match_few(*given) if self._laid.are_few else kernels.match(*given)
            if done:
                break
            if room.shape[1] >= most:
                return None
            self._pairs_found = np.empty((4, 2 * room.shape[1]), np.int32)
        cut = (room[0, :taken], room[1, :taken], room[2, :opened], room[3, :opened])
        if self._is_ordered:
            return tuple([each] for each in cut)  # type: ignore[return-value]
        return [self._numbers[cut[0]].astype(np.int32)], [cut[1]], [self._numbers[cut[2]].astype(np.int32)], [cut[3]]
