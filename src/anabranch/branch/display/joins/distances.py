"""Distances in a join: conditions on two entries' numbers as sums that are at most zero where the condition holds.

    $x/a < $y/b + 3                                      $x/a - $y/b - 3 <= 0
    abs($x/a - $y/a) <= 3                                both $x/a - $y/a - 3 and $y/a - $x/a - 3
    math:sqrt(math:pow($x/a - $y/a, 2) +
              math:pow($x/b - $y/b, 2)) < 3              the same for a, and for b
    ($x/a - $y/a) * ($x/a - $y/a) < 9                    the same

No square is negative, so each of several whose sum is bounded is bounded by itself.
A distance that is a function of the query, `local:distance($x, $y) < 3`, is looked at with its parameters replaced.

All that a condition computes with must be a single number, else it fails or is never true; so what a sum does not name
itself is named beside it, to be seen to (`others`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, isqrt
from typing import Any

from anabranch.language import ast
from anabranch.language.rewrite import rebuild

_MOST_TERMS = 8
_FINE = 40
"""The binary digits behind the point of a root, which is rounded up."""


@dataclass(frozen=True, slots=True)
class LinearSum:
    """Paths with their signs, and a constant."""

    terms: tuple[tuple[int, ast.Expression], ...]
    constant: Fraction = Fraction(0)
    largest: Fraction = Fraction(0)
    """The largest constant that was written."""

    def plus(self, other: LinearSum, sign: int) -> LinearSum:
        """The sum of both, or their difference."""
        turned = tuple((sign * each, term) for each, term in other.terms)
        constant = self.constant + sign * other.constant
        return LinearSum((*self.terms, *turned), constant, max(self.largest, other.largest))

    @property
    def paths(self) -> tuple[ast.Expression, ...]:
        return tuple(term for _, term in self.terms)


_ZERO = LinearSum(())


@dataclass(frozen=True, slots=True)
class Inequality:
    """A sum that is at most zero where a condition holds."""

    sum: LinearSum
    computes: bool
    """Whether the condition computes with its numbers, which must be single values then."""
    others: tuple[ast.Expression, ...] = ()
    """The paths that it computes with beside those of the sum."""


def inequalities(
    condition: ast.Expression, functions: Mapping[str, ast.Function], shadowed: Collection[str]
) -> Iterator[Inequality]:
    """What a condition says of sums; `shadowed` are the names of functions that a user has registered."""
    match condition:
        case ast.Comparison("<" | "<=", left=small, right=large) | ast.Comparison(">" | ">=", left=large, right=small):
            pass
        case _:
            return
    small, most = _applied(small, functions), _sum(large)
    if most is None:
        return
    match small:
        case ast.Call("abs" | "fn:abs" as name, (inner,)) if name.removeprefix("fn:") not in shadowed:
            if (distance := _sum(inner)) is not None:
                yield from _within(distance, most, ())
        case ast.Call("math:sqrt" as name, (inner,)) if name not in shadowed and not most.terms:
            yield from _squared(_squares(inner, shadowed), most)
        case _ if (plain := _sum(small)) is not None:
            computes = any(isinstance(each, ast.Arithmetic) for each in (small, large))
            yield Inequality(plain.plus(most, -1), computes)
        case _ if not most.terms and most.constant >= 0:
            yield from _squared(_squares(small, shadowed), _root(most))


def _within(distance: LinearSum, most: LinearSum, others: tuple[ast.Expression, ...]) -> Iterator[Inequality]:
    for sign in (1, -1):
        yield Inequality(_ZERO.plus(distance, sign).plus(most, -1), computes=True, others=others)


def _squared(distances: list[LinearSum] | None, most: LinearSum) -> Iterator[Inequality]:
    for each in distances or ():
        yield from _within(each, most, tuple(path for other in distances or () for path in other.paths))


def _root(most: LinearSum) -> LinearSum:
    root = Fraction(isqrt(ceil(most.constant * 4**_FINE)) + 1, 2**_FINE)
    return LinearSum((), root, max(root, most.largest))


def _squares(expression: ast.Expression, shadowed: Collection[str]) -> list[LinearSum] | None:
    """What is squared in a sum of squares; None where it is something else."""
    match expression:
        case ast.Call("math:pow", (base, ast.Number(text="2"))) if "math:pow" not in shadowed:
            found = _sum(base)
            return None if found is None else [found]
        case ast.Arithmetic(first, (("*", again),)) if first == again:
            found = _sum(first)
            return None if found is None else [found]
        case ast.Arithmetic(first, rest) if all(operator == "+" for operator, _ in rest):
            several = [_squares(each, shadowed) for each in (first, *(operand for _, operand in rest))]
            return (
                None
                if len(several) > _MOST_TERMS or None in several
                else [each for one in several for each in one or ()]
            )
        case _:
            return None


def _sum(expression: ast.Expression) -> LinearSum | None:
    """An expression as a sum; None where it is something else."""
    match expression:
        case ast.Number():
            return LinearSum((), expression.exact, abs(expression.exact))
        case ast.Path() | ast.Variable():
            return LinearSum(((1, expression),))
        case ast.Arithmetic(first, rest):
            found = _sum(first)
            for operator, operand in rest:
                term = _sum(operand) if operator in ("+", "-") else None
                if found is None or term is None or len(found.terms) > _MOST_TERMS:
                    return None
                found = found.plus(term, 1 if operator == "+" else -1)
            return found
        case _:
            return None


def _applied(expression: ast.Expression, functions: Mapping[str, ast.Function]) -> ast.Expression:
    """A call of a function of the query as its body, where its arguments are paths; else the expression itself."""
    if not isinstance(expression, ast.Call) or expression.name not in functions:
        return expression
    given = dict(zip(functions[expression.name].parameters, expression.arguments, strict=True))
    if not all(isinstance(each, ast.Path | ast.Variable) for each in given.values()):
        return expression

    def visit(node: Any) -> Any:
        match node:
            case ast.Path(ast.Variable(name), steps) if name in given:
                argument = given[name]
                return (
                    replace(argument, steps=(*argument.steps, *steps))
                    if isinstance(argument, ast.Path)
                    else replace(node, start=argument)
                )
            case ast.Variable(name) if name in given:
                return given[name]
            case _:
                return rebuild(node, visit)

    found: ast.Expression = visit(functions[expression.name].body)
    return found
