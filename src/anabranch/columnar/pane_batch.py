"""A batch of entries as a window sees it in columns: which are clear, which it takes, where they stand, what they add.

An entry is clear if everything that the window asks of it is known exactly; the others are left to the law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anabranch.columnar.condition import NO, UNCLEAR, YES, judge
from anabranch.columnar.kernels import Flags, Indices, Numbers
from anabranch.columnar.kernels_panes import best_places, exact_ticks
from anabranch.columnar.pane_query import CompiledPanes, Given, PaneQuery
from anabranch.columnar.shred import Shredded


@dataclass(frozen=True, slots=True)
class Column:
    """One place of an aggregated path: where it counts, and its numbers, as integers and as doubles."""

    counts: Flags
    ticks: Indices
    values: Numbers
    places: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Some entries in order."""

    shredded: Shredded
    unclear: Flags
    selected: Flags
    """Those that are clear and that the window takes, if they are not late."""
    ticks: Indices | None = None
    """The reference values of a time window, with so many decimal places; those of clear entries are exact."""
    places: int = 0
    paths: Sequence[Sequence[Column]] = ()
    """By aggregated path; exact where an entry is selected."""


@dataclass(frozen=True, slots=True)
class BatchJudge:
    """Judges batch after batch, and remembers how many decimal places the numbers have."""

    query: PaneQuery
    places: dict[tuple[int, int], int] = field(default_factory=dict)
    """By leaf and the least number of places that is asked for."""

    def judge(self, compiled: CompiledPanes | None, shredded: Shredded, known: Flags) -> Batch:
        """Judge some entries; `known` are those that are good items for certain."""
        nothing = np.zeros(len(shredded.fits), np.bool_)
        if compiled is None or shredded.wanted is None:
            return Batch(shredded, ~nothing, nothing)
        if not compiled.is_reached:
            return Batch(shredded, ~shredded.fits, nothing)
        verdicts = judge(compiled.condition, shredded)
        selected = shredded.fits & (verdicts == YES)
        unclear = ~known | ((verdicts != NO) & ~selected)
        ticks, places = None, 0
        if compiled.reference is not None:
            ticks, exact, places = self._ticks(shredded, compiled.reference, self.query.places)
            unclear |= ~exact if self.query.fits(places) else ~nothing
        paths = tuple(
            tuple(self._column(shredded, each, selected, unclear) for each in path) for path in compiled.paths
        )
        return Batch(shredded, unclear, selected & ~unclear, ticks, places, paths)

    def _ticks(self, shredded: Shredded, leaf: int, least: int) -> tuple[Indices, Flags, int]:
        """The numbers of a leaf as integers, which of them are exact, and their decimal places."""
        values = _numbers(shredded, leaf)
        places = self.places.get((leaf, least), least)
        ticks, exact = exact_ticks(values, places)
        if not exact.all() and not (exact | np.isnan(values)).all():
            places = self.places[leaf, least] = best_places(values, least)
            ticks, exact = exact_ticks(values, places)
        return ticks, exact, places

    def _column(self, shredded: Shredded, given: Given, selected: Flags, unclear: Flags) -> Column:
        """One place of an aggregated path; notes in `unclear` where it is that."""
        verdicts = judge(given.condition, shredded)
        unclear |= selected & (verdicts == UNCLEAR)
        counts = verdicts == YES
        if given.leaf is None:
            nothing = np.zeros(len(counts))
            return Column(counts, nothing.astype(np.int64), nothing, 0)
        ticks, exact, places = self._ticks(shredded, given.leaf, 0)
        unclear |= selected & counts & ~exact
        return Column(counts, ticks, _numbers(shredded, given.leaf), places)


def _numbers(shredded: Shredded, leaf: int) -> Numbers:
    assert shredded.wanted is not None, "only what was shredded is counted"
    values: Numbers = shredded.values[shredded.wanted.leaves.index(leaf)]
    return values
