"""What a document of updates is made of: nodes as they came, and chains of versions."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from anabranch.stream.elements import Place
from anabranch.stream.tree import Child


@dataclass(eq=False, slots=True)
class Lived:
    """A node as it came; what stands in an element is kept apart from it, for that may change."""

    node: Child
    namespaces: dict[str, str]
    """Those declared on it, or above it where that is not in the document."""
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


@dataclass(eq=False, slots=True)
class Chain:
    """The versions of one region, newest last."""

    depth: int
    """How deep it stands, elements and regions counted."""
    between: bool
    """Whether it stands between items, where white space is layout."""
    host: list[Content] = field(default_factory=list)
    """What it stands in, itself among the rest."""
    versions: list[Version] = field(default_factory=list)


Content: TypeAlias = Lived | Chain
