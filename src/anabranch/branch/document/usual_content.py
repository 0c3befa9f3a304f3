"""The content of updates of a usual look, as a document keeps it, made without a tree of the update.

Which nodes of it a query sees, and which namespaces are declared on them, follows from the look; so it is found once
for a look, and what an update brings are texts and the values of attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from anabranch.branch.document.shared_nodes import NO_NAMESPACES, shared_declarations, shared_element
from anabranch.branch.intake.usual_updates import NodePlan, UpdateLook, UsualUpdate
from anabranch.law.history.chains import Content, Lived
from anabranch.sharing.retention import Visibility
from anabranch.stream.elements import Place
from anabranch.stream.tree import Child, Element, Name, Text

_MOST_LOOKS = 64


class _KeptNode(NamedTuple):
    """A text, or an element where it is not None."""

    group: int
    """Of a text: the number of its value."""
    element: Element | None
    namespaces: dict[str, str]
    attributes: tuple[tuple[Name, int], ...] = ()
    inside: tuple[_KeptNode, ...] = ()
    is_seen: bool = True
    """Whether an element is kept also without content."""


class UsualContents:
    """What one document keeps of the content of updates, by their looks."""

    def __init__(self) -> None:
        self._kept: dict[tuple[UpdateLook, Visibility], tuple[_KeptNode, ...]] = {}

    def lives(self, update: UsualUpdate, sight: Visibility, start: Fraction, place: Place) -> list[Content]:
        """The visible part of the content of an update that stands inside an item."""
        known = self._kept.get((update.look, sight))
        if known is None:
            if len(self._kept) >= _MOST_LOOKS:
                self._kept.clear()
            known = _kept(update.look.plan.children, update.content, sight)
            self._kept[update.look, sight] = known
        return _lives(known, update.values, start, place)


def _kept(plans: Sequence[NodePlan], children: Sequence[Child], sight: Visibility) -> tuple[_KeptNode, ...]:
    """What is kept of some nodes; `children` are those of any update of the look."""
    found: list[_KeptNode] = []
    for plan, child in zip(plans, children, strict=True):
        if isinstance(plan, int):
            if sight.finds(child):
                found.append(_KeptNode(plan, None, NO_NAMESPACES))
            continue
        assert isinstance(child, Element), "it is what the plan builds"
        below = sight.into(child.name.local)
        if below.blind and not below.seen:
            continue
        inside = _kept(plan.children, child.children, below)
        element = shared_element(child.name.local, child.name.uri, child.name.prefix)
        declared = shared_declarations(child, between=False)
        found.append(_KeptNode(-1, element, declared, plan.attributes, inside, below.seen))
    return tuple(found)


def _lives(kept: Sequence[_KeptNode], values: Sequence[str], start: Fraction, place: Place) -> list[Content]:
    found: list[Content] = []
    for group, element, namespaces, attributes, inside, is_seen in kept:
        if element is None:
            found.append(Lived(Text(values[group]), namespaces, start, place))
            continue
        content = _lives(inside, values, start, place) if inside else []
        if is_seen or content:
            node: Child = element
            if attributes:
                node = Element(element.name)
                for name, number in attributes:
                    node.set(name, values[number])
            found.append(Lived(node, namespaces, start, place, content))
    return found
