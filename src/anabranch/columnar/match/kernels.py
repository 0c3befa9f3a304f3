"""The compiled loops of matching: which conditions hold for which entries.

Values are given by their ranks (`forms.py`, `ranks.py`), so every test is whether a rank lies in an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.match.condition import NO, UNCLEAR, YES
from anabranch.columnar.scan.kernels import (
    Flags,
    Indices,
    Places,
    compiled,
    compiled_inline,
    compiled_lean,
)

NEVER, ALWAYS = -1, -2
"""The axes of tests that the look decides."""
_ALL_BITS, _ONE_BIT = np.uint64((1 << 64) - 1), np.uint64(1)
_SEQUENCE, _SHIFT = np.uint64(0x03F79D71B4CB0A89), np.uint64(58)
"""A de Bruijn sequence: shifted by a bit's place, its six highest bits are another number for each place."""
_PLACES = np.zeros(64, np.int64)
for _place in range(64):
    _PLACES[((int(_SEQUENCE) << _place) & int(_ALL_BITS)) >> int(_SHIFT)] = _place


@compiled
def fill_cells(
    lows: Places,
    highs: Places,
    bins: Places,
    more_lows: Places,
    more_highs: Places,
    more_bins: Places,
    wide: int,
    heads: Indices,
    members: Indices,
) -> int:
    """Put intervals, or boxes, into the cells of a grid that they touch; returns how often.

    Without `members`, count into `heads` only; with them, `heads` is where the next member of each cell goes.
    """
    total = 0
    for number in range(len(lows)):
        if lows[number] > highs[number] or more_lows[number] > more_highs[number]:
            continue
        for first in range(bins[lows[number]], bins[highs[number]] + 1):
            for second in range(more_bins[more_lows[number]], more_bins[more_highs[number]] + 1):
                cell = first * wide + second
                if len(members):
                    members[heads[cell]] = number
                    heads[cell] += 1
                else:
                    heads[cell + 1] += 1
                total += 1
    return total


class Conditions(NamedTuple):
    """Conditions as the kernels take them; those of one form differ in `lows` and `highs` only.

    A form's stages, a stage's clauses and a clause's tests stand between two bounds each.
    """

    stage_bounds: Indices
    clause_bounds: Indices
    test_bounds: Indices
    tests: Indices
    """By number within the form."""
    axes: Indices
    negated: Flags
    """By test, those of a form behind `first_tests`."""
    forms: Indices
    first_tests: Indices
    bases: Indices
    """By condition: where its lows and highs begin."""
    lows: Places
    highs: Places
    user_bounds: Indices
    users: Indices
    """By axis: the conditions that read it."""
    settled: Indices
    """The conditions of which the look decides a test."""
    keyed: Flags
    """By axis: whether entries have keys there (`keys.py`); the low of a test is its key."""


class Cells(NamedTuple):
    """Grids: each has two axes (-1 for none).

    Its shape is where the bins of either axis begin, how many second bins there are, and where its cells begin; a cell
    has the clauses between two bounds, each with its condition, its lows and highs on both axes, and what else there is
    to test, -1 for nothing.
    """

    axes: Indices
    shapes: Indices
    bins: Places
    bounds: Indices
    conditions: Places
    clauses: Places
    spans: Places


class Bits(NamedTuple):
    """Clauses as bits: the condition of each, and a row of bits for each rank of each axis, from `rows` on.

    A row has the clauses that a value of this rank fulfils as far as the axis goes; `untested` has those that do not
    read an axis.
    """

    conditions: Places
    rows: Indices
    held: NDArray[np.uint64]
    untested: NDArray[np.uint64]


class KeyLists(NamedTuple):
    """The clauses that are found by a key, which stand between two bounds for each key.

    Each has its condition, and what else there is to test, -1 for nothing.
    """

    bounds: Indices
    conditions: Places
    clauses: Places
    user_bounds: Indices
    users: Places
    """By key: the conditions that test it, however they are found."""


class EntryKeys(NamedTuple):
    """The keys of each entry, between two bounds."""

    bounds: Indices
    keys: Places
    """The complement of a key where it is not clear whether the entry has it."""
    latest: Indices
    latest_open: Indices
    """By key: the last entry so far that has it, or that may have it."""


class Pairs(NamedTuple):
    """A buffer for pairs of a condition and an entry, in the order of entries: those that match, and open ones."""

    seen: Indices
    """By condition: the last entry it was tried with."""
    counts: Indices
    conditions: Places
    entries: Places


class Hits(NamedTuple):
    """The entries that match some conditions, one condition behind the other, and those of each as they come."""

    entries: Places
    bounds: Indices
    """By condition: its entries lie between two of these."""

    def of(self, condition: int) -> Places:
        """The entries that match a condition."""
        return self.entries[self.bounds[condition] : self.bounds[condition + 1]]

    def without(self, places: Sequence[Indices]) -> Hits:
        """The hits but for those at some places, which rise."""
        if not places:
            return self
        gone = np.concatenate(places)
        return Hits(np.delete(self.entries, gone), self.bounds - np.searchsorted(gone, self.bounds))


NO_HITS = Hits(np.empty(0, np.int32), np.zeros(1, np.int64))
OPEN, TAKEN = 0, 1
"""The two kinds of pairs, by row."""


@compiled_lean
def _is_inside(entry: int, axis: int, at: int, ranks: Places, held: EntryKeys, laid: Conditions) -> int:
    """Whether the rank of an entry on an axis lies between a low and a high, or whether it has the key."""
    rank = ranks[axis, entry]
    if laid.keyed[axis]:
        key = laid.lows[at]
        if held.latest[key] == entry:
            return YES
        return NO if rank >= 0 and held.latest_open[key] != entry else UNCLEAR
    if rank < 0:
        return UNCLEAR
    return YES if laid.lows[at] <= rank <= laid.highs[at] else NO


@compiled_lean
def _verdict(condition: int, entry: int, fits: bool, ranks: Places, held: EntryKeys, laid: Conditions) -> int:
    """The verdict of one condition on one entry, stage by stage."""
    form = laid.forms[condition]
    first_test = laid.first_tests[form]
    for stage in range(laid.stage_bounds[form], laid.stage_bounds[form + 1]):
        found = NO
        for clause in range(laid.clause_bounds[stage], laid.clause_bounds[stage + 1]):
            all_of = YES
            for place in range(laid.test_bounds[clause], laid.test_bounds[clause + 1]):
                test = laid.tests[place]
                axis = laid.axes[first_test + test]
                at = laid.bases[condition] + test
                if axis < 0:
                    holds = (YES if axis == ALWAYS else NO) if fits else UNCLEAR
                else:
                    inside = _is_inside(entry, axis, at, ranks, held, laid)
                    holds = inside if inside == UNCLEAR or not laid.negated[first_test + test] else YES - inside
                all_of = min(all_of, holds)
            found = max(found, all_of)
        if found != YES:
            return found
    return YES


@compiled_lean
def _note(pairs: Pairs, condition: int, entry: int, kind: int) -> bool:
    """Note a pair; whether there was room."""
    at = pairs.counts[kind]
    if at == pairs.entries.shape[1]:
        return False
    pairs.conditions[kind, at], pairs.entries[kind, at] = condition, entry
    pairs.counts[kind] = at + 1
    return True


@compiled_inline
def _is_known(entry: int, fit: bool, ranks: Places) -> bool:
    """Whether all ranks of an entry are known, as those of most are."""
    known = fit
    for axis in range(len(ranks)):
        known = known and ranks[axis, entry] >= 0
    return known


@compiled_lean
def _judge_unknown(entry: int, fit: bool, ranks: Places, held: EntryKeys, laid: Conditions, pairs: Pairs) -> bool:
    """Note the pairs of an entry with the conditions that read an unknown rank of it; whether there was room."""
    for axis in range(len(ranks) + 1):
        if axis < len(ranks):
            if ranks[axis, entry] >= 0:
                continue
            first, last = laid.user_bounds[axis], laid.user_bounds[axis + 1]
        else:
            first, last = 0, 0 if fit else len(laid.settled)
        for place in range(first, last):
            condition = laid.users[place] if axis < len(ranks) else laid.settled[place]
            if not _judge_one(condition, entry, fit, ranks, held, laid, pairs):
                return False
    return True


@compiled_lean
def _judge_one(
    condition: int, entry: int, fit: bool, ranks: Places, held: EntryKeys, laid: Conditions, pairs: Pairs
) -> bool:
    """Note the outcome of one condition for one entry, unless that is done; whether there was room."""
    if pairs.seen[condition] == entry:
        return True
    pairs.seen[condition] = entry
    outcome = _verdict(condition, entry, fit, ranks, held, laid)
    return outcome == NO or _note(pairs, condition, entry, TAKEN if outcome == YES and fit else OPEN)


@compiled_lean
def _take(
    condition: int, clause: int, entry: int, fit: bool, ranks: Places, held: EntryKeys, laid: Conditions, pairs: Pairs
) -> bool:
    """Note a condition if the rest of its clause holds, -1 for no rest; whether there was room."""
    if pairs.seen[condition] == entry:
        return True
    if clause >= 0 and not _holds(condition, clause, entry, ranks, held, laid):
        return True
    pairs.seen[condition] = entry
    return _note(pairs, condition, entry, TAKEN if fit else OPEN)


@compiled_lean
def _holds(condition: int, clause: int, entry: int, ranks: Places, held: EntryKeys, laid: Conditions) -> bool:
    """Whether an entry fulfils a clause of a condition; it does not where a rank is unknown."""
    first_test, base = laid.first_tests[laid.forms[condition]], laid.bases[condition]
    for place in range(laid.test_bounds[clause], laid.test_bounds[clause + 1]):
        test = laid.tests[place]
        inside = _is_inside(entry, laid.axes[first_test + test], base + test, ranks, held, laid)
        if inside != (NO if laid.negated[first_test + test] else YES):
            return False
    return True


@compiled_lean
def _match_keys(
    entry: int, fit: bool, ranks: Places, laid: Conditions, found: EntryKeys, lists: KeyLists, pairs: Pairs
) -> bool:
    """Note the pairs of an entry that its unknown ranks and its keys lead to; whether there was room."""
    for at in range(found.bounds[entry], found.bounds[entry + 1]):
        key = found.keys[at]
        if key >= 0:
            found.latest[key] = entry
        else:
            found.latest_open[~key] = entry
    if not _is_known(entry, fit, ranks) and not _judge_unknown(entry, fit, ranks, found, laid, pairs):
        return False
    for at in range(found.bounds[entry], found.bounds[entry + 1]):
        key = found.keys[at]
        if key < 0:
            for place in range(lists.user_bounds[~key], lists.user_bounds[~key + 1]):
                if not _judge_one(lists.users[place], entry, fit, ranks, found, laid, pairs):
                    return False
    for at in range(found.bounds[entry], found.bounds[entry + 1]):
        key = found.keys[at]
        if key < 0:
            continue
        for place in range(lists.bounds[key], lists.bounds[key + 1]):
            asked = lists.conditions[place], lists.clauses[place]
            if not _take(asked[0], asked[1], entry, fit, ranks, found, laid, pairs):
                return False
    return True


@compiled
def match(
    fits: Flags, ranks: Places, laid: Conditions, found: EntryKeys, lists: KeyLists, cells: Cells, pairs: Pairs
) -> bool:
    """Find all pairs of a condition and an entry that matches, and those that are open; whether there was room."""
    for entry in range(len(fits)):
        fit = fits[entry]
        is_known = _is_known(entry, fit, ranks)
        has_more = not is_known or found.bounds[entry] < found.bounds[entry + 1]  # most entries have no more
        if has_more and not _match_keys(entry, fit, ranks, laid, found, lists, pairs):
            return False
        for grid in range(len(cells.axes)):
            one, two = cells.axes[grid]
            first = ranks[one, entry] if one >= 0 else 0
            second = ranks[two, entry] if two >= 0 else 0
            if first < 0 or second < 0:
                continue
            row = cells.bins[cells.shapes[grid, 0] + first] * cells.shapes[grid, 2]
            cell = cells.shapes[grid, 3] + row + cells.bins[cells.shapes[grid, 1] + second]
            for place in range(cells.bounds[cell], cells.bounds[cell + 1]):
                low, high, more_low, more_high = cells.spans[place]
                if first < low or first > high or second < more_low or second > more_high:
                    continue
                asked = cells.conditions[place], cells.clauses[place]
                if not _take(asked[0], asked[1], entry, fit, ranks, found, laid, pairs):
                    return False
    return True


@compiled
def match_few(
    fits: Flags, ranks: Places, laid: Conditions, found: EntryKeys, lists: KeyLists, bits: Bits, pairs: Pairs
) -> bool:
    """Match as `match` does, for so few clauses that each is a bit."""
    for entry in range(len(fits)):
        fit = fits[entry]
        is_known = _is_known(entry, fit, ranks)
        has_more = not is_known or found.bounds[entry] < found.bounds[entry + 1]  # most entries have no more
        if has_more and not _match_keys(entry, fit, ranks, laid, found, lists, pairs):
            return False
        for word in range(bits.untested.shape[1]):
            left = _ALL_BITS
            for axis in range(len(ranks)):
                rank = ranks[axis, entry]
                if is_known or rank >= 0:
                    left &= bits.held[np.uint64(bits.rows[axis] + rank), word]
                else:
                    left &= bits.untested[axis, word]
            while left:
                lowest = left & (~left + _ONE_BIT)
                left ^= lowest
                condition = bits.conditions[word * 64 + _PLACES[(lowest * _SEQUENCE) >> _SHIFT]]
                if condition >= 0 and not _take(condition, -1, entry, fit, ranks, found, laid, pairs):
                    return False
    return True


@compiled
def deal(conditions: Places, entries: Places, hits: Hits) -> None:
    """Put pairs of a condition and an entry in the order of the conditions; the bounds are 0 before."""
    for pair in range(len(conditions)):
        hits.bounds[conditions[pair] + 1] += 1
    for condition in range(len(hits.bounds) - 1):
        hits.bounds[condition + 1] += hits.bounds[condition]
    heads = hits.bounds.copy()
    for pair in range(len(conditions)):
        condition = conditions[pair]
        hits.entries[heads[condition]] = entries[pair]
        heads[condition] += 1
