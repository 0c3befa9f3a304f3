"""Items under unit changes, and sets that overlap: what only models and tests ask for."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from anabranch.algebra.accents.boxes import empty
from anabranch.algebra.accents.items import nodes, number, spelled
from anabranch.predicate import Predicate, and_
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.path import Path
from anabranch.stream.schema import children_of
from anabranch.stream.tree import Attribute, Element, Text, copy, string_value


def overlap(items: Predicate, others: Predicate) -> bool:
    """Whether some item is in both sets."""
    return not empty(and_(items, others))


def altered(tree: Element, path: Path, by: Affine) -> Element:
    """The item with its numbers at a path mapped: a copy, or the item itself where nothing changes."""
    if by == IDENTITY or not any(isinstance(_unit_value(node), Fraction) for node in nodes(tree, path)):
        return tree
    fresh = copy(tree)
    assert isinstance(fresh, Element)
    for node in nodes(fresh, path):
        value = _unit_value(node)
        if not isinstance(value, Fraction):
            continue
        if isinstance(node, Attribute):
            node.value = spelled(by(value))
        else:
            node.children = []
            node.append(Text(spelled(by(value))))
    return fresh


def _unit_value(node: Element | Attribute) -> Fraction | Decimal | None:
    """The number that a node has a unit for; what holds elements has none of its own."""
    if isinstance(node, Element) and any(True for _ in children_of(node)):
        return None
    return number(string_value(node))
