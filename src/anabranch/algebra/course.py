"""Courses: how a stream has evolved, from the start of a query up to a place in it.

A course is the list of the accents seen, in order, each with the items it speaks of, told by their raw values at that
place.
Going back along it leads from what is written at the place to what it means in the units of the start, the *canonical*
values; going forward leads from there to what has to be written.
Both ways are open to items and to sets of items, and they are the rules 'commute alter with tuple' and 'commute alter
with accent' of the accents paper, 5.1, as repaired: a constant that an altered path is compared with is mapped.

A path that is added is a new path, whatever had its name before (LAWS 4.2 f), so changes from before do not concern it.

What is known of sets of items, the unit changes of a path and who may carry it, is reckoned out when it is asked for:
most operators let most accents pass as they are and never ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from anabranch.algebra.accents.boxes import combined, empty, within
from anabranch.algebra.accents.sets import Domains, redeclared, rewritten
from anabranch.algebra.readings import Reading, holds
from anabranch.errors import Aborted
from anabranch.predicate import EVERYTHING, NOTHING, Predicate, and_, not_, or_
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Add, Alter, Drop
from anabranch.stream.path import Path

Evolution: TypeAlias = Add | Drop | Alter
Alters: TypeAlias = tuple[Affine, ...]
"""Unit changes, one after another."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Disjoint sets of items, and the unit changes that the values of each have gone through, at one path."""

    parts: tuple[tuple[Predicate, Alters], ...] = ((EVERYTHING, ()),)

    def changed(self, where: Predicate, change: Callable[[Alters], Alters]) -> Pieces:
        """What is true when something changes for some of the items."""
        found: dict[Alters, Predicate] = {}
        for items, alters in self.parts:
            for part, now in ((and_(items, where), change(alters)), (and_(items, not_(where)), alters)):
                if not empty(part):
                    found[now] = or_(found[now], part) if now in found else part
        return Pieces(tuple((combined(items), alters) for alters, items in found.items()))

    def redeclared(self, domains: Domains) -> Pieces:
        """The same under other promises."""
        return Pieces(tuple((redeclared(items, domains), alters) for items, alters in self.parts))

    def beginning(self, alters: Alters) -> Predicate:
        """The items whose changes begin with these."""
        return or_(*(items for items, each in self.parts if each[: len(alters)] == alters))


@dataclass(frozen=True, slots=True)
class Step:
    """An accent: the items that it concerns, and what changes for them."""

    where: Predicate
    evolution: Evolution


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a path after some steps: the unit changes, and who has come to carry it or ceased to."""

    steps: int = 0
    pieces: Pieces = Pieces()
    added: Predicate = NOTHING
    dropped: Predicate = NOTHING


class Course:
    """The accents of a stream; whoever reads or writes the stream adds to it."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._known: dict[Path, _Known] = {}

    def see(self, where: Predicate, evolution: Evolution) -> None:
        """Some items evolve from here on."""
        if isinstance(evolution, Add):
            self._renew(where, evolution.path)
        self._steps.append(Step(where, evolution))

    def _renew(self, where: Predicate, path: Path) -> None:
        """Let no earlier unit change be about the items that have a new path of its name."""
        for index in reversed(range(len(self._steps))):
            step = self._steps[index]
            if isinstance(step.evolution, Alter) and step.evolution.path == path:
                self._steps[index] = replace(step, where=and_(step.where, not_(where)))
            where = _before(where, step)

    def back(self, items: Predicate, steps: int | None = None) -> Predicate:
        """A set told by the values at the place (or after so many steps), told by canonical ones."""
        for step in reversed(self._steps[:steps]):
            items = _before(items, step)
        return items

    def forward(self, items: Predicate) -> Predicate:
        """A set told by canonical values, told by those at the place."""
        for step in self._steps:
            if isinstance(step.evolution, Alter):
                items = _told(items, step.where, step.evolution.path, step.evolution.by)
        return items

    def canonical(self, reading: Reading) -> Reading:
        """An item at the place in canonical values."""
        for step in reversed(self._steps):
            if isinstance(step.evolution, Alter) and holds(step.where, reading):
                reading = reading.mapped(step.evolution.path, step.evolution.by.inverse())
        return reading

    def current(self, reading: Reading) -> Reading:
        """An item with canonical values as it is at the place."""
        for step in self._steps:
            if isinstance(step.evolution, Alter) and holds(step.where, reading):
                reading = reading.mapped(step.evolution.path, step.evolution.by)
        return reading

    def pieces(self, path: Path) -> Pieces:
        """The unit changes of a path, by canonical sets of items."""
        return self._of(path).pieces

    def carried(self, path: Path, from_start: Predicate) -> Predicate:
        """The (canonical) items that may carry a path, given those that could at the start."""
        known = self._of(path)
        return or_(and_(from_start, not_(known.dropped)), known.added)

    def dropped(self, path: Path) -> Predicate:
        """The (canonical) items that no longer carry a path, since it was dropped."""
        return self._of(path).dropped

    def _of(self, path: Path) -> _Known:
        known = self._known.get(path, _Known())
        for index in range(known.steps, len(self._steps)):
            evolution = self._steps[index].evolution
            if evolution.path != path:
                continue
            items = combined(self.back(self._steps[index].where, index))
            match evolution:
                case Add():
                    pieces = known.pieces.changed(items, lambda _: ())
                    added, dropped = or_(known.added, items), and_(known.dropped, not_(items))
                    known = replace(known, pieces=pieces, added=combined(added), dropped=combined(dropped))
                case Drop():
                    added = combined(and_(known.added, not_(items)))
                    known = replace(known, added=added, dropped=combined(or_(known.dropped, items)))
                case Alter(_, by):
                    known = replace(known, pieces=known.pieces.changed(items, _followed(by)))
        self._known[path] = replace(known, steps=len(self._steps))
        return self._known[path]

    def purge(self, closed: Predicate) -> None:
        """Forget the accents that concern only items of a (canonical) set, of which none will come."""
        kept = [step for index, step in enumerate(self._steps) if not within(self.back(step.where, index), closed)]
        if len(kept) < len(self._steps):
            self._steps = kept
            self._known.clear()

    def redeclare(self, domains: Domains) -> None:
        """Tell all sets under other promises."""
        self._steps = [replace(step, where=redeclared(step.where, domains)) for step in self._steps]
        self._known.clear()

    def __len__(self) -> int:
        return len(self._steps)


def _followed(by: Affine) -> Callable[[Alters], Alters]:
    return lambda alters: (*alters, by)


def _before(items: Predicate, step: Step) -> Predicate:
    match step.evolution:
        case Alter(path, by):
            return _told(items, step.where, path, by.inverse())
        case _:
            return items


def _told(items: Predicate, where: Predicate, path: Path, by: Affine) -> Predicate:
    found = rewritten(items, path, where, by)
    if found is None:
        raise Aborted(f"a description compares '{path}' as text, and its unit has changed")
    return found if found == items else combined(found)
