"""Schemas learned from data, for streams that come without a DTD.

Everything is counted by path: in how many parents an element was seen, and whether twice in one.
So the schema says 'once' of what every parent so far had exactly once; it is a description of the past, and the next
item may prove it too narrow.

Guarantees: memory is bounded whatever the stream holds; an item costs time linear in its size.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from anabranch.stream.schema import Declaration, Part, Schema, children_of
from anabranch.stream.tree import Element, Text

MAX_PATHS = 10_000
"""The most paths that are learned; further ones are left out, so that a stream cannot fill the memory."""


@dataclass(slots=True)
class _Seen:
    """What is known of the elements at one path; only `Learner` changes it."""

    elements: int = 0
    parents: int = 0
    """In how many parents it was seen at all."""
    repeated: bool = False
    text: bool = False
    attributes: dict[str, None] = field(default_factory=dict)
    children: dict[str, _Seen] = field(default_factory=dict)


class Learner:
    """Learns a schema from items, one after the other; `schema()` says what is known so far."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._items: dict[str, _Seen] = {}
        self._size = 0

    def add(self, item: Element) -> None:
        """Learn the paths of one more item."""
        seen = self._below(self._items, str(item.name))
        pending = [(item, seen)] if seen is not None else []
        while pending:
            element, seen = pending.pop()
            seen.elements += 1
            seen.text = seen.text or any(isinstance(child, Text) and child.value.strip() for child in element.children)
            for attribute in element.attributes:
                if str(attribute.name) not in seen.attributes and self._grow():
                    seen.attributes[str(attribute.name)] = None
            times: Counter[str] = Counter()
            for child in children_of(element):
                below = self._below(seen.children, str(child.name))
                if below is not None:
                    times[str(child.name)] += 1
                    pending.append((child, below))
            for name, number in times.items():
                seen.children[name].parents += 1
                seen.children[name].repeated |= number > 1

    def schema(self) -> Schema:
        """The schema of the items so far; the root may hold any number of each."""
        items = {name: Part(name, f"{self._root}/{name}", optional=True, repeated=True) for name in self._items}
        declarations = {self._root: Declaration(items)}
        pending = [(f"{self._root}/{name}", seen) for name, seen in self._items.items()]
        while pending:
            key, seen = pending.pop()
            parts = {
                name: Part(name, f"{key}/{name}", optional=below.parents < seen.elements, repeated=below.repeated)
                for name, below in seen.children.items()
            }
            declarations[key] = Declaration(parts, tuple(seen.attributes), seen.text)
            pending.extend((f"{key}/{name}", below) for name, below in seen.children.items())
        return Schema(self._root, declarations)

    def _below(self, known: dict[str, _Seen], name: str) -> _Seen | None:
        if name not in known and self._grow():
            known[name] = _Seen()
        return known.get(name)

    def _grow(self) -> bool:
        if self._size >= MAX_PATHS:
            return False
        self._size += 1
        return True
