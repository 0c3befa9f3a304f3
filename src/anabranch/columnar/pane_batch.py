"""A batch of entries as many windows see it in columns: what each takes, where it stands, what it adds.

An entry is clear for a member if all that its window asks of it is known exactly; the others are left to the law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anabranch.columnar.condition import UNCLEAR, YES, Condition, Settled, judge
from anabranch.columnar.kernels import Flags, Indices, Numbers
from anabranch.columnar.kernels_panes import best_places, exact_ticks
from anabranch.columnar.matching import Matches
from anabranch.columnar.pane_axis import Axis, AxisBatch
from anabranch.columnar.pane_query import CompiledMany, CompiledPanes, Given, PaneQuery
from anabranch.columnar.pane_rows import MOST_PANES
from anabranch.columnar.shred import Shredded

_ALL: Flags = np.empty(0, np.bool_)
_NO_TICKS: Indices = np.empty(0, np.int64)
_NO_VALUES: Numbers = np.empty(0)
_MOST = 1 << 62


@dataclass(frozen=True, slots=True)
class Column:
    """One place of an aggregated path: where it counts, and its numbers, as integers and as doubles."""

    counts: Flags
    """Nothing where it counts in all entries."""
    ticks: Indices
    """Nothing where it is only counted."""
    values: Numbers
    places: int


@dataclass(slots=True)
class Batch:
    """Some entries in order."""

    shredded: Shredded
    axes: list[AxisBatch]
    hits: list[Indices]
    """By member: the entries that its window takes for certain, if they are clear on its axis and not late."""
    columns: list[list[list[Column]]]
    """By member and aggregated path; exact where it hits."""
    asked: dict[int, list[int]] = field(default_factory=dict)
    """By entry: members for whom it is the law's, beside those for whom it is unclear on their axis."""
    always: Sequence[int] = ()
    """The members for whom all entries are the law's."""

    @property
    def shown(self) -> Flags:
        """The entries that must be shown."""
        if self.always:
            return np.ones(len(self.shredded.fits), np.bool_)
        found = np.zeros(len(self.shredded.fits), np.bool_)
        for each in self.axes:
            found |= each.unclear
        found[list(self.asked)] = True
        return found

    def ask(self, member: int, entries: Indices) -> None:
        """Leave some entries to the law."""
        for entry in entries.tolist():
            self.asked.setdefault(entry, []).append(member)


class BatchJudge:
    """Judges batch after batch, and remembers how many decimal places the numbers have."""

    def __init__(self, queries: Sequence[PaneQuery], axes: Sequence[Axis], axis_of: Sequence[int]) -> None:
        """`axis_of` is by member, -1 for windows that count."""
        self._queries = queries
        self._axes = axes
        self._axis_of = axis_of
        self._places: dict[int, int] = {}

    def judge(self, compiled: CompiledMany | None, shredded: Shredded, known: Flags, matches: Matches) -> Batch:
        """Judge some entries; `known` are those that are good items for certain, `matches` is for the conditions."""
        count, nobody = len(self._queries), np.empty(0, np.int64)
        everything = np.ones(len(known), np.bool_)
        if compiled is None or shredded.wanted is None:
            axes = [AxisBatch(everything) for _ in self._axes]
            return Batch(shredded, axes, [nobody] * count, [[]] * count, always=range(count))
        made = {self._axis_of[number]: each for number, each in enumerate(compiled.members) if each}
        axes = [self._axis(number, made.get(number), shredded, known) for number in range(len(self._axes))]
        always = [number for number, each in enumerate(compiled.members) if each is None]
        batch = Batch(shredded, axes, [nobody] * count, [[] for _ in range(count)], always=always)
        members = np.array(compiled.matched, np.int64)
        for member, entry in zip(members[matches.open_conditions].tolist(), matches.open_entries.tolist(), strict=True):
            batch.asked.setdefault(entry, []).append(member)
        columns = _Columns(shredded, self._places)
        for number, member in enumerate(compiled.matched):
            given = compiled.members[member]
            assert given is not None
            batch.hits[member], batch.columns[member] = self._member(
                batch, member, given, matches.taken(number), columns
            )
        for member, each in enumerate(compiled.members):
            if each is not None and self._axis_of[member] < 0:
                batch.ask(member, np.flatnonzero(~(known if each.is_reached else shredded.fits)))
        return batch

    def _axis(self, number: int, compiled: CompiledPanes | None, shredded: Shredded, known: Flags) -> AxisBatch:
        """The values of one axis, of which some member was compiled or none."""
        if compiled is None:
            return AxisBatch(np.ones(len(known), np.bool_))
        if compiled.reference is None:
            return AxisBatch(~shredded.fits)  # the path does not lead to items that fit
        return self._axes[number].batch(shredded, compiled.reference, known)

    def _member(
        self, batch: Batch, member: int, compiled: CompiledPanes, hits: Indices, columns: _Columns
    ) -> tuple[Indices, list[list[Column]]]:
        """What a member takes, and what that adds; what turns out to be unclear is left to the law."""
        query = self._queries[member]
        if query.is_timed and not _fits(query, batch.axes[self._axis_of[member]]):
            batch.ask(member, hits)
            return hits[:0], []
        paths: list[list[Column]] = []
        for path in compiled.paths:
            places = columns.places_of(path)
            paths.append([])
            for each in path:
                column, unclear = columns.column(each, places)
                if unclear is not None:
                    batch.ask(member, hits[unclear[hits]])
                    hits = hits[~unclear[hits]]
                paths[-1].append(column)
        return hits, paths


def _fits(query: PaneQuery, axis: AxisBatch) -> bool:
    """Whether the panes of these values can be found in 64 bits."""
    factor, width = query.ratio(axis.places)
    return (axis.most + 1) * factor + width < _MOST and max(query.panes.size, query.panes.step) < MOST_PANES


class _Columns:
    """The columns of one batch, each made once for all members."""

    def __init__(self, shredded: Shredded, places: dict[int, int]) -> None:
        self._shredded = shredded
        self._places = places
        self._known: set[int] = set()
        self._ticks: dict[tuple[int, int], tuple[Indices, Flags | None]] = {}
        self._conditions: dict[Condition, tuple[Flags, Flags | None]] = {}

    def places_of(self, path: Sequence[Given]) -> int:
        """The decimal places of all numbers along a path, which are those of its leaves with the most."""
        return max((self._placed(each.leaf) for each in path if each.leaf is not None), default=0)

    def column(self, given: Given, places: int) -> tuple[Column, Flags | None]:
        """One place of a path, and where it is unclear; None for nowhere."""
        counts, unclear = self._condition(given.condition)
        if given.leaf is None:
            return Column(counts, _NO_TICKS, _NO_VALUES, 0), unclear
        ticks, inexact = self._exact(given.leaf, places)
        if inexact is not None and len(counts):
            inexact = inexact & counts
        both = inexact if unclear is None else unclear if inexact is None else unclear | inexact
        return Column(counts, ticks, self._numbers(given.leaf), places), both

    def _condition(self, condition: Condition) -> tuple[Flags, Flags | None]:
        if condition == Settled(YES):
            return _ALL, None
        if condition not in self._conditions:
            verdicts = judge(condition, self._shredded)
            self._conditions[condition] = verdicts == YES, _some(verdicts == UNCLEAR)
        return self._conditions[condition]

    def _exact(self, leaf: int, places: int) -> tuple[Indices, Flags | None]:
        if (leaf, places) not in self._ticks:
            ticks, exact = exact_ticks(self._numbers(leaf), places)
            self._ticks[leaf, places] = ticks, _some(~exact & self._shredded.fits)
        return self._ticks[leaf, places]

    def _placed(self, leaf: int) -> int:
        """The decimal places of a leaf's numbers: those of the batch before, or else what most have."""
        if leaf not in self._known:
            self._known.add(leaf)
            inexact, values = self._exact(leaf, self._places.setdefault(leaf, 0))[1], self._numbers(leaf)
            if inexact is not None and not np.isnan(values[inexact]).all():
                self._places[leaf] = best_places(values)
        return self._places[leaf]

    def _numbers(self, leaf: int) -> Numbers:
        assert self._shredded.wanted is not None, "only what was shredded is counted"
        values: Numbers = self._shredded.values[self._shredded.wanted.leaves.index(leaf)]
        return values


def _some(flags: Flags) -> Flags | None:
    return flags if flags.any() else None
