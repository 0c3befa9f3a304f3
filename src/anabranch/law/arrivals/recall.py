"""Queries about the past of streams of items, evaluated at a moment; obviously right, keeps everything (LAWS 5.5).

An evaluation is that of `evaluate.py` over all that has arrived by a moment, and:

* A round of an unqualified `for` over a stream, or of a path over one, is run at the moment of its item's arrival, in a
  join at that of the last of its items.
  Whatever arrives later does not change it: its results stand.
* A round of a `for` over windows is run at the first moment at which its window is closed, or full, and that of joined
  windows at the first at which their tuple has come about; its results stand, too.
* Tuples that are sorted, numbered or grouped are made in such rounds; behind `group by` they are those of many items,
  and what stands there is evaluated at the moment itself.
* All else is evaluated at the moment itself, so a later one may give another answer: a display that is corrected.
* `e#v`, `e?t`, `e#[v]` and `e?[t]` on a path: the results that came with one item are one version of `e`, and an item
  without results is no version.
  Versions are counted per stream, from the newest arrival back; what comes from no stream has version 0 only, and is
  always there.
  They are looked for from the newest back, no further than the qualifier asks.
  Steps behind a qualifier are taken version by version, so the newest stay first.
* `(e)?t` on what is no path is evaluated over what had arrived `t` seconds ago, with that time as now; its variables,
  too, hold no item that arrived later.
  Other qualifiers there choose among the values that it had at the moments so far (`law/history/values.py`).
* A tuple of items that `for`s bring together is a unit like a pair of a join: an error sets aside that tuple, under its
  last item (LAWS 2.4).
  An error on the way to an item of the past concerns that item, if nothing but the item decides it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import groupby
from typing import TypeAlias, TypeVar

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.language.versions import is_closed, is_path, uses_variables
from anabranch.law.arrivals.past import BEFORE, Moments
from anabranch.law.arrivals.qualified import Qualified, Wanted, qualified
from anabranch.law.calls import PythonFunction
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator, ResultRow
from anabranch.law.history.values import WrittenValues, chosen_values, frozen, successive
from anabranch.law.inputs import Arrival, Input
from anabranch.law.paths import Walker, base_of
from anabranch.law.pipelines import StreamUnit
from anabranch.law.rounds.rounds import Round
from anabranch.law.slices import WholeNeeded, below_item, slice_of, slices
from anabranch.values.sequences import Value, Values

T = TypeVar("T")

Found: TypeAlias = list[tuple[Arrival | None, Value]]
"""Values, each with the item that it came with."""


class Recalling(Evaluator):
    """Evaluates one query at the moments of its past."""

    def __init__(
        self,
        query: ast.Query,
        past: Moments,
        inputs: Mapping[str, Input],
        functions: Mapping[str, PythonFunction],
        name: str | None = None,
    ) -> None:
        super().__init__(query, inputs, functions, name)
        self._past = past
        self._moment = BEFORE
        self._now = Fraction(0)
        self._round: ast.Flwor | None = None
        """The expression whose round is run: its tuples are units of their own, unlike those of one inside it."""
        self._items: frozenset[Arrival] = frozenset()
        """The items of the unit at hand."""
        self._values: dict[tuple[ast.Expression, frozenset[tuple[str, str]], int], WrittenValues] = {}
        """The values that closed expressions had at moments, each found once."""

    @contextmanager
    def at(self, moment: int, now: Fraction | None = None) -> Iterator[None]:
        """Look at the inputs as they were at a moment; `now` is its time, or a later one before the next."""
        before = self._moment, self._now, self.inputs
        with self._past.shown(moment) as inputs:
            self._moment, self._now, self.inputs = moment, self._past.now(moment) if now is None else now, inputs
            try:
                yield
            finally:
                self._moment, self._now, self.inputs = before

    # --- rounds -------------------------------------------------------------------------------------------

    def arrivals(self, expression: ast.Expression, env: Env) -> Found:
        """The values of an expression that flows; its qualifiers are evaluated at the moment its item arrives."""
        if qualified(expression) is not None:
            return self._versions(expression, env)
        stream = self._stream(expression)
        if stream is None or not asks(expression):
            return super().arrivals(expression, env)
        mark = len(self.dead)
        found: Found = []
        try:
            for arrival, part in slices(stream):
                with self.at(self._past.number[arrival]):
                    reached = self.guarded(arrival, partial(self.walk, expression, env, part))
                part.look_at_result(reached)
                found.extend((arrival, value) for value in reached)
        except WholeNeeded:
            del self.dead[mark:]
            return self._placed(self.over_whole(expression, env))
        return found

    def rounds_of(self, fors: Sequence[ast.For], env: Env, where: ast.Expression | None) -> Iterator[Round]:
        run = partial(super().rounds_of, fors, env, where)
        if any(each.window is not None for each in fors):
            moments = self._moments_of(run)
            return (replace(each, moment=moment) for each, moment in zip(run(), moments, strict=True))
        return run()

    def _moments_of(self, run: Callable[[], Iterator[Round]]) -> list[int]:
        """The moment of each round of windows: the first at which it is there, behind those that were there before."""
        found: list[int] = []
        end = self._moment
        for moment in range(end + 1):
            with self.at(moment), self._unheard():
                found += [moment] * (sum(1 for _ in run()) - len(found))
        return found

    @contextmanager
    def _unheard(self) -> Iterator[None]:
        """Forget what is set aside meanwhile: that is reported at the moment itself."""
        dead, late = self.dead, self.late
        self.dead, self.late = [], {}
        try:
            yield
        finally:
            self.dead, self.late = dead, late

    def guarded_unit(self, unit: StreamUnit, body: Callable[[], list[T]]) -> list[T]:
        with self.at(self._moment if unit.begun is None else self._moment_of(unit.begun)):
            return super().guarded_unit(unit, body)

    def _unit(self, unit: Sequence[Round], flwor: ast.Flwor, others: Sequence[ast.For | ast.Let]) -> list[ResultRow]:
        arrivals = unit[0].arrivals or [arrival for arrival, _ in unit[0].held if arrival is not None]
        with self.at(self._moment_of(unit[0])), self._within(flwor, arrivals):
            return super()._unit(unit, flwor, others)

    def _seen_window(self, flwor: ast.Flwor) -> None:
        """None: at an earlier moment a window held less, so none of its aggregates is found once for all."""

    def _moment_of(self, begun: Round) -> int:
        """The moment at which a round is run."""
        if begun.moment is not None:
            return begun.moment
        return max((self._past.number[each] for each in begun.arrivals), default=self._moment)

    def _rows(self, flwor: ast.Flwor, clauses: Sequence[ast.For | ast.Let], env: Env) -> Iterator[ResultRow]:
        """The rows of some clauses; each tuple of items, however it has come about, stands or falls by itself."""
        if not clauses or (self._in_unit and flwor is not self._round):
            yield from super()._rows(flwor, clauses, env)
            return
        match clauses[0]:
            case ast.For(name, source, None):
                for arrival, unit in groupby(self._found(source, env), key=lambda each: each[0]):
                    bound = [env.bind(name, [value]) for _, value in unit]
                    rows = partial(self._all_rows, flwor, clauses[1:], bound)
                    if arrival is None or arrival in self._items:
                        yield from rows()
                    else:
                        with self._within(flwor, (arrival,)):
                            found = self._set_aside_alone(arrival, partial(self._inside, rows), len(self._items))
                        yield from found
            case first:
                for each in self._tuples((first,), env):
                    yield from self._rows(flwor, clauses[1:], each)

    def _all_rows(
        self, flwor: ast.Flwor, clauses: Sequence[ast.For | ast.Let], environments: Sequence[Env]
    ) -> list[ResultRow]:
        return [row for env in environments for row in self._rows(flwor, clauses, env)]

    def _found(self, expression: ast.Expression, env: Env) -> Found:
        """The values of an expression, each with the item that it came with."""
        if qualified(expression) is not None:
            return self._versions(expression, env)
        return self._placed(self.value(expression, env))

    @contextmanager
    def _within(self, flwor: ast.Flwor, arrivals: Sequence[Arrival]) -> Iterator[None]:
        """Add these items to those of the unit at hand, for as long as their part of it is run."""
        before = self._round, self._items
        self._round, self._items = flwor, self._items | {*arrivals}
        try:
            yield
        finally:
            self._round, self._items = before

    def _inside(self, rows: Callable[[], list[ResultRow]]) -> list[ResultRow]:
        """Run a part of a unit; an error in it fails the whole unit."""
        before, self._in_unit = self._in_unit, True
        try:
            return rows()
        finally:
            self._in_unit = before

    def _set_aside_alone(self, arrival: Arrival | None, body: Callable[[], list[T]], items: int = 1) -> list[T]:
        """Evaluate `body`, which `items` items are part of; an error sets it aside, also inside of a round."""
        try:
            return self.apart(body, items)
        except DynamicError as error:
            Walker.set_aside(self, arrival, error)
            return []

    # --- qualifiers ---------------------------------------------------------------------------------------

    def path(self, expression: ast.Expression, env: Env) -> Values:
        if qualified(expression) is not None:
            return [value for _, value in self._versions(expression, env)]
        return super().path(expression, env)

    def _versions(self, expression: ast.Expression, env: Env) -> Found:
        """The values of a path that asks for versions, those of the newest first."""
        asked = qualified(expression)
        assert asked is not None
        taken: Found = []
        for arrival, group in groupby(self._asked_for(asked, env), key=lambda each: each[0]):
            values = [value for _, value in group]
            taken += [(arrival, value) for value in self._further(values, asked, env)]
        return taken

    def _asked_for(self, asked: Qualified, env: Env) -> Found:
        """The versions that a qualifier asks for."""
        if not is_path(asked.base):
            if asked.qualifier.kind == "time" and not asked.qualifier.window:
                return self._value_as_of(asked.base, self._now - asked.qualifier.amount.exact, env)
            return self._placed(self._value_versions(asked.base, asked.qualifier, env))
        if qualified(asked.base) is not None:
            return self._chosen(self._versions(asked.base, env), asked.qualifier)
        if self._stream(asked.base) is None:
            return self._chosen(self._placed(self.walk(asked.base, env)), asked.qualifier)
        mark = len(self.dead)
        try:
            if not below_item(asked.base):
                raise WholeNeeded
            return self._looked_back(asked, env)
        except WholeNeeded:
            del self.dead[mark:]
            return self._chosen(self._placed(self.over_whole(asked.base, env)), asked.qualifier)

    def _value_as_of(self, expression: ast.Expression, then: Fraction, env: Env) -> Found:
        """The values of an expression at an earlier time; its variables hold no item that arrived later."""
        moment = self._past.until(self._moment, then)
        if env.context is not None and not self._arrived([env.context], moment):
            return []
        variables = {name: self._arrived(values, moment) for name, values in env.variables.items()}
        with self.at(moment, then):
            return self._placed(self.value(expression, replace(env, variables=variables)))

    def _arrived(self, values: Values, moment: int) -> Values:
        """The values that had come by a moment."""
        return [each for each in values if self._number(self._arrival(each)) <= moment]

    def _value_versions(self, expression: ast.Expression, qualifier: ast.Qualifier, env: Env) -> Values:
        """The versions asked for of an expression that is no path, newest first."""
        closed = is_closed(expression)
        own = replace(self._start, namespaces=env.namespaces) if closed else env
        failure: DynamicError | None = None
        latest = WrittenValues()
        try:
            latest = frozen(self._by_itself(expression, own) if closed else self.value(expression, own))
        except DynamicError as error:
            failure = error
        values: list[tuple[Fraction, WrittenValues]] = []
        for moment in range(self._moment):
            with self.at(moment):
                written = self._written(expression, own, moment, closed=closed)
            values += [] if written is None else [(self._past.now(moment), written)]
        versions = successive((*values, (self._now, latest)))
        return chosen_values(versions, qualifier, self._now, failure)

    def _written(self, expression: ast.Expression, env: Env, moment: int, *, closed: bool) -> WrittenValues | None:
        """The value of an expression at a moment, as it is kept; None where what its variables hold had not come."""
        key = expression, frozenset(env.namespaces.items()), moment
        if closed and key in self._values:
            return self._values[key]
        try:
            if closed:
                written = frozen(self._by_itself(expression, env))
            else:
                names = {part.name for part in parts(expression) if isinstance(part, ast.Variable)}
                variables = {name: self._arrived(values, moment) for name, values in env.variables.items()}
                if any(name in names and env.variables[name] and not held for name, held in variables.items()):
                    return None
                if env.context is not None and not self._arrived([env.context], moment):
                    return None
                written = frozen(self.value(expression, replace(env, variables=variables)))
        except DynamicError:
            written = []
        if closed:
            self._values[key] = written
        return written

    def _by_itself(self, expression: ast.Expression, env: Env) -> Values:
        """The value of a closed expression, which is evaluated as if it were a query."""
        before = self._in_unit, self._round, self._items
        self._in_unit, self._round, self._items = False, None, frozenset()
        try:
            return self.alone(expression, env)
        finally:
            self._in_unit, self._round, self._items = before

    def _looked_back(self, asked: Qualified, env: Env) -> Found:
        """The versions asked for, found from the newest item of a stream back, no further than needed."""
        wanted = Wanted.by(asked.qualifier, self._now)
        of_items = not uses_variables(asked.base)
        if not of_items and (stream := self._stream(asked.base)) is not None:
            wanted = wanted.retained(stream.retain, self._now)
        versions: list[Found] = []
        for arrival, results in self._back(asked.base, env):
            if len(versions) == wanted.end:
                break
            if wanted.reaches(arrival.time):
                values = self._set_aside_alone(arrival, results) if of_items else results()
                versions += [[(arrival, value) for value in values]] if values else []
        self.grant_items(asked.qualifier, len(versions[wanted.first :]))
        return [each for version in versions[wanted.first :] for each in version]

    def _back(self, path: ast.Expression, env: Env) -> Iterator[tuple[Arrival, Callable[[], Values]]]:
        """The items of a stream, newest first, each with a way to find what a path reaches in it."""
        stream = self._stream(path)
        assert stream is not None
        for arrival in reversed(stream.arrivals):
            yield arrival, partial(self.results_in, arrival, path, env)

    def results_in(self, arrival: Arrival, path: ast.Expression, env: Env) -> Values:
        """What a path over a stream reaches in one item; `WholeNeeded` where it looks at the root."""
        stream = self._stream(path)
        assert stream is not None
        part = slice_of(stream.root, arrival.item)
        reached = self.apart(lambda: self.walk(path, env, part))
        part.look_at_result(reached)
        return reached

    def _further(self, values: Values, asked: Qualified, env: Env) -> Values:
        """Take the steps and predicates behind a qualifier."""
        for each in asked.behind:
            match each:
                case ast.Step():
                    values = self._step(values, each, env, None)
                case ast.Predicate():
                    values = self._filter(values, (each,), env, None)
        return values

    def _chosen(self, found: Found, qualifier: ast.Qualifier) -> Found:
        """The versions asked for among values that are there: chain by chain, and the newest first."""
        wanted = Wanted.by(qualifier, self._now)
        chains: dict[str | None, dict[Arrival | None, Values]] = {}
        for arrival, value in found:
            stream = None if arrival is None else arrival.place.stream
            chains.setdefault(stream, {}).setdefault(arrival, []).append(value)
        chosen: Found = []
        for versions in chains.values():
            reached = [each for each in versions if wanted.reaches(None if each is None else each.time)]
            newest_first = sorted(reached, key=self._number, reverse=True)
            for arrival in newest_first[wanted.first : wanted.end]:
                chosen += [(arrival, value) for value in versions[arrival]]
        return chosen

    # --- where things come from ---------------------------------------------------------------------------

    def _placed(self, values: Values) -> Found:
        return [(self._arrival(value), value) for value in values]

    def _number(self, arrival: Arrival | None) -> int:
        return BEFORE if arrival is None else self._past.number[arrival]

    def _stream(self, expression: ast.Expression) -> Input | None:
        """The stream that a path begins with."""
        source = base_of(expression)
        return self.input(source) if isinstance(source, ast.Source) and source.kind == "stream" else None


def asks(node: object) -> bool:
    """Whether a part of a query asks for versions or times."""
    return any(isinstance(part, ast.Qualifier) for part in parts(node))
