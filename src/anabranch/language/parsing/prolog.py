"""Declarations of a prolog, rewritten into the query: variables, and the types of functions.

A variable is bound around whatever uses it; one that is a literal is written in its place, so that it costs nothing.
The type of a parameter is a conversion at the beginning of its function, that of a result one at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anabranch.language import ast
from anabranch.language.rewrite import free_variables, substituted


def with_globals(query: ast.Query, variables: Sequence[ast.Let]) -> ast.Query:
    """The query with each declared variable bound where it is used."""
    functions, body = query.functions, query.body
    lets = list(variables)
    while literal := next((each for each in lets if isinstance(each.value, ast.String | ast.Number)), None):
        name, value = literal.variable, literal.value
        functions = tuple(_with_literal(function, name, value) for function in functions)
        body = substituted(body, name, value)
        lets = [replace(each, value=substituted(each.value, name, value)) for each in lets if each is not literal]
    lets = _needed_first(lets)
    for let in reversed(lets):
        functions = tuple(
            function if let.variable in function.parameters else replace(function, body=_bound(let, function.body))
            for function in functions
        )
        body = _bound(let, body)
    return replace(query, functions=functions, body=body)


def _needed_first(lets: list[ast.Let]) -> list[ast.Let]:
    """Variables in an order in which each stands behind those that it uses, as far as there is such an order."""
    found: list[ast.Let] = []
    left = lets
    while left:
        names = {each.variable for each in left}
        ready = [each for each in left if not names & free_variables(each.value)] or left
        found += ready
        left = [each for each in left if each not in ready]
    return found


def _with_literal(function: ast.Function, name: str, value: ast.Expression) -> ast.Function:
    if name in function.parameters:
        return function
    return replace(function, body=substituted(function.body, name, value))


def _bound(let: ast.Let, body: ast.Expression) -> ast.Expression:
    """An expression with a variable bound around it, where it is used."""
    if let.variable not in free_variables(body):
        return body
    if isinstance(body, ast.Flwor):
        return replace(body, clauses=(let, *body.clauses))
    return ast.Flwor((let,), None, (), body, span=body.span)


def with_types(
    parameters: Sequence[str], types: Sequence[str | None], body: ast.Expression, result: str | None
) -> ast.Expression:
    """The body of a function that declares types."""
    if result is not None and result != "item()*":
        body = ast.Call("op:convert", (body, ast.String(result, span=body.span)), span=body.span)
    lets = tuple(
        ast.Let(name, ast.Call("op:convert", (ast.Variable(name), ast.String(kind))))
        for name, kind in zip(parameters, types, strict=True)
        if kind not in (None, "item()*") and kind is not None
    )
    return ast.Flwor(lets, None, (), body, span=body.span) if lets else body


def always_of(source: ast.Expression, declared: str) -> bool:
    """Whether each item of a path is of a type, whatever the data are."""
    match source:
        case ast.Path(_, (*_, ast.Step("child" | "descendant", ast.NameTest(local, prefix)))):
            name = f"{prefix}:{local}" if prefix else local
            plain = "item()", "node()", "element()"
            return declared in plain or (prefix != "*" and local != "*" and declared == f"element({name})")
        case _:
            return declared == "item()"
