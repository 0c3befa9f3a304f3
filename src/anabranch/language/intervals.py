"""Interval conditions: what bounds a join of streams that have no windows (figure 11 of the sharing paper).

`$x/t - $y/t <= 10 and $y/t - $x/t <= 10` says that items further apart never meet, so that each may be forgotten
once the other stream is far enough.
Any linear writing counts, as `$x/t >= $y/t - 10 and $x/t <= $y/t + 10`.
Equality does not: it compares text, and equal keys may lie any time apart (`equalities.py`).
A value may be looked up, `$x.t`, or be a time, `xs:dateTime($x.t)`; distances of times are durations.
What is looked up may be a string, and strings are compared as such; so `$x.t <= $y.t` bounds nothing unless the same
two values are computed with as well, which only numbers are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from anabranch.language import ast
from anabranch.language.equalities import connected
from anabranch.language.objects import LOOKUP, step_to
from anabranch.language.rewrite import conjuncts
from anabranch.values.instants import length_seconds

_LARGEST = 400
"""Constants with more digits before the point are beyond every double, and bound nothing."""


@dataclass(frozen=True, slots=True)
class PathTerm:
    """The value at a path below a variable."""

    variable: str
    path: ast.Path
    is_time: bool = False
    """Whether it is read as a dateTime, so that distances are seconds."""
    is_looked_up: bool = False
    """Whether it may be a string."""


@dataclass(frozen=True, slots=True)
class Bound:
    """`left - right <= most`, in true numbers.

    A condition computes in doubles, so it may also hold for values that exceed the bound by a rounding error.
    """

    left: PathTerm
    right: PathTerm
    most: Fraction
    is_sure: bool = True
    """Whether the values are numbers or times where the condition holds."""


def bounded(where: ast.Expression | None, variables: Sequence[str]) -> bool:
    """Whether a condition ties all `variables` together by intervals that are closed on both sides."""
    return ties(interval_bounds(where, variables), variables)


def interval_bounds(where: ast.Expression | None, variables: Sequence[str]) -> tuple[Bound, ...]:
    """What a condition says of the distances between values of different `variables`."""
    found = [bound for conjunct in conjuncts(where) if (bound := _bound(conjunct))]
    sure = {frozenset((each.left, each.right)) for each in found if each.is_sure}
    return tuple(
        each
        for each in found
        if {each.left.variable, each.right.variable} <= set(variables) and frozenset((each.left, each.right)) in sure
    )


def ties(bounds: Iterable[Bound], variables: Sequence[str]) -> bool:
    """Whether bounds in both directions lead from each variable to all others."""
    above = {(each.left, each.right) for each in bounds}
    return connected(((left.variable, right.variable) for left, right in above if (right, left) in above), variables)


def _bound(condition: ast.Expression) -> Bound | None:
    if not isinstance(condition, ast.Comparison) or condition.operator in ("=", "!="):
        return None
    left, right = _linear(condition.left), _linear(condition.right)
    if left is None or right is None:
        return None
    if condition.operator in (">", ">="):
        left, right = right, left
    difference = left.plus(right, -1)  # at most 0, says the condition
    match sorted(((factor, term) for term, factor in difference.factors.items() if factor), key=lambda each: each[0]):
        case [(low, q), (high, p)] if high == -low and p.variable != q.variable and p.is_time == q.is_time:
            computes = any(isinstance(each, ast.Arithmetic) for each in (condition.left, condition.right))
            return Bound(p, q, -difference.constant / high, computes or not (p.is_looked_up and q.is_looked_up))
    return None


def path_term(expression: ast.Expression) -> PathTerm | None:
    """The value at a path, or at keys that are looked up one after the other."""
    keys: list[ast.Step] = []
    while isinstance(expression, ast.Call) and expression.name == LOOKUP:
        expression, key = expression.arguments
        if not isinstance(key, ast.String) or key.value.startswith("@"):
            return None
        keys.append(step_to(key.value))
    match expression:
        case ast.Variable(name) if keys:
            return PathTerm(name, ast.Path(None, tuple(reversed(keys))), is_looked_up=True)
        case ast.Path(ast.Variable(name)) if not keys:
            return PathTerm(name, replace(expression, start=None))
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Linear:
    """A sum of values, each with a factor, and a constant."""

    factors: dict[PathTerm, Fraction]
    constant: Fraction = Fraction(0)

    def plus(self, other: _Linear, sign: int) -> _Linear:
        total = dict(self.factors)
        for term, factor in other.factors.items():
            total[term] = total.get(term, Fraction(0)) + sign * factor
        return _Linear(total, self.constant + sign * other.constant)


def _linear(expression: ast.Expression) -> _Linear | None:
    match expression:
        case ast.Number(text):
            number = Decimal(text)
            if number.adjusted() > _LARGEST:
                return None
            return _Linear({}, Fraction(0) if number.adjusted() < -_LARGEST else Fraction(number))
        case ast.Path() | ast.Call("op:lookup"):
            term = path_term(expression)
            return None if term is None else _Linear({term: Fraction(1)})
        case ast.Call("xs:dateTime", (argument,)):
            term = path_term(argument)
            return None if term is None else _Linear({replace(term, is_time=True, is_looked_up=False): Fraction(1)})
        case ast.Call("xs:dayTimeDuration", (ast.String(text),)):
            seconds = length_seconds(text)
            return None if seconds is None else _Linear({}, seconds)
        case ast.Negation(operand):
            inner = _linear(operand)
            return None if inner is None else _Linear({}).plus(inner, -1)
        case ast.Arithmetic(first, rest) if rest[0][0] in ("+", "-"):
            total = _linear(first)
            for operator, operand in rest:
                part = _linear(operand)
                if total is None or part is None:
                    return None
                total = total.plus(part, 1 if operator == "+" else -1)
            return total
        case _:
            return None
