"""A document at one moment: ordinary trees of what shows, and tables with all other versions.

Each element of a view has as children what shows: of every chain the newest version, and in a version that was replaced
the newest that lived in it (LAWS 5.4); so code that copies a node, or takes an unqualified step from it, need not know
that there is a past.
Where the other versions stand, and how long everything lived, is in the tables of `Lives`.

Which versions there are: those that came before the version around them was replaced, in the order in which they came
(a region inside a replaced version may still be updated, but that never shows).
How long they lived: from their own time until just before the next, cut to the life of what is around them.

Document order is order of place; the versions of a chain follow one another, the newest first, as the history paper's
section 5 puts them, so what a window of the past gives is in document order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from anabranch.law.history.chains import Chain, Content, DocumentContents, Lived, Version, bare, bare_element
from anabranch.stream import tree
from anabranch.stream.elements import Place
from anabranch.stream.tree import Child, Element, JsonMark, Text


@dataclass(frozen=True, slots=True)
class NodeVersion:
    """Where a node stands among the versions around it, the parent element being the last thing that counts."""

    levels: tuple[int, ...]
    """Its version in each chain around it, outermost first, 0 the newest; empty outside of any chain."""
    chain: Chain | None
    """The innermost of them."""
    start: Fraction
    """When the node came: with the version that it is in, or later, where that has come piece by piece."""
    end: Fraction | None
    """When that was replaced, or what is around it; None while it lives."""

    @property
    def shown(self) -> bool:
        return not any(self.levels)


@dataclass(slots=True)
class Lives:
    """All versions and lives of nodes, shared by several views of the same documents."""

    everything: dict[Element, list[Child]] = field(default_factory=dict)
    """All that ever stood in an element, old versions behind newer ones."""
    standing: dict[Child, NodeVersion] = field(default_factory=dict)
    origin: dict[Child, Lived] = field(default_factory=dict)
    """By node of a view, the document's node that it is made of; that one is the same for all views."""
    tops: dict[Element | tree.Document, str] = field(default_factory=dict)
    """Documents and root elements, with their streams."""


@dataclass(frozen=True, slots=True)
class _Around:
    """What cuts lives at a place: the time at which the version around it was replaced, and by which."""

    end: Fraction | None = None
    number: int | None = None


class DocumentView:
    """A document as of a time, or a moment, or now."""

    def __init__(
        self, seen: DocumentContents, lives: Lives, until: Fraction | None = None, moment: int | None = None
    ) -> None:
        self._lives = lives
        self._until, self._moment = until, moment
        self.document = tree.Document()
        self.root = bare_element(seen.root, seen.root.namespaces)
        self.document.append(self.root)
        self.places: dict[Child, Place] = {}
        """All entries, in the document or formerly there, with where they came from."""
        self.nodes: dict[Lived, Child] = {}
        self._held: dict[Element, list[tuple[int, JsonMark]]] = {}
        """By element: what the versions that show in it are in JSON, each with the number of children before it."""
        lives.everything[self.root] = []
        self._put(seen.entries, self.root, _Around(), (), None)
        for entry in lives.everything[self.root]:
            self.places[entry] = lives.origin[entry].place

    def _put(
        self,
        content: Sequence[Content],
        parent: Element,
        around: _Around,
        levels: tuple[int, ...],
        within: tuple[Chain, Version] | None,
    ) -> None:
        """Put some content, in order, into an element."""
        for each in content:
            if isinstance(each, Chain):
                self._put_chain(each, parent, around, levels)
            elif self._has_come(each):
                chain = within[0] if within else None
                self._put_node(each, parent, around, NodeVersion(levels, chain, each.start, around.end))

    def _put_chain(self, chain: Chain, parent: Element, around: _Around, levels: tuple[int, ...]) -> None:
        lived = [
            each
            for each in reversed(chain.versions)
            if self._has_come(each) and (around.number is None or each.number < around.number)
        ]
        inner = around
        for index, version in enumerate(lived):
            if version.mark is not None and version.mark.kind != "mutable" and not any((*levels, index)):
                self._held.setdefault(parent, []).append((len(parent.children), version.mark))
            self._put(version.content, parent, inner, (*levels, index), (chain, version))
            inner = _Around(version.start, version.number)  # what came before this one was replaced by it

    def _put_node(self, lived: Lived, parent: Element, around: _Around, standing: NodeVersion) -> None:
        node = bare(lived.node, lived.namespaces)
        node.parent = parent
        self._lives.everything[parent].append(node)
        if standing.shown:
            self._hold_piece(node, parent)
            parent.children.append(node)
        self._lives.standing[node] = standing
        self._lives.origin[node] = lived
        self.nodes[lived] = node
        if isinstance(node, Element):
            self._lives.everything[node] = []
            self._put(lived.content, node, around, (), None)
            node.mark = _shown_mark(node, self._held.pop(node, []), record=parent is self.root)

    def _hold_piece(self, node: Child, parent: Element) -> None:
        """Note what a node that shows makes of the value that it stands in, where that has come piece by piece."""
        if parent.mark is not None and parent.mark.kind == "mutable":
            kind = "object" if isinstance(node, Element) else node.kind if isinstance(node, Text) else None
            if kind is not None:
                self._held.setdefault(parent, []).append((len(parent.children), JsonMark(kind)))

    def _has_come(self, each: Lived | Version) -> bool:
        if self._moment is not None and each.moment is not None and each.moment.number > self._moment:
            return False
        return self._until is None or each.start <= self._until


def _shown_mark(node: Element, held: Sequence[tuple[int, JsonMark]], *, record: bool) -> JsonMark | None:
    """What an element is in JSON, given what shows in it (LAWS 7.5, 7.6); an entry is a record, and nothing else is."""
    mark = node.mark
    if mark is None or (mark.kind != "mutable" and mark.record is record and not mark.empty and not held):
        return mark
    marks = [each for _, each in held]
    if mark.kind == "object" or any(each.kind == "object" for each in marks):
        empty = [*mark.empty, *((place + number, key) for place, each in held for number, key in each.empty)]
        if empty:  # a key may have come behind its array without members
            keys = {str(each.name) for each in node.children if isinstance(each, Element)}
            empty = sorted((each for each in empty if each[1] not in keys), key=lambda each: each[0])
        return JsonMark("object", mark.listed, record, tuple(empty), mark.types)
    if mark.kind != "mutable":
        return mark if mark.record is record else replace(mark, record=record)
    kind = "null" if not marks else marks[0].kind if len(marks) == 1 else "string"
    return JsonMark(kind, mark.listed, record)
