"""Dividing: a set of items is taken apart into disjoint boxes, step by step, and the steps are counted.

* What is in all of several parts is their boxes multiplied out; plain comparisons go together into one box first.
* What is in some of them is of each part what the earlier ones leave; only those that may overlap are met (`index.py`).
* Box without box is one box per comparison: `not(l1)`, `l1 and not(l2)`, ...
* Box without many boxes is divided by the comparison that most of them have (`rest`); where one part that is left over
  is enough, it is looked for without finding the others (`left_over`).

A hostile description can have exponentially many boxes, so a division that takes more than MOST_STEPS questions is
given up with a StreamError.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from anabranch.algebra.accents.conjunctions import is_literal
from anabranch.algebra.accents.index import Box, Index
from anabranch.algebra.accents.possible import possible
from anabranch.errors import StreamError
from anabranch.predicate import And, Not, Or, Predicate, not_

MOST_STEPS = 20_000


class Dividing:
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
        plain = dict.fromkeys(part if holds else not_(part) for part in parts if is_literal(part))
        found: list[Box] = [tuple(plain)] if self.possible(tuple(plain)) else []
        for part in parts:
            if found and not is_literal(part):
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

    def rest(self, box: Box, others: Sequence[Box]) -> list[Box]:
        """A box without others: those that differ from it in one comparison, which may be many, at once.

        Of what is left it is asked twice: where the comparison that most of the others have does not hold, and where it
        does; so boxes that are parts of one division cost as much as there are, not as there are pairs of them.
        """
        known = set(box)
        left = [tuple(literal for literal in other if literal not in known) for other in others]
        denied = [not_(other[0]) for other in left if len(other) == 1]
        box = tuple(dict.fromkeys((*box, *denied)))
        if () in left or not self.possible(box):
            return []
        larger = [other for other in left if len(other) > 1 and (not denied or self.possible((*box, *other)))]
        if not larger:
            return [box]
        [(most, _)] = Counter(literal for other in larger for literal in other).most_common(1)
        found: list[Box] = []
        for inner in ((*box, not_(most)), (*box, most)):
            if self.possible(inner):
                found += self.rest(inner, [other for other in larger if self.possible((*inner, *other))])
        return found

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
