"""The items that must be remembered so that a query can ask for their past, by its qualifiers:

* `e#v` and `e#[v]`: the last `v + 1` arrivals that have results of `e`;
* `e?[t]`: arrivals of the last `t` seconds;
* `e?t`: arrivals of the last `t` seconds, and the newest before them.

Expressions are evaluated by the law (`law/arrivals/recall.py`), over the remembered items instead of all arrivals:
no forgotten item could be chosen, so the values are the same.
Where a path names variables, its results are not known in advance; then `e?[t]` keeps all arrivals of that time, and
the other qualifiers all that the stream retains, which is all there was unless it says for how long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.language.versions import is_path, outside_values, uses_variables, value_past
from anabranch.law.arrivals.past import named
from anabranch.law.arrivals.qualified import Qualified, Wanted, qualified
from anabranch.law.arrivals.recall import Found, Recalling, asks
from anabranch.law.calls import PythonFunction
from anabranch.law.env import Env
from anabranch.law.evaluate import ResultRow
from anabranch.law.history.values import WrittenValues, chosen_values, frozen, successive
from anabranch.law.inputs import Arrival, Evolved, Input, Signal
from anabranch.law.paths import base_of
from anabranch.law.slices import WholeNeeded, below_item
from anabranch.runtime.past.value_histories import HistoryKey, Remembering, ValueHistory, history_key
from anabranch.stream.elements import DeadLetter
from anabranch.stream.tree import Element
from anabranch.values.sequences import Values


@dataclass(frozen=True, slots=True)
class PastPath:
    """A path over a stream whose past a query asks for, and how far back."""

    path: ast.Expression
    stream: str
    qualifiers: tuple[ast.Qualifier, ...]
    alone: bool
    """Whether the results of the path depend on the item alone, so that they are known when it arrives."""

    @property
    def is_open(self) -> bool:
        """Whether it is not known how far back the items are that it asks for."""
        ends = (Wanted.by(each, Fraction(0)).end for each in self.qualifiers)
        return not self.alone and any(each is not None for each in ends)


def asked_of(query: ast.Query, beside: Collection[str] = ()) -> tuple[PastPath, ...] | None:
    """The paths whose past a query asks for; None where their need of items has no bound.

    The streams `beside` are those of updates.
    """
    # prefixes mean the same in all of the query, unless a constructor declares some
    declares = any(isinstance(each, ast.ElementConstructor) and each.namespaces for each in parts(query))
    asked: dict[ast.Expression, PastPath] = {}
    for part in outside_values(query):
        each = _innermost(part)
        if each is None or _has_values(part):
            continue
        if not is_path(each.base):
            return None
        source = base_of(each.base)
        if not isinstance(source, ast.Source) or source.kind == "doc" or source.name in beside:
            continue  # a part of the current item, or of results already chosen; or no items
        if asks(each.base) or not below_item(each.base):
            return None
        if any(isinstance(inside, ast.Source) and inside.name in beside for inside in parts(each.base)):
            return None
        varies = uses_variables(each.base)
        alone = not declares and not varies
        if not alone and not varies and Wanted.by(each.qualifier, Fraction(0)).end is not None:
            return None
        before = asked[each.base].qualifiers if each.base in asked else ()
        asked[each.base] = PastPath(each.base, source.name, (*before, each.qualifier), alone)
    return tuple(asked.values())


def only_past(query: ast.Query, beside: Collection[str] = ()) -> bool:
    """Whether a query reads streams of items only by qualifiers, so that each element may correct its answer."""
    found = list(outside_values(query))
    asked = filter(None, map(_innermost, found))
    known = [base_of(each.base) for each in asked]
    sources = (each for each in found if isinstance(each, ast.Source) and each.kind == "stream")
    streams = [each for each in sources if each.name not in beside]
    return bool(streams) and all(any(each is source for source in known) for each in streams)


def _has_values(part: object) -> bool:
    """Whether a part asks for the values of what is no path: of items, which do not change, that is the present one."""
    past = value_past(part)
    return past is not None and past.has_versions


def _innermost(part: object) -> Qualified | None:
    """A path at its first qualifier: the others choose among its results."""
    found = qualified(part) if isinstance(part, ast.Path | ast.Filter) else None
    return found and (_innermost(found.base) or found)


ItemResults: TypeAlias = Values | DynamicError
"""What a path gives in one item, or why it fails there."""


@dataclass(slots=True)
class _Memory:
    """The remembered arrivals for one path, oldest first, and its results in them where they are known."""

    asked: PastPath
    retain: Fraction | None
    """For how many seconds the stream retains arrivals, where nothing else bounds how many are needed."""
    arrivals: dict[Arrival, ItemResults] = field(default_factory=dict)

    def forget(self, now: Fraction) -> None:
        """Drop arrivals that can never be asked for again."""
        asked = [Wanted.by(qualifier, now) for qualifier in self.asked.qualifiers]
        if not self.asked.alone:
            asked = [each.retained(self.retain, now) for each in asked]
        needed = {arrival for each in asked for arrival in self._needed(each)}
        if len(needed) < len(self.arrivals):
            self.arrivals = {each: results for each, results in self.arrivals.items() if each in needed}

    def _needed(self, wanted: Wanted) -> Iterator[Arrival]:
        """The arrivals that may be asked for, now or later."""
        versions = 0
        for arrival, results in reversed(self.arrivals.items()):
            if versions == wanted.end:
                return
            if wanted.least is None or arrival.time >= wanted.least:
                yield arrival
                versions += results != [] and not isinstance(results, DynamicError) and wanted.reaches(arrival.time)


class Recollection:
    """The remembered items of streams, in the order of LAWS 1.2, over which expressions are evaluated."""

    def __init__(
        self,
        query: ast.Query,
        asked: tuple[PastPath, ...],
        inputs: Mapping[str, Input],
        functions: Mapping[str, PythonFunction] | None = None,
        name: str | None = None,
    ) -> None:
        """The inputs describe the streams; their arrivals are not read."""
        self._memories = tuple(_Memory(each, inputs[each.stream].retain) for each in asked)
        self._recent = _Recent({each: inputs[each] for each in named(query)}, inputs)
        self._given = query, self._memories, self._recent, functions or {}, name
        self._evaluator = _Round(*self._given)
        self._forget_at = 64  # the size at which to look for droppable items
        self.pinned: Callable[[], Iterable[Arrival]] = tuple
        """Gives the items that something else needs, such as a window that is open."""

    @property
    def held(self) -> int:
        """The number of items that it must remember."""
        self._forget()
        return len(self._recent.number)

    @property
    def dead(self) -> list[DeadLetter]:
        """The dead letters, each once."""
        return list(dict.fromkeys(self._evaluator.dead))

    def take(self, stream: str, element: Arrival | Signal | Evolved) -> None:
        """Add the next element."""
        if len(self._recent.number) > self._forget_at:
            self._forget()
            self._forget_at = 2 * len(self._recent.number) + 64
        self._recent.move(element.time)
        if isinstance(element, Arrival):
            self._recent.put(element)
            for memory in self._memories:
                if memory.asked.stream == stream:
                    self._keep(memory, element)

    def drained(self) -> list[DeadLetter]:
        """The dead letters since the last call, each once."""
        found = self.dead
        self._evaluator.dead.clear()
        return found

    @property
    def now(self) -> Fraction:
        """The time of the latest element."""
        return self._recent.time

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        """The items that were not dropped yet, oldest first."""
        return tuple(self._recent.number)

    def remembered(self) -> Iterator[tuple[Arrival, Fraction, list[int]]]:
        """The items that must be remembered, oldest first.

        Each comes with the time that was now when it came, and the numbers of the paths that need it.
        """
        self._forget()
        for arrival in self._recent.number:
            paths = [number for number, each in enumerate(self._memories) if arrival in each.arrivals]
            yield arrival, self._recent.came[arrival], paths

    def restore(self, now: Fraction, remembered: Iterable[tuple[Arrival, Fraction, Sequence[int]]]) -> None:
        """Restore from `remembered`."""
        for arrival, came, paths in remembered:
            self._recent.move(came)
            self._recent.put(arrival)
            for number in paths:
                self._keep(self._memories[number], arrival)
        self._recent.move(now)

    def look_up(self, histories: Mapping[HistoryKey, ValueHistory]) -> None:
        """Use these values of the past."""
        self._evaluator.histories = histories

    def value(self, expression: ast.Expression, env: Env, item: Arrival | None = None) -> Values:
        """The value of an expression now, with one flowing item."""
        return self._evaluator.now(expression, env, item)

    def rows(
        self, flwor: ast.Flwor, others: Sequence[ast.For | ast.Let], env: Env, nodes: Values
    ) -> tuple[list[ResultRow], Sequence[DynamicError]]:
        """The results of a window or tuple that is there now, and why some of its items are left out of groups."""
        return self._evaluator.rows_now(flwor, others, env, nodes)

    def results(self, path: ast.Expression) -> Mapping[Arrival, ItemResults]:
        """The remembered items that have results of a path, or fail there, oldest first; of a path asked for alone."""
        return next(each.arrivals for each in self._memories if each.asked.path == path)

    def chosen_round(self) -> ChosenRound:
        """A new evaluator over chosen results."""
        return ChosenRound(*self._given)

    def _forget(self) -> None:
        """Drop items that no path can ask for; until then they are there, but never chosen."""
        for memory in self._memories:
            memory.forget(self._recent.time)
        self._recent.keep({each for memory in self._memories for each in memory.arrivals}.union(self.pinned()))

    def _keep(self, memory: _Memory, arrival: Arrival) -> None:
        results: ItemResults = []
        if memory.asked.alone:
            try:
                results = self._evaluator.reached_in(arrival, memory.asked.path)
            except DynamicError as error:
                results = error
        if results != [] or not memory.asked.alone:
            memory.arrivals[arrival] = results


class _Recent:
    """The moments of a query with bounded memory: only the latest one."""

    def __init__(self, streams: Mapping[str, Input], inputs: Mapping[str, Input]) -> None:
        self.number: dict[Arrival, int] = {}
        """The remembered items, and the current one."""
        self.came: dict[Arrival, Fraction] = {}
        """The time that was now when they came; items out of order do not turn it back."""
        self.time = Fraction(0)
        self.latest = 0
        self._items: dict[str, dict[Element, Arrival]] = {name: {} for name in streams}
        known = {name: replace(each, arrivals=(), by_item=self._items[name]) for name, each in streams.items()}
        self.inputs = {**inputs, **known}

    def move(self, time: Fraction) -> None:
        self.time = max(self.time, time)
        self.latest += 1

    def put(self, arrival: Arrival) -> None:
        self.number[arrival], self.came[arrival] = self.latest, self.time
        self._items[arrival.place.stream][arrival.item] = arrival

    def keep(self, held: set[Arrival]) -> None:
        """Drop all other items."""
        for each in [each for each in self.number if each not in held]:
            del self.number[each], self.came[each], self._items[each.place.stream][each.item]

    def now(self, number: int) -> Fraction:
        return self.time

    def until(self, number: int, time: Fraction) -> int:
        raise AssertionError("an expression that is no path needs all that was")

    @contextmanager
    def shown(self, number: int) -> Iterator[Mapping[str, Input]]:
        yield self.inputs


class _Round(Recalling):
    """Evaluates at the present moment, over the remembered items."""

    def __init__(
        self,
        query: ast.Query,
        memories: tuple[_Memory, ...],
        recent: _Recent,
        functions: Mapping[str, PythonFunction],
        name: str | None,
    ) -> None:
        super().__init__(query, recent, recent.inputs, functions, name)
        self._recent = recent
        self._memories = {each.asked.path: each for each in memories}
        self._asked = {each.asked.path: each.asked for each in memories}
        self._item: Arrival | None = None
        self.histories: Mapping[HistoryKey, ValueHistory] = {}
        """The values of the past that are looked up."""

    def now(self, expression: ast.Expression, env: Env, item: Arrival | None) -> Values:
        """The value of an expression, with one flowing item."""
        self._item = item
        with self.at(self._recent.latest):
            return self.top(expression, env)

    def rows_now(
        self, flwor: ast.Flwor, others: Sequence[ast.For | ast.Let], env: Env, nodes: Values
    ) -> tuple[list[ResultRow], Sequence[DynamicError]]:
        """The results of a round of windows with these nodes, and why some of them are left out of groups.

        An error of the round is raised.
        """
        before = self._window, self.members, self.omitted
        try:
            with self.at(self._recent.latest):
                held = [arrival for arrival, _ in self._placed(nodes) if arrival is not None]
                with self._within(flwor, held):
                    rows = self._inside(lambda: self.round_rows(flwor, others, env, len(nodes)))
            return rows, list(self.omitted.values())
        finally:
            self._window, self.members, self.omitted = before

    def reached_in(self, arrival: Arrival, path: ast.Expression) -> Values:
        """The results of a path in an item, where they depend on the item alone."""
        return self.results_in(arrival, path, Env.of(self.query))

    def arrivals(self, expression: ast.Expression, env: Env) -> Found:
        """The flowing item is the current one."""
        item = self._item
        assert item is not None
        return [(item, value) for value in self.guarded(item, partial(self.results_in, item, expression, env))]

    def _back(self, path: ast.Expression, env: Env) -> Iterator[tuple[Arrival, Callable[[], Values]]]:
        memory = self._memories[path]
        for arrival, results in reversed(memory.arrivals.items()):
            find = partial(_known, results) if memory.asked.alone else partial(self.results_in, arrival, path, env)
            yield arrival, find

    def over_whole(self, expression: ast.Expression, env: Env) -> Values:
        raise WholeNeeded

    def _value_versions(self, expression: ast.Expression, qualifier: ast.Qualifier, env: Env) -> Values:
        history = self.histories.get(history_key(expression, env.namespaces))
        if history is not None:
            return history.asked(qualifier, self._now)
        # items do not change: it has had another value only when one of those came that its variables hold
        names = {part.name for part in parts(expression) if isinstance(part, ast.Variable)}
        held = [*([] if env.context is None else [env.context]), *(v for n in names for v in env.variables[n])]
        came = sorted({arrival for value in held if (arrival := self._arrival(value)) is not None}, key=self._number)
        values = [
            (self._recent.came[each], written)
            for each in came[:-1]
            if (written := self._written(expression, env, self._number(each), closed=False)) is not None
        ]
        latest, failure = WrittenValues(), None
        try:
            latest = frozen(self.value(expression, env))
        except DynamicError as error:
            failure = error
        start = self._recent.came[came[-1]] if came else Fraction(0)
        return chosen_values(successive((*values, (start, latest))), qualifier, self._now, failure)


class ChosenRound(Remembering, _Round):
    """Evaluates at the present moment, over some of the remembered results only: those that were chosen last."""

    def moment_time(self) -> Fraction:
        return self._now

    def choose(self, chosen: Mapping[ast.Expression, Mapping[Arrival, ItemResults]]) -> None:
        """Look at these results of paths from now on, and begin without dead letters."""
        memories = ((path, self._asked[path]) for path in chosen)
        self._memories = {path: _Memory(asked, None, dict(chosen[path])) for path, asked in memories}
        self._moment, self._now, self.inputs = self._recent.latest, self._recent.time, self._recent.inputs
        self.dead.clear()
        self.begin()


def _known(results: ItemResults) -> Values:
    if isinstance(results, DynamicError):
        raise results
    return results
