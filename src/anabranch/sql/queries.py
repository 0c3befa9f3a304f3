"""SELECT to loops: a query in SQL as the tree that its twin in XQuery is read into (LAWS 8).

    SELECT k, COUNT(*) AS n FROM TUMBLE(s, ts, INTERVAL '1 MINUTE') WHERE a > 5 GROUP BY k, window_start

    for $w in stream("s")|ts diff PT1M|
    for $s in $w where $s.a > 5 group by $k := non-null($s.k)
    return { "k": $k, "n": count($s) }

A row is an object with the columns in their order.
ORDER BY and LIMIT behind a window are those of each window; over a stream they make a display (LAWS 3.11).
Whoever works on the tree does not know that it was SQL; errors find their place in its text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from anabranch.errors import QueryError, Span
from anabranch.language import ast
from anabranch.language.clauses import expression_of
from anabranch.language.objects import OBJECT
from anabranch.language.parsing.cursor import MAX_NESTING
from anabranch.language.rewrite import deepest, parts, substituted
from anabranch.sql.aggregates import AggregatedRows, has_aggregate
from anabranch.sql.ordering import OutputColumn, SqlOrder
from anabranch.sql.parsing import read_statement
from anabranch.sql.scope import GroupedKey, SqlScope, SqlTable, names_of, nodes_in
from anabranch.sql.sources import JoinedTable
from anabranch.sql.times import TimeColumns, bare

_SELECT = (*("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct"),)
_UNNAMED = {exp.Case: "case", exp.Extract: "extract", exp.Coalesce: "coalesce"}


def parse_sql(text: str, name: str | None = None, documents: Collection[str] = ()) -> ast.Query:
    """Read a query in SQL; `name` (a file's, say) is shown in errors. Raises `QueryError` with the place.

    `documents` are the names of tables; all others are streams.
    """
    try:
        return _read(text, documents)
    except QueryError as error:
        error.name = name
        raise


def _read(text: str, documents: Collection[str]) -> ast.Query:
    statement, places = read_statement(text)
    queries = SqlQueries(text, places)
    queries.documents = documents
    try:
        query = ast.Query(queries.query(statement), span=Span(0, len(text)))
        nesting, place = deepest(query)
    except RecursionError:
        message = "constructs stand too deep inside one another"
        raise QueryError(message, text=text, span=Span(0, len(text))) from None
    if nesting > MAX_NESTING:
        message = f"more than {MAX_NESTING} constructs inside one another"
        raise QueryError(message, text=text, span=place)
    return query


@dataclass(frozen=True, slots=True)
class _Selection:
    """A SELECT, taken apart."""

    node: exp.Select
    first: SqlTable
    scope: SqlScope
    columns: Sequence[OutputColumn] | None
    """None for rows as they are."""
    outputs: Mapping[str, exp.Expr]
    """What the names of output columns mean in GROUP BY and HAVING."""
    clauses: Sequence[ast.Clause]
    """The loops over the tables behind the first."""
    conditions: Sequence[ast.Expression]
    """What must hold for single rows."""
    span: Span


class SqlQueries(SqlOrder):
    """Queries, and what is made of several."""

    _united: tuple[str, ...] | None = None
    """In a UNION, behind its first query: the names of the columns."""

    def query(self, node: exp.Expr) -> ast.Expression:
        """A statement."""
        match node:
            case exp.Subquery():
                self.check_args(node, ("this",))
                return self.query(node.this)
            case exp.Select():
                if node.args.get("with_") is not None:
                    raise self.refuse("WITH", node.args["with_"])
                if node.args.get("qualify") is not None:
                    raise self.refuse("QUALIFY", node.args["qualify"])
                self.check_args(node, _SELECT)
                return self._select(node)
            case exp.Union():
                return self._union(node)
            case exp.Intersect() | exp.Except():
                raise self.refuse("INTERSECT" if isinstance(node, exp.Intersect) else "EXCEPT", node)
            case _:
                raise self.refuse("statement other than SELECT", node)

    def _union(self, node: exp.Union) -> ast.Expression:
        """UNION ALL: the rows of one query behind those of the other; in one loop where both go over one stream."""
        if node.args.get("with_") is not None:
            raise self.refuse("WITH", node.args["with_"])
        others: list[exp.Expr] = []
        at: exp.Expr = node
        while isinstance(at, exp.Union) and (at is node or not _orders(at)):
            self.check_args(at, ("this", "expression", "distinct", "order", "limit", "offset"))
            if at.args.get("distinct"):
                raise self.refuse("UNION without ALL", at)
            others.append(at.args["expression"])
            at = at.this
        span = self.made(node)
        queries = [self.query(at)]
        outer, self._united = self._united, self._united or self._first_names(at)
        queries += [self.query(each) for each in reversed(others)]
        self._united = outer
        found = _one_loop(queries, span) or ast.Sequence(tuple(queries), span=span)
        return self._ordered_rows(found, node, span)

    def _first_names(self, node: exp.Expr) -> tuple[str, ...]:
        """The names of the columns of the first query, which all of a UNION have; none for rows as they are."""
        while isinstance(node, exp.Union | exp.Subquery):
            node = node.this
        return tuple(self._name(each) for each in node.expressions if not _is_star(each))

    def _ordered_rows(self, rows: ast.Expression, node: exp.Union, span: Span) -> ast.Expression:
        """Rows in the order of their columns, and some of them."""
        if node.args.get("order") is not None:
            name = self.variable("row")
            keys: list[ast.OrderKey] = []
            for each in node.args["order"].expressions:
                names = names_of(each.this)
                if names is None:
                    raise self.error("rows of a UNION are ordered by the names of their columns", each)
                keys += self.order_keys(each, self.looked_up(ast.Variable(name, span=span), names, each))
            loop = ast.For(name, rows, span=span)
            rows = ast.Flwor((loop,), None, tuple(keys), ast.Variable(name, span=span), span=span)
        return self.limited(rows, node, span)

    # --- SELECT -------------------------------------------------------------------------------------------

    def _select(self, node: exp.Select) -> ast.Expression:
        span = self.made(node)
        first, joined = self.tables_of(node)
        tables = (first, *(each.table for each in joined))
        window = self.variable("w") if first.window is not None else None
        scope = SqlScope(tables, window)
        nodes = nodes_in(node)
        for each in nodes:
            if isinstance(each, exp.Window):
                raise self.refuse("window function", each)
        timed = first.window is not None and isinstance(_size_of(first.window), ast.Duration)
        self.times = TimeColumns(
            nodes,
            lambda each: self._column_key(each, scope),
            lambda each: timed and self.window_column(each, scope) is not None,
        )
        columns = self._columns(node, scope)
        outputs = {each.name: each.node for each in columns or () if not _uses_name(each)}
        group = self._group(node, columns, outputs)
        aggregates = has_aggregate(nodes) or node.args.get("having") is not None
        if (group is not None or aggregates) and any(each.source.kind == "stream" for each in tables[1:]):
            raise self.refuse("aggregate over a join of streams", node)
        if group is None and aggregates:
            group = []
        if group is not None and columns is None:
            raise self.refuse("'*' in a query with groups", node.expressions[0])
        if group is not None and window is not None and not any(self.window_column(each, scope) for each in group):
            clause = "GROUP BY" if node.args.get("distinct") is None else "DISTINCT"
            raise self.refuse(f"{clause} that spans windows", node.args.get(clause.split()[0].lower()) or node)
        conditions, clauses = self._loops(node, joined, scope)
        query = _Selection(node, first, scope, columns, outputs, clauses, conditions, span)
        if group is None:
            return self._rows(query)
        keys = [each for each in group if window is None or self.window_column(each, scope) is None]
        if window is not None and not keys and not clauses and not conditions:
            return self._windows(query, window)
        if window is None and not group:
            return self._whole(query)
        return self._groups(query, keys or group)

    def _column_key(self, node: exp.Expr, scope: SqlScope) -> tuple[str, ...] | None:
        """What tells a column from others: its table and names."""
        names = names_of(node)
        if names is None or self.window_column(node, scope) is not None:
            return None
        try:
            table, keys = self.resolved(node, scope, names)
        except QueryError:
            return None  # told where it is translated
        return table.alias, *keys

    def _columns(self, node: exp.Select, scope: SqlScope) -> list[OutputColumn] | None:
        """The output columns; None for rows as they are."""
        if not node.expressions:
            raise self.refuse("SELECT without columns", node)
        if len(node.expressions) == 1 and _is_star(node.expressions[0]):
            self.check_args(_star_of(node.expressions[0]), ())
            if scope.window is not None or (len(scope.tables) > 1 and isinstance(node.expressions[0], exp.Star)):
                raise self.refuse("'*' over a window or a join", node.expressions[0])
            if self._united:
                raise self.error("the queries of a UNION have different numbers of columns", node.expressions[0])
            return None
        found: list[OutputColumn] = []
        if self._united is not None and len(self._united) != len(node.expressions):
            raise self.error("the queries of a UNION have different numbers of columns", node)
        for place, each in enumerate(node.expressions):
            if _is_star(each):
                raise self.refuse("'*' beside other columns", each)
            name = self._name(each) if self._united is None else self._united[place]
            column = OutputColumn(name, each.this if isinstance(each, exp.Alias) else each)
            if any(column.name == other.name for other in found):
                raise self.error(f"two columns are called '{column.name}'", each, "name one of them with AS")
            found.append(column)
        return found

    def _name(self, node: exp.Expr) -> str:
        """The name of a column: as given, that of a column, or of a function."""
        if isinstance(node, exp.Alias):
            return str(node.alias)
        node = bare(node)
        while isinstance(node, exp.Cast):
            node = bare(node.this)
        if isinstance(node, exp.Filter):
            node = node.this
        if (names := names_of(node)) is not None:
            return names[-1]
        for kind, name in _UNNAMED.items():
            if isinstance(node, kind):
                return name
        if isinstance(node, exp.Func) and not isinstance(node, exp.And | exp.Or | exp.Anonymous):
            return node.sql_name().lower()
        raise self.refuse("column without a name", node)

    def _group(
        self, node: exp.Select, columns: Sequence[OutputColumn] | None, outputs: dict[str, exp.Expr]
    ) -> list[exp.Expr] | None:
        """The keys of a query with groups; None for others."""
        group = node.args.get("group")
        if node.args.get("distinct") is not None:
            self.check_args(node.args["distinct"], ())
            if group is not None or columns is None or has_aggregate(nodes_in(node)):
                raise self.refuse("DISTINCT beside groups, aggregates or '*'", node.args["distinct"])
            return [each.node for each in columns]
        if group is None:
            return None
        sets = exp.Rollup | exp.Cube | exp.GroupingSets
        if any(isinstance(each, sets) for each in group.expressions) or any(
            value for name, value in group.args.items() if name != "expressions"
        ):
            raise self.refuse("GROUPING SETS, ROLLUP and CUBE", group)
        return [self.named(each, columns or (), outputs) for each in group.expressions]

    # --- loops --------------------------------------------------------------------------------------------

    def _loops(
        self, node: exp.Select, joined: Sequence[JoinedTable], scope: SqlScope
    ) -> tuple[list[ast.Expression], list[ast.Clause]]:
        """The conditions on single rows, and the loops over the tables behind the first."""
        conditions: list[ast.Expression] = []
        clauses: list[ast.Clause] = []
        rows = scope.of_rows()
        for place, join in enumerate(joined):
            before = replace(rows, tables=rows.tables[: place + 2])
            on: list[ast.Expression] = [] if join.on is None else self.conjuncts(join.on, before)
            if not join.optional:
                conditions += on + self._using(join, before)
                clauses.append(self.loop_over(join.table))
                continue
            name = self.variable(join.table.variable)
            inner = before.of_rows({join.table.alias: name})
            on = ([] if join.on is None else self.conjuncts(join.on, inner)) + self._using(join, inner)
            test = on[0] if len(on) == 1 else ast.And(tuple(on), span=self.made(join.node)) if on else None
            clauses.append(self.optional_loop(join.table, name, test))
        where = node.args.get("where")
        if where is not None:
            conditions += self.conjuncts(where.this, rows)
        return conditions, clauses

    def _using(self, join: JoinedTable, scope: SqlScope) -> list[ast.Expression]:
        tables = scope.tables[0], scope.tables[-1]
        found: list[ast.Expression] = []
        for key in join.using:
            sides = [
                self.looked_up(ast.Variable(each.variable, span=self.made(join.node)), (key,), join.node)
                for each in tables
            ]
            found.append(ast.Comparison("=", *sides, span=self.made(join.node)))
        return found

    def _rows(self, query: _Selection) -> ast.Expression:
        """A query that gives a row for each row."""
        rows = query.scope.of_rows()
        result = self._row_itself(query) if query.columns is None else self._object(query, rows)
        order = self.order(query.node, rows, query.columns or ())
        return self._looped(query, [*query.clauses, *_wheres(query.conditions)], order, result)

    def _row_itself(self, query: _Selection) -> ast.Expression:
        """`SELECT *`, or `SELECT t.*` of a join."""
        star = query.node.expressions[0]
        table = query.scope.tables[0]
        if isinstance(star, exp.Column):
            found = query.scope.table(star.table)
            if found is None:
                raise self.error(f"no table is called '{star.table}'", star)
            table = found
        return ast.Variable(table.variable, span=query.span)

    def _looped(
        self,
        query: _Selection,
        clauses: Sequence[ast.Clause],
        order: Sequence[ast.OrderKey],
        result: ast.Expression,
    ) -> ast.Expression:
        """The loop over the first table around other clauses; what is ordered or counted is so for each window."""
        first, window, span = query.first, query.scope.window, query.span
        ordered = [*clauses, *([ast.OrderBy(tuple(order), span=span)] if order else [])]
        if window is None:
            found: ast.Expression = expression_of((self.loop_over(first), *ordered), result, span)
            return self.limited(found, query.node, span)
        loop = ast.For(window, first.source, first.window, span=first.source.span)
        members = ast.For(first.variable, ast.Variable(window, span=span), span=span)
        inner = self.limited(expression_of((members, *ordered), result, span), query.node, span)
        return ast.Flwor((loop,), None, (), inner, span=span)

    # --- groups -------------------------------------------------------------------------------------------

    def _groups(self, query: _Selection, group: Sequence[exp.Expr]) -> ast.Expression:
        """A row for each group."""
        keys: list[GroupedKey] = []
        for each in group:
            names = names_of(each)
            name = self.variable(names[-1] if names is not None else "key")
            keys.append(GroupedKey(each, self.value(each, query.scope.of_rows()), name))
        grouped = replace(query.scope, keys=tuple(keys))
        self.rows = AggregatedRows()
        having = self._having(query, grouped)
        order = self.order(query.node, grouped, query.columns or ())
        result = self._object(query, grouped)
        lets, self.rows = self.rows.lets, None
        by = tuple(ast.GroupKey(each.variable, self.present(each.value), span=self.made(each.node)) for each in keys)
        ahead = [*query.clauses, *_wheres(query.conditions), *lets]
        return self._looped(query, [*ahead, ast.GroupBy(by, span=query.span), *_wheres(having)], order, result)

    def _windows(self, query: _Selection, window: str) -> ast.Expression:
        """A row for each window, of which all rows are one group."""
        self._check_one_row(query.node, "a window")
        first = query.first
        whole = replace(first, variable=window, window=None)
        grouped = replace(query.scope, tables=(whole,), keys=())
        self.rows = AggregatedRows()
        having = self._having(query, grouped)
        result = self._object(query, grouped)
        self.rows = None
        loop = ast.For(window, first.source, first.window, span=first.source.span)
        return expression_of((loop, *_wheres(having)), result, query.span)

    def _whole(self, query: _Selection) -> ast.Expression:
        """One row of a whole stream."""
        self._check_one_row(query.node, "a stream")
        loops = [self.loop_over(query.first), *query.clauses]
        plain = tuple(each for each in loops if isinstance(each, ast.For))
        if len(plain) < len(loops):
            raise self.refuse("aggregate of a whole stream with LEFT JOIN", query.node)
        grouped = replace(query.scope, keys=())
        conditions = tuple(query.conditions)
        self.rows = AggregatedRows(plain, conditions, sum(1 for _ in parts(conditions)))
        having = self._having(query, grouped)
        result = self._object(query, grouped)
        self.rows = None
        if not having:
            return result
        test = having[0] if len(having) == 1 else ast.And(tuple(having), span=query.span)
        return ast.If(test, result, ast.Sequence((), span=query.span), span=query.span)

    def _check_one_row(self, node: exp.Select, what: str) -> None:
        for name in ("order", "limit", "offset"):
            if node.args.get(name) is not None:
                hint = f"leave {name.upper()} out, or group by a column"
                raise self.error(f"{what} has one row here", node.args[name], hint)

    def _having(self, query: _Selection, scope: SqlScope) -> list[ast.Expression]:
        having = query.node.args.get("having")
        return [] if having is None else self.conjuncts(having.this, replace(scope, outputs=query.outputs))

    def _object(self, query: _Selection, scope: SqlScope) -> ast.Call:
        """A row of the answer."""
        found: list[ast.Expression] = []
        for each in query.columns or ():
            found += (ast.String(each.name, span=self.made(each.node)), self.value(each.node, scope))
        return ast.Call(OBJECT, tuple(found), span=query.span)


def _wheres(conditions: Sequence[ast.Expression]) -> list[ast.Where]:
    if not conditions:
        return []
    one = conditions[0] if len(conditions) == 1 else ast.And(tuple(conditions), span=_around(conditions))
    return [ast.Where(one, span=one.span)]


def _around(parts: Sequence[ast.Expression]) -> Span:
    return Span(min(each.span.start for each in parts), max(each.span.end for each in parts))


def _size_of(window: ast.TimeWindow | ast.SessionWindow) -> ast.Amount:
    return window.size if isinstance(window, ast.TimeWindow) else window.gap


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def _star_of(node: exp.Expr) -> exp.Expr:
    """The star itself, which may leave columns out or replace them."""
    return node.this if isinstance(node, exp.Column) else node


def _uses_name(column: OutputColumn) -> bool:
    """Whether an output column is made of a column of its own name, which then is what the name means."""
    return any(names_of(each) == (column.name,) for each in nodes_in(column.node))


def _orders(node: exp.Expr) -> bool:
    return any(node.args.get(each) is not None for each in ("order", "limit", "offset"))


def _one_loop(queries: Sequence[ast.Expression], span: Span) -> ast.Flwor | None:
    """Loops over the rows of the same stream as one; None where there are others.

    `for $s in a where b return c` and `for $t in a return d` are `for $s in a return (if (b) then c else (), d)`.
    """
    loops: list[tuple[ast.For, ast.Expression]] = []
    for each in queries:
        match each:
            case ast.Flwor((ast.For(_, ast.Source(), None) as loop,), where, (), result):
                rows = result if where is None else ast.If(where, result, ast.Sequence((), span=span), span=result.span)
                loops.append((loop, rows))
    if len(loops) < len(queries) or any(loop.source != loops[0][0].source for loop, _ in loops):
        return None
    first = loops[0][0]
    found = (substituted(rows, loop.variable, ast.Variable(first.variable)) for loop, rows in loops)
    return ast.Flwor((first,), None, (), ast.Sequence(tuple(found), span=span), span=span)
