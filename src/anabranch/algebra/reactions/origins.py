"""Origins: the input items that an operator's output item may come from, and what holds for all or for some of them.

An output item may come from any input, and with any values at the paths that the output cannot name, the *hidden* ones.
So changes of the inputs become changes of the output in two ways only: because they hold for *some* of the possible
origins of an item, or for *all* of them.
For 'all', origins closed by a punctuation are left out, since no item comes from them any more.

Sets are in canonical values, those of query start (`course.py`).
Without a schema, a path was in no item at the start if the first accent on it is an add, else in all.

`Apart` is one path of the output with a course of its own, since an accent on it did not come out unchanged.
From there on it records, by sets of items, which may carry the path in the output, and the unit changes of its values
there; the difference to the inputs' changes comes out.

`Untouched` shows cheaply that nothing can come out yet, without computing with all that was accumulated.
A drop or alter with a description that the output cannot name comes out when it holds for all values of the hidden
paths (LAWS 4.2 e); so nothing can come out at a path while there are hidden values that no accent has named since input
and output were last in step: a thousand sensors may change one by one, and each of these accents costs only the length
of its own description.
One such combination of hidden values is remembered: that of an item without these paths; and where all items have one
of the values of a declared domain, the first of them that no accent has named.
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
    """Hidden values that no accent has named, at one path of the output, of items that may still come.

    `ended` gives the items that may not; `closed` and `touch` return whether untouched values are left.
    """

    def __init__(self, hidden: PathSet, domains: Domains, ended: Callable[[], Predicate]) -> None:
        self._hidden = hidden
        self._domains = domains
        self._ended = ended
        self._pins: set[object] = set()
        """The values that accents have pinned the declared path to."""
        self._others: list[Predicate] = []
        """The sets of all other accents."""
        self._declared: Path | None = None
        self._values: Iterator[str] = iter(())
        self._witness: str | None = None
        """The current untouched value of the declared path; without one, all hidden paths are missing."""

    def closed(self, items: Predicate) -> bool:
        """Note that no item of a set comes any more; whether untouched values are left."""
        return self._is_free(self._witness, (items,)) or self._advance()

    def touch(self, items: Predicate) -> bool:
        """Note an accent on a set, in the values of its place; whether untouched values are left."""
        pinned = _pinned(items, self._declared)
        if pinned is None:
            self._others.append(items)
        else:
            self._pins.add(pinned)
        return self.closed(items)

    def _advance(self) -> bool:
        """Find the next untouched values, if there are any."""
        sets = (*self._others, self._ended())
        if self._declared is None:
            self._choose(sets)
        for each in self._values:
            if not {each, number(each)} & self._pins and self._is_free(each, sets):
                self._witness = each
                return True
        return False

    def _choose(self, sets: Sequence[Predicate]) -> None:
        """Choose a declared path, if an accent has named one."""
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
        """Whether a set has items with these hidden values; None where that depends on other values."""

        def compared(atom: Atom) -> bool | None:
            if not isinstance(atom, Compare):
                return None
            path = atom.term.path
            if path in known:
                return stands(known[path], atom.op, atom.constant)
            # a hidden path without a domain may be missing, and then no comparison holds
            return False if path in self._hidden and path not in self._domains else None

        return decided(items, compared)


def _pinned(items: Predicate, path: Path | None) -> object | None:
    """The one value of a path in a set, where it is explicit."""
    for each in literals(items):
        match each:
            case Compare(term, "=", constant) if term.path == path:
                return constant
    return None


Source: TypeAlias = tuple[int, Path]
"""An input, and a path of its items."""
Division: TypeAlias = Callable[[int, Path, Predicate], Iterator[tuple[Predicate, bool]]]
"""Divides items of an input by whether something holds for a path."""


class Origins:
    """The inputs of an operator, as they have evolved and ended."""

    def __init__(self, signature: AccentSignature, arity: int, domains: Domains) -> None:
        self.signature = signature
        self.domains = domains
        self.inputs = [Course() for _ in range(arity)]
        self._ended = [Tiling(False) for _ in range(arity)]
        """By input: whether none of the items will come."""
        self._at_start: dict[Path, bool] = {}
        """By path: whether items carried it at the start."""
        hidden = signature.accumulator if signature.link is unlinked else NO_PATHS
        self._open: list[Untouched | None] = [Untouched(hidden, domains, lambda: NOTHING) for _ in range(arity)]
        """By input: the hidden values that no punctuation has named, if there are any."""

    def redeclare(self, domains: Domains) -> None:
        """Rewrite all sets for other domains."""
        self.domains = domains
        self._open = [None] * len(self.inputs)
        for course in self.inputs:
            course.redeclare(domains)
        self._ended = [each.mapped(lambda items: redeclared(items, domains)) for each in self._ended]

    def hear(self, path: Path, evolution: Evolution) -> None:
        """Note a change of a path: the first one shows what was there at the start."""
        self._at_start.setdefault(path, not isinstance(evolution, Add))

    def carries(self, path: Path, carried: bool | None) -> bool:
        """Whether items may carry a path; None stands for the start."""
        return self._at_start[path] if carried is None else carried

    # --- closed items -----------------------------------------------------------------------------------------

    def close(self, input: int, where: Predicate) -> Predicate:
        """Close a set of items of an input, in the values at the place; gives the canonical set."""
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
        """Forget what concerns only closed items."""
        self.inputs[input].purge(lambda items: self.has_ended(input, items))

    def finished(self, items: Predicate) -> Predicate:
        """Those of some output items that are closed for all origins."""
        if any(self._open):
            return NOTHING
        return without(items, self.for_some(or_(*(each.where(operator.not_, items) for each in self._ended))))

    def untouched(self, input: int) -> Untouched | None:
        """The untouched hidden values of items that may still come on an input, if there are any."""

        def ended() -> Predicate:
            return self._ended[input].where(bool)

        fresh = Untouched(self.signature.accumulator, self.domains, ended)
        return fresh if fresh.closed(ended()) else None

    # --- conditions at a path ---------------------------------------------------------------------------------

    def lacking(self, input: int, path: Path, items: Predicate) -> Iterator[tuple[Predicate, bool]]:
        """Divide some items by whether they cannot carry a path."""
        for part, carried in self.inputs[input].known(path).carried.over(items):
            yield part, not self.carries(path, carried)

    def gone_through(self, alters: Alters) -> Division:
        """A division by whether values have gone through these unit changes first."""

        def divide(input: int, path: Path, items: Predicate) -> Iterator[tuple[Predicate, bool]]:
            for part, found in self.inputs[input].known(path).units.over(items):
                yield part, found[: len(alters)] == alters

        return divide

    # --- all and some -----------------------------------------------------------------------------------------

    def for_all(self, sources: tuple[Source, ...], items: Predicate, divide: Division) -> Predicate:
        """Those of some output items for which something holds at the sources for all origins.

        With hidden paths, the origins that deny it are subtracted; else the inputs are tested in turn, those with the
        fewest changes first.
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
        """The parts of some items that may still come on an input, and for which something does not hold there."""
        for part, holds in divide(input, path, items):
            if not holds:
                yield self._ended[input].where(operator.not_, part)

    def for_some(self, items: Predicate) -> Predicate:
        """The output items that are in a set for some hidden values."""
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
    """The changes of a path in the output; `sources` have to agree on what comes out."""

    def __init__(self, path: Path, sources: tuple[Source, ...], origins: Origins) -> None:
        self._sources = sources
        self._origins = origins
        self._carried = Tiling(origins.carries(path, None))
        self._taken: Tiling[Alters] = Tiling(())
        """The inputs' unit changes that the output has gone through, let out or not."""
        self._untouched: dict[bool, Untouched | None] = {}
        """The untouched hidden values since input and output were in step, if any; for alters, and for drops."""
        if len(sources) == 1:
            [(input, source)] = sources
            if origins.signature.link is unlinked:
                self._untouched = {is_alter: origins.untouched(input) for is_alter in (True, False)}
            known = origins.inputs[input].known(source)
            for part, carried in known.carried.over(EVERYTHING):
                self._carried.change(part, _being(origins.carries(source, carried)))
            self._taken = known.units.mapped(lambda part: part)

    def redeclare(self, tell: Callable[[Predicate], Predicate]) -> None:
        """Rewrite all sets."""
        self._carried, self._taken = self._carried.mapped(tell), self._taken.mapped(tell)
        self._untouched = dict.fromkeys(self._untouched)

    # --- untouched values -------------------------------------------------------------------------------------

    def waits(self, is_alter: bool, tell: Callable[[Untouched], bool]) -> bool:
        """Note an event in the untouched values; whether nothing can come of it, since some are left."""
        known = self._untouched.get(is_alter)
        if known is not None and not tell(known):
            self._untouched[is_alter] = None
        return self._untouched.get(is_alter) is not None

    def overtake(self) -> None:
        """Note that an add comes out for some origins, so that the output is ahead of the others."""
        for is_alter in self._untouched:
            if not (is_alter and self._has_first_unit()):
                self._untouched[is_alter] = None

    def _has_first_unit(self) -> bool:
        """Whether the one source has never changed its unit."""
        [(input, source)] = self._sources
        units = self._origins.inputs[input].known(source).units
        return not len(units) and units.elsewhere == ()

    def settle(self) -> None:
        """Where input and output are in step for all items, all values are untouched again."""
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
        """Let some items carry the path; gives those that did not before."""
        gained = without(items, self._carried.where(bool, items))
        self._carried.change(gained, lambda _: True)
        return gained

    def lose(self, items: Predicate) -> Predicate:
        """Remove the path from those items that lack it for all origins; gives them."""
        before = self._carried.where(bool, items)
        lost = self._origins.for_all(self._sources, before, self._origins.lacking)
        if lost != NOTHING:
            dropped = (self._origins.inputs[input].dropped(source, items) for input, source in self._sources)
            lost = combined(and_(lost, self._origins.for_some(or_(*dropped))))
        self._carried.change(lost, lambda _: False)
        return lost

    def renew(self, items: Predicate) -> None:
        """Reset the unit changes of some items, whose path is new."""
        self._taken.change(items, lambda _: ())

    def take(self, items: Predicate, by: Affine) -> None:
        """Apply a unit change to some items."""
        self._taken.change(items, lambda alters: (*alters, by))

    def ready(self, items: Predicate) -> dict[Affine, Predicate]:
        """By unit change: those of some items that have it next for all origins."""
        found: dict[Affine, list[Predicate]] = {}
        for part, alters, by in self._next(items):
            ready = self._origins.for_all(self._sources, part, self._origins.gone_through((*alters, by)))
            if ready != NOTHING:
                found.setdefault(by, []).append(ready)
        return {by: combined(or_(*parts)) for by, parts in found.items()}

    def _next(self, items: Predicate) -> Iterator[tuple[Predicate, Alters, Affine]]:
        """The unit changes that some input has beyond those of the output, by sets of items."""
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
