"""A batch of entries as many windows see it in columns: what each takes, where it stands, what it adds.

An entry is clear for a member if all that its window asks of it is known exactly; the others are left to the law.
Members that are touched by unit changes see the batch in the units of their start (`units.py`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from anabranch.algebra.accents.evolution import Evolution
from anabranch.columnar.match.condition import ALWAYS, UNCLEAR, YES, Condition, judge
from anabranch.columnar.match.index import Matches
from anabranch.columnar.panes.axis import AxisBatch, ReferenceAxis
from anabranch.columnar.panes.kernels import best_places, exact_ticks
from anabranch.columnar.panes.query import CompiledMany, CompiledPanes, Given, PaneQuery
from anabranch.columnar.panes.rows import MOST_PANES
from anabranch.columnar.panes.units import Sight, sight_of
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers, Places
from anabranch.columnar.scan.look import PartColumn
from anabranch.columnar.scan.shred import Shredded

_MOST = 1 << 62


@dataclass(frozen=True, slots=True)
class AggregatedPlace:
    """One place of an aggregated path, by the rows of `Columns`; -1 for none."""

    taken: int
    """Where it counts; everywhere without one."""
    leaf: int
    """Its numbers; without them, only how many there are."""


@dataclass(frozen=True, slots=True)
class AggregatedPath:
    """An aggregated path of a member."""

    places: tuple[AggregatedPlace, ...] = ()
    decimals: int = 0


@dataclass(slots=True)
class PaneBatch:
    """Some entries in order."""

    shredded: Shredded
    axes: list[AxisBatch]
    asked: dict[int, list[int]] = field(default_factory=dict)
    """By entry: members for whom it is the law's, beside those for whom it is unclear on their axis."""
    always: Sequence[int] = ()
    """The members for whom all entries are the law's."""
    members: Sequence[int] = ()
    """Whose the conditions are."""
    conditions: Places = field(default_factory=lambda: np.empty(0, np.int32))
    entries: Places = field(default_factory=lambda: np.empty(0, np.int32))
    """The pairs of a condition and an entry that it takes for certain, if it is clear on its axis and not late."""
    paths: Sequence[Sequence[AggregatedPath]] = ()
    """By condition; exact in the entries that it takes."""
    columns: Columns | None = None

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

    def ask(self, member: int, entries: Sequence[int]) -> None:
        """Leave some entries to the law."""
        for entry in entries:
            self.asked.setdefault(entry, []).append(member)


class BatchJudge:
    """Judges batch after batch, and remembers how many decimal places the numbers have."""

    def __init__(self, queries: Sequence[PaneQuery], axes: Sequence[ReferenceAxis], axis_of: Sequence[int]) -> None:
        """`axis_of` is by member, -1 for windows that count."""
        self._queries = queries
        self._axes = axes
        self._axis_of = axis_of
        self._decimals: dict[tuple[int, bool], int] = {}

    def judge(
        self,
        compiled: CompiledMany | None,
        shredded: Shredded,
        known: Flags,
        matches: Matches,
        touched: Mapping[int, Evolution] = MappingProxyType({}),
    ) -> PaneBatch:
        """Judge some entries; `known` are those that are good items for certain, `matches` is for the conditions.

        To members who are `touched` the values mean something else than they say, and what was matched is nothing.
        """
        if compiled is None or shredded.wanted is None:
            nothing = [AxisBatch(np.ones(len(known), np.bool_)) for _ in self._axes]
            return PaneBatch(shredded, nothing, always=range(len(self._queries)))
        sights = _sights(compiled, shredded, touched)
        always = [number for number, each in enumerate(sights) if each is None]
        slow = frozenset(always)
        made = {self._axis_of[number]: number for number in range(len(sights)) if number not in slow}
        axes = [
            self._axis(number, compiled.members[made[number]], sights[made[number]], known)
            if number in made
            else AxisBatch(np.ones(len(known), np.bool_))
            for number in range(len(self._axes))
        ]
        batch = PaneBatch(shredded, axes, always=always, members=compiled.matched)
        if touched:
            matches = _matched_again(compiled, sights, matches, touched)
        for condition, entry in zip(matches.open_conditions.tolist(), matches.open_entries.tolist(), strict=True):
            batch.ask(compiled.matched[condition], (entry,))
        for member, each in enumerate(compiled.members):
            if each is not None and member not in slow and self._axis_of[member] < 0:
                batch.ask(member, np.flatnonzero(~(known if each.is_reached else shredded.fits)).tolist())
        self._take(batch, compiled, matches, sights)
        return batch

    def _axis(self, number: int, compiled: CompiledPanes | None, sight: Sight | None, known: Flags) -> AxisBatch:
        """The values of one axis, as a member sees them that was compiled."""
        assert compiled is not None
        assert sight is not None
        if compiled.reference is None:
            return AxisBatch(~sight.shredded.fits)  # the path does not lead to items that fit
        return self._axes[number].batch(sight, compiled.reference, known)

    def _take(self, batch: PaneBatch, compiled: CompiledMany, matches: Matches, sights: Sequence[Sight | None]) -> None:
        """Set down what is taken for certain; what turns out to be unclear is left to the law."""
        columns = batch.columns = Columns(self._decimals)
        conditions, entries = matches.conditions, matches.pairs
        paths: list[list[AggregatedPath]] = []
        for condition, member in enumerate(compiled.matched):
            given, query, sight = compiled.members[member], self._queries[member], sights[member]
            assert given is not None, "what has a condition was compiled"
            unclear: Flags | None = None
            paths.append([])
            if sight is None:
                continue
            for path in given.paths:
                laid, doubt = columns.path(path, sight)
                paths[-1].append(laid)
                unclear = doubt if unclear is None else unclear if doubt is None else unclear | doubt
            if query.is_timed and not _fits(query, batch.axes[self._axis_of[member]]):
                unclear = np.ones(len(batch.shredded.fits), np.bool_)
            if unclear is not None:
                doubtful = (conditions == condition) & unclear[entries]
                batch.ask(member, entries[doubtful].tolist())
                conditions, entries = conditions[~doubtful], entries[~doubtful]
        batch.conditions, batch.entries, batch.paths = conditions, entries, paths


def _fits(query: PaneQuery, axis: AxisBatch) -> bool:
    """Whether the panes of these values can be found in 64 bits."""
    factor, width = query.ratio(axis.places)
    return (axis.most + 1) * factor + width < _MOST and max(query.panes.size, query.panes.step) < MOST_PANES


def _sights(compiled: CompiledMany, shredded: Shredded, touched: Mapping[int, Evolution]) -> list[Sight | None]:
    """The batch as each member sees it; None for those who leave everything to the law."""
    plain = Sight(shredded)
    evolutions = {id(each): each for each in touched.values()}
    known = {key: sight_of(shredded, each) for key, each in evolutions.items()}
    found: list[Sight | None] = []
    for number, each in enumerate(compiled.members):
        sight = known[id(touched[number])] if number in touched else plain
        found.append(sight if each and sight and sight.is_made_for(each) else None)
    return found


def _matched_again(
    compiled: CompiledMany, sights: Sequence[Sight | None], matches: Matches, touched: Container[int]
) -> Matches:
    """What conditions take, where those of touched members are held against the values as they know them."""
    others = matches.without(np.array([each in touched for each in compiled.matched], np.bool_))
    conditions, entries = [others.conditions], [others.pairs]
    open_conditions, open_entries = [others.open_conditions], [others.open_entries]
    for condition, member in enumerate(compiled.matched):
        sight, given = sights[member], compiled.members[member]
        if member in touched and sight and given:
            verdicts, fits = judge(given.condition, sight.shredded), sight.shredded.fits
            taken = np.flatnonzero((verdicts == YES) & fits)
            left = np.flatnonzero((verdicts == UNCLEAR) | ((verdicts == YES) & ~fits))
            conditions.append(np.full(len(taken), condition, np.int32))
            entries.append(taken.astype(np.int32))
            open_conditions.append(np.full(len(left), condition, np.int64))
            open_entries.append(left)
    order = np.argsort(np.concatenate(entries), kind="stable")
    pairs = np.concatenate(conditions)[order], np.concatenate(entries)[order]
    return Matches(matches.count, *pairs, np.concatenate(open_conditions), np.concatenate(open_entries))


class Columns:
    """The columns of one batch, each made once for all members that see it alike."""

    def __init__(self, decimals: dict[tuple[int, bool], int]) -> None:
        """`decimals` are the decimal places of the numbers by column, as they were before, mapped ones apart."""
        self._decimals = decimals
        self._known: set[tuple[int, int]] = set()
        self._sights: dict[int, Sight] = {}
        """Those that were asked for; columns are known by the numbers of these objects."""
        self._numbers: dict[tuple[int, int, int], tuple[int, Indices, Flags | None]] = {}
        self._flags: dict[tuple[int, Condition], tuple[int, Flags, Flags | None]] = {}
        self._always: set[tuple[int, Condition]] = set()
        self._paths: dict[tuple[int, tuple[Given, ...]], tuple[AggregatedPath, Flags | None]] = {}

    @property
    def flags(self) -> Flags:
        """Where places count, by row."""
        return np.stack([each for _, each, _ in self._flags.values()]) if self._flags else np.empty((0, 0), np.bool_)

    @property
    def ticks(self) -> Indices:
        """Numbers as integers, by row."""
        found = [each for _, each, _ in self._numbers.values()]
        return np.stack(found) if found else np.empty((0, 0), np.int64)

    @property
    def values(self) -> Numbers:
        """The same numbers as doubles."""
        found = [_values(self._sights[sight], column) for sight, column, _ in self._numbers]
        return np.stack(found) if found else np.empty((0, 0))

    def path(self, path: tuple[Given, ...], sight: Sight) -> tuple[AggregatedPath, Flags | None]:
        """An aggregated path, and where it is unclear; None for nowhere."""
        key = id(sight), path
        if key not in self._paths:
            self._sights[id(sight)] = sight
            decimals = max(
                (self._decimals_of(each.column, sight) for each in path if each.column is not None), default=0
            )
            unclear: Flags | None = None
            places: list[AggregatedPlace] = []
            for each in path:
                place, doubt = self._place(each, decimals, sight)
                places.append(place)
                unclear = doubt if unclear is None else unclear if doubt is None else unclear | doubt
            self._paths[key] = AggregatedPath(tuple(places), decimals), unclear
        return self._paths[key]

    def _place(self, given: Given, decimals: int, sight: Sight) -> tuple[AggregatedPlace, Flags | None]:
        row, counts, unclear = self._condition(given.condition, sight)
        if given.column is None:
            return AggregatedPlace(row, -1), unclear
        number, _, inexact = self._exact(given.column, decimals, sight)
        if inexact is not None and counts is not None:
            inexact = inexact & counts
        both = inexact if unclear is None else unclear if inexact is None else unclear | inexact
        return AggregatedPlace(row, number), both

    def _condition(self, condition: Condition, sight: Sight) -> tuple[int, Flags | None, Flags | None]:
        if condition == ALWAYS:
            return -1, None, None
        key = id(sight), condition
        if key in self._always:
            return -1, None, None
        if key not in self._flags:
            verdicts = judge(condition, sight.shredded)
            if ((verdicts == YES) | ~sight.shredded.fits).all():
                self._always.add(key)
                return -1, None, None
            self._flags[key] = len(self._flags), verdicts == YES, _some(verdicts == UNCLEAR)
        return self._flags[key]

    def _exact(self, column: PartColumn, decimals: int, sight: Sight) -> tuple[int, Indices, Flags | None]:
        key = id(sight), column, decimals
        if key not in self._numbers:
            ticks, exact = exact_ticks(_values(sight, column), decimals)
            self._numbers[key] = len(self._numbers), ticks, _some(~exact & sight.shredded.fits)
        return self._numbers[key]

    def _decimals_of(self, column: PartColumn, sight: Sight) -> int:
        """The decimal places of a column's numbers: those of the batch before, or else what most have."""
        before = column, column in sight.mapped
        if (id(sight), column) not in self._known:
            self._known.add((id(sight), column))
            values = _values(sight, column)
            inexact = self._exact(column, self._decimals.setdefault(before, 0), sight)[2]
            if inexact is not None and not np.isnan(values[inexact]).all():
                self._decimals[before] = best_places(values)
        return self._decimals[before]


def _values(sight: Sight, column: PartColumn) -> Numbers:
    values: Numbers = sight.shredded.values[sight.shredded.row(column)]
    return values


def _some(flags: Flags) -> Flags | None:
    return flags if flags.any() else None
