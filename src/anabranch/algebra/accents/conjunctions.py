"""Conjunctions: descriptions as an accent has them, of comparisons and denied comparisons, the *literals*."""

from __future__ import annotations

import math
from fractions import Fraction

from anabranch.logic import OPPOSITE
from anabranch.predicate import And, Compare, Integers, Not, Predicate, Term, and_


def is_conjunction(items: Predicate) -> bool:
    """Whether a set can be described by one accent (LAWS 4.4)."""
    match items:
        case And(parts):
            return all(map(is_literal, parts))
        case _:
            return is_literal(items)


def is_literal(items: Predicate) -> bool:
    """Whether a set is told by one comparison, or by a denied one."""
    return isinstance(items.part if isinstance(items, Not) else items, Compare)


def literals(conjunction: Predicate) -> tuple[Predicate, ...]:
    """What all items of a conjunction fulfil."""
    return conjunction.parts if isinstance(conjunction, And) else (conjunction,)


def term_of(literal: Predicate) -> Term:
    """What a comparison is about."""
    match literal:
        case Compare(term) | Not(Compare(term)):
            return term
        case _:
            raise AssertionError(literal)


def readable(conjunction: Predicate) -> Predicate:
    """A conjunction for people: what holds before what does not, and by the names of the paths."""
    plain = map(_plainly, literals(conjunction))
    return and_(*sorted(plain, key=lambda each: (isinstance(each, Not), term_of(each).path)))


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
