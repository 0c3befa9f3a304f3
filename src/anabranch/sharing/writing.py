"""Conditions as query text, seen from a variable or from the node that a predicate stands at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from anabranch.predicate import And, Compare, Difference, Not, Or, Predicate, Term, to_text
from anabranch.stream.path import Path


def condition_text(
    condition: Predicate,
    base: tuple[str, ...],
    variable: str = "",
    names: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The condition with paths relative to `base`, which `variable` stands for; `names` are those of aggregates."""
    return joined_text(condition, {"": (base, variable)}, names)


def joined_text(
    condition: Predicate,
    inputs: Mapping[str, tuple[tuple[str, ...], str]],
    names: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """A condition over several inputs, each given with a path and the variable that stands for it."""

    def rename(term: Term) -> Term:
        if not term.path.steps:
            return replace(term, input=names.get(term.input, term.input))
        base, variable = inputs[term.input]
        assert term.path.steps[: len(base)] == base
        return replace(term, input=variable, path=Path(term.path.steps[len(base) :]))

    return to_text(renamed(condition, rename))


def renamed(condition: Predicate, rename: Callable[[Term], Term]) -> Predicate:
    """The condition with each term replaced."""
    match condition:
        case Compare(term):
            return replace(condition, term=rename(term))
        case Difference(left, _, right):
            return replace(condition, left=rename(left), right=rename(right))
        case And(parts):
            return And(tuple(renamed(each, rename) for each in parts))
        case Or(parts):
            return Or(tuple(renamed(each, rename) for each in parts))
        case Not(part):
            return Not(renamed(part, rename))
