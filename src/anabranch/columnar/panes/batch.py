"""A batch of entries in columns, for many windows: which entries each selects, their panes, and the values they add.

An entry is clear for a member if all that its window needs of it is known exactly; the others are left to the law.
Members that are touched by unit changes see the batch in the units of their start (`units.py`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from anabranch.algebra.accents.evolution import Evolution
from anabranch.columnar.expressions.evaluating import FrameEvaluation
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.expressions.tree import Column, Expression, PartText
from anabranch.columnar.expressions.values import ABSENT as NOTHING
from anabranch.columnar.expressions.values import CLEAR, States
from anabranch.columnar.expressions.values import UNCLEAR as NOT_CLEAR
from anabranch.columnar.match.condition import ALWAYS, UNCLEAR, YES, Condition
from anabranch.columnar.match.index import Matches
from anabranch.columnar.match.judging import judge
from anabranch.columnar.match.kernels import NO_HITS, Hits
from anabranch.columnar.panes.axis import AxisBatch, ReferenceAxis
from anabranch.columnar.panes.doubles import BINARY, add_doubles, binary_places, ticks_of
from anabranch.columnar.panes.kernels import add_rows, best_places
from anabranch.columnar.panes.keys import ranked_texts
from anabranch.columnar.panes.query import (
    Aggregand,
    CompiledMany,
    CompiledPanes,
    GivenRows,
    PaneQuery,
    is_computed,
    is_string,
)
from anabranch.columnar.panes.rows import MOST_PANES
from anabranch.columnar.panes.sessions import offsets
from anabranch.columnar.panes.units import Sight, sight_of
from anabranch.columnar.scan.kernels import Flags, Indices, Numbers
from anabranch.columnar.scan.shred import Shredded

_MOST = 1 << 62


@dataclass(frozen=True, slots=True)
class AggregatedPlace:
    """One place of an aggregated path, by the rows of `Columns`; -1 for none."""

    taken: int
    """The row with the number of values of each entry there; -1 where each has one."""
    leaf: int
    """The row of the numbers; -1 where only their count is needed."""


@dataclass(frozen=True, slots=True)
class AggregatedPath:
    """An aggregated path of a member."""

    places: tuple[AggregatedPlace, ...] = ()
    decimals: int = 0
    is_binary: bool = False
    """Whether its numbers are doubles that are no decimals of few places, and have no ticks."""


class KeyTexts(NamedTuple):
    """A part of the keys of entries."""

    texts: TextColumn
    missing: Flags | None
    """Which entries miss it; None where none does."""


@dataclass(slots=True)
class PaneBatch:
    """Some entries in order."""

    shredded: Shredded
    axes: list[AxisBatch]
    asked: dict[int, list[int]] = field(default_factory=dict)
    """By entry: members for whom it is left to the law, beside those for whom it is unclear on their axis."""
    always: Sequence[int] = ()
    """The members for whom all entries are left to the law."""
    members: Sequence[int] = ()
    """By condition: its member."""
    hits: Hits = NO_HITS
    """The entries that match each condition for certain, if they are clear on its axis and not late."""
    paths: Sequence[Sequence[AggregatedPath]] = ()
    """By condition; exact in the entries that match."""
    keys: Sequence[Sequence[KeyTexts]] = ()
    """By condition: the parts of the key, where windows are grouped; clear in the entries that match."""
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
        self._decimals: dict[tuple[Column, bool], int] = {}

    def judge(
        self,
        compiled: CompiledMany | None,
        shredded: Shredded,
        known: Flags,
        matches: Matches,
        touched: Mapping[int, Evolution] = MappingProxyType({}),
    ) -> PaneBatch:
        """Judge some entries; `known` are those that are good items for certain, `matches` is for the conditions.

        For `touched` members the values are in other units than those that were matched, so their conditions are judged
        again.
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
        """The values of one axis, in the units of a compiled member."""
        assert compiled is not None
        assert sight is not None
        if compiled.reference is None:
            return AxisBatch(~sight.shredded.fits)  # the path does not lead to items that fit
        return self._axes[number].batch(sight, compiled.reference, known)

    def _take(self, batch: PaneBatch, compiled: CompiledMany, matches: Matches, sights: Sequence[Sight | None]) -> None:
        """Note the pairs that match for certain; those that turn out to be unclear are left to the law."""
        columns = batch.columns = Columns(self._decimals)
        hits, doubtful = matches.hits, list[Indices]()
        paths: list[list[AggregatedPath]] = []
        keys: list[list[KeyTexts]] = []
        for condition, member in enumerate(compiled.matched):
            given, query, sight = compiled.members[member], self._queries[member], sights[member]
            assert given is not None, "what has a condition was compiled"
            unclear: Flags | None = None
            paths.append([])
            keys.append([])
            if sight is None:
                continue
            for key in given.keys:
                part, doubt = columns.key(key, sight)
                keys[-1].append(part)
                unclear = _either(unclear, doubt)
            for path in given.paths:
                laid, doubt = columns.path(path, sight)
                paths[-1].append(laid)
                unclear = _either(unclear, doubt)
            if query.counts_times:
                paths[-1].append(columns.times_on(batch.axes[self._axis_of[member]]))
            if query.is_session:
                laid, doubt = columns.offsets_on(batch.axes[self._axis_of[member]], query)
                paths[-1].append(laid)
                unclear = _either(unclear, doubt)
            if query.is_timed and not _fits(query, batch.axes[self._axis_of[member]]):
                unclear = np.ones(len(batch.shredded.fits), np.bool_)
            if unclear is not None:
                found = hits.of(condition)
                batch.ask(member, found[unclear[found]].tolist())
                doubtful.append(hits.bounds[condition] + np.flatnonzero(unclear[found]))
        batch.hits, batch.paths, batch.keys = hits.without(doubtful), paths, keys


def _fits(query: PaneQuery, axis: AxisBatch) -> bool:
    """Whether the panes of these values can be found in 64 bits."""
    factor, width = query.ratio(axis.places)
    return (axis.most + 1) * factor + width < _MOST and max(query.panes.size, query.panes.step) < MOST_PANES


def _sights(compiled: CompiledMany, shredded: Shredded, touched: Mapping[int, Evolution]) -> list[Sight | None]:
    """The batch in the units of each member; None for members that leave everything to the law."""
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
    """The matches, where conditions of touched members are judged again, with values in their units."""
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


class _Leaf(NamedTuple):
    """The values of entries at a place, or in the rows of a repeated part: their sums, and the least and greatest."""

    row: int
    ticks: Indices
    high: Numbers
    low: Numbers
    """Sums that have no ticks, each as two doubles."""
    least: Numbers
    greatest: Numbers
    unclear: Flags | None
    """Where they are unclear; None for nowhere."""


_Summed: TypeAlias = Column | GivenRows
"""What is summed in an entry."""


class Columns:
    """The columns of one batch, each made once for all members that know the same units."""

    def __init__(self, decimals: dict[tuple[Column, bool], int]) -> None:
        """`decimals` are the decimal places of the numbers by column, as they were before, mapped ones apart."""
        self._decimals = decimals
        self._known: set[tuple[int, Column]] = set()
        self._sights: dict[int, Sight] = {}
        """The sights in use, which are kept because columns are cached by their identities."""
        self._leaves: dict[tuple[int, _Summed | tuple[int, Fraction], int], _Leaf] = {}
        """By sight, summed column and decimal places; the offsets in panes by axis and width."""
        self._times: list[Indices] = []
        """The number of values, by row and entry."""
        self._taken: dict[tuple[int, Condition | GivenRows], tuple[int, Flags | None]] = {}
        """By sight and condition: the row that says where it holds, -1 for everywhere, and where it is unclear."""
        self._paths: dict[tuple[int, int], tuple[AggregatedPath, Flags | None]] = {}
        """By the identities of sight and path: comparing paths by value would be slow, since there are many."""
        self._evaluations: dict[int, FrameEvaluation] = {}
        self.strings: dict[int, list[str]] = {}
        """By row of numbers that are ranks of strings: these strings, rising."""
        self._on_axes: dict[int, int] = {}
        """By the identity of an axis: the row that says where it has times."""

    @property
    def times(self) -> Indices:
        """How many values entries have, by row."""
        return np.stack(self._times) if self._times else np.empty((0, 0), np.int64)

    @property
    def ticks(self) -> Indices:
        """Sums of numbers as integers, by row."""
        found = [each.ticks for each in self._leaves.values()]
        return np.stack(found) if found else np.empty((0, 0), np.int64)

    @property
    def doubles(self) -> tuple[Numbers, Numbers]:
        """The same sums, where they have no ticks, each as two doubles."""
        leaves = self._leaves.values()
        return np.stack([each.high for each in leaves]), np.stack([each.low for each in leaves])

    @property
    def extremes(self) -> tuple[Numbers, Numbers]:
        """The least and the greatest of the same numbers, as doubles."""
        leaves = self._leaves.values()
        if not leaves:
            return np.empty((0, 0)), np.empty((0, 0))
        least = np.stack([each.least for each in leaves])
        if all(each.greatest is each.least for each in leaves):
            return least, least
        return least, np.stack([each.greatest for each in leaves])

    def path(self, path: tuple[Aggregand, ...], sight: Sight) -> tuple[AggregatedPath, Flags | None]:
        """An aggregated path, and where it is unclear; None for nowhere."""
        key = id(sight), id(path)
        if key not in self._paths:
            self._sights[id(sight)] = sight
            tried = [self._decimals_of(each, sight) for each in path if each.column is not None and not is_string(each)]
            is_binary = BINARY in tried
            decimals = BINARY if is_binary else max(tried, default=0)
            unclear: Flags | None = None
            places: list[AggregatedPlace] = []
            for each in path:
                place, doubt = self._place(each, decimals, sight)
                places.append(place)
                unclear = _either(unclear, doubt)
            self._paths[key] = AggregatedPath(tuple(places), max(decimals, 0), is_binary), unclear
        return self._paths[key]

    def _place(self, given: Aggregand, decimals: int, sight: Sight) -> tuple[AggregatedPlace, Flags | None]:
        if isinstance(given, GivenRows):
            leaf = self._leaf(given, decimals, sight)
            row, unclear = self._taken[id(sight), given]
            return AggregatedPlace(row, -1 if given.is_counted else leaf.row), _either(unclear, leaf.unclear)
        row, unclear = self._condition(given.condition, sight)
        if given.column is None:
            return AggregatedPlace(row, -1), unclear
        leaf = self._leaf(given.column, decimals, sight)
        inexact = leaf.unclear
        if inexact is not None and row >= 0:
            inexact = inexact & (self._times[row] > 0)
        return AggregatedPlace(row, leaf.row), _either(unclear, inexact)

    def _condition(self, condition: Condition, sight: Sight) -> tuple[int, Flags | None]:
        key = id(sight), condition
        if condition == ALWAYS:
            return -1, None
        if key not in self._taken:
            verdicts = judge(condition, sight.shredded)
            if ((verdicts == YES) | ~sight.shredded.fits).all():
                self._taken[key] = -1, None
            else:
                self._taken[key] = len(self._times), _some(verdicts == UNCLEAR)
                self._times.append((verdicts == YES).astype(np.int64))
        return self._taken[key]

    def _leaf(self, summed: _Summed, decimals: int, sight: Sight) -> _Leaf:
        key = id(sight), summed, decimals
        if key not in self._leaves:
            if isinstance(summed, GivenRows):
                self._leaves[key] = self._added(summed, decimals, sight)
            elif isinstance(summed, PartText):
                self._leaves[key] = self._ranked(summed, sight)
            else:
                values = _values(sight, summed)
                ticks, exact = ticks_of(values, decimals, is_computed=is_computed(summed))
                unclear = _some(~exact & sight.shredded.fits)
                low = np.broadcast_to(0.0, len(values))
                self._leaves[key] = _Leaf(len(self._leaves), ticks, values, low, values, values, unclear)
        return self._leaves[key]

    def _ranked(self, text: PartText, sight: Sight) -> _Leaf:
        """The ranks of strings among those of the batch, in the place of numbers."""
        found, fits, row = self._evaluation(sight).value(text), sight.shredded.fits, len(self._leaves)
        assert found.texts is not None, "strings are texts"
        state = np.full(len(fits), CLEAR) if found.state is None else found.state
        ranks, self.strings[row] = ranked_texts(found.texts, fits & (state == CLEAR))
        nothing, sums = np.broadcast_to(0.0, len(fits)), np.zeros(len(fits), np.int64)
        return _Leaf(row, sums, nothing, nothing, ranks, ranks, _some(fits & (state == NOT_CLEAR)))

    def _added(self, given: GivenRows, decimals: int, sight: Sight) -> _Leaf:
        """The sums of the rows of a repeated part, by entry; notes their number, too."""
        count = len(sight.shredded.fits)
        around, doubt = self._condition(given.condition, sight)
        times, sums = np.zeros((2, count), np.int64)
        least, greatest = np.full((2, count), np.nan)
        high, low = np.zeros((2, count))
        unclear = np.zeros(count, np.bool_)
        rows = self._rows(given, sight)
        if rows is not None:
            verdicts, (values, state) = rows.truth(given.rows), _row_values(given, rows)
            looked_at = np.ones(count, np.bool_) if around < 0 else self._times[around] > 0
            taken = (verdicts == YES) & looked_at[rows.owners]
            ticks, exact = ticks_of(values, decimals, is_computed=is_computed(given.column))
            if state is not None:
                taken &= state != NOTHING
                exact &= state == CLEAR
            unclear[rows.owners[(verdicts == UNCLEAR) | (taken & ~exact)]] = True
            unclear &= looked_at
            add_rows(rows.owners, taken, ticks, values, times, sums, least, greatest, unclear)
            if decimals == BINARY:
                add_doubles(rows.owners, taken & exact, values, high, low, unclear)
        key = id(sight), given
        if key not in self._taken:
            self._taken[key] = len(self._times), doubt
            self._times.append(times)
        return _Leaf(len(self._leaves), sums, high, low, least, greatest, _some(unclear))

    def times_on(self, axis: AxisBatch) -> AggregatedPath:
        """The path whose values are those of an axis that are times."""
        if axis.are_times is None:
            return AggregatedPath()
        if id(axis) not in self._on_axes:
            self._on_axes[id(axis)] = len(self._times)
            self._times.append(axis.are_times.astype(np.int64))
        return AggregatedPath((AggregatedPlace(self._on_axes[id(axis)], -1),))

    def offsets_on(self, axis: AxisBatch, query: PaneQuery) -> tuple[AggregatedPath, Flags | None]:
        """The path whose values are the places of items in panes, and where they are unclear; None for nowhere."""
        key = -1, (id(axis), query.panes.width), 0
        if key not in self._leaves:
            found = None if axis.ticks is None else offsets(axis.ticks, axis.places, axis.most, query.panes.width)
            values = np.full(len(axis.unclear), np.nan) if found is None else found
            nothing, sums = np.broadcast_to(0.0, len(values)), np.zeros(len(values), np.int64)
            unclear = np.ones(len(values), np.bool_) if found is None else None
            self._leaves[key] = _Leaf(len(self._leaves), sums, nothing, nothing, values, values, unclear)
        leaf = self._leaves[key]
        return AggregatedPath((AggregatedPlace(-1, leaf.row),)), leaf.unclear

    def key(self, key: Expression | None, sight: Sight) -> tuple[KeyTexts, Flags | None]:
        """A part of the keys of entries, and where it is unclear; None for nowhere."""
        fits = sight.shredded.fits
        unclear = ~fits
        if key is None:
            return KeyTexts(TextColumn.of(b""), np.ones(len(fits), np.bool_)), _some(unclear)
        found = self._evaluation(sight).value(key)
        assert found.texts is not None, "items are grouped by texts"
        missing: Flags | None = None
        if found.state is not None:
            unclear |= found.state == NOT_CLEAR
            missing = _some(found.state == NOTHING)
        return KeyTexts(found.texts, missing), _some(unclear)

    def _rows(self, given: GivenRows, sight: Sight) -> FrameEvaluation | None:
        """The rows of a repeated part in the entries; entries that do not fit have none."""
        if sight.shredded.frames is None:
            return None
        return self._evaluation(sight).inside(given.frame)

    def _evaluation(self, sight: Sight) -> FrameEvaluation:
        """The evaluation of expressions over the entries, one for each sight."""
        if id(sight) not in self._evaluations:
            self._sights[id(sight)] = sight
            self._evaluations[id(sight)] = FrameEvaluation(sight.shredded)
        return self._evaluations[id(sight)]

    def _decimals_of(self, given: Aggregand, sight: Sight) -> int:
        """The decimal places of the numbers at a place: those of the batch before, or else those of most numbers."""
        column = given.column
        assert column is not None
        column = column.column if isinstance(column, PartText) else column
        before = column, column in sight.mapped
        if (id(sight), column) not in self._known:
            self._known.add((id(sight), column))
            decimals = self._decimals.setdefault(before, 0)
            if isinstance(given, GivenRows):
                rows = self._rows(given, sight)
                values = np.empty(0) if rows is None else _row_values(given, rows)[0]
                inexact = _some(~ticks_of(values, decimals, is_computed=is_computed(column))[1])
            else:
                values = _values(sight, column)
                inexact = self._leaf(column, decimals, sight).unclear
            if inexact is not None and not np.isnan(values[inexact]).all():
                self._decimals[before] = binary_places(values) if is_computed(column) else best_places(values)
        return self._decimals[before]


def _values(sight: Sight, column: Column) -> Numbers:
    values: Numbers = sight.shredded.values[sight.shredded.row(column)]
    return values


def _row_values(given: GivenRows, rows: FrameEvaluation) -> tuple[Numbers, States | None]:
    """The numbers in the rows of a repeated part, and which are absent or unclear; zeros if only counted."""
    found = rows.value(given.column)
    if given.is_counted:
        return np.zeros(rows.count), found.state
    assert found.numbers is not None, "what is summed is a number"
    return np.broadcast_to(found.numbers, rows.count), found.state


def _some(flags: Flags) -> Flags | None:
    return flags if flags.any() else None


def _either(one: Flags | None, other: Flags | None) -> Flags | None:
    return other if one is None else one if other is None else one | other
