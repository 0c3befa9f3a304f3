"""Conditions arranged for the kernels that match them: alike ones together, and each clause where it is found.

Conditions of one form differ in their constants only, and constants are ranks (`ranking.py`); so a form is laid out
once, and each condition is a row of lows and highs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.match import kernels
from anabranch.columnar.match.clause_bits import MOST, ClauseBits, Span
from anabranch.columnar.match.condition import Condition
from anabranch.columnar.match.forms import Axis, Constant, Fixed, Form, Test, formed
from anabranch.columnar.match.grids import Grids
from anabranch.columnar.match.ranking import Ranking, ranking_of
from anabranch.columnar.scan.kernels import Indices, Places
from anabranch.columnar.scan.shred import Wanted

_EDGE = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Alike:
    """Conditions of one form: their numbers, and for each its constants."""

    form: Form
    numbers: Sequence[int]
    constants: Sequence[tuple[Constant, ...]]


def gathered(conditions: Iterable[tuple[int, Condition]]) -> tuple[list[Alike], list[tuple[int, Condition]]]:
    """Conditions with their numbers, those of one form together; and those without a form."""
    alike: dict[Form, tuple[list[int], list[tuple[Constant, ...]]]] = {}
    others: list[tuple[int, Condition]] = []
    for number, condition in conditions:
        found = formed(condition)
        if found is None:
            others.append((number, condition))
            continue
        form, constants = found
        numbers, rows = alike.setdefault(form, ([], []))
        numbers.append(number)
        rows.append(constants)
    return [Alike(form, *each) for form, each in alike.items()], others


def rankings_of(groups: Sequence[Alike], wanted: Wanted) -> dict[Axis, Ranking]:
    """All constants, by the axis they are compared with."""
    found: dict[Axis, set[Constant]] = {}
    for group in groups:
        for stage in group.form.stages:
            for test in chain.from_iterable(stage):
                if isinstance(test, Test):
                    found.setdefault(test.axis, set()).update(each[test.constant] for each in group.constants)
    return {axis: ranking_of(axis, wanted.leaves.index(axis.leaf), found[axis]) for axis in sorted(found)}


class Arranged:
    """Conditions as the kernel takes them; within a form they differ in `lows` and `highs` only."""

    def __init__(self, rankings: Mapping[Axis, Ranking], groups: Sequence[Alike]) -> None:
        self._rankings = list(rankings.values())
        self._axes = {axis: number for number, axis in enumerate(rankings)}
        self._stage_bounds, self._clause_bounds, self._test_bounds = [0], [0], [0]
        self._tests: list[int] = []
        self._test_axes: list[int] = []
        self._negated: list[bool] = []
        self._first_tests: list[int] = []
        self._lows: list[Places] = []
        self._highs: list[Places] = []
        sizes = [each.size for each in self._rankings]
        self._grids, self._bits = Grids(sizes), ClauseBits(sizes)
        forms: list[int] = []
        bases: list[Indices] = []
        users: list[list[Indices]] = [[] for _ in rankings]
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
        )
        self.places = self._bits.arrays() if self.are_few else self._grids.arrays()

    def _form(self, group: Alike) -> list[list[tuple[int, ...]]]:
        """Lay out the tests of a form; gives the numbers of those in each clause of each stage."""
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
                        self._test_axes.append(self._axes[axis] if isinstance(axis, Axis) else axis)
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

    def _intervals(self, axis: Axis | int, tests: Sequence[Test], group: Alike) -> list[tuple[Places, Places, bool]]:
        """Tests of one axis that must all hold: one interval, and one for each that must be left out."""
        count = len(group.numbers)
        low, high = np.zeros(count, np.int32), np.full(count, _EDGE, np.int32)
        found: list[tuple[Places, Places, bool]] = []
        for test in tests:
            ranking = self._rankings[self._axes[test.axis]]
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
        if len(found) < len(tests) or not tests:
            found.insert(0, (low, high, False))
        return found

    def _index(self, number: int, first: int, count: int, tests: list[int]) -> None:
        """Put one clause of a form, all stages together, into the grid where it is narrowest."""
        begin = self._first_tests[number]
        if any(self._test_axes[begin + test] == kernels.NEVER for test in tests):
            return
        tests = [test for test in tests if self._test_axes[begin + test] >= 0]
        clause = len(self._test_bounds) - 1
        self._tests += tests
        self._test_bounds.append(len(self._tests))
        spans: dict[int, tuple[Places, Places]] = {}
        for test in tests:
            axis = self._test_axes[begin + test]
            if not self._negated[begin + test]:
                last = self._rankings[axis].size - 1
                low, high = self._lows[number][:, test], np.minimum(self._highs[number][:, test], last)
                if axis in spans:
                    low, high = np.maximum(spans[axis][0], low), np.minimum(spans[axis][1], high)
                spans[axis] = low, high
        conditions = first + np.arange(count, dtype=np.int32)
        self._grids.add(conditions, clause, spans, is_box=not any(self._negated[begin + test] for test in tests))
        lows, highs = self._lows[number], self._highs[number]
        asked = [(self._test_axes[begin + test], test, self._negated[begin + test]) for test in tests]
        self._bits.add(conditions, [Span(axis, lows[:, at], highs[:, at], negated) for axis, at, negated in asked])

    @property
    def are_few(self) -> bool:
        """Whether clauses are bits, and not in grids."""
        return self._bits.count <= MOST


def _by_axis(clause: Sequence[Test | Fixed]) -> list[tuple[Axis | int, list[Test]]]:
    """The tests of a clause, those of one axis together; what the template decides has an axis of its own."""
    found: dict[Axis | int, list[Test]] = {}
    for test in clause:
        if isinstance(test, Fixed):
            found.setdefault(kernels.ALWAYS if test.holds else kernels.NEVER, [])
        else:
            found.setdefault(test.axis, []).append(test)
    return list(found.items())


def _joined(arrays: Sequence[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(arrays).astype(kind) if arrays else np.empty(0, kind)
