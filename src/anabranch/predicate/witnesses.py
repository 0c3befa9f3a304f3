"""Whether literals can hold together for some item: an item is built that has just the values they ask for.

A literal that is claimed asks for a value (a pair of values) that fulfils it, its witness; one that is denied forbids
values.
Fewer values forbid nothing more, so if there is an item at all, there is one of witnesses alone.
Where a term has at most one value, all its witnesses are that value; where it may have many, each claim has its own.
So repeated elements need no logic of their own: for them `en >= 4` and `en <= 2` have two witnesses, which do not
contradict each other.

1. Each witness gets the set of texts that its claims and the denials about its term leave (`texts.py`).
2. Witnesses that are claimed to be the same text become one.
3. What is claimed and denied between witnesses is left to `comparing.py`.

A no is always right. A yes is right where no two texts are compared with each other, but for the density of strings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product

from anabranch.predicate.claims import MOST_REMEMBERED, Literal, Several, Word, denied
from anabranch.predicate.comparing import Pair, Witness, compared
from anabranch.predicate.effort import Effort
from anabranch.predicate.formula import OPPOSITE, Compare, Difference
from anabranch.predicate.terms import Term
from anabranch.predicate.texts import NO_NUMBERS, NUMERIC, SPECIAL, WORD, Texts, fulfilling, span, texts_of


def consistent(literals: Iterable[Literal], effort: Effort) -> bool:
    """Whether some item may fulfil all literals; TooLong where that takes more than the effort."""
    effort.spend()
    given = dict.fromkeys(literals)
    if any(each.holds and denied(each) in given for each in given):
        return False
    item = _Item(given)
    if not item.possible or any(item.texts[each].empty for each in set(item.same)):
        return False
    pairs = [replace(pair, left=item.same[pair.left], right=item.same[pair.right]) for pair in item.pairs]
    return not pairs or compared(pairs, item.texts, effort)


class _Item:
    """The witnesses of some literals; filled while it is made, then only read."""

    def __init__(self, literals: Collection[Literal]) -> None:
        self.texts: list[Texts] = []
        self.same: list[Witness] = []
        self.pairs: list[Pair] = []
        self.possible = True
        self._of: defaultdict[Term, list[Witness]] = defaultdict(list)
        self._allowed: dict[Term, Texts] = {}
        self._single = {each.about.term for each in literals if isinstance(each.about, Several) and not each.holds}
        for each in literals:
            self._forbid(each)
        for each in literals:
            if each.holds:
                self._claim(each)
        for term in {term for each in literals for term in _terms(each) if term.occurs == "one"}:
            self._witness(term)
        for each in literals:
            if isinstance(each.about, Difference) and not each.holds:
                for left, right in product(self._of[each.about.left], self._of[each.about.right]):
                    self.pairs.append(Pair(left, right, each, each.about))
        self._unite()

    def _forbid(self, literal: Literal) -> None:
        """Take a denial's values from its term's."""
        if not literal.holds and isinstance(literal.about, Compare | Word):
            term = literal.about.term
            self._allowed[term] = self._texts(term).meet(_left(literal))

    def _claim(self, literal: Literal) -> None:
        match literal.about:
            case Compare(term) | Word(term):
                self._restrict(self._witness(term), _left(literal))
            case Several(term):
                self.possible = self.possible and term not in self._single
                self._witness(term)  # a value that is there twice is as good as any
            case Difference(left, _, right):
                self.pairs.append(Pair(self._witness(left), self._witness(right), literal, literal.about))

    def _texts(self, term: Term) -> Texts:
        known = self._allowed.get(term)
        return texts_of(term.domain) if known is None else known

    def _witness(self, term: Term) -> Witness:
        """A new witness, or the one there is where the term has one value at most."""
        known = self._of[term]
        if not known or (term.occurs == "many" and term not in self._single):
            known.append(len(self.texts))
            self.texts.append(self._texts(term))
            self.same.append(known[-1])
        return known[-1]

    def _restrict(self, witness: Witness, texts: Texts) -> None:
        self.texts[witness] = self.texts[witness].meet(texts)

    def _unite(self) -> None:
        """Make one of witnesses that are claimed to be the same text."""
        for pair in self.pairs:
            if pair.difference.offset is None and pair.wanted == "=":
                kept, gone = self.same[pair.left], self.same[pair.right]
                self._restrict(kept, self.texts[gone])
                self.same = [kept if each == gone else each for each in self.same]


def _terms(literal: Literal) -> tuple[Term, ...]:
    about = literal.about
    return (about.left, about.right) if isinstance(about, Difference) else (about.term,)


@lru_cache(maxsize=MOST_REMEMBERED)
def _left(literal: Literal) -> Texts:
    """The texts that a literal about one term leaves: to its witness if it is claimed, else to all values."""
    match literal.about:
        case Compare(_, op, str() as constant):
            return fulfilling(op if literal.holds else OPPOSITE[op], constant, with_words=False)
        case Compare(_, op, Fraction() as constant):
            fulfilled = fulfilling(op, constant, with_words=literal.loose)
            if literal.holds:
                return fulfilled
            return Texts(span(OPPOSITE[op], constant), SPECIAL - fulfilled.special)
        case _:
            return Texts(NO_NUMBERS, frozenset((WORD,))) if literal.holds else Texts(special=NUMERIC)
