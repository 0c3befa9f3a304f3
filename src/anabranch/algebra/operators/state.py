"""The states of operators as JSON values: readings with their trees, maps and doubts.

Nothing is lost: trees keep their names, prefixes and declarations, maps and sums their fractions, in hexadecimal,
because Python limits the length of decimal numbers that it parses.
A tree is written by itself; declarations around it must be copied onto it (`branch/plans/plans.py` does).
"""

from __future__ import annotations

from typing import Any

from anabranch.algebra.reactions.readings import Reading
from anabranch.stream.affine import Affine
from anabranch.stream.path import Path
from anabranch.stream.tree import Child, Comment, Element, Instruction, Name, Text
from anabranch.values.numbers import read_fraction, write_fraction


def reading_to_json(reading: Reading) -> list[Any]:
    """A reading as JSON; `reading_from_json` restores it."""
    maps = [[list(path.steps), write_fraction(by.a), write_fraction(by.b)] for path, by in reading.maps.items()]
    unknown = [[list(path.steps), reason] for path, reason in reading.unknown.items()]
    return [_tree_to_json(reading.tree), maps, unknown]


def reading_from_json(value: list[Any]) -> Reading:
    """The reading from its JSON."""
    tree, maps, unknown = value
    return Reading(
        _tree_from_json(tree),
        {Path(tuple(steps)): Affine(read_fraction(a), read_fraction(b)) for steps, a, b in maps},
        {Path(tuple(steps)): reason for steps, reason in unknown},
    )


def _tree_to_json(tree: Element) -> list[Any]:
    attributes = [[*name_to_json(each.name), each.value] for each in tree.attributes]
    return [*name_to_json(tree.name), tree.namespaces, attributes, [_child_to_json(each) for each in tree.children]]


def _child_to_json(child: Child) -> Any:
    match child:
        case Element():
            return _tree_to_json(child)
        case Text():
            return child.value
        case Comment():
            return {"comment": child.value}
        case Instruction():
            return {"target": child.target, "value": child.value}


def _tree_from_json(value: list[Any]) -> Element:
    local, uri, prefix, namespaces, attributes, children = value
    tree = Element(Name(local, uri, prefix), dict(namespaces))
    for name, of, before, text in attributes:
        tree.set(Name(name, of, before), text)
    for each in children:
        tree.append(_child_from_json(each))
    return tree


def _child_from_json(value: Any) -> Child:
    match value:
        case str():
            return Text(value)
        case list():
            return _tree_from_json(value)
        case {"comment": text}:
            return Comment(text)
        case _:
            return Instruction(value["target"], value["value"])


def name_to_json(name: Name) -> list[str]:
    """A name as the arguments of its constructor."""
    return [name.local, name.uri, name.prefix]
