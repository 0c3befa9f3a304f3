"""Untouched items: why nothing can come out yet, told without reckoning with all that was accumulated.

A drop or alter with a description that the output cannot name comes out when it holds for all values of the hidden
paths (LAWS 4.2 e).
So as long as there are hidden values that no accent has spoken of since input and output were last in step, nothing can
come out at that path, whatever the visible ones are: a thousand sensors may change one by one, and each of these
accents costs what its own description is long.

One such row of hidden values is kept in view: that of an item without these paths; and where all items have one of the
values of a declared domain, the first of them that nobody has spoken of.
When there is none left, the reckoning has to be done; it is about single paths only, whose hidden values are free of
all that can be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from anabranch.algebra.accents.conjunctions import literals
from anabranch.algebra.accents.items import number
from anabranch.algebra.accents.sets import Domains, stands
from anabranch.algebra.reactions.signature import PathSet
from anabranch.predicate import And, Compare, Finite, Not, Or, Predicate, Term, terms
from anabranch.stream.path import Path


class Untouched:
    """Hidden values that no accent has spoken of, at one path of the output, of items that may still come.

    `ended` tells those that may not; what is left untouched is given by the two that tell of changes.
    """

    def __init__(self, hidden: PathSet, domains: Domains, ended: Callable[[], Predicate]) -> None:
        self._hidden = hidden
        self._domains = domains
        self._ended = ended
        self._pins: set[object] = set()
        """The values of the declared path that accents have pinned it to."""
        self._others: list[Predicate] = []
        """The sets of all other accents."""
        self._declared: Path | None = None
        self._values: Iterator[str] = iter(())
        self._witness: str | None = None
        """The value of the declared path that is kept in view; without one, all hidden paths are missing."""

    def closed(self, items: Predicate) -> bool:
        """No item of a set comes any more; gives whether values are left untouched."""
        return self._is_free(self._witness, (items,)) or self._advance()

    def touch(self, items: Predicate) -> bool:
        """Something has happened to a set, told by values of its place; gives whether values are left untouched."""
        pinned = _pinned(items, self._declared)
        if pinned is None:
            self._others.append(items)
        else:
            self._pins.add(pinned)
        return self.closed(items)

    def _advance(self) -> bool:
        """Go on to the next values that nobody has spoken of, if there are any."""
        sets = (*self._others, self._ended())
        if self._declared is None:
            self._choose(sets)
        for each in self._values:
            if not {each, number(each)} & self._pins and self._is_free(each, sets):
                self._witness = each
                return True
        return False

    def _choose(self, sets: Sequence[Predicate]) -> None:
        """Keep the values of a declared path in view, if an accent has named one."""
        named = {term.path for items in sets for term in terms(items) if term.path in self._hidden}
        for path in sorted(named):
            domain = self._domains.get(path)
            if isinstance(domain, Finite):
                self._declared, self._values = path, iter(sorted(domain.texts))
                return

    def _is_free(self, value: str | None, sets: Sequence[Predicate]) -> bool:
        known = {} if self._declared is None or value is None else {self._declared: value}
        return all(self._holds(each, known) is False for each in sets)

    def _holds(self, items: Predicate, known: Mapping[Path, str]) -> bool | None:
        """Whether a set has items with these hidden values; None where it depends on other values."""
        match items:
            case And(parts):
                found = {self._holds(each, known) for each in parts}
                return False if False in found else None if None in found else True
            case Or(parts):
                found = {self._holds(each, known) for each in parts}
                return True if True in found else None if None in found else False
            case Not(part):
                inner = self._holds(part, known)
                return None if inner is None else not inner
            case Compare(term, op, constant):
                return stands(known[term.path], op, constant) if term.path in known else self._of_missing(term)
            case _:
                return None

    def _of_missing(self, term: Term) -> bool | None:
        """A hidden path that nothing is promised of may be missing, and then no comparison holds."""
        return False if term.path in self._hidden and term.path not in self._domains else None


def _pinned(items: Predicate, path: Path | None) -> object | None:
    """The one value of a path that a set has items with, where it says so plainly."""
    for each in literals(items):
        match each:
            case Compare(term, "=", constant) if term.path == path:
                return constant
    return None
