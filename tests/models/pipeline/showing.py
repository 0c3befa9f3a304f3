"""The last stage of a pipeline: an update stream of results goes on display (history paper, section 9).

An element is closed on display as soon as it is opened, and what comes into it is put before its end tag: at every
moment the display shows what there is, open elements counting as closed.
Events are written as `stream/serialize.py` writes trees, namespaces included: a start tag declares what the elements
around it on display do not.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable

from anabranch.algebra.display.display import Edit
from anabranch.stream.serialize import NOTHING, Scope, escape_text, start_tag
from anabranch.stream.tree import Element
from models.pipeline.bodies import Body, Frame
from models.pipeline.display import Display, Piece
from models.pipeline.events import (
    Characters,
    Content,
    EndElement,
    EndRegion,
    EndStream,
    Event,
    Other,
    StartElement,
    StartRegion,
    StartStream,
)
from models.pipeline.wrapper import Place, Stage


class Shown(Stage[Piece, int]):
    """A display that is fed with events."""

    def __init__(self, stream: int = 0) -> None:
        self.display = Display()
        super().__init__(self.display, stream)

    @property
    def text(self) -> str:
        """All that is on display."""
        return self.display.text

    def edit(self, event: Event) -> list[Edit]:
        """What an event changes on display."""
        self.take(event)
        return self.display.edits()

    def passing(
        self, event: StartStream | EndStream | StartRegion | EndRegion, place: Place[Piece, int]
    ) -> Iterable[Event]:
        return ()

    def content(self, event: Content, place: Place[Piece, int]) -> Iterable[Event]:
        match event:
            case StartElement():
                frame = self.display.frame(place.body, _tag(event, _scope(place.body)))
                place.bodies.append(frame.inside)
            case EndElement():
                place.bodies.pop()
            case Characters(_, text, is_value):
                if text or is_value:
                    self.display.append(place.body, Piece(escape_text(text), is_value, is_value))
            case Other(_, text, None):
                self.display.append(place.body, Piece(f"<!--{text}-->"))
            case Other(_, text, target):
                self.display.append(place.body, Piece(f"<?{target} {text}?>" if text else f"<?{target}?>"))
        return ()


def _scope(body: Body[Piece, int]) -> Scope | None:
    """The namespaces that the elements around a body declare; None outside of any."""
    around: list[dict[str, str]] = []
    while (owner := body.owner) is not None:
        if isinstance(owner, Frame):
            around.append(dict(owner.piece.namespaces))
            body = owner.body
        else:
            body = owner.chain.body
    return ChainMap(*around, *NOTHING.maps) if around else None


def _tag(event: StartElement, around: Scope | None) -> Piece:
    element = Element(event.name, dict(event.namespaces))
    for attribute, value in event.attributes:
        element.set(attribute, value)
    name, rest, scope = start_tag(element, around)
    is_new = scope is not around and scope is not NOTHING
    return Piece(f"<{name}{rest}", close=f"</{name}>", namespaces=tuple(scope.maps[0].items()) if is_new else ())
