"""Readings: an item as it was written, with the units of its values.

A value travels as the item's text, with the map from it to the value meant (LAWS 4.3).
An accent only composes maps; a number is computed where a value leaves in a unit other than its own, and where the net
map is the identity the text is copied.
Words, NaN and the infinities have no unit: no map changes them.

A computed value, such as an average, is the text `0` with the map that adds it: so it stays a fraction until it leaves.

Where an accent was refused, the meaning of the values at its path is unknown (LAWS 4.5); the reading of an item
concerned carries that along, so queries that do not read the path are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from anabranch.algebra.accents.items import nodes, number, spelled
from anabranch.algebra.accents.sets import has
from anabranch.predicate import Predicate
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.path import Path
from anabranch.stream.tree import Attribute, Element, Name, Text, copy, string_value
from anabranch.values.numbers import nearest_double, spell_double

Node: TypeAlias = Element | Attribute
Spelling: TypeAlias = Callable[[Fraction], str]
Visit: TypeAlias = Callable[[tuple[str, ...], Node], str | bool | None]


@dataclass(frozen=True, slots=True)
class Reading:
    """An item's tree, and for some paths the map from the text there to the value meant."""

    tree: Element
    maps: Mapping[Path, Affine] = field(default_factory=dict)
    unknown: Mapping[Path, str] = field(default_factory=dict)
    """The paths with unknown meaning, each with the reason."""

    def mistrusted(self, path: Path, reason: str) -> Reading:
        """The same item, with a path unknown."""
        return self if path in self.unknown else replace(self, unknown={**self.unknown, path: reason})

    def mapped(self, path: Path, by: Affine) -> Reading:
        """The same item, with a map applied to the values at a path."""
        return replace(self, maps={**self.maps, path: self.maps.get(path, IDENTITY).then(by)})

    def texts(self, path: Path) -> list[str]:
        """The exact values at a path; as a quotient where there is no decimal."""
        by = self.maps.get(path, IDENTITY)
        return [_spelled(string_value(node), by, spelled) for node in nodes(self.tree, path)]

    def numbers(self, path: Path) -> list[Fraction | Decimal | None]:
        """The values at a path as numbers; a decimal is INF or NaN, None is no number."""
        return [number(text) for text in self.texts(path)]

    def is_measured(self, path: Path) -> bool:
        """Whether a unit change has made the values at a path numbers."""
        return self.maps.get(path, IDENTITY) != IDENTITY

    def written(self, spelling: Spelling = lambda value: spell_double(nearest_double(value))) -> Element:
        """The tree with all values in their present units; computed ones in this spelling."""
        changed = {path.steps: by for path, by in self.maps.items() if by != IDENTITY}
        if not changed:
            return self.tree

        def visit(steps: tuple[str, ...], node: Node) -> str | bool | None:
            by = changed.get(steps)
            return None if by is None or not is_leaf(node) else _spelled(string_value(node), by, spelling)

        return rebuilt(self.tree, visit)


def holds(items: Predicate, reading: Reading) -> bool:
    """Whether an item is in a set."""
    return has(items, reading.texts)


def _spelled(text: str, by: Affine, spelling: Spelling) -> str:
    value = None if by == IDENTITY else number(text)
    return spelling(by(value)) if isinstance(value, Fraction) else text


# --- trees ------------------------------------------------------------------------------------------------


def is_leaf(node: Node) -> bool:
    """Whether a node has a value of its own."""
    return isinstance(node, Attribute) or not any(isinstance(child, Element) for child in node.children)


def rebuilt(source: Element, visit: Visit, steps: tuple[str, ...] = ()) -> Element:
    """A copy in which each node below is kept whole (True), left out (False), replaced by a text, or visited (None)."""
    fresh = _begun(source, visit, steps)
    for child in source.children:
        if not isinstance(child, Element):
            fresh.append(copy(child))
            continue
        inner = (*steps, str(child.name))
        match visit(inner, child):
            case None:
                fresh.append(rebuilt(child, visit, inner))
            case True:
                fresh.append(copy(child))
            case str(text):
                leaf = _begun(child, visit, inner)
                leaf.append(Text(text))
                fresh.append(leaf)
    return fresh


def _begun(source: Element, visit: Visit, steps: tuple[str, ...]) -> Element:
    """A copy of an element with its attributes, without children."""
    fresh = Element(source.name, dict(source.namespaces))
    for attribute in source.attributes:
        decided = visit((*steps, f"@{attribute.name}"), attribute)
        if decided is not False:
            fresh.set(attribute.name, decided if isinstance(decided, str) else attribute.value)
    return fresh


def led_to(tree: Element, names: Iterable[Name]) -> Element:
    """The element that a sequence of names leads to, from a tree down; missing ones are created."""
    for name in names:
        inner = next((each for each in tree.children if isinstance(each, Element) and each.name == name), None)
        if inner is None:
            inner = Element(name)
            tree.append(inner)
        tree = inner
    return tree


def without(tree: Element, path: Path) -> Element:
    """A copy without the nodes at a path."""
    return rebuilt(tree, lambda steps, _: False if steps == path.steps else None)
