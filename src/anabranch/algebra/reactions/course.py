"""Courses: how a stream has evolved, from the start of a query up to a place in it.

A course is the list of the accents so far, each with the items it concerns, described by their raw values at that
place.
Going back along it converts written values to the units of the start, the *canonical* values; going forward converts
these to what has to be written.
Both ways work for items and for sets of items, and they are the rules 'commute alter with tuple' and 'commute alter
with accent' of the accents paper, 5.1, as repaired: a constant that an altered path is compared with is mapped.

An added path is a new path, whatever had its name before (LAWS 4.2 f), so earlier changes do not concern it.

The unit changes of a path, and the items that may carry it, are computed by sets of items on demand: most operators
let most accents pass unchanged and never ask.
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
    """An accent: the items that it concerns, by their values at its place, and what changes for them."""

    where: Predicate
    evolution: Evolution


@dataclass(frozen=True, slots=True)
class Closing:
    """A punctuation: none of the items, described by their values at its place, comes any more."""

    where: Predicate


@dataclass(frozen=True, slots=True)
class LetOut:
    """A change that comes out, and its items in canonical values."""

    change: Change
    items: Predicate


class FiledSets:
    """Sets of items by number."""

    def __init__(self) -> None:
        self._sets: dict[int, Predicate] = {}
        self._keys: dict[int, list[int]] = {}
        """By number: the keys of its boxes in the index."""
        self._index: Index[int] = Index()
        self._naming: dict[Path, set[int]] = {}
        """By path: the numbers of the sets that have ever named it."""

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, number: int) -> Predicate:
        return self._sets[number]

    def put(self, number: int, items: Predicate) -> None:
        """Set the set of a number."""
        for key in self._keys.get(number, ()):
            self._index.take(key)
        self._sets[number] = items
        parts = (literals(items),) if is_conjunction(items) else boxes(items)
        self._keys[number] = [self._index.add(box, number) for box in parts]
        for term in terms(items):
            self._naming.setdefault(term.path, set()).add(number)

    def naming(self, path: Path) -> list[int]:
        """The numbers of the sets that name a path, or one below it."""
        found = {number for each, numbers in self._naming.items() if below(each, path) for number in numbers}
        return sorted(number for number in found if names(self._sets[number], path))

    def tell(self, path: Path, told: Callable[[Predicate], Predicate]) -> None:
        """Rewrite the sets that name a path."""
        for number in self.naming(path):
            self.put(number, told(self._sets[number]))

    def of(self, reading: Reading) -> set[int]:
        """The numbers of the sets that hold an item."""
        return {number for _, number in self._index.of(reading.written(spelled))}

    def near(self, items: Predicate) -> set[int]:
        """The numbers of the sets that overlap a set."""
        return {number for box in boxes(items) for number in self._overlapping(box)}

    def _overlapping(self, box: Box) -> Iterator[int]:
        return (number for _, other, number in self._index.near(box) if met(box, other) is not None)


Alters: TypeAlias = tuple[Affine, ...]
"""Unit changes, in order."""


@dataclass(slots=True)
class KnownPath:
    """The state of a path after some steps, by canonical sets of items."""

    steps: int = 0
    units: Tiling[Alters] = field(default_factory=lambda: Tiling(()))
    """The unit changes of the values."""
    carried: Tiling[bool | None] = field(default_factory=lambda: Tiling(None))
    """Whether items may carry it, None as at the start."""


class Course:
    """The accents of a stream, appended by its reader or writer."""

    def __init__(self) -> None:
        self._steps: list[Change] = []
        self._places: dict[Path, list[int]] = {}
        """By path: the positions of its steps in the list."""
        self._mentioned: dict[Path, int] = {}
        """By path: the last step whose description names it."""
        self._known: dict[Path, KnownPath] = {}
        self._here = FiledSets()
        """The unit changes, by sets in the values at the place."""
        self._start = FiledSets()
        """The same by canonical sets, computed on demand."""
        self._started = 0
        self._purge_at = 0

    def see(self, where: Predicate, evolution: Evolution, *, composing: bool = False) -> None:
        """Append an accent on some items.

        With `composing`, unit changes may be composed, for callers that only need their product; so a sensor that
        changes to and fro for years is one step.
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
                self._here.tell(path, lambda items: _rewritten(items, where, path, by))
                self._here.put(number, where)
            case Drop():
                pass  # items without a path fulfil no comparison of it, and none with it can come
        self._steps.append(Change(where, evolution))
        self._places.setdefault(path, []).append(number)
        self._mentioned.update(dict.fromkeys(_named(where), number))

    def _composable(self, where: Predicate, path: Path) -> int | None:
        """The step with which a unit change can be composed: for the same items, with no dependent step in between."""
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
        """Exclude the items with a new path of this name from earlier unit changes."""
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
        """A set in the values at the place (or after so many steps), in canonical values."""
        return self._back(items, len(self._steps) if steps is None else steps, 0)

    def _back(self, items: Predicate, before: int, after: int) -> Predicate:
        """A set in the values before one step, in the values after an earlier one; only its paths count."""
        while True:
            places = [self._places[path] for path in _named(items) if path in self._places]
            found = [each[at - 1] for each in places if (at := bisect_left(each, before)) > 0]
            before = max(found, default=-1)
            if before < after:
                return items
            items = _before(items, self._steps[before])

    def forward(self, items: Predicate) -> Predicate:
        """A set in canonical values, in the values at the place."""
        at = 0
        while True:
            places = [self._places[path] for path in _named(items) if path in self._places]
            found = [each[next] for each in places if (next := bisect_left(each, at)) < len(each)]
            if not found:
                return items
            step = self._steps[min(found)]
            if isinstance(step.evolution, Alter):
                items = _rewritten(items, step.where, step.evolution.path, step.evolution.by)
            at = min(found) + 1

    def canonical(self, reading: Reading) -> Reading:
        """An item of the place in canonical values."""
        for evolution in self._concerning(self._here, reading, latest_first=True):
            reading = reading.mapped(evolution.path, evolution.by.inverse())
        return self._mistrusted(self._here, reading)

    def current(self, reading: Reading) -> Reading:
        """An item with canonical values in the units of the place."""
        self._catch_up()
        for evolution in self._concerning(self._start, reading, latest_first=False):
            reading = reading.mapped(evolution.path, evolution.by)
        return self._mistrusted(self._start, reading)

    def _concerning(self, filed: FiledSets, reading: Reading, *, latest_first: bool) -> list[Alter]:
        """The unit changes of an item."""
        numbers = sorted(filed.of(reading), reverse=latest_first) if filed else []
        found = [self._steps[number].evolution for number in numbers]
        return [each for each in found if isinstance(each, Alter)]

    def _mistrusted(self, filed: FiledSets, reading: Reading) -> Reading:
        """The item with the paths that are unknown because a description names an unknown path."""
        for path, reason in reading.unknown.items():
            for number in filed.naming(path):
                reading = reading.mistrusted(self._steps[number].evolution.path, reason)
        return reading

    def _catch_up(self) -> None:
        """Index all unit changes by canonical sets."""
        for number in range(self._started, len(self._steps)):
            step = self._steps[number]
            if isinstance(step.evolution, Alter):
                self._start.put(number, self.back(step.where, number))
        self._started = len(self._steps)

    def known(self, path: Path) -> KnownPath:
        """The state of a path after the steps so far."""
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
        """Forget the accents that concern only (canonical) items that have ended.

        All accents are checked, so only when their number has doubled since the last time.
        """
        if len(self._steps) >= self._purge_at:
            sets = (self.back(step.where, number) for number, step in enumerate(self._steps))
            self._rebuild(step for step, items in zip(self._steps, sets, strict=True) if not ended(items))
            self._purge_at = 2 * len(self._steps)

    def redeclare(self, domains: Domains) -> None:
        """Rewrite all sets for other domains."""
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
            return _rewritten(items, step.where, path, by.inverse())
        case _:
            return items


def _rewritten(items: Predicate, where: Predicate, path: Path, by: Affine) -> Predicate:
    found = rewritten(items, path, where, by)
    if found is None:
        raise Aborted(f"a description compares '{path}' as text, and its unit has changed")
    return found if found == items else combined(found)
