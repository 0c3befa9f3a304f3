"""Canonical items: what an item of an evolving stream means in the units of a query's start (LAWS 4.3).

Canonical does not mean converted: where the unit of a path has changed for an item, the item's tree gets *measured*
nodes (`stream/tree.py`), which know the text written, the map that leads from there to the unit of the start, and the
exact number that comes out.
The evaluator computes with that number; an item without such a path keeps its very tree.

The way forward is the same: an answer is brought into the units of its place by maps of its own paths.
A value that returns to the unit it was written in is its text again.

Only leaves have values, and only numbers have units: words, NaN and INF stay as they are under every map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.items import nodes
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.path import Path
from anabranch.stream.tree import Attribute, Element, Measure, copy, descendants, renumber, string_value, texts
from anabranch.values.numbers import exact_number, nearest_double, spell_double


def canonical(tree: Element, evolution: Evolution) -> Element:
    """An item of the place that the evolution has reached, in the units of its start."""
    units = evolution.units(tree)
    return remeasured(tree, {path: unit.inverse() for path, unit in units.items()}) if units else tree


def remeasured(tree: Element, units: Mapping[Path, Affine]) -> Element:
    """A tree whose values at some paths are brought into other units: a copy, or the tree itself if none has any.

    The copy stands where the tree stood, so it has its place in document order, whenever it is made.
    """
    if not any(_has_unit(node) for path, by in units.items() if by != IDENTITY for node in nodes(tree, path)):
        return tree
    fresh = copy(tree)
    renumber(fresh, _orders(tree))
    for path, by in units.items():
        for node in nodes(fresh, path):
            if by != IDENTITY and _has_unit(node):
                _remeasure(node, by)
    return fresh


def _orders(tree: Element) -> Iterator[int]:
    """The numbers of a tree's nodes, as `renumber` gives them."""
    for node in (tree, *descendants(tree)):
        yield node.order
        if isinstance(node, Element):
            yield from (attribute.order for attribute in node.attributes)


def measured(text: str, measure: Measure | None, by: Affine) -> tuple[str, Measure | None]:
    """A value, given as its text and its measure, if it has one, in another unit.

    >>> from anabranch.stream.affine import parse
    >>> text, measure = measured("25.0", None, parse(". * 9 div 5 + 32"))
    >>> text, str(measure.number)
    ('77', '77')
    >>> measured(text, measure, parse("(. - 32) * 5 div 9"))
    ('25.0', None)
    """
    if by == IDENTITY:
        return text, measure
    if measure is None:
        number = exact_number(text)
        if number is None or not number.is_finite():
            return text, None
        now = Measure(text, by, by(Fraction(number)))
    else:
        now = measure.then(by)
    return (now.raw, None) if now.by == IDENTITY else (spell_double(nearest_double(now.number)), now)


def _has_unit(node: Element | Attribute) -> bool:
    """Whether a node is a leaf with a number."""
    if isinstance(node, Element):
        found = texts(node)
        if any(isinstance(child, Element) for child in node.children):
            return False
        if len(found) == 1 and found[0].measure is not None:
            return True
    elif node.measure is not None:
        return True
    number = exact_number(string_value(node))
    return number is not None and number.is_finite()


def _remeasure(node: Element | Attribute, by: Affine) -> None:
    """Give a node of a new tree its value in another unit."""
    if isinstance(node, Attribute):
        node.value, node.measure = measured(node.value, node.measure, by)
        return
    first, *others = texts(node)
    if others:  # comments between the digits: what was written is one value all the same
        first.value, first.measure = string_value(node), None
        node.children = [child for child in node.children if child not in others]
    first.value, first.measure = measured(first.value, first.measure, by)
