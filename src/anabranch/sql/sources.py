"""FROM: streams, documents, windows and joins (LAWS 8.6).

A name is that of a document where there is one, and else of a stream.
`TUMBLE`, `HOP` and `SESSION` are windows on a stream; rows of two streams meet where ON bounds the distance of their
times, and any row meets those of a table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from anabranch.errors import Span
from anabranch.language import ast
from anabranch.language.objects import step_to
from anabranch.sql.aggregates import SqlAggregates
from anabranch.sql.naming import kind_of, refused_name
from anabranch.sql.scope import SqlTable, names_of
from anabranch.sql.times import bare, interval_of
from anabranch.values.times import DayTimeDuration

_WINDOWS = ("TUMBLE", "HOP", "SESSION")
_ANY = ast.NameTest("*")


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A table behind the first, and the conditions on it."""

    table: SqlTable
    on: exp.Expr | None
    using: tuple[str, ...]
    optional: bool
    """Whether rows without a partner stay."""
    node: exp.Expr


class SqlSources(SqlAggregates):
    """The tables of a query."""

    documents: Collection[str] = ()

    def tables_of(self, select: exp.Select) -> tuple[SqlTable, list[JoinedTable]]:
        """The first table of a query, and those that are joined with it."""
        source = select.args.get("from_")
        if source is None:
            raise self.refuse("SELECT without FROM", select)
        first = self._table(source.this)
        joined = [self._joined_table(each) for each in select.args.get("joins") or ()]
        tables = [first, *(each.table for each in joined)]
        for number, each in enumerate(tables):
            if any(other.alias == each.alias for other in tables[:number]):
                node = joined[number - 1].node
                raise self.error(f"two tables are called '{each.alias}'", node, "give one another name with AS")
        if first.source.kind == "doc":
            raise self.error(f"'{first.alias}' is a table", source.this, "begin with the stream, and join the table")
        for join in joined:
            is_stream = join.table.source.kind == "stream"
            if is_stream and (first.window is not None or join.table.window is not None):
                raise self.refuse("join of windows", join.node)
            if is_stream and join.optional:
                raise self.refuse("outer join of streams", join.node)
        return first, joined

    def _joined_table(self, node: exp.Join) -> JoinedTable:
        if node.args.get("method"):
            raise self.refuse(f"{node.args['method']} JOIN".upper(), node)
        side = str(node.args.get("side") or "").upper()
        if side in ("RIGHT", "FULL"):
            raise self.refuse("RIGHT or FULL JOIN", node)
        kind = str(node.args.get("kind") or "").upper()
        if kind in ("SEMI", "ANTI"):
            raise self.refuse("SEMI or ANTI JOIN", node)
        if kind not in ("", "INNER", "CROSS", "OUTER"):
            raise self.refuse(f"{kind} JOIN", node)
        self.check_args(node, ("this", "side", "kind", "on", "using"))
        using = tuple(each.name for each in node.args.get("using") or ())
        return JoinedTable(self._table(node.this), node.args.get("on"), using, side == "LEFT", node)

    def _table(self, node: exp.Expr) -> SqlTable:
        if not isinstance(node, exp.Table):
            raise self.refuse(refused_name(node, self.text, self.span(node).start), node)
        if node.args.get("db") is not None:
            raise self.refuse("schema in front of a stream", node.args["db"])
        self.check_args(node, ("this", "alias"))
        alias = node.args.get("alias")
        if alias is not None:
            self.check_args(alias, ("this",))
        if isinstance(node.this, exp.Identifier):
            name = node.this.name
            kind = "doc" if name in self.documents else "stream"
            shown = alias.this.name if alias is not None else name
            source = ast.Source("doc" if kind == "doc" else "stream", name, span=self.made(node.this))
            return SqlTable(shown, source, self.variable(shown))
        return self._windowed(node, alias)

    # --- windows ------------------------------------------------------------------------------------------

    def _windowed(self, node: exp.Table, alias: exp.Expr | None) -> SqlTable:
        function = node.this
        word = str(function.this).upper() if isinstance(function, exp.Anonymous) else ""
        if word not in _WINDOWS:
            raise self.error(f"'{kind_of(function)}' is no table", node, f"windows are {', '.join(_WINDOWS)}")
        arguments: list[exp.Expr] = function.expressions
        counts = {"TUMBLE": (3,), "HOP": (4,), "SESSION": (3, 4)}[word]
        if len(arguments) not in counts:
            hint = {
                "TUMBLE": "as in TUMBLE(s, ts, INTERVAL '1 MINUTE')",
                "HOP": "as in HOP(s, ts, INTERVAL '1 MINUTE', INTERVAL '5 MINUTES'), the step before the size",
                "SESSION": "as in SESSION(s, ts, INTERVAL '30 SECONDS', key)",
            }[word]
            raise self.error(
                f"{word} takes {' or '.join(map(str, counts))} arguments, not {len(arguments)}", node, hint
            )
        names = names_of(arguments[0])
        if names is None or len(names) > 1:
            raise self.error(f"{word} takes the name of a stream", arguments[0])
        if names[0] in self.documents:
            raise self.error(f"'{names[0]}' is a table, which has no windows", arguments[0])
        source = ast.Source("stream", names[0], span=self.made(arguments[0]))
        shown = alias.this.name if alias is not None else names[0]
        return SqlTable(shown, source, self.variable(shown), self._window(word, arguments, self.made(function)))

    def _window(self, word: str, arguments: list[exp.Expr], span: Span) -> ast.TimeWindow | ast.SessionWindow:
        reference = self._path(arguments[1])
        if word == "SESSION":
            by = self._path(arguments[3]) if len(arguments) > 3 else None
            return ast.SessionWindow(reference, self._amount(arguments[2]), by, span=span)
        if word == "TUMBLE":
            return ast.TimeWindow(reference, self._amount(arguments[2]), span=span)
        step, size = self._amount(arguments[2]), self._amount(arguments[3])
        return ast.TimeWindow(reference, size, None if step == size else step, span=span)

    def _path(self, node: exp.Expr) -> ast.Path:
        """The path from a row to a column."""
        names = names_of(bare(node))
        if names is None:
            raise self.error("a window takes a column here", node)
        span = self.made(node)
        return ast.Path(None, tuple(step_to(each, span) for each in names), span=span)

    def _amount(self, node: exp.Expr) -> ast.Amount:
        """The size of a window: an interval, or a number in the units of its column."""
        match bare(node):
            case exp.Interval() as interval:
                found = interval_of(interval)
                if found is None:
                    raise self.error("this is no interval", node, "as in INTERVAL '5 MINUTES'")
                if not isinstance(found, DayTimeDuration):
                    raise self.refuse("months as the size of a window", node)
                return ast.Duration(str(found), span=self.made(node))
            case exp.Literal() as literal if not literal.is_string:
                return ast.Number(str(literal.this), span=self.made(node))
        raise self.error("the size of a window is an interval or a number", node, "as in INTERVAL '1 MINUTE'")

    # --- loops --------------------------------------------------------------------------------------------

    def loop_over(self, table: SqlTable) -> ast.For:
        """The loop over the rows of a table."""
        span = table.source.span
        if table.source.kind == "stream":
            return ast.For(table.variable, table.source, table.window, span=span)
        return ast.For(table.variable, self._records(table), span=span)

    def _records(self, table: SqlTable) -> ast.Path:
        span = table.source.span
        return ast.Path(
            table.source, (ast.Step("child", _ANY, span=span), ast.Step("child", _ANY, span=span)), span=span
        )

    def optional_loop(self, table: SqlTable, name: str, on: ast.Expression | None) -> ast.PositionalFor:
        """The loop over rows of a table for which a condition holds, `name` is their variable in it; or over nothing,
        once."""
        span = table.source.span
        rows: ast.Expression = self._records(table)
        if on is not None:
            loop = ast.For(name, self._records(table), span=span)
            rows = ast.Flwor((loop,), on, (), ast.Variable(name, span=span), span=span)
        return ast.PositionalFor(table.variable, None, rows, True, span=span)
