"""The key of a session, where a query reads nothing else of the session's items (LAWS 3.9).

    for $w in stream("s")/r/i |t gap 60 by user| return <s user="{ $w[1]/user }">{ count($w) }</s>

All items of a session have the same text at the path of its key, or none of them has any.
So `distinct-values($w/user)` is that text, wherever it stands, and so is `$w[1]/user` wherever only the value of a node
counts: in an attribute, and in `data()`.
`with_key` puts a variable in the place of these, so the items may be forgotten.
A `let` that names such a node counts as the node.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from anabranch.language import ast
from anabranch.language.rewrite import bindings_in, rebuild

KEY = "#key"
"""The variable that stands for the key; no query can write this name."""
_ENDS = (ast.Number("1"), ast.Call("last", ()), ast.Call("fn:last", ()))
"""Positions of items that every session has."""


def with_key(flwor: ast.Flwor, clause: ast.For) -> ast.Flwor:
    """An expression with a variable in the place of the key of the sessions that `clause` goes over."""
    window = clause.window
    assert isinstance(window, ast.SessionWindow), "only these have keys"
    if window.by is None or window.by.start is not None or any(step.tail for step in window.by.steps):
        return flwor
    whole = ast.Path(ast.Variable(clause.variable), window.by.steps)

    def is_one(node: ast.Expression) -> bool:
        """Whether it is the node with the key in one item of the session."""
        match node:
            case ast.Path(ast.Filter(ast.Variable(name), (ast.Positional(place),)), steps):
                return name == clause.variable and steps == whole.steps and place in _ENDS
            case ast.Filter(path, (ast.Positional(place),)):
                return path == whole and place in _ENDS
            case _:
                return False

    def atomized(node: ast.Expression) -> ast.Expression:
        """The rewritten form of an expression of whose nodes only the values count."""
        match node:
            case ast.Sequence(items):
                return replace(node, items=tuple(map(atomized, items)))
            case _ if is_one(node):
                return ast.Variable(KEY, span=node.span)
            case _:
                return node

    def in_attribute(part: ast.Characters | ast.Enclosed) -> ast.Characters | ast.Enclosed:
        found: ast.Characters | ast.Enclosed = visit(part)
        return replace(found, value=atomized(found.value)) if isinstance(found, ast.Enclosed) else found

    def visit(node: Any) -> Any:
        match node:
            case ast.Call("distinct-values" | "fn:distinct-values", (path,)) if path == whole:
                return ast.Variable(KEY, span=node.span)
            case ast.Call("data" | "fn:data", (one,)) if is_one(one):
                return ast.Variable(KEY, span=node.span)
            case ast.Enclosed(ast.Call("string" | "fn:string", (one,))) if is_one(one):  # here empty equals no text
                return replace(node, value=ast.Variable(KEY, span=node.span))
            case ast.AttributeConstructor(_, value):
                return replace(node, value=tuple(map(in_attribute, value)))
            case ast.For() if node is clause:
                return node
            case _:
                return rebuild(node, visit)

    bound = bindings_in(flwor)
    names = {
        each.variable: each.value
        for each in flwor.clauses
        if isinstance(each, ast.Let) and bound[each.variable] == 1 and is_one(each.value)
    }

    def named(node: Any) -> Any:
        """A part of the query with such a node in the place of each name for it."""
        match node:
            case ast.Variable(name) if name in names:
                return names[name]
            case ast.For() if node is clause:
                return node
            case _:
                return rebuild(node, named)

    clauses = tuple(each for each in flwor.clauses if not isinstance(each, ast.Let) or each.variable not in names)
    found: ast.Flwor = visit(named(replace(flwor, clauses=clauses)) if names else flwor)
    return found
