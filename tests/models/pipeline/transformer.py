"""State transformers: functions from one event and a state to some events and a state (history paper, section 6).

A state has two halves.
Its *mode* is what well-formed content leaves as it was: a depth, whether we are inside something that passes.
Its *amount* is an element of a group, to which content adds, and nothing else is done to it.
So `adjust` is the same for all of them: `adjust(s1, s2, s3)` is `s1` with the amount `s1 - s2 + s3`.
Its three properties follow: `adjust(s1, s2, s2) = s1`; `adjust(s1, s1, s2) = s2`, for states of one mode, and an update
leads to no other; and adjusting before or after more content is the same, since what content adds does not depend on
what was added before.
A transformer is *inert* if content adds nothing, so there is nothing to adjust.

`Mapped` wraps an inert transformer into a stage of a pipeline over update streams.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from models.pipeline.events import Content, EndElement, Event, StartElement
from models.pipeline.regions import Regions
from models.pipeline.wrapper import Mode, Place, Stage


@dataclass(frozen=True, slots=True)
class State:
    """A mode and an amount."""

    mode: Mode
    amount: Any
    text: str = ""
    """What a result that is still open holds so far; empty between results, so a part of the mode."""


class Transformer(Protocol):
    """What a stage does with regular events."""

    @property
    def initial(self) -> State: ...

    def step(self, event: Content, state: State) -> tuple[tuple[Content, ...], State]:
        """What comes of an event."""


def run(transformer: Transformer, events: Iterable[Content], state: State) -> tuple[list[Content], State]:
    """What comes of a sequence of events."""
    found: list[Content] = []
    for event in events:
        given, state = transformer.step(event, state)
        found += given
    return found, state


def adjust(one: State, before: State, after: State) -> State:
    """What `one` would be if an earlier state had not been `before` but `after`."""
    return replace(one, amount=one.amount - before.amount + after.amount)


class Inert(ABC):
    """A transformer that goes by a mode alone: the depth, and the depth within a result that is passing, or 0."""

    mode: ClassVar[Mode] = (0, 0)

    @property
    def initial(self) -> State:
        return State(self.mode, 0)

    def step(self, event: Content, state: State) -> tuple[tuple[Content, ...], State]:
        given, mode = self.move(event, state.mode)
        return given, replace(state, mode=mode)

    @abstractmethod
    def move(self, event: Content, mode: Mode) -> tuple[tuple[Content, ...], Mode]:
        """What comes of an event in a mode, and the mode behind it."""

    def is_blind(self, mode: Mode) -> bool:
        """Whether nothing can come of content in this mode."""
        return False


class Passing(Inert):
    """An inert transformer that passes some elements, with all that is in them, and nothing else."""

    def move(self, event: Content, mode: Mode) -> tuple[tuple[Content, ...], Mode]:
        depth, inside = mode
        match event:
            case StartElement():
                passes = inside > 0 or self.starts(event, depth)
                return ((event,) if passes else ()), (depth + 1, inside + passes)
            case EndElement():
                return ((event,) if inside else ()), (depth - 1, max(inside - 1, 0))
            case _:
                return ((event,) if inside else ()), mode

    @abstractmethod
    def starts(self, event: StartElement, depth: int) -> bool:
        """Whether an element at this depth is a result."""


class Nothing:
    """Inert stages keep no pieces."""

    zero = 0

    def measure(self, piece: None) -> int:
        return 0

    def around(self, piece: None, inside: int) -> int:
        return 0

    def inset(self, piece: None) -> int:
        return 0

    def is_empty(self, inside: int) -> bool:
        return True

    def join(self, one: None, other: None) -> None:
        return None

    def encode(self, piece: None) -> None:
        return None

    def decode(self, data: Any) -> None:
        return None


class Mapped(Stage[None, int]):
    """An inert transformer over an update stream: regions pass as they are, with what comes of their content."""

    def __init__(self, transformer: Inert, stream: int = 0) -> None:
        super().__init__(Regions(Nothing()), stream)
        self.mode = transformer.mode
        self._transformer = transformer

    def content(self, event: Content, place: Place[None, int]) -> Iterable[Event]:
        given, place.mode = self._transformer.move(event, place.mode)
        return given

    def is_blind(self, mode: Mode) -> bool:
        return self._transformer.is_blind(mode)
