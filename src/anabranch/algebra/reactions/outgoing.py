"""Outgoing: the output of an operator as far as it has evolved, and how sets of its items are described there.

Sets are in canonical values until they are let out; then they are told by the values at that place of the output, as
descriptions that are conjunctions, disjoint ones (LAWS 4.4), and that do not name the path that they are about.
A description comes out as it came in where that says the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.algebra.accents.boxes import divided, for_all, for_some, within
from anabranch.algebra.accents.conjunctions import is_conjunction, readable
from anabranch.algebra.accents.sets import UNDECLARED, Domains, names, redeclared
from anabranch.algebra.reactions.changes import Change, Evolution, LetOut
from anabranch.algebra.reactions.course import Course
from anabranch.algebra.reactions.tiling import Tiling
from anabranch.predicate import NOTHING, Predicate, or_
from anabranch.stream.elements import Add
from anabranch.stream.path import Path


class Outgoing:
    """What has been let out."""

    def __init__(self, domains: Domains) -> None:
        self.course = Course()
        self._domains = domains
        self._closed = Tiling(False)
        """Whether none of the items will come."""

    def redeclare(self, domains: Domains) -> None:
        """Tell all sets under other promises."""
        self._domains = domains
        self.course.redeclare(domains)
        self._closed = self._closed.mapped(lambda items: redeclared(items, domains))

    def close(self, items: Predicate, where: Predicate) -> tuple[Predicate, ...]:
        """No item of a set comes any more; gives its descriptions, `where` being that which came in."""
        told = self._told(items, where)
        self._closed.change(items, lambda _: True)
        return told

    def let(self, evolution: Evolution, items: Predicate, where: Predicate) -> Iterator[LetOut]:
        """Let a change of some items out; `where` is the description that came in."""
        path, told = evolution.path, self.course.forward(items)
        if names(told, path):
            told = for_some(told, [path]) if isinstance(evolution, Add) else for_all(told, [path])
        for each in self._told(self.course.back(told), where, adding=isinstance(evolution, Add)):
            yield self.let_as_is(Change(each, evolution))

    def let_as_is(self, change: Change) -> LetOut:
        """Let a change out that is told by values at this place."""
        known = redeclared(change.where, self._domains)
        items = self.course.back(known)
        self.course.see(known, change.evolution, composing=True)
        return LetOut(change, items)

    def expressible(self, items: Predicate, path: Path) -> Predicate:
        """The part of a set that a description can tell without naming the path that it is about."""
        told = self.course.forward(items)
        return self.course.back(for_all(told, [path])) if names(told, path) else items

    def _told(self, items: Predicate, where: Predicate, *, adding: bool = False) -> tuple[Predicate, ...]:
        """A set as descriptions: as it came in where that is the same, else as disjoint conjunctions.

        Of closed items none will come, so it does not matter whether they are described, but that nothing is added
        where it is.
        """
        if items == NOTHING:
            return ()
        given = redeclared(where, self._domains)
        around = or_(items, self.course.back(given)) if len(self._closed) else NOTHING
        closed = self.course.forward(self._closed.where(bool, around))
        told = self.course.forward(items)
        if within(told, closed):
            return ()
        more = told if adding else or_(told, closed)
        if is_conjunction(where) and within(told, or_(given, closed)) and within(given, more):
            return (where,)
        return tuple(redeclared(readable(each), UNDECLARED) for each in divided(told))
