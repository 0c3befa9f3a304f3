"""Lookups: the conditions of a query that choose rows of a document by a key.

    for $s in doc("sensors")/sensors/sensor where $s/@id = $r/@sensor return ...
    doc("sensors")/sensors/sensor[@id = $r/@sensor]

For an evaluation by index, of one item or of many, this module finds which path leads to the rows, which to their key,
and what the key must be equal to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from anabranch.language import ast
from anabranch.language.rewrite import children

Steps: TypeAlias = tuple[ast.Step, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """A condition that selects rows: the path to their key, and the expression that it must equal."""

    key: Steps
    sought: ast.Expression


def lookup_in(condition: ast.Expression, variable: str | None) -> Lookup | None:
    """The lookup by which a condition selects rows; None where there is none.

    A row is the value of a variable, or without one the context item.
    Operands of an `and` before the comparison with the key must take no steps.
    A path that is compared with a literal is the key only where no other comparison is: a literal chooses the same
    rows for every item, and queries of one shape differ in it.
    """
    same_for_all: Lookup | None = None
    for each in _operands(condition):
        found = _compared_key(each, variable)
        if found is not None and not _is_literal(found.sought):
            return found
        same_for_all = same_for_all or found
        if not _is_free(each):
            break
    return same_for_all


def _operands(condition: ast.Expression) -> Iterator[ast.Expression]:
    """The operands of nested `and`s, in the order in which they are evaluated."""
    if isinstance(condition, ast.And):
        for each in condition.operands:
            yield from _operands(each)
    else:
        yield condition


def _compared_key(operand: ast.Expression, variable: str | None) -> Lookup | None:
    """The lookup that a single comparison is."""
    match operand:
        case ast.Comparison("=", left, right):
            for here, there in ((left, right), (right, left)):
                key = _key_steps(here, variable)
                if key is not None and not depends(there, variable):
                    return Lookup(key, there)
    return None


def _key_steps(expression: ast.Expression, variable: str | None) -> Steps | None:
    """The steps from a row to its key."""
    match expression:
        case ast.Variable(name) if name == variable:
            return ()
        case ast.ContextItem() if variable is None:
            return ()
        case ast.Path(None, steps) if variable is None and are_plain(steps):
            return steps
        case ast.Path(ast.Variable(name), steps) if name == variable and are_plain(steps):
            return steps
        case _:
            return None


def rest_of(condition: ast.Expression, variable: str | None, lookup: Lookup) -> ast.Expression | None:
    """The condition that is left to test on the rows of a lookup; None where the lookup is all of it."""
    rest = tuple(each for each in _operands(condition) if _compared_key(each, variable) != lookup)
    return None if not rest else rest[0] if len(rest) == 1 else ast.And(rest, span=condition.span)


def are_plain(steps: Steps) -> bool:
    """Whether steps have no predicates."""
    return not any(each.tail for each in steps)


def depends(node: Any, variable: str | None) -> bool:
    """Whether a value may differ between rows; inside predicates the context item is another one anyway."""
    match node:
        case ast.Variable(name):
            return name == variable
        case ast.ContextItem() | ast.Root() | ast.Path(None) | ast.Call(_, ()) if variable is None:
            return True
        case ast.Predicate(condition) | ast.Positional(condition):
            return variable is not None and depends(condition, variable)
        case _:
            return any(depends(each, variable) for each in children(node))


def _is_free(expression: ast.Expression) -> bool:
    """Whether an operand takes no steps, whatever its value: a plain path beside a literal."""
    match expression:
        case ast.Comparison(_, left, right):
            sides = left, right
            return any(map(_is_literal, sides)) and all(_is_literal(each) or _is_plain_path(each) for each in sides)
        case _:
            return False


def _is_literal(expression: ast.Expression) -> bool:
    match expression:
        case ast.Number() | ast.String() | ast.Negation(ast.Number()):
            return True
        case _:
            return False


def _is_plain_path(expression: ast.Expression) -> bool:
    match expression:
        case ast.Variable() | ast.ContextItem():
            return True
        case ast.Path(start, steps):
            return (start is None or isinstance(start, ast.Variable)) and are_plain(steps)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class TablePath:
    """A path from a document to rows, and on; and how its first predicate selects rows."""

    source: ast.Source
    rows: Steps
    lookup: Lookup | None
    predicates: tuple[ast.Tail, ...]
    rest: Steps

    @staticmethod
    def of(path: ast.Path) -> TablePath | None:
        """A path from `doc()` by steps of which the first have no predicates."""
        if not isinstance(path.start, ast.Source) or path.start.kind != "doc" or not path.steps:
            return None
        end = next((number for number, each in enumerate(path.steps) if each.tail), len(path.steps) - 1)
        last = path.steps[end]
        if any(isinstance(each, ast.Qualifier) for taken in path.steps for each in taken.tail):
            return None
        bare = ast.Step(last.axis, last.test, (), last.deep)
        found = None
        if last.tail and isinstance(first := last.tail[0], ast.Predicate):
            found = lookup_in(first.condition, None)
        return TablePath(path.start, (*path.steps[:end], bare), found, last.tail, path.steps[end + 1 :])
