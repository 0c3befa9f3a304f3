"""Virtual streams made, put together and put into elements: cloning, concatenation, construction.

None of these has a state to adjust: they give ids to events, and regions around streams.
All are unblocked by leaving regions open: both sides of a concatenation are open at once, each a region in its place,
so whatever comes first is shown first, and in the right place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

from anabranch.stream.tree import Name
from models.pipeline.events import (
    Attributes,
    EndElement,
    EndRegion,
    EndStream,
    Event,
    Id,
    Namespaces,
    Now,
    StartElement,
    StartRegion,
    StartStream,
)


class Takes(Protocol):
    """Whatever stands in a pipeline; what it remembers can be had as plain data, and given to one like it."""

    def take(self, event: Event) -> list[Event]: ...
    def encode(self) -> Any: ...
    def decode(self, data: Any) -> None: ...


class Pipeline:
    """One behind the other."""

    def __init__(self, *stages: Takes) -> None:
        self.stages = stages

    def encode(self) -> Any:
        return [stage.encode() for stage in self.stages]

    def decode(self, data: Any) -> None:
        for stage, kept in zip(self.stages, data, strict=True):
            stage.decode(kept)

    def take(self, event: Event) -> list[Event]:
        """The events that come out at the end."""
        events = [event]
        for stage in self.stages:
            events = [each for given in events for each in stage.take(given)]
        return events

    def run(self, events: Iterable[Event]) -> list[Event]:
        """The events that come of several."""
        return [each for event in events for each in self.take(event)]


class _Forgetful:
    """What remembers nothing."""

    def encode(self) -> Any:
        return None

    def decode(self, data: Any) -> None:
        pass


class Clone(_Forgetful):
    """A stream twice: as it is, and each event again in another virtual stream (history paper, section 7).

    So the regions of the two can be qualified differently, as `$q/quote - $q/quote#1` needs it.
    """

    def __init__(self, stream: int, copy: int) -> None:
        self._stream = stream
        self._copy = copy

    def take(self, event: Event) -> list[Event]:
        if isinstance(event, Now) or event.id.stream != self._stream:
            return [event]
        return [event, renamed(event, lambda id: Id(self._copy, id.name))]


class Concatenate:
    """Two streams as one: all of the first, then all of the second."""

    def __init__(self, first: int, second: int, stream: int) -> None:
        self._streams = (first, second)
        self._root = Id(stream, "")
        self._roots: dict[int, str] = {}
        self._open: set[int] = set()

    def take(self, event: Event) -> list[Event]:
        if isinstance(event, Now) or event.id.stream not in self._streams:
            return [event]
        stream = event.id.stream
        sides = [Id(self._root.stream, str(each)) for each in self._streams]
        match event:
            case StartStream(id):
                given: list[Event] = []
                if not self._roots:
                    given = [StartStream(self._root), *(StartRegion("mutable", self._root, side) for side in sides)]
                self._roots[stream] = id.name
                self._open.add(stream)
                return given
            case EndStream():
                self._open.discard(stream)
                end: list[Event] = [EndRegion("mutable", self._root, sides[self._streams.index(stream)])]
                is_last = not self._open and len(self._roots) == len(self._streams)
                return [*end, EndStream(self._root)] if is_last else end
            case _:
                return [renamed(event, self._side)]

    def encode(self) -> Any:
        return [sorted(self._roots.items()), sorted(self._open)]

    def decode(self, data: Any) -> None:
        roots, opened = data
        self._roots, self._open = dict(roots), set(opened)

    def _side(self, id: Id) -> Id:
        stream, name = id
        return Id(self._root.stream, str(stream) if name == self._roots[stream] else f"{stream}.{name}")


class Construct(_Forgetful):
    """An element around a stream."""

    def __init__(self, name: Name, attributes: Attributes = (), namespaces: Namespaces = (), stream: int = 0) -> None:
        self._stream = stream
        self._name = name
        self._attributes = attributes
        self._namespaces = namespaces

    def take(self, event: Event) -> list[Event]:
        if isinstance(event, Now) or event.id.stream != self._stream:
            return [event]
        outer = Id(self._stream, f"{event.id.name}\0")
        match event:
            case StartStream(id):
                start = StartElement(outer, self._name, self._attributes, self._namespaces)
                return [StartStream(outer), start, StartRegion("mutable", outer, id)]
            case EndStream(id):
                return [EndRegion("mutable", outer, id), EndElement(outer, self._name), EndStream(outer)]
            case _:
                return [event]


def renamed(event: Event, rename: Renaming) -> Event:
    """The same event of other regions."""
    match event:
        case Now():
            return event
        case StartRegion(of=of, id=id) | EndRegion(of=of, id=id):
            return replace(event, of=rename(of), id=rename(id))
        case _:
            return replace(event, id=rename(event.id))


class Renaming(Protocol):
    """A new id for an old one."""

    def __call__(self, id: Id, /) -> Id: ...
