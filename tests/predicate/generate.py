"""Seeded predicates: terms of every multiplicity and domain, and formulas over them that often touch each other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import get_args

from anabranch.predicate import (
    TEXT,
    Arithmetic,
    Domain,
    Finite,
    Integers,
    Occurs,
    Operator,
    Predicate,
    Reals,
    Term,
    and_,
    compare,
    difference,
    not_,
    or_,
)
from anabranch.stream.path import Path

OPERATORS: tuple[Operator, ...] = get_args(Operator)
OCCURS: tuple[Occurs, ...] = get_args(Occurs)
NUMBERS = [Fraction(each, 2) for each in range(-2, 10)]
DOMAINS: tuple[Domain, ...] = (
    TEXT,
    Reals(),
    Reals(Fraction(0), Fraction(3)),
    Integers(),
    Integers(Fraction(0), Fraction(3)),
    Finite(frozenset(("1", "2.5", "a"))),
)


def some_terms(
    rng: random.Random, occurs: Sequence[Occurs] = OCCURS, domains: Sequence[Domain] = DOMAINS
) -> list[Term]:
    """Two to four terms."""
    return [Term("", Path((name,)), rng.choice(occurs), rng.choice(domains)) for name in "xyzw"[: rng.randint(2, 4)]]


def some_atoms(
    rng: random.Random,
    terms: Sequence[Term],
    strings: Sequence[str] = (),
    texts: bool = False,
    arithmetic: Sequence[Arithmetic] = ("exact",),
    numbers: Sequence[Fraction] = NUMBERS,
    count: int = 16,
) -> list[Predicate]:
    """Comparisons with these numbers and strings, between texts as they stand too if `texts` says so."""

    def atom() -> Predicate:
        op, shape = rng.choice(OPERATORS), rng.random()
        if shape < 0.3:
            left, right = rng.sample(terms, 2) if rng.random() < 0.95 else [rng.choice(terms)] * 2
            offset = None if texts and rng.random() < 0.6 else rng.choice(numbers[:6])
            return difference(left, op, right, offset, rng.choice(arithmetic))
        constant = rng.choice(strings) if strings and shape < 0.5 else rng.choice(numbers)
        return compare(rng.choice(terms), op, constant)

    return [atom() for _ in range(count)]


def some_predicate(rng: random.Random, atoms: Sequence[Predicate], depth: int = 2) -> Predicate:
    """A formula of a few of the comparisons."""
    shape = rng.random()
    if depth == 0 or shape < 0.25:
        return rng.choice(atoms)
    if shape < 0.4:
        return not_(some_predicate(rng, atoms, depth - 1))
    parts = [some_predicate(rng, atoms, depth - 1) for _ in range(rng.randint(2, 3))]
    return and_(*parts) if shape < 0.75 else or_(*parts)
