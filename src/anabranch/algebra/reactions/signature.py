"""Signatures: an operator's use of each path, which determines its reaction to accents (accents 6).

* A *foundation* path is one that the operator needs: its drop aborts the query.
* A *merge* path is one that several inputs bring: their accents are coordinated.
  Where the inputs call it by different names, as in a join, `pairs` says so, with the number of each input.
* An *accumulator* path is one that descriptions in the output cannot name: accents described by it are accumulated
  until a description without it says the same.

The paper's additions to its signatures in words are here, too: `absent` are the paths that the output does not have, so
no accent on them comes out, and `ignored` those that the operator does not read; `follows` gives the effect of a unit
change of values on the results, None where it is unknown, and `link` relates hidden paths to visible ones.

A *renaming* maps the paths of the input to places in an output of another form: a path may have several places, each
with its value, or with an affine function `a*x + b` of it, `a` not 0.
Accents follow (LAWS 4.7): where `x` becomes `c*x + d`, `a*x + b` becomes `c*(a*x + b) + (a*d + b - c*b)`, whatever the
sign of `a`; adds and drops come out at every place.
Descriptions name a path by its first place as a plain copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from anabranch.algebra.accents.sets import below, replaced
from anabranch.errors import UsageError
from anabranch.predicate import EVERYTHING, Compare, Domain, Predicate
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Add, Alter, Drop
from anabranch.stream.path import Path


@dataclass(frozen=True, slots=True)
class Stands:
    """A path of the input, and a place of its value in the output."""

    of: Path
    at: Path
    a: Fraction = Fraction(1)
    b: Fraction = Fraction(0)
    is_copy: bool = True
    """Whether the nodes themselves stand there, with their content; else a computed value."""

    def follows(self, by: Affine) -> Affine:
        """The effect of a unit change of the path on the value here."""
        return following(by, self.a, self.b)


@dataclass(frozen=True, slots=True)
class Renaming:
    """All places of the input's paths; a copy includes all that lies below."""

    stands: tuple[Stands, ...]

    def places(self, path: Path) -> Iterator[Stands]:
        """The places of a path in the output."""
        for each in self.stands:
            if path == each.of:
                yield each
            elif each.is_copy and below(path, each.of):
                yield Stands(path, Path((*each.at.steps, *path.steps[len(each.of.steps) :])))

    def seen(self, path: Path) -> Path | None:
        """The name of a path in descriptions."""
        return next((each.at for each in self.places(path) if each.is_copy), None)

    def evolutions(self, evolution: Add | Drop | Alter) -> Iterator[Add | Drop | Alter]:
        """The changes of the output for a change of a path; several where they all lie below it."""
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
    """The effect of a unit change of `x` on `a*x + b`."""
    return Affine(by.a, a * by.b + b - by.a * b)


def renamed(items: Predicate, name: Callable[[Path], Path | None]) -> Predicate:
    """A set with its paths renamed; all must have a name."""

    def tell(comparison: Compare) -> Predicate:
        named = name(comparison.term.path)
        assert named is not None, "what comes out names no hidden path"
        return replace(comparison, term=replace(comparison.term, path=named))

    return replaced(items, tell)


Policy: TypeAlias = Literal["accumulate", "abort", "absorb"]
POLICIES: tuple[Policy, ...] = ("accumulate", "abort", "absorb")
"""What is done with accents whose description the output cannot express (LAWS 4.7)."""

Link: TypeAlias = Callable[[Sequence[Predicate]], Predicate]
"""The condition on visible paths that comparisons of hidden ones imply: on the window, when its path is hidden."""


def known_policy(policy: Policy) -> Policy:
    """A policy given by a program; UsageError where it is none."""
    if policy not in POLICIES:
        raise UsageError(f"the policy '{policy}' is unknown", hint=f"use {', '.join(POLICIES)}")
    return policy


def unlinked(_: Sequence[Predicate]) -> Predicate:
    """No condition."""
    return EVERYTHING


@dataclass(frozen=True, slots=True)
class Paths:
    """These paths, or all others; a path includes all below it."""

    named: frozenset[Path] = frozenset()
    all_but: bool = False

    @staticmethod
    def of(named: Iterable[Path]) -> Paths:
        return Paths(frozenset(named))

    def __contains__(self, path: Path) -> bool:
        return any(below(path, each) for each in self.named) != self.all_but

    def meets(self, path: Path) -> bool:
        """Whether a path is among these, or has one of them below it."""
        return path in self or any(below(each, path) for each in self.named)

    def others(self) -> Paths:
        """The complement."""
        return Paths(self.named, not self.all_but)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The paths for which a function is true, where they cannot be listed."""

    choose: Callable[[Path], bool]

    def __contains__(self, path: Path) -> bool:
        return self.choose(path)

    def meets(self, path: Path) -> bool:
        """Whether a path is among these; the function considers paths below."""
        return self.choose(path)

    def others(self) -> Chosen:
        """The complement."""
        return Chosen(lambda path: not self.choose(path))


PathSet: TypeAlias = Paths | Chosen
NO_PATHS = Paths()
ALL_PATHS = Paths(all_but=True)


@dataclass(frozen=True, slots=True)
class AccentSignature:
    """An operator's use of paths, as far as accents are concerned."""

    foundation: PathSet = NO_PATHS
    merge: PathSet = NO_PATHS
    accumulator: PathSet = NO_PATHS
    pairs: tuple[tuple[tuple[int, Path], ...], ...] = ()
    """Merge paths with their inputs, where inputs name them differently."""
    absent: PathSet = NO_PATHS
    ignored: PathSet = NO_PATHS
    computes: Paths = NO_PATHS
    """The paths from which results are computed, besides the foundation: their meaning must be known."""
    disjoint: bool = False
    """Whether no path may come from two inputs, except merge paths."""
    follows: Callable[[Path, Affine], Affine | None] = lambda _, by: by
    link: Link = unlinked
    made: Mapping[Path, Domain] = field(default_factory=dict)
    """The paths that the operator adds to every item, with their domains."""

    renaming: Renaming | None = None
    """The places of paths in the output, if they move."""

    def promised(self, inputs: Sequence[Mapping[Path, Domain]]) -> dict[Path, Domain]:
        """The domains of all items that come in: common ones of a merge path, else those of any input."""
        return {
            path: domain
            for each in inputs
            for path, domain in each.items()
            if path not in self.merge or all(other.get(path) == domain for other in inputs)
        }

    def promises(self, promised: Mapping[Path, Domain]) -> dict[Path, Domain]:
        """The domains of all items that come out."""
        seen = {path: domain for path, domain in promised.items() if path not in self.accumulator}
        if self.renaming is not None:
            named = {self.renaming.seen(path): domain for path, domain in seen.items()}
            seen = {path: domain for path, domain in named.items() if path is not None}
        return {**seen, **self.made}

    def reads(self, path: Path) -> bool:
        """Whether the operator needs the meaning of the values at a path (LAWS 4.5)."""
        return self.foundation.meets(path) or (self.computes.meets(path) and path not in self.ignored)

    def joins(self, path: Path) -> bool:
        """Whether a path is one of a pair."""
        return any(path == each for pair in self.pairs for _, each in pair)

    def shows(self, path: Path) -> bool:
        """Whether the output has a path, or one below it."""
        return path not in self.absent or self.absent.others().meets(path)

    def sources(self, input: int, path: Path, arity: int) -> tuple[tuple[int, Path], ...]:
        """The inputs and paths that have to agree on an accent before it comes out."""
        for pair in self.pairs:
            if (input, path) in pair:
                return pair
        if path in self.merge:
            return tuple((each, path) for each in range(arity))
        return ((input, path),)

    def targets(self, input: int, path: Path) -> tuple[Path, ...]:
        """The output paths on which an accent of an input's path comes out."""
        for pair in self.pairs:
            if (input, path) in pair:
                return tuple(dict.fromkeys(each for _, each in pair))
        return (path,)
