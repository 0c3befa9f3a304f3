"""Claims: the conditions for a verdict on an item, as a two-valued formula.

A predicate has one of three verdicts, `no < error < yes`; each claim is about one threshold, and is claimed or denied:
that the verdict is yes, or, *loosely*, that it is yes or an error.
Negation reverses the order of verdicts, so `not p` is yes where the loose claim of p is denied; claims are pushed down
through `and`, `or` and `not` to literals, which leaves a tree of literals without `not`.

Literals are about the values of terms: `Compare` and `Difference` claim that some value, some pair of values fulfils
them, loosely that some fulfils or raises; two more are about what raises in arithmetic: that a term has several values,
or a word among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from anabranch.logic import And, Not, Or, Tree, hashed_once
from anabranch.predicate.formula import Compare, Difference, Integers, Predicate, Reals, Term

MOST_REMEMBERED = 8_192
MOST_STEPS = 500
"""The budget of a question, which can take exponential time: steps of about 100 microseconds each.

Most questions take less than ten.
"""


class TooLong(Exception):
    """The budget of a question is exhausted."""


class Effort:
    """The remaining steps of one search, shared by all its parts."""

    def __init__(self) -> None:
        self.left = MOST_STEPS

    def spend(self, steps: int = 1) -> None:
        """Take so many steps; TooLong if there are none left."""
        self.left -= steps
        if self.left < 0:
            raise TooLong


@dataclass(frozen=True, slots=True)
class Several:
    """The term has more than one value."""

    term: Term


@dataclass(frozen=True, slots=True)
class Word:
    """Some value of the term is no number."""

    term: Term


@hashed_once
@dataclass(frozen=True)
class Literal:
    """`about` holds for some value or pair, loosely: or raises for it; claimed (`holds`) or denied."""

    about: Compare | Difference | Several | Word
    loose: bool
    holds: bool


Claim: TypeAlias = Tree[Literal]


@lru_cache(maxsize=MOST_REMEMBERED)
def claim(predicate: Predicate, loose: bool, holds: bool = True) -> Claim:
    """The claim that a predicate's verdict is yes, loosely: yes or an error; or the denial of that."""
    match predicate:
        case And(parts):
            return _joined(tuple(claim(part, loose, holds) for part in parts), And if holds else Or)
        case Or(parts):
            return _joined(tuple(claim(part, loose, holds) for part in parts), Or if holds else And)
        case Not(part):
            return claim(part, not loose, not holds)
        case Compare(term, _, constant):
            return Literal(predicate, loose and isinstance(constant, Fraction) and _may_be_word(term), holds)
        case Difference():
            return _difference(predicate, loose, holds)


@lru_cache(maxsize=MOST_REMEMBERED)
def denied(given: Claim) -> Claim:
    """The opposite claim."""
    match given:
        case Literal(about, loose, holds):
            return Literal(about, loose, not holds)
        case And(claims):
            return Or(tuple(map(denied, claims)))
        case Or(claims):
            return And(tuple(map(denied, claims)))
        case Not(inner):
            return inner


def _difference(predicate: Difference, loose: bool, holds: bool) -> Claim:
    """Arithmetic raises for several values, and a sum for a word in it, whatever the left side has."""
    if predicate.offset is None:
        return Literal(predicate, False, holds)
    left, right = predicate.left, predicate.right
    operands = (left, right) if predicate.arithmetic == "distance" else (right,)
    several = [Literal(Several(term), False, True) for term in dict.fromkeys(operands) if term.occurs == "many"]
    if loose:
        words = [Literal(Word(right), False, True)] if len(operands) == 1 and _may_be_word(right) else []
        pair = Literal(predicate, _may_be_word(left) or (len(operands) == 2 and _may_be_word(right)), True)
        claimed = _joined((*several, *words, pair), Or)
    else:
        claimed = _joined((*map(denied, several), Literal(predicate, False, True)), And)
    return claimed if holds else denied(claimed)


def _joined(claims: tuple[Claim, ...], kind: type[And[Literal]] | type[Or[Literal]]) -> Claim:
    return claims[0] if len(claims) == 1 else kind(claims)


def _may_be_word(term: Term) -> bool:
    return term.raises and not isinstance(term.domain, Reals | Integers)
