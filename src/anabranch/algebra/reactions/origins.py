"""Origins: all that the items of an operator's output may have come from, and what holds for all or for some of it.

An item of the output may come from any input, and with any values at the paths that the output cannot name, those that
are *hidden*.
So what has happened to the inputs becomes something of the output in two ways only: because it holds for *some* of what
an item may have come from, or because it holds for *all* of that.
Of 'all', those that are closed by a punctuation are left out, since nothing comes of them any more.

Sets are in canonical values, those of query start (`course.py`).
Without a schema a path is taken to have been in no item at the start if the first accent on it adds it, else in all.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TypeAlias

from anabranch.algebra.accents.boxes import boxes, combined, without
from anabranch.algebra.accents.conjunctions import term_of
from anabranch.algebra.accents.sets import Domains, redeclared
from anabranch.algebra.reactions.changes import Evolution
from anabranch.algebra.reactions.course import Alters, Course
from anabranch.algebra.reactions.signature import NO_PATHS, Signature, unlinked
from anabranch.algebra.reactions.tiling import Tiling
from anabranch.algebra.reactions.untouched import Untouched
from anabranch.predicate import NOTHING, Predicate, and_, or_, terms
from anabranch.stream.elements import Add
from anabranch.stream.path import Path

Source: TypeAlias = tuple[int, Path]
"""An input, and a path of its items."""
Saying: TypeAlias = Callable[[int, Path, Predicate], Iterator[tuple[Predicate, bool]]]
"""Takes items of an input apart by whether something holds for a path of theirs."""


class Origins:
    """The inputs of an operator, as far as they have evolved and ended."""

    def __init__(self, signature: Signature, arity: int, domains: Domains) -> None:
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

    def gone_through(self, alters: Alters) -> Saying:
        """Tells of items whether their values have gone through these unit changes first of all."""

        def saying(input: int, path: Path, items: Predicate) -> Iterator[tuple[Predicate, bool]]:
            for part, found in self.inputs[input].known(path).units.over(items):
                yield part, found[: len(alters)] == alters

        return saying

    # --- all and some -----------------------------------------------------------------------------------------

    def for_all(self, sources: tuple[Source, ...], items: Predicate, saying: Saying) -> Predicate:
        """Of some items of the output, those of which something holds at the sources, whatever they have come from.

        What is hidden makes this a question of what is left over; else the inputs are asked one after another, first
        those of which the least has been said.
        """
        if self.signature.accumulator != NO_PATHS:
            against = (part for each in sources for part in self._denying(*each, items, saying))
            return without(items, self.for_some(or_(*against)))
        left = [items]
        for input, path in sorted(sources, key=lambda each: self._said(*each)):
            parts = [each for item in left for each in saying(input, path, item)]
            left = [part if holds else self._ended[input].where(bool, part) for part, holds in parts]
            left = [part for part in left if part != NOTHING]
        return combined(or_(*left))

    def _said(self, input: int, path: Path) -> int:
        known = self.inputs[input].known(path)
        return len(known.units) + len(known.carried)

    def _denying(self, input: int, path: Path, items: Predicate, saying: Saying) -> Iterator[Predicate]:
        """The parts of some items that may still come on an input, and of which something does not hold there."""
        for part, holds in saying(input, path, items):
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
