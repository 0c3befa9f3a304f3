"""Replays an answer that is an update stream: its displays, and their edits (LAWS 5.7).

The text of the stream may come in any pieces; each moment ends with a heartbeat (`publishing.py`), and there is no
display between two heartbeats.
Only the present is kept, so the cost is that of the stream, and memory that of the answer and its ids.
An answer in JSON is told as lines of JSON (LAWS 7.4), which its first character shows; its results are taken as they
are written there.
Results that have left the answer are forgotten as in any stream (LAWS 5.8): when their ids are taken again, or when a
thousand others have left after them.
"""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from anabranch.algebra.display.display import Body, Display, DisplayElement, Edit, Piece
from anabranch.errors import StateError
from anabranch.stream.elements import DeadLetter, Item, Place, Punctuation, Region, StreamElement, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import parse_line
from anabranch.stream.reading.reader import ElementReader
from anabranch.stream.reading.split import DocumentSplitter
from anabranch.stream.serialize import NOTHING, Scope, serialize, start_tag
from anabranch.stream.tree import STREAM_NAMESPACE, Child, Comment, Element, Instruction, Text, namespaces_in_scope

OPENING, CLOSING = "<answer>\n", "</answer>\n"
"""The text around the stream as a document of its own."""
_LIMITS = Limits(item_bytes=(64 << 20) - 1, depth=400, nodes=1 << 30, attributes=1 << 20)
"""The engine wrote it, so no result in it is larger than its input."""
_MOST_LEFT = 1_000
"""The number of deleted regions whose ids stay known."""


@dataclass(frozen=True, slots=True)
class DisplayMoment:
    """The edits of a moment."""

    at: Decimal
    edits: tuple[Edit, ...]


class DisplayReader:
    """Reads the text of an update stream that is an answer, without the text around it, in any pieces."""

    def __init__(self) -> None:
        self._splitter = DocumentSplitter(_LIMITS)
        self._splitter.feed(OPENING.encode())
        self._reader = ElementReader("answer", "document", _LIMITS)
        self.is_json: bool | None = None
        """Whether it is lines of JSON; None before the first of it."""
        self._line = ""
        """The beginning of a line whose end is still to come."""

    def elements(self, text: str) -> Iterator[StreamElement]:
        """Its elements that end in more text; the results in a line of JSON are texts, each with the end of a line."""
        for element in self._elements(text):
            if isinstance(element, DeadLetter):
                raise StateError(f"the answer log is damaged: {element.reason}")
            yield element

    def _elements(self, text: str) -> Iterator[StreamElement | DeadLetter]:
        if self.is_json is None and text:
            self.is_json = text.startswith("{")
        if not self.is_json:
            yield from self._reader.elements(self._splitter.feed(text.encode()), "")
            return
        *lines, self._line = (self._line + text).split("\n")
        yield from map(_read_line, lines)


class Replay:
    """A display that follows an answer."""

    def __init__(self) -> None:
        self.display = Display()
        self._reader = DisplayReader()
        self._edits: list[Edit] = []
        self._left: dict[str, None] = {}
        """The ids of deleted regions."""

    @property
    def text(self) -> str:
        """The present display."""
        return self.display.text

    @property
    def is_json(self) -> bool | None:
        """Whether it is lines of JSON; None before the first of it."""
        return self._reader.is_json

    def feed(self, text: str) -> Iterator[DisplayMoment]:
        """Read more of the stream, without the text around it; gives the moments completed so far."""
        for element in self._reader.elements(text):
            match element:
                case Punctuation(at=Decimal() as at):
                    yield DisplayMoment(at, tuple(self._edits))
                    self._edits.clear()
                case _:
                    self._forget(element)
                    self._take(element)
                    self._edits += self.display.edits()

    def _take(self, element: StreamElement) -> None:
        match element:
            case Item(tree):
                self._fill(self.display.root, (tree,))
            case Region(id, content):
                self._apply("mutable", None, id, content, self.display.root)
            case Update(kind, target, id, content):
                self._apply(kind, target, id, content, self.display.root)

    def _apply(self, kind: str, target: str | None, id: str | None, content: Sequence[Child], body: Body) -> None:
        """Apply a control element in a body; for an unknown region it changes nothing."""
        display, anchor = self.display, self.display.names.get(target or "")
        if kind == "mutable":
            region = display.add_region(body)
        elif anchor is None or anchor.around is None:
            return
        elif kind == "replace":
            region = anchor
            display.clear(region)
        else:
            before, after = (anchor, None) if kind == "before" else (None, anchor)
            region = display.add_region(anchor.around, before, after)
        if id is not None:
            display.name(id, region)
        self._fill(region, content)

    def _fill(self, body: Body, children: Sequence[Child]) -> None:
        """Append nodes to a body, as `stream/serialize.py` writes them."""
        display = self.display
        for child in children:
            match child:
                case Text(value=text) if self.is_json:
                    display.append(body, Piece(text))
                case Text() | Comment() | Instruction():
                    display.append(body, Piece(serialize(child)))
                case Element() if child.name.uri == STREAM_NAMESPACE:
                    self._apply(child.name.local, child.get("target"), child.get("id"), child.children, body)
                case Element():
                    bare = Element(child.name, namespaces_in_scope(child))
                    for attribute in child.attributes:
                        bare.set(attribute.name, attribute.value)
                    around = _scope(body)
                    name, rest, scope = start_tag(bare, around)
                    is_new = scope is not around and scope is not NOTHING
                    declared = tuple(scope.maps[0].items()) if is_new else ()
                    self._fill(display.add_element(body, "", f"<{name}{rest}", f"</{name}>", declared), child.children)

    def _forget(self, element: StreamElement) -> None:
        """Forget the region whose id is taken by another, or one that was deleted long ago."""
        match element:
            case Update("replace", target, None, ()):
                self._left.pop(target, None)
                self._left[target] = None
            case Update("replace", target):
                self._left.pop(target, None)
            case Update(id=str(own)) if own in self._left:
                self._remove(own)
            case _:
                pass
        if len(self._left) > _MOST_LEFT:
            self._remove(next(iter(self._left)))

    def _remove(self, id: str) -> None:
        del self._left[id]
        if id in self.display.names:
            self.display.delete(id)


def _scope(body: Body | None) -> Scope | None:
    """The namespaces declared around a body; None outside of any element."""
    declared: list[dict[str, str]] = []
    while body is not None:
        if isinstance(body, DisplayElement):
            declared.append(dict(body.namespaces))
        body = body.around
    return ChainMap(*declared, *NOTHING.maps) if declared else None


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
_CONTENT = '"content": ['
_PLACE = Place("", "", 0)


def _read_line(line: str) -> StreamElement:
    """A control object as `publishing.py` writes it; each result of its content is a text, with the end of its line."""
    try:
        ((name, body),) = _DECODER.decode(line).items()
        at = Decimal(body["at"]) if "at" in body else None
        content = tuple(Text(f"{each}\n") for each in _results(line))
        match name:
            case "$accent":
                return parse_line(line.encode(), _PLACE, _LIMITS, "item")
            case "$punctuation":
                return Punctuation(None, _PLACE, at)
            case "$mutable":
                return Region(body["id"], content, _PLACE, at)
            case "$replace":
                return Update("replace", body["target"], body.get("id"), content, _PLACE, at)
            case "$before":
                return Update("before", body["target"], body.get("id"), content, _PLACE, at)
        raise ValueError(name)
    except (ValueError, KeyError, AttributeError, TypeError, ArithmeticError) as error:
        raise StateError(f"the answer log is damaged: {error}") from None


def _results(line: str) -> Iterator[str]:
    """The results in a line, each as it is written; quotes in strings are escaped, so the key stands nowhere else."""
    start = line.find(_CONTENT)
    if start < 0:
        return
    start += len(_CONTENT)
    while True:
        _, end = _DECODER.raw_decode(line, start)
        yield line[start:end]
        if line[end] == "]":
            return
        start = end + len(", ")
