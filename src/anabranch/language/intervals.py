"""Interval conditions: what bounds a join of streams that have no windows (figure 11 of the sharing paper).

`$x/t - $y/t <= 10 and $y/t - $x/t <= 10` says that items further apart never meet, so that each may be forgotten
once the other stream is far enough.
Any linear writing counts, as `$x/t >= $y/t - 10 and $x/t <= $y/t + 10`.
Equality does not: it compares text, and equal keys may lie any time apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from anabranch.language import ast
from anabranch.language.printer import print_path

_Term: TypeAlias = tuple[str, str]
_Linear: TypeAlias = dict[_Term, Fraction]
"""Variable and path, with the factor they have; constants do not matter here."""


def bounded(where: ast.Expression | None, variables: Sequence[str]) -> bool:
    """Whether a condition ties all `variables` together by intervals that are closed on both sides."""
    above: set[tuple[_Term, _Term]] = set()
    for conjunct in _conjuncts(where):
        above |= set(_upper_bounds(conjunct))
    tied = [(left[0], right[0]) for left, right in above if (right, left) in above]
    reached = {variables[0]}
    for _ in variables:
        reached |= {b for a, b in tied if a in reached}
    return set(variables) <= reached


def _conjuncts(where: ast.Expression | None) -> Iterator[ast.Expression]:
    match where:
        case None:
            return
        case ast.And(operands):
            for each in operands:
                yield from _conjuncts(each)
        case _:
            yield where


def _upper_bounds(condition: ast.Expression) -> Iterator[tuple[_Term, _Term]]:
    """The pairs (p, q) for which the condition says p - q <= some constant."""
    if not isinstance(condition, ast.Comparison) or condition.operator in ("=", "!="):
        return
    left, right = _linear(condition.left), _linear(condition.right)
    if left is None or right is None:
        return
    difference = _added(left, right, -1)
    match sorted(((factor, term) for term, factor in difference.items() if factor), reverse=True):
        case [(high, p), (low, q)] if high == -low and p[0] != q[0]:
            yield (p, q) if condition.operator in ("<", "<=") else (q, p)


def _linear(expression: ast.Expression) -> _Linear | None:
    match expression:
        case ast.Number():
            return {}
        case ast.Path(ast.Variable(name)):
            return {(name, print_path(replace(expression, start=None))): Fraction(1)}
        case ast.Negation(operand):
            inner = _linear(operand)
            return None if inner is None else _added({}, inner, -1)
        case ast.Arithmetic(first, rest) if rest[0][0] in ("+", "-"):
            total = _linear(first)
            for operator, operand in rest:
                part = _linear(operand)
                if total is None or part is None:
                    return None
                total = _added(total, part, 1 if operator == "+" else -1)
            return total
        case _:
            return None


def _added(left: _Linear, right: _Linear, sign: int) -> _Linear:
    total = dict(left)
    for term, factor in right.items():
        total[term] = total.get(term, Fraction(0)) + sign * factor
    return total
