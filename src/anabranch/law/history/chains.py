"""What a document of updates is made of: nodes as they came, and chains of versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from anabranch.stream.elements import Place
from anabranch.stream.path import Path
from anabranch.stream.tree import Child, Comment, Element, Instruction, JsonMark, Text


@dataclass(frozen=True, slots=True, order=True)
class DocumentMoment:
    """A moment of a document: its number, which grows over the moments of all documents, and the time that is now then.

    Where an element of another partition has a later time, that is later than the time of what comes at the moment.
    """

    number: int
    now: Fraction


@dataclass(eq=False, slots=True)
class Lived:
    """A node as it came; the content of an element is kept apart from it, because updates change it."""

    node: Child
    namespaces: dict[str, str]
    """The namespaces declared on it, or on an element around it that is not in the document."""
    start: Fraction
    place: Place
    content: list[Content] = field(default_factory=list)
    moment: DocumentMoment | None = None
    """The moment at which it came, where moments are known."""


@dataclass(eq=False, slots=True)
class Version:
    """What a region held from one moment on; a deletion is one without content."""

    start: Fraction
    number: int
    """Among all versions of the document, in the order in which they came."""
    content: list[Content] = field(default_factory=list)
    mark: JsonMark | None = None
    """What the content is in JSON (LAWS 7.5)."""
    moment: DocumentMoment | None = None
    """The moment at which it came, where moments are known."""


@dataclass(frozen=True, slots=True)
class InsideItem:
    """Where a region stands in its item, and what describes the item to accents (LAWS 4.9)."""

    steps: tuple[str, ...]
    """The names from below the item down to the element that the region stands in."""
    facts: tuple[tuple[Path, str], ...] = ()
    """The values that the item had at the paths of declared domains when it came."""

    @staticmethod
    @lru_cache(maxsize=4_096)
    def of(steps: tuple[str, ...], facts: tuple[tuple[Path, str], ...]) -> InsideItem:
        """The same for all regions that stand alike: there may be millions."""
        return InsideItem(steps, facts)


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
    inside: InsideItem | None = None
    """None where it stands between items."""
    is_open_end: bool = False
    """Whether it marks the place in an open element or region where the next token goes (`tokens.py`)."""


Content: TypeAlias = Lived | Chain


@dataclass(frozen=True, slots=True)
class DocumentContents:
    """The content of a document, or of some of its entries."""

    root: Element
    """The root element, without what stands in it."""
    entries: Sequence[Content]
    moments: Sequence[DocumentMoment] = ()
    """The moments so far, as far as they are known."""


def bare(node: Child, namespaces: dict[str, str] | None = None) -> Child:
    """A node by itself: without what stands in it or around it, an element with these declarations only."""
    match node:
        case Element():
            return bare_element(node, namespaces)
        case Text():
            return Text(node.value, node.measure, node.kind)
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


def with_moments(contents: DocumentContents) -> DocumentContents:
    """Contents with the moments at which something in them has come, beside those that are known."""
    moments = dict.fromkeys(contents.moments)
    pending: list[Content] = list(contents.entries)
    while pending:
        match pending.pop():
            case Lived(content=inner, moment=moment):
                pending += inner
                moments |= {} if moment is None else {moment: None}
            case Chain(versions=versions):
                for each in versions:
                    moments |= {} if each.moment is None else {each.moment: None}
                    pending += each.content
    return replace(contents, moments=sorted(moments))
