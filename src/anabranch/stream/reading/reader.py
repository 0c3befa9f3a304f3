"""Cuts to elements: the one place where the raw bytes of an item are judged, whichever reader cut them out.

A stream that one process reads to its end and one that many tasks read range by range must set the same items aside
for the same reasons, so both pass their cuts to an `ElementReader`.
An item's parent is the root element around it, though the root does not hold the items: a stream need not end, and
items that were read can be freed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias

from anabranch.errors import BadItem, StreamError
from anabranch.stream.admission import EVERYTHING, Admission
from anabranch.stream.elements import LONGEST_RAW, DeadLetter, Doubt, Item, Place, StreamElement
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path
from anabranch.stream.reading import json_items, wire
from anabranch.stream.reading.messages import TOMBSTONE, note, upsert
from anabranch.stream.reading.parse import parse_item, parse_root
from anabranch.stream.reading.split import Cut
from anabranch.stream.schema import Schema
from anabranch.stream.tree import Element

Format: TypeAlias = Literal["lines", "document", "json"]


class ElementReader:
    """Reads the items of one stream; it caches the root of the last item, which the next one mostly shares."""

    def __init__(
        self,
        stream: str,
        form: Format,
        limits: Limits,
        root: Element | None = None,
        item: str = "item",
        schema: Schema | None = None,
        admission: Admission = EVERYTHING,
        *,
        upserts: bool = False,
    ) -> None:
        """`schema` is given where the stream is strict; with `upserts`, messages are updates of their keys."""
        self.root = root
        """The stream's root element; that of the first item where none was given."""
        self._stream = stream
        self._format = form
        self._limits = limits
        self._item = item
        self._schema = schema
        self._admission = admission
        self._upserts = upserts
        self.announced: Callable[[Path, Element], bool] = lambda path, tree: False
        """Whether an item may have a path that the schema does not declare; set by the follower of accents."""
        self._around: tuple[bytes, str, Element, dict[str, str]] | None = None

    def elements(self, cuts: Iterable[Cut], partition: str) -> Iterator[StreamElement | DeadLetter]:
        """The elements of some cuts; a bad one becomes a dead letter."""
        for cut in cuts:
            place = Place(self._stream, partition, cut.start)
            reason = cut.reason
            doubts: tuple[Doubt, ...] = ()
            if reason is None:
                try:
                    yield self._element(cut, place)
                    continue
                except BadItem as error:
                    reason = error.message
                    if isinstance(error, wire.BadAccent):
                        doubts = error.doubts
            raw = cut.raw.decode(cut.encoding, "replace")[:LONGEST_RAW]
            yield DeadLetter(place, reason, raw, doubts=doubts)

    def _element(self, cut: Cut, place: Place) -> StreamElement:
        """The element of a cut; BadItem where it is bad."""
        root, scope = self._enclosing(cut)
        if self._upserts and cut.raw == TOMBSTONE:
            return upsert(cut.key, place, None)
        if self._format == "json":
            element = json_items.parse_line(cut.raw, place, self._limits, self._item)
        else:
            tree = parse_item(cut.raw, self._limits, scope, cut.encoding)
            tree.parent = root
            element = wire.element_of(tree, place)
        self._admission.check(element)
        note(element, cut)
        if not isinstance(element, Item):
            return element
        tree = element.tree
        tree.parent = root
        undeclared = self._schema and self._schema.undeclared(tree, lambda path: self.announced(path, tree))
        if undeclared is not None:
            raise BadItem(f"the path '{undeclared}' is not declared")
        return upsert(cut.key, place, element) if self._upserts else element

    def _enclosing(self, cut: Cut) -> tuple[Element, dict[str, str]]:
        """The root around an item, and the namespaces that it declares."""
        if cut.root is None:
            assert self.root, "a stream of single items has an implied root"
            return self.root, {}
        if self._around is None or self._around[:2] != (cut.root, cut.encoding):
            try:
                self.enter(cut.root, cut.encoding)
            except StreamError as error:
                raise BadItem(error.message) from None  # a bad root makes its items bad, but ends no stream
        assert self._around
        return self._around[2:]

    def enter(self, tag: bytes, encoding: str) -> None:
        """Begin a document with its root's start tag; the first readable one is the root of the stream."""
        root = parse_root(tag, encoding)
        self.root = self.root or root
        self._around = (tag, encoding, root, root.namespaces)
