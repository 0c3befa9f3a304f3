"""FLWR expressions whose clauses act on all tuples before them: `group by`, `count`, `order by`, `at` (LAWS 3.8, 3.10).

A tuple is what its variables are bound to; clauses are run stage by stage, each up to a clause that needs all tuples.
Over a stream the tuples of an item stand or fall together, up to a `group by`: behind it they are of many items, and an
error is one of the whole (LAWS 2.4).
In a window an error is one of the window, with one exception: an item whose key raises is set aside alone, and the
groups are those of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TypeAlias, TypeVar

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.checks.unbounded import flows
from anabranch.language.rewrite import bound_by
from anabranch.law.env import Env
from anabranch.law.paths import Walker
from anabranch.law.rounds.rounds import Round, rounds, windows
from anabranch.law.steps import Exhausted
from anabranch.values.atomic import Atomic, OrderRank, group_identity, order_rank
from anabranch.values.sequences import NODES, Value, Values, key_of, truth

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class StreamUnit:
    """The rounds of one item or window of a stream that is read as a whole, and how to set it aside."""

    rounds: Sequence[Env]
    items: int
    bury: Callable[[DynamicError], None]
    begun: Round | None = None
    """The first of its rounds, where it has a moment of its own (LAWS 5.5)."""


@dataclass(frozen=True, slots=True)
class _Tuple:
    env: Env
    unit: StreamUnit | None
    """None where the tuple does not come from one item or window alone."""


_Keys: TypeAlias = tuple[Atomic | None, ...]


class Pipelines(Walker):
    """Evaluates pipelines; `Evaluator` adds the other expressions."""

    _in_unit: bool
    """Whether a round of a stream is being run, so that an error fails the round."""
    members: frozenset[int] = frozenset()
    """The nodes that the window at hand holds, by identity."""
    omitted: dict[tuple[int, str], DynamicError]
    """Why some of them have been left out of groups, by identity and message: each is reported once."""

    def pipeline(self, pipeline: ast.Pipeline, env: Env) -> Values:
        """The value of a pipeline."""
        return self.piped(pipeline, [env])

    def piped(self, pipeline: ast.Pipeline, tuples: Sequence[Env]) -> Values:
        """The value of a pipeline that begins with these tuples."""
        run = _Run(self, tuples)
        start = 0
        for place, clause in enumerate(pipeline.clauses):
            if not isinstance(clause, ast.GroupBy | ast.OrderBy | ast.Count):
                continue
            stage = pipeline.clauses[start:place]
            match clause:
                case ast.GroupBy(keys):
                    run.group(stage, keys)
                case ast.OrderBy(keys):
                    run.order(stage, keys)
                case ast.Count(variable):
                    run.count(stage, variable)
            start = place + 1
        return [value for _, values in run.stage(pipeline.clauses[start:], run.result(pipeline)) for value in values]

    def grouped(self, clauses: Sequence[ast.Clause], keys: Sequence[ast.GroupKey], env: Env) -> list[Env]:
        """The groups that a `group by` behind some clauses makes."""
        run = _Run(self, [env])
        run.group(clauses, keys)
        return run.environments

    def ranked(self, clauses: Sequence[ast.Clause], env: Env) -> list[tuple[tuple[OrderRank, ...], Env]]:
        """The tuples that clauses behind a `group by` make of one, with their ranks, those of the last order first."""
        found: list[tuple[tuple[OrderRank, ...], Env]] = [((), env)]
        start = 0
        for place, clause in enumerate((*clauses, None)):
            if clause is None or isinstance(clause, ast.OrderBy):
                found = [(ranks, each) for ranks, at in found for each in self.bindings(clauses[start:place], at)]
                start = place + 1
            if isinstance(clause, ast.OrderBy):
                found = [((*self.ranks(clause.keys, each), *ranks), each) for ranks, each in found]
        return found

    def ranks(self, keys: Sequence[ast.OrderKey], env: Env) -> tuple[OrderRank, ...]:
        """Where a tuple stands by the keys of an `order by`."""
        values = (self.value(key.key, env) for key in keys)
        return tuple(order_rank(key_of(each, "'order by'")) for each in values)

    def units(self, clause: ast.For, env: Env) -> Iterator[StreamUnit]:
        """The items or windows that a `for` over a stream runs over."""
        for _, group in groupby(self.rounds_of([clause], env, None), key=lambda each: each.unit):
            unit = list(group)
            yield StreamUnit([each.env for each in unit], unit[0].items, partial(self._bury_unit, unit), unit[0])

    def rounds_of(self, fors: Sequence[ast.For], env: Env, where: ast.Expression | None) -> Iterator[Round]:
        """The rounds that `for`s over streams run in."""
        return rounds(fors, env, self, where)

    def _bury_unit(self, unit: Sequence[Round], error: DynamicError) -> None:
        self.set_aside(unit[0].arrival, error, [node for each in unit for node in each.held])

    def reads(self, source: ast.Expression, env: Env) -> bool:
        """Whether a `for` runs over a stream."""
        return flows(source, env.flowing, {each.name: each for each in self.query.functions})

    def guarded_unit(self, unit: StreamUnit, body: Callable[[], list[T]]) -> list[T]:
        """Run a part of a unit; where it fails, the error is that of the unit."""
        before, self._in_unit = self._in_unit, True
        try:
            return self.apart(body, unit.items)
        finally:
            self._in_unit = before

    def bindings(self, clauses: Sequence[ast.Clause], env: Env) -> Iterator[Env]:
        """The tuples that some clauses make of one, where none of them needs all tuples."""
        if not clauses:
            yield env
            return
        first, rest = clauses[0], clauses[1:]
        match first:
            case ast.Let(name, value):
                yield from self.bindings(rest, env.bind(name, self.value(value, env), self.reads(value, env)))
            case ast.Where(condition):
                if truth(self.value(condition, env)):
                    yield from self.bindings(rest, env)
            case ast.For(name, source, None):
                for each in self.value(source, env):
                    yield from self._loop_round(each, rest, env.bind(name, [each]))
            case ast.PositionalFor(name, position, source, allows_empty):
                values = self.value(source, env)
                for number, each in enumerate(values, 1):
                    bound = env.bind(name, [each])
                    yield from self._loop_round(each, rest, bound.bind(position, [number]) if position else bound)
                if allows_empty and not values:
                    bound = env.bind(name, [])
                    yield from self.bindings(rest, bound.bind(position, [0]) if position else bound)
            case ast.For():  # a window on something finite
                for window in windows(first, env, self, flowing=False):
                    self.spend(window.items)
                    yield from self.bindings(rest, window.env)
            case ast.GroupBy() | ast.OrderBy() | ast.Count():
                raise AssertionError("a stage ends there")

    def _loop_round(self, value: Value, rest: Sequence[ast.Clause], env: Env) -> Iterator[Env]:
        self.spend(1)
        try:
            yield from self.bindings(rest, env)
        except DynamicError as error:
            raise error.given([value]) from None

    def member_of(self, values: Values) -> Value | None:
        """The node of the window at hand that these values belong to."""
        for value in values:
            at = value if isinstance(value, NODES) else None
            while at is not None:
                if id(at) in self.members:
                    return at
                at = at.parent
        return None

    def omit(self, member: Value, error: DynamicError) -> None:
        """Leave a node of the window out of a group."""
        self.omitted.setdefault((id(member), error.message), error.given([member]))


class _Run:
    """One evaluation of a pipeline: the tuples behind the clauses that have been run."""

    def __init__(self, evaluator: Pipelines, tuples: Sequence[Env]) -> None:
        self._evaluator = evaluator
        self._tuples = [_Tuple(env, None) for env in tuples]
        self._names: list[str] = []
        """The variables that were bound so far."""
        self._loops: list[str] = []
        """The variables of `for` clauses that were bound so far."""

    @property
    def environments(self) -> list[Env]:
        """The tuples behind the clauses that have been run."""
        return [each.env for each in self._tuples]

    # --- stages -------------------------------------------------------------------------------------------

    def stage(self, clauses: Sequence[ast.Clause], finish: Callable[[Env], T]) -> list[tuple[_Tuple, T]]:
        """Run clauses on all tuples, and `finish` on each that comes out; units that fail are left out."""
        self._names += [name for each in clauses for name in bound_by(each)]
        self._loops += [each.variable for each in clauses if isinstance(each, ast.For | ast.PositionalFor)]
        place = self._stream(clauses)
        if place is None:
            return self._all(self._tuples, clauses, finish)
        evaluator, loop = self._evaluator, clauses[place]
        assert isinstance(loop, ast.For)
        found: list[tuple[_Tuple, T]] = []
        items = 0
        for outer, _ in self._all(self._tuples, clauses[:place], lambda env: None):
            for unit in evaluator.units(loop, outer.env):
                items += unit.items
                found += self._all([_Tuple(env, unit) for env in unit.rounds], clauses[place + 1 :], finish)
        evaluator.grant_items(loop.source, items)
        return found

    def _stream(self, clauses: Sequence[ast.Clause]) -> int | None:
        """The place of the `for` over a stream, of which there is at most one."""
        env = self._tuples[0].env if self._tuples else Env()
        for place, each in enumerate(clauses):
            match each:
                case ast.For(_, source) if self._evaluator.reads(source, env):
                    return place
                case ast.Let(name, value):
                    env = env.bind(name, [], self._evaluator.reads(value, env))
        return None

    def _all(
        self, tuples: Sequence[_Tuple], clauses: Sequence[ast.Clause], finish: Callable[[Env], T]
    ) -> list[tuple[_Tuple, T]]:
        found: list[tuple[_Tuple, T]] = []
        failed: set[StreamUnit] = set()
        for unit, those in groupby(tuples, key=lambda each: each.unit):
            run = partial(self._each, list(those), clauses, finish)
            if unit is None:
                found += run()
            elif unit not in failed:
                try:
                    found += self._evaluator.guarded_unit(unit, run)
                except DynamicError as error:
                    failed.add(unit)
                    unit.bury(error)
        return [each for each in found if each[0].unit not in failed]

    def _each(
        self, tuples: Sequence[_Tuple], clauses: Sequence[ast.Clause], finish: Callable[[Env], T]
    ) -> list[tuple[_Tuple, T]]:
        found: list[tuple[_Tuple, T]] = []
        for each in tuples:
            for env in self._evaluator.bindings(clauses, each.env):
                try:
                    found.append((_Tuple(env, each.unit), finish(env)))
                except DynamicError as error:
                    for name in reversed(self._loops):
                        error.given(env.variables[name])
                    raise
        return found

    # --- clauses that need all tuples ---------------------------------------------------------------------

    def count(self, clauses: Sequence[ast.Clause], variable: str) -> None:
        """Number the tuples."""
        found = self.stage(clauses, lambda env: None)
        self._tuples = [
            _Tuple(each.env.bind(variable, [number]), each.unit) for number, (each, _) in enumerate(found, 1)
        ]
        self._names.append(variable)

    def order(self, clauses: Sequence[ast.Clause], keys: Sequence[ast.OrderKey]) -> None:
        """Sort the tuples."""
        found = self.stage(clauses, partial(self._evaluator.ranks, keys))
        for index in reversed(range(len(keys))):
            found.sort(key=lambda each: each[1][index], reverse=keys[index].descending)
        self._tuples = [each for each, _ in found]

    def group(self, clauses: Sequence[ast.Clause], keys: Sequence[ast.GroupKey]) -> None:
        """Make one tuple of all that have the same keys; other variables are the sequences of their values."""
        groups: dict[tuple[object, ...], list[tuple[_Tuple, _Keys]]] = {}
        omitted: set[int] = set()
        found = self.stage(clauses, lambda env: self._keys(keys, env, omitted))
        for each, given in found:
            if given is not None and not (omitted and id(self._member(each.env)) in omitted):
                groups.setdefault(tuple(map(group_identity, given)), []).append((each, given))
        own = {key.variable for key in keys}
        others = [name for name in dict.fromkeys(self._names) if name not in own]
        self._tuples = []
        for those in groups.values():
            (first, values), *_ = those
            env = first.env
            for name in others:
                env = env.bind(name, [value for each, _ in those for value in each.env.variables[name]])
            for each_key, value in zip(keys, values, strict=True):
                env = env.bind(each_key.variable, [] if value is None else [value])
            self._tuples.append(_Tuple(env, None))
            self._evaluator.spend(len(those))
        self._names += own

    def _keys(self, keys: Sequence[ast.GroupKey], env: Env, omitted: set[int]) -> _Keys | None:
        """The keys of a tuple; None where its item is left out of the groups."""
        try:
            found: list[Atomic | None] = []
            for key in keys:
                values = env.variables[key.variable] if key.value is None else self._evaluator.value(key.value, env)
                try:
                    found.append(key_of(values, "a key of 'group by'"))
                except DynamicError as error:
                    raise error.given(values) from None
                env = env.bind(key.variable, [] if found[-1] is None else [found[-1]])
            return tuple(found)
        except DynamicError as error:
            member = None if isinstance(error, Exhausted) else self._member(env)
            if member is None:
                raise
            omitted.add(id(member))
            self._evaluator.omit(member, error)
            return None

    def _member(self, env: Env) -> Value | None:
        """The node of the window at hand that a tuple is of: that of its first loop."""
        loops = (env.variables[name] for name in self._loops)
        return next((found for values in loops if (found := self._evaluator.member_of(values)) is not None), None)

    def result(self, pipeline: ast.Pipeline) -> Callable[[Env], Values]:
        """A function that gives the result of one tuple behind all clauses."""

        def values(env: Env) -> Values:
            found = self._evaluator.value(pipeline.result, env)
            if len(found) > 1:
                self._evaluator.spend(len(found))
            return found

        return values
