"""What a document of updates is made of: nodes as they came, and chains of versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from anabranch.stream.elements import Place
from anabranch.stream.tree import Child, Comment, Element, Instruction, JsonMark, Text


@dataclass(eq=False, slots=True)
class Lived:
    """A node as it came; the content of an element is kept apart from it, because updates change it."""

    node: Child
    namespaces: dict[str, str]
    """The namespaces declared on it, or on an element around it that is not in the document."""
    start: Fraction
    place: Place
    content: list[Content] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Version:
    """What a region held from one moment on; a deletion is one without content."""

    start: Fraction
    number: int
    """Among all versions of the document, in the order in which they came."""
    content: list[Content] = field(default_factory=list)
    mark: JsonMark | None = None
    """What the content is in JSON (LAWS 7.5)."""


@dataclass(eq=False, slots=True)
class Chain:
    """The versions of one region, newest last."""

    depth: int
    """How deep it stands, elements and regions counted."""
    between: bool
    """Whether it stands between items, where white space is layout."""
    host: list[Content] = field(default_factory=list)
    """The list that it stands in, among its siblings."""
    versions: list[Version] = field(default_factory=list)


Content: TypeAlias = Lived | Chain


@dataclass(frozen=True, slots=True)
class DocumentContents:
    """The content of a document, or of some of its entries."""

    root: Element
    """The root element, without what stands in it."""
    entries: Sequence[Content]


def bare(node: Child, namespaces: dict[str, str] | None = None) -> Child:
    """A node by itself: without what stands in it or around it, an element with these declarations only."""
    match node:
        case Element():
            return bare_element(node, namespaces)
        case Text():
            return Text(node.value, node.measure)
        case Comment():
            return Comment(node.value)
        case Instruction():
            return Instruction(node.target, node.value)


def bare_element(element: Element, namespaces: dict[str, str] | None = None) -> Element:
    """An element of its own with the same name, attributes and mark, and nothing in it."""
    fresh = Element(element.name, {} if namespaces is None else namespaces, element.mark)
    fresh.message = element.message
    for attribute in element.attributes:
        fresh.set(attribute.name, attribute.value, attribute.measure)
    return fresh
