"""Windows that are seen through aggregates only: what a branch remembers of them is a few numbers per pane.

The tasks count (`columnar/panes/panes.py`), each range for itself; here the counts of all ranges are merged by pane,
and the panes of a window merged when it closes (LAWS 3.1 to 3.3).
Where panes hold plain numbers and the query makes something plain of its aggregates, both are done in columns for all
windows at once (`columns.py`); else panes are merged one by one, and the evaluator is given the aggregates as
variables.
Which way an epoch takes never shows.

Ranges are taken in the order of the stream.
The count of a range is void where it took in an item that is late by what came before the range; then the range is
counted again from `largest`.
Panes that no open window holds are dropped, so the state is as large as a window and not as a stream.
Windows are found from the panes there are, so a jump over millions of empty ones costs nothing.

Where the stream evolves (LAWS 4), panes hold values in the units of query start.
Complete windows are answered before an accent comes out, in the units before it; from then on windows leave by way of
the outlet.
A path that is dropped is forgotten by the panes of open windows (LAWS 4.2 g).

A stream of several partitions is taken in the order in which the ranges are given; where that is not the order of
LAWS 1.2, because items of several partitions lie between each other, this is not the operator to use.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial, reduce
from itertools import groupby
from typing import NamedTuple

import numpy as np

from anabranch.aggregates import AGGREGATES
from anabranch.aggregates.partial import Failure, ItemAt
from anabranch.algebra.sliding import Sliding
from anabranch.algebra.window import EARLIEST, Panes
from anabranch.branch.members import AnswerWriter
from anabranch.branch.panes.bounds import ClosedBounds
from anabranch.branch.panes.cap import PANES, FoundWindows, WindowCap, windows_over
from anabranch.branch.panes.columns import ListedWindows, PaneColumns, texts
from anabranch.branch.panes.plan import PanePlan
from anabranch.branch.panes.results import JsonLine, WindowResult, in_units
from anabranch.branch.panes.state import PaneState
from anabranch.branch.ports import InputStream, Output
from anabranch.branch.windows.selection import WindowProgress
from anabranch.columnar.expressions.texts import TextColumn
from anabranch.columnar.panes.counted import Counted
from anabranch.columnar.panes.keys import Key
from anabranch.columnar.panes.rows import MOST_PANES, GroupPane, ManyPanes, Numbered, Pane, Rows, together
from anabranch.columnar.scan.kernels import Indices
from anabranch.errors import DynamicError
from anabranch.law.calls import PythonFunction
from anabranch.law.evaluate import Known
from anabranch.law.inputs import Input
from anabranch.law.rounds.windows import Reach
from anabranch.runtime.evolution.outlet import Outlet
from anabranch.runtime.units import Units
from anabranch.stream.culprits import letter_of
from anabranch.stream.elements import Accent, Doubt, Place
from anabranch.stream.limits import NO_CAPS, CostCaps
from anabranch.stream.path import Path
from anabranch.values.sequences import Values

_FAR = 1 << 62


class JointClose(NamedTuple):
    """Windows of a branch that may be answered with those of others."""

    shape: str
    """What the query computes from their aggregates (`PanePlan.shape`)."""
    following: int
    ended: int
    """From which number on, and before which, windows are complete."""
    size: int
    step: int
    """How many panes a window holds, and how many panes apart windows begin."""


class PaneWindows:
    """The branch of one subscription, for one epoch."""

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
        self.plan = self._plan = plan
        self._name = name
        self._stream = stream
        self._out = out
        self._answers = AnswerWriter(name, out, caps)
        self._cap = WindowCap(self._answers.room)
        self._known = functions or {}, documents or {}
        self.rows = Rows.empty(self.paths) if state is None else state.rows
        """The panes that are remembered; those that are taken in are merged into them before windows close."""
        self._odd: dict[tuple[int, int], Pane] = {}
        """Panes that do not fit into rows, by the number of their group (0 without groups) and their own."""
        self._early: dict[tuple[int, int], Pane] = {}
        """Panes of times in windows before the first window of plain numbers (LAWS 3.1), by the same two numbers."""
        self._next_early = EARLIEST  # the first of these windows that is not answered yet
        self._next = 0  # the first of the others
        self.order = 0
        """Where the next range begins in the stream."""
        self._arrived = 0  # how many nodes were selected, for windows that count them
        self._outlet: Outlet | None = None
        self._slack = plan.query.scale.slack
        self.progress = self._progress = WindowProgress(stream, self._slack)
        if state is not None:
            self._next, self.order, self._arrived = (state.meta[each] for each in ("next", "order", "arrived"))
            self._progress.restore(state.meta["progress"])
            self._answers.restore(state.meta["answers"])
            self._cap.over = state.meta.get("over")
            self._next_early = state.meta["early"]
            self._early = {at: pane for at, pane in state.odd if pane.is_early}
            self._odd = {at: pane for at, pane in state.odd if not pane.is_early}

    # --- ranges -------------------------------------------------------------------------------------------

    def largest(self, partition: int) -> Reach | None:
        """The largest value that a partition has shown so far."""
        return self._progress.largest(partition)

    def take(
        self, partition: int, counted: Counted, odd: Sequence[GroupPane], finer: int = 1
    ) -> tuple[int, int] | None:
        """Take in the next range, but for its rows; None, and nothing is taken, where the result is void.

        `finer` panes of the count make one pane of time windows.
        Returns how many places in the stream, and how many selected nodes, are before the range.
        """
        before, reached = self.largest(partition), counted.reached
        if before is not None and reached.low is not None and reached.low < before - self._slack:
            return None
        for offset in reached.late:
            self._out.late(Place(self._stream.name, counted.file, offset))
        if reached.first is not None and self._progress.first is None:
            self._progress.is_late(partition, reached.first)
        if reached.largest is not None:
            self._progress.passed(partition, reached.largest - self._slack)
        first = self._progress.first_window(self._plan.extent)
        self._next, self._next_early = max(self._next, first), max(self._next_early, first)
        for (key, number), pane in odd:
            self._add(key, number // finer, pane.moved(self.order))
        at = self.order, self._arrived
        self.order += counted.span
        self._arrived += counted.selected
        return at

    def gather(self, rows: Rows, odd: Iterable[tuple[int, Pane]], span: int) -> None:
        """Take in panes that were made elsewhere; they take up `span` places in the stream."""
        self.rows = together([self.rows, rows], self.paths)
        for number, pane in odd:
            self._add(0, number, pane)
        self.order += span

    def numbered(self, keys: Sequence[Key]) -> Indices:
        """The branch's numbers for the keys of a range, behind a 0 for 'no group'; without groups, only that."""
        assert not keys, "only windows that are grouped have keys"
        return np.zeros(1, np.int64)

    def begin(self, first: int) -> None:
        """Answer no window before this number: those are not whole."""
        self._next = max(self._next, first)

    def reach(self, partition: int, value: Reach) -> None:
        """No item with a reference value below this follows in a partition."""
        self._progress.passed(partition, value)

    def end_of(self, partition: int) -> None:
        """A partition has ended; a count window that is not full gives nothing."""
        self.reach(partition, math.inf)

    @property
    def _is_timed(self) -> bool:
        """Whether its windows are reached by a value, and not by the number of nodes that have arrived."""
        return self._plan.query.is_timed or self._plan.is_numbered

    @property
    def paths(self) -> int:
        """How many paths are aggregated, that of times among them."""
        return len(self._plan.query.asked)

    @property
    def width(self) -> Fraction | None:
        """How wide its panes are; None where they hold a number of nodes."""
        return self._panes_of.width if self._is_timed else None

    @property
    def count_width(self) -> int:
        """How many nodes are in a pane; 0 where panes are those of a reference."""
        return 0 if self._is_timed else int(self._panes_of.width)

    @property
    def _panes_of(self) -> Panes:
        return self._plan.query.panes

    def _add(self, key: int, number: int, pane: Pane) -> None:
        if not self._is_timed:
            number = self._panes_of.at(Fraction(self._arrived + number))
        panes = self._panes_of
        if pane.is_early and panes.is_used_before(number):
            _merge_into(self._early, (key, number), pane)
        if not pane.is_early or panes.is_used(number):
            _merge_into(self._odd, (key, number), replace(pane, is_early=False))

    # --- evolution ----------------------------------------------------------------------------------------

    def follow(self, outlet: Outlet) -> None:
        """From here on, what is answered leaves through this outlet."""
        self._outlet = outlet

    def tell(self, accents: Iterable[Accent | Doubt]) -> None:
        """Accents come out; what is complete was answered before."""
        self._answers.announce(accents)

    def forget(self, path: Path) -> None:
        """A path has gone from what came before, as far as it is not answered yet."""
        for number in self._plan.aggregates(path):
            self.rows = self.rows.without(number)
            for held in (self._odd, self._early):
                for each, pane in held.items():
                    held[each] = pane.without(number)

    @property
    def _result(self) -> WindowResult | None:
        """What is written for windows, in the current units; None where the evaluator has to compute it."""
        result, outlet = self._plan.result, self._outlet
        if result is None or outlet is None or not outlet.changes_pieces:
            return result
        return None if outlet.units is None else in_units(result, outlet.units)

    # --- windows ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Answer the windows whose ends the stream has reached, in their order: in columns, or else one by one."""
        self._close_early()
        ended = self._ended
        write = self._column_writer()
        rows = None if write is None else self._merged_rows()
        if write is None or rows is None:
            self._close_one_by_one(ended)
        else:
            for found in self._complete(rows.panes, ended):
                write(PaneColumns(rows, self._plan.seen.calls, found.begins, found.ends), found.numbers)
            self._keep_open(rows)
        self._drop_unanswered()

    def closing(self, last_pane: int) -> JointClose | None:
        """The windows up to a pane, to be closed with those of others (`closing.py`); None where it cannot be done."""
        panes, ended, last = self._panes_of, self._ended, last_pane // self._panes_of.step + 1
        is_near = max(panes.size, panes.step, self._next * panes.step) < MOST_PANES
        shape = None if panes.size > self._cap.room else self.plan.shape
        if shape is None or self._odd or self._early or not is_near or self._result is not self.plan.result:
            return None
        return JointClose(shape, self._next, last if ended is None else min(ended, last), panes.size, panes.step)

    def close_with(self, data: bytes, pieces: int, first: int, following: int, rows: Rows) -> None:
        """Write the answer that was made of these rows; keep the rows of open windows, which begin with `following`."""
        if pieces:
            self._answers.extend(data, pieces, first)
        ended = self._ended
        self._next = max(following if ended is None else ended, self._next)
        self._keep_open(rows)

    def _keep_open(self, rows: Rows) -> None:
        """Keep the rows, by rising panes, of windows that are not answered yet."""
        open_from = int(np.searchsorted(rows.panes, min(self._next * self._panes_of.step, _FAR)))
        self.rows = rows.part(open_from, len(rows))

    @property
    def _reached(self) -> Reach | None:
        """How far the stream has come, or how many nodes have arrived for windows that count them."""
        return self._progress.reached if self._is_timed else Fraction(self._arrived)

    @property
    def _ended(self) -> int | None:
        """The number of the first window whose end the stream has not reached; None where the stream has ended."""
        reached = self._reached
        return 0 if reached is None else None if reached == math.inf else self._panes_of.ended(Fraction(reached))

    def _close_early(self) -> None:
        """Answer windows that begin before those of plain numbers do; they end before all others."""
        if not self._early:
            return
        reached, of = self._reached, self._panes_of
        ended = EARLIEST if reached is None else 0
        if reached is not None and reached != math.inf:
            ended = min(0, self._plan.extent.behind(Fraction(reached)))
        counts = Counter(number for _, number in self._early)
        numbers = sorted(counts)
        behind = np.cumsum([0, *(counts[each] for each in numbers)])
        for found in self._answered(numbers, self._next_early, ended, behind):
            spans = zip(found.begins.tolist(), found.ends.tolist(), strict=True)
            if len(found.numbers):
                self._answer_early([numbers[slice(*span)] for span in spans], found.numbers.tolist())
        self._next_early = max(self._next_early, ended)
        self._cap.look(numbers, behind, self._next_early, 0, of)
        self._early = {at: pane for at, pane in self._early.items() if at[1] >= self._next_early * of.step}
        self._end_before(self._next_early)

    def _answer_early(self, spans: Sequence[Sequence[int]], numbers: Sequence[int]) -> None:
        """Answer such windows, given by the panes that they hold, and with their numbers."""
        windows = [reduce(Pane.merge, (self._early[0, each] for each in span)) for span in spans]
        self._write_listed(windows, numbers)

    def _merged_rows(self) -> Rows | None:
        """The merged rows of windows that are not answered yet; None where some pane holds more than plain numbers."""
        panes, rows = self._panes_of, self.rows
        if self._odd or max(panes.size, panes.step, self._next * panes.step) >= MOST_PANES:
            return None
        is_used = (rows.panes >= self._next * panes.step) & (rows.panes % panes.step < panes.size)
        used = rows if is_used.all() else rows.at(is_used)
        return used if used.is_merged else used.merged()

    def _complete(
        self, panes: Indices | list[int], ended: int | None, behind: Indices | None = None
    ) -> Iterator[FoundWindows]:
        """The windows over rising panes, all or those before the number `ended`, as far as they are answered.

        They come in batches; `behind` says how many panes of all groups lie before each pane.
        """
        of, most = self._panes_of, int(panes[-1]) // self._panes_of.step + 1 if len(panes) else 0
        following = self._next
        for found in self._answered(panes, following, most if ended is None else min(ended, most), behind):
            following = found.following
            yield found
        self._next = max(following if ended is None else ended, self._next)
        self._cap.look(panes, behind, self._next, most, of)
        if self._is_past_early:
            self._end_before(math.inf if ended is None else self._next)

    def _answered(
        self, panes: Indices | list[int], first: int, ended: int, behind: Indices | None
    ) -> Iterator[FoundWindows]:
        """The windows from one number on and before another, as far as none of them holds too much."""
        for found in windows_over(panes, first, self._cap.holds_off(ended), self._panes_of):
            answered = self._cap.cut(found, behind)
            yield answered
            if len(answered.numbers) < len(found.numbers):
                return

    @property
    def _is_past_early(self) -> bool:
        """Whether all windows have ended that begin before those of plain numbers do: a time may be in them."""
        reached = self._reached
        if not self._is_timed or reached is None:
            return not self._is_timed
        return reached == math.inf or self._plan.extent.behind(Fraction(reached)) >= 0

    def _end_before(self, following: int | float) -> None:
        """End the query where the next window that could be answered is behind one that holds too much."""
        if self._cap.over is not None and following >= self._cap.over:
            self._answers.overflows(PANES)

    @property
    def capped(self) -> str | None:
        """Why the query has ended, where it holds too much (LAWS 2.9)."""
        return self._answers.capped

    def _drop_unanswered(self) -> None:
        """Drop the panes that no window holds that is still answered."""
        first = self._cap.first_dropped(self._panes_of)
        if self.capped is not None:
            self.rows, self._odd, self._early = Rows.empty(self.paths), {}, {}
        elif first is not None and self._cap.over is not None:
            self._early = {at: pane for at, pane in self._early.items() if at[1] < first}
            first = first if self._cap.over > 0 else 0  # only early windows are answered
            self._odd = {at: pane for at, pane in self._odd.items() if at[1] < first}
            self.rows = self.rows.at(self.rows.panes < min(first, MOST_PANES))

    def _close_one_by_one(self, ended: int | None) -> None:
        """Answer windows whose panes hold more than plain numbers, or whose results the evaluator has to compute."""
        panes, held = self._panes_of, {number: pane for (_, number), pane in self._odd.items()}
        for number, pane in zip(self.rows.panes.tolist(), self.rows.read(), strict=True):
            held[number] = held[number].merge(pane) if number in held else pane
        numbers = sorted(each for each in held if panes.is_used(each) and each >= self._next * panes.step)
        window: Sliding[Pane] = Sliding(Pane.merge)
        pushed = 0
        for found in self._complete(numbers, ended):
            windows: list[Pane] = []
            for first, last in zip(found.begins.tolist(), found.ends.tolist(), strict=True):
                for at in range(max(pushed, first), last):
                    window.push(at, held[numbers[at]])
                pushed = last
                window.drop(first)
                whole = window.all()
                assert whole is not None, "a window is answered because it holds a pane"
                windows.append(whole)
            self._write_listed(windows, found.numbers.tolist())
        self._keep((0, 0, each, held[each]) for each in numbers if each >= self._next * panes.step)

    def _keep(self, panes: Iterable[Numbered]) -> None:
        """Remember these panes and no others."""
        left = ManyPanes.of(panes)
        self.rows = left.rows.get(self.paths, Rows.empty(self.paths))
        self._odd = {(key, number): pane for _, key, number, pane in left.odd}

    def _column_writer(self) -> Callable[[PaneColumns, Indices], None] | None:
        """The function that answers many windows, given with their numbers; None where only the evaluator can."""
        result = self._result
        if result is None:
            return None
        return lambda columns, numbers: self._extend(texts(result, columns, self._bounds(columns, numbers.tolist())))

    def _bounds(self, windows: PaneColumns | ListedWindows, numbers: Sequence[int]) -> ClosedBounds:
        """The bounds of windows with these numbers."""
        query = self._plan.query
        are_times = np.full(len(numbers), query.scale.is_time)
        if query.counts_times:
            are_times |= windows.counts(len(query.paths)) > 0
        return ClosedBounds(self._plan.extent, query.scale, numbers, are_times)

    def _extend(self, found: TextColumn) -> None:
        """Write texts, one for each window that adds something."""
        if len(found.ends):
            self._answers.extend(found.data[: found.ends[-1]].tobytes(), len(found.ends), int(found.ends[0]))

    def _write_listed(self, windows: Sequence[Pane], numbers: Sequence[int]) -> None:
        """Answer windows that were put together one by one, given with their numbers."""
        units, result = Units(self._plan.standing, *self._known), self._result
        given = zip(windows, numbers, strict=True)
        for is_evaluated, run in groupby(given, lambda each: self._is_evaluated(each[0])):
            some, named = zip(*run, strict=True)
            listed = ListedWindows([each.partials for each in some], self._plan.seen.calls)
            bounds = self._bounds(listed, named)
            if result is None or is_evaluated:
                for place, window in enumerate(some):
                    self._answer(window, units, bounds.known(place))
            else:
                self._extend(texts(result, listed, bounds))

    def _answer(self, window: Pane, units: Units, bounds: Known) -> None:
        """Let the evaluator answer a window."""
        try:
            outlet, known = self._outlet, {**self._aggregates(window), **bounds}
            self._answers.write(units.window((), known, outlet.forward if outlet else None))
        except DynamicError as error:
            self._bury(error, window.first)

    def _is_evaluated(self, window: Pane) -> bool:
        """Whether a window or group is the evaluator's: it has failed, or has a number that JSON cannot say."""
        if any(known.failure for known in window.partials):
            return True
        result = self._plan.result
        if result is None or not isinstance(result.element, JsonLine):
            return False
        found = (value for each in self._aggregates(window).values() for value in each())
        return any(isinstance(each, float) and not math.isfinite(each) for each in found)

    def _aggregates(self, window: Pane) -> dict[str, Callable[[], Values]]:
        """The aggregates of a window, or of one of its groups, as the evaluator asks for them."""
        calls = self._plan.seen.calls
        return {call.variable: partial(AGGREGATES[call.function].value, window.partials[call.path]) for call in calls}

    def _bury(self, error: DynamicError, first: ItemAt | None) -> None:
        """Write the dead letter of a window that failed; `first` is its first item."""
        failed = next((each for level in error.operands for each in level if isinstance(each, Failure)), None)
        items = [item for _, item in failed.items] if failed else []
        if not items:
            assert first is not None, "what can fail without any item tells where it begins"
            items = [first]
        named = [(Place(self._stream.name, each.file, each.offset), each.raw) for each in items]
        self._out.bury(letter_of(error, named, failed.values if failed else 0, self._name))

    # --- between epochs -----------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """How many panes it remembers."""
        return len(self.rows) + len(self._odd) + len(self._early)

    def save(self) -> PaneState:
        """What to remember after the epoch."""
        meta = {
            "next": self._next,
            "early": self._next_early,
            "order": self.order,
            "arrived": self._arrived,
            "progress": self._progress.save(),
            "answers": self._answers.save(),
            "over": self._cap.over,
        }
        return PaneState(meta, self.rows, (*self._odd.items(), *self._early.items()))


def _merge_into(held: dict[tuple[int, int], Pane], at: tuple[int, int], pane: Pane) -> None:
    held[at] = held[at].merge(pane) if at in held else pane
