"""Which expressions flow: those whose nodes come straight from a stream.

A `for` over such an expression runs in rounds, one per item, window or pair; everything else is evaluated at once.
A path with a temporal qualifier is a bounded piece of the past.
An aggregate over a stream is a single value, so it does not flow, though it has to wait for the stream's end.
"""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.language import ast


def flows(
    expression: ast.Expression,
    variables: frozenset[str] = frozenset(),
    functions: Mapping[str, ast.Function] | None = None,
) -> bool:
    """Whether `expression` flows, where `variables` are those that are bound to what flows."""
    known = functions or {}

    def inner(each: ast.Expression) -> bool:
        return flows(each, variables, functions)

    match expression:
        case ast.Source(kind):
            return kind == "stream"
        case ast.Variable(name):
            return name in variables
        case ast.Path(start):
            return start is not None and inner(start) and not qualified(expression)
        case ast.Filter(base):
            return inner(base) and not qualified(expression)
        case ast.Sequence(items):
            return any(map(inner, items))
        case ast.If(_, then, otherwise):
            return inner(then) or inner(otherwise)
        case ast.Call(name, arguments) if name in known:
            function = known[name]
            given = zip(function.parameters, arguments, strict=False)
            return flows(function.body, frozenset(p for p, argument in given if inner(argument)), functions)
        case ast.Flwor():
            if flowing_fors(expression, variables, functions):
                return True
            return flows(expression.result, bound(expression, variables, functions), functions)
        case _:
            return False


def qualified(path: ast.Path | ast.Filter) -> bool:
    """Whether a path asks for versions or times, which bounds what has to be remembered."""
    tails = (path.tail,) if isinstance(path, ast.Filter) else (step.tail for step in path.steps)
    return any(isinstance(each, ast.Qualifier) for tail in tails for each in tail)


def bound(
    flwor: ast.Flwor, variables: frozenset[str], functions: Mapping[str, ast.Function] | None = None
) -> frozenset[str]:
    """The variables that flow inside the expression: a `let` keeps a stream, a `for` takes it apart."""
    for clause in flwor.clauses:
        match clause:
            case ast.Let(name, value) if flows(value, variables, functions):
                variables |= {name}
            case ast.Let(name) | ast.For(name):
                variables -= {name}
    return variables


def flowing_fors(
    flwor: ast.Flwor, variables: frozenset[str] = frozenset(), functions: Mapping[str, ast.Function] | None = None
) -> tuple[int, ...]:
    """The places of the `for` clauses that run over a stream, among all clauses."""
    found: list[int] = []
    for place, clause in enumerate(flwor.clauses):
        match clause:
            case ast.For(_, source) if flows(source, variables, functions):
                found.append(place)
        variables = bound(ast.Flwor((clause,), None, (), flwor.result), variables, functions)
    return tuple(found)
