"""Loops over context items: `a ! b`, and paths whose steps are expressions, `a/string()`.

Both evaluate an expression for each of some items, with that item as the context item.
They are read as plain loops, in which a variable stands for the context item, so nothing behind the parser needs to
know them:

    $p/a/string()        for $item in $p/a return string($item)
    (1, 2) ! (. + 1)     for $item in (1, 2) return $item + 1

What a path gives is in document order; where the loop may leave that, `op:in-order` is around it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from anabranch.errors import Span
from anabranch.language import ast
from anabranch.language.positions import asks_position
from anabranch.language.rewrite import rebuild
from anabranch.language.signatures import GIVING, SIGNATURES

Fresh = Callable[[str], str]
"""Gives a name that no variable has."""


def mapped(source: ast.Expression, body: ast.Expression, fresh: Fresh, span: Span) -> ast.Expression:
    """`source ! body`"""
    name = fresh("item")
    if not asks_position(body):
        inside = with_context(body, ast.Variable(name, span=span))
        return ast.Flwor((ast.For(name, source, span=source.span),), None, (), inside, span=span)
    items, place = fresh("items"), fresh("place")
    last = ast.Call("count", (ast.Variable(items),), span=span)
    inside = with_context(body, ast.Variable(name, span=span), ast.Variable(place), last)
    clauses: tuple[ast.Clause, ...] = (
        ast.Let(items, source, span=source.span),
        ast.PositionalFor(name, place, ast.Variable(items), span=source.span),
    )
    return ast.Flwor(
        clauses[:1],  # type: ignore[arg-type]  # it is the `let`
        None,
        (),
        ast.Pipeline(clauses[1:], inside, span=span),
        span=span,
    )


def stepped(source: ast.Expression | None, body: ast.Expression, fresh: Fresh, span: Span) -> ast.Expression:
    """`source/body`, where the body is no step; values come in the order of the source, nodes in document order."""
    nodes = ast.ContextItem(span=span) if source is None else source
    if not isinstance(nodes, ast.Path | ast.Variable | ast.ContextItem | ast.Source | ast.Filter):
        nodes = ast.Call("op:nodes", (nodes,), span=span)
    loop = mapped(nodes, body, fresh, span)
    ordered = isinstance(loop, ast.Flwor) and isinstance(loop.clauses[0], ast.For) and _keeps_order(nodes, loop)
    return loop if ordered else ast.Call("op:in-order", (loop,), span=span)


def _keeps_order(nodes: ast.Expression, loop: ast.Flwor) -> bool:
    """Whether a loop over nodes gives values, or nodes that come in document order anyway."""
    if _gives_values(loop.result):
        return True
    if not isinstance(nodes, ast.Path) or not isinstance(nodes.start, ast.Source):
        return False
    apart = all(step.axis == "child" and not step.deep for step in nodes.steps)
    return apart and _is_below(loop.result, loop.clauses[0].variable)


def _gives_values(expression: ast.Expression) -> bool:
    match expression:
        case ast.String() | ast.Number() | ast.Arithmetic() | ast.Negation() | ast.Cast() | ast.Comparison():
            return True
        case ast.And() | ast.Or() | ast.Quantified():
            return True
        case ast.Call(name):
            plain = name.removeprefix("fn:")
            return plain in SIGNATURES and plain not in GIVING and not SIGNATURES[plain].makes_nodes
        case ast.If(_, then, otherwise):
            return _gives_values(then) and _gives_values(otherwise)
        case _:
            return False


def _is_below(expression: ast.Expression, variable: str) -> bool:
    """Whether an expression gives nodes at or below that of a variable, in document order."""
    match expression:
        case ast.Variable(name):
            return name == variable
        case ast.Path(ast.Variable(name), steps):
            return name == variable and not any(step.axis in ast.CLIMBING for step in steps)
        case ast.Call("op:union" | "op:intersect" | "op:except", operands):
            return all(_is_below(each, variable) for each in operands)
        case _:
            return False


def with_context(
    body: ast.Expression,
    item: ast.Expression,
    position: ast.Expression | None = None,
    last: ast.Expression | None = None,
) -> ast.Expression:
    """An expression with other expressions in the place of its context item, and of that item's position."""

    def visit(node: Any) -> Any:
        match node:
            case ast.Predicate() | ast.Positional() | ast.TimeWindow() | ast.SessionWindow() | ast.InlineFunction():
                return node  # these have a context item of their own
            case ast.Call("op:try", arguments):
                return replace(node, arguments=tuple(_inside_try(each, visit) for each in arguments))
            case ast.ContextItem():
                return replace_span(item, node.span)
            case ast.Root():
                return ast.Call("root", (replace_span(item, node.span),), span=node.span)
            case ast.Path(None, _):
                return replace(rebuild(node, visit), start=replace_span(item, node.span))
            case ast.Call(name, ()):
                plain = name.removeprefix("fn:")
                if plain == "position" and position is not None:
                    return position
                if plain == "last" and last is not None:
                    return last
                if plain in SIGNATURES and SIGNATURES[plain].context:
                    return replace(node, arguments=(replace_span(item, node.span),))
                return node
            case _:
                return rebuild(node, visit)

    found: ast.Expression = visit(body)
    return found


def _inside_try(argument: ast.Expression, visit: Callable[[Any], Any]) -> ast.Expression:
    """A part of a `try`, whose functions are evaluated where they stand."""
    return rebuild(argument, visit) if isinstance(argument, ast.InlineFunction) else argument


def replace_span(node: Any, span: Span) -> Any:
    """The same node at another place."""
    return replace(node, span=span)
