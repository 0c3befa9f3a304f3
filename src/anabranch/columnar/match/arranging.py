"""Conditions arranged for the kernels that match them: those of one form together, each clause in a grid or a list.

Conditions of one form differ in their constants only, and constants are ranks (`forms.py`); so a form is laid out once,
and each condition is a row of lows and highs.

Where clauses are many, they lie in *grids*, so that an entry meets few that it does not fulfil.
A clause is a box over ranks.
It goes into the grid over the two axes on which its kind is narrowest, into each cell that it touches; a clause with
one axis into a row of cells, one without any into the only cell of a grid that everything meets.
The bins of an axis hold equally many ranks, so many constants in one place have many bins there.

Where clauses are few, each is a *bit*, and each rank of each axis has a row of bits: the clauses that a value of this
rank fulfils as far as the axis goes.
The clauses that an entry fulfils are the intersection of its rows, without a look at any single clause besides.
Rows get longer with the clauses, so this is for some hundreds.

A clause with a *key* (`keys.py`) is listed under it instead, unless a grid finds it with less work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.match import kernels
from anabranch.columnar.match.forms import (
    Alike,
    Fixed,
    FormConstant,
    Missing,
    Ranking,
    Test,
    TestAxis,
    ranking_of,
)
from anabranch.columnar.match.kernels import Bits, Cells, KeyLists, fill_cells
from anabranch.columnar.match.keys import KEYED, KeyIndex
from anabranch.columnar.scan.kernels import Indices, Places
from anabranch.columnar.scan.wanted import WantedColumns

_MOST_BINS, _MOST_PAIR_BINS = 1 << 16, 1 << 8
_SPREAD = 16
"""The average number of cells that a clause may lie in; with more, the grid is made coarser."""
_NO_BINS = np.zeros(1, np.int32)


@dataclass(frozen=True, slots=True)
class _Block:
    """One clause of some conditions."""

    conditions: Places
    clause: int
    """The clause that is still to be tested, -1 for none."""
    spans: tuple[Places, Places, Places, Places]
    """The lows and highs on one axis of the grid, then those on the other."""


class Grids:
    """All grids over some axes; `sizes` are the numbers of ranks of the axes."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._grids: dict[tuple[int, int], list[_Block]] = {}

    def add(self, conditions: Places, clause: int, spans: Mapping[int, tuple[Places, Places]], *, is_box: bool) -> None:
        """Add one clause of some conditions; `spans` are its lows and highs by axis, and all of it if `is_box`."""
        narrow = sorted(spans, key=lambda axis: self._width(axis, *spans[axis]))[:2]
        axes = tuple(sorted(narrow))
        key = (axes[0] if axes else -1, axes[1] if len(axes) > 1 else -1)
        nothing = np.zeros(len(conditions), np.int32)
        chosen = [spans[axis] if axis >= 0 else (nothing, nothing) for axis in key]
        rest = -1 if is_box and len(spans) == len(narrow) else clause
        self._grids.setdefault(key, []).append(_Block(conditions, rest, (*chosen[0], *chosen[1])))

    def share(self, spans: Mapping[int, tuple[Places, Places]]) -> float:
        """The estimated part of all entries that meets such a clause in its grid."""
        widths = sorted(self._width(axis, *spans[axis]) for axis in spans)
        return float(np.prod(widths[:2]))

    def _width(self, axis: int, lows: Places, highs: Places) -> float:
        """The part of an axis that clauses span, as the median."""
        return float(np.median(np.maximum(highs - lows + 1, 0))) / self._sizes[axis]

    def arrays(self) -> Cells:
        """The grids as the kernel takes them (`kernels.match`)."""
        shapes = np.zeros((len(self._grids), 4), np.int64)
        bins: list[Places] = []
        bounds: list[Indices] = [np.zeros(1, np.int64)]
        conditions: list[Places] = []
        clauses: list[Places] = []
        spans: list[Places] = [np.empty((0, 4), np.int32)]
        bin_count = cells = members = 0
        for number, (key, blocks) in enumerate(self._grids.items()):
            made = _grid_arrays(blocks, [self._sizes[axis] if axis >= 0 else 0 for axis in key])
            shapes[number] = bin_count, bin_count + len(made.bins[0]), made.wide, cells
            bins += made.bins
            bin_count += sum(map(len, made.bins))
            bounds.append(members + made.bounds[1:])
            cells += len(made.bounds) - 1
            members += len(made.conditions)
            conditions.append(made.conditions)
            clauses.append(made.clauses)
            spans.append(made.spans)
        axes = np.array(list(self._grids), np.int64).reshape(-1, 2)
        none = [np.empty(0, np.int32)]
        return Cells(
            axes,
            shapes,
            np.concatenate([*none, *bins]),
            np.concatenate(bounds),
            np.concatenate([*none, *conditions]),
            np.concatenate([*none, *clauses]),
            np.concatenate(spans),
        )


@dataclass(frozen=True, slots=True)
class _GridArrays:
    bins: tuple[Places, Places]
    wide: int
    bounds: Indices
    conditions: Places
    clauses: Places
    spans: Places


def _grid_arrays(blocks: Sequence[_Block], sizes: Sequence[int]) -> _GridArrays:
    """Lay a grid out, as fine as pays."""
    conditions = np.concatenate([each.conditions for each in blocks])
    clauses = np.concatenate([np.full(len(each.conditions), each.clause, np.int32) for each in blocks])
    spans = [np.concatenate([each.spans[place] for each in blocks]) for place in range(4)]
    most = _MOST_PAIR_BINS if sizes[1] else _MOST_BINS
    fine = most if not sizes[1] else min(most, 1 + 4 * int(np.sqrt(len(conditions))))
    while True:
        bins = _pair_of_bins(sizes, fine)
        # reckoned, not counted: a hundred thousand open intervals touch billions of the finest cells
        total = _touched(spans, bins)
        if total <= _SPREAD * len(conditions) or fine == 1:
            break
        fine //= 2
    wide = int(bins[1][-1]) + 1
    heads = np.zeros((int(bins[0][-1]) + 1) * wide + 1, np.int64)
    given = (spans[0], spans[1], bins[0], spans[2], spans[3], bins[1], wide)
    fill_cells(*given, heads, np.empty(0, np.int64))
    bounds = np.cumsum(heads)
    members = np.empty(total, np.int64)
    if total:
        fill_cells(*given, bounds[:-1].copy(), members)
    return _GridArrays(bins, wide, bounds, conditions[members], clauses[members], np.stack(spans, 1)[members])


def _pair_of_bins(sizes: Sequence[int], fine: int) -> tuple[Places, Places]:
    """The bins of both axes, `fine` of each; where one has fewer ranks, the other has more, for as many cells."""
    cells = fine * fine if sizes[1] else fine
    first = fine if not sizes[1] else max(fine, cells // sizes[1])
    return _bins(sizes[0], first), _bins(sizes[1], max(fine, cells // max(1, min(sizes[0], first))))


def _touched(spans: Sequence[Places], bins: tuple[Places, Places]) -> int:
    """How often intervals, or boxes, touch cells: as `fill_cells` would count it."""
    given = (spans[0] <= spans[1]) & (spans[2] <= spans[3])
    lows, highs, more_lows, more_highs = (each[given] for each in spans)
    first = bins[0][highs].astype(np.int64) - bins[0][lows] + 1
    second = bins[1][more_highs].astype(np.int64) - bins[1][more_lows] + 1
    return int((first * second).sum())


def _bins(size: int, fine: int) -> Places:
    """The bin of each rank of an axis."""
    return (np.arange(size) * min(fine, size) // size).astype(np.int32) if size else _NO_BINS


# --- bits ------------------------------------------------------------------------------------------------------


MOST = 256
_WORD = 64


@dataclass(frozen=True, slots=True)
class RankSpan:
    """A clause on one axis, for some conditions: that a rank lies between low and high, or that it does not."""

    axis: int
    lows: Places
    highs: Places
    negated: bool


class ClauseBits:
    """The clauses of conditions over some axes as bits; `sizes` are the numbers of ranks of the axes."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._blocks: list[tuple[Places, Sequence[RankSpan]]] = []
        self.count = 0

    def add(self, conditions: Places, spans: Sequence[RankSpan]) -> None:
        """Add one clause of some conditions."""
        self._blocks.append((conditions, spans))
        self.count += len(conditions)

    def arrays(self) -> Bits:
        """The bits as the kernel takes them (`kernels.match_few`)."""
        width = -(-self.count // _WORD) * _WORD
        whose = np.full(width, -1, np.int32)
        is_clause = np.arange(width) < self.count  # what else a word has room for is never fulfilled
        held = [np.tile(is_clause, (size, 1)) for size in self._sizes]
        untested = np.tile(is_clause, (len(self._sizes), 1))
        at = 0
        for conditions, spans in self._blocks:
            mine = slice(at, at + len(conditions))
            whose[mine] = conditions
            for each in spans:
                ranks = np.arange(self._sizes[each.axis])[:, None]
                inside = (each.lows <= ranks) & (ranks <= each.highs)
                held[each.axis][:, mine] &= inside != each.negated
                untested[each.axis, mine] = False
            at = mine.stop
        rows = np.cumsum([0, *self._sizes])[:-1].astype(np.int64)
        rows_held = _packed(np.concatenate([np.empty((0, width), np.bool_), *held]))
        return Bits(whose, rows, rows_held, _packed(untested))


def _packed(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Rows of flags as rows of words, the first flag lowest."""
    packed = np.packbits(flags, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64)


# --- conditions ------------------------------------------------------------------------------------------------


_EDGE = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes of conditions, numbered through: those with ranks, then those with keys."""

    rankings: Mapping[TestAxis, Ranking]
    keys: Mapping[TestAxis, KeyIndex]

    @property
    def numbers(self) -> dict[TestAxis, int]:
        return {axis: number for number, axis in enumerate((*self.rankings, *self.keys))}

    @property
    def first_keys(self) -> list[int]:
        """By axis with keys: the number of its first key; and behind them the number of all keys."""
        return [*accumulate((each.count for each in self.keys.values()), initial=0)]


def axes_of(
    groups: Sequence[Alike],
    wanted: WantedColumns,
    key_index: Callable[[TestAxis, WantedColumns, set[FormConstant]], KeyIndex],
) -> Axes:
    """The axes of all conditions, with the constants that are compared on each."""
    found: dict[TestAxis, set[FormConstant]] = {}
    for group in groups:
        for stage in group.form.stages:
            for test in chain.from_iterable(stage):
                if isinstance(test, Test):
                    found.setdefault(test.axis, set()).update(each[test.constant] for each in group.constants)
                elif isinstance(test, Missing):
                    found.setdefault(test.axis, set())
    return Axes(
        {axis: ranking_of(axis, wanted, found[axis]) for axis in found if axis.kind not in KEYED},
        {axis: key_index(axis, wanted, found[axis]) for axis in found if axis.kind in KEYED},
    )


class Arranged:
    """Conditions as the kernel takes them; within a form they differ in `lows` and `highs` only."""

    def __init__(self, axes: Axes, groups: Sequence[Alike]) -> None:
        self._rankings = list(axes.rankings.values())
        self._keys = list(axes.keys.values())
        self._first_keys = axes.first_keys
        self._axes = axes.numbers
        self._stage_bounds, self._clause_bounds, self._test_bounds = [0], [0], [0]
        self._tests: list[int] = []
        self._test_axes: list[int] = []
        self._negated: list[bool] = []
        self._first_tests: list[int] = []
        self._lows: list[Places] = []
        self._highs: list[Places] = []
        sizes = [*(each.size for each in self._rankings), *(1 for _ in self._keys)]
        self._grids, self._bits, self._lists = Grids(sizes), ClauseBits(sizes), _KeyedClauses(self._first_keys[-1])
        self._asks_keys = False
        """Whether a clause with keys lies in a grid, and is not found by a key."""
        self.share = 0.0  # the estimated part of all entries that meets a condition
        forms: list[int] = []
        bases: list[Indices] = []
        users: list[list[Indices]] = [[] for _ in self._axes]
        settled: list[Indices] = []
        first = size = 0
        whole: list[tuple[int, int, list[list[tuple[int, ...]]]]] = []
        for number, group in enumerate(groups):
            count = len(group.numbers)
            mine = np.arange(first, first + count)
            for axis in group.form.axes:
                users[self._axes[axis]].append(mine)
            if group.form.is_settled:
                settled.append(mine)
            stages = self._form(group)
            whole.append((first, count, stages))
            tests = len(self._test_axes) - self._first_tests[-1]
            forms += [number] * count
            bases.append(size + tests * np.arange(count))
            first, size = first + count, size + tests * count
        for number, (first, count, stages) in enumerate(whole):
            for test, keys in enumerate(self._lows[number].T):
                if self._test_axes[self._first_tests[number] + test] >= len(self._rankings):
                    self._lists.ask(keys, first + np.arange(count, dtype=np.int32))
            for clauses in product(*stages):
                self._index(number, first, count, [*chain.from_iterable(clauses)])
        self.conditions = kernels.Conditions(
            np.array(self._stage_bounds, np.int64),
            np.array(self._clause_bounds, np.int64),
            np.array(self._test_bounds, np.int64),
            np.array(self._tests, np.int64),
            np.array(self._test_axes, np.int64),
            np.array(self._negated, np.bool_),
            np.array(forms, np.int64),
            np.array(self._first_tests, np.int64),
            _joined(bases, np.int64),
            _joined([each.ravel() for each in self._lows], np.int32),
            _joined([each.ravel() for each in self._highs], np.int32),
            np.cumsum([0, *(sum(map(len, each)) for each in users)]),
            _joined([*chain.from_iterable(users)], np.int64),
            _joined(settled, np.int64),
            np.arange(len(self._axes)) >= len(self._rankings),
        )
        self.lists = self._lists.arrays()
        self.places = self._bits.arrays() if self.are_few else self._grids.arrays()

    def _form(self, group: Alike) -> list[list[tuple[int, ...]]]:
        """Lay out the tests of a form; returns the numbers of the tests in each clause of each stage."""
        self._first_tests.append(len(self._test_axes))
        columns: list[tuple[Places, Places]] = []
        found: list[list[tuple[int, ...]]] = []
        for stage in group.form.stages:
            found.append([])
            for clause in stage:
                numbers = []
                for axis, tests in _by_axis(clause):
                    for low, high, negated in self._intervals(axis, tests, group):
                        numbers.append(len(columns))
                        columns.append((low, high))
                        self._test_axes.append(self._axes[axis] if isinstance(axis, TestAxis) else axis)
                        self._negated.append(negated)
                self._tests += numbers
                self._test_bounds.append(len(self._tests))
                found[-1].append(tuple(numbers))
            self._clause_bounds.append(len(self._test_bounds) - 1)
        self._stage_bounds.append(len(self._clause_bounds) - 1)
        shape = (len(group.numbers), len(columns))
        self._lows.append(np.stack([low for low, _ in columns], 1) if columns else np.zeros(shape, np.int32))
        self._highs.append(np.stack([high for _, high in columns], 1) if columns else np.zeros(shape, np.int32))
        return found

    def _intervals(
        self, axis: TestAxis | int, tests: Sequence[Test | Missing], group: Alike
    ) -> list[tuple[Places, Places, bool]]:
        """Tests of one axis that must all hold, as intervals: one to lie in, and one for each `!=`, to lie outside."""
        count = len(group.numbers)
        if not isinstance(axis, TestAxis):
            return [(np.zeros(count, np.int32), np.full(count, _EDGE, np.int32), False)]
        if axis.kind in KEYED:
            return [self._key_test(self._axes[axis], test, group) for test in tests if isinstance(test, Test)]
        ranking = self._rankings[self._axes[axis]]
        nothing = ranking.size - 1
        low, high = np.zeros(count, np.int32), np.full(count, nothing, np.int32)
        found: list[tuple[Places, Places, bool]] = []
        for test in tests:
            if isinstance(test, Missing):
                low = np.full(count, nothing, np.int32)
                continue
            high = np.minimum(high, nothing - 1)
            at = 2 * ranking.places([each[test.constant] for each in group.constants]) + 1
            match test.operator:
                case "!=":
                    found.append((at, at, True))
                case "=":
                    low, high = np.maximum(low, at), np.minimum(high, at)
                case ">=" | ">":
                    low = np.maximum(low, at if test.operator == ">=" else at + 1)
                case "<=" | "<":
                    high = np.minimum(high, at if test.operator == "<=" else at - 1)
        found.insert(0, (low, high, False))
        return found

    def _key_test(self, axis: int, test: Test, group: Alike) -> tuple[Places, Places, bool]:
        """A test for a key, whose number stands for low and high."""
        number = axis - len(self._rankings)
        keys = self._keys[number].places([each[test.constant] for each in group.constants])
        keys = keys + np.int32(self._first_keys[number])
        return keys, keys, test.operator == "!="

    def _index(self, number: int, first: int, count: int, tests: list[int]) -> None:
        """Put one clause of a form, all stages together, into the grid where it is narrowest, or under its key."""
        begin = self._first_tests[number]
        if any(self._test_axes[begin + test] == kernels.NEVER for test in tests):
            return
        tests = [test for test in tests if self._test_axes[begin + test] >= 0]
        clause = len(self._test_bounds) - 1
        self._tests += tests
        self._test_bounds.append(len(self._tests))
        spans: dict[int, tuple[Places, Places]] = {}
        keyed = [test for test in tests if self._test_axes[begin + test] >= len(self._rankings)]
        ranked = [test for test in tests if test not in keyed]
        for test in ranked:
            axis = self._test_axes[begin + test]
            if not self._negated[begin + test]:
                last = self._rankings[axis].size - 1
                low, high = self._lows[number][:, test], np.minimum(self._highs[number][:, test], last)
                if axis in spans:
                    low, high = np.maximum(spans[axis][0], low), np.minimum(spans[axis][1], high)
                spans[axis] = low, high
        conditions = first + np.arange(count, dtype=np.int32)
        shares = {test: self._share(begin + test) for test in keyed if not self._negated[begin + test]}
        key = min(shares, key=shares.__getitem__, default=None)
        share = self._grids.share(spans)
        self.share = max(self.share, min([share, *shares.values()]))
        if key is not None and shares[key] <= share:
            self._lists.add(self._lows[number][:, key], conditions, -1 if len(tests) == 1 else clause)
            return
        self._asks_keys = self._asks_keys or bool(keyed)
        is_box = not keyed and not any(self._negated[begin + test] for test in tests)
        self._grids.add(conditions, clause, spans, is_box=is_box)
        lows, highs = self._lows[number], self._highs[number]
        asked = [(self._test_axes[begin + test], test, self._negated[begin + test]) for test in ranked]
        self._bits.add(conditions, [RankSpan(axis, lows[:, at], highs[:, at], negated) for axis, at, negated in asked])

    def _share(self, test: int) -> float:
        return self._keys[self._test_axes[test] - len(self._rankings)].share

    @property
    def are_few(self) -> bool:
        """Whether clauses are bits, and not in grids; keys are no bits."""
        return self._bits.count <= MOST and not self._asks_keys


class _KeyedClauses:
    """Clauses listed by their keys; `count` is the number of keys."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._blocks: list[tuple[Places, Places, Places]] = []
        self._asking: list[tuple[Places, Places]] = []

    def add(self, keys: Places, conditions: Places, clause: int) -> None:
        """Add one clause of some conditions; `clause` is what is still to be tested, -1 for nothing."""
        self._blocks.append((keys, conditions, np.full(len(keys), clause, np.int32)))

    def ask(self, keys: Places, conditions: Places) -> None:
        """Note the key that each of some conditions tests, however its clauses are found."""
        self._asking.append((keys, conditions))

    def arrays(self) -> KeyLists:
        """The lists as the kernels take them."""
        keys, conditions, clauses = (_joined([block[part] for block in self._blocks], np.int32) for part in range(3))
        order = np.argsort(keys, kind="stable")
        asked, users = (_joined([each[part] for each in self._asking], np.int32) for part in range(2))
        users = users[np.argsort(asked, kind="stable")]
        return KeyLists(self._bounds(keys), conditions[order], clauses[order], self._bounds(asked), users)

    def _bounds(self, keys: Places) -> Indices:
        """Where the entries of each key begin, and where the last end."""
        return np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=self._count))])


def _by_axis(clause: Sequence[Test | Missing | Fixed]) -> list[tuple[TestAxis | int, list[Test | Missing]]]:
    """The tests of a clause by axis; tests that the look decides have the axis ALWAYS or NEVER."""
    found: dict[TestAxis | int, list[Test | Missing]] = {}
    for test in clause:
        if isinstance(test, Fixed):
            found.setdefault(kernels.ALWAYS if test.holds else kernels.NEVER, [])
        else:
            found.setdefault(test.axis, []).append(test)
    return list(found.items())


def _joined(arrays: Sequence[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(arrays).astype(kind) if arrays else np.empty(0, kind)
