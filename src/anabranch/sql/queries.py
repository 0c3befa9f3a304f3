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

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from anabranch.errors import QueryError, Span
from anabranch.language import ast
from anabranch.language.clauses import expression_of
from anabranch.language.objects import OBJECT
from anabranch.language.parsing.cursor import MAX_NESTING
from anabranch.language.positions import with_positions
from anabranch.language.rewrite import deepest, substituted
from anabranch.sql.aggregates import Rows, is_aggregate
from anabranch.sql.functions import call
from anabranch.sql.parsing import read_statement
from anabranch.sql.scope import GroupedKey, Scope, SqlTable, names_of
from anabranch.sql.sources import JoinedTable, SqlSources
from anabranch.sql.times import TimeColumns, bare

_SELECT = (*("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct"),)
_WHOLE = re.compile("[0-9]{1,15}")
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
    return with_positions(query)


@dataclass(frozen=True, slots=True)
class _Column:
    """An output column."""

    name: str
    node: exp.Expr


class SqlQueries(SqlSources):
    """Queries, and what is made of several."""

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
        self.check_args(node, ("this", "expression", "distinct", "order", "limit", "offset"))
        parts: list[exp.Expr] = []
        at: exp.Expr = node
        while isinstance(at, exp.Union) and (at is node or not _orders(at)):
            if at.args.get("distinct"):
                raise self.refuse("UNION without ALL", at)
            parts.append(at.args["expression"])
            at = at.this
        span = self.made(node)
        queries = [self.query(each) for each in (at, *reversed(parts))]
        found = _one_loop(queries, span) or ast.Sequence(tuple(queries), span=span)
        return self._ordered_rows(found, node, span)

    def _ordered_rows(self, rows: ast.Expression, node: exp.Union, span: Span) -> ast.Expression:
        """Rows in the order of their columns, and some of them."""
        if node.args.get("order") is not None:
            name = self.variable("row")
            keys: list[ast.OrderKey] = []
            for each in node.args["order"].expressions:
                names = names_of(each.this)
                if names is None:
                    raise self.error("rows of a UNION are ordered by the names of their columns", each)
                keys += self._keys(each, self.looked_up(ast.Variable(name, span=span), names, each))
            loop = ast.For(name, rows, span=span)
            rows = ast.Flwor((loop,), None, tuple(keys), ast.Variable(name, span=span), span=span)
        return self._limited(rows, node, span)

    # --- SELECT -------------------------------------------------------------------------------------------

    def _select(self, node: exp.Select) -> ast.Expression:
        span = self.made(node)
        first, joined = self.tables_of(node)
        tables = (first, *(each.table for each in joined))
        window = self.variable("w") if first.window is not None else None
        scope = Scope(tables, window)
        self.times = TimeColumns(node, lambda each: self._column_key(each, scope))
        columns = self._columns(node, scope)
        outputs = {each.name: each.node for each in columns or () if not _uses_name(each)}
        group = self._group(node, columns, outputs)
        aggregates = any(map(is_aggregate, node.find_all(exp.Expr))) or node.args.get("having") is not None
        if (group is not None or aggregates) and any(each.source.kind == "stream" for each in tables[1:]):
            raise self.refuse("aggregate over a join of streams", node)
        if group is None and aggregates:
            group = []
        if group is not None and columns is None:
            raise self.refuse("'*' in a query with groups", node.expressions[0])
        if group is not None and window is not None and not any(self.window_column(each, scope) for each in group):
            raise self.refuse("GROUP BY that spans windows", node.args.get("group") or node)
        conditions, clauses = self._loops(node, joined, scope)
        if group is None:
            return self._rows(node, first, scope, columns, outputs, clauses, conditions, span)
        assert columns is not None, "groups have columns by name"
        keys = [each for each in group if window is None or self.window_column(each, scope) is None]
        if window is not None and not keys and not clauses and not conditions:
            return self._windows(node, first, scope, columns, outputs, span)
        if window is None and not group:
            return self._whole(node, first, scope, columns, outputs, clauses, conditions, span)
        return self._groups(node, first, scope, columns, outputs, clauses, conditions, keys or group, span)

    def _column_key(self, node: exp.Expr, scope: Scope) -> tuple[str, ...] | None:
        """What tells a column from others: its table and names."""
        if names_of(node) is None or self.window_column(node, scope) is not None:
            return None
        try:
            table, keys = self.resolved(node, scope)
        except QueryError:
            return None  # told where it is translated
        return table.alias, *keys

    def _columns(self, node: exp.Select, scope: Scope) -> list[_Column] | None:
        """The output columns; None for rows as they are."""
        if len(node.expressions) == 1 and _is_star(node.expressions[0]):
            if scope.window is not None or (len(scope.tables) > 1 and isinstance(node.expressions[0], exp.Star)):
                raise self.refuse("'*' over a window or a join", node.expressions[0])
            return None
        found: list[_Column] = []
        for each in node.expressions:
            if _is_star(each):
                raise self.refuse("'*' beside other columns", each)
            column = _Column(self._name(each), each.this if isinstance(each, exp.Alias) else each)
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
        self, node: exp.Select, columns: Sequence[_Column] | None, outputs: dict[str, exp.Expr]
    ) -> list[exp.Expr] | None:
        """The keys of a query with groups; None for others."""
        group = node.args.get("group")
        if node.args.get("distinct") is not None:
            self.check_args(node.args["distinct"], ())
            if group is not None or columns is None or any(map(is_aggregate, node.find_all(exp.Expr))):
                raise self.refuse("DISTINCT beside groups, aggregates or '*'", node.args["distinct"])
            return [each.node for each in columns]
        if group is None:
            return None
        if any(value for name, value in group.args.items() if name != "expressions"):
            raise self.refuse("GROUPING SETS, ROLLUP and CUBE", group)
        return [self._named(each, columns or (), outputs) for each in group.expressions]

    def _named(self, node: exp.Expr, columns: Sequence[_Column], outputs: dict[str, exp.Expr]) -> exp.Expr:
        """What an output column's name or number means."""
        plain = bare(node)
        if isinstance(plain, exp.Literal) and not plain.is_string:
            number = int(str(plain.this)) if str(plain.this).isdecimal() else 0
            if not 0 < number <= len(columns):
                raise self.error(f"there is no column {plain.this}", node)
            return columns[number - 1].node
        names = names_of(plain)
        return outputs.get(names[0], plain) if names is not None and len(names) == 1 else plain

    # --- loops --------------------------------------------------------------------------------------------

    def _loops(
        self, node: exp.Select, joined: Sequence[JoinedTable], scope: Scope
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

    def _using(self, join: JoinedTable, scope: Scope) -> list[ast.Expression]:
        tables = scope.tables[0], scope.tables[-1]
        found: list[ast.Expression] = []
        for key in join.using:
            sides = [
                self.looked_up(ast.Variable(each.variable, span=self.made(join.node)), (key,), join.node)
                for each in tables
            ]
            found.append(ast.Comparison("=", *sides, span=self.made(join.node)))
        return found

    def _rows(
        self,
        node: exp.Select,
        first: SqlTable,
        scope: Scope,
        columns: Sequence[_Column] | None,
        outputs: dict[str, exp.Expr],
        clauses: Sequence[ast.Clause],
        conditions: Sequence[ast.Expression],
        span: Span,
    ) -> ast.Expression:
        """A query that gives a row for each row."""
        rows = scope.of_rows()
        result = self._object(columns, rows, span) if columns is not None else self._row_itself(node, scope, span)
        order = self._order(node, rows, columns or (), outputs)
        return self._looped(node, first, scope, [*clauses, *_wheres(conditions)], order, result, span)

    def _row_itself(self, node: exp.Select, scope: Scope, span: Span) -> ast.Expression:
        star = node.expressions[0]
        table = scope.tables[0]
        if isinstance(star, exp.Column):
            found = scope.table(star.table)
            if found is None:
                raise self.error(f"no table is called '{star.table}'", star)
            table = found
        return ast.Variable(table.variable, span=span)

    def _looped(
        self,
        node: exp.Select,
        first: SqlTable,
        scope: Scope,
        clauses: Sequence[ast.Clause],
        order: Sequence[ast.OrderKey],
        result: ast.Expression,
        span: Span,
    ) -> ast.Expression:
        """The loop over the first table around other clauses; what is ordered or counted is so for each window."""
        ordered = [*clauses, *([ast.OrderBy(tuple(order), span=span)] if order else [])]
        if scope.window is None:
            found: ast.Expression = expression_of((self.loop_over(first), *ordered), result, span)
            return self._limited(found, node, span)
        loop = ast.For(scope.window, first.source, first.window, span=first.source.span)
        members = ast.For(first.variable, ast.Variable(scope.window, span=span), span=span)
        inner = self._limited(expression_of((members, *ordered), result, span), node, span)
        return ast.Flwor((loop,), None, (), inner, span=span)

    # --- groups -------------------------------------------------------------------------------------------

    def _groups(
        self,
        node: exp.Select,
        first: SqlTable,
        scope: Scope,
        columns: Sequence[_Column],
        outputs: dict[str, exp.Expr],
        clauses: Sequence[ast.Clause],
        conditions: Sequence[ast.Expression],
        group: Sequence[exp.Expr],
        span: Span,
    ) -> ast.Expression:
        keys: list[GroupedKey] = []
        for each in group:
            value = self.value(each, scope.of_rows())
            names = names_of(each)
            keys.append(GroupedKey(each, value, self.variable(names[-1] if names is not None else "key")))
        grouped = replace(scope, keys=tuple(keys))
        self.rows = Rows()
        having = self._having(node, replace(grouped, outputs=outputs))
        order = self._order(node, grouped, columns, outputs)
        result = self._object(columns, grouped, span)
        lets, self.rows = self.rows.lets, None
        by = tuple(ast.GroupKey(each.variable, self.present(each.value), span=self.made(each.node)) for each in keys)
        more = [*clauses, *_wheres(conditions), *lets, ast.GroupBy(by, span=span), *_wheres(having)]
        return self._looped(node, first, scope, more, order, result, span)

    def _windows(
        self,
        node: exp.Select,
        first: SqlTable,
        scope: Scope,
        columns: Sequence[_Column],
        outputs: dict[str, exp.Expr],
        span: Span,
    ) -> ast.Expression:
        """A row for each window, of which all rows are one group."""
        assert scope.window is not None
        whole = replace(first, variable=scope.window, window=None)
        grouped = replace(scope, tables=(whole,), keys=())
        self.rows = Rows()
        having = self._having(node, replace(grouped, outputs=outputs))
        self._order(node, grouped, columns, outputs)  # of one row
        result = self._object(columns, grouped, span)
        self.rows = None
        loop = ast.For(scope.window, first.source, first.window, span=first.source.span)
        found = expression_of((loop, *_wheres(having)), result, span)
        return found if node.args.get("limit") is None else self._limited_row(found, node)

    def _limited_row(self, found: ast.Expression, node: exp.Select) -> ast.Expression:
        raise self.error("a window has one row here", node.args["limit"], "leave LIMIT out, or group by a column")

    def _whole(
        self,
        node: exp.Select,
        first: SqlTable,
        scope: Scope,
        columns: Sequence[_Column],
        outputs: dict[str, exp.Expr],
        clauses: Sequence[ast.Clause],
        conditions: Sequence[ast.Expression],
        span: Span,
    ) -> ast.Expression:
        """One row of a whole stream."""
        loops = [self.loop_over(first), *clauses]
        plain = [each for each in loops if isinstance(each, ast.For)]
        if len(plain) < len(loops):
            raise self.refuse("aggregate of a whole stream with LEFT JOIN", node)
        grouped = replace(scope, keys=())
        self.rows = Rows(tuple(plain), tuple(conditions))
        having = self._having(node, replace(grouped, outputs=outputs))
        result = self._object(columns, grouped, span)
        self.rows = None
        if not having:
            return result
        test = having[0] if len(having) == 1 else ast.And(tuple(having), span=span)
        return ast.If(test, result, ast.Sequence((), span=span), span=span)

    def _having(self, node: exp.Select, scope: Scope) -> list[ast.Expression]:
        having = node.args.get("having")
        return [] if having is None else self.conjuncts(having.this, scope)

    # --- results ------------------------------------------------------------------------------------------

    def _object(self, columns: Sequence[_Column], scope: Scope, span: Span) -> ast.Call:
        parts: list[ast.Expression] = []
        for each in columns:
            parts += (ast.String(each.name, span=self.made(each.node)), self.value(each.node, scope))
        return ast.Call(OBJECT, tuple(parts), span=span)

    def _order(
        self, node: exp.Select, scope: Scope, columns: Sequence[_Column], outputs: dict[str, exp.Expr]
    ) -> list[ast.OrderKey]:
        """The keys of ORDER BY; a name means an output column first."""
        order = node.args.get("order")
        if order is None:
            return []
        self.check_args(order, ("expressions",))
        named = {each.name: each.node for each in columns}
        keys: list[ast.OrderKey] = []
        for each in order.expressions:
            self.check_args(each, ("this", "desc", "nulls_first"))
            keys += self._keys(each, self.operand(self._named(each.this, columns, named), scope))
        return keys

    def _keys(self, node: exp.Ordered, value: ast.Expression) -> list[ast.OrderKey]:
        """The keys that put NULL where it is asked for: by default behind all else, and first where that is turned."""
        span, descending = self.made(node), bool(node.args.get("desc"))
        key = ast.OrderKey(self.present(value), descending, span=span)
        greatest = bool(node.args.get("nulls_first")) == descending
        if not greatest or _is_there(value):
            return [key]
        return [ast.OrderKey(call("op:empty-rank", (key.key,), span), descending, span=span), key]

    def _limited(self, rows: ast.Expression, node: exp.Expr, span: Span) -> ast.Expression:
        """The rows that LIMIT and OFFSET let through."""
        limit, offset = node.args.get("limit"), node.args.get("offset")
        if limit is None and offset is None:
            return rows
        if limit is not None and not isinstance(limit, exp.Limit):
            raise self.refuse("FETCH", limit)
        first = 0 if offset is None else self._whole_number(offset.expression)
        tests: list[ast.Expression] = []
        position = call("position", (), span)
        if first:
            tests.append(ast.Comparison(">", position, ast.Number(str(first), span=span), span=span))
        if limit is not None:
            last = first + self._whole_number(limit.expression)
            tests.append(ast.Comparison("<=", position, ast.Number(str(last), span=span), span=span))
        if not tests:
            return rows
        test = tests[0] if len(tests) == 1 else ast.And(tuple(tests), span=span)
        return ast.Filter(rows, (ast.Positional(test, span=span),), span=span)

    def _whole_number(self, node: exp.Expr) -> int:
        plain = bare(node)
        if isinstance(plain, exp.Literal) and not plain.is_string and _WHOLE.fullmatch(str(plain.this)):
            return int(str(plain.this))
        raise self.error("LIMIT and OFFSET take a whole number", node)


def _wheres(conditions: Sequence[ast.Expression]) -> list[ast.Where]:
    if not conditions:
        return []
    one = conditions[0] if len(conditions) == 1 else ast.And(tuple(conditions), span=_around(conditions))
    return [ast.Where(one, span=one.span)]


def _around(parts: Sequence[ast.Expression]) -> Span:
    return Span(min(each.span.start for each in parts), max(each.span.end for each in parts))


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def _uses_name(column: _Column) -> bool:
    """Whether an output column is made of a column of its own name, which then is what the name means."""
    return any(names_of(each) == (column.name,) for each in column.node.walk())


def _orders(node: exp.Expr) -> bool:
    return any(node.args.get(each) is not None for each in ("order", "limit", "offset"))


def _is_there(value: ast.Expression) -> bool:
    """Whether a value is never NULL."""
    match value:
        case ast.Number() | ast.String():
            return True
        case ast.Call(name):
            return name in ("count", "window-start", "window-end")
        case _:
            return False


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
