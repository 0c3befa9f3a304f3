"""The compiled loops of `matching.py`: which conditions hold for which entries.

Values are given by their ranks (`ranking.py`), so every test is whether a rank lies in an interval.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.condition import NO, UNCLEAR, YES
from anabranch.columnar.kernels import Flags, Indices, Places, compiled

NEVER, ALWAYS = -1, -2
"""Stand for the axis of a test that the template decides."""
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
    """Put intervals, or boxes, into the cells of a grid that they touch.

    Without `members`, count into `heads` only, and give the sum; with them, `heads` are where each cell goes on.
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


@compiled
def _verdict(
    condition: int,
    entry: int,
    fits: bool,
    ranks: Places,
    stage_bounds: Indices,
    clause_bounds: Indices,
    test_bounds: Indices,
    tests: Indices,
    axes: Indices,
    negated: Flags,
    forms: Indices,
    first_tests: Indices,
    bases: Indices,
    lows: Places,
    highs: Places,
) -> int:
    """What one condition makes of one entry, stage by stage."""
    form = forms[condition]
    for stage in range(stage_bounds[form], stage_bounds[form + 1]):
        found = NO
        for clause in range(clause_bounds[stage], clause_bounds[stage + 1]):
            all_of = YES
            for place in range(test_bounds[clause], test_bounds[clause + 1]):
                test = tests[place]
                axis = axes[first_tests[form] + test]
                if axis < 0:
                    holds = (YES if axis == ALWAYS else NO) if fits else UNCLEAR
                elif ranks[axis, entry] < 0:
                    holds = UNCLEAR
                else:
                    at = bases[condition] + test
                    inside = lows[at] <= ranks[axis, entry] <= highs[at]
                    holds = YES if inside != negated[first_tests[form] + test] else NO
                all_of = min(all_of, holds)
            found = max(found, all_of)
        if found != YES:
            return found
    return YES


@compiled
def _judge_open(
    entry: int,
    fit: bool,
    ranks: Places,
    stage_bounds: Indices,
    clause_bounds: Indices,
    test_bounds: Indices,
    tests: Indices,
    axes: Indices,
    negated: Flags,
    forms: Indices,
    first_tests: Indices,
    bases: Indices,
    lows: Places,
    highs: Places,
    user_bounds: Indices,
    users: Indices,
    settled: Indices,
    seen: Indices,
    found_conditions: Places,
    found_entries: Places,
    open_conditions: Places,
    open_entries: Places,
    taken: int,
    opened: int,
) -> tuple[int, int, bool]:
    """The pairs of an entry with the conditions that look at what is not known of it."""
    for axis in range(len(ranks) + 1):
        if axis < len(ranks):
            if ranks[axis, entry] >= 0:
                continue
            first, last = user_bounds[axis], user_bounds[axis + 1]
        else:
            first, last = 0, 0 if fit else len(settled)
        for place in range(first, last):
            condition = users[place] if axis < len(ranks) else settled[place]
            if seen[condition] == entry:
                continue
            seen[condition] = entry
            outcome = _verdict(
                condition, entry, fit, ranks, stage_bounds, clause_bounds, test_bounds, tests, axes, negated,
                forms, first_tests, bases, lows, highs,
            )  # fmt: skip
            if outcome == YES and fit:
                if taken == len(found_entries):
                    return taken, opened, False
                found_conditions[taken], found_entries[taken] = condition, entry
                taken += 1
            elif outcome != NO:
                if opened == len(open_entries):
                    return taken, opened, False
                open_conditions[opened], open_entries[opened] = condition, entry
                opened += 1
    return taken, opened, True


@compiled
def match(
    fits: Flags,
    ranks: Places,
    stage_bounds: Indices,
    clause_bounds: Indices,
    test_bounds: Indices,
    tests: Indices,
    axes: Indices,
    negated: Flags,
    forms: Indices,
    first_tests: Indices,
    bases: Indices,
    lows: Places,
    highs: Places,
    user_bounds: Indices,
    users: Indices,
    settled: Indices,
    grid_axes: Indices,
    grid_shape: Indices,
    grid_bins: Places,
    cell_bounds: Indices,
    cell_conditions: Places,
    cell_clauses: Places,
    seen: Indices,
    found_conditions: Places,
    found_entries: Places,
    open_conditions: Places,
    open_entries: Places,
) -> tuple[int, int, bool]:
    """All pairs of a condition and an entry it takes, and those that are open; how many, and whether there was room.

    Pairs come in the order of entries.
    A grid has two axes (-1 for none) and for each of them where its bins begin, then how many second bins there are,
    and where its cells begin.
    """
    taken = opened = 0
    for entry in range(len(fits)):
        fit = fits[entry]
        is_open = not fit
        for axis in range(len(ranks)):
            is_open = is_open or ranks[axis, entry] < 0
        if is_open:
            taken, opened, done = _judge_open(
                entry, fit, ranks, stage_bounds, clause_bounds, test_bounds, tests, axes, negated, forms, first_tests,
                bases, lows, highs, user_bounds, users, settled, seen, found_conditions, found_entries,
                open_conditions, open_entries, taken, opened,
            )  # fmt: skip
            if not done:
                return taken, opened, False
        for grid in range(len(grid_axes)):
            one, two = grid_axes[grid]
            cell = grid_shape[grid, 3]
            if one >= 0:
                rank = ranks[one, entry]
                if rank < 0:
                    continue
                cell += grid_bins[grid_shape[grid, 0] + rank] * grid_shape[grid, 2]
            if two >= 0:
                rank = ranks[two, entry]
                if rank < 0:
                    continue
                cell += grid_bins[grid_shape[grid, 1] + rank]
            for place in range(cell_bounds[cell], cell_bounds[cell + 1]):
                condition = cell_conditions[place]
                if seen[condition] == entry:
                    continue
                clause = cell_clauses[place]
                form = forms[condition]
                holds = True
                for number in range(test_bounds[clause], test_bounds[clause + 1]):
                    test = tests[number]
                    rank = ranks[axes[first_tests[form] + test], entry]
                    at = bases[condition] + test
                    inside = lows[at] <= rank <= highs[at]
                    if rank < 0 or inside == negated[first_tests[form] + test]:
                        holds = False
                        break
                if not holds:
                    continue
                seen[condition] = entry
                if fit:
                    if taken == len(found_entries):
                        return taken, opened, False
                    found_conditions[taken], found_entries[taken] = condition, entry
                    taken += 1
                else:
                    if opened == len(open_entries):
                        return taken, opened, False
                    open_conditions[opened], open_entries[opened] = condition, entry
                    opened += 1
    return taken, opened, True


@compiled
def match_few(
    fits: Flags,
    ranks: Places,
    stage_bounds: Indices,
    clause_bounds: Indices,
    test_bounds: Indices,
    tests: Indices,
    axes: Indices,
    negated: Flags,
    forms: Indices,
    first_tests: Indices,
    bases: Indices,
    lows: Places,
    highs: Places,
    user_bounds: Indices,
    users: Indices,
    settled: Indices,
    clause_conditions: Places,
    rows: Indices,
    held: NDArray[np.uint64],
    untested: NDArray[np.uint64],
    seen: Indices,
    found_conditions: Places,
    found_entries: Places,
    open_conditions: Places,
    open_entries: Places,
) -> tuple[int, int, bool]:
    """The same as `match`, for so few clauses that each is a bit.

    Clauses are numbered, and `clause_conditions` says whose each is; `held` has a row of bits for each rank of each
    axis, from `rows` on: the clauses that a value of this rank fulfils as far as the axis goes; `untested` those that
    do not look at an axis.
    """
    taken = opened = 0
    for entry in range(len(fits)):
        fit = fits[entry]
        is_open = not fit
        for axis in range(len(ranks)):
            is_open = is_open or ranks[axis, entry] < 0
        if is_open:
            taken, opened, done = _judge_open(
                entry, fit, ranks, stage_bounds, clause_bounds, test_bounds, tests, axes, negated, forms, first_tests,
                bases, lows, highs, user_bounds, users, settled, seen, found_conditions, found_entries,
                open_conditions, open_entries, taken, opened,
            )  # fmt: skip
            if not done:
                return taken, opened, False
        for word in range(untested.shape[1]):
            left = _ALL_BITS
            for axis in range(len(ranks)):
                rank = ranks[axis, entry]
                left &= held[rows[axis] + rank, word] if rank >= 0 else untested[axis, word]
            while left:
                lowest = left & (~left + _ONE_BIT)
                left ^= lowest
                condition = clause_conditions[word * 64 + _PLACES[(lowest * _SEQUENCE) >> _SHIFT]]
                if condition < 0 or seen[condition] == entry:
                    continue
                seen[condition] = entry
                if fit:
                    if taken == len(found_entries):
                        return taken, opened, False
                    found_conditions[taken], found_entries[taken] = condition, entry
                    taken += 1
                else:
                    if opened == len(open_entries):
                        return taken, opened, False
                    open_conditions[opened], open_entries[opened] = condition, entry
                    opened += 1
    return taken, opened, True


@compiled
def by_condition(conditions: Places, bounds: Indices, turn: Indices) -> None:
    """The order of pairs by their conditions, those of one condition as they are; `bounds` are zeros."""
    for condition in conditions:
        bounds[condition + 1] += 1
    for condition in range(len(bounds) - 1):
        bounds[condition + 1] += bounds[condition]
    ahead = bounds.copy()
    for pair in range(len(conditions)):
        condition = conditions[pair]
        turn[ahead[condition]] = pair
        ahead[condition] += 1
