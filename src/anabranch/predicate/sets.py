"""Questions about sets: implies, equivalent, disjoint, satisfiable, covers; and minus.

Each is the question whether some claims can hold together for an item (`searching.py`).
`implies(p, q)` asks twice: for an item where p is yes and q is not, and for one where p is yes or an error and q is no.
Where no comparison can raise, both are the same question, and it is asked once.

Most answers are plain (`plain.py`): a union of boxes is within another because each box is within one of the others, or
is not because some corner is in none.
Only what is not plain is searched for, and of an `or` on the left or an `and` on the right each part by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from anabranch.predicate.claims import MOST_REMEMBERED, Claim, claim
from anabranch.predicate.formula import EVERYTHING, And, Or, Predicate, and_, or_
from anabranch.predicate.plain import plainly, refuted
from anabranch.predicate.searching import possible


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
