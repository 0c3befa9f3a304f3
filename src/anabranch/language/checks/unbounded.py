"""Which expressions flow: those whose nodes come straight from a stream.

A `for` over such an expression runs in rounds, one per item, window or pair; everything else is evaluated at once.
A path with a temporal qualifier is a bounded piece of the past.
An aggregate over a stream is a single value, so it does not flow, though it has to wait for the stream's end; the same
holds for groups, and for positions in the results of a loop.

Union, `intersect` and `except` of paths over streams flow: an item is in the result or not, whatever the others are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from anabranch.language import ast
from anabranch.language.rewrite import parts


def flows(
    expression: ast.Expression,
    variables: frozenset[str] = frozenset(),
    functions: Mapping[str, ast.Function] | None = None,
) -> bool:
    """Whether `expression` flows, where `variables` are those that are bound to what flows."""
    return _Flow(functions or {}).expression(expression, variables)


def flowing_fors(
    flwor: ast.Flwor, variables: frozenset[str] = frozenset(), functions: Mapping[str, ast.Function] | None = None
) -> tuple[int, ...]:
    """The places of the `for` clauses that run over a stream, among all clauses."""
    return _Flow(functions or {}).clauses(flwor, variables)[0]


def qualified(path: ast.Path | ast.Filter) -> bool:
    """Whether a path asks for versions or times, which bounds what has to be remembered."""
    tails = (path.tail,) if isinstance(path, ast.Filter) else (step.tail for step in path.steps)
    return any(isinstance(each, ast.Qualifier) for tail in tails for each in tail)


SETS = frozenset(("op:union", "op:intersect", "op:except"))
"""The operators between sets of nodes."""


def set_streams(expression: ast.Expression) -> tuple[str, ...]:
    """The streams, each once, of an expression that makes a set of paths over streams; none for any other."""
    found = _set_sources(expression)
    is_set = found is not None and any(isinstance(each, ast.Call) and each.name in SETS for each in _way(expression))
    return tuple(dict.fromkeys(each.name for each in found)) if is_set and found is not None else ()


def set_paths(expression: ast.Expression) -> tuple[ast.Expression, ...]:
    """The paths that set operators make an expression of; itself where there are none."""
    match expression:
        case ast.Call(name, operands) if name in SETS:
            return tuple(path for each in operands for path in set_paths(each))
        case _:
            return (expression,)


def _way(expression: ast.Expression | None) -> Iterator[ast.Expression]:
    """An expression and what it begins with, down to a source or to set operators."""
    while expression is not None:
        yield expression
        match expression:
            case ast.Path(start):
                expression = start
            case ast.Filter(base):
                expression = base
            case _:
                return


def _set_sources(expression: ast.Expression | None) -> list[ast.Source] | None:
    match expression:
        case ast.Source("stream"):
            return [expression]
        case ast.Path(start) if not qualified(expression):
            return _set_sources(start)
        case ast.Filter(base, tail) if not qualified(expression):
            return None if any(isinstance(each, ast.Positional) for each in tail) else _set_sources(base)
        case ast.Call(name, operands) if name in SETS:
            found = [_set_sources(each) for each in operands]
            known = [each for each in found if each is not None]
            return [source for each in known for source in each] if len(known) == len(found) else None
        case _:
            return None


def is_loop(expression: ast.Expression) -> bool:
    """Whether an expression is a loop, or a choice from the results of one."""
    while isinstance(expression, ast.Filter):
        expression = expression.base
    return isinstance(expression, ast.Flwor)


def readers(functions: Mapping[str, ast.Function]) -> frozenset[str]:
    """The functions that read a stream, themselves or through those they call."""
    inside = {name: list(parts(function.body)) for name, function in functions.items()}
    calls = {name: {each.name for each in found if isinstance(each, ast.Call)} for name, found in inside.items()}
    reading = {
        name for name, found in inside.items() if any(isinstance(each, ast.Source) and flows(each) for each in found)
    }
    while more := {name for name, called in calls.items() if name not in reading and called & reading}:
        reading |= more
    return frozenset(reading)


def readings(node: Any, reading: Collection[str]) -> list[ast.Source | ast.Call]:
    """Where in a part of a query a stream is read, by itself or by one of the functions that `reading` names."""
    return [
        part
        for part in parts(node)
        if (isinstance(part, ast.Source) and part.kind == "stream")
        or (isinstance(part, ast.Call) and part.name in reading)
    ]


class _Flow:
    """Looks at each expression once, and at each function once per set of arguments that flow.

    Without that, functions that call the next one twice, or nested `let`s, would take time without bound.
    """

    def __init__(self, functions: Mapping[str, ast.Function]) -> None:
        self._functions = functions
        self._calls: dict[tuple[str, frozenset[str]], bool] = {}

    def expression(self, expression: ast.Expression, variables: frozenset[str]) -> bool:
        match expression:
            case ast.Source(kind):
                return kind == "stream"
            case ast.Variable(name):
                return name in variables
            case ast.Path(start):
                return start is not None and self.expression(start, variables) and not qualified(expression)
            case ast.Filter(base, tail):
                counted = any(isinstance(each, ast.Positional) for each in tail)  # positions need the whole sequence
                return not counted and self.expression(base, variables) and not qualified(expression)
            case ast.Sequence(items):
                return any(self.expression(each, variables) for each in items)
            case ast.If(_, then, otherwise):
                return self.expression(then, variables) or self.expression(otherwise, variables)
            case ast.Call(name) if name in SETS:
                return bool(set_streams(expression))
            case ast.Call(name, arguments) if name in self._functions:
                given = zip(self._functions[name].parameters, arguments, strict=False)
                return self._call(name, frozenset(p for p, each in given if self.expression(each, variables)))
            case ast.Flwor():
                places, inside = self.clauses(expression, variables)
                return bool(places) or self.expression(expression.result, inside)
            case _:
                return False

    def clauses(self, flwor: ast.Flwor, variables: frozenset[str]) -> tuple[tuple[int, ...], frozenset[str]]:
        """The places of the `for`s over streams, and the variables that flow behind all clauses.

        A variable of `let` is the whole stream and flows on; that of a `for` is one item of it.
        """
        places: list[int] = []
        for place, clause in enumerate(flwor.clauses):
            match clause:
                case ast.For(name, source):
                    if self.expression(source, variables):
                        places.append(place)
                    variables -= {name}
                case ast.Let(name, value):
                    variables = variables | {name} if self.expression(value, variables) else variables - {name}
        return tuple(places), variables

    def _call(self, name: str, flowing: frozenset[str]) -> bool:
        key = name, flowing
        if key not in self._calls:
            self._calls[key] = self.expression(self._functions[name].body, flowing)
        return self._calls[key]
