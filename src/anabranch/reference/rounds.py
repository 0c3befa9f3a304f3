"""The rounds of a `for` over streams: one per item, per window, or per tuple of a join (LAWS 3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import merge
from typing import Protocol

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.reference.env import Env
from anabranch.reference.inputs import Input
from anabranch.reference.joins import Arrival, Side, step_join
from anabranch.reference.sequences import Value, Values, atomize
from anabranch.reference.values import Untyped, exact_number, spell
from anabranch.reference.windows import Lateness, count_windows, extent_of, time_windows
from anabranch.stream.elements import Place
from anabranch.stream.tree import Element


@dataclass(frozen=True, slots=True)
class Round:
    """One round: the place it is named by, and the environment with its variables bound.

    Rounds of one unit stand or fall together: an error sets aside an item, however many nodes are taken from it.
    """

    place: Place
    env: Env
    unit: object


class Evaluation(Protocol):
    """What rounds ask of the evaluator."""

    def value(self, expression: ast.Expression, env: Env) -> Values: ...

    def arrivals(self, expression: ast.Expression, env: Env) -> list[tuple[Place, Value]]: ...

    def input_of(self, expression: ast.Expression) -> Input | None: ...

    def set_aside(self, place: Place, error: DynamicError) -> None: ...

    def note_late(self, place: Place) -> None: ...


def rounds(fors: Sequence[ast.For], env: Env, evaluation: Evaluation) -> Iterator[Round]:
    """The rounds that these clauses of one expression run in, in order."""
    if all(each.window is None for each in fors):
        yield from _items(fors, env, evaluation, ())
    elif len(fors) == 1:
        yield from _windows(fors[0], env, evaluation)
    else:
        yield from _joined(fors, env, evaluation)


def _items(fors: Sequence[ast.For], env: Env, evaluation: Evaluation, places: tuple[Place, ...]) -> Iterator[Round]:
    """Item by item; with several streams all combinations, as XQuery has it (the interval join)."""
    if not fors:
        yield Round(places[-1], env, places)
        return
    for where, value in evaluation.arrivals(fors[0].source, env):
        yield from _items(fors[1:], env.bind(fors[0].variable, [value]), evaluation, (*places, where))


# --- windows ----------------------------------------------------------------------------------------------


def _windows(clause: ast.For, env: Env, evaluation: Evaluation) -> Iterator[Round]:
    """One round per window; its variable is the sequence of what the window holds (LAWS 3.4)."""
    assert clause.window is not None
    extent = extent_of(clause.window)
    if isinstance(clause.window, ast.CountWindow):
        found = count_windows(extent, evaluation.arrivals(clause.source, env))
    else:
        candidates = _Candidates(clause, env, evaluation)
        timed = (candidates.timed(place, value) for place, value in candidates.all)
        kept = [each for each in timed if each is not None and each.selected]
        found = time_windows(extent, [(each.value, (each.place, each.node)) for each in kept])
    for window in found:
        yield Round(window.content[0][0], env.bind(clause.variable, [node for _, node in window.content]), window.k)


@dataclass(frozen=True, slots=True)
class _Timed:
    place: Place
    node: Value
    selected: bool
    value: Fraction


class _Candidates:
    """What a windowed `for` looks at: all that its path reaches, and which of it the predicates select.

    What is not selected still shows how far the stream is, and what is late (LAWS 3.2).
    """

    def __init__(self, clause: ast.For, env: Env, evaluation: Evaluation) -> None:
        self.clause = clause
        self.env = env
        self.evaluation = evaluation
        self.stream = evaluation.input_of(clause.source)
        selected = evaluation.arrivals(clause.source, env)
        self._selected = {id(node) for _, node in selected}
        self.all = evaluation.arrivals(without_predicates(clause.source), env) if self.stream else selected
        self._lateness = Lateness(self.stream.slack if self.stream else Fraction(0))

    def selects(self, node: Value) -> bool:
        return id(node) in self._selected

    def timed(self, place: Place, node: Value) -> _Timed | None:
        """With its reference value; None for what is late or has no such value."""
        assert isinstance(self.clause.window, ast.TimeWindow)
        try:
            value = reference_value(self.clause.window, node, self.env, self.evaluation)
        except DynamicError as error:
            if self.selects(node):
                self.evaluation.set_aside(place, error)
            return None
        if self._lateness.is_late(place.partition, value):
            self.evaluation.note_late(place)
            return None
        origin = self.stream.origin if self.stream else 0
        return _Timed(place, node, self.selects(node), value - origin)


def without_predicates(source: ast.Expression) -> ast.Expression:
    """The path with its predicates gone."""
    match source:
        case ast.Path(start, steps):
            bare = tuple(
                replace(step, tail=tuple(t for t in step.tail if not isinstance(t, ast.Predicate))) for step in steps
            )
            return replace(source, start=without_predicates(start) if start else None, steps=bare)
        case ast.Filter(base, tail):
            kept = tuple(each for each in tail if not isinstance(each, ast.Predicate))
            return replace(source, base=without_predicates(base), tail=kept) if kept else without_predicates(base)
        case _:
            return source


def reference_value(window: ast.TimeWindow, node: Value, env: Env, evaluation: Evaluation) -> Fraction:
    """The value that places a node in time windows: one number, below the node."""
    path = window.reference
    steps = path.steps
    if isinstance(path.start, ast.Root):
        above = _names_from_root(node)
        if [step.test for step in steps[: len(above)]] != above:
            raise DynamicError("the window's reference is not below the item", code="XPTY0004")
        steps = steps[len(above) :]
    values = atomize(evaluation.value(replace(path, start=None, steps=steps), env.at(node)) if steps else [node])
    if len(values) != 1:
        raise DynamicError(f"the window's reference has {len(values)} values in this item, not one", code="XPTY0004")
    number = exact_number(Untyped(spell(values[0])))
    if number is None or not number.is_finite():
        raise DynamicError(f"the window's reference '{spell(values[0])[:40]}' is no number", code="FORG0001")
    return Fraction(number)


def _names_from_root(node: Value) -> list[ast.NameTest]:
    names: list[ast.NameTest] = []
    at = node
    while isinstance(at, Element):
        names.append(ast.NameTest(at.name.local, at.name.prefix or None))
        at = at.parent  # type: ignore[assignment]  # a document ends the climb
    return names[::-1]


# --- joins ------------------------------------------------------------------------------------------------


def _joined(fors: Sequence[ast.For], env: Env, evaluation: Evaluation) -> Iterator[Round]:
    """One round per tuple of the step join (LAWS 3.5)."""
    everything = [_Candidates(each, env, evaluation) for each in fors]
    sides: list[Side[tuple[Place, Value]]] = []
    for clause, candidates in zip(fors, everything, strict=True):
        assert clause.window is not None
        assert candidates.stream is not None
        kind = "count" if isinstance(clause.window, ast.CountWindow) else "time"
        sides.append(Side(kind, extent_of(clause.window), candidates.stream.slack))  # type: ignore[arg-type]
    for number, pair in enumerate(step_join(sides, _arrivals(everything))):
        bound = env
        for clause, (_, node) in zip(fors, pair, strict=True):
            bound = bound.bind(clause.variable, [node])
        yield Round(pair[0][0], bound, number)


def _arrivals(everything: Sequence[_Candidates]) -> Iterator[Arrival[tuple[Place, Value]]]:
    """All streams of the join merged by time; an item goes to the first `for` of its stream, then the next."""
    streams = list({id(each.stream): each.stream for each in everything if each.stream}.values())
    by_place: list[dict[Place, list[Value]]] = []
    for candidates in everything:
        nodes: dict[Place, list[Value]] = defaultdict(list)
        for place, node in candidates.all:
            nodes[place].append(node)
        by_place.append(nodes)
    for arrival in merge(*(stream.arrivals for stream in streams), key=lambda each: each.time):
        for side, candidates in enumerate(everything):
            for node in by_place[side].get(arrival.place, ()):
                if isinstance(candidates.clause.window, ast.CountWindow):
                    yield Arrival(side, (arrival.place, node), candidates.selects(node), None)
                elif timed := candidates.timed(arrival.place, node):
                    yield Arrival(side, (arrival.place, node), timed.selected, timed.value)
