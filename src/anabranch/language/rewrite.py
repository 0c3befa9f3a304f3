"""Rewritings that leave a query's meaning alone and spare everybody after it a case.

`with_input` names the input that a query's own `.` and `/` mean; `flatten` turns loops that are directly nested into
the clauses of one expression, which is how joins are written (sharing paper, 5.1.2); `with_plain_names` makes two
queries equal that differ in the names of their variables only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any

from anabranch.errors import Span
from anabranch.language import ast


def with_input(query: ast.Query, source: ast.Source) -> ast.Query:
    """Replace the context item at the query's top by an input.

    `./a/b` and `/a/b` become `stream("s")/a/b`.
    """

    def visit(node: Any) -> Any:
        match node:
            case ast.Predicate():
                return node  # inside a predicate `.` is the node looked at
            case ast.TimeWindow():
                return node
            case ast.ContextItem() | ast.Root():
                return replace(source, span=node.span)
            case ast.Path(None):
                return replace(rebuild(node, visit), start=replace(source, span=node.span))
            case _:
                return rebuild(node, visit)

    return replace(query, body=visit(query.body))


def flatten(query: ast.Query) -> ast.Query:
    """`for $x in a return for $y in b return c` becomes `for $x in a for $y in b return c`."""

    def visit(node: Any) -> Any:
        node = rebuild(node, visit)
        match node:
            case ast.Flwor(clauses, where, (), ast.Flwor(order=()) as inner):  # an inner order holds per outer round
                names = {clause.variable for clause in clauses}
                if any(clause.variable in names for clause in inner.clauses) or (where and not _flat(inner)):
                    return node
                joined = ast.And((where, inner.where)) if where and inner.where else where or inner.where
                return ast.Flwor((*clauses, *inner.clauses), joined, (), inner.result, span=node.span)
            case _:
                return node

    return replace(query, body=visit(query.body))


def _flat(inner: ast.Flwor) -> bool:
    """Whether moving a condition from outside behind these clauses keeps errors where they are."""
    return all(isinstance(clause, ast.For) for clause in inner.clauses)


def with_plain_names(query: ast.Query) -> ast.Query:
    """Variables are called `v0`, `v1`, ... in the order in which their names first stand there.

    Different names stay different, so what is bound where does not change, nor does what hides what.
    """
    names: dict[str, str] = {}

    def plain(name: str) -> str:
        return names.setdefault(name, f"v{len(names)}")

    def visit(node: Any) -> Any:
        match node:
            case ast.Variable(name):
                return replace(node, name=plain(name))
            case ast.For(name) | ast.Let(name):
                return rebuild(replace(node, variable=plain(name)), visit)
            case ast.Quantified(_, bindings):
                found = tuple((plain(name), visit(value)) for name, value in bindings)
                return replace(node, bindings=found, condition=visit(node.condition))
            case ast.Function(_, parameters):
                return rebuild(replace(node, parameters=tuple(map(plain, parameters))), visit)
            case _:
                return rebuild(node, visit)

    return visit(query)  # type: ignore[no-any-return]  # a query remains one


def rebuild(node: Any, visit: Callable[[Any], Any]) -> Any:
    """The node with each part replaced by `visit(part)`; a node whose parts stay is itself."""
    if isinstance(node, tuple):
        parts = tuple(visit(each) for each in node)
        return node if all(new is old for new, old in zip(parts, node, strict=True)) else parts
    if not is_dataclass(node):
        return node
    changed = {}
    for each in fields(node):
        old = getattr(node, each.name)
        new = visit(old)
        if new is not old:
            changed[each.name] = new
    return replace(node, **changed) if changed else node  # type: ignore[type-var]


_PARTS: dict[type, tuple[str, ...] | None] = {}


def _part_names(kind: type) -> tuple[str, ...] | None:
    """The names of the fields that hold parts of a node; None for what is no node. Asked often, so remembered."""
    if kind not in _PARTS:
        names = getattr(kind, "__dataclass_fields__", None)
        _PARTS[kind] = None if names is None else tuple(name for name in names if name != "span")
    return _PARTS[kind]


def parts(node: Any) -> Iterator[Any]:
    """A node and everything in it that is a node of the tree, from the outside in."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, tuple):
            pending.extend(reversed(each))
        elif (names := _part_names(type(each))) is not None:
            yield each
            pending.extend(getattr(each, name) for name in reversed(names))


def deepest(node: Any, calls: Mapping[str, int] = MappingProxyType({})) -> tuple[int, Span]:
    """How many constructs stand inside one another, and the place where they are most.

    Each clause of a FLWR expression counts, for it holds those behind it; `calls` says how deep functions go.
    This does not recurse, because it guards what does.
    """
    most, place = 0, ast.NOWHERE
    pending: list[tuple[Any, int, Span]] = [(node, 0, place)]
    while pending:
        each, depth, span = pending.pop()
        if isinstance(each, tuple):
            pending += [(part, depth, span) for part in each]
        elif (names := _part_names(type(each))) is not None:
            depth, span = depth + 1, getattr(each, "span", span)
            if isinstance(each, ast.Flwor):
                depth += len(each.clauses)
            elif isinstance(each, ast.Quantified):
                depth += len(each.bindings)
            elif isinstance(each, ast.Call):
                depth += calls.get(each.name, 0)
            if depth > most:
                most, place = depth, span
            pending += [(getattr(each, name), depth, span) for name in names]
    return most, place
