"""Stream elements as events, and events as stream elements: the wire format and the history paper's, one to one.

`Tokens` reads: an item, or a region or update between items, becomes its events, with regions and updates inside it
where they stand; a region without an id gets one that no wire can spell.
Each start carries all namespaces in scope, so what a step takes out of its surroundings still means what it meant.

`Elements` writes: whatever is open is put together as a tree, and comes out when all that stands in it is complete.
So an answer is a stream in our own format, and can be registered as one (LAWS 5.7).
Regions that are interleaved, which the wire cannot say, are written one in the other, where they begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from anabranch.stream.elements import Accent, Item, Place, Punctuation, Region, StreamElement, Update
from anabranch.stream.reading.wire import element_of
from anabranch.stream.tree import (
    STREAM_NAMESPACE,
    Child,
    Comment,
    Element,
    Instruction,
    Name,
    Text,
    namespaces_in_scope,
)
from models.pipeline.events import (
    Characters,
    EndElement,
    EndRegion,
    EndStream,
    Event,
    Id,
    Kind,
    Now,
    Other,
    StartElement,
    StartRegion,
    StartStream,
)

_KINDS: dict[str, Kind] = {"mutable": "mutable", "replace": "replace", "before": "before", "after": "after"}


class Tokens:
    """The events of one partition's elements; they must have been judged."""

    def __init__(self, stream: int = 0) -> None:
        self.root = Id(stream, "")
        self._made = 0

    def start(self) -> list[Event]:
        return [StartStream(self.root)]

    def end(self) -> list[Event]:
        return [EndStream(self.root)]

    def of(self, element: StreamElement) -> Iterator[Event]:
        """The events of an element."""
        match element:
            case Accent():
                raise AssertionError("streams of updates have no accents")
            case Punctuation(_, _, at):
                if at is not None:
                    yield Now(at)
            case Item(tree, _, at):
                if at is not None:
                    yield Now(at)
                yield from self._node(tree, self.root)
            case Region(id, content, _, at):
                yield from self._region("mutable", None, id, at, content, self.root)
            case Update("upsert"):
                raise AssertionError("the paper has no upserts")
            case Update("replace" | "before" | "after" as kind, target, own, content, _, at):
                yield from self._region(kind, target, own, at, content, self.root)

    def _node(self, node: Child, around: Id) -> Iterator[Event]:
        match node:
            case Text():
                yield Characters(around, node.value)
            case Comment():
                yield Other(around, node.value)
            case Instruction():
                yield Other(around, node.value, node.target)
            case Element() if node.name.uri == STREAM_NAMESPACE:
                at = node.get("at")
                time = None if at is None else Decimal(at.strip())
                kind = _KINDS[node.name.local]
                yield from self._region(kind, node.get("target"), node.get("id"), time, node.children, around)
            case Element():
                attributes = tuple((each.name, each.value) for each in node.attributes)
                yield StartElement(around, node.name, attributes, tuple(namespaces_in_scope(node).items()))
                for child in node.children:
                    yield from self._node(child, around)
                yield EndElement(around, node.name)

    def _region(
        self, kind: Kind, target: str | None, own: str | None, at: Decimal | None, content: Sequence[Child], around: Id
    ) -> Iterator[Event]:
        if at is not None:
            yield Now(at)
        id = Id(self.root.stream, own or self._fresh())
        of = around if kind == "mutable" else Id(self.root.stream, target or "")
        yield StartRegion(kind, of, id)
        for child in content:
            yield from self._node(child, id)
        yield EndRegion(kind, of, id)

    def _fresh(self) -> str:
        self._made += 1
        return f"\0{self._made}"


class Elements:
    """Stream elements of events; the ids that no wire can spell become ones that it can."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._now: Decimal | None = None
        self._told: Decimal | None = None
        self._at: dict[Id, Element] = {}
        """By the open regions, in the order in which they began, the element that is written in each."""
        self._tops: list[Element] = []
        """What stands between items and is not complete, or stands behind such."""
        self._open = 0
        self._texts = 0

    def of(self, event: Event) -> list[StreamElement]:
        """The elements that an event completes."""
        match event:
            case Now(at):
                self._now = at
                if not self._open and at != self._told:
                    self._told = at
                    return [Punctuation(None, self._place, at)]
            case StartStream() | EndStream():
                pass
            case StartRegion(kind, of, id):
                # an update is written where it comes, which is in whatever began last
                above = self._at.get(of) if kind == "mutable" else next(reversed(self._at.values()), None)
                self._begin(self._control(kind, of, id), above, id)
            case EndRegion(_, _, id):
                del self._at[id]
                self._open -= 1
            case StartElement(id, name, attributes, namespaces):
                element = Element(name, dict(namespaces))
                for attribute, value in attributes:
                    element.set(attribute, value)
                self._begin(element, self._at.get(id), id)
            case EndElement(id):
                around = self._at[id].parent
                if isinstance(around, Element):
                    self._at[id] = around
                else:
                    del self._at[id]
                self._open -= 1
            case Characters(id, text):
                self._add(Text(text), id)
            case Other(id, text, None):
                self._add(Comment(text), id)
            case Other(id, text, str(target)):
                self._add(Instruction(target, text), id)
        if self._open:
            return []
        tops, self._tops = self._tops, []
        return [element_of(each, self._place) for each in tops]

    def run(self, events: Iterable[Event]) -> list[StreamElement]:
        """The elements that events complete."""
        return [each for event in events for each in self.of(event)]

    def _begin(self, element: Element, above: Element | None, id: Id) -> None:
        if above is None:
            self._tops.append(element)
        else:
            above.append(element)
        self._at[id] = element
        self._open += 1

    def _add(self, node: Child, id: Id) -> None:
        above = self._at.get(id)
        if above is None:  # what stands between items has to stand in something
            self._texts += 1
            above = self._control("mutable", id, Id(id.stream, f"{id.name}\0text{self._texts}"))
            self._tops.append(above)
        above.append(node)

    def _control(self, kind: Kind, of: Id, id: Id) -> Element:
        control = Element(Name(kind, STREAM_NAMESPACE, "s"), {"s": STREAM_NAMESPACE})
        if kind != "mutable":
            control.set(Name("target"), _spelled(of))
        control.set(Name("id"), _spelled(id))
        if self._now is not None and self._now != self._told:
            control.set(Name("at"), f"{self._now:f}")
            self._told = self._now
        return control


def _spelled(id: Id) -> str:
    """An id as the wire can have it: two that differ stay different."""
    return id.name.replace("_", "__").replace("\0", "_0")
