"""Tables: documents in which rows are looked up by a key, instead of scanning all of them for each item.

    for $s in doc("sensors")/sensors/sensor where $s/@id = $r/@sensor return ...
    doc("sensors")/sensors/sensor[@id = $r/@sensor]
    some $s in doc("sensors")/sensors/sensor satisfies $s/@id = $r/@sensor

For each of these the law scans all rows, most of them in vain.
`Lookups` is an evaluator that skips rows with another key, by an index over the rows of a path and the values of a key
in them, which is built once per document.
All the rest is evaluated by the law.
Where a query answers item by item, most lookups are made for thousands of items at once (`columnar/tables/`), and this
is for the rest.

The steps of an evaluation are counted exactly as by the law (LAWS 2.6): to visit a row costs a step, and to find that
its key differs costs none, where key and sought value take no steps.
So a lookup adds the steps of the rows that it skips, when and where the law would count them; the same evaluations fail
on every engine.
In case of doubt (text that is no number beside a number, a sought value that takes steps or fails, several keys in a
row beside several sought values) the law scans all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.lookups import Lookup, Steps, TablePath, lookup_in
from anabranch.law.env import Env
from anabranch.law.evaluate import Evaluator
from anabranch.law.inputs import Input
from anabranch.law.paths import step
from anabranch.law.slices import Slice
from anabranch.stream.tree import Document, Node, descendants, in_document_order
from anabranch.values.atomic import Atomic, Measured, Untyped, WrittenDouble, exact_number, to_double
from anabranch.values.sequences import Value, Values, atomize, operands

_CACHED_PLACES = 10_000
"""The number of places in queries for which the lookup is cached."""


class TableDocument(Document):
    """A document with cached rows and indexes."""

    __slots__ = ("size", "tables")

    def __init__(self, document: Document) -> None:
        """Take over the content of a document, which must not be used any more."""
        super().__init__()
        self.order = document.order
        for child in document.children:
            self.append(child)
        self.size = sum(1 for _ in descendants(self))
        self.tables: dict[tuple[Steps, tuple[tuple[str, str], ...]], TableRows] = {}

    def rows(self, steps: Steps, namespaces: Mapping[str, str]) -> TableRows:
        """The nodes that a path from the document reaches; its steps have no predicates."""
        key = steps, tuple(sorted(namespaces.items()))
        if key not in self.tables:
            self.tables[key] = TableRows(_reached([self], steps, namespaces), namespaces)
        return self.tables[key]


def as_table(given: Input) -> Input:
    """An input behind `doc()` whose rows can be looked up."""
    return Input(TableDocument(given.document))


def _reached(nodes: Sequence[Node], steps: Steps, namespaces: Mapping[str, str]) -> list[Node]:
    found = list(nodes)
    for each in steps:
        found = in_document_order([reached for node in found for reached in step(node, each, namespaces)])
    return found


class TableRows:
    """The nodes that a path reaches in a document, and the indexes over them."""

    def __init__(self, nodes: list[Node], namespaces: Mapping[str, str]) -> None:
        self.nodes = nodes
        self._namespaces = namespaces
        self._indexes: dict[Steps, RowIndex] = {}

    def by(self, key: Steps) -> RowIndex:
        """The index over the values that a path reaches in each row."""
        if key not in self._indexes:
            self._indexes[key] = RowIndex([_texts(node, key, self._namespaces) for node in self.nodes])
        return self._indexes[key]


def _texts(node: Node, key: Steps, namespaces: Mapping[str, str]) -> tuple[Atomic, ...]:
    return tuple(atomize(_reached([node], key, namespaces)))


class RowIndex:
    """The rows by key, as text and as number; `keys` are those of each row."""

    def __init__(self, keys: Sequence[tuple[Atomic, ...]]) -> None:
        self._keys = keys
        self.has_several = any(len(each) > 1 for each in keys)
        """Whether some row has more than one key."""

    def rows(self, sought: Sequence[Atomic]) -> list[int] | None:
        """The rows with one of these keys, by `=` (LAWS 2.3), in order; None in case of doubt."""
        if self._by_text is None or (len(sought) > 1 and self.has_several):
            return None
        found: list[Sequence[int]] = []
        for value in sought:
            rows = self._rows(value)
            if rows is None:
                return None
            found.append(rows)
        return list(found[0]) if len(found) == 1 else sorted({row for rows in found for row in rows})

    def _rows(self, value: Atomic) -> Sequence[int] | None:
        index: Mapping[Any, list[int]] | None
        key: Any
        match value:
            case Measured():
                index, key = self._by_number, value.measure.number
            case str():
                index, key = self._by_text, str(value)
            case WrittenDouble():
                index, key = self._by_number, value.exact
            case float():
                index, key = self._by_double, float(value)
            case int() | Decimal() if not isinstance(value, bool):
                index, key = self._by_number, value
            case _:
                return None  # booleans compare by other rules
        if index is None:
            return None
        return () if key != key else index.get(key, ())  # NaN is equal to nothing

    @cached_property
    def _by_text(self) -> Mapping[str, list[int]] | None:
        """None where a key is no text of an item."""
        if not all(type(key) is Untyped for keys in self._keys for key in keys):
            return None
        return self._arranged(str)

    @cached_property
    def _by_number(self) -> Mapping[Decimal, list[int]] | None:
        """By exact value; None where a key is no number, for then the comparison fails."""
        return self._arranged(exact_number)

    @cached_property
    def _by_double(self) -> Mapping[float, list[int]] | None:
        return None if self._by_number is None else self._arranged(to_double)

    def _arranged(self, value: Callable[[Any], Any]) -> dict[Any, list[int]] | None:
        found: dict[Any, list[int]] = {}
        for row, keys in enumerate(self._keys):
            for key in dict.fromkeys(keys):
                number = value(key)
                if number is None:
                    return None
                rows = found.setdefault(number, [])
                if not rows or rows[-1] != row:  # 1 and 1.0 in one row are one number
                    rows.append(row)
        return found


# --- lookups in queries -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Plans:
    """By the identity of an expression: its lookup; the expression is kept, so that the identity stays unique."""

    found: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def of(self, node: Any, plan: Callable[[], Any]) -> Any:
        """The result of `plan` for an expression, computed once."""
        known = self.found.get(id(node))
        if known is None:
            if len(self.found) >= _CACHED_PLACES:
                self.found.clear()
            known = self.found[id(node)] = node, plan()
        return known[1]


_paths, _loops = _Plans(), _Plans()


def _table_path(expression: ast.Expression) -> TablePath | None:
    """The parts of a path from a document."""
    if not isinstance(expression, ast.Path) or not isinstance(expression.start, ast.Source):
        return None
    found: TablePath | None = _paths.of(expression, lambda: TablePath.of(expression))
    return found


def _loop_lookup(condition: ast.Expression, variable: str) -> Lookup | None:
    """The lookup by which a condition on the values of a variable selects rows."""
    known: dict[str, Lookup | None] = _loops.of(condition, dict)
    if variable not in known:
        known[variable] = lookup_in(condition, variable)
    return known[variable]


# --- evaluation -------------------------------------------------------------------------------------------------------


class Lookups(Evaluator):
    """An evaluator of the law that visits only the rows of a `TableDocument` that can matter."""

    def walk(self, expression: ast.Expression, env: Env, part: Slice | None = None) -> Values:
        path = _table_path(expression) if part is None else None
        rows = self._table(path, env)
        if path is None or rows is None:
            return super().walk(expression, env, part)
        values = self._filtered(rows, path, env)
        for each in path.rest:
            values = self._step(values, each, env, None)
        return values

    def _filtered(self, rows: TableRows, path: TablePath, env: Env) -> Values:
        """The rows for which the predicates after them hold."""
        chosen = None if self._tests_apart or path.lookup is None else self._chosen(rows, path.lookup, env)
        if chosen is None:
            return self._filter(list(rows.nodes), path.predicates, env, None)
        first, *others = path.predicates
        assert isinstance(first, ast.Predicate), "it has a lookup"
        self.spend(len(rows.nodes))
        candidates = [rows.nodes[row] for row in chosen]
        holding: Values = [each for each in candidates if self._holds(first.condition, env.at(each))]
        return self._filter(holding, others, env, None)

    def _table(self, path: TablePath | None, env: Env) -> TableRows | None:
        """The rows that a path reaches, where they are in a table; they take part from now on."""
        document = None if path is None else self.input(path.source).document
        if path is None or not isinstance(document, TableDocument):
            return None
        self.grant_document(document)
        return document.rows(path.rows, env.namespaces)

    def looped(self, variable: str, source: ast.Expression, env: Env, asked: ast.Expression | None) -> Iterator[Value]:
        chosen: list[int] | None = None
        rows: TableRows | None = None
        path = None if asked is None else _table_path(source)
        if asked is not None and path is not None and not path.predicates:
            lookup = _loop_lookup(asked, variable)
            rows = None if lookup is None else self._table(path, env)
            chosen = None if rows is None or lookup is None else self._chosen(rows, lookup, env)
        if rows is None or chosen is None:
            yield from super().looped(variable, source, env, asked)
            return
        passed = 0
        for row in chosen:
            self.spend(row + 1 - passed)
            passed = row + 1
            yield rows.nodes[row]
        self.spend(len(rows.nodes) - passed)

    def _chosen(self, rows: TableRows, lookup: Lookup, env: Env) -> list[int] | None:
        """The rows with the key; None where the law has to scan all of them."""
        if not rows.nodes:
            return []
        before = self.left, self._granted
        sought: list[Atomic] | None = None
        with suppress(DynamicError):
            sought = operands(self.value(lookup.sought, env))
        took_none = before == (self.left, self._granted)
        self.left, self._granted = before
        return rows.by(lookup.key).rows(sought) if took_none and sought is not None else None

    def grant_document(self, document: Document) -> None:
        if isinstance(document, TableDocument):
            self._sizes[id(document)] = document.size
        super().grant_document(document)
