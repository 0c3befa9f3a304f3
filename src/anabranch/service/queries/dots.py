"""Queries over JSON with paths, `$o/amount > 5`, as queries with dots, `$o.amount > 5`, and back.

Both ask the same of most items, but not of all: a path finds text, and a dot the value with its type, so they differ
where a value is `null`, an array, or a string of digits (LAWS 7.1).
So what is turned is never called exact, and only what is asked for its value is turned at all: an element that is given
back as such has no twin with dots, and is refused by its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from anabranch.errors import Unsupported
from anabranch.language import ast
from anabranch.language.objects import LOOKUP, MEMBER, MEMBERS, step_to
from anabranch.language.rewrite import parts, rebuild
from anabranch.stream.reading.json_names import key_of_step

_OF_VALUES = frozenset(
    (
        *("data", "string", "number", "sum", "avg", "min", "max", "median", "stddev", "distinct-values", "concat"),
        *("contains", "starts-with", "ends-with", "upper-case", "lower-case", "string-length", "substring", "round"),
        *("floor", "ceiling", "abs", "normalize-space", "xs:dateTime", "xs:integer", "xs:decimal", "xs:double"),
    )
)
"""Functions that ask nodes for their values."""


def with_dots(query: ast.Query, text: str, json: Collection[str]) -> ast.Query:
    """A query with a lookup for each path into an item of these streams; `Unsupported` where that cannot be."""
    rows = frozenset(_rows(query, json, text))

    def dotted(node: Any) -> ast.Expression | None:
        """A path into an item as a lookup; None for all else."""
        if not isinstance(node, ast.Path) or not isinstance(node.start, ast.Variable) or node.start.name not in rows:
            return None
        found: ast.Expression = node.start
        for step in node.steps:
            key = _key(step)
            if key is None:
                raise Unsupported("a step like this has no twin with dots", text=text, span=step.span)
            found = ast.Call(LOOKUP, (found, ast.String(key, span=step.span)), span=node.span)
        return found

    def value(node: Any) -> Any:
        return dotted(node) or visit(node)

    def visit(node: Any) -> Any:
        if isinstance(node, ast.Call) and node.name in ("data", "fn:data") and len(node.arguments) == 1:
            found = dotted(node.arguments[0])
            if found is not None:
                return found
        if dotted(node) is not None:
            raise Unsupported("this gives elements, and dots give values", text=text, span=node.span, hint=_HINT)
        if isinstance(node, ast.Path) and not isinstance(node.start, ast.Source):
            raise Unsupported("a path like this has no twin with dots", text=text, span=node.span)
        return _at_values(node, visit, value)

    return _rebuilt(query, visit)


_HINT = "data(...) gives the value"


def with_paths(query: ast.Query, text: str, json: Collection[str]) -> ast.Query:
    """A query with a path for each lookup in an item of these streams; `Unsupported` where that cannot be."""
    rows = frozenset(_rows(query, json, text))

    def stepped(node: Any) -> ast.Path | None:
        """A lookup in an item as a path; None for all else."""
        steps: list[ast.Step] = []
        at = node
        while isinstance(at, ast.Call) and at.name == LOOKUP and isinstance(at.arguments[1], ast.String):
            steps.append(step_to(at.arguments[1].value, at.span))
            at = at.arguments[0]
        if not steps or not isinstance(at, ast.Variable) or at.name not in rows:
            return None
        return ast.Path(at, tuple(reversed(steps)), span=node.span)

    def value(node: Any) -> Any:
        return stepped(node) or visit(node)

    def visit(node: Any) -> Any:
        found = stepped(node)
        if found is not None:
            return ast.Call("data", (found,), span=found.span)
        if isinstance(node, ast.Call) and node.name in _ONLY_DOTS:
            raise Unsupported("this has no twin with paths", text=text, span=node.span)
        if isinstance(node, ast.Call) and node.name == "non-null":
            raise Unsupported("paths do not tell null from an empty text", text=text, span=node.span)
        return _at_values(node, visit, value)

    return _rebuilt(query, visit)


_ONLY_DOTS = frozenset((LOOKUP, MEMBER, MEMBERS))


def _rebuilt(query: ast.Query, visit: Any) -> ast.Query:
    found: ast.Query = rebuild(query, visit)
    return found


def _at_values(node: Any, visit: Any, value: Any) -> Any:
    """The parts of a node, turned: those that are asked for their values by `value`, all others by `visit`."""
    match node:
        case ast.Comparison() | ast.Arithmetic() | ast.Negation() | ast.OrderKey() | ast.GroupKey():
            return rebuild(node, lambda part: _each(part, value))
        case ast.Call(name) if name.removeprefix("fn:") in _OF_VALUES:
            return rebuild(node, lambda part: _each(part, value))
        case ast.TimeWindow() | ast.SessionWindow() | ast.CountWindow():
            return node
        case _:
            return rebuild(node, visit)


def _each(part: Any, turned: Any) -> Any:
    """A part that may be several, as the operands of a sum are."""
    if isinstance(part, tuple):
        return rebuild(part, lambda each: _each(each, turned))
    return turned(part)


def _rows(query: ast.Query, json: Collection[str], text: str) -> Iterator[str]:
    """The variables whose values are items of streams of JSON, or windows of them."""
    bound: dict[str, int] = {}
    loops = [each for each in parts(query) if isinstance(each, ast.For | ast.PositionalFor | ast.Let)]
    for each in loops:
        bound[each.variable] = bound.get(each.variable, 0) + 1
    found: set[str] = set()
    for each in loops:
        if not isinstance(each, ast.For):
            continue
        match each.source:
            case ast.Source("stream", name) | ast.Path(ast.Source("stream", name), (_, _)) if name in json:
                pass
            case ast.Variable(name) if name in found:
                pass
            case _:
                continue
        if bound[each.variable] > 1:
            raise Unsupported(
                f"'${each.variable}' is bound twice", text=text, span=each.span, hint="rename one of them"
            )
        found.add(each.variable)
        yield each.variable


def _key(step: ast.Step) -> str | None:
    match step:
        case ast.Step("child", ast.NameTest(name, None), (), False) if name != "*":
            return key_of_step(name)
        case ast.Step("attribute", ast.NameTest(name, None), (), False) if name != "*":
            return key_of_step(f"@{name}")
        case _:
            return None
