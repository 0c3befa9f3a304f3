"""Readings: an item as it was written, and what its values mean.

A value travels as the text that the item brought, with the map that leads from it to the value meant (LAWS 4.3).
An accent only composes maps; a number is computed where a value leaves in a unit other than its own, and where the net
map is the identity the text is copied as it stands.
Words, NaN and the infinities have no unit: no map changes them.

A computed value, say an average, is the text `0` with the map that adds it: so it stays a fraction until it leaves.

Where an accent had to be refused, nobody knows what the values at its path mean (LAWS 4.5); an item that is concerned
says so itself, all the way, so who does not look at the path never hears of it.
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
    """The paths of which nobody knows what their values mean, each with the reason."""

    def mistrusted(self, path: Path, reason: str) -> Reading:
        """The same item, with nothing known of a path."""
        return self if path in self.unknown else replace(self, unknown={**self.unknown, path: reason})

    def mapped(self, path: Path, by: Affine) -> Reading:
        """The same item, with a map applied to the values at a path."""
        return replace(self, maps={**self.maps, path: self.maps.get(path, IDENTITY).then(by)})

    def texts(self, path: Path) -> list[str]:
        """The values at a path, exactly: where a map makes no decimal, as a quotient."""
        by = self.maps.get(path, IDENTITY)
        return [_spelled(string_value(node), by, spelled) for node in nodes(self.tree, path)]

    def numbers(self, path: Path) -> list[Fraction | Decimal | None]:
        """The values at a path in numbers; a decimal is INF or NaN, None is no number."""
        return [number(text) for text in self.texts(path)]

    def is_measured(self, path: Path) -> bool:
        """Whether a unit change has made numbers of the values at a path."""
        return self.maps.get(path, IDENTITY) != IDENTITY

    def written(self, spelling: Spelling = lambda value: spell_double(nearest_double(value))) -> Element:
        """The tree with all values as they are meant now; what has to be computed, in this spelling."""
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
    """A copy in which each node below is kept whole (True), left out (False), given a text, or gone into (None)."""
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
    """A copy of an element with its attributes, so far."""
    fresh = Element(source.name, dict(source.namespaces))
    for attribute in source.attributes:
        decided = visit((*steps, f"@{attribute.name}"), attribute)
        if decided is not False:
            fresh.set(attribute.name, decided if isinstance(decided, str) else attribute.value)
    return fresh


def led_to(tree: Element, names: Iterable[Name]) -> Element:
    """The element that a row of names leads to, from a tree down; what is not there is made."""
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
