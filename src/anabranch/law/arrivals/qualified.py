"""A path with temporal qualifiers, split at the last one: the path before it, the qualifier, the steps behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from anabranch.language import ast


@dataclass(frozen=True, slots=True)
class Qualified:
    """`base` with a qualifier behind it, and the steps and predicates behind that."""

    base: ast.Expression
    qualifier: ast.Qualifier
    behind: tuple[ast.Step | ast.Predicate, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which versions a qualifier asks for: by their numbers, the newest being 0, among those of some time."""

    first: int
    end: int | None
    """The number behind the last; None where only time counts."""
    least: Fraction | None = None
    """The least time that counts."""
    most: Fraction | None = None
    """The greatest time that counts."""

    @staticmethod
    def by(qualifier: ast.Qualifier, now: Fraction) -> Wanted:
        """The versions that a qualifier asks for when it is evaluated at `now`."""
        amount = qualifier.amount.exact
        match qualifier.kind, qualifier.window:
            case "version", False:
                return Wanted(int(amount), int(amount) + 1)
            case "version", True:
                return Wanted(0, int(amount) + 1)
            case "time", False:
                return Wanted(0, 1, most=now - amount)
            case _:
                return Wanted(0, None, least=now - amount)

    def retained(self, seconds: Fraction | None, now: Fraction) -> Wanted:
        """The same among what a stream retains for some seconds; by what time asks for, more need not be known."""
        if seconds is None or self.end is None:
            return self
        return replace(self, least=now - seconds)

    def reaches(self, time: Fraction | None) -> bool:
        """Whether a time counts; what comes from no stream has none, and is always there."""
        if time is None:
            return True
        return (self.least is None or time >= self.least) and (self.most is None or time <= self.most)


def qualified(expression: ast.Expression | None) -> Qualified | None:
    """A path at its last qualifier; None where it has none.

    `a/b#1[c]/d` is `a/b`, `#1`, and then `[c]` and `d`.
    """
    match expression:
        case ast.Path(start, steps):
            for place in reversed(range(len(steps))):
                step = steps[place]
                if (found := _last_qualifier(step.tail)) is not None:
                    bare = replace(step, tail=step.tail[:found])
                    base = replace(expression, steps=(*steps[:place], bare))
                    return _split_at(base, step.tail, found, steps[place + 1 :])
            inner = qualified(start)
            return inner and replace(inner, behind=(*inner.behind, *steps))
        case ast.Filter(base, tail):
            found = _last_qualifier(tail)
            if found is not None:
                return _split_at(replace(expression, tail=tail[:found]) if found else base, tail, found, ())
            inner = qualified(base)
            return inner and replace(inner, behind=(*inner.behind, *_predicates(tail)))
        case _:
            return None


def _last_qualifier(tail: tuple[ast.Tail, ...]) -> int | None:
    places = [place for place, each in enumerate(tail) if isinstance(each, ast.Qualifier)]
    return places[-1] if places else None


def _split_at(
    base: ast.Expression,
    tail: tuple[ast.Tail, ...],
    place: int,
    steps: tuple[ast.Step, ...],
) -> Qualified:
    qualifier = tail[place]
    assert isinstance(qualifier, ast.Qualifier)
    return Qualified(base, qualifier, (*_predicates(tail[place + 1 :]), *steps))


def _predicates(tail: tuple[ast.Tail, ...]) -> tuple[ast.Predicate, ...]:
    return tuple(each for each in tail if isinstance(each, ast.Predicate))
