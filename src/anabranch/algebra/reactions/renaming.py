"""Renamings: where the paths of the input stand in the output of an operator that gives its items another form.

A path may stand in several places, each with its value, or with an affine function `a*x + b` of it, `a` not 0.
Accents follow (LAWS 4.7): where `x` becomes `c*x + d`, `a*x + b` becomes `c*(a*x + b) + (a*d + b - c*b)`, whatever the
sign of `a`; adds and drops come out at every place.
Descriptions are told by the first place at which a path stands as it is; who has none such cannot be named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from anabranch.algebra.accents.sets import below, replaced
from anabranch.predicate import Compare, Predicate
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Add, Alter, Drop
from anabranch.stream.path import Path


@dataclass(frozen=True, slots=True)
class Stands:
    """A path of the input, and where and how its value stands in the output."""

    of: Path
    at: Path
    a: Fraction = Fraction(1)
    b: Fraction = Fraction(0)
    is_copy: bool = True
    """Whether the very nodes stand there, with all that is in them; else what was computed."""

    def follows(self, by: Affine) -> Affine:
        """What a unit change of the path makes of the value here."""
        return following(by, self.a, self.b)


@dataclass(frozen=True, slots=True)
class Renaming:
    """All places at which paths of the input stand; a copy takes along what lies below."""

    stands: tuple[Stands, ...]

    def places(self, path: Path) -> Iterator[Stands]:
        """Where a path stands in the output."""
        for each in self.stands:
            if path == each.of:
                yield each
            elif each.is_copy and below(path, each.of):
                yield Stands(path, Path((*each.at.steps, *path.steps[len(each.of.steps) :])))

    def seen(self, path: Path) -> Path | None:
        """The path by which descriptions name a path."""
        return next((each.at for each in self.places(path) if each.is_copy), None)

    def evolutions(self, evolution: Add | Drop | Alter) -> Iterator[Add | Drop | Alter]:
        """What comes out for what happens to a path; to several where they all lie below it."""
        places = list(self.places(evolution.path))
        if not places:
            places = [each for each in self.stands if below(each.of, evolution.path)]
        for each in places:
            match evolution:
                case Alter(_, by):
                    yield Alter(each.at, each.follows(by))
                case _:
                    yield replace(evolution, path=each.at)

    def told(self, items: Predicate) -> Predicate:
        """A set by the names of the output."""
        return renamed(items, self.seen)


def following(by: Affine, a: Fraction, b: Fraction) -> Affine:
    """What a unit change of `x` makes of `a*x + b`."""
    return Affine(by.a, a * by.b + b - by.a * b)


def renamed(items: Predicate, name: Callable[[Path], Path | None]) -> Predicate:
    """A set with other names for its paths, all of which have one."""

    def tell(comparison: Compare) -> Predicate:
        named = name(comparison.term.path)
        assert named is not None, "what comes out names no hidden path"
        return replace(comparison, term=replace(comparison.term, path=named))

    return replaced(items, tell)
