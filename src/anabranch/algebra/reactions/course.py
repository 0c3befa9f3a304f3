"""Courses: how a stream has evolved, from the start of a query up to a place in it.

A course is the list of the accents seen, in order, each with the items it concerns, described by their raw values at
that place.
Going back along it leads from what is written at the place to what it means in the units of the start, the *canonical*
values; going forward leads from there to what has to be written.
Both ways are open to items and to sets of items, and they are the rules 'commute alter with tuple' and 'commute alter
with accent' of the accents paper, 5.1, as repaired: a constant that an altered path is compared with is mapped.

A path that is added is a new path, whatever had its name before (LAWS 4.2 f), so changes from before do not concern it.

What is known of sets of items, the unit changes of a path and who may carry it, is computed when it is asked for: most
operators let most accents pass as they are and never ask.
Unit changes are indexed by the boxes of their sets (`accents/index.py`), so one for `s = 1` costs nothing for an item
of another sensor.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from anabranch.algebra.accents.boxes import boxes, combined, is_conjunction, literals, met
from anabranch.algebra.accents.index import Box, Index
from anabranch.algebra.accents.items import spelled
from anabranch.algebra.accents.sets import Domains, below, names, parted, redeclared, rewritten
from anabranch.algebra.reactions.readings import Reading
from anabranch.algebra.reactions.tiling import Tiling
from anabranch.errors import Aborted
from anabranch.predicate import EVERYTHING, Predicate, and_, not_, terms
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Add, Alter, Drop
from anabranch.stream.path import Path

Evolution: TypeAlias = Add | Drop | Alter


@dataclass(frozen=True, slots=True)
class Change:
    """An accent: the items that it concerns, told by their values at its place, and what changes for them."""

    where: Predicate
    evolution: Evolution


@dataclass(frozen=True, slots=True)
class Closing:
    """A punctuation: none of the items, told by their values at its place, comes any more."""

    where: Predicate


@dataclass(frozen=True, slots=True)
class LetOut:
    """A change that comes out, and the set of items in canonical values."""

    change: Change
    items: Predicate


class Filed:
    """Sets of items by number."""

    def __init__(self) -> None:
        self._sets: dict[int, Predicate] = {}
        self._keys: dict[int, list[int]] = {}
        """By number: the keys of its boxes in the index."""
        self._index: Index[int] = Index()
        self._naming: dict[Path, set[int]] = {}
        """The numbers of the sets that have ever named a path."""

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, number: int) -> Predicate:
        return self._sets[number]

    def put(self, number: int, items: Predicate) -> None:
        """File a set, in place of the one that the number had."""
        for key in self._keys.get(number, ()):
            self._index.take(key)
        self._sets[number] = items
        parts = (literals(items),) if is_conjunction(items) else boxes(items)
        self._keys[number] = [self._index.add(box, number) for box in parts]
        for term in terms(items):
            self._naming.setdefault(term.path, set()).add(number)

    def naming(self, path: Path) -> list[int]:
        """The numbers of the sets that name a path, or something below it."""
        found = {number for each, numbers in self._naming.items() if below(each, path) for number in numbers}
        return sorted(number for number in found if names(self._sets[number], path))

    def tell(self, path: Path, told: Callable[[Predicate], Predicate]) -> None:
        """Tell the sets anew that name a path."""
        for number in self.naming(path):
            self.put(number, told(self._sets[number]))

    def of(self, reading: Reading) -> set[int]:
        """The numbers of the sets that an item is in."""
        return {number for _, number in self._index.of(reading.written(spelled))}

    def near(self, items: Predicate) -> set[int]:
        """The numbers of the sets that have items in common with one."""
        return {number for box in boxes(items) for number in self._overlapping(box)}

    def _overlapping(self, box: Box) -> Iterator[int]:
        return (number for _, other, number in self._index.near(box) if met(box, other) is not None)


Alters: TypeAlias = tuple[Affine, ...]
"""Unit changes, one after another."""


@dataclass(slots=True)
class KnownPath:
    """What is known of a path after some of its steps, by canonical sets of items."""

    steps: int = 0
    units: Tiling[Alters] = field(default_factory=lambda: Tiling(()))
    """The unit changes that values have gone through."""
    carried: Tiling[bool | None] = field(default_factory=lambda: Tiling(None))
    """Whether items may carry it, None as at the start."""


class Course:
    """The accents of a stream; whoever reads or writes the stream adds to it."""

    def __init__(self) -> None:
        self._steps: list[Change] = []
        self._places: dict[Path, list[int]] = {}
        """Where in the list the steps of each path are."""
        self._mentioned: dict[Path, int] = {}
        """The last step whose description names a path."""
        self._known: dict[Path, KnownPath] = {}
        self._here = Filed()
        """The unit changes, by sets that are told by the values at the place."""
        self._start = Filed()
        """The same by canonical sets, as far as they have been asked for."""
        self._started = 0
        self._purge_at = 0

    def see(self, where: Predicate, evolution: Evolution, *, composing: bool = False) -> None:
        """Some items evolve from here on.

        Who does not ask which unit changes there were, but only what they come to, may have them composed; so a sensor
        that changes to and fro for years is one step.
        """
        number, path = len(self._steps), evolution.path
        last = self._composable(where, path) if composing and isinstance(evolution, Alter) else None
        if last is not None:
            self._compose(last, evolution)
            return
        match evolution:
            case Add():
                self._here.tell(path, lambda items: parted(items, path, where))
                self._renew(where, path)
            case Alter(_, by):
                self._here.tell(path, lambda items: _told(items, where, path, by))
                self._here.put(number, where)
            case Drop():
                pass  # items without a path fulfil no comparison of it, and no other kind comes
        self._steps.append(Change(where, evolution))
        self._places.setdefault(path, []).append(number)
        self._mentioned.update(dict.fromkeys(_named(where), number))

    def _composable(self, where: Predicate, path: Path) -> int | None:
        """The step that a unit change can be made one with: for the same items, and nobody looks at what is between."""
        last = self._places[path][-1] if path in self._places else -1
        if last < 0 or not isinstance(self._steps[last].evolution, Alter) or self._steps[last].where != where:
            return None
        told_anew = any(self._places[each][-1] > last for each in _named(where) if each in self._places)
        return None if told_anew or self._mentioned.get(path, -1) > last else last

    def _compose(self, number: int, evolution: Evolution) -> None:
        step = self._steps[number]
        assert isinstance(step.evolution, Alter)
        assert isinstance(evolution, Alter)
        net = Alter(evolution.path, step.evolution.by.then(evolution.by))
        self._steps[number] = replace(step, evolution=net)
        self._known.pop(evolution.path, None)

    def _renew(self, where: Predicate, path: Path) -> None:
        """Let no earlier unit change be about the items that have a new path of its name."""
        self._catch_up()
        start = self.back(where)
        self._start.tell(path, lambda items: parted(items, path, start))
        for number in self._here.near(where):
            step = self._steps[number]
            if below(step.evolution.path, path):
                there = self._back(where, len(self._steps), number + 1)
                self._steps[number] = replace(step, where=and_(step.where, not_(there)))
                self._here.put(number, and_(self._here[number], not_(where)))
                self._start.put(number, and_(self._start[number], not_(start)))

    def back(self, items: Predicate, steps: int | None = None) -> Predicate:
        """A set told by the values at the place (or after so many steps), told by canonical ones."""
        return self._back(items, len(self._steps) if steps is None else steps, 0)

    def _back(self, items: Predicate, before: int, after: int) -> Predicate:
        """A set told before one step, told by the values after an earlier one; only what it names is looked at."""
        while True:
            places = [self._places[path] for path in _named(items) if path in self._places]
            found = [each[at - 1] for each in places if (at := bisect_left(each, before)) > 0]
            before = max(found, default=-1)
            if before < after:
                return items
            items = _before(items, self._steps[before])

    def forward(self, items: Predicate) -> Predicate:
        """A set told by canonical values, told by those at the place."""
        at = 0
        while True:
            places = [self._places[path] for path in _named(items) if path in self._places]
            found = [each[next] for each in places if (next := bisect_left(each, at)) < len(each)]
            if not found:
                return items
            step = self._steps[min(found)]
            if isinstance(step.evolution, Alter):
                items = _told(items, step.where, step.evolution.path, step.evolution.by)
            at = min(found) + 1

    def canonical(self, reading: Reading) -> Reading:
        """An item at the place in canonical values."""
        for evolution in self._concerning(self._here, reading, latest_first=True):
            reading = reading.mapped(evolution.path, evolution.by.inverse())
        return self._mistrusted(self._here, reading)

    def current(self, reading: Reading) -> Reading:
        """An item with canonical values as it is at the place."""
        self._catch_up()
        for evolution in self._concerning(self._start, reading, latest_first=False):
            reading = reading.mapped(evolution.path, evolution.by)
        return self._mistrusted(self._start, reading)

    def _concerning(self, filed: Filed, reading: Reading, *, latest_first: bool) -> list[Alter]:
        """The unit changes that an item has gone through."""
        numbers = sorted(filed.of(reading), reverse=latest_first) if filed else []
        found = [self._steps[number].evolution for number in numbers]
        return [each for each in found if isinstance(each, Alter)]

    def _mistrusted(self, filed: Filed, reading: Reading) -> Reading:
        """The item with what is unknown because a description asks for what is unknown."""
        for path, reason in reading.unknown.items():
            for number in filed.naming(path):
                reading = reading.mistrusted(self._steps[number].evolution.path, reason)
        return reading

    def _catch_up(self) -> None:
        """Have all unit changes by canonical sets."""
        for number in range(self._started, len(self._steps)):
            step = self._steps[number]
            if isinstance(step.evolution, Alter):
                self._start.put(number, self.back(step.where, number))
        self._started = len(self._steps)

    def known(self, path: Path) -> KnownPath:
        """What the steps so far have made of a path."""
        known, places = self._known.setdefault(path, KnownPath()), self._places.get(path, [])
        for number in places[known.steps :]:
            items = combined(self.back(self._steps[number].where, number))
            match self._steps[number].evolution:
                case Add():
                    known.units.change(items, lambda _: ())
                    known.carried.change(items, lambda _: True)
                case Drop():
                    known.carried.change(items, lambda _: False)
                case Alter(_, by):
                    known.units.change(items, _followed(by))
        known.steps = len(places)
        return known

    def dropped(self, path: Path, items: Predicate = EVERYTHING) -> Predicate:
        """Those of some (canonical) items that no longer carry a path, since it was dropped."""
        return self.known(path).carried.where(lambda carried: carried is False, items)

    def purge(self, ended: Callable[[Predicate], bool]) -> None:
        """Forget the accents that concern only (canonical) items of which none will come.

        All are gone through, so only when they have doubled since the last time.
        """
        if len(self._steps) >= self._purge_at:
            sets = (self.back(step.where, number) for number, step in enumerate(self._steps))
            self._rebuild(step for step, items in zip(self._steps, sets, strict=True) if not ended(items))
            self._purge_at = 2 * len(self._steps)

    def redeclare(self, domains: Domains) -> None:
        """Tell all sets under other promises."""
        self._rebuild(replace(step, where=redeclared(step.where, domains)) for step in self._steps)

    def _rebuild(self, steps: Iterable[Change]) -> None:
        fresh = Course()
        for step in steps:
            fresh.see(step.where, step.evolution)
        vars(self).update(vars(fresh))

    def __len__(self) -> int:
        return len(self._steps)


def _followed(by: Affine) -> Callable[[Alters], Alters]:
    return lambda alters: (*alters, by)


def _named(items: Predicate) -> frozenset[Path]:
    return frozenset(each.path for each in terms(items))


def _before(items: Predicate, step: Change) -> Predicate:
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
