"""What is written after accents have come out: pieces of an answer in the units of their place.

A piece comes in canonical values.
Each element at its top is an item of the output stream; it is in the set of an accent if its own values say so, and
then the accent's map applies to whatever stands at the path: copied, computed, or waiting since before the accent.
Canonisation of the answer undoes just that, which is why the square of LAWS 4.1 holds whatever the query does.
A value that comes home to the unit it was written in leaves as its text, any other as the nearest double (LAWS 4.3).

A path that has been dropped is taken out of what leaves later (LAWS 4.2 c, g): a copied node goes; a constructed one,
which is there whatever the input has, stays and is empty.

Texts and values outside of elements have no path, so no accent can speak of them: they stay in the units of the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anabranch.algebra.accents.items import nodes, spelled
from anabranch.algebra.accents.sets import below
from anabranch.algebra.reactions.course import Course
from anabranch.algebra.reactions.readings import Reading, holds
from anabranch.law.evolution.canonical import remeasured
from anabranch.predicate import EVERYTHING, Predicate
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.stream.affine import IDENTITY, Affine
from anabranch.stream.elements import Add, Alter, Drop
from anabranch.stream.path import Path
from anabranch.stream.tree import Attribute, Element, Text, copy, descendants
from anabranch.values.sequences import Value, Values


class Written:
    """The accents that have come out, and what they make of pieces."""

    def __init__(self, lineage: Lineage) -> None:
        self._constructed = {
            site.at for sites in lineage.items for site in sites if site.extent == "value" and site.origin is not None
        }
        self._course = Course()
        self._net: dict[Path, Affine] | None = {}
        """The unit of each path that is not at home in that of the start, as long as it is the same for all items."""
        self._gone: list[Path] = []
        """The paths that have been dropped for some items, perhaps added again."""

    def see(self, where: Predicate, evolution: Add | Drop | Alter) -> None:
        """An accent has come out."""
        self._course.see(where, evolution)
        path = evolution.path
        match evolution:
            case Alter(_, by) if self._net is not None:
                self._net = self._altered(self._net, path, by) if where == EVERYTHING else None
            case Add() if self._net is not None:
                left = {each: by for each, by in self._net.items() if not below(each, path)}
                self._net = left if where == EVERYTHING or left == self._net else None
            case Drop() if path not in self._gone:
                self._gone.append(path)
            case _:
                pass

    @staticmethod
    def _altered(net: Mapping[Path, Affine], path: Path, by: Affine) -> dict[Path, Affine]:
        now = net.get(path, IDENTITY).then(by)
        others = {each: unit for each, unit in net.items() if each != path}
        return others if now == IDENTITY else {**others, path: now}

    @property
    def changes_pieces(self) -> bool:
        """Whether pieces may have to change on their way out."""
        return self._net != {} or bool(self._gone)

    def unit(self, path: Path) -> Affine | None:
        """The unit of a path that is the same for all items, as the map from that of the start; None if it is not."""
        return None if self._net is None else self._net.get(path, IDENTITY)

    @property
    def units(self) -> Mapping[Path, Affine] | None:
        """All units that are not those of the start; None where more than that has to change."""
        return None if self._gone else self._net

    def forward(self, values: Values) -> Values:
        """A piece as it is written now."""
        if not self.changes_pieces:
            return values
        return [each for value in values for each in self._forward(value)]

    def _forward(self, value: Value) -> Iterator[Value]:
        if not isinstance(value, Element):
            yield value
            return
        reading = Reading(exact(value)) if self._net is None or self._gone else Reading(value)
        tree = remeasured(value, self._units(reading))
        gone = [path for path in self._gone if holds(self._course.dropped(path), reading)]
        yield from [tree] if not gone else self._without(tree, gone)

    def _units(self, reading: Reading) -> Mapping[Path, Affine]:
        return self._course.current(reading).maps if self._net is None else self._net

    def _without(self, tree: Element, gone: list[Path]) -> Iterator[Element]:
        """An output item without the values at some paths, if there is anything left of it."""
        if not any(True for path in gone for _ in nodes(tree, path)):
            yield tree
            return
        fresh = copy(tree)
        assert isinstance(fresh, Element)
        for path in gone:
            for node in list(nodes(fresh, path)):
                if path in self._constructed:
                    _empty(node)
                elif node is fresh:
                    return
                else:
                    remove(node)
        yield fresh


def exact(tree: Element) -> Element:
    """A tree whose measured values are spelled exactly; itself where there are none."""
    if not any(each.measure is not None for each in _leaves(tree)):
        return tree
    fresh = copy(tree)
    assert isinstance(fresh, Element)
    for each in _leaves(fresh):
        if each.measure is not None:
            each.value = spelled(each.measure.number)
    return fresh


def _leaves(tree: Element) -> Iterator[Text | Attribute]:
    for node in (tree, *descendants(tree)):
        match node:
            case Element():
                yield from node.attributes
            case Text():
                yield node


def _empty(node: Element | Attribute) -> None:
    if isinstance(node, Attribute):
        node.value, node.measure = "", None
    else:
        node.children = []


def remove(node: Element | Attribute) -> None:
    """Take a node out of the tree that it stands in."""
    assert isinstance(node.parent, Element)
    if isinstance(node, Attribute):
        node.parent.attributes.remove(node)
    else:
        node.parent.children.remove(node)
