"""Operators: what all of them have in common, and how one works, element by element.

An operator is a plain value: its signature says how it reacts to accents, `start` gives what does the work on items.
The work sees canonical values only, those in the units of query start; `Operation` brings items there and back, by the
course of the input they come from and that of the output (figure 3 of the accents paper, as a mechanism).
So a selection need not adjust its constants, and a window that is half counted need not be converted.
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
    """Nothing with an earlier time follows."""

    at: Decimal


Flowing: TypeAlias = Reading | Change | Closing | Heartbeat
"""What flows between operators; sets and values are those at the place."""


Ended: TypeAlias = Callable[[int, Predicate], bool]
"""Whether none of some items will come on an input."""


class Work(Protocol):
    """What an operator does to items; all values are canonical."""

    failures: list[DynamicError]
    """What could not be computed, and gave nothing (LAWS 2.4)."""

    def item(self, input: int, reading: Reading) -> Iterable[Reading]:
        """Take an item in, and give what comes out for it."""

    def forget(self, input: int, path: Path, where: Predicate) -> None:
        """Strip a path from the remembered items of an input that are in a set: it has been dropped."""

    def close(self, closed: Predicate, has_ended: Ended) -> Iterable[Reading]:
        """Give what was kept until nothing more comes for it, given the items of the output that are now closed."""

    def save(self) -> list[Any]:
        """What is remembered, as plain values of JSON, a row for each item or group."""

    def restore(self, rows: Iterable[Any]) -> None:
        """Remember what `save` gave; nothing was remembered before."""


class Operator(Protocol):
    """An operator of the algebra, a plain value."""

    @property
    def arity(self) -> int:
        """How many inputs it has."""

    @property
    def signature(self) -> AccentSignature:
        """What it does with paths, as far as accents are concerned."""

    def start(self) -> Work:
        """Begin to work."""


class Passing:
    """The work of an operator that remembers nothing."""

    def __init__(
        self, each: Callable[[Reading], Iterable[Reading]], failures: list[DynamicError] | None = None
    ) -> None:
        self._each = each
        self.failures: list[DynamicError] = [] if failures is None else failures

    def item(self, input: int, reading: Reading) -> Iterable[Reading]:
        return self._each(reading)

    def forget(self, input: int, path: Path, where: Predicate) -> None:
        pass

    def close(self, closed: Predicate, has_ended: Ended) -> Iterable[Reading]:
        return ()

    def save(self) -> list[Any]:
        return []

    def restore(self, rows: Iterable[Any]) -> None:
        pass


class Operation:
    """An operator at work: elements in, elements out; it alone changes its reaction and its work."""

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
        """What could not be computed so far."""
        return self.work.failures

    def forget(self) -> None:
        """Be as if no item had come, and no heartbeat."""
        self.work = self._operator.start()
        self._beat, self._beats = None, [None] * len(self._beats)

    def save(self) -> list[Any]:
        """What is remembered besides evolution, which follows from the accents and punctuations that came."""
        beats = [None if each is None else str(each) for each in (self._beat, *self._beats)]
        return [beats, *self.work.save()]

    def restore(self, rows: list[Any]) -> None:
        """Take in what `save` gave."""
        beats, *kept = rows
        self._beat, *self._beats = (None if each is None else Decimal(each) for each in beats)
        self.work.restore(kept)

    def feed(self, element: Flowing, input: int = 0) -> Iterator[Flowing]:
        """Take one element of an input in; Aborted where the operator cannot go on."""
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
        """An item with what is unknown about it in the output; Aborted where it has to be known (LAWS 4.5)."""
        signature, unknown = self.reaction.signature, {}
        for path, reason in reading.unknown.items():
            if signature.reads(path):
                raise Aborted(f"{self.reaction.name} reads '{path}', of which nothing is known: {reason}")
            if signature.shows(path) and path not in signature.ignored:
                unknown.update(dict.fromkeys(signature.targets(input, path), reason))
        return replace(reading, unknown=unknown) if reading.unknown else reading

    def end(self) -> Iterator[Flowing]:
        """All inputs have ended: what was kept comes out; of accents and punctuations nobody needs to know now."""
        yield from map(self._out.current, self.work.close(EVERYTHING, lambda *_: True))

    def _followed(self, react: Callable[[], Followed]) -> Followed:
        """What follows of an accent; Aborted where its sets cannot be reckoned with."""
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
        """A change by the names of the output, where these are others."""
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
