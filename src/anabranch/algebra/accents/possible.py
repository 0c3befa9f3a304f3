"""Whether some item is in a box: the one question that all reckoning with sets comes down to.

A box speaks of several terms, which are independent of each other, so each is asked for alone, and what was asked of
one is remembered.

* A term that may be missing, and of which only denials speak, is missing: `not(a = 'FOO')` also describes items
  without `a`.
* Of a term with a listed domain the texts are gone through; those that a comparison with one constant leaves, which are
  one or two, are looked up.
* Else it is a question of intervals and of texts (`predicate/`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from anabranch.algebra.accents.conjunctions import term_of
from anabranch.algebra.accents.index import Box
from anabranch.algebra.accents.items import number
from anabranch.algebra.accents.sets import stands
from anabranch.predicate import Compare, Finite, Not, Predicate, Term, and_, satisfiable


def possible(box: Box) -> bool:
    """Whether some item is in the box."""
    of: dict[Term, list[Predicate]] = {}
    for each in box:
        of.setdefault(term_of(each), []).append(each)
    return all(_possible(term, tuple(literals)) for term, literals in of.items())


@lru_cache(maxsize=100_000)
def _possible(term: Term, literals: Box) -> bool:
    """Whether some value of one term, or none, fulfils all literals."""
    if term.occurs == "optional" and all(isinstance(each, Not) for each in literals):
        return True
    if isinstance(term.domain, Finite) and term.occurs == "one":
        return _choice(term.domain, literals)
    return satisfiable(and_(*literals))


def _choice(domain: Finite, literals: Sequence[Predicate]) -> bool:
    """Whether some text of a domain fulfils all literals; those about one constant each are looked up."""
    denied: set[object] = set()
    wanted: set[object] = set()
    others: list[Predicate] = []
    for each in literals:
        match each:
            case Compare(_, "=", constant):
                wanted.add(constant)
            case Not(Compare(_, "=", constant)):
                denied.add(constant)
            case _:
                others.append(each)
    spelt = _spelt(domain)
    return any(
        wanted <= {text, value} and denied.isdisjoint((text, value)) and all(_holds(text, each) for each in others)
        for text, value in (spelt.get(next(iter(wanted)), ()) if wanted else spelt[None])
    )


@lru_cache(maxsize=100)
def _spelt(domain: Finite) -> dict[object, list[tuple[str, object]]]:
    """The texts of a domain with their numbers: all under None, and each under its text and its number."""
    found: dict[object, list[tuple[str, object]]] = {None: []}
    for text in sorted(domain.texts):
        value = number(text)
        for key in (None, text) if value is None else (None, text, value):
            found.setdefault(key, []).append((text, text if value is None else value))
    return found


def _holds(text: str, literal: Predicate) -> bool:
    match literal:
        case Not(part):
            return not _holds(text, part)
        case Compare(_, op, constant):
            return stands(text, op, constant)
        case _:
            raise AssertionError(literal)
