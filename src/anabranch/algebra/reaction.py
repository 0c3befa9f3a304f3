"""Reactions: what an operator lets out when its inputs evolve, from its signature alone (accents 6.1, LAWS 4.2).

An item of the output may come from any input, and with any values at the paths that the output cannot name.
So there is one rule for merge and accumulator paths alike: think of an output item and of all it may have come from.

* It may carry a path if *some* of these may: an add comes out for what this set gains (LAWS 4.2 d, e).
* It carries a path no longer if *all* of these do not: a drop comes out for what is lost.
* It is measured otherwise if *all* are: an alter comes out for the items for which it is next in the unit changes of
  all of these, the common prefix (LAWS 4.2 d); until then the output stays in the old unit.
* No more of it come if of *all* of these none do: so punctuations come out (LAWS 4.8).

Of 'all', those that are closed by a punctuation are left out, since nothing comes of them any more; the rules of the
paper's sections 4 and 6.1 for a single input, or for a description that the output can name, are special cases.
A foundation path that is dropped aborts the query, whatever the description.

Sets are reckoned with in canonical values (`course.py`), in which accents that speak of altered paths can be compared;
this is what the paper leaves open in 6.1.
An accent passes as it came, without any reckoning, where input and output are in step in all that it speaks of.
Else a description comes out as it came in where that says the same, or as disjoint conjunctions (LAWS 4.4).

Without a schema a path is taken to have been in no item if the first accent on it adds it, else in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from anabranch.algebra.accents.boxes import boxes, combined, divided, empty, for_all, for_some, within
from anabranch.algebra.accents.sets import UNDECLARED, Domains, description_of, lasting, names, redeclared
from anabranch.algebra.conjunctions import is_conjunction, path_of, readable
from anabranch.algebra.course import Alters, Course, Evolution, Pieces
from anabranch.algebra.signature import Policy, Signature
from anabranch.errors import Aborted
from anabranch.predicate import EVERYTHING, NOTHING, Predicate, and_, not_, or_, terms
from anabranch.stream.affine import Affine
from anabranch.stream.elements import Add, Alter, Drop
from anabranch.stream.path import Path


@dataclass(frozen=True, slots=True)
class Change:
    """An accent between operators: the set of items is told by their values at this place."""

    where: Predicate
    evolution: Evolution


@dataclass(frozen=True, slots=True)
class Closing:
    """A punctuation between operators."""

    where: Predicate


@dataclass(frozen=True, slots=True)
class LetOut:
    """A change that comes out, and the set of items in canonical values."""

    change: Change
    items: Predicate


class Reaction:
    """What one operator knows of the evolution of its inputs and of its output; it changes with every accent."""

    def __init__(
        self,
        name: str,
        signature: Signature,
        arity: int = 1,
        *,
        policy: Policy = "accumulate",
        domains: Domains = UNDECLARED,
    ) -> None:
        self.name = name
        self.signature = signature
        self.policy = policy
        self.domains = {**domains, **signature.made}
        self.inputs = [Course() for _ in range(arity)]
        self.ended: list[Predicate] = [NOTHING] * arity
        """The items of each input, in canonical values, of which none will come."""
        self.output = Course()
        self.closed: Predicate = NOTHING
        """The items of the output, in canonical values, of which none will come."""
        self._from_start: dict[Path, Predicate] = {}
        self._apart: dict[Path, tuple[tuple[int, Path], ...]] = {}
        """The paths of the output whose accents did not all pass as they came, and what has to agree on them."""
        self._carried: dict[Path, Predicate] = {}
        self._taken: dict[Path, Pieces] = {}
        """The unit changes of the inputs that the output has gone through, let out or not."""

    # --- what comes in ----------------------------------------------------------------------------------------

    def change(self, input: int, change: Change) -> list[LetOut]:
        """Take an accent of an input in, and let out what follows; Aborted where the operator cannot go on."""
        evolution, path = change.evolution, change.evolution.path
        self._unpromise(path)
        where = redeclared(change.where, self.domains)
        if path not in self.signature.ignored:
            self._refuse(input, change)
        sources = self.signature.sources(input, path, len(self.inputs))
        for _, each in (*sources, (input, path)):
            self._from_start.setdefault(each, NOTHING if isinstance(evolution, Add) else EVERYTHING)
        if path in self.signature.ignored or not self.signature.shows(path):
            self.inputs[input].see(where, evolution)
            return []
        if self._passes(change, sources):
            self.inputs[input].see(where, evolution)
            parts = (change.where,) if is_conjunction(change.where) else divided(change.where)
            return [self._out(Change(each, evolution)) for each in parts]
        for target in self.signature.targets(input, path):
            self._part(target, sources)
        self.inputs[input].see(where, evolution)
        found: list[LetOut] = []
        for target in self.signature.targets(input, path):
            match evolution:
                case Alter():
                    found += self._alters(target, change.where)
                case _:
                    found += self._carriers(target, evolution, change.where)
        return found

    def _passes(self, change: Change, sources: tuple[tuple[int, Path], ...]) -> bool:
        """Whether a change can come out as it came: input and output are in step in all that it speaks of."""
        named = [each.path for each in terms(change.where)]
        path = change.evolution.path
        return (
            len(sources) == 1
            and path not in self._apart
            and not any(each in self.signature.accumulator or each in self._apart for each in named)
            and not (isinstance(change.evolution, Alter) and not self._lets(path, change.evolution.by))
        )

    def _part(self, path: Path, sources: tuple[tuple[int, Path], ...]) -> None:
        """From here on the output has a course of its own at a path; up to here it was that of the input."""
        if path in self._apart:
            return
        self._apart[path] = sources
        if len(sources) == 1:
            [(input, source)] = sources
            self._carried[path] = self.inputs[input].carried(source, self._from_start[source])
            self._taken[path] = self.inputs[input].pieces(source)

    def _unpromise(self, path: Path) -> None:
        """What was promised of a path holds no longer when it evolves: tell all sets anew, without the promise."""
        lasting_ones = lasting(self.domains, [path])
        if lasting_ones == self.domains:
            return
        self.domains = dict(lasting_ones)
        for course in (*self.inputs, self.output):
            course.redeclare(self.domains)
        self.ended = [redeclared(each, self.domains) for each in self.ended]
        self.closed = redeclared(self.closed, self.domains)
        self._carried = {at: redeclared(each, self.domains) for at, each in self._carried.items()}
        self._taken = {at: pieces.redeclared(self.domains) for at, pieces in self._taken.items()}

    def _lets(self, path: Path, by: Affine) -> bool:
        return self.policy != "absorb" and self.signature.lets(path, by)

    def close(self, input: int, where: Predicate) -> tuple[list[LetOut], list[Closing]]:
        """Take a punctuation of an input in: the accents that waited for it, and the punctuations that follow."""
        items = self.inputs[input].back(redeclared(where, self.domains))
        self.ended[input] = combined(or_(self.ended[input], items))
        before, self.closed = self.closed, self._for_all(and_(*self.ended))
        changes: list[LetOut] = []
        for path in tuple(self._apart):
            changes += self._carriers(path, Drop(path), EVERYTHING)
            changes += self._alters(path, EVERYTHING)
        self.inputs[input].purge(self.ended[input])
        now, before = self.output.forward(self.closed), self.output.forward(before)
        return changes, [Closing(each) for each in self._told(now, where, before)]

    # --- what goes out ----------------------------------------------------------------------------------------

    def _carriers(self, path: Path, evolution: Add | Drop, where: Predicate) -> Iterator[LetOut]:
        """Let out what is gained or lost in the set of items that may carry a path."""
        before = self._carried.get(path, self._from_start[path])
        each = [
            (self.inputs[input].carried(source, self._from_start[source]), self.ended[input])
            for input, source in self._apart[path]
        ]
        match evolution:
            case Add():
                more = and_(self._for_some(or_(*(carried for carried, _ in each))), not_(before))
                self._carried[path] = combined(or_(before, more))
            case Drop():
                gone = self._for_all(and_(*(or_(not_(carried), ended) for carried, ended in each)))
                dropped = self._for_some(
                    or_(*(self.inputs[input].dropped(source) for input, source in self._apart[path]))
                )
                more = and_(before, gone, dropped)
                self._carried[path] = combined(and_(before, not_(more)))
        return self._let(replace(evolution, path=path), more, where)

    def _alters(self, path: Path, where: Predicate) -> Iterator[LetOut]:
        """Let out the unit changes that are next in all that an item may have come from."""
        going = self.policy != "absorb"
        while going:
            going = False
            for items, alters, by in self._next(path):
                ready = combined(and_(items, self._for_all(self._agreed(path, (*alters, by)))))
                ready = ready if ready == NOTHING else self._expressible(ready, path)
                if not empty(ready):
                    self._taken[path] = self._pieces(path).changed(ready, _extended(alters, by))
                    if self._lets(path, by):
                        yield from self._let(Alter(path, by), ready, where)
                    going = True
                    break

    def _pieces(self, path: Path) -> Pieces:
        return self._taken.get(path, Pieces())

    def _next(self, path: Path) -> Iterator[tuple[Predicate, Alters, Affine]]:
        """The unit changes that some input has after those of the output, by sets of items."""
        for items, alters in self._pieces(path).parts:
            later = [
                each[len(alters)]
                for input, source in self._apart[path]
                for _, each in self.inputs[input].pieces(source).parts
                if len(each) > len(alters) and each[: len(alters)] == alters
            ]
            yield from ((items, alters, by) for by in dict.fromkeys(later))

    def _agreed(self, path: Path, alters: Alters) -> Predicate:
        """The items for which all inputs have gone through these changes, or are closed."""
        return and_(
            *(
                or_(self.ended[input], self.inputs[input].pieces(source).beginning(alters))
                for input, source in self._apart[path]
            )
        )

    def _expressible(self, items: Predicate, path: Path) -> Predicate:
        """The part of a set that a description in the output can tell without naming the path that it is about."""
        told = self.output.forward(items)
        return self.output.back(for_all(told, [path])) if names(told, path) else items

    def _let(self, evolution: Evolution, items: Predicate, where: Predicate) -> Iterator[LetOut]:
        path, told = evolution.path, self.output.forward(items)
        if names(told, path):
            told = for_some(told, [path]) if isinstance(evolution, Add) else for_all(told, [path])
        for each in self._told(told, where, self.output.forward(self.closed)):
            found = self._out(Change(each, evolution))
            if isinstance(evolution, Add):
                self._taken[path] = self._pieces(path).changed(found.items, lambda _: ())
            yield found

    def _out(self, change: Change) -> LetOut:
        known = redeclared(change.where, self.domains)
        items = self.output.back(known)
        self.output.see(known, change.evolution)
        return LetOut(change, items)

    def _told(self, items: Predicate, where: Predicate, closed: Predicate) -> tuple[Predicate, ...]:
        """A set as descriptions: as it came in where that is the same, else as disjoint conjunctions.

        Of closed items none will come, so it does not matter whether they are described.
        """
        if within(items, closed):
            return ()
        given = redeclared(where, self.domains)
        if is_conjunction(where) and within(items, or_(given, closed)) and within(given, or_(items, closed)):
            return (where,)
        return tuple(redeclared(readable(each), UNDECLARED) for each in divided(items))

    # --- all and some -----------------------------------------------------------------------------------------

    def _for_some(self, items: Predicate) -> Predicate:
        """The items of the output that are in a set for some values of what cannot be seen."""
        if not self._hidden(items):
            return combined(items)
        found = []
        for box in boxes(items):
            hidden = [each for each in box if path_of(each) in self.signature.accumulator]
            found.append(and_(*(each for each in box if each not in hidden), self.signature.link(hidden)))
        return combined(or_(*found))

    def _for_all(self, items: Predicate) -> Predicate:
        """The items of the output that are in a set for all values of what cannot be seen."""
        return combined(not_(self._for_some(not_(items))) if self._hidden(items) else items)

    def _hidden(self, items: Predicate) -> list[str]:
        """The paths of a set that the output cannot name."""
        return sorted({str(each.path) for each in terms(items) if each.path in self.signature.accumulator})

    def _refuse(self, input: int, change: Change) -> None:
        evolution, path = change.evolution, change.evolution.path
        shown = f"the accent on '{path}' where {description_of(change.where)}"
        if isinstance(evolution, Drop) and self.signature.foundation.meets(path):
            raise Aborted(f"{self.name} cannot do without '{path}': {shown} drops it")
        hidden = self._hidden(change.where)
        if self.policy == "abort" and hidden:
            raise Aborted(f"{self.name} cannot pass on {shown}: '{hidden[0]}' is not in its output")
        if isinstance(evolution, Add) and self.signature.disjoint and not self.signature.joins(path):
            others = [course for other, course in enumerate(self.inputs) if other != input]
            if any(not empty(course.carried(path, NOTHING)) for course in others):
                raise Aborted(f"{self.name} has '{path}' from two inputs: {shown} adds it again")


def _extended(alters: Alters, by: Affine) -> Callable[[Alters], Alters]:
    return lambda _: (*alters, by)
