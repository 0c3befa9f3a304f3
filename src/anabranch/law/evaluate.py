"""The law, executable: what a query answers over finite inputs.

This evaluator is obviously right and never fast; everything faster is tested against it.
A query is evaluated once, whole, as XQuery would over documents, with three additions:

* a `for` over a stream runs in rounds, one per item, window or pair (`law/rounds/rounds.py`), and an error in a round
  sets that round aside and nothing else (LAWS 2.4);
* a path over a stream is evaluated item by item, for the same reason; where the path looks at the stream's root
  itself, it is evaluated over the whole instead;
* comparisons, sums and orders are those of LAWS 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, product
from typing import TypeAlias

from anabranch.aggregates import AGGREGATES, BY_PANES
from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.checks.unbounded import flowing_fors, flows, set_streams
from anabranch.language.rewrite import parts
from anabranch.language.signatures import SIGNATURES
from anabranch.language.windows.aggregates import aggregated
from anabranch.law.calls import PythonFunction, call_python
from anabranch.law.construct import construct
from anabranch.law.env import Env
from anabranch.law.functions import BUILTINS, library_steps
from anabranch.law.inputs import Arrival, Input
from anabranch.law.library.special import SPECIAL, SpecialCalls
from anabranch.law.paths import base_of
from anabranch.law.rounds.rounds import Round, windows
from anabranch.law.steps import Counting, Exhausted, text_steps
from anabranch.law.time_functions import castable
from anabranch.values.arithmetic import calculate, negate
from anabranch.values.atomic import Atomic, OrderRank, as_number, compare, literal, order_rank
from anabranch.values.operators import ArithmeticOperator, ComparisonOperator
from anabranch.values.sequences import NODES, Value, Values, at_most_one, atom, key_of, non_null, operands, truth

_NUMERIC = frozenset(name for name, each in AGGREGATES.items() if each.takes_numbers)
"""The aggregates that take numbers, and fail for what is none."""

Known: TypeAlias = Mapping[str, Callable[[], Values]]
"""Variables whose values are found elsewhere; asking for one may raise `DynamicError`."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One result of a FLWR expression, with its ranks in the order asked for."""

    ranks: tuple[OrderRank, ...]
    values: Values


@dataclass(frozen=True, slots=True)
class _Window:
    """A window that is seen through aggregates only: the names it goes by, and the aggregates found so far."""

    names: frozenset[str]
    found: dict[int, Values | DynamicError] = field(default_factory=dict)
    """The aggregates, or their errors, by the identity of the call."""

    def aggregates(self, call: ast.Call) -> bool:
        """Whether a call is an aggregate over the window."""
        if call.name.removeprefix("fn:") not in BY_PANES:
            return False
        argument = call.arguments[0]
        if isinstance(argument, ast.Flwor) and isinstance(argument.clauses[0], ast.For):
            argument = argument.clauses[0].source  # a loop over the window's nodes
        base = base_of(argument)
        return isinstance(base, ast.Variable) and base.name in self.names


class Evaluator(SpecialCalls):
    """Evaluates the expressions of one query; holds its inputs and collects its dead letters."""

    def __init__(
        self,
        query: ast.Query,
        inputs: Mapping[str, Input],
        functions: Mapping[str, PythonFunction],
        name: str | None = None,
    ) -> None:
        super().__init__(query, inputs, name)
        self.declared = {function.name: function for function in query.functions}
        self.registered = functions
        self._start = Env.of(query)
        self._calls: dict[tuple[int, frozenset[str]], tuple[ast.Call, tuple[bool, ...]]] = {}
        self.known: Known = {}
        self._in_unit = False
        self.omitted = {}
        self._window: _Window | None = None
        self._windows: dict[int, tuple[ast.Flwor, frozenset[str] | None]] = {}
        """By the identity of an expression: the names of its window, where it is seen through aggregates only."""
        self._grouping: dict[int, tuple[ast.Flwor, bool]] = {}
        """By the identity of an expression: whether something may be grouped in it."""

    def top(self, expression: ast.Expression, env: Env) -> Values:
        """The value of what stands by itself at the top of a query; of several parts there, each is evaluated apart."""
        match expression:
            case ast.Sequence(items):
                return [each for item in items for each in self.top(item, env)]
            case ast.ElementConstructor():
                return [construct(expression, env.namespaces, lambda e, ns: self.top(e, replace(env, namespaces=ns)))]
            case _:
                return self.alone(expression, env)

    def value(self, expression: ast.Expression, env: Env) -> Values:
        """The value of an expression."""
        match expression:
            case ast.String(text):
                return [text]
            case ast.Number(text):
                return [literal(text)]
            case ast.Variable(name):
                found = self.known.get(name) or env.found.get(name)
                return env.variables[name] if found is None else found()
            case ast.ContextItem():
                return [self.context(env)]
            case ast.Sequence(items):
                values = [each for item in items for each in self.value(item, env)]
                self.spend(len(values))
                return values
            case ast.Call():
                return self.path(expression, env) if set_streams(expression) else self._call(expression, env)
            case ast.InlineFunction():
                return [self.function_item(expression, env)]
            case ast.Source() | ast.Path() | ast.Filter() | ast.Root():
                return self.path(expression, env)
            case ast.Arithmetic(first, rest):
                return self._arithmetic(first, rest, env)
            case ast.Negation(operand):
                return self._negated(self.value(operand, env))
            case ast.Cast(kind, operand, name, optional):
                return self._cast(name, self.value(operand, env), tests=kind == "castable", optional=optional)
            case ast.Comparison(operator, left, right):
                return [self._compared(operator, self.value(left, env), self.value(right, env))]
            case ast.And(operands):
                return [not any_of((partial(self._fails, each, env) for each in operands), self)]
            case ast.Or(operands):
                return [any_of((partial(self.truth, each, env) for each in operands), self)]
            case ast.If(condition, then, otherwise):
                return self.value(then if self.truth(condition, env) else otherwise, env)
            case ast.Quantified(kind, bindings, condition):
                return [self._quantified(kind == "some", bindings, condition, env)]
            case ast.Flwor():
                return self._flwor(expression, env)
            case ast.Pipeline():
                return self.pipeline(expression, env)
            case ast.ElementConstructor():
                return [construct(expression, env.namespaces, partial(self._enclosed, env), self.spend)]

    def _enclosed(self, env: Env, expression: ast.Expression, namespaces: Mapping[str, str]) -> Values:
        return self.value(expression, replace(env, namespaces=namespaces))

    def truth(self, expression: ast.Expression, env: Env) -> bool:
        return truth(self.value(expression, env))

    def _fails(self, expression: ast.Expression, env: Env) -> bool:
        return not self.truth(expression, env)

    # --- operators and functions --------------------------------------------------------------------------

    def _negated(self, values: Values) -> Values:
        try:
            single = at_most_one(values, "'-'")
            return [] if single is None else [negate(single)]
        except DynamicError as error:
            raise error.given(refused(values)) from None

    def _cast(self, name: str, values: Values, *, tests: bool, optional: bool) -> Values:
        """A value cast to a type, or whether it can be; nothing is only where the type is `optional`."""
        values = non_null(values)
        if tests:
            found: Values = [castable(name, values) if values else optional]
        elif not values and not optional:
            raise DynamicError(f"'cast as {name}' takes one value, not 0", code="XPTY0004")
        else:
            found = self._applied(name, [values])
        self.spend(text_steps([values], found))
        return found

    def _compared(self, operator: ComparisonOperator, left: Values, right: Values) -> bool:
        try:
            lefts, rights = operands(left), operands(right)
            if len(lefts) > 1 and len(rights) > 1:
                self.spend(len(lefts) * len(rights))
            return any_of(partial(compare, operator, *pair) for pair in product(lefts, rights))
        except DynamicError as error:
            raise error.given(refused((*left, *right))) from None

    def _arithmetic(
        self, first: ast.Expression, rest: Sequence[tuple[ArithmeticOperator, ast.Expression]], env: Env
    ) -> Values:
        taken, result = self._single(self.value(first, env), "arithmetic")
        for operator, operand in rest:
            values, right = self._single(self.value(operand, env), f"'{operator}'")
            taken += values
            try:
                result = None if result is None or right is None else calculate(operator, result, right)
            except DynamicError as error:
                raise error.given(refused(taken)) from None
        return [] if result is None else [result]

    def _single(
        self, values: Values, what: str, one: Callable[[Values, str], Atomic | None] = at_most_one
    ) -> tuple[Values, Atomic | None]:
        """The one value that an operator takes, if it is given any; and what it was given."""
        try:
            return list(values), one(values, what)
        except DynamicError as error:
            raise error.given(values) from None

    def _quantified(
        self, some: bool, bindings: Sequence[tuple[str, ast.Expression]], condition: ast.Expression, env: Env
    ) -> bool:
        """`some` is a long `or`, `every` a long `and`, and so they treat errors (LAWS 2.4)."""
        if not bindings:
            return self.truth(condition, env)
        (name, source), *others = bindings

        def holds(value: Value) -> bool:
            try:
                return self._quantified(some, others, condition, env.bind(name, [value])) == some
            except DynamicError as error:
                raise error.given([value]) from None

        values = self.looped(name, source, env, condition if some and not others else None)
        return any_of(partial(holds, each) for each in values) == some

    def _call(self, call: ast.Call, env: Env) -> Values:
        name = call.name.removeprefix("fn:")
        if self._window is not None and self._window.aggregates(call):
            return self._aggregate(self._window, call, env)
        if name in SPECIAL and name not in self.registered:
            return self.special(name, call, env)
        arguments = [self.value(argument, env) for argument in call.arguments]
        if name in self.declared:
            self.spend(1)
            function = self.declared[name]
            bound = self._start
            for parameter, values, flowing in zip(
                function.parameters, arguments, self._flowing(call, env), strict=True
            ):
                bound = bound.bind(parameter, values, flowing)
            before, self._window = self._window, None  # there its names mean something else
            try:
                return self.value(function.body, bound)
            finally:
                self._window = before
        if name not in self.registered and name in ("position", "last"):
            return [_known_place(env.position if name == "position" else env.last)]
        if name not in self.registered and not arguments and SIGNATURES[name].context:
            arguments = [[self.context(env)]]
        values = self._applied(name, arguments)
        self.spend(1 + len(values) if name in self.registered else library_steps(name, arguments, values))
        return values

    def _applied(self, name: str, arguments: list[Values]) -> Values:
        """The value of a function that is registered or built in; where it fails, the error knows what it was given."""
        try:
            if name in self.registered:
                return call_python(self.registered[name], name, arguments)
            return BUILTINS[name](*arguments)
        except DynamicError as error:
            values = [value for each in arguments for value in each]
            raise error.given(refused(values) if name in _NUMERIC else values) from error.__cause__

    def _flowing(self, call: ast.Call, env: Env) -> tuple[bool, ...]:
        """Which arguments of a call flow; looked at once, for a function may be called very often."""
        key = id(call), env.flowing
        if key not in self._calls:
            self._calls[key] = call, tuple(flows(each, env.flowing, self.declared) for each in call.arguments)
        return self._calls[key][1]

    def _aggregate(self, window: _Window, call: ast.Call, env: Env) -> Values:
        """An aggregate over a window that is seen through aggregates only, which is found once."""
        if id(call) not in window.found:
            try:
                values = self.aggregated_values(call.arguments[0], env)
                window.found[id(call)] = self._applied(call.name.removeprefix("fn:"), [values])
            except DynamicError as error:
                window.found[id(call)] = error
        match window.found[id(call)]:
            case DynamicError() as failure:
                raise failure
            case found:
                return found

    def aggregated_values(self, path: ast.Expression, env: Env) -> Values:
        """The values of an aggregate's argument; each node is tested apart, because items of a pane do not meet."""
        before, self._tests_apart = self._tests_apart, True
        try:
            match path:
                case ast.Flwor((ast.For(_, source, None) as loop,), _, _, _):
                    return [
                        found
                        for each in self.value(source, env)
                        for found in self._aggregated_round(path, loop, each, env)
                    ]
                case _:
                    return self.value(path, env)
        finally:
            self._tests_apart = before

    def _aggregated_round(self, flwor: ast.Flwor, loop: ast.For, node: Value, env: Env) -> Values:
        """What one round of a loop gives, which is evaluated apart."""
        bound = env.bind(loop.variable, [node])
        try:
            rows = self.apart(lambda: list(self._rows(flwor, (), bound)))
        except DynamicError as error:
            raise error.given([node]) from None
        return [value for row in rows for value in row.values]

    # --- FLWR ---------------------------------------------------------------------------------------------

    def _flwor(self, flwor: ast.Flwor, env: Env) -> Values:
        rows = self.rows(flwor, env)
        for index in reversed(range(len(flwor.order))):
            rows.sort(key=lambda row: row.ranks[index], reverse=flwor.order[index].descending)
        return [value for row in rows for value in row.values]

    def rows(self, flwor: ast.Flwor, env: Env) -> list[ResultRow]:
        """The results of all rounds that do not fail, in the order in which they are run."""
        places = flowing_fors(flwor, env.flowing, self.declared)
        if not places:
            return list(self._rows(flwor, flwor.clauses, env))
        rows: list[ResultRow] = []
        before, rest = flwor.clauses[: places[0]], flwor.clauses[places[0] :]
        fors = [flwor.clauses[place] for place in places]
        others = [clause for clause in rest if clause not in fors]
        for outer in self.apart(lambda: list(self._tuples(before, env))) if before else (env,):
            run = self.rounds_of([each for each in fors if isinstance(each, ast.For)], outer, flwor.where)
            for _, unit in groupby(run, key=lambda each: each.unit):
                rows += self._unit(list(unit), flwor, others)
        return rows

    def _unit(self, unit: Sequence[Round], flwor: ast.Flwor, others: Sequence[ast.For | ast.Let]) -> list[ResultRow]:
        """The results of one item, window or tuple: all of them, or none where one fails (LAWS 2.4)."""

        def rows() -> list[ResultRow]:
            before = self._in_unit, self._window, self.members
            self._in_unit, self._window, self.members = True, window, self._held(flwor, unit[0].env)
            try:
                return [row for each in unit for row in self._rows(flwor, others, each.env)]
            finally:
                self._in_unit, self._window, self.members = before

        window = self._seen_window(flwor)
        held = [node for each in unit for node in each.held]
        before, self.omitted = self.omitted, {}
        try:
            found = self.apart(rows, 1 if window else unit[0].items)
            for omission in self.omitted.values():
                self.set_aside(unit[0].arrival, omission, held)
            return found
        except DynamicError as error:
            self.set_aside(unit[0].arrival, error, held)
            return []
        finally:
            self.omitted = before

    def _held(self, flwor: ast.Flwor, env: Env) -> frozenset[int]:
        """The nodes of the window that a round is of, by identity, where its groups may leave some out (LAWS 3.8)."""
        windowed = [each for each in flwor.clauses if isinstance(each, ast.For) and each.window is not None]
        if len(windowed) != 1 or not self._groups(flwor):
            return frozenset()
        return frozenset(map(id, env.variables[windowed[0].variable]))

    def _groups(self, flwor: ast.Flwor) -> bool:
        """Whether something may be grouped in the rounds of an expression; looked at once."""
        if id(flwor) not in self._grouping:
            inside = (*parts(flwor), *parts(self.query.functions))
            self._grouping[id(flwor)] = flwor, any(isinstance(each, ast.GroupBy) for each in inside)
        return self._grouping[id(flwor)][1]

    def _seen_window(self, flwor: ast.Flwor) -> _Window | None:
        """A fresh cache of aggregates, where an expression sees its window through aggregates only."""
        windowed = [each for each in flwor.clauses if isinstance(each, ast.For) and each.window is not None]
        if len(windowed) != 1:
            return None
        if id(flwor) not in self._windows:
            seen = aggregated(flwor, windowed[0], self.registered)
            self._windows[id(flwor)] = flwor, None if seen is None else seen.names
        _, names = self._windows[id(flwor)]
        return None if names is None else _Window(names)

    def set_aside(
        self, arrival: Arrival | None, error: DynamicError, held: Sequence[tuple[Arrival | None, Value]] = ()
    ) -> None:
        if self._in_unit:
            raise error  # an error in a window over a part of the unit fails the unit
        super().set_aside(arrival, error, held)

    def _rows(self, flwor: ast.Flwor, clauses: Sequence[ast.For | ast.Let], env: Env) -> Iterator[ResultRow]:
        for bound in self._tuples(clauses, env, flwor.where):
            try:
                if flwor.where is not None and not self.truth(flwor.where, bound):
                    continue
                keys = (self._single(self.value(key.key, bound), "'order by'", key_of)[1] for key in flwor.order)
                row = ResultRow(tuple(order_rank(key) for key in keys), self.value(flwor.result, bound))
                if len(row.values) > 1 and any(isinstance(each, ast.For) for each in flwor.clauses):
                    self.spend(len(row.values))
            except DynamicError as error:
                for clause in reversed(clauses):
                    if isinstance(clause, ast.For):
                        error.given(bound.variables[clause.variable])
                raise
            yield row

    def bound(self, lets: Sequence[ast.For | ast.Let], env: Env) -> Env:
        """The environment behind clauses that bind each variable once."""
        (env,) = self.apart(lambda: list(self._tuples(lets, env)))
        return env

    def round_rows(
        self, flwor: ast.Flwor, others: Sequence[ast.For | ast.Let], env: Env, items: int
    ) -> list[ResultRow]:
        """The rows of one round of `items` items, where its streams' variables are bound; nothing is sorted yet."""
        self._window = self._seen_window(flwor)
        self.members, self.omitted = self._held(flwor, env), {}
        self.begin(1 if self._window else items)
        return list(self._rows(flwor, others, env))

    def looped(self, variable: str, source: ast.Expression, env: Env, asked: ast.Expression | None) -> Iterator[Value]:
        """The values of a loop, of which each is a step.

        `asked` is a condition on each: an evaluator may leave out values for which it is false, if it counts their
        steps; this one leaves out none.
        """
        for each in self.value(source, env):
            self.spend(1)
            yield each

    def _tuples(
        self, clauses: Sequence[ast.For | ast.Let], env: Env, where: ast.Expression | None = None
    ) -> Iterator[Env]:
        """The environments of all rounds; `where` is the condition that each of them is tested by later."""
        if not clauses:
            yield env
            return
        first, rest = clauses[0], clauses[1:]
        match first:
            case ast.Let(name, value):
                flowing = flows(value, env.flowing, self.declared)
                yield from self._tuples(rest, env.bind(name, self.value(value, env), flowing), where)
            case ast.For(name, source, None):
                for each in self.looped(name, source, env, None if rest else where):
                    try:
                        yield from self._tuples(rest, env.bind(name, [each]), where)
                    except DynamicError as error:
                        raise error.given([each]) from None
            case ast.For():  # a window on something finite
                for window in windows(first, env, self, flowing=False):
                    self.spend(window.items)
                    yield from self._tuples(rest, window.env, where)


def _known_place(place: int | None) -> int:
    if place is None:
        raise DynamicError("there are no positions here", code="XPDY0002")
    return place


def refused(values: Iterable[Value]) -> Values:
    """The nodes among the operands of a failed operation that are no numbers; all nodes where each of them is one."""
    nodes = [each for each in values if isinstance(each, NODES)]
    return [each for each in nodes if not _is_number(atom(each))] or list(nodes)


def _is_number(value: Atomic) -> bool:
    try:
        as_number(value)
    except DynamicError:
        return False
    return True


def any_of(tests: Iterable[Callable[[], bool]], steps: Counting | None = None) -> bool:
    """Whether one test holds, whatever the others raise; an error counts only where none does (LAWS 2.4).

    With `steps`, a test that takes too many of them counts as one that raises.
    """
    failure: DynamicError | None = None
    for test in tests:
        left = steps.left if steps else 0
        try:
            if test():
                return True
        except DynamicError as error:
            if isinstance(error, Exhausted) and not (steps and steps.resume(left)):
                raise
            failure = failure or error
    if failure:
        raise failure
    return False
