"""Conjunctions: descriptions as an accent has them, comparisons and denied comparisons, in the order for people."""

from __future__ import annotations

import math
from fractions import Fraction

from anabranch.predicate import And, Compare, Integers, Not, Predicate, and_, terms
from anabranch.predicate.formula import OPPOSITE
from anabranch.stream.path import Path


def is_conjunction(items: Predicate) -> bool:
    """Whether a set can be described by one accent (LAWS 4.4)."""
    match items:
        case And(parts):
            return all(map(_is_literal, parts))
        case _:
            return _is_literal(items)


def _is_literal(items: Predicate) -> bool:
    return isinstance(items.part if isinstance(items, Not) else items, Compare)


def path_of(literal: Predicate) -> Path:
    """The path that a comparison is about."""
    [term] = terms(literal)
    return term.path


def readable(box: Predicate) -> Predicate:
    """A conjunction with what holds before what does not, and by the names of the paths."""
    literals = [_plainly(each) for each in (box.parts if isinstance(box, And) else (box,))]
    return and_(*sorted(literals, key=lambda each: (isinstance(each, Not), path_of(each))))


def _plainly(literal: Predicate) -> Predicate:
    """`not(wid <= 1)` is `wid >= 2` where every item has a whole number there."""
    match literal:
        case Not(Compare(term, op, Fraction() as bound)) if term.occurs == "one" and isinstance(term.domain, Integers):
            return _plainly(Compare(term, OPPOSITE[op], bound))
        case Compare(term, ">", Fraction() as bound) if term.occurs == "one" and isinstance(term.domain, Integers):
            return Compare(term, ">=", Fraction(math.floor(bound) + 1))
        case Compare(term, "<", Fraction() as bound) if term.occurs == "one" and isinstance(term.domain, Integers):
            return Compare(term, "<=", Fraction(math.ceil(bound) - 1))
        case _:
            return literal
