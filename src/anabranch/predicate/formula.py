"""Predicates as formulas: comparisons joined by `and`, `or` and `not`.

A comparison is existential, as XQuery's general comparisons are (LAWS 2.3): it holds if some value of the term (some
pair of values) fulfils it; else it raises if some value cannot be compared; else, and so for a term without a value,
it does not hold.
What a pair fulfils:

* `Compare` with a string compares texts by code points; it never raises.
* `Compare` with a number compares exact values; NaN fulfils `!=` alone, a word raises.
* `Difference` without an offset compares two texts of the stream: `=` and `!=` as texts, the others as numbers where
  both are numbers, else as texts. It never raises.
* `Difference` with an offset computes, in one of three ways:
  "sum" is `left op right + offset` in doubles, as a query computes it; a word raises, and so do several values on the
  right, which `+` does not take;
  "distance" is `left - right op offset` in doubles; several values raise on either side, words where both have one;
  "exact" is the sum in true numbers, for conditions that are meant so; of errors it has those of the sum.
  Sums in doubles are rounded, and what follows from them follows in spite of that: `x >= y + 0.3` implies
  `x >= y + 0.2`, but not `x > y + 0.2`, since both sums may be the same double.

Formulas are plain values without hidden normal form; `and_`, `or_` and `not_` only flatten, drop what is said twice and
let the constants vanish, so equal formulas are equivalent, and unequal ones may be (`sets.equivalent`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias

from anabranch.predicate.terms import Term, hashed_once

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]
Arithmetic: TypeAlias = Literal["sum", "distance", "exact"]
Number: TypeAlias = Fraction | Decimal | int

MIRRORED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""`x op y` is `y MIRRORED[op] x`."""
OPPOSITE: dict[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""What holds of two ordered values where `op` does not."""


@hashed_once
@dataclass(frozen=True)
class Compare:
    """Some value of the term stands in this relation to the constant."""

    term: Term
    op: Operator
    constant: Fraction | str


@hashed_once
@dataclass(frozen=True)
class Difference:
    """`left op right + offset`, or `left op right` as texts of the stream compare, where there is no offset."""

    left: Term
    op: Operator
    right: Term
    offset: Fraction | None = None
    arithmetic: Arithmetic = "sum"


@hashed_once
@dataclass(frozen=True)
class And:
    """All parts hold; without parts, always."""

    parts: tuple[Predicate, ...]


@hashed_once
@dataclass(frozen=True)
class Or:
    """Some part holds; without parts, never."""

    parts: tuple[Predicate, ...]


@hashed_once
@dataclass(frozen=True)
class Not:
    """The part does not hold; also for an item that lacks what the part speaks of."""

    part: Predicate


Atom: TypeAlias = Compare | Difference
Predicate: TypeAlias = Compare | Difference | And | Or | Not
EVERYTHING = And(())
NOTHING = Or(())


def compare(term: Term, op: Operator, constant: Number | str) -> Compare:
    """`term op constant`, with the number in its exact value."""
    return Compare(term, op, constant if isinstance(constant, str) else Fraction(constant))


def difference(
    left: Term, op: Operator, right: Term, offset: Number | None = None, arithmetic: Arithmetic = "sum"
) -> Difference:
    """`left op right + offset`; without an offset the two as they stand, which is not the same as offset 0."""
    return Difference(left, op, right, None if offset is None else Fraction(offset), arithmetic)


def and_(*parts: Predicate) -> Predicate:
    """What all of them say; of none, everything."""
    flat = _flat(parts, And)
    return NOTHING if NOTHING in flat else flat[0] if len(flat) == 1 else And(flat)


def or_(*parts: Predicate) -> Predicate:
    """What some of them says; of none, nothing."""
    flat = _flat(parts, Or)
    return EVERYTHING if EVERYTHING in flat else flat[0] if len(flat) == 1 else Or(flat)


def not_(part: Predicate) -> Predicate:
    """The complement; it changes places with errors, which stay errors."""
    match part:
        case Not(inner):
            return inner
        case And(()):
            return NOTHING
        case Or(()):
            return EVERYTHING
        case _:
            return Not(part)


def _flat(parts: tuple[Predicate, ...], kind: type[And] | type[Or]) -> tuple[Predicate, ...]:
    found: dict[Predicate, None] = {}
    for part in parts:
        found.update(dict.fromkeys(part.parts if isinstance(part, kind) else (part,)))
    return tuple(found)


def atoms(predicate: Predicate) -> Iterator[Atom]:
    """All comparisons in it, from left to right."""
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from atoms(part)
        case Not(part):
            yield from atoms(part)
        case Compare() | Difference():
            yield predicate


def terms(predicate: Predicate) -> frozenset[Term]:
    """All terms that it speaks of."""
    return frozenset(
        term
        for atom in atoms(predicate)
        for term in ((atom.term,) if isinstance(atom, Compare) else (atom.left, atom.right))
    )
