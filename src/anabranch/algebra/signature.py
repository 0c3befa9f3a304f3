"""Signatures: how an operator's reaction to accents follows from what it does with each path (accents 6).

* A *foundation* path is one that the operator cannot do without: its drop aborts the query.
* A *merge* path is one that several inputs bring: their accents are coordinated.
  Where the inputs call it by different names, as in a join, `pairs` says so.
* An *accumulator* path is one that descriptions in the output cannot name: accents described by it are accumulated
  until a description without it says the same.

What the paper adds to its signatures in words is said here, too: `absent` are the paths that the output does not have,
so no accent on them comes out, and `ignored` those that the operator does not even look at; `lets` says which unit
changes the results can follow, and `link` what hidden paths have to do with those that can be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from anabranch.predicate import EVERYTHING, Domain, Predicate
from anabranch.stream.affine import Affine
from anabranch.stream.path import Path

Policy: TypeAlias = Literal["accumulate", "abort", "absorb"]
"""What is done with accents whose description the output cannot express (LAWS 4.7)."""

Link: TypeAlias = Callable[[Sequence[Predicate]], Predicate]
"""What comparisons of hidden paths say of the paths that can be seen: of the window, when its path is hidden."""


@dataclass(frozen=True, slots=True)
class Paths:
    """These paths, or all but these; who has a path has what lies below it, too."""

    named: frozenset[Path] = frozenset()
    all_but: bool = False

    @staticmethod
    def of(named: Iterable[Path]) -> Paths:
        return Paths(frozenset(named))

    def __contains__(self, path: Path) -> bool:
        return any(path.steps[: len(each.steps)] == each.steps for each in self.named) != self.all_but

    def meets(self, path: Path) -> bool:
        """Whether a path is among these, or has one of them below it."""
        return path in self or any(each.steps[: len(path.steps)] == path.steps for each in self.named)

    def others(self) -> Paths:
        """All paths that are not among these."""
        return Paths(self.named, not self.all_but)


NO_PATHS = Paths()
ALL_PATHS = Paths(all_but=True)


@dataclass(frozen=True, slots=True)
class Signature:
    """What an operator does with paths, as far as accents are concerned."""

    foundation: Paths = NO_PATHS
    merge: Paths = NO_PATHS
    accumulator: Paths = NO_PATHS
    pairs: tuple[tuple[Path, Path], ...] = ()
    """Merge paths by input, where inputs name them differently."""
    absent: Paths = NO_PATHS
    ignored: Paths = NO_PATHS
    disjoint: bool = False
    """Whether no path may come from two inputs, but for those that are merged."""
    lets: Callable[[Path, Affine], bool] = lambda _, __: True
    link: Link = lambda _: EVERYTHING
    made: Mapping[Path, Domain] = field(default_factory=dict)
    """The paths that the operator itself gives every item, and what they hold."""

    def promised(self, inputs: Sequence[Mapping[Path, Domain]]) -> dict[Path, Domain]:
        """What is promised of all items that come in: what all inputs promise of a merge path, else what one does."""
        return {
            path: domain
            for each in inputs
            for path, domain in each.items()
            if path not in self.merge or all(other.get(path) == domain for other in inputs)
        }

    def joins(self, path: Path) -> bool:
        """Whether a path is one of a pair."""
        return any(path in pair for pair in self.pairs)

    def shows(self, path: Path) -> bool:
        """Whether the output has a path, or something below it."""
        return path not in self.absent or self.absent.others().meets(path)

    def sources(self, input: int, path: Path, arity: int) -> tuple[tuple[int, Path], ...]:
        """The paths of which inputs have to agree on an accent before it comes out."""
        for pair in self.pairs:
            if pair[input] == path:
                return tuple(enumerate(pair))
        if path in self.merge:
            return tuple((each, path) for each in range(arity))
        return ((input, path),)

    def targets(self, input: int, path: Path) -> tuple[Path, ...]:
        """The paths of the output on which an accent of an input's path comes out."""
        for pair in self.pairs:
            if pair[input] == path:
                return tuple(dict.fromkeys(pair))
        return (path,)
