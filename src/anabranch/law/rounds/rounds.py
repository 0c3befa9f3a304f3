"""The rounds of a `for` over streams: one per item, per window, or per tuple of a join (LAWS 3)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import merge
from itertools import product
from typing import TypeAlias

from anabranch.algebra.window import Extent
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.law.env import Env
from anabranch.law.inputs import Arrival, Input, Signal
from anabranch.law.paths import Walker
from anabranch.law.rounds.joins import Entry, Moved, Side, judged_by_time, step_join, time_bounds
from anabranch.law.rounds.windows import Progress, count_windows, extent_of, reference_value, time_windows
from anabranch.law.slices import path_in_item
from anabranch.law.spelling import Spelling
from anabranch.stream.cover import passed
from anabranch.stream.tree import Document
from anabranch.values.sequences import Value

_Found: TypeAlias = list[tuple[Arrival | None, Value]]


@dataclass(frozen=True, slots=True)
class Round:
    """One round: the item it is named by where none of its items is at fault, and its variables bound.

    Rounds of one unit stand or fall together: an error sets aside an item, however many nodes are taken from it.
    """

    arrival: Arrival | None
    env: Env
    unit: object
    arrivals: tuple[Arrival, ...] = ()
    """The items whose arrival brings it about, where it is run item by item."""
    held: Sequence[tuple[Arrival | None, Value]] = ()
    """The nodes that its variables are, each with its item."""

    @property
    def items(self) -> int:
        """How many items take part in it (LAWS 2.6)."""
        return len(self.held) or 1


def rounds(fors: Sequence[ast.For], env: Env, evaluation: Walker, where: ast.Expression | None) -> Iterator[Round]:
    """The rounds that these clauses of one expression run in, in order; `where` is its condition."""
    if all(each.window is None for each in fors):
        yield from _items(fors, env, evaluation, where)
    elif len(fors) == 1:
        yield from windows(fors[0], env, evaluation)
    else:
        yield from _joined(fors, env, evaluation)


def _items(fors: Sequence[ast.For], env: Env, evaluation: Walker, where: ast.Expression | None) -> Iterator[Round]:
    """Item by item; with several streams all combinations, as XQuery has it (the interval join)."""
    sides = [evaluation.arrivals(each.source, env) for each in fors]
    if len(fors) > 1:
        sides = _in_time(fors, sides, evaluation, where)
    for found in product(*sides):
        bound = env
        for clause, (_, node) in zip(fors, found, strict=True):
            bound = bound.bind(clause.variable, [node])
        arrivals = tuple(arrival for arrival, _ in found)
        yield Round(found[-1][0], bound, arrivals, tuple(each for each in arrivals if each is not None), found)


def _in_time(
    fors: Sequence[ast.For], sides: list[_Found], evaluation: Walker, where: ast.Expression | None
) -> list[_Found]:
    """What an interval join may use that cannot wait for the end: nothing that is late by its declared time.

    Whoever answers it has forgotten by then what such an item would meet.
    """
    streams = [evaluation.input_of(each.source) for each in fors]
    times = {clause.variable: stream.time for clause, stream in zip(fors, streams, strict=True) if stream}
    if not all(stream and stream.endless for stream in streams) or not time_bounds(fors, where, times):
        return sides
    kept: list[_Found] = []
    for side, stream in zip(sides, streams, strict=True):
        assert stream is not None
        judged = judged_by_time(stream)
        for arrival, reason in judged.items():
            if reason == "late":
                evaluation.note_late(arrival)
            elif isinstance(reason, DynamicError) and any(each is arrival for each, _ in side):
                evaluation.set_aside(arrival, reason)
        kept.append([each for each in side if each[0] is not None and judged[each[0]] is None])
    return kept


# --- windows ----------------------------------------------------------------------------------------------


def windows(clause: ast.For, env: Env, evaluation: Walker, flowing: bool = True) -> Iterator[Round]:
    """One round per window; its variable is the sequence of what the window holds (LAWS 3.4).

    A window on something finite does not flow, though that may be a part of an item; no item is late there.
    """
    assert clause.window is not None
    extent = extent_of(clause.window)
    if isinstance(clause.window, ast.CountWindow):
        found = count_windows(extent, evaluation.arrivals(clause.source, env))
    else:
        candidates = _Candidates(clause, env, evaluation, flowing)
        kept = [each for each in candidates.timed_in_order() if each.selected]
        first = candidates.first_window(extent)
        held = time_windows(extent, [(each.value, (each.arrival, each.node)) for each in kept], first)
        found = (each for each in held if candidates.is_closed(extent.end(each.k)))
    for window in found:
        bound = env.bind(clause.variable, [node for _, node in window.content])
        yield Round(window.content[0][0], bound, window.k, held=window.content)


@dataclass(frozen=True, slots=True)
class _Timed:
    arrival: Arrival | None
    node: Value
    selected: bool
    value: Fraction


class _Candidates:
    """What a windowed `for` looks at: all that its path reaches, and which of it the predicates select.

    What is not selected still shows how far the stream is, and what is late (LAWS 3.2).
    """

    def __init__(self, clause: ast.For, env: Env, evaluation: Walker, flowing: bool = True) -> None:
        self.clause = clause
        self.env = env
        self.evaluation = evaluation
        selected = evaluation.arrivals(clause.source, env)
        given = evaluation.input_of(clause.source)
        if given is None and flowing:
            given = evaluation.input_with([arrival for arrival, _ in selected])
        self.stream = given or Input(Document())
        self._selected = {id(node) for _, node in selected}
        self._nodes: dict[Arrival | None, list[Value]] = defaultdict(list)
        for arrival, node in evaluation.arrivals(without_predicates(clause.source), env) if given else selected:
            self._nodes[arrival if flowing else None].append(node)
        self._order = (*self.stream.elements, None) if given else tuple(self._nodes)
        self.progress = Progress(self.stream.slack, self.stream.partitions)

    def of(self, arrival: Arrival | None) -> Iterator[tuple[Value, bool]]:
        """What is looked at in an item, and whether it is selected."""
        return ((node, id(node) in self._selected) for node in self._nodes.get(arrival, ()))

    def timed(self, arrival: Arrival | None) -> Iterator[_Timed]:
        """The same with reference values, without what is late or has no such value."""
        assert isinstance(self.clause.window, ast.TimeWindow)
        for node, selected in self.of(arrival):
            try:
                value = reference_value(self.clause.window, node, self.env, self.evaluation.value) - self.stream.origin
            except DynamicError as error:
                if selected:
                    self.evaluation.set_aside(arrival, error)
                continue
            if self.progress.is_late(arrival.partition if arrival else 0, value):
                self.evaluation.note_late(arrival)
            else:
                yield _Timed(arrival, node, selected, value)

    def take(self, signal: Signal) -> None:
        """A punctuation shows how far the stream is."""
        assert isinstance(self.clause.window, ast.TimeWindow)
        names = Spelling(self.env.namespaces, self.stream.root.namespaces)
        path = path_in_item(self.clause.source, self.clause.window.reference, names)
        value = passed(signal.punctuation, path, self.stream.time)
        if value is not None:
            self.progress.passed(signal.partition, value - self.stream.origin)

    def timed_in_order(self) -> Iterator[_Timed]:
        """All that is not late, as it comes; nodes that belong to no item come last."""
        for element in self._order:
            if isinstance(element, Signal):
                self.take(element)
            else:
                yield from self.timed(element)

    def is_closed(self, end: Fraction) -> bool:
        """Whether a window that ends there is closed by what was taken, or by the end of the input (LAWS 3.2)."""
        if not self.stream.waiting:
            return True
        for partition in {*range(self.stream.partitions)} - self.stream.waiting:
            self.progress.passed(partition, math.inf)
        return (reached := self.progress.reached) is not None and end <= reached

    def first_window(self, extent: Extent) -> int:
        """The first window that the subscription sees whole (LAWS 3.6)."""
        first = self.progress.first
        return extent.from_start(first) if self.stream.late and first is not None else 0


def without_predicates(source: ast.Expression) -> ast.Expression:
    """The path with its predicates gone."""
    match source:
        case ast.Path(start, steps):
            bare = tuple(
                replace(step, tail=tuple(t for t in step.tail if isinstance(t, ast.Qualifier))) for step in steps
            )
            return replace(source, start=without_predicates(start) if start else None, steps=bare)
        case ast.Filter(base, tail):
            kept = tuple(each for each in tail if isinstance(each, ast.Qualifier))
            return replace(source, base=without_predicates(base), tail=kept) if kept else without_predicates(base)
        case _:
            return source


# --- joins ------------------------------------------------------------------------------------------------


def _joined(fors: Sequence[ast.For], env: Env, evaluation: Walker) -> Iterator[Round]:
    """One round per tuple of the step join (LAWS 3.5)."""
    everything = [_Candidates(each, env, evaluation) for each in fors]
    sides: list[Side[tuple[Arrival, Value]]] = []
    for clause in fors:
        assert clause.window is not None
        sides.append(Side("count" if isinstance(clause.window, ast.CountWindow) else "time", extent_of(clause.window)))
    ended = not any(each.stream.waiting for each in everything)
    for number, found in enumerate(step_join(sides, _events(everything, sides), ended=ended)):
        bound = env
        for clause, (_, node) in zip(fors, found, strict=True):
            bound = bound.bind(clause.variable, [node])
        yield Round(found[0][0], bound, number, held=found)


def _events(
    everything: Sequence[_Candidates], sides: Sequence[Side[tuple[Arrival, Value]]]
) -> Iterator[Entry[tuple[Arrival, Value]] | Moved]:
    """All streams of the join merged by time; what arrives goes to the first `for` of its stream, then the next."""
    streams = list({id(each.stream): each.stream for each in everything}.values())
    marked = ([(element.time, element, stream) for element in stream.elements] for stream in streams)
    for _, element, stream in merge(*marked, key=lambda each: each[0]):
        for number, (candidates, side) in enumerate(zip(everything, sides, strict=True)):
            if candidates.stream is stream:
                yield from _shown(candidates, side, number, element)


def _shown(
    candidates: _Candidates, side: Side[tuple[Arrival, Value]], number: int, element: Arrival | Signal
) -> Iterator[Entry[tuple[Arrival, Value]] | Moved]:
    """What one element means for one side."""
    if side.kind == "count":
        if isinstance(element, Arrival):
            yield from (Entry(number, (element, node), None) for node, selected in candidates.of(element) if selected)
        return
    if isinstance(element, Signal):
        candidates.take(element)
        if (reached := candidates.progress.reached) is not None:
            yield Moved(number, reached)
        return
    for timed in candidates.timed(element):
        side.next = max(side.next, candidates.first_window(side.extent))
        if (reached := candidates.progress.reached) is not None:
            yield Moved(number, reached)
        if timed.selected:
            yield Entry(number, (element, timed.node), timed.value)
