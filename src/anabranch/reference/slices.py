"""A stream item by item: each as if it were the only one below the stream's root.

A path from the stream's root gives the same nodes item by item as over the whole, unless it looks at the root
itself: returns it, puts a condition on it, takes its attributes, or climbs back to it.
Then `WholeNeeded` is raised, and the path is evaluated over the whole instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from anabranch.language import ast
from anabranch.reference.inputs import Arrival, Input
from anabranch.stream.tree import Document, Element


class WholeNeeded(Exception):  # a signal between two functions, not an error
    """The path looks at the stream's root, so one item does not tell."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A document of one item; the item's own parent stays the stream's real root."""

    document: Document
    root: Element
    item: Element

    def look_at_step(self, start: object, taken: ast.Step) -> None:
        climbs = taken.axis == "parent" and (taken.deep or start is self.item)
        if climbs or (taken.axis == "attribute" and start is self.root):
            raise WholeNeeded

    def look_at_condition(self, values: Iterable[object]) -> None:
        if any(value is self.root or value is self.document for value in values):
            raise WholeNeeded

    look_at_result = look_at_condition


def slice_of(root: Element, item: Element) -> Slice:
    """The slice for one item; neither the root nor the item is changed."""
    document, bare = Document(), Element(root.name, root.namespaces)
    for attribute in root.attributes:
        bare.set(attribute.name, attribute.value)
    document.append(bare)
    bare.children.append(item)
    return Slice(document, bare, item)


def slices(stream: Input) -> Iterator[tuple[Arrival, Slice]]:
    """All items of a stream in their order."""
    for arrival in stream.arrivals:
        yield arrival, slice_of(stream.root, arrival.item)
