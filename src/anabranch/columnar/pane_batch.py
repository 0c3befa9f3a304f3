"""A batch of entries as a window sees it in columns: which are clear, which it takes, where they stand, what they add.

An entry is clear if everything that the window asks of it is known exactly; the others are left to the law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anabranch.columnar.condition import NO, UNCLEAR, YES, judge
from anabranch.columnar.kernels import Flags, Indices, Numbers
from anabranch.columnar.kernels_panes import best_places, exact_ticks, read_decimals, text_ticks
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
    places: dict[int, int] = field(default_factory=dict)
    """By leaf."""

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
            ticks, exact, places = _references(shredded, compiled.reference, self.query.places)
            unclear |= ~exact if self.query.fits(places) else ~nothing
        paths = tuple(
            tuple(self._column(shredded, each, selected, unclear) for each in path) for path in compiled.paths
        )
        return Batch(shredded, unclear, selected & ~unclear, ticks, places, paths)

    def _ticks(self, shredded: Shredded, leaf: int) -> tuple[Indices, Flags, int]:
        """The numbers of a leaf as integers, which of them are exact, and their decimal places."""
        values = _numbers(shredded, leaf)
        ticks, exact = exact_ticks(values, self.places.setdefault(leaf, 0))
        if not exact.all() and not (exact | np.isnan(values)).all():
            self.places[leaf] = best_places(values)
            ticks, exact = exact_ticks(values, self.places[leaf])
        return ticks, exact, self.places[leaf]

    def _column(self, shredded: Shredded, given: Given, selected: Flags, unclear: Flags) -> Column:
        """One place of an aggregated path; notes in `unclear` where it is that."""
        verdicts = judge(given.condition, shredded)
        unclear |= selected & (verdicts == UNCLEAR)
        counts = verdicts == YES
        if given.leaf is None:
            nothing = np.zeros(len(counts))
            return Column(counts, nothing.astype(np.int64), nothing, 0)
        ticks, exact, places = self._ticks(shredded, given.leaf)
        unclear |= selected & counts & ~exact
        return Column(counts, ticks, _numbers(shredded, given.leaf), places)


def _references(shredded: Shredded, leaf: int, least: int) -> tuple[Indices, Flags, int]:
    """The reference values of entries, as `_ticks` gives numbers, with `least` decimal places or more.

    Times have many digits; so the texts are read where they are known, which is in items that fit.
    """
    row = _row(shredded, leaf)
    mantissas, given = np.empty((2, len(shredded.fits)), np.int64)
    read_decimals(shredded.data, shredded.starts[row], shredded.ends[row], mantissas, given)
    tried = [least, *(each for each in np.unique(given).tolist() if each > least)]
    places = max(tried, key=lambda each: int(np.count_nonzero(text_ticks(mantissas, given, each)[1])))
    ticks, exact = text_ticks(mantissas, given, places)
    others, known = exact_ticks(shredded.values[row], places)
    known &= ~shredded.fits
    return np.where(known, others, ticks), exact | known, places


def _row(shredded: Shredded, leaf: int) -> int:
    assert shredded.wanted is not None, "only what was shredded is counted"
    return shredded.wanted.leaves.index(leaf)


def _numbers(shredded: Shredded, leaf: int) -> Numbers:
    values: Numbers = shredded.values[_row(shredded, leaf)]
    return values
