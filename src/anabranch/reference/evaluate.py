"""The law, executable: what a query answers over finite inputs.

This evaluator is obviously right and never fast; everything faster is tested against it.
A query is evaluated once, whole, as XQuery would over documents, with three additions:

* a `for` over a stream runs in rounds, one per item, window or pair (`rounds.py`), and an error in a round sets that
  round aside and nothing else (LAWS 2.4);
* a path over a stream is evaluated item by item, for the same reason; where the path looks at the stream's root
  itself, it is evaluated over the whole instead;
* comparisons, sums and orders are those of LAWS 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import groupby, product
from typing import TypeVar

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.signatures import SIGNATURES
from anabranch.language.unbounded import flowing_fors, flows
from anabranch.reference.arithmetic import calculate, negate
from anabranch.reference.calls import PythonFunction, call_python
from anabranch.reference.construct import construct
from anabranch.reference.env import Env
from anabranch.reference.functions import BUILTINS
from anabranch.reference.inputs import Arrival, Input
from anabranch.reference.paths import Walker
from anabranch.reference.rounds import Round, rounds, windows
from anabranch.reference.sequences import NODES, Value, Values, at_most_one, atom, atomize, truth
from anabranch.reference.values import (
    Atomic,
    OrderRank,
    WrittenDouble,
    as_number,
    compare,
    order_rank,
)

T = TypeVar("T")

_AGGREGATES = frozenset({"sum", "avg", "min", "max"})


@dataclass(frozen=True, slots=True)
class Row:
    """One result of a FLWR expression, with its ranks in the order asked for."""

    ranks: tuple[OrderRank, ...]
    values: Values


class Evaluator(Walker):
    """Evaluates the expressions of one query; holds its inputs and collects its dead letters."""

    def __init__(
        self,
        query: ast.Query,
        inputs: Mapping[str, Input],
        functions: Mapping[str, PythonFunction],
        name: str | None = None,
        text: str | None = None,
    ) -> None:
        super().__init__(query, inputs, name, text)
        self.declared = {function.name: function for function in query.functions}
        self.registered = functions
        self._in_unit = False

    def value(self, expression: ast.Expression, env: Env) -> Values:
        """The value of an expression."""
        match expression:
            case ast.String(text):
                return [text]
            case ast.Number(text):
                return [number(text)]
            case ast.Variable(name):
                return env.variables[name]
            case ast.ContextItem():
                return [self.context(env)]
            case ast.Sequence(items):
                return [each for item in items for each in self.value(item, env)]
            case ast.Call():
                return self._call(expression, env)
            case ast.Source() | ast.Path() | ast.Filter() | ast.Root():
                return self.path(expression, env)
            case ast.Arithmetic(first, rest):
                return self._arithmetic(first, rest, env)
            case ast.Negation(operand):
                return self._negated(self.value(operand, env))
            case ast.Comparison(operator, left, right):
                return [self._compared(operator, self.value(left, env), self.value(right, env))]
            case ast.And(operands):
                return [not any_of(partial(self._fails, each, env) for each in operands)]
            case ast.Or(operands):
                return [any_of(partial(self.truth, each, env) for each in operands)]
            case ast.If(condition, then, otherwise):
                return self.value(then if self.truth(condition, env) else otherwise, env)
            case ast.Quantified(kind, bindings, condition):
                return [self._quantified(kind == "some", bindings, condition, env)]
            case ast.Flwor():
                return self._flwor(expression, env)
            case ast.ElementConstructor():
                return [construct(expression, env.namespaces, lambda e, ns: self.value(e, replace(env, namespaces=ns)))]

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

    def _compared(self, operator: ast.ComparisonOperator, left: Values, right: Values) -> bool:
        try:
            return any_of(partial(compare, operator, *pair) for pair in product(atomize(left), atomize(right)))
        except DynamicError as error:
            raise error.given(refused((*left, *right))) from None

    def _arithmetic(
        self, first: ast.Expression, rest: Sequence[tuple[ast.ArithmeticOperator, ast.Expression]], env: Env
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

    def _single(self, values: Values, what: str) -> tuple[Values, Atomic | None]:
        """The one value that an operator takes, if it is given any; and what it was given."""
        try:
            return list(values), at_most_one(values, what)
        except DynamicError as error:
            raise error.given(values) from None

    def _quantified(
        self, some: bool, bindings: Sequence[tuple[str, ast.Expression]], condition: ast.Expression, env: Env
    ) -> bool:
        """`some` is a long `or`, `every` a long `and`, and so they treat errors (LAWS 2.4)."""
        if not bindings:
            return self.truth(condition, env)
        (name, source), *others = bindings
        values = self.value(source, env)

        def holds(value: Value) -> bool:
            try:
                return self._quantified(some, others, condition, env.bind(name, [value])) == some
            except DynamicError as error:
                raise error.given([value]) from None

        return any_of(partial(holds, each) for each in values) == some

    def _call(self, call: ast.Call, env: Env) -> Values:
        name = call.name.removeprefix("fn:")
        arguments = [self.value(argument, env) for argument in call.arguments]
        if name in self.declared:
            function = self.declared[name]
            bound = Env.of(self.query)
            for parameter, expression, values in zip(function.parameters, call.arguments, arguments, strict=True):
                bound = bound.bind(parameter, values, flows(expression, env.flowing, self.declared))
            return self.value(function.body, bound)
        if name not in self.registered and not arguments and SIGNATURES[name].context:
            arguments = [[self.context(env)]]
        try:
            if name in self.registered:
                return call_python(self.registered[name], name, arguments)
            return BUILTINS[name](*arguments)
        except DynamicError as error:
            values = [value for each in arguments for value in each]
            raise error.given(refused(values) if name in _AGGREGATES else values) from error.__cause__

    # --- FLWR ---------------------------------------------------------------------------------------------

    def _flwor(self, flwor: ast.Flwor, env: Env) -> Values:
        places = flowing_fors(flwor, env.flowing, self.declared)
        rows: list[Row] = []
        if places:
            before, rest = flwor.clauses[: places[0]], flwor.clauses[places[0] :]
            fors = [flwor.clauses[place] for place in places]
            others = [clause for clause in rest if clause not in fors]
            for outer in self._tuples(before, env):
                run = rounds([each for each in fors if isinstance(each, ast.For)], outer, self, flwor.where)
                for _, unit in groupby(run, key=lambda each: each.unit):
                    rows += self._unit(list(unit), flwor, others)
        else:
            rows += self._rows(flwor, flwor.clauses, env)
        for index in reversed(range(len(flwor.order))):
            rows.sort(key=lambda row: row.ranks[index], reverse=flwor.order[index].descending)
        return [value for row in rows for value in row.values]

    def _unit(self, unit: Sequence[Round], flwor: ast.Flwor, others: Sequence[ast.For | ast.Let]) -> list[Row]:
        """The results of one item, window or tuple: all of them, or none where one fails (LAWS 2.4)."""

        def rows() -> list[Row]:
            before, self._in_unit = self._in_unit, True
            try:
                return [row for each in unit for row in self._rows(flwor, others, each.env)]
            finally:
                self._in_unit = before

        try:
            return rows()
        except DynamicError as error:
            self.set_aside(unit[0].arrival, error, [node for each in unit for node in each.held])
            return []

    def set_aside(
        self, arrival: Arrival | None, error: DynamicError, held: Sequence[tuple[Arrival | None, Value]] = ()
    ) -> None:
        if self._in_unit:
            raise error  # in a window on a part of the unit: the unit falls
        super().set_aside(arrival, error, held)

    def _rows(self, flwor: ast.Flwor, clauses: Sequence[ast.For | ast.Let], env: Env) -> Iterator[Row]:
        for bound in self._tuples(clauses, env):
            try:
                if flwor.where is not None and not self.truth(flwor.where, bound):
                    continue
                keys = (self._single(self.value(key.key, bound), "'order by'")[1] for key in flwor.order)
                row = Row(tuple(order_rank(key) for key in keys), self.value(flwor.result, bound))
            except DynamicError as error:
                for clause in reversed(clauses):
                    if isinstance(clause, ast.For):
                        error.given(bound.variables[clause.variable])
                raise
            yield row

    def bound(self, lets: Sequence[ast.For | ast.Let], env: Env) -> Env:
        """The environment behind clauses that bind each variable once."""
        (env,) = self._tuples(lets, env)
        return env

    def results(self, flwor: ast.Flwor, others: Sequence[ast.For | ast.Let], env: Env) -> Values:
        """What one round adds, where its streams' variables are bound and nothing is ordered."""
        return [value for row in self._rows(flwor, others, env) for value in row.values]

    def _tuples(self, clauses: Sequence[ast.For | ast.Let], env: Env) -> Iterator[Env]:
        if not clauses:
            yield env
            return
        first, rest = clauses[0], clauses[1:]
        match first:
            case ast.Let(name, value):
                flowing = flows(value, env.flowing, self.declared)
                yield from self._tuples(rest, env.bind(name, self.value(value, env), flowing))
            case ast.For(name, _, None):
                for each in self.value(first.source, env):
                    try:
                        yield from self._tuples(rest, env.bind(name, [each]))
                    except DynamicError as error:
                        raise error.given([each]) from None
            case ast.For():  # a window on something finite
                for window in windows(first, env, self, flowing=False):
                    yield from self._tuples(rest, window.env)


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


def any_of(tests: Iterable[Callable[[], bool]]) -> bool:
    """Whether one test holds, whatever the others raise; an error counts only where none does (LAWS 2.4)."""
    failure: DynamicError | None = None
    for test in tests:
        try:
            if test():
                return True
        except DynamicError as error:
            failure = failure or error
    if failure:
        raise failure
    return False


def number(text: str) -> Value:
    """The value of a number literal: an integer, a decimal or a double."""
    if "e" in text or "E" in text:
        return WrittenDouble(text)
    return Decimal(text) if "." in text else int(text)
