"""Windows that are seen through aggregates only: what a branch remembers of them is a few numbers to a pane.

The tasks count (`columnar/panes.py`), each range for itself; here the counts of all ranges are merged by pane, and the
panes of a window merged when it closes (LAWS 3.1 to 3.3).
What the query makes of the aggregates is the evaluator's business: it is given them as variables.

Ranges are taken in the order of the stream.
A result is void where it let something pass that is late by what came before the range; then the range is counted again
from `largest`.
Panes that no open window holds are dropped, so the state is as large as a window and not as a stream.
Windows are found from the panes there are, so a jump over millions of empty ones costs nothing.

A stream of several partitions is taken in the order in which the ranges are given; where that is not the order of
LAWS 1.2, because items of several partitions lie between each other, this is not the operator to use.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from anabranch.algebra.aggregate import Function, Partial
from anabranch.algebra.sliding import Sliding
from anabranch.algebra.window import Extent, Panes
from anabranch.branch.answers import Answers
from anabranch.branch.pane_results import window_result
from anabranch.branch.ports import InputStream, Output
from anabranch.branch.progress import Progress
from anabranch.branch.state import State
from anabranch.columnar import pane_rows
from anabranch.columnar.counted import Counted, Looked, Seen, Texts
from anabranch.columnar.pane_query import PaneQuery
from anabranch.columnar.pane_rows import Pane
from anabranch.errors import DynamicError, StateError
from anabranch.language import ast
from anabranch.language.aggregates import Aggregated, aggregated
from anabranch.reference.calls import PythonFunction
from anabranch.reference.env import Env
from anabranch.reference.evaluate import Evaluator
from anabranch.reference.inputs import Input
from anabranch.reference.sequences import Value, Values, atomize
from anabranch.reference.slices import path_in_item
from anabranch.reference.standing import Standing
from anabranch.reference.units import Piece, Units
from anabranch.reference.values import spell
from anabranch.reference.windows import Reach, extent_of
from anabranch.stream.cover import passed
from anabranch.stream.elements import DeadLetter, Item, Place, Punctuation
from anabranch.stream.path import Path
from anabranch.stream.tree import Element

OPERATOR = "panes"


@dataclass(frozen=True, slots=True)
class PanePlan:
    """A window query that can be counted by panes."""

    standing: Standing
    """With variables in the place of the aggregates."""
    seen: Aggregated
    extent: Extent
    query: PaneQuery


def pane_plan(
    standing: Standing, slack: Fraction, origin: Fraction, functions: Mapping[str, PythonFunction] | None = None
) -> PanePlan | None:
    """How to count a query by panes; None where it needs the items of its windows."""
    if standing.kind != "windows":
        return None
    (clause,) = standing.fors
    assert clause.window is not None
    seen = aggregated(standing.flwor, clause, functions or ())
    if seen is None:
        return None
    numeric = tuple(
        any(call.path == path and call.function != "count" for call in seen.calls) for path in range(len(seen.paths))
    )
    extent = extent_of(clause.window)
    is_plain = standing.plain_hole is not None
    query = PaneQuery(clause, seen.paths, numeric, Panes.of(extent), slack, origin, is_plain)
    return PanePlan(replace(standing, hole=seen.flwor), seen, extent, query)


class PaneLaw:
    """What the law sees in single items, for those that columns leave unclear."""

    def __init__(
        self,
        plan: PanePlan,
        root: Element,
        time: Path | None = None,
        functions: Mapping[str, PythonFunction] | None = None,
        documents: Mapping[str, Input] | None = None,
    ) -> None:
        self._plan = plan
        self._root = root
        self._time = time
        self._units = Units(plan.standing, functions, documents)
        self._evaluator = Evaluator(plan.standing.query, documents or {}, functions or {})

    def punctuation(self, punctuation: Punctuation) -> Reach | None:
        """What a punctuation shows, as the value of an item that nobody selects (LAWS 3.2)."""
        query = self._plan.query
        assert isinstance(query.clause.window, ast.TimeWindow)
        path = path_in_item(query.clause.source, query.clause.window.reference)
        value = passed(punctuation, path, self._time)
        return None if value is None else value - query.origin + query.slack

    def item(self, item: Item) -> Looked:
        """What the window's path leads to in an item."""
        found = self._units.candidates(0, self._root, item, self._plan.query.origin)
        nodes = (
            Seen(each.selected, each.value, each.error, self._texts(each.node) if each.selected else ())
            for each in found.nodes
        )
        return Looked(tuple(nodes), found.error)

    def _texts(self, node: Value) -> tuple[Texts, ...]:
        env = self._plan.standing.env.bind(self._plan.query.clause.variable, [node])
        return tuple(self._along(path, env) for path in self._plan.query.paths)

    def _along(self, path: ast.Expression, env: Env) -> Texts:
        try:
            return tuple(spell(each) for each in atomize(self._evaluator.value(path, env)))
        except DynamicError as error:
            return error


class PaneWindows:
    """The branch of one subscription, for one epoch."""

    def __init__(
        self,
        plan: PanePlan,
        name: str,
        stream: InputStream,
        state: State | None,
        out: Output,
        functions: Mapping[str, PythonFunction] | None = None,
        documents: Mapping[str, Input] | None = None,
    ) -> None:
        self._plan = plan
        self._name = name
        self._stream = stream
        self._out = out
        self._answers = Answers(name, out)
        self._units = Units(plan.standing, functions, documents)
        self._result = window_result(plan.standing)
        self._panes: dict[int, Pane] = {}
        self._next = 0  # the first window that is not answered yet
        self._order = 0  # where the next range begins in the stream
        self._arrived = 0  # how many nodes were selected, for windows that count them
        self._progress = Progress(stream)
        if state is not None:
            self._restore(state)

    # --- ranges -------------------------------------------------------------------------------------------

    def largest(self, partition: int) -> Reach | None:
        """The largest value that a partition has shown so far."""
        return self._progress.largest(partition)

    def take(self, partition: int, counted: Counted) -> bool:
        """Take in the next range; False, and nothing is taken, where the result is void."""
        before = self.largest(partition)
        if before is not None and counted.low is not None and counted.low < before - self._stream.slack:
            return False
        for offset in counted.late:
            self._out.late(Place(self._stream.name, counted.file, offset))
        if counted.first is not None:
            self._progress.is_late(partition, counted.first)
        if counted.largest is not None:
            self._progress.passed(partition, counted.largest - self._stream.slack)
        self._next = max(self._next, self._progress.first_window(self._plan.extent))
        for number, pane in pane_rows.read(counted.panes, self._order):
            self._add(number, pane)
        self._order += counted.span
        self._arrived += counted.selected
        return True

    def end_of(self, partition: int) -> None:
        """A partition has ended; a count window that is not full gives nothing."""
        self._progress.passed(partition, math.inf)

    @property
    def _panes_of(self) -> Panes:
        return self._plan.query.panes

    def _add(self, number: int, pane: Pane) -> None:
        panes = self._panes_of
        if not self._plan.query.is_timed:
            number = panes.at(Fraction(self._arrived + number))
        if panes.is_used(number) and number >= self._next * panes.step:
            self._panes[number] = self._panes[number].merge(pane) if number in self._panes else pane

    # --- windows ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Answer the windows whose ends the stream has reached, in their order."""
        reached = self._progress.reached if self._plan.query.is_timed else Fraction(self._arrived)
        if reached is not None:
            self._close(None if reached == math.inf else self._panes_of.ended(Fraction(reached)))

    def _close(self, ended: int | None) -> None:
        """Answer the windows before the number `ended`, or all."""
        panes, numbers = self._panes_of, sorted(self._panes)
        window: Sliding[Pane] = Sliding(Pane.merge)
        k, pushed = self._next, 0
        while True:
            held = bisect_left(numbers, k * panes.step)
            if held == len(numbers):
                break
            k = max(k, panes.first(numbers[held]))
            if ended is not None and k >= ended:
                break
            pushed = max(pushed, held)
            window.drop(k * panes.step)
            while pushed < len(numbers) and numbers[pushed] < k * panes.step + panes.size:
                window.push(numbers[pushed], self._panes[numbers[pushed]])
                pushed += 1
            whole = window.all()
            assert whole is not None, "a window is answered because it holds a pane"
            self._answer(whole)
            k += 1
        self._next = max(k if ended is None else ended, self._next)
        self._panes = {number: self._panes[number] for number in numbers if number >= self._next * panes.step}

    def _answer(self, window: Pane) -> None:
        try:
            self._answers.write(self._piece(window))
        except DynamicError as error:
            place = Place(self._stream.name, window.file, window.offset)
            self._out.bury(DeadLetter(place, error.message, window.raw, error.code, self._name))

    def _piece(self, window: Pane) -> Piece:
        calls = self._plan.seen.calls
        if self._result is not None and not any(each.failure for each in window.partials):
            values = {call.variable: _value(window.partials[call.path], call.function) for call in calls}
            return Piece(self._result(values), begins=False, ends=False)
        known = {call.variable: partial(_value, window.partials[call.path], call.function) for call in calls}
        return self._units.window((), known)

    # --- between epochs -----------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """How many panes it remembers."""
        return len(self._panes)

    def save(self) -> State:
        """What to remember after the epoch."""
        meta = {
            "operator": OPERATOR,
            "next": self._next,
            "order": self._order,
            "arrived": self._arrived,
            "progress": self._progress.save(),
            "answers": self._answers.save(),
        }
        table = pane_rows.written(sorted(self._panes.items()), len(self._plan.query.paths))
        return State(meta, {"panes": table})

    def _restore(self, state: State) -> None:
        meta = state.meta
        if meta["operator"] != OPERATOR:
            raise StateError(
                f"the state of '{self._name}' is one of '{meta['operator']}', and the query needs '{OPERATOR}'"
            )
        if meta["operator"] != OPERATOR:
            raise StateError(
                f"the state of '{self._name}' is one of '{meta['operator']}', and the query needs '{OPERATOR}'"
            )
        self._next, self._order, self._arrived = meta["next"], meta["order"], meta["arrived"]
        self._progress.restore(meta["progress"])
        self._answers.restore(meta["answers"])
        self._panes = dict(pane_rows.read(state.tables["panes"]))


def _value(known: Partial, function: Function) -> Values:
    found = known.value(function)
    return [] if found is None else [found]
