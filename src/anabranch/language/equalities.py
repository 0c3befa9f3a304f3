"""Equalities between streams: what bounds a join by keys, `$x/k = $y/k` (LAWS 3.5).

An equality counts where it is one of the conditions that must all hold, and compares a value of one variable with one
of another: where it is false, so is the whole condition, whatever the rest says or raises (LAWS 2.4).
So items need only be compared with those that have a key in common with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anabranch.language import ast
from anabranch.language.objects import LOOKUP
from anabranch.language.rewrite import conjuncts, parts


@dataclass(frozen=True, slots=True)
class KeyTerm:
    """A value of one variable: a path from it, or keys that are looked up in it."""

    variable: str
    value: ast.Expression


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Two values that must be equal, of different variables."""

    left: KeyTerm
    right: KeyTerm


def tied_by_keys(flwor: ast.Flwor, variables: Sequence[str]) -> bool:
    """Whether the condition of an expression ties all `variables`, each bound once, together by equalities."""
    names = [clause.variable for clause in flwor.clauses]
    return all(names.count(each) == 1 for each in variables) and bool(join_keys(flwor.where, variables))


def join_keys(where: ast.Expression | None, variables: Sequence[str]) -> tuple[KeyPair, ...]:
    """The equalities by which a condition ties all `variables` together; none where some are left out."""
    found: list[KeyPair] = []
    for condition in conjuncts(where):
        if isinstance(condition, ast.Comparison) and condition.operator == "=":
            left, right = _term(condition.left, variables), _term(condition.right, variables)
            if left is not None and right is not None and left.variable != right.variable:
                found.append(KeyPair(left, right))
    tied = connected(((each.left.variable, each.right.variable) for each in found), variables)
    return tuple(found) if tied else ()


def connected(pairs: Iterable[tuple[str, str]], variables: Sequence[str]) -> bool:
    """Whether pairs, taken in both directions, lead from each variable to all others."""
    edges = {edge for a, b in pairs for edge in ((a, b), (b, a))}
    reached = {variables[0]}
    for _ in variables:
        reached |= {b for a, b in edges if a in reached}
    return set(variables) <= reached


def is_path_from(expression: ast.Expression, variable: str) -> bool:
    """Whether an expression is a path from a variable, and reads nothing else."""
    if not isinstance(expression, ast.Path | ast.Variable) or number_of_variables(expression) != 1:
        return False
    if any(isinstance(part, ast.Source | ast.Call) for part in parts(expression)):
        return False
    base: ast.Expression | None = expression
    while isinstance(base, ast.Path | ast.Filter):
        base = base.start if isinstance(base, ast.Path) else base.base
    return base == ast.Variable(variable)


def number_of_variables(expression: ast.Expression) -> int:
    """How often variables stand in an expression."""
    return sum(isinstance(part, ast.Variable) for part in parts(expression))


def _term(expression: ast.Expression, variables: Sequence[str]) -> KeyTerm | None:
    base = expression
    while isinstance(base, ast.Call) and base.name == LOOKUP and isinstance(base.arguments[1], ast.String):
        base = base.arguments[0]
    is_lookup = base is not expression
    for variable in variables:
        if base == ast.Variable(variable) if is_lookup else is_path_from(expression, variable):
            return KeyTerm(variable, expression)
    return None
