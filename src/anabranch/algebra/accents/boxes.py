"""Boxes: sets of items taken apart into disjoint conjunctions, and put together again.

An accent's description is a conjunction (LAWS 4.4), so a set that is none becomes several accents, disjoint ones: then
each item is described by one, and their order does not matter.
A box is a tuple of comparisons and denied comparisons, and no two boxes of a division have an item in common:
`A or B` is A, and B without A (`dividing.py`); whether a box has any items is told in `possible.py`.

All terms are independent of each other (descriptions compare with constants only), so what remains of a set when a path
is hidden is the set without its comparisons of that path, box by box: `for_some`, and `for_all` by two negations.

Cost: boxes that pin a term to different constants (`s = 1`, `s = 2`), or give it different ranges, are known to be
disjoint without being compared (`index.py`), so a union of ten thousand of them costs ten thousand steps.
Sets that overlap in many terms can have exponentially many boxes; a division that takes too long is given up with a
StreamError, and nothing larger than MOST_COMBINED boxes is shortened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice

from anabranch.algebra.accents.conjunctions import term_of
from anabranch.algebra.accents.dividing import Dividing
from anabranch.algebra.accents.index import Box
from anabranch.algebra.accents.possible import possible
from anabranch.predicate import NOTHING, Predicate, and_, implies, not_, or_
from anabranch.predicate.formula import atoms
from anabranch.stream.path import Path

MOST_COMBINED = 32
MOST_REMEMBERED = 50
"""Comparisons in a set of which it is remembered how it is combined."""


def divided(items: Predicate) -> tuple[Predicate, ...]:
    """Disjoint conjunctions that together have just these items, few short ones; none for the empty set."""
    found = [thinned(box) for box in boxes(items)]
    if 1 < len(found) <= MOST_COMBINED:
        wider = [thinned(box) for box in boxes(_widened(found))]
        if (len(wider), sum(map(len, wider))) < (len(found), sum(map(len, found))):
            found = wider
    return tuple(and_(*box) for box in found)


def combined(items: Predicate) -> Predicate:
    """The same items in fewer and wider conjunctions, where there are not too many.

    >>> from anabranch.algebra.accents.sets import description_of, items_of
    >>> from anabranch.stream.description import parse
    >>> parts = items_of(parse("s = 1 and t < 5 or s = 1 and not(t < 5)"))
    >>> print(description_of(combined(parts)))
    s = 1
    """
    few = len(list(islice(atoms(items), MOST_REMEMBERED + 1))) <= MOST_REMEMBERED
    return _remembered(items) if few else _combined(items)


def _combined(items: Predicate) -> Predicate:
    found = [thinned(box) for box in boxes(items)]
    return _widened(found) if 1 < len(found) <= MOST_COMBINED else or_(*(and_(*box) for box in found))


_remembered = lru_cache(maxsize=10_000)(_combined)
"""Many operators ask for the same few sets."""


def _widened(found: Sequence[Box]) -> Predicate:
    """A union of boxes with each as wide as it can be, and none that the others have, too."""
    whole = or_(*(and_(*box) for box in found))
    wide: list[Box] = []
    for box in found:
        for literal in reversed(box):
            wider = tuple(each for each in box if each != literal)
            if implies(and_(*wider), whole):
                box = wider
        wide.append(box)
    kept = list(dict.fromkeys(wide))
    for box in tuple(kept):
        others = [and_(*each) for each in kept if each is not box]
        if others and implies(and_(*box), or_(*others)):
            kept.remove(box)
    return or_(*(and_(*box) for box in kept))


def boxes(items: Predicate) -> list[Box]:
    """Disjoint boxes that together have just these items, as they come."""
    return Dividing().boxes(items, True)


def empty(items: Predicate) -> bool:
    """Whether no item is in the set; exact, unless it takes too long (StreamError)."""
    return not boxes(items)


def within(items: Predicate, others: Predicate) -> bool:
    """Whether all items of one set are in another: no box has anything that is in none of the other's."""
    if items == others:
        return True
    parts = boxes(others)
    return all(left_over(box, parts) is None for box in boxes(items))


def without(items: Predicate, others: Predicate) -> Predicate:
    """The items of one set that are not in another."""
    return items if others == NOTHING else combined(and_(items, not_(others)))


def overlap(items: Predicate, others: Predicate) -> bool:
    """Whether some item is in both sets."""
    return not empty(and_(items, others))


def for_some(items: Predicate, hidden: Iterable[Path]) -> Predicate:
    """The items that would be in the set for some values of the hidden paths."""
    gone = frozenset(hidden)
    return combined(or_(*(and_(*(each for each in box if term_of(each).path not in gone)) for box in boxes(items))))


def for_all(items: Predicate, hidden: Iterable[Path]) -> Predicate:
    """The items that are in the set whatever the values of the hidden paths."""
    return combined(not_(for_some(not_(items), hidden)))


def left_over(box: Box, others: Sequence[Box]) -> Box | None:
    """Some part of a box that is in none of the others; None if they cover it."""
    return Dividing().left_over(box, others)


def rest(box: Box, others: Sequence[Box]) -> list[Box]:
    """A box without others, as disjoint boxes."""
    return Dividing().rest(box, others)


def inside(box: Box, other: Box) -> bool:
    """Whether one box lies in another."""
    return all(literal in box or not possible((*box, not_(literal))) for literal in other)


def met(box: Box, other: Box) -> Box | None:
    """What two boxes have in common."""
    both = tuple(dict.fromkeys((*box, *other)))
    return both if possible(both) else None


def thinned(box: Box) -> Box:
    """The box without the comparisons that follow from the others, the later ones first; a long one as it is."""
    if len(box) > MOST_COMBINED:
        return box
    kept = list(box)
    for each in reversed(box):
        others = [other for other in kept if other != each]
        if not possible((*others, not_(each))):
            kept = others
    return tuple(kept)
