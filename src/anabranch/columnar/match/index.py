"""Thousands of conditions judged together: an index over predicates.

A `Matcher` is built for some conditions and asked batch by batch which of them take which entries.
Its cost follows the items and their matches, hardly the number of conditions:

* each value is ranked once among all constants it is compared with (`forms.py`);
* each clause of a condition lies in the cells of a *grid* that it touches, over the one or two axes on which it is
  narrowest, so an entry is only tried with the clauses of its cell; where conditions are few, clauses are bits
  (`arranging.py`);
* conditions of one form (`forms.py`) are arranged together, and differ in numbers only.

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

from anabranch.columnar.match import kernels
from anabranch.columnar.match.arranging import Alike, Arranged, gathered, rankings_of
from anabranch.columnar.match.condition import NO, UNCLEAR, YES, Condition, NumberTest, judge, tests
from anabranch.columnar.match.forms import NumberRanking
from anabranch.columnar.match.kernels import OPEN, TAKEN, Pairs
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers, Places
from anabranch.columnar.scan.shred import Shredded, Wanted

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

    def without(self, gone: Flags) -> Matches:
        """The same for all conditions but some."""
        kept, opened = ~gone[self.conditions], ~gone[self.open_conditions]
        taken = self.conditions[kept], self.pairs[kept]
        return Matches(self.count, *taken, self.open_conditions[opened], self.open_entries[opened])

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
        self._wanted = wanted
        rankings = rankings_of(groups, wanted)
        self._rankings = list(rankings.values())
        self._laid = Arranged(rankings, groups)
        numbers = np.array([*chain.from_iterable(each.numbers for each in groups)], np.int64)
        self._numbers = numbers
        self._is_ordered = bool((numbers == np.arange(len(numbers))).all())
        self._pairs = _room(len(numbers), _ROOM)
        """Those of the last batch."""

    @staticmethod
    def of(conditions: Sequence[Condition], wanted: Wanted) -> Matcher:
        """The matcher of some conditions."""
        return Matcher(len(conditions), *gathered(enumerate(conditions)), wanted)

    def constants(self, row: int) -> Numbers:
        """The numbers that the leaf in a row is compared with, rising."""
        formed = (each.constants for each in self._rankings if isinstance(each, NumberRanking) and each.row == row)
        leaf = self._wanted.leaves[row]
        found = (tests(condition) for _, condition in self._others)
        single = {each.number for some in found for each in some if isinstance(each, NumberTest) and each.leaf == leaf}
        return np.unique(np.concatenate([*formed, np.array(sorted(single), np.float64)]))

    def match(self, shredded: Shredded) -> Matches | None:
        """Judge the entries of a batch, which was cut for the same `wanted`; None where fewer must be shown at once.

        What is found is there until the next batch is judged.
        """
        pairs = self._formed(shredded)
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

    def _formed(self, shredded: Shredded) -> tuple[list[Places], list[Places], list[Places], list[Places]] | None:
        """The pairs of conditions that have a form; None if they are too many for one batch."""
        most = _MOST_PAIRS if len(shredded.fits) > 1 else _EDGE
        ranks = np.empty((len(self._rankings), len(shredded.fits)), np.int32)
        for row, ranking in enumerate(self._rankings):
            ranking.rank(shredded, ranks[row])
        while not self._found(shredded, ranks):
            room = self._pairs.entries.shape[1]
            if room >= most:
                return None
            self._pairs = _room(len(self._numbers), 2 * room)
        (opened, taken), conditions, entries = self._pairs.counts, self._pairs.conditions, self._pairs.entries
        found = conditions[TAKEN, :taken], conditions[OPEN, :opened]
        if not self._is_ordered:
            found = self._numbers[found[0]].astype(np.int32), self._numbers[found[1]].astype(np.int32)
        return [found[0]], [entries[TAKEN, :taken]], [found[1]], [entries[OPEN, :opened]]

    def _found(self, shredded: Shredded, ranks: Places) -> bool:
        """Find the pairs; whether there was room for them."""
        self._pairs.seen.fill(-1)
        self._pairs.counts.fill(0)
        given = shredded.fits, ranks, self._laid.conditions
        match self._laid.places:
            case kernels.Bits() as bits:
                return kernels.match_few(*given, bits, self._pairs)
            case kernels.Cells() as cells:
                return kernels.match(*given, cells, self._pairs)


def _room(conditions: int, pairs: int) -> Pairs:
    rooms = (np.empty((2, pairs), np.int32) for _ in range(2))
    return Pairs(np.empty(conditions, np.int64), np.zeros(2, np.int64), *rooms)
