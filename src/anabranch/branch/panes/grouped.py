"""Windows that are grouped (LAWS 3.8) and seen through aggregates of their groups only.

    for $w in stream("s")/r/i |t diff 60| for $o in $w group by $k := $o/k return <g k="{$k}">{ sum($o/n) }</g>

A branch remembers one row for each pane and key.
When windows close, their groups are spans of these rows by key and pane, so all groups of many windows are found and
answered in columns at once, in the order of windows and, in a window, of the groups' first items.
Keys whose panes hold more than plain numbers are put together one by one beside them.
A window in which a group has failed, or that leaves in other units, is answered by the evaluator, group by group, and
as a whole or not at all (LAWS 2.4).
An item that is in no group because of its key has its dead letter behind each window that holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise

import numpy as np

from anabranch.aggregates.function import Column
from anabranch.algebra.sliding import Sliding
from anabranch.branch.panes.bounds import ClosedBounds
from anabranch.branch.panes.columns import ClosedWindows, ListedWindows, PaneColumns, arranged, written, written_sizes
from anabranch.branch.panes.keys import KeyBook, NumberedKeys
from anabranch.branch.panes.panes import PaneWindows
from anabranch.branch.panes.plan import PanePlan
from anabranch.branch.panes.results import AggregateValue
from anabranch.branch.panes.state import PaneState
from anabranch.branch.ports import InputStream, Output
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.panes.keys import Key, error_of
from anabranch.columnar.panes.rows import MOST_PANES, ManyPanes, Pane, Rows, together
from anabranch.columnar.panes.spans import find_groups, first_of, window_spans
from anabranch.columnar.scan.kernels import Flags, Indices
from anabranch.errors import DynamicError
from anabranch.law.calls import PythonFunction
from anabranch.law.evaluate import Known
from anabranch.law.inputs import Input
from anabranch.runtime.units import KnownGroup, Units
from anabranch.stream.limits import NO_CAPS, CostCaps

GROUPS_AT_ONCE = 1 << 16
"""The number of groups that are answered at a time, if these are of several windows."""
MOST_BYTES = 1 << 26
"""The number of bytes that are written at a time."""


@dataclass(frozen=True, slots=True)
class _WindowGroups:
    """Groups of windows that are complete, and of which none has failed."""

    windows: PaneColumns | ListedWindows
    """Their aggregates."""
    places: Indices
    """The window of each group, by its place among those that are answered."""
    orders: Indices
    """Where the first item of each group stands in the stream."""
    keys: Indices


@dataclass(frozen=True, slots=True)
class _WindowGroup:
    """One group of a window, with its merged pane."""

    place: int
    key: int
    pane: Pane


@dataclass(frozen=True, slots=True)
class _GroupRows:
    """Groups that lie in rows: of which windows they are, with which keys, and from which row to which."""

    rows: Rows
    begins: Indices
    ends: Indices
    keys: Indices
    by_place: Indices
    """The groups, sorted by window."""
    places: Indices
    """The windows of the groups so sorted."""

    def of(self, place: int) -> Iterator[_WindowGroup]:
        """The groups of one window."""
        for group in self.by_place[slice(*np.searchsorted(self.places, (place, place + 1)))].tolist():
            whole = self.rows.part(int(self.begins[group]), int(self.ends[group]))
            yield _WindowGroup(place, int(self.keys[group]), reduce(Pane.merge, whole.read()))


class JoinedGroups:
    """The aggregates of all groups: those in columns, and behind them those that were merged one by one."""

    def __init__(self, parts: Sequence[ClosedWindows]) -> None:
        self._parts = [each for each in parts if len(each)]
        self._numbers: dict[str, Column] = {}

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def column(self, aggregate: AggregateValue) -> Column:
        """One aggregate, in its unit, or the numbers of groups."""
        if aggregate.variable in self._numbers:
            return self._numbers[aggregate.variable]
        columns = [each.column(aggregate) for each in self._parts]
        values = np.concatenate([each.values for each in columns]) if columns else np.empty(0)
        if all(each.present is None for each in columns):
            return Column(values)
        there = [np.ones(len(each.values), np.bool_) if each.present is None else each.present for each in columns]
        return Column(values, np.concatenate(there))

    def number(self, variable: str, numbers: Indices) -> None:
        """Let a variable stand for these numbers."""
        self._numbers[variable] = Column(numbers)


class GroupedWindows(PaneWindows):
    """The branch of one subscription whose windows are grouped, for one epoch."""

    def __init__(
        self,
        plan: PanePlan,
        name: str,
        stream: InputStream,
        state: PaneState | None,
        out: Output,
        functions: Mapping[str, PythonFunction] | None = None,
        documents: Mapping[str, Input] | None = None,
        caps: CostCaps = NO_CAPS,
    ) -> None:
        super().__init__(plan, name, stream, state, out, functions, documents, caps)
        self._book = KeyBook(plan.kinds, () if state is None else state.keys)

    def numbered(self, keys: Sequence[Key]) -> Indices:
        """The branch's numbers for the keys of a range, behind a 0 for 'no group'."""
        return self._book.numbered(keys)

    # --- windows ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Answer the windows whose ends the stream has reached, in their order."""
        self._close_early()
        rows, others = self._parted()
        panes, counts = self._panes_there(rows, others)
        behind = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        for found in self._complete(panes, self._ended, behind):
            sizes = found.sizes(behind)
            for first, last in bounded(sizes, GROUPS_AT_ONCE):
                self._answer_windows(rows, others, found.numbers[first:last].tolist(), int(sizes[first:last].sum()))
        step = self._panes_of.step
        left = ManyPanes.of(
            (0, key, number, pane)
            for key, mine in others.items()
            for number, pane in mine.items()
            if number >= self._next * step
        )
        still_open = rows.at(rows.panes >= min(self._next * step, MOST_PANES))
        self.rows = together([still_open, *left.rows.values()], self.paths)
        self._odd = {(key, number): pane for _, key, number, pane in left.odd}
        self._drop_unanswered()

    def _answer_early(self, spans: Sequence[Sequence[int]], numbers: Sequence[int]) -> None:
        others: dict[int, dict[int, Pane]] = {}
        for (key, number), pane in self._early.items():
            others.setdefault(key, {})[number] = pane
        self._answer_windows(Rows.empty(self.paths), others, numbers, 0)

    def _parted(self) -> tuple[Rows, dict[int, dict[int, Pane]]]:
        """The panes of windows that are not answered yet: rows that are merged, and the panes of other keys by key."""
        panes = self._panes_of
        first = self._next * panes.step
        odd, self._odd = self._odd, {}
        rows = self._merged_rows()
        others: dict[int, dict[int, Pane]] = {}
        slow = self.rows
        if rows is not None:
            apart = np.isin(rows.keys, np.array(sorted({key for key, _ in odd}), np.int64))
            slow, rows = rows.at(apart), rows.at(~apart)
        given = [((key, number), pane) for (key, number), pane in odd.items()]
        given += zip(zip(slow.keys.tolist(), slow.panes.tolist(), strict=True), slow.read(), strict=True)
        for (key, number), pane in given:
            if panes.is_used(number) and number >= first:
                mine = others.setdefault(key, {})
                mine[number] = mine[number].merge(pane) if number in mine else pane
        return Rows.empty(self.paths) if rows is None else rows, others

    def _panes_there(self, rows: Rows, others: Mapping[int, Mapping[int, Pane]]) -> tuple[Indices | list[int], Indices]:
        """The numbers of panes that are not empty, rising, and how many groups each has at most."""
        numbers = sorted(number for mine in others.values() for number in mine)
        if numbers and numbers[-1] >= MOST_PANES:
            known = dict.fromkeys(sorted({*numbers, *rows.panes.tolist()}), 0)
            for number in (*numbers, *rows.panes.tolist()):
                known[number] += 1
            return list(known), np.array([*known.values()], np.int64)
        panes, counts = np.unique(np.concatenate([rows.panes, np.array(numbers, np.int64)]), return_counts=True)
        return panes, counts

    def _answer_windows(
        self, rows: Rows, others: Mapping[int, Mapping[int, Pane]], numbers: Sequence[int], room: int
    ) -> None:
        """Answer some windows, given by their numbers, most of them in columns; they have `room` groups at most."""
        plain, in_rows = self._in_columns(rows, numbers, room)
        left_out, spoiling = self._book.marks
        query = self._plan.query
        are_times = np.full(len(numbers), query.scale.is_time)
        if query.counts_times:
            are_times[plain.places[plain.windows.counts(len(query.paths)) > 0]] = True
        single: dict[int, list[_WindowGroup]] = {}
        letters: dict[int, list[tuple[int, int]]] = {}
        for each in self._one_by_one(others, numbers):
            are_times[each.place] |= query.counts_times and each.pane.partials[-1].count > 0
            if left_out[each.key]:
                letters.setdefault(each.place, []).append((each.pane.order, each.key))
            else:
                single.setdefault(each.place, []).append(each)
        result = self._result
        evaluated = {place for place, those in single.items() if any(self._is_evaluated(each.pane) for each in those)}
        evaluated |= set(range(len(numbers))) if result is None else self._with_equal_keys(plain, single)
        listed = self._listed([each for place, those in single.items() if place not in evaluated for each in those])
        groups = JoinedGroups([plain.windows, listed.windows])
        places, orders, keys = (
            np.concatenate([getattr(each, name) for each in (plain, listed)]) for name in ("places", "orders", "keys")
        )
        out, named = left_out[keys], NumberedKeys(self._book, keys)
        bounds = ClosedBounds(self._plan.extent, query.scale, numbers, are_times, places)
        for place, order, key in zip(*(each[out].tolist() for each in (places, orders, keys)), strict=True):
            letters.setdefault(place, []).append((order, key))
        turn, sizes = np.lexsort((orders, places)), np.zeros(len(keys), np.int64)
        turn = turn[~out[turn]]
        if result is not None:
            sizes = written_sizes(result, named, bounds, len(keys))
            evaluated |= set(places[turn[sizes[turn] > MOST_BYTES]].tolist())
            turn = arranged(result.behind, turn, places, groups, named)
        marks = {*evaluated, *letters}
        for first, last in pairwise([0, *sorted({*marks, *(each + 1 for each in marks)} - {0}), len(numbers)]):
            told = [key for _, key in sorted(letters.get(first, ()))]
            spoilt = [key for key in told if spoiling[key]]
            if spoilt:
                told = spoilt[:1]  # a window that fails has one dead letter, its first
            elif first in evaluated:
                those = [*single.get(first, ()), *(each for each in in_rows.of(first) if not left_out[each.key])]
                told = told if self._evaluate(those, bounds.known(first)) else []
            elif result is not None:
                mine = turn[slice(*np.searchsorted(places[turn], (first, last)))]
                for begin, end in bounded(sizes[mine], MOST_BYTES):
                    part = mine[begin:end]
                    self._give(written(result, groups, part, bounds, named), places[part])
            for key in told:
                self._bury(*error_of(self._book.of(key)))

    def _with_equal_keys(self, plain: _WindowGroups, single: Mapping[int, Sequence[_WindowGroup]]) -> set[int]:
        """The windows, by place, with groups whose keys are equal, though they are spelled otherwise."""
        equal = self._book.equal
        if np.array_equal(equal, np.arange(len(equal))):
            return set()
        others = np.array([(each.place, each.key) for those in single.values() for each in those], np.int64)
        found = np.concatenate([np.stack([plain.places, plain.keys], axis=1), others.reshape(-1, 2)])
        found = np.stack([found[:, 0], equal[found[:, 1]]], axis=1)
        places, counts = np.unique(found, axis=0, return_counts=True)
        return set(places[counts > 1, 0].tolist())

    def _in_columns(self, rows: Rows, numbers: Sequence[int], room: int) -> tuple[_WindowGroups, _GroupRows]:
        """The groups of windows that lie in rows of plain numbers, `room` at most."""
        size, step = self._panes_of.size, self._panes_of.step
        first, last = numbers[0], numbers[-1]
        part = rows.at(_between(rows.panes, first * step, last * step + size))
        begins, ends, found = np.empty((3, room), np.int64)
        count = find_groups(part.keys, part.panes, first, last + 1, size, step, begins, ends, found) if len(part) else 0
        begins, ends = begins[:count], ends[:count]
        orders = np.empty(count, np.int64)
        first_of(begins, ends, part.orders, orders)
        known = np.array(numbers if count else (), np.int64)  # numbers beyond 64 bits have no rows
        places, keys = np.searchsorted(known, found[:count]), part.keys[begins]
        columns = PaneColumns(part, self._plan.seen.calls, begins, ends)
        by_place = np.argsort(places, kind="stable")
        in_rows = _GroupRows(part, begins, ends, keys, by_place, places[by_place])
        return _WindowGroups(columns, places, orders, keys), in_rows

    def _one_by_one(self, others: Mapping[int, Mapping[int, Pane]], numbers: Sequence[int]) -> list[_WindowGroup]:
        """The groups of windows whose panes are merged one by one."""
        size, step = self._panes_of.size, self._panes_of.step
        at = {number: place for place, number in enumerate(numbers)}
        groups: list[_WindowGroup] = []
        for key, mine in others.items():
            there = sorted(each for each in mine if numbers[0] * step <= each < numbers[-1] * step + size)
            begins, ends, found = np.empty((3, len(numbers)), object)
            count, _ = window_spans(there, numbers[0], numbers[-1] + 1, size, step, begins, ends, found)
            window: Sliding[Pane] = Sliding(Pane.merge)
            pushed = 0
            for group in range(count):
                for place in range(max(pushed, begins[group]), ends[group]):
                    window.push(place, mine[there[place]])
                pushed = ends[group]
                window.drop(begins[group])
                whole = window.all()
                assert whole is not None, "a group is there because it holds a pane"
                groups.append(_WindowGroup(at[found[group]], key, whole))
        return groups

    def _listed(self, groups: Sequence[_WindowGroup]) -> _WindowGroups:
        """Groups that were put together one by one, as columns."""
        given = ((each.place, each.pane.order, each.key) for each in groups)
        places, orders, keys = np.array([*given], np.int64).reshape(-1, 3).T
        listed = ListedWindows([each.pane.partials for each in groups], self._plan.seen.calls)
        return _WindowGroups(listed, places, orders, keys)

    # --- answers ------------------------------------------------------------------------------------------

    def _give(self, found: TextColumn, places: Indices) -> None:
        """Give the texts of groups; those of a window are one piece."""
        if len(found.ends):
            last = int(np.searchsorted(places, places[0], "right"))
            windows = 1 + int(np.count_nonzero(places[1:] != places[:-1]))
            self._answers.extend(found.data[: found.ends[-1]].tobytes(), windows, int(found.ends[last - 1]))

    def _evaluate(self, groups: Sequence[_WindowGroup], bounds: Known) -> bool:
        """Let the evaluator answer a window with these bounds; whether it could."""
        equal: dict[int, _WindowGroup] = {}
        for each in sorted(groups, key=lambda each: each.pane.order):
            first = equal.setdefault(int(self._book.equal[each.key]), each)
            if first is not each:
                equal[int(self._book.equal[each.key])] = replace(first, pane=first.pane.merge(each.pane))
        there = [*equal.values()]
        names, book = self._plan.keys, self._book
        given = [
            KnownGroup(dict(zip(names, book.values(each.key), strict=True)), {**self._aggregates(each.pane), **bounds})
            for each in there
        ]
        units, outlet = Units(self._plan.standing, *self._known), self._outlet
        try:
            self._answers.write(units.groups(given, outlet.forward if outlet else None))
        except DynamicError as error:
            self._bury(error, next((each.pane.first for each in there if each.pane.first), None))
            return False
        return True

    # --- between epochs -----------------------------------------------------------------------------------

    def save(self) -> PaneState:
        """What to remember after the epoch: keys that no pane has are forgotten."""
        odd = np.array([key for key, _ in (*self._odd, *self._early)], np.int64)
        self._book, renamed = self._book.kept(np.concatenate([self.rows.keys, odd]))
        self.rows = self.rows.renamed(np.zeros(1, np.int64), renamed)
        self._odd = {(int(renamed[key]), number): pane for (key, number), pane in self._odd.items()}
        self._early = {(int(renamed[key]), number): pane for (key, number), pane in self._early.items()}
        found = super().save()
        return PaneState(found.meta, found.rows, found.odd, self._book.keys)


def _between(panes: Indices, first: int, last: int) -> Flags:
    found: Flags = (panes >= min(first, MOST_PANES)) & (panes < min(last, MOST_PANES))
    return found


def bounded(sizes: Indices, most: int) -> Iterator[tuple[int, int]]:
    """Runs of elements whose sizes add up to `most` at most, or that are a single element."""
    first, total = 0, 0
    for at, size in enumerate(sizes.tolist() if sizes.sum() > most else ()):
        if at > first and total + size > most:
            yield first, at
            first, total = at, 0
        total += size
    if first < len(sizes):
        yield first, len(sizes)
