"""ORDER BY, LIMIT and OFFSET (LAWS 8.7)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from anabranch.errors import Span
from anabranch.language import ast
from anabranch.sql.functions import call
from anabranch.sql.scope import SqlScope, names_of
from anabranch.sql.sources import SqlSources
from anabranch.sql.times import bare

_WHOLE = re.compile("[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """An output column."""

    name: str
    node: exp.Expr


class SqlOrder(SqlSources):
    """The order of rows, and how many there are."""

    def order(self, node: exp.Select, scope: SqlScope, columns: Sequence[OutputColumn]) -> list[ast.OrderKey]:
        """The keys of ORDER BY; a name means an output column first."""
        order = node.args.get("order")
        if order is None:
            return []
        self.check_args(order, ("expressions",))
        named = {each.name: each.node for each in columns}
        keys: list[ast.OrderKey] = []
        for each in order.expressions:
            self.check_args(each, ("this", "desc", "nulls_first"))
            if isinstance(each.this, exp.Column) and each.this.sql().upper() == "ALL":
                raise self.refuse("ORDER BY ALL", each)
            keys += self.order_keys(each, self.operand(self.named(each.this, columns, named), scope))
        return keys

    def order_keys(self, node: exp.Ordered, value: ast.Expression) -> list[ast.OrderKey]:
        """The keys that put NULL where it is asked for: by default behind all else, and first where that is turned."""
        span, descending = self.made(node), bool(node.args.get("desc"))
        key = ast.OrderKey(self.present(value), descending, span=span)
        greatest = bool(node.args.get("nulls_first")) == descending
        if not greatest or _is_there(value):
            return [key]
        return [ast.OrderKey(call("op:empty-rank", (key.key,), span), descending, span=span), key]

    def limited(self, rows: ast.Expression, node: exp.Expr, span: Span) -> ast.Expression:
        """The rows that LIMIT and OFFSET let through."""
        limit, offset = node.args.get("limit"), node.args.get("offset")
        if limit is None and offset is None:
            return rows
        if limit is not None and not isinstance(limit, exp.Limit):
            raise self.refuse("FETCH", limit)
        for each in (limit, offset):
            if each is not None:
                self.check_args(each, ("expression",))
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

    def named(self, node: exp.Expr, columns: Sequence[OutputColumn], outputs: Mapping[str, exp.Expr]) -> exp.Expr:
        """What an output column's name or number means."""
        plain = bare(node)
        if isinstance(plain, exp.Literal) and not plain.is_string:
            number = int(str(plain.this)) if str(plain.this).isdecimal() else 0
            if not 0 < number <= len(columns):
                raise self.error(f"there is no column {plain.this}", node)
            return columns[number - 1].node
        names = names_of(plain)
        return outputs.get(names[0], plain) if names is not None and len(names) == 1 else plain


def _is_there(value: ast.Expression) -> bool:
    """Whether a value is never NULL."""
    match value:
        case ast.Number() | ast.String():
            return True
        case ast.Call(name):
            return name in ("count", "window-start", "window-end")
        case _:
            return False
