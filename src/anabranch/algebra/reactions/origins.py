"""Origins: all that the items of an operator's output may have come from, and what holds for all or for some of it.

An item of the output may come from any input, and with any values at the paths that the output cannot name, those that
are *hidden*.
So what has happened to the inputs becomes something of the output in two ways only: because it holds for *some* of what
an item may have come from, or because it holds for *all* of that.
Of 'all', those that are closed by a punctuation are left out, since nothing comes of them any more.

Sets are in canonical values, those of query start (`course.py`).
Without a schema a path is taken to have been in no item at the start if the first accent on it adds it, else in all.

`Apart` is one path of the output that has a course of its own, since an accent on it did not come out as it came.
From there on it is known, by sets of items, who may carry the path in the output, and through which unit changes its
values have gone there; the difference to what the inputs have done to their paths comes out.

`Untouched` tells that nothing can come out yet without computing with all that was accumulated.
A drop or alter with a description that the output cannot name comes out when it holds for all values of the hidden
paths (LAWS 4.2 e); so nothing can come out at a path while there are hidden values that no accent has named since input
and output were last in step: a thousand sensors may change one by one, and each of these accents costs what its own
description is long.
One such row of hidden values is remembered: that of an item without these paths; and where all items have one of the
values of a declared domain, the first of them that no accent has named.
This works for paths with one source, and separately for alters and for drops.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from anabranch.algebra.accents.boxes import boxes, combined, literals, term_of, without
from anabranch.algebra.accents.items import number
from anabranch.algebra.accents.sets import Domains, redeclared, stands
from anabranch.algebra.reactions.course import Alters, Course, Evolution
from anabranch.algebra.reactions.signature import NO_PATHS, AccentSignature, PathSet, unlinked
from anabranch.algebra.reactions.tiling import Tiling
from anabranch.logic import decided
from anabranch.predicate import EVERYTHING, NOTHING, Compare, Finite, Predicate, and_, or_, terms
from anabranch.predicate.formula import Atom
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Add
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

        def compared(atom: Atom) -> bool | None:
            if not isinstance(atom, Compare):
                return None
            path = atom.term.path
            if path in known:
                return stands(known[path], atom.op, atom.constant)
            # a hidden path that nothing is promised of may be missing, and then no comparison holds
            return False if path in self._hidden and path not in self._domains else None

        return decided(items, compared)


def _pinned(items: Predicate, path: Path | None) -> object | None:
    """The one value of a path that a set has items with, where it says so plainly."""
    for each in literals(items):
        match each:
            case Compare(term, "=", constant) if term.path == path:
                return constant
    return None


Source: TypeAlias = tuple[int, Path]
"""An input, and a path of its items."""
Division: TypeAlias = Callable[[int, Path, Predicate], Iterator[tuple[Predicate, bool]]]
"""Takes items of an input apart by whether something holds for a path of theirs."""


class Origins:
    """The inputs of an operator, as far as they have evolved and ended."""

    def __init__(self, signature: AccentSignature, arity: int, domains: Domains) -> None:
        self.signature = signature
        self.domains = domains
        self.inputs = [Course() for _ in range(arity)]
        self._ended = [Tiling(False) for _ in range(arity)]
        """Of each input, whether none of the items will come."""
        self._at_start: dict[Path, bool] = {}
        """Whether items are taken to have carried a path."""
        hidden = signature.accumulator if signature.link is unlinked else NO_PATHS
        self._open: list[Untouched | None] = [Untouched(hidden, domains, lambda: NOTHING) for _ in range(arity)]
        """For each input, the hidden values that no punctuation has spoken of, if there are any."""

    def redeclare(self, domains: Domains) -> None:
        """Tell all sets under other promises."""
        self.domains = domains
        self._open = [None] * len(self.inputs)
        for course in self.inputs:
            course.redeclare(domains)
        self._ended = [each.mapped(lambda items: redeclared(items, domains)) for each in self._ended]

    def hear(self, path: Path, evolution: Evolution) -> None:
        """Something happens to a path: if it is the first that does, it tells what was at the start."""
        self._at_start.setdefault(path, not isinstance(evolution, Add))

    def carries(self, path: Path, carried: bool | None) -> bool:
        """Whether items may carry a path; None stands for what was at the start."""
        return self._at_start[path] if carried is None else carried

    # --- what comes no more -----------------------------------------------------------------------------------

    def close(self, input: int, where: Predicate) -> Predicate:
        """No item of a set, told by the values at the place, comes any more on an input; gives the canonical set."""
        items = self.inputs[input].back(redeclared(where, self.domains))
        self._ended[input].change(items, lambda _: True)
        known = self._open[input]
        if known is not None and not known.touch(where):
            self._open[input] = None
        return items

    def has_ended(self, input: int, items: Predicate) -> bool:
        """Whether none of some items will come on an input."""
        return all(ended for _, ended in self._ended[input].over(items))

    def purge(self, input: int) -> None:
        """Forget what concerns only items that do not come any more."""
        self.inputs[input].purge(lambda items: self.has_ended(input, items))

    def finished(self, items: Predicate) -> Predicate:
        """Of some items of the output, those of which none will come, whatever they come from."""
        if any(self._open):
            return NOTHING
        return without(items, self.for_some(or_(*(each.where(operator.not_, items) for each in self._ended))))

    def untouched(self, input: int) -> Untouched | None:
        """All hidden values of items that may still come on an input, if there are any."""

        def ended() -> Predicate:
            return self._ended[input].where(bool)

        fresh = Untouched(self.signature.accumulator, self.domains, ended)
        return fresh if fresh.closed(ended()) else None

    # --- what holds at a path ---------------------------------------------------------------------------------

    def lacking(self, input: int, path: Path, items: Predicate) -> Iterator[tuple[Predicate, bool]]:
        """Some items in parts, with whether they cannot carry a path."""
        for part, carried in self.inputs[input].known(path).carried.over(items):
            yield part, not self.carries(path, carried)

    def gone_through(self, alters: Alters) -> Division:
        """Tells of items whether their values have gone through these unit changes first of all."""

        def divide(input: int, path: Path, items: Predicate) -> Iterator[tuple[Predicate, bool]]:
            for part, found in self.inputs[input].known(path).units.over(items):
                yield part, found[: len(alters)] == alters

        return divide

    # --- all and some -----------------------------------------------------------------------------------------

    def for_all(self, sources: tuple[Source, ...], items: Predicate, divide: Division) -> Predicate:
        """Of some items of the output, those of which something holds at the sources, whatever they have come from.

        What is hidden makes this a question of what is left over; else the inputs are asked one after another, first
        those of which the least has been said.
        """
        if self.signature.accumulator != NO_PATHS:
            against = (part for each in sources for part in self._denying(*each, items, divide))
            return without(items, self.for_some(or_(*against)))
        left = [items]
        for input, path in sorted(sources, key=lambda each: self._said(*each)):
            parts = [each for item in left for each in divide(input, path, item)]
            left = [part if holds else self._ended[input].where(bool, part) for part, holds in parts]
            left = [part for part in left if part != NOTHING]
        return combined(or_(*left))

    def _said(self, input: int, path: Path) -> int:
        known = self.inputs[input].known(path)
        return len(known.units) + len(known.carried)

    def _denying(self, input: int, path: Path, items: Predicate, divide: Division) -> Iterator[Predicate]:
        """The parts of some items that may still come on an input, and of which something does not hold there."""
        for part, holds in divide(input, path, items):
            if not holds:
                yield self._ended[input].where(operator.not_, part)

    def for_some(self, items: Predicate) -> Predicate:
        """The items of the output that are in a set for some values of what is hidden."""
        if not self.hidden(items):
            return combined(items)
        found = []
        for box in boxes(items):
            hidden = [each for each in box if term_of(each).path in self.signature.accumulator]
            found.append(and_(*(each for each in box if each not in hidden), self.signature.link(hidden)))
        return combined(or_(*found))

    def hidden(self, items: Predicate) -> list[Path]:
        """The paths of a set that the output cannot name."""
        return sorted({each.path for each in terms(items) if each.path in self.signature.accumulator})


class Apart:
    """What has become of a path in the output; `sources` have to agree on what comes out."""

    def __init__(self, path: Path, sources: tuple[Source, ...], origins: Origins) -> None:
        self._sources = sources
        self._origins = origins
        self._carried = Tiling(origins.carries(path, None))
        self._taken: Tiling[Alters] = Tiling(())
        """The unit changes of the inputs that the output has gone through, let out or not."""
        self._untouched: dict[bool, Untouched | None] = {}
        """The hidden values left alone since input and output were in step, if any are; for alters, and for drops."""
        if len(sources) == 1:
            [(input, source)] = sources
            if origins.signature.link is unlinked:
                self._untouched = {is_alter: origins.untouched(input) for is_alter in (True, False)}
            known = origins.inputs[input].known(source)
            for part, carried in known.carried.over(EVERYTHING):
                self._carried.change(part, _being(origins.carries(source, carried)))
            self._taken = known.units.mapped(lambda part: part)

    def redeclare(self, tell: Callable[[Predicate], Predicate]) -> None:
        """Tell all sets under other promises."""
        self._carried, self._taken = self._carried.mapped(tell), self._taken.mapped(tell)
        self._untouched = dict.fromkeys(self._untouched)

    # --- what is untouched ------------------------------------------------------------------------------------

    def waits(self, is_alter: bool, tell: Callable[[Untouched], bool]) -> bool:
        """Tell what is untouched of something that has happened; whether nothing can come of it, since it still is."""
        known = self._untouched.get(is_alter)
        if known is not None and not tell(known):
            self._untouched[is_alter] = None
        return self._untouched.get(is_alter) is not None

    def overtake(self) -> None:
        """An add comes out for some of what an item may have come from, and so the output goes ahead of the others."""
        for is_alter in self._untouched:
            if not (is_alter and self._has_first_unit()):
                self._untouched[is_alter] = None

    def _has_first_unit(self) -> bool:
        """Whether nothing at the one source has ever changed its unit."""
        [(input, source)] = self._sources
        units = self._origins.inputs[input].known(source).units
        return not len(units) and units.elsewhere == ()

    def settle(self) -> None:
        """Where input and output are in step for all items, all are untouched by what comes."""
        for is_alter, untouched in self._untouched.items():
            if untouched is None:
                [(input, source)] = self._sources
                known = self._origins.inputs[input].known(source)
                if is_alter:
                    in_step = len(known.units.says() | self._taken.says()) == 1
                else:
                    there = {self._origins.carries(source, each) for each in known.carried.says()}
                    in_step = len(there | self._carried.says()) == 1
                self._untouched[is_alter] = self._origins.untouched(input) if in_step else None

    # --- what comes out ---------------------------------------------------------------------------------------

    def gain(self, items: Predicate) -> Predicate:
        """Have some items carry the path; gives those that did not."""
        gained = without(items, self._carried.where(bool, items))
        self._carried.change(gained, lambda _: True)
        return gained

    def lose(self, items: Predicate) -> Predicate:
        """Have those of some items carry the path no longer that do not, whatever they come from; gives them."""
        before = self._carried.where(bool, items)
        lost = self._origins.for_all(self._sources, before, self._origins.lacking)
        if lost != NOTHING:
            dropped = (self._origins.inputs[input].dropped(source, items) for input, source in self._sources)
            lost = combined(and_(lost, self._origins.for_some(or_(*dropped))))
        self._carried.change(lost, lambda _: False)
        return lost

    def renew(self, items: Predicate) -> None:
        """What some items have there is new, so it has gone through nothing yet."""
        self._taken.change(items, lambda _: ())

    def take(self, items: Predicate, by: Affine) -> None:
        """Have some items go through a unit change."""
        self._taken.change(items, lambda alters: (*alters, by))

    def ready(self, items: Predicate) -> dict[Affine, Predicate]:
        """Of some items, those that have the same unit change next, whatever they come from; by the change."""
        found: dict[Affine, list[Predicate]] = {}
        for part, alters, by in self._next(items):
            ready = self._origins.for_all(self._sources, part, self._origins.gone_through((*alters, by)))
            if ready != NOTHING:
                found.setdefault(by, []).append(ready)
        return {by: combined(or_(*parts)) for by, parts in found.items()}

    def _next(self, items: Predicate) -> Iterator[tuple[Predicate, Alters, Affine]]:
        """The unit changes that some input has after those of the output, by sets of items."""
        for part, alters in self._taken.over(items):
            later = [
                each[len(alters)]
                for input, source in self._sources
                for _, each in self._origins.inputs[input].known(source).units.over(part)
                if len(each) > len(alters) and each[: len(alters)] == alters
            ]
            yield from ((part, alters, by) for by in dict.fromkeys(later))


def _being(carried: bool) -> Callable[[bool], bool]:
    return lambda _: carried
