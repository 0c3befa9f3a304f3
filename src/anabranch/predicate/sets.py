"""Questions about sets: implies, equivalent, disjoint, satisfiable, covers.

Each is the question whether some claims can hold together for an item (`possible`).
`implies(p, q)` asks twice: for an item where p is yes and q is not, and for one where p is yes or an error and q is no.
Where no comparison can raise, both are the same question, and it is asked once.

Most answers are plain (`plain.py`): a union of boxes is within another because each box is within one of the others, or
is not because some corner is in none.
Only what is not plain is searched for, and of an `or` on the left or an `and` on the right each part by itself.

The search takes the literals, then one of the alternatives of each disjunction, and looks again
(`witnesses.consistent`) before going deeper.
After an alternative has failed, the next is taken with the failed one denied, so no item is looked for twice; that is
what makes the subtraction of many boxes from one quick.
A search that takes too long gives up and takes the item to exist, since all who ask promise something only where there
is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from anabranch.logic import EVERYTHING, And, Not, Or
from anabranch.predicate.claims import MOST_REMEMBERED, Claim, Effort, Literal, TooLong, claim, denied
from anabranch.predicate.formula import Predicate, and_, or_
from anabranch.predicate.plain import plainly, refuted
from anabranch.predicate.witnesses import consistent

DEEPEST = 300
"""How many disjunctions may be decided one after the other."""


@lru_cache(maxsize=MOST_REMEMBERED)
def implies(p: Predicate, q: Predicate) -> bool:
    """Whether for no item p stands higher than q in `no < error < yes`; False also where that is not known."""
    if plainly(p, q):
        return True
    if isinstance(p, Or):
        return all(implies(part, q) for part in p.parts)
    if isinstance(q, And):
        return all(implies(p, part) for part in q.parts)
    if refuted(p, q):
        return False
    asked: list[tuple[Claim, Claim]] = []
    for loose in (False, True):
        question = (claim(p, loose), claim(q, loose, holds=False))
        if question not in asked:
            asked.append(question)
    return not any(possible(question) for question in asked)


def equivalent(p: Predicate, q: Predicate) -> bool:
    """Whether p and q have the same verdict on every item; False also where that is not known."""
    return implies(p, q) and implies(q, p)


def satisfiable(p: Predicate) -> bool:
    """Whether p holds for some item; True also where that is not known."""
    return possible((claim(p, loose=False),))


def disjoint(p: Predicate, q: Predicate) -> bool:
    """Whether there is no item for which both hold; False also where that is not known."""
    return not satisfiable(and_(p, q))


def covers(parts: Iterable[Predicate], whole: Predicate = EVERYTHING) -> bool:
    """Whether the parts together have all of the whole; False also where that is not known."""
    return implies(whole, or_(*parts))


# --- the search -----------------------------------------------------------------------------------------------


def possible(claims: Iterable[Claim]) -> bool:
    """Whether some item may fulfil all claims; True also where that is not known."""
    try:
        return _found((), tuple(claims), (), Effort(), DEEPEST)
    except TooLong:
        return True


def _found(
    literals: tuple[Literal, ...],
    claims: tuple[Claim, ...],
    open_: tuple[Or[Literal], ...],
    effort: Effort,
    deeper: int,
) -> bool:
    """Whether literals, claims and the disjunctions that are still open can hold together."""
    if not deeper:
        raise TooLong
    known = dict.fromkeys(literals)
    pending = list(claims)
    disjunctions = list(open_)
    while pending:
        match pending.pop():
            case Literal() as literal:
                known[literal] = None
            case And(parts):
                pending += parts
            case Or() as disjunction:
                disjunctions.append(disjunction)
            case Not():
                raise AssertionError("claims are denied literal by literal")
    if len(known) > len(literals) and not consistent(known, effort):
        return False
    disjunctions = [each for each in disjunctions if not any(part in known for part in each.parts)]
    if not disjunctions:
        return True
    first = min(disjunctions, key=lambda each: len(each.parts))
    others = tuple(each for each in disjunctions if each is not first)
    settled = tuple(known)
    failed: tuple[Claim, ...] = ()
    for part in first.parts:
        if _found(settled, (*failed, part), others, effort, deeper - 1):
            return True
        if others:  # else there is nothing that it could help to rule out
            failed = (*failed, denied(part))
    return False
