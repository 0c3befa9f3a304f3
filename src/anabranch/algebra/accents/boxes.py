"""Boxes: sets of items taken apart into disjoint conjunctions, and put together again.

An accent's description is a conjunction (LAWS 4.4), so a set that is none becomes several accents, disjoint ones: then
each item is described by one, and their order does not matter.
A box is a tuple of comparisons and denied comparisons, and no two boxes of a division have an item in common:

* `A or B` is A, and B without A; box without box is one box per comparison: `not(l1)`, `l1 and not(l2)`, ...
* `not(a = 'FOO')` stays as it is, since it also describes items without `a`.

All terms are independent of each other (descriptions compare with constants only), so what remains of a set when a path
is hidden is the set without its comparisons of that path, box by box: `for_some`, and `for_all` by two negations.

Cost: boxes that pin a term to different constants (`s = 1`, `s = 2`), or give it different ranges, are known to be
disjoint without being compared (`index.py`), so a union of ten thousand of them costs ten thousand steps.
Sets that overlap in many terms can have exponentially many boxes; a division that takes more than MOST_STEPS questions
is given up with a StreamError, and nothing larger than MOST_COMBINED boxes is shortened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from anabranch.algebra.accents.index import Box, Index
from anabranch.algebra.accents.items import number
from anabranch.algebra.accents.sets import stands
from anabranch.errors import StreamError
from anabranch.predicate import (
    And,
    Compare,
    Finite,
    Not,
    Or,
    Predicate,
    Term,
    and_,
    implies,
    not_,
    or_,
    satisfiable,
)
from anabranch.stream.path import Path

MOST_STEPS = 20_000
MOST_COMBINED = 32


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
    found = [thinned(box) for box in boxes(items)]
    return or_(*(and_(*box) for box in found)) if len(found) > MOST_COMBINED else _widened(found)


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
    return _Dividing().boxes(items, True)


def empty(items: Predicate) -> bool:
    """Whether no item is in the set; exact, unless it takes too long (StreamError)."""
    return not boxes(items)


def within(items: Predicate, others: Predicate) -> bool:
    """Whether all items of one set are in another."""
    return items == others or empty(and_(items, not_(others)))


def overlap(items: Predicate, others: Predicate) -> bool:
    """Whether some item is in both sets."""
    return not empty(and_(items, others))


def for_some(items: Predicate, hidden: Iterable[Path]) -> Predicate:
    """The items that would be in the set for some values of the hidden paths."""
    gone = frozenset(hidden)
    return combined(or_(*(and_(*(each for each in box if _term(each).path not in gone)) for box in boxes(items))))


def for_all(items: Predicate, hidden: Iterable[Path]) -> Predicate:
    """The items that are in the set whatever the values of the hidden paths."""
    return combined(not_(for_some(not_(items), hidden)))


def left_over(box: Box, others: Sequence[Box]) -> Box | None:
    """Some part of a box that is in none of the others; None if they cover it."""
    return _Dividing().left_over(box, others)


def inside(box: Box, other: Box) -> bool:
    """Whether one box lies in another."""
    return all(literal in box or not possible((*box, not_(literal))) for literal in other)


def met(box: Box, other: Box) -> Box | None:
    """What two boxes have in common."""
    both = tuple(dict.fromkeys((*box, *other)))
    return both if possible(both) else None


# --- one box and another ----------------------------------------------------------------------------------------


def possible(box: Box) -> bool:
    """Whether some item is in the box.

    A term that may be missing, and of which only denials speak, is missing; a listed domain is gone through.
    """
    of: dict[Term, list[Predicate]] = {}
    for each in box:
        of.setdefault(_term(each), []).append(each)
    return all(_possible(term, tuple(literals)) for term, literals in of.items())


@lru_cache(maxsize=100_000)
def _possible(term: Term, literals: Box) -> bool:
    """Whether some value of one term, or none, fulfils all literals."""
    if term.occurs == "optional" and all(isinstance(each, Not) for each in literals):
        return True
    if isinstance(term.domain, Finite) and term.occurs == "one":
        return _choice(term.domain, literals)
    return satisfiable(and_(*literals))


def thinned(box: Box) -> Box:
    """The box without the comparisons that follow from the others, the later ones first; a long one as it is."""
    if not 1 < len(box) <= MOST_COMBINED:
        return box
    kept = list(box)
    for each in reversed(box):
        others = [other for other in kept if other != each]
        if not possible((*others, not_(each))):
            kept = others
    return tuple(kept)


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


def _term(literal: Predicate) -> Term:
    match literal:
        case Compare(term) | Not(Compare(term)):
            return term
        case _:
            raise AssertionError(literal)


class _Dividing:
    """One division; it counts its questions."""

    def __init__(self) -> None:
        self.left = MOST_STEPS

    def possible(self, box: Box) -> bool:
        self.left -= 1 + len(box) // 10
        if self.left < 0:
            raise StreamError("the described items fall into too many parts")
        return possible(box)

    def boxes(self, items: Predicate, holds: bool) -> list[Box]:
        """The boxes of a set, or of its complement."""
        match items:
            case Not(part):
                return self.boxes(part, not holds)
            case And(parts) | Or(parts):
                return self.meet(parts, holds) if isinstance(items, And) == holds else self.join(parts, holds)
            case _:
                box: Box = (items if holds else Not(items),)
                return [box] if self.possible(box) else []

    def meet(self, parts: Sequence[Predicate], holds: bool) -> list[Box]:
        """What is in all parts; the plain comparisons together, before what has to be multiplied out."""
        plain = dict.fromkeys(
            part if holds else not_(part) for part in parts if isinstance(part, Compare) or _denied(part)
        )
        found: list[Box] = [tuple(plain)] if self.possible(tuple(plain)) else []
        for part in parts:
            if found and not (isinstance(part, Compare) or _denied(part)):
                inner = self.boxes(part, holds)
                merged = (tuple(dict.fromkeys((*one, *other))) for one in found for other in inner)
                found = [box for box in merged if self.possible(box)]
        return found

    def join(self, parts: Sequence[Predicate], holds: bool) -> list[Box]:
        """What is in some part: of each what the earlier ones leave."""
        found: Index[None] = Index()
        kept: list[Box] = []
        for part in parts:
            for box in self.boxes(part, holds):
                rest = [box]
                for _, other, _ in sorted(found.near(box), key=lambda each: each[0]):
                    rest = [left for each in rest for left in self.without(each, other)]
                for each in rest:
                    found.put(len(kept), each, None)
                    kept.append(each)
        return kept

    def without(self, box: Box, other: Box) -> list[Box]:
        """A box without another."""
        if not self.possible(tuple(dict.fromkeys((*box, *other)))):
            return [box]
        rest: list[Box] = []
        inside = box
        for literal in other:
            if literal in inside:
                continue
            outside = (*inside, not_(literal))
            if self.possible(outside):
                rest.append(outside)
            inside = (*inside, literal)
        return rest

    def left_over(self, box: Box, others: Sequence[Box]) -> Box | None:
        """A part of a box that is in none of the others.

        One is looked for, not all: first the part that each of the others misses by its first, or by its last
        comparison, which is there if they are far from covering the box; then deep first.
        """
        known = set(box)
        others = [tuple(literal for literal in other if literal not in known) for other in others]
        single = [other[0] for other in others if len(other) == 1]
        box = tuple(dict.fromkeys((*box, *map(not_, single))))
        if () in others or not self.possible(box):
            return None
        larger = [other for other in others if len(other) > 1]
        for end in (0, -1):
            missing = tuple(dict.fromkeys((*box, *(not_(other[end]) for other in larger))))
            if self.possible(missing):
                return missing
        pending = [(box, 0)]
        while pending:
            box, at = pending.pop()
            if at == len(larger):
                return box
            pending += [(each, at + 1) for each in reversed(self.without(box, larger[at]))]
        return None


def _denied(part: Predicate) -> bool:
    return isinstance(part, Not) and isinstance(part.part, Compare)
