"""The rounds of a `for` over streams: one per item, per window, or per tuple of a join (LAWS 3)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TypeAlias

from anabranch.algebra.window import EARLIEST, Extent
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.equalities import KeyPair, KeyTerm, join_keys
from anabranch.law.arrivals.past import named
from anabranch.law.arrivals.qualified import qualified
from anabranch.law.bounds import WindowBounds, WindowValues
from anabranch.law.env import Env
from anabranch.law.inputs import Arrival, Input, Signal, in_order
from anabranch.law.paths import Walker
from anabranch.law.rounds.joins import Entry, Met, Moved, Side, judged_by_time, keys_meet, step_join, time_bounds
from anabranch.law.rounds.windows import (
    Progress,
    SessionKey,
    WindowContent,
    amount_on,
    count_windows,
    extent_of,
    reference_value,
    session_key,
    sessions,
    time_windows,
)
from anabranch.law.slices import path_in_item
from anabranch.law.spelling import Spelling
from anabranch.stream.cover import passed
from anabranch.stream.path import PLAIN, Path
from anabranch.stream.tree import Document
from anabranch.values.atomic import Atomic
from anabranch.values.sequences import Value, operands

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
    moment: int | None = None
    """The moment at which a window or a tuple of windows is there, where that matters (LAWS 5.5)."""

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
    streams = [stream for each in fors if (stream := evaluation.input_of(each.source)) is not None]
    endless = evaluation.as_they_come or all(each.endless for each in streams)
    if len(fors) > 1 and len(streams) == len(fors) and endless:
        times = {clause.variable: stream.time for clause, stream in zip(fors, streams, strict=True)}
        if time_bounds(fors, where, times):
            sides = _in_time(streams, sides, evaluation)
        elif keys := join_keys(where, list(times)):
            yield from _as_they_come(fors, sides, env, evaluation, keys)
            return
    yield from (_combined(fors, found, env) for found in product(*sides))


def _combined(fors: Sequence[ast.For], found: Sequence[tuple[Arrival | None, Value]], env: Env) -> Round:
    """The round of one node for each `for`."""
    for clause, (_, node) in zip(fors, found, strict=True):
        env = env.bind(clause.variable, [node])
    arrivals = tuple(arrival for arrival, _ in found)
    return Round(found[-1][0], env, arrivals, tuple(each for each in arrivals if each is not None), found)


def _in_time(streams: Sequence[Input], sides: list[_Found], evaluation: Walker) -> list[_Found]:
    """The items of an interval join over endless streams: all but those that are late by their declared time.

    When a late item comes, the items that it would meet have been dropped from the state of the join.
    """
    kept: list[_Found] = []
    for side, stream in zip(sides, streams, strict=True):
        judged = judged_by_time(stream)
        for arrival, reason in judged.items():
            if reason == "late":
                evaluation.note_late(arrival)
            elif isinstance(reason, DynamicError) and any(each is arrival for each, _ in side):
                evaluation.set_aside(arrival, reason)
        kept.append([each for each in side if each[0] is not None and judged[each[0]] is None])
    return kept


def _as_they_come(
    fors: Sequence[ast.For], sides: Sequence[_Found], env: Env, evaluation: Walker, keys: Sequence[KeyPair]
) -> Iterator[Round]:
    """The rounds of a keyed join: a tuple comes with the last of its items (LAWS 3.5)."""
    keyed = [_keyed(clause, side, env, evaluation, keys) for clause, side in zip(fors, sides, strict=True)]
    streams = [evaluation.input_of(each.source) for each in fors]
    numbers = {clause.variable: number for number, clause in enumerate(fors)}
    held: list[list[Met[_KeyedNode]]] = [[] for _ in fors]
    now = Fraction(0)

    def meet(found: Sequence[_KeyedNode]) -> bool:
        return all(
            keys_meet(*(found[numbers[term.variable]].keys[term] for term in (each.left, each.right))) for each in keys
        )

    for element, stream in _merged([each for each in streams if each is not None], evaluation):
        now = max(now, element.time)
        held = [[each for each in side if each.is_held(now)] for side in held]
        for number, side in enumerate(keyed):
            if streams[number] is not stream or not isinstance(element, Arrival):
                continue
            entering = [each for each in side if each.arrival is element]
            contents = [[each.item for each in side] for side in held]
            contents[number] = entering
            for found in product(*contents):
                if meet(found):
                    yield _combined(fors, [(each.arrival, each.node) for each in found], env)
            held[number] += [Met(each, element.time, stream.retain) for each in entering]


@dataclass(frozen=True, slots=True, eq=False)
class _KeyedNode:
    """A node that one `for` of a keyed join selects, with its keys."""

    arrival: Arrival
    node: Value
    keys: Mapping[KeyTerm, Sequence[Atomic]]


def _keyed(clause: ast.For, side: _Found, env: Env, evaluation: Walker, keys: Sequence[KeyPair]) -> list[_KeyedNode]:
    """The nodes of a `for` with their keys; an item whose key raises, or is no single value, is set aside."""
    terms = {term for each in keys for term in (each.left, each.right) if term.variable == clause.variable}
    found: list[_KeyedNode] = []
    bad: set[Arrival] = set()
    for arrival, node in side:
        assert arrival is not None, "a path over a stream gives nodes of its items"
        bound = env.bind(clause.variable, [node])
        try:
            values = {each: operands(evaluation.alone(each.value, bound)) for each in terms}
            found.append(_KeyedNode(arrival, node, values))
        except DynamicError as error:
            if arrival not in bad:
                evaluation.set_aside(arrival, error)
            bad.add(arrival)
    return [each for each in found if each.arrival not in bad]


# --- windows ----------------------------------------------------------------------------------------------


def windows(clause: ast.For, env: Env, evaluation: Walker, flowing: bool = True) -> Iterator[Round]:
    """One round per window; its variable is the sequence of what the window holds (LAWS 3.4).

    A window over something finite, such as the parts of one item, does not flow; no item is late there.
    """
    assert clause.window is not None
    if isinstance(clause.window, ast.CountWindow):
        full = count_windows(extent_of(clause.window, PLAIN), evaluation.arrivals(clause.source, env))
        for window in full:
            bound = env.bind(clause.variable, [node for _, node in window.content])
            yield Round(window.content[0][0], bound, window.k, held=window.content)
        return
    candidates = _Candidates(clause, env, evaluation, flowing)
    for window in _placed_windows(clause.window, candidates):
        if candidates.is_closed(window.end):
            bounds = WindowBounds(window.start, window.end, candidates.scale, window.is_time)
            bound = env.bind(clause.variable, WindowValues((node for _, node in window.content), bounds))
            yield Round(window.content[0][0], bound, window.k, held=window.content)


def _placed_windows(
    window: ast.TimeWindow | ast.SessionWindow, candidates: _Candidates
) -> Iterator[WindowContent[tuple[Arrival | None, Value]]]:
    """The windows over reference values, closed or not, in the order in which they end."""
    kept = [each for each in candidates.timed_in_order() if each.selected]
    if isinstance(window, ast.SessionWindow):
        gap, first = amount_on(window.gap, candidates.scale), candidates.first_seen
        return sessions(gap, [(each.key, each.value, (each.arrival, each.node)) for each in kept], first)
    extent = extent_of(window, candidates.scale)
    held = [(each.value, (each.arrival, each.node)) for each in kept]
    return time_windows(extent, held, candidates.first_window(extent))


@dataclass(frozen=True, slots=True)
class _Timed:
    """A node that a windowed `for` looks at, with its reference value and, for sessions, its key."""

    arrival: Arrival | None
    node: Value
    selected: bool
    value: Fraction
    key: SessionKey


class _Candidates:
    """The nodes that a windowed `for` looks at: all that its path reaches, and which of them its predicates select.

    Nodes that are not selected still show how far the stream is, and which items are late (LAWS 3.2).
    The versions that a qualifier gives are there as a whole: none of them is late.
    """

    def __init__(self, clause: ast.For, env: Env, evaluation: Walker, flowing: bool = True) -> None:
        self.clause = clause
        self.env = env
        self.evaluation = evaluation
        is_loop = flowing and isinstance(clause.source, ast.Flwor)
        before, evaluation.as_they_come = evaluation.as_they_come, is_loop
        selected = evaluation.arrivals(clause.source, env)
        evaluation.as_they_come = before
        known = None if is_loop else evaluation.input_of(clause.source)
        if known is None and flowing and not is_loop:
            known = evaluation.input_with([arrival for arrival, _ in selected])
        given = known if flowing else None
        late = is_loop and any(each.late for each in evaluation.inputs.values())
        self.stream = given or Input(Document(), late=late)
        self._arriving = flowing or qualified(clause.source) is None
        self._selected = {id(node) for _, node in selected}
        self._nodes: dict[Arrival | None, list[Value]] = defaultdict(list)
        for arrival, node in evaluation.arrivals(without_predicates(clause.source), env) if given else selected:
            self._nodes[arrival if flowing else None].append(node)
        self._order = (*self.stream.elements, None) if given else tuple(self._nodes)
        self._path: Path | None = None
        if known and not isinstance(clause.window, ast.CountWindow | None):
            names = Spelling(env.namespaces, known.root.namespaces)
            self._path = path_in_item(clause.source, clause.window.reference, names)
        self.scale = (known or self.stream).scale(self._path)
        self.progress = Progress(self.scale.slack, self.stream.partitions)

    def of(self, arrival: Arrival | None) -> Iterator[tuple[Value, bool]]:
        """The nodes of an item, each with whether it is selected."""
        return ((node, id(node) in self._selected) for node in self._nodes.get(arrival, ()))

    def timed(self, arrival: Arrival | None) -> Iterator[_Timed]:
        """The nodes of an item with their reference values, without those that are late or have no such value."""
        window = self.clause.window
        assert isinstance(window, ast.TimeWindow | ast.SessionWindow)
        for node, selected in self.of(arrival):
            try:
                value = reference_value(window, node, self.env, self.evaluation.value, self.scale)
            except DynamicError as error:
                if selected:
                    self.evaluation.set_aside(arrival, error)
                continue
            if self._arriving and self.progress.is_late(arrival.partition if arrival else 0, value):
                self.evaluation.note_late(arrival)
                continue
            key: SessionKey = None
            if selected and isinstance(window, ast.SessionWindow):
                try:
                    key = session_key(window, node, self.env, self.evaluation.value)
                except DynamicError as error:
                    self.evaluation.set_aside(arrival, error)
                    selected = False
            yield _Timed(arrival, node, selected, value, key)

    def take(self, signal: Signal) -> None:
        """Advance the progress of the stream by a punctuation."""
        value = passed(signal.punctuation, self._path, self.stream.time)
        if value is not None:
            self.progress.passed(signal.partition, value - self.scale.origin)

    def timed_in_order(self) -> Iterator[_Timed]:
        """All nodes that are not late, in order of arrival; nodes that belong to no item come last."""
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

    @property
    def first_seen(self) -> Fraction | None:
        """The first value that a late subscription has seen: windows that begin before it are left out."""
        return self.progress.first if self.stream.late else None

    def first_window(self, extent: Extent) -> int:
        """The first window that the subscription sees whole (LAWS 3.6)."""
        return EARLIEST if self.first_seen is None else extent.from_start(self.first_seen)


def without_predicates(source: ast.Expression) -> ast.Expression:
    """The path without its predicates."""
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
    for clause, each in zip(fors, everything, strict=True):
        assert isinstance(clause.window, ast.CountWindow | ast.TimeWindow), "sessions are refused in joins"
        is_count = isinstance(clause.window, ast.CountWindow)
        sides.append(Side("count" if is_count else "time", extent_of(clause.window, each.scale)))
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
    for element, stream in _merged([each.stream for each in everything], everything[0].evaluation):
        for number, (candidates, side) in enumerate(zip(everything, sides, strict=True)):
            if candidates.stream is stream:
                yield from _shown(candidates, side, number, element)


def _shown(
    candidates: _Candidates, side: Side[tuple[Arrival, Value]], number: int, element: Arrival | Signal
) -> Iterator[Entry[tuple[Arrival, Value]] | Moved]:
    """The events that one element causes for one side."""
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


def _merged(streams: Sequence[Input], evaluation: Walker) -> Iterator[tuple[Arrival | Signal, Input]]:
    """What arrives in some streams, merged by time (LAWS 1.2).

    A tie goes to the stream that the query names first, in whichever of its parts.
    """
    ranked = [evaluation.inputs.get(name) for name in named(evaluation.query)]
    different = list({id(each): each for each in streams}.values())
    different.sort(key=lambda stream: next((rank for rank, each in enumerate(ranked) if each is stream), len(ranked)))
    return in_order(different)
