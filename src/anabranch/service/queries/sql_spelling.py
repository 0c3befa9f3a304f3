"""A query in XQuery as one in SQL, for the queries that are plainly both: rows, windows and groups with aggregates.

    for $w in stream("s")|ts diff PT1M| return { "at": window-start($w), "n": count($w) }

    SELECT window_start AS at, COUNT(*) AS n FROM TUMBLE(s, ts, INTERVAL '1 MINUTE') GROUP BY window_start

It turns around what `sql/` does, construct by construct, and names the construct that it cannot.
Whoever asks reads the text back and compares the trees (`spelling.py`), so a text that means something else, however
little, is never given out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from anabranch.errors import Span, Unsupported
from anabranch.language import ast
from anabranch.language.objects import LOOKUP, OBJECT
from anabranch.language.printer import print_expression
from anabranch.stream.reading.json_names import key_of_step

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*\Z")
_WORDS = frozenset(
    (
        *("all", "and", "any", "array", "as", "asc", "at", "between", "by", "case", "cast", "current", "date", "desc"),
        *("distinct", "else", "emit", "end", "except", "exists", "false", "filter", "from", "full", "group", "having"),
        *("hop", "in", "inner", "intersect", "interval", "into", "is", "join", "left", "like", "limit", "natural"),
        *("not", "null", "offset", "on", "or", "order", "outer", "over", "right", "row", "select", "session", "set"),
        *("some", "table", "then", "time", "timestamp", "to", "true", "tumble", "union", "using", "values", "when"),
        *("where", "window", "window_end", "window_start", "with", "zone"),
    )
)
"""Words that are quoted as names."""
_UNITS = (("DAY", 86_400), ("HOUR", 3_600), ("MINUTE", 60), ("SECOND", 1))
_AGGREGATES = {"avg": "AVG", "min": "MIN", "max": "MAX", "median": "MEDIAN", "stddev": "STDDEV"}
_BOUNDS = {"window-start": "window_start", "window-end": "window_end"}
_OPERATORS = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_ARITHMETIC = {"+": "+", "-": "-", "*": "*", "div": "/", "mod": "%"}


def sql_of(query: ast.Query, text: str) -> str:
    """The query in SQL; `Unsupported` names the construct that has no place there."""
    if query.namespaces or query.functions:
        raise Unsupported("SQL has no declarations in front of a query", text=text, span=Span(0, 1))
    return _Loops.read(query.body, text).select()


def _unsaid(what: str, node: ast.Expression | ast.Clause | None, text: str) -> Unsupported:
    span = node.span if node is not None else Span(0, len(text))
    return Unsupported(f"{what} has no plain spelling in SQL", text=text, span=span)


@dataclass(slots=True)
class _Loops:
    """A loop over a stream, taken apart into what the clauses of a SELECT are made of."""

    text: str
    source: ast.Source
    rows: str
    """The variable of the rows; of a query with one row for each window, that of the window."""
    result: ast.Expression
    window: ast.Window | None = None
    windows: str | None = None
    """The variable of windows."""
    conditions: list[ast.Expression] = field(default_factory=list)
    having: list[ast.Expression] = field(default_factory=list)
    keys: Mapping[str, ast.Expression] | None = None
    """By variable of a group: its key; None where there are no groups."""
    order: tuple[ast.OrderKey, ...] = ()

    @staticmethod
    def read(body: ast.Expression, text: str) -> _Loops:
        clauses, result = _flat(body)
        if not clauses:
            raise _unsaid("a query that is no loop over a stream", body, text)
        first = clauses[0]
        source = _stream(first.source) if isinstance(first, ast.For) else None
        if not isinstance(first, ast.For) or source is None:
            raise _unsaid("a loop over something other than a stream as it is", first, text)
        found = _Loops(text, source, first.variable, result, first.window)
        if first.window is not None:
            found.windows = first.variable
        for each in clauses[1:]:
            found._take(each)
        return found

    def _take(self, clause: ast.Clause) -> None:
        match clause:
            case ast.For(name, ast.Variable(members), None) if members == self.windows and self.rows == members:
                if self.conditions:
                    raise _unsaid("a condition on windows before one on their rows", clause, self.text)
                self.rows = name
            case ast.Where(condition):
                target = self.conditions if self.keys is None else self.having
                target += condition.operands if isinstance(condition, ast.And) else (condition,)
            case ast.GroupBy(keys) if self.keys is None and all(each.value is not None for each in keys):
                self.keys = {each.variable: _without_null(each.value) for each in keys if each.value is not None}
            case ast.OrderBy(keys) if not self.order:
                self.order = keys
            case _:
                raise _unsaid("this clause", clause, self.text)

    @property
    def is_whole_window(self) -> bool:
        """Whether each window gives one row."""
        return self.windows is not None and self.rows == self.windows

    # --- the clauses of a SELECT --------------------------------------------------------------------------------

    def select(self) -> str:
        """The whole query."""
        lines = [f"SELECT {self._columns()}", f"FROM {self._from()}"]
        where, having = self.conditions, self.having
        if self.is_whole_window:
            where, having = [], self.conditions
        if where:
            lines.append(f"WHERE {self._all(where)}")
        group = [] if self.windows is None or (self.keys is None and not self.is_whole_window) else ["window_start"]
        group += [self._value(each) for each in (self.keys or {}).values()]
        if group:
            lines.append(f"GROUP BY {', '.join(dict.fromkeys(group))}")
        if having:
            lines.append(f"HAVING {self._all(having)}")
        if self.order:
            lines.append(f"ORDER BY {', '.join(map(self._ordered, self.order))}")
        return "\n".join(lines)

    def _columns(self) -> str:
        match self.result:
            case ast.Variable(name) if name == self.rows and self.windows is None and self.keys is None:
                return "*"
            case ast.Call(name, arguments) if name == OBJECT and arguments:
                pairs = zip(arguments[::2], arguments[1::2], strict=True)
                return ", ".join(self._column(key, value) for key, value in pairs)
        raise _unsaid("a result that is no object", self.result, self.text)

    def _column(self, key: ast.Expression, value: ast.Expression) -> str:
        if not isinstance(key, ast.String):
            raise _unsaid("a key that is computed", key, self.text)
        written, name = self._value(value), _named(key.value)
        is_its_own = written in (name, key.value) or written.endswith(f".{name}")
        return written if is_its_own else f"{written} AS {name}"

    def _from(self) -> str:
        stream = _named(self.source.name)
        match self.window:
            case None:
                return stream
            case ast.TimeWindow(reference, size, None):
                return f"TUMBLE({stream}, {self._reference(reference)}, {self._amount(size)})"
            case ast.TimeWindow(reference, size, ast.Number() | ast.Duration() as step):
                return f"HOP({stream}, {self._reference(reference)}, {self._amount(step)}, {self._amount(size)})"
            case ast.SessionWindow(reference, gap, by):
                key = "" if by is None else f", {self._reference(by)}"
                return f"SESSION({stream}, {self._reference(reference)}, {self._amount(gap)}{key})"
        raise Unsupported("windows of so many items have no spelling in SQL", text=self.text, span=self.source.span)

    def _reference(self, path: ast.Path) -> str:
        names = list(_keys(path)) if path.start is None else []
        if not names or None in names:
            raise _unsaid("such a reference of a window", path, self.text)
        return ".".join(_named(each) for each in names if each is not None)

    def _amount(self, amount: ast.Amount) -> str:
        if isinstance(amount, ast.Number):
            return amount.text
        seconds = amount.exact
        for unit, length in _UNITS:
            if (count := seconds / length).denominator == 1:
                return f"INTERVAL '{count.numerator} {unit}'"
        raise Unsupported("parts of a second", text=self.text, span=self.source.span)

    def _ordered(self, key: ast.OrderKey) -> str:
        return f"{self._value(key.key)}{' DESC' if key.descending else ''}"

    def _all(self, conditions: list[ast.Expression]) -> str:
        return " AND ".join(self._value(each, inner=len(conditions) > 1) for each in conditions)

    # --- expressions --------------------------------------------------------------------------------------------

    def _value(self, node: ast.Expression, *, inner: bool = False) -> str:
        """An expression; `inner` where it stands inside another one."""
        match node:
            case ast.Number(text):
                return text
            case ast.String(value):
                return "'" + value.replace("'", "''") + "'"
            case ast.Variable(name) if self.keys is not None and name in self.keys:
                return self._value(self.keys[name], inner=inner)
            case ast.Call(name, (ast.Variable(of),)) if name in _BOUNDS and of == self.windows:
                return _BOUNDS[name]
            case ast.Call(name) if name == LOOKUP:
                return self._lookup(node)
            case ast.Negation(operand):
                return f"-{self._value(operand, inner=True)}"
            case ast.Arithmetic(first, rest) if all(operator in _ARITHMETIC for operator, _ in rest):
                found = self._value(first, inner=True)
                found += "".join(f" {_ARITHMETIC[each]} {self._value(operand, inner=True)}" for each, operand in rest)
                return f"({found})" if inner else found
            case _:
                return self._aggregate(node) or self._condition(node, inner=inner)

    def _lookup(self, node: ast.Expression) -> str:
        names: list[str] = []
        while isinstance(node, ast.Call) and node.name == LOOKUP and isinstance(node.arguments[1], ast.String):
            names.append(_named(node.arguments[1].value))
            node = node.arguments[0]
        if names and isinstance(node, ast.Variable) and node.name == self.rows:
            return ".".join(reversed(names))
        raise _unsaid("a lookup in something other than a row", node, self.text)

    def _aggregate(self, node: ast.Expression) -> str | None:
        if self.keys is None and not self.is_whole_window:
            return None
        match node:
            case ast.Call("count", (ast.Variable(name),)) if name == self.rows:
                return "COUNT(*)"
            case ast.Call("count", (ast.Call("non-null", (value,)),)):
                return f"COUNT({self._value(value)})"
            case ast.Call(name, (value,)) if name in _AGGREGATES:
                return f"{_AGGREGATES[name]}({self._value(value)})"
            case ast.If(ast.Call("exists", (ast.Call("avg", (value,)),)), ast.Call("sum", (same,)), ast.Sequence(())):
                return f"SUM({self._value(value)})" if value == same else None
        return None

    def _condition(self, node: ast.Expression, *, inner: bool) -> str:
        match node:
            case ast.And(operands):
                found = " AND ".join(self._value(each, inner=True) for each in operands)
                return f"({found})" if inner else found
            case ast.Or(operands):
                found = " OR ".join(self._value(each, inner=True) for each in operands)
                return f"({found})" if inner else found
            case ast.Comparison("=", left, ast.Sequence(items)) if items:
                return f"{self._value(left, inner=True)} IN ({', '.join(map(self._value, items))})"
            case ast.Comparison(operator, left, right) if operator in _OPERATORS:
                sides = self._value(left, inner=True), self._value(right, inner=True)
                return f"{sides[0]} {_OPERATORS[operator]} {sides[1]}"
            case ast.Call("empty", (ast.Call("non-null", (value,)),)):
                return f"{self._value(value, inner=True)} IS NULL"
            case ast.Call("exists", (ast.Call("non-null", (value,)),)):
                return f"{self._value(value, inner=True)} IS NOT NULL"
            case ast.Call("starts-with" | "ends-with" | "contains" as name, (value, ast.String(sought))):
                if not set("%_\\").isdisjoint(sought):
                    raise _unsaid("a text with wildcards of SQL", node, self.text)
                before, behind = "%" * (name != "starts-with"), "%" * (name != "ends-with")
                quoted = sought.replace("'", "''")
                return f"{self._value(value, inner=True)} LIKE '{before}{quoted}{behind}'"
        shown = print_expression(node)
        raise _unsaid(f"'{shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '...'}'", node, self.text)


_SHOWN = 60


def _flat(body: ast.Expression) -> tuple[list[ast.Clause], ast.Expression]:
    """The clauses of loops inside one another, one after the other, and the result of the innermost."""
    clauses: list[ast.Clause] = []
    while isinstance(body, ast.Flwor | ast.Pipeline):
        clauses += body.clauses
        if isinstance(body, ast.Flwor):
            clauses += [] if body.where is None else [ast.Where(body.where, span=body.where.span)]
            clauses += [ast.OrderBy(body.order, span=body.span)] if body.order else []
        body = body.result
    return clauses, body


def _stream(source: ast.Expression) -> ast.Source | None:
    """A stream as it is: itself, or its items by two steps; whether all are meant, whoever reads it back will see."""
    match source:
        case ast.Source("stream"):
            return source
        case ast.Path(ast.Source("stream") as found, (root, item)) if not root.tail and not item.tail:
            return found
        case _:
            return None


def _without_null(value: ast.Expression) -> ast.Expression:
    """The key of a group, which is NULL where it is `null` or missing."""
    match value:
        case ast.Call("non-null", (inner,)):
            return inner
        case _:
            return replace(value)


def _keys(path: ast.Path) -> Iterator[str | None]:
    """The keys that the steps of a path lead to; None for a step that no key has."""
    for step in path.steps:
        match step:
            case ast.Step("child", ast.NameTest(name, None), (), False):
                yield key_of_step(name)
            case _:
                yield None


def _named(name: str) -> str:
    """A name as SQL writes it."""
    return name if _PLAIN.match(name) and name not in _WORDS else '"' + name.replace('"', '""') + '"'
