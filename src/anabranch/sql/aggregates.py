"""The aggregate functions of SQL, which leave NULL out and of nothing are NULL, except for COUNT (LAWS 8.3).

Behind a `group by` a table's variable is all rows of the group, in a window without groups the window is, and over a
whole stream an aggregate has a loop of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from anabranch.language import ast
from anabranch.sql.expressions import SqlExpressions
from anabranch.sql.functions import call
from anabranch.sql.scope import SqlScope, SqlTable, names_of

_NAMES: Mapping[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Median: "median",
    exp.Stddev: "stddev",
    exp.StddevSamp: "stddev",
}


@dataclass(slots=True)
class AggregatedRows:
    """What aggregates are taken over."""

    clauses: tuple[ast.For, ...] | None = None
    """The loop that gives single rows, where an aggregate has one of its own; None where variables hold all rows."""
    where: tuple[ast.Expression, ...] = ()
    size: int = 0
    """How many parts these have, which each aggregate repeats."""
    lets: list[ast.Let] = field(default_factory=list)
    """Values of single rows that are found before these are grouped, since they are made of several tables."""


class SqlAggregates(SqlExpressions):
    """Aggregates; `SqlQueries` says what they are taken over."""

    rows: AggregatedRows | None = None
    """What the expression at hand may take aggregates over; None where it may not."""
    in_aggregate = False

    def aggregate(self, node: exp.Expr, scope: SqlScope) -> ast.Expression | None:
        function, condition = node, None
        if isinstance(node, exp.Filter):
            self.check_args(node, ("this", "expression"))
            function, condition = node.this, node.expression.this
        percentile = _median_of(function)
        if percentile is None and type(function) not in _NAMES:
            return None
        if self.rows is None or scope.keys is None:
            raise self.refuse("nested aggregate" if self.in_aggregate else "aggregate in WHERE", node)
        name = "median" if percentile is not None else _NAMES[type(function)]
        argument = percentile if percentile is not None else function.this
        if percentile is None:
            self.check_args(function, ("this", "big_int", *(("expressions",) if name == "count" else ())))
        distinct = isinstance(argument, exp.Distinct)
        if distinct:
            if len(argument.expressions) != 1:
                raise self.refuse("DISTINCT of several columns", argument)
            argument = argument.expressions[0]
        if function.args.get("expressions"):
            raise self.refuse("COUNT of several columns", function)
        if isinstance(argument, exp.Star) and name != "count":
            raise self.refuse("'*' in an aggregate other than COUNT", argument)
        return self._taken(name, argument, condition, scope, node, distinct=distinct)

    def _taken(
        self,
        name: str,
        argument: exp.Expr,
        condition: exp.Expr | None,
        scope: SqlScope,
        node: exp.Expr,
        *,
        distinct: bool,
    ) -> ast.Expression:
        span = self.made(node)
        counts_rows = isinstance(argument, exp.Star) or (name == "count" and isinstance(argument, exp.Literal))
        values = self._values(None if counts_rows and not distinct else argument, condition, scope, node)
        if distinct:
            values = call("distinct-values", (self.present(values),), span)
        elif name == "count" and not counts_rows:
            values = self.present(values)
        found = call(name, (values,), span)
        if name != "sum":
            return found
        return ast.If(
            call("exists", (call("avg", (values,), span),), span), found, ast.Sequence((), span=span), span=span
        )

    def _values(
        self, argument: exp.Expr | None, condition: exp.Expr | None, scope: SqlScope, node: exp.Expr
    ) -> ast.Expression:
        """The values that an aggregate is taken over: those of an argument, or the rows themselves."""
        assert self.rows is not None
        span, first = self.made(node), scope.tables[0]
        used = _tables_in((argument, condition), scope, self)
        if self.rows.clauses is not None:
            self.made(node, self.rows.size)
            value = self._of_row(argument, scope.of_rows(), first, node)
            conditions = (*self.rows.where, *self._conditions(condition, scope.of_rows()))
            where = conditions[0] if len(conditions) == 1 else ast.And(conditions, span=span) if conditions else None
            return ast.Flwor(self.rows.clauses, where, (), value, span=span)
        if condition is None and argument is None:
            return ast.Variable(first.variable, span=span)
        if condition is None and argument is not None and self._is_column(argument, scope):
            table, keys = self.resolved(argument, scope)
            return self.looked_up(ast.Variable(table.variable, span=span), keys, argument)
        if len(used) > 1:
            return self._before_groups(argument, condition, scope, first, node)
        table = used[0] if used else first
        name = self.variable("x")
        row = scope.of_rows({table.alias: name})
        conditions = self._conditions(condition, row)
        where = conditions[0] if len(conditions) == 1 else ast.And(conditions, span=span) if conditions else None
        loop = ast.For(name, ast.Variable(table.variable, span=span), span=span)
        value = self._of_row(argument, row, replace(table, variable=name), node)
        return ast.Flwor((loop,), where, (), value, span=span)

    def _is_column(self, node: exp.Expr, scope: SqlScope) -> bool:
        """Whether a node is a column of a table, and no bound of the window."""
        return names_of(node) is not None and self.window_column(node, scope) is None

    def _before_groups(
        self, argument: exp.Expr | None, condition: exp.Expr | None, scope: SqlScope, first: SqlTable, node: exp.Expr
    ) -> ast.Expression:
        assert self.rows is not None
        span, row, name = self.made(node), scope.of_rows(), self.variable("x")
        value = self._of_row(argument, row, first, node)
        if conditions := self._conditions(condition, row):
            test = conditions[0] if len(conditions) == 1 else ast.And(conditions, span=span)
            value = ast.If(test, value, ast.Sequence((), span=span), span=span)
        self.rows.lets.append(ast.Let(name, value, span=span))
        return ast.Variable(name, span=span)

    def _of_row(self, argument: exp.Expr | None, row: SqlScope, first: SqlTable, node: exp.Expr) -> ast.Expression:
        if argument is None:
            return ast.Variable(first.variable, span=self.made(node))
        before, self.rows, self.in_aggregate = self.rows, None, True
        try:
            return self.value(argument, row)
        finally:
            self.rows, self.in_aggregate = before, False

    def _conditions(self, condition: exp.Expr | None, row: SqlScope) -> tuple[ast.Expression, ...]:
        if condition is None:
            return ()
        before, self.rows, self.in_aggregate = self.rows, None, True
        try:
            return tuple(self.conjuncts(condition, row))
        finally:
            self.rows, self.in_aggregate = before, False


def _median_of(node: exp.Expr) -> exp.Expr | None:
    """The argument of PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x), which is the median."""
    if isinstance(node, exp.WithinGroup):
        function, order = node.this, node.expression
        is_middle = isinstance(function, exp.PercentileCont) and str(function.this.this) in ("0.5", ".5", "0.50")
        if is_middle and isinstance(order, exp.Order) and len(order.expressions) == 1:
            found: exp.Expr = order.expressions[0].this
            return found
    return None


def has_aggregate(nodes: Iterable[exp.Expr]) -> bool:
    """Whether one of several nodes is an aggregate."""
    return any(type(each) in _NAMES or _median_of(each) is not None for each in nodes)


def _tables_in(nodes: Iterable[exp.Expr | None], scope: SqlScope, names: SqlExpressions) -> list[SqlTable]:
    """The tables whose columns stand in expressions."""
    found: dict[str, SqlTable] = {}
    for each in nodes:
        for node in each.walk(prune=lambda part: names_of(part) is not None) if each is not None else ():
            if names_of(node) is not None and names.window_column(node, scope) is None:
                table, _ = names.resolved(node, scope)
                found[table.alias] = table
    return list(found.values())
