"""Equality in a join: which entries of another stream an entry can meet at all.

Where `$x/a = $y/b` is one of the conditions that must all hold, an entry of `$x` need only be held against those
entries of `$y` that have a key in common with it: for the others the condition is false, whatever the rest of it says
or raises (LAWS 2.4).
That is so for a `for` over the other stream, with the condition in `where`, and for `some ... satisfies`, wherever it
stands.
Texts are compared as they are written (LAWS 2.3), and paths lead to nothing but text that has no type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from anabranch.language import ast
from anabranch.language.rewrite import parts
from anabranch.law.paths import base_of


@dataclass(frozen=True, slots=True)
class Key:
    """What finds the keys of an entry, and of an entry of the other stream."""

    own: ast.Expression
    other: ast.Expression


def key_between(flwor: ast.Flwor, stream: str, other: str) -> Key | None:
    """The key by which entries of a stream meet those of another, each read once."""
    bindings = _bindings(flwor)
    place = next(place for place, clause in enumerate(flwor.clauses) if isinstance(clause, ast.For))
    first = flwor.clauses[place]
    if bindings[first.variable] != 1 or not _reads(first, stream):
        return None
    for name, source, conditions in _meetings(flwor, place):
        if bindings[name] != 1 or base_of(source) != ast.Source("stream", other) or _variables(source):
            continue
        for condition in conditions:
            if not isinstance(condition, ast.Comparison) or condition.operator != "=":
                continue
            for one, two in ((condition.left, condition.right), (condition.right, condition.left)):
                if _is_path_from(one, first.variable) and _is_path_from(two, name):
                    own = ast.Flwor(flwor.clauses[: place + 1], None, (), one)
                    return Key(own, ast.Flwor((ast.For(name, source),), None, (), two))
    return None


def _bindings(flwor: ast.Flwor) -> Counter[str]:
    """How often names are bound."""
    found: Counter[str] = Counter()
    for part in parts(flwor):
        match part:
            case ast.For(name) | ast.Let(name):
                found[name] += 1
            case ast.Quantified(_, bindings):
                found.update(name for name, _ in bindings)
    return found


def _meetings(flwor: ast.Flwor, place: int) -> Iterator[tuple[str, ast.Expression, tuple[ast.Expression, ...]]]:
    """The variables that run over something behind the first `for`, and the conditions that must all hold for them."""
    for clause in flwor.clauses[place + 1 :]:
        if isinstance(clause, ast.For):
            yield clause.variable, clause.source, _all_of(flwor.where)
    for part in parts(flwor):
        if isinstance(part, ast.Quantified) and part.kind == "some":
            for name, source in part.bindings:
                yield name, source, _all_of(part.condition)


def _all_of(condition: ast.Expression | None) -> tuple[ast.Expression, ...]:
    match condition:
        case None:
            return ()
        case ast.And(operands):
            return tuple(each for operand in operands for each in _all_of(operand))
        case _:
            return (condition,)


def _is_path_from(expression: ast.Expression, variable: str) -> bool:
    return (
        isinstance(expression, ast.Path | ast.Variable)
        and base_of(expression) == ast.Variable(variable)
        and _variables(expression) == 1
        and not any(isinstance(part, ast.Source | ast.Call) for part in parts(expression))
    )


def _variables(expression: ast.Expression) -> int:
    return sum(isinstance(part, ast.Variable) for part in parts(expression))


def _reads(node: ast.For | ast.Let, stream: str) -> bool:
    return any(part == ast.Source("stream", stream) for part in parts(node))
