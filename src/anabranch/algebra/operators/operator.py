"""Operators: what all of them have in common, and how they work, element by element.

An operator is a plain value: its signature determines its reaction to accents, `start` gives its work on items.
The work sees canonical values only, in the units of query start; `Operation` converts items there and back, by the
course of their input and that of the output (figure 3 of the accents paper, as a mechanism).
So a selection need not adjust its constants, and a half counted window need not be converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Protocol, TypeAlias, TypeVar

from anabranch.algebra.accents.sets import UNDECLARED, Domains
from anabranch.algebra.reactions.course import Change, Closing, Course, LetOut
from anabranch.algebra.reactions.reaction import Reaction
from anabranch.algebra.reactions.readings import Reading
from anabranch.algebra.reactions.signature import AccentSignature, Policy
from anabranch.errors import Aborted, DynamicError, StreamError
from anabranch.predicate import EVERYTHING, Predicate
from anabranch.stream.elements import Drop
from anabranch.stream.path import Path

Followed = TypeVar("Followed")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """No earlier time follows."""

    at: Decimal


Flowing: TypeAlias = Reading | Change | Closing | Heartbeat
"""The elements between operators; sets and values are those at the place."""


Ended: TypeAlias = Callable[[int, Predicate], bool]
"""Whether none of some items will come on an input."""


class Work(Protocol):
    """The work of an operator on items, in canonical values; a stateless one only implements `item`."""

    failures: list[DynamicError]
    """Failures of computations that gave no result (LAWS 2.4)."""

    def item(self, input: int, reading: Reading) -> Iterable[Reading]:
        """Process an item; gives the resulting items."""

    def forget(self, input: int, path: Path, where: Predicate) -> None:
        """Remove a dropped path from the held items of an input that are in a set."""
        return

    def close(self, closed: Predicate, has_ended: Ended) -> Iterable[Reading]:
        """Give the results that are complete, now that these items of the output are closed."""
        return ()

    def save(self) -> list[Any]:
        """The state as JSON values, a row for each item or group."""
        return []

    def restore(self, rows: Iterable[Any]) -> None:
        """Restore from `save`, before any item."""
        return


class Operator(Protocol):
    """An operator of the algebra, a plain value."""

    @property
    def arity(self) -> int:
        """The number of inputs."""

    @property
    def signature(self) -> AccentSignature:
        """Its use of paths, as far as accents are concerned."""

    def start(self) -> Work:
        """Create its work."""


class Passing(Work):
    """The work of a stateless operator."""

    def __init__(
        self, each: Callable[[Reading], Iterable[Reading]], failures: list[DynamicError] | None = None
    ) -> None:
        self._each = each
        self.failures: list[DynamicError] = [] if failures is None else failures

    def item(self, input: int, reading: Reading) -> Iterable[Reading]:
        return self._each(reading)


class Operation:
    """A running operator: elements in, elements out; it alone changes its reaction and its work."""

    def __init__(self, operator: Operator, *, policy: Policy = "accumulate", domains: Domains = UNDECLARED) -> None:
        name = type(operator).__name__
        self.reaction = Reaction(name, operator.signature, operator.arity, policy=policy, domains=domains)
        self._renaming = operator.signature.renaming
        self._out = self.reaction.output if self._renaming is None else Course()
        """The course of the output, by its own names."""
        self._operator = operator
        self.work = operator.start()
        self._beats: list[Decimal | None] = [None] * operator.arity
        self._beat: Decimal | None = None

    @property
    def failures(self) -> list[DynamicError]:
        """The failures of computations so far."""
        return self.work.failures

    def forget(self) -> None:
        """Drop all items and heartbeats."""
        self.work = self._operator.start()
        self._beat, self._beats = None, [None] * len(self._beats)

    def save(self) -> list[Any]:
        """The state besides evolution, which follows from the accents and punctuations so far."""
        beats = [None if each is None else str(each) for each in (self._beat, *self._beats)]
        return [beats, *self.work.save()]

    def restore(self, rows: list[Any]) -> None:
        """Restore from `save`."""
        beats, *kept = rows
        self._beat, *self._beats = (None if each is None else Decimal(each) for each in beats)
        self.work.restore(kept)

    def feed(self, element: Flowing, input: int = 0) -> Iterator[Flowing]:
        """Process one element of an input; Aborted where the operator cannot go on."""
        match element:
            case Reading():
                known = self._known(input, self.reaction.inputs[input].canonical(element))
                yield from map(self._out.current, self.work.item(input, known))
            case Change():
                yield from self._changes(input, self._followed(lambda: self.reaction.change(input, element)))
            case Closing(where):
                yield from self._close(input, where)
            case Heartbeat(at):
                yield from self._heartbeat(input, at)

    def _known(self, input: int, reading: Reading) -> Reading:
        """An item with the unknown paths of the output; Aborted where one has to be known (LAWS 4.5)."""
        signature, unknown = self.reaction.signature, {}
        for path, reason in reading.unknown.items():
            if signature.reads(path):
                raise Aborted(f"{self.reaction.name} reads '{path}', of which nothing is known: {reason}")
            if signature.shows(path) and path not in signature.ignored:
                unknown.update(dict.fromkeys(signature.targets(input, path), reason))
        return replace(reading, unknown=unknown) if reading.unknown else reading

    def end(self) -> Iterator[Flowing]:
        """All inputs have ended: give the remaining results; accents and punctuations no longer matter."""
        yield from map(self._out.current, self.work.close(EVERYTHING, lambda *_: True))

    def _followed(self, react: Callable[[], Followed]) -> Followed:
        """The consequences of an accent; Aborted where its sets are too complex."""
        try:
            return react()
        except StreamError as error:
            raise Aborted(f"{self.reaction.name} cannot follow this evolution: {error.message}") from error

    def _changes(self, input: int, found: Iterable[LetOut]) -> Iterator[Flowing]:
        for each in found:
            if isinstance(each.change.evolution, Drop):
                self.work.forget(input, each.change.evolution.path, each.items)
            yield from self._named(each.change)

    def _named(self, change: Change) -> Iterator[Change]:
        """A change by the names of the output, where these differ."""
        if self._renaming is None:
            yield change
            return
        where = self._renaming.told(change.where)
        for evolution in self._renaming.evolutions(change.evolution):
            self._out.see(where, evolution, composing=True)
            yield Change(where, evolution)

    def _close(self, input: int, where: Predicate) -> Iterator[Flowing]:
        changes, closings = self._followed(lambda: self.reaction.close(input, where))
        yield from self._changes(input, changes)
        yield from map(self._out.current, self.work.close(self.reaction.closed, self.reaction.has_ended))
        for each in closings:
            yield each if self._renaming is None else Closing(self._renaming.told(each.where))

    def _heartbeat(self, input: int, at: Decimal) -> Iterator[Flowing]:
        self._beats[input] = at
        known = [each for each in self._beats if each is not None]
        if len(known) == len(self._beats) and (self._beat is None or min(known) > self._beat):
            self._beat = min(known)
            yield Heartbeat(self._beat)
