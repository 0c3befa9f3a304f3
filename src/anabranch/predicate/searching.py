"""The search for an item that fulfils several claims.

Take the literals, then one of the alternatives of each disjunction, and look again (`witnesses.consistent`) before
going deeper.
After an alternative has failed, the next is taken with the failed one denied, so no item is looked for twice; that is
what makes the subtraction of many boxes from one quick.
A search that takes too long gives up and takes the item to exist, since all who ask promise something only where there
is none.
"""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.predicate.claims import All, Any, Claim, Literal, denied
from anabranch.predicate.effort import Effort, TooLong
from anabranch.predicate.witnesses import consistent

DEEPEST = 300
"""How many disjunctions may be decided one after the other."""


def possible(claims: Iterable[Claim]) -> bool:
    """Whether some item may fulfil all claims; True also where that is not known."""
    try:
        return _found((), tuple(claims), (), Effort(), DEEPEST)
    except TooLong:
        return True


def _found(
    literals: tuple[Literal, ...], claims: tuple[Claim, ...], open_: tuple[Any, ...], effort: Effort, deeper: int
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
            case All(parts):
                pending += parts
            case Any() as disjunction:
                disjunctions.append(disjunction)
    if len(known) > len(literals) and not consistent(known, effort):
        return False
    disjunctions = [each for each in disjunctions if not any(part in known for part in each.claims)]
    if not disjunctions:
        return True
    first = min(disjunctions, key=lambda each: len(each.claims))
    others = tuple(each for each in disjunctions if each is not first)
    settled = tuple(known)
    failed: tuple[Claim, ...] = ()
    for part in first.claims:
        if _found(settled, (*failed, part), others, effort, deeper - 1):
            return True
        if others:  # else there is nothing that it could help to rule out
            failed = (*failed, denied(part))
    return False
