"""Lookups: paths from a document to the rows with the key of an item, compiled.

    doc("countries")/countries/country[@code = $o/country and population > 5]/name

A row that is looked up is a spot like any other, in a frame of its own (`tables/joined_look.py`).
An index replaces the comparison with the key; the rest of the condition is tested on the rows that were found, since
`and` is false where one side is (LAWS 2.4).
A loop or `some` with such a condition is compiled alike, where the law, too, tests it first for each row.

The value that is sought takes no steps in the law (LAWS 2.6): it is a path, a variable, or computed from such in one
call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anabranch.columnar.expressions.literals import simple_literal
from anabranch.columnar.expressions.objects.lookups import ObjectScope
from anabranch.columnar.expressions.spots import NotColumnar, Spot
from anabranch.columnar.expressions.tree import (
    ColumnArithmetic,
    ConstantValue,
    Expression,
    FunctionCall,
    PartText,
    has_constant,
    walk,
)
from anabranch.language import ast
from anabranch.language.lookups import Lookup, TablePath, are_plain, depends, lookup_in, rest_of

_TEXTS = ("untyped", "string")


@dataclass(frozen=True, slots=True)
class LookupScope(ObjectScope):
    """Compiles paths from documents."""

    def value(self, expression: ast.Expression) -> Expression:
        """The value of an expression that has at most one."""
        raise NotColumnar("a key that is computed")

    def table_spots(self, path: ast.Path) -> list[Spot]:
        found = _taken_apart(path)
        if found.lookup is None:
            spot = self._rows(path, found, None)
            return self._continued(spot, found.predicates, found)
        first, *others = found.predicates
        assert isinstance(first, ast.Predicate), "it has a lookup"
        rest = rest_of(first.condition, None, found.lookup)
        tail = (*([] if rest is None else [replace(first, condition=rest)]), *others)
        return self._continued(self._rows(path, found, found.lookup), tail, found)

    def looped_spots(
        self,
        name: str,
        source: ast.Expression,
        condition: ast.Expression | None,
        lets: Sequence[ast.For | ast.Let] = (),
    ) -> tuple[list[Spot], ast.Expression | None]:
        """The spots that a loop runs over, and the rest of its condition where a part of that has become a lookup.

        `lets` are the clauses between the loop and its condition.
        """
        if condition is None or not is_document(source) or not all(map(_is_harmless, lets)):
            return self.filtered_spots(source), condition
        assert isinstance(source, ast.Path), "it leads from a document"
        found, lookup = _taken_apart(source), lookup_in(condition, name)
        if lookup is None or found.predicates or any(depends(lookup.sought, each.variable) for each in lets):
            return self.filtered_spots(source), condition
        return self._continued(self._rows(source, found, lookup), (), found), rest_of(condition, name, lookup)

    def _rows(self, path: ast.Path, found: TablePath, lookup: Lookup | None) -> Spot | None:
        tables = self.work.tables
        if tables is None:
            raise NotColumnar("a document beside the stream")
        self.work.look_up(found.source.name, path)
        name, bound = found.source.name, (self.frame, self.side)
        if lookup is None:
            return tables.rows(name, found.rows, None, None, (), bound)
        return tables.rows(name, found.rows, lookup.key, *self._sought(lookup.sought), bound)

    def _sought(self, expression: ast.Expression) -> tuple[Expression, tuple[Expression, ...]]:
        """The value that a key must be equal to, and the texts that functions read to compute it."""
        found = self.value(expression)
        if has_constant(found, self.work.marks):
            raise NotColumnar("a constant that is looked up")
        if isinstance(found, ConstantValue):
            simple_literal(found)
        parts = list(walk(found))
        if isinstance(expression, ast.Variable) or not any(isinstance(each, FunctionCall) for each in parts):
            are_known = isinstance(expression, ast.Variable) or all(isinstance(each, _FREE) for each in parts)
            if not are_known:
                raise NotColumnar("a key that is computed", "a `let` of what is sought")
            return found, ()
        calls = [each for each in parts if isinstance(each, FunctionCall)]
        if len(calls) > 1 or not all(isinstance(each, (*_FREE, FunctionCall)) for each in parts):
            raise NotColumnar("a key that is computed in several calls", "a `let` of what is sought")
        texts = [each for each in parts if isinstance(each, PartText)]
        return found, tuple(dict.fromkeys([*texts, *([found] if found.kind.value in _TEXTS else [])]))

    def _continued(self, rows: Spot | None, tail: Sequence[ast.Tail], found: TablePath) -> list[Spot]:
        """The spots that the rest of a path leads to from rows, under the conditions of predicates on the rows."""
        if rows is None:
            return []
        assert self.work.tables is not None, "rows were found"
        counted = self.frame if self.work.tables.has_one_parent(rows) else None
        self.work.spend()
        return self._stepped([self._judged(rows, tail, counted)], found.rest)


_FREE = PartText, ConstantValue, ColumnArithmetic


def is_document(source: ast.Expression) -> bool:
    """Whether a path leads from a document."""
    return isinstance(source, ast.Path) and isinstance(source.start, ast.Source) and source.start.kind == "doc"


def _taken_apart(path: ast.Path) -> TablePath:
    found = TablePath.of(path)
    if found is None:
        raise NotColumnar("a path from a document that leads to no rows")
    return found


def _is_harmless(clause: ast.For | ast.Let) -> bool:
    """Whether a clause neither fails nor takes steps, for whichever row it is evaluated."""
    match clause:
        case ast.Let(_, ast.Variable()):
            return True
        case ast.Let(_, ast.Path(ast.Variable(), steps)):
            return are_plain(steps)
        case _:
            return False
