"""Stages that look at whole results: what aggregates and `order by` have in common.

A result is what stands at depth 0: an element, or a text between elements.
The value of a result is its whole text, in whatever regions it stands, so a result is where updates are applied at once
and evaluated again; between results nothing is: what a result gives is put in when it comes to show, and taken out when
it goes or changes (`adjust`).
That is done when something is complete, an update or an item, not event by event: half a result is none.

A result is a frame, what is in it the events that the stage keeps of it, elements among them as frames, so that they
are closed whatever shows of them; regions measure how many results show, so a result's `start` is its place among them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from anabranch.algebra.display.ordered import Ordered
from anabranch.stream.tree import Name
from models.pipeline.bodies import Body, Frame, Version
from models.pipeline.events import Characters, Content, EndElement, Event, Id, Other, StartElement
from models.pipeline.regions import Regions
from models.pipeline.wrapper import Mode, Place, Stage

_LONGEST = 4_000
_NOWHERE = Id(0, "")
_RESULT = Other(_NOWHERE, "")


class _Events:
    """Pieces are events, frames are elements and, counting as one each, results."""

    zero = 0

    def measure(self, piece: Content) -> int:
        return 0

    def around(self, piece: Content, inside: int) -> int:
        return 0 if isinstance(piece, StartElement) else 1

    def inset(self, piece: Content) -> int:
        return 0

    def is_empty(self, inside: int) -> bool:
        return True

    def join(self, one: Content, other: Content) -> Content | None:
        match one, other:
            case Characters(id, text, False), Characters(_, more, False) if len(text) < _LONGEST:
                return Characters(id, text + more)
            case _:
                return None

    def encode(self, piece: Content) -> Any:
        match piece:
            case StartElement(_, name, attributes, namespaces):
                told = [[*_spelled(each), value] for each, value in attributes]
                return ["start", _spelled(name), told, [list(each) for each in namespaces]]
            case EndElement():
                raise AssertionError("an element is a frame")
            case Characters(_, text, is_value):
                return ["text", text, is_value]
            case Other(_, text, target):
                return ["other", text, target]

    def decode(self, data: Any) -> Content:
        match data:
            case ["start", name, attributes, namespaces]:
                told = tuple((Name(*each), value) for *each, value in attributes)
                return StartElement(_NOWHERE, Name(*name), told, tuple((prefix, uri) for prefix, uri in namespaces))
            case ["text", text, is_value]:
                return Characters(_NOWHERE, text, is_value)
            case _:
                return Other(_NOWHERE, data[1], data[2])


def _spelled(name: Name) -> list[str]:
    return [name.local, name.uri, name.prefix]


def _end(start: Content) -> EndElement:
    assert isinstance(start, StartElement), "frames in a result are elements"
    return EndElement(start.id, start.name)


class Results(Regions[Content, int]):
    """Results in regions, and which of them have changed."""

    def __init__(self) -> None:
        super().__init__(_Events())
        self._changed: dict[int, Frame[Content, int]] = {}

    def events(self, result: Frame[Content, int]) -> list[Content]:
        """What shows of a result."""
        return [_end(piece) if is_end else piece for piece, _, is_end in self.walk(result.inside)]

    def text(self, result: Frame[Content, int]) -> str:
        """Its value."""
        return "".join(event.text for event in self.events(result) if isinstance(event, Characters))

    def place(self, handle: int) -> int:
        """How many results stand before one that shows."""
        result = self.part(handle)
        assert isinstance(result, Frame), "results are frames"
        return self.start(result.body, handle)

    def changed(self) -> Iterator[tuple[Frame[Content, int], bool]]:
        """The results that may have changed since this was last asked, and whether they show."""
        found, self._changed = self._changed, {}
        for result in found.values():
            yield result, self.is_known(result) and self.is_shown(result.body)

    def is_known(self, result: Frame[Content, int]) -> bool:
        """Whether a result is still kept."""
        return self._parts.get(result.handle) is result

    def framed(self, frame: Frame[Content, int]) -> int:
        self._note(frame)
        return super().framed(frame)

    def entered(self, body: Body[Content, int], handle: int, offset: int, piece: Content) -> None:
        part = self.part(handle)
        if isinstance(part, Frame):
            self._note(part)

    def shown(self, version: Version[Content, int]) -> None:
        self._note_all(version)

    def leaving(self, version: Version[Content, int]) -> None:
        self._note_all(version)

    def _note(self, frame: Frame[Content, int]) -> None:
        if not isinstance(frame.piece, StartElement):
            self._changed[frame.handle] = frame

    def _note_all(self, version: Version[Content, int]) -> None:
        for _, frame, is_end in self.walk(version.body):
            if frame is not None and not is_end:
                self._note(frame)


class Arranged:
    """Results in the order of what they are ranked by, those of equal rank in the order of the stream."""

    def __init__(self, results: Results, descending: bool = False) -> None:
        self._results = results
        self._descending = descending
        self.order: Ordered[int, int] = Ordered(0)
        self.ranks: dict[int, Any] = {}

    def put(self, handle: int, rank: Any) -> int | None:
        """A result that has come to show; gives the one that now stands behind it."""
        here = self._results.place(handle)

        def is_behind(other: int) -> bool:
            theirs = self.ranks[other]
            if theirs != rank:
                return bool(theirs > rank) is not self._descending
            return self._results.place(other) > here

        behind = self.order.search(is_behind)
        self.ranks[handle] = rank
        if behind is None:
            self.order.append(handle, 1)
        else:
            self.order.insert_before(behind, handle, 1)
        return behind

    def drop(self, handle: int) -> None:
        """A result shows no more, or will be put anew."""
        if self.ranks.pop(handle, None) is not None:
            self.order.remove(handle)


class ByResult(Stage[Content, int]):
    """A stage over whole results. The mode is the depth."""

    mode: Mode = (0,)

    def __init__(self, stream: int) -> None:
        self.results = Results()
        super().__init__(self.results, stream)

    @abstractmethod
    def keeps(self, event: Content) -> bool:
        """Whether a result's event is needed."""

    def content(self, event: Content, place: Place[Content, int]) -> Iterable[Event]:
        (depth,) = place.mode
        if depth == 0:
            place.bodies.append(self.results.frame(place.body, _RESULT).inside)
        if self.keeps(event):
            match event:
                case StartElement():
                    place.bodies.append(self.results.frame(place.body, event).inside)
                case EndElement():
                    place.bodies.pop()
                case _:
                    self.results.append(place.body, event)
        depth += isinstance(event, StartElement) - isinstance(event, EndElement)
        if depth == 0:
            place.bodies.pop()
        place.mode = (depth,)
        return ()
