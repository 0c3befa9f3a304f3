"""Reactions: the accents that an operator lets out when its inputs evolve, from its signature alone (accents 6.1, LAWS
4.2).

There is one rule for merge and accumulator paths alike: consider an output item and all its possible origins.

* It may carry a path if *some* origins may: an add comes out for what this set gains (LAWS 4.2 d, e).
* It carries a path no longer if *all* origins do not: a drop comes out for what is lost.
* Its unit changes if *all* origins' do: an alter comes out for the items for which it is next in the unit changes of
all origins, the common prefix (LAWS 4.2 d); until then the output stays in the old unit.
* It is closed if *all* origins are: so punctuations come out (LAWS 4.8).

Origins are in `origins.py`, the state of the output in `Outgoing`.
The rules of the paper's sections 4 and 6.1 for a single input, or for a description that the output can name, are
special cases: an accent passes unchanged, without any computation, where input and output are in step in all that it
names; paths that are no longer in step are *apart* (`origins.py`).
A drop of a foundation path aborts the query, whatever the description.

Sets are in canonical values (`course.py`), in which accents that name altered paths can be compared; this is what the
paper leaves open in 6.1.
They come out as descriptions in the values at that place of the output, which are disjoint conjunctions (LAWS 4.4)
that do not name the path that evolves; a description stays as it came in where it is equivalent.

Cost: an accent costs as much as the accents on items that it may concern (`tiling.py`); with hidden paths these may be
all items, which `Untouched` mostly avoids.
Linear in all that is live are an accent for a set that pins nothing, and a drop that comes out for all items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from anabranch.algebra.accents.boxes import divided, empty, for_all, for_some, is_conjunction, readable, within, without
from anabranch.algebra.accents.sets import UNDECLARED, Domains, below, description_of, lasting, names, redeclared
from anabranch.algebra.reactions.course import Change, Closing, Course, Evolution, LetOut
from anabranch.algebra.reactions.origins import Apart, Origins, Source
from anabranch.algebra.reactions.signature import AccentSignature, Policy, renamed
from anabranch.algebra.reactions.tiling import Tiling
from anabranch.errors import Aborted
from anabranch.predicate import EVERYTHING, NOTHING, Predicate, or_, terms
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.elements import Add, Alter, Drop
from anabranch.stream.path import Path


class Outgoing:
    """The output of an operator: what has been let out."""

    def __init__(self, domains: Domains) -> None:
        self.course = Course()
        self._domains = domains
        self._closed = Tiling(False)
        """Whether none of the items will come."""

    def redeclare(self, domains: Domains) -> None:
        """Rewrite all sets for other domains."""
        self._domains = domains
        self.course.redeclare(domains)
        self._closed = self._closed.mapped(lambda items: redeclared(items, domains))

    def close(self, items: Predicate, where: Predicate) -> tuple[Predicate, ...]:
        """Close a set of items; gives its descriptions, where `where` is the one that came in."""
        told = self._described(items, where)
        self._closed.change(items, lambda _: True)
        return told

    def let(self, evolution: Evolution, items: Predicate, where: Predicate) -> Iterator[LetOut]:
        """Let a change of some items out; `where` is the description that came in."""
        path, told = evolution.path, self.course.forward(items)
        if names(told, path):
            told = for_some(told, [path]) if isinstance(evolution, Add) else for_all(told, [path])
        for each in self._described(self.course.back(told), where, adding=isinstance(evolution, Add)):
            yield self.let_as_is(Change(each, evolution))

    def let_as_is(self, change: Change) -> LetOut:
        """Let out a change in the values at this place."""
        known = redeclared(change.where, self._domains)
        items = self.course.back(known)
        self.course.see(known, change.evolution, composing=True)
        return LetOut(change, items)

    def expressible(self, items: Predicate, path: Path) -> Predicate:
        """The part of a set that can be described without the path that evolves."""
        told = self.course.forward(items)
        return self.course.back(for_all(told, [path])) if names(told, path) else items

    def _described(self, items: Predicate, where: Predicate, *, adding: bool = False) -> tuple[Predicate, ...]:
        """A set as descriptions: as it came in where that is equivalent, else as disjoint conjunctions.

        Closed items may be described or not, except that nothing is added where it exists.
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


class Reaction:
    """The state of one operator's inputs and output as they evolve; every accent changes it."""

    def __init__(
        self,
        name: str,
        signature: AccentSignature,
        arity: int = 1,
        *,
        policy: Policy = "accumulate",
        domains: Domains = UNDECLARED,
        outside: Callable[[Path], Path] = lambda path: path,
        hidden: str = "is not in its output",
    ) -> None:
        """`outside` gives the user's name of a path; `hidden` says why a description of the output cannot name one."""
        self.name = name
        self._hidden = hidden
        self._called = outside
        self.signature = signature
        self.policy = policy
        promised = {**domains, **signature.made}
        self._origins = Origins(signature, arity, promised)
        self._outgoing = Outgoing(promised)
        self.inputs = self._origins.inputs
        self.output = self._outgoing.course
        self.closed: Predicate = NOTHING
        """The (canonical) output items closed by the latest punctuation."""
        self._apart: dict[Path, Apart] = {}

    def is_apart(self, path: Path) -> bool:
        """Whether an accent on a path did not come out unchanged."""
        return path in self._apart

    def has_ended(self, input: int, items: Predicate) -> bool:
        """Whether none of some (canonical) items will come on an input."""
        return self._origins.has_ended(input, items)

    # --- what comes in ----------------------------------------------------------------------------------------

    def change(self, input: int, change: Change) -> list[LetOut]:
        """Apply an accent of an input; gives the accents that come out; Aborted where the operator cannot go on."""
        evolution, path = change.evolution, change.evolution.path
        self._unpromise(path)
        where = redeclared(change.where, self._origins.domains)
        if path not in self.signature.ignored:
            self._refuse(input, change)
        sources = self.signature.sources(input, path, len(self.inputs))
        for _, each in (*sources, (input, path)):
            self._origins.hear(each, evolution)
        targets = self.signature.targets(input, path)
        if path in self.signature.ignored or not any(map(self.signature.shows, targets)):
            self.inputs[input].see(where, evolution)
            return []
        if self._passes(change, sources):
            self.inputs[input].see(where, evolution, composing=True)
            parts = (change.where,) if is_conjunction(change.where) else divided(change.where)
            return [self._outgoing.let_as_is(Change(each, evolution)) for each in parts]
        for target in targets:
            if target not in self._apart:
                self._apart[target] = Apart(target, sources, self._origins)
        self.inputs[input].see(where, evolution)
        if self._waits(evolution, where):
            return []
        concerned = self._origins.for_some(self.inputs[input].back(where))
        found: list[LetOut] = []
        for target in targets:
            found += self._let(replace(evolution, path=target), concerned, change.where)
        for target in targets:
            self._apart[target].settle()
        return found

    def close(self, input: int, where: Predicate) -> tuple[list[LetOut], list[Closing]]:
        """Apply a punctuation of an input; gives the accents that waited for it, and the punctuations that come out.

        For closed items of the output nothing is let out.
        """
        concerned = self._origins.for_some(self._origins.close(input, where))
        self.closed = self._origins.finished(concerned)
        left = without(concerned, self.closed)
        changes: list[LetOut] = []
        for path, apart in self._apart.items():
            if not apart.waits(False, lambda known: known.closed(where)):
                changes += self._carriers(Drop(path), left, EVERYTHING)
            if not apart.waits(True, lambda known: known.closed(where)):
                changes += self._alters(path, left, EVERYTHING)
        told = self._outgoing.close(self.closed, where)
        self._origins.purge(input)
        return changes, [Closing(each) for each in told]

    def _unpromise(self, path: Path) -> None:
        """Drop the domain of a path that evolves, and rewrite all sets without it."""
        domains = lasting(self._origins.domains, [path])
        if domains != self._origins.domains:
            for each in (self._origins, self._outgoing):
                each.redeclare(domains)
            for apart in self._apart.values():
                apart.redeclare(lambda items: redeclared(items, domains))

    def _refuse(self, input: int, change: Change) -> None:
        """Abort where the operator cannot go on."""
        evolution, path = change.evolution, change.evolution.path
        called = self._called(path)
        shown = f"the accent on '{called}' where {description_of(renamed(change.where, self._called))}"
        if isinstance(evolution, Drop) and self.signature.foundation.meets(path):
            raise Aborted(f"{self.name} cannot do without '{called}': {shown} drops it")
        hidden = self._origins.hidden(change.where)
        if self.policy == "abort" and hidden:
            raise Aborted(f"{self.name} cannot pass on {shown}: '{self._called(hidden[0])}' {self._hidden}")
        if isinstance(evolution, Add) and self.signature.disjoint and not self.signature.joins(path):
            others = [course for other, course in enumerate(self.inputs) if other != input]
            if any(True in course.known(path).carried.says() for course in others):
                raise Aborted(f"{self.name} has '{called}' from two inputs: {shown} adds it again")

    def _passes(self, change: Change, sources: tuple[Source, ...]) -> bool:
        """Whether a change can come out unchanged: input and output are in step in all that it names."""
        named = [each.path for each in terms(change.where)]
        path = change.evolution.path
        return (
            len(sources) == 1
            and path not in self._apart
            and not any(each in self.signature.accumulator or each in self._apart for each in named)
            and not (
                isinstance(change.evolution, Alter) and self._follows(path, change.evolution.by) != change.evolution.by
            )
        )

    def _waits(self, evolution: Evolution, where: Predicate) -> bool:
        """Whether nothing can come out of a change, since untouched items are left."""
        match evolution:
            case Add(path):
                for each, apart in self._apart.items():
                    if below(each, path):
                        apart.overtake()
                return False
            case Alter(path) | Drop(path):
                return self._apart[path].waits(isinstance(evolution, Alter), lambda known: known.touch(where))

    # --- what goes out ----------------------------------------------------------------------------------------

    def _let(self, evolution: Evolution, items: Predicate, where: Predicate) -> Iterator[LetOut]:
        """Let out the consequences at a path of the output, for some items; `where` is the description that came."""
        match evolution:
            case Alter(path):
                return self._alters(path, items, where)
            case _:
                return self._carriers(evolution, items, where)

    def _carriers(self, evolution: Add | Drop, items: Predicate, where: Predicate) -> Iterator[LetOut]:
        """Let out what is gained or lost, of some items, in the set of those that may carry a path."""
        apart = self._apart[evolution.path]
        match evolution:
            case Add():
                for each in self._outgoing.let(evolution, apart.gain(items), where):
                    apart.renew(each.items)
                    yield each
            case Drop():
                yield from self._outgoing.let(evolution, apart.lose(items), where)

    def _alters(self, path: Path, items: Predicate, where: Predicate) -> Iterator[LetOut]:
        """Let out, for some items, the unit changes that are next for all origins."""
        apart = self._apart[path]
        going = self.policy != "absorb"
        while going:
            going = False
            for by, found in apart.ready(items).items():
                ready = self._outgoing.expressible(found, path)
                if not empty(ready):
                    apart.take(ready, by)
                    out = self._follows(path, by)
                    if out is not None and (out != IDENTITY or by == IDENTITY):
                        yield from self._outgoing.let(Alter(path, out), ready, where)
                    going = True

    def _follows(self, path: Path, by: Affine) -> Affine | None:
        """The effect of a unit change of a path on the results; None where it does not come out."""
        return None if self.policy == "absorb" else self.signature.follows(path, by)
