"""Steps: inert transformers from the elements of a stream to what they lead to (history paper, section 6).

The elements at the top of a stream are the context; a step gives their children, descendants, texts or attributes.
Steps need to know nothing of an element but its depth, so regions and updates pass with what comes of their content,
and a region that stands where a step cannot look leaves nothing behind (`is_blind`).

Results of `//` may lie inside one another, and an event belongs to one place only: here `//` gives the outermost
ones, with all that is in them.
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.stream.tree import Name
from models.pipeline.events import Characters, Content, EndElement, StartElement
from models.pipeline.transformer import Inert, Passing
from models.pipeline.wrapper import Mode


@dataclass(frozen=True, slots=True)
class Child(Passing):
    """`/name`; without a name `/*`."""

    name: Name | None = None

    def starts(self, event: StartElement, depth: int) -> bool:
        return depth == 1 and self.name in (None, event.name)

    def is_blind(self, mode: Mode) -> bool:
        depth, inside = mode
        return depth > 1 and not inside


@dataclass(frozen=True, slots=True)
class Descendant(Passing):
    """`//name`, the outermost ones; without a name `//*`."""

    name: Name | None = None

    def starts(self, event: StartElement, depth: int) -> bool:
        return depth > 0 and self.name in (None, event.name)


@dataclass(frozen=True, slots=True)
class Texts(Inert):
    """`/text()`"""

    def move(self, event: Content, mode: Mode) -> tuple[tuple[Content, ...], Mode]:
        (depth, _) = mode
        match event:
            case StartElement():
                return (), (depth + 1, 0)
            case EndElement():
                return (), (depth - 1, 0)
            case _:
                return ((event,) if depth == 1 and isinstance(event, Characters) else ()), mode

    def is_blind(self, mode: Mode) -> bool:
        return mode[0] > 1


@dataclass(frozen=True, slots=True)
class Values(Inert):
    """`/@name`, as values: an attribute by itself cannot stand in a stream."""

    name: Name

    def move(self, event: Content, mode: Mode) -> tuple[tuple[Content, ...], Mode]:
        (depth, _) = mode
        match event:
            case StartElement(id, _, attributes):
                given = [Characters(id, value, is_value=True) for name, value in attributes if name == self.name]
                return (tuple(given) if depth == 0 else ()), (depth + 1, 0)
            case EndElement():
                return (), (depth - 1, 0)
            case _:
                return (), mode

    def is_blind(self, mode: Mode) -> bool:
        return mode[0] > 0
