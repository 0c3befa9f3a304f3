"""What an expression may result in, told from its writing: content, atomic values, attributes.

Content (elements, texts, comments) may be put side by side as it is.
Atomic values want a space between them, and attributes belong to the element around them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from anabranch.language import ast

Result: TypeAlias = Literal["content", "value", "attribute"]
Results: TypeAlias = frozenset[Result]

_CONTENT: Results = frozenset(("content",))
_VALUE: Results = frozenset(("value",))
_ATTRIBUTE: Results = frozenset(("attribute",))


def results_of(expression: ast.Expression, functions: Mapping[str, ast.Function]) -> Results:
    """All that an expression at the top of a query may result in."""
    return _Reader(functions).read(expression, {})


class _Reader:
    """Reads each function once per kinds of arguments: functions that call others twice must not cost without bound."""

    def __init__(self, functions: Mapping[str, ast.Function]) -> None:
        self._functions = functions
        self._calls: dict[tuple[str, tuple[Results, ...]], Results] = {}

    def read(self, expression: ast.Expression, names: Mapping[str, Results]) -> Results:
        match expression:
            case ast.Flwor(clauses, _, _, result):
                for clause in clauses:
                    bound = clause.source if isinstance(clause, ast.For) else clause.value
                    names = {**names, clause.variable: self.read(bound, names)}
                return self.read(result, names)
            case ast.If(_, then, otherwise):
                return self.read(then, names) | self.read(otherwise, names)
            case ast.Sequence(items):
                return frozenset[Result]().union(*(self.read(each, names) for each in items))
            case ast.Filter(base):
                return self.read(base, names)
            case ast.Path(start, steps):
                reached = _CONTENT if start is None else self.read(start, names)
                for step in steps:
                    reached = _along(reached, step)
                return reached
            case ast.Variable(name):
                return names[name]
            case ast.Call(name, arguments) if name in self._functions:
                return self._call(self._functions[name], tuple(self.read(each, names) for each in arguments))
            case ast.ElementConstructor() | ast.Source() | ast.Root() | ast.ContextItem():
                return _CONTENT
            case _:
                return _VALUE

    def _call(self, function: ast.Function, arguments: tuple[Results, ...]) -> Results:
        key = function.name, arguments
        if key not in self._calls:
            names = dict(zip(function.parameters, arguments, strict=True))
            self._calls[key] = self.read(function.body, names)
        return self._calls[key]


def _along(start: Results, step: ast.Step) -> Results:
    match step.axis:
        case "attribute":
            return _ATTRIBUTE
        case "self" | "descendant-or-self":
            return (start - _VALUE) | (_CONTENT if step.deep else frozenset())
        case _:
            return _CONTENT
