"""Steps of a path: from one node to others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from anabranch.language import ast
from anabranch.stream.tree import Attribute, Document, Element, Name, Node, Text, descendants

Namespaces = Mapping[str, str]
_PARENTS = Element, Document  # no union, which would be made anew for every node


def step(node: Node, taken: ast.Step, namespaces: Namespaces) -> Iterator[Node]:
    """The nodes that a step reaches from `node`, its predicates not yet looked at; perhaps with duplicates."""
    starts: Iterator[Node] = _with_descendants(node) if taken.deep else iter((node,))
    for start in starts:
        for reached in _along(taken.axis, start):
            if fulfils(reached, taken.test, taken.axis, namespaces):
                yield reached


def _with_descendants(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, _PARENTS):
        yield from descendants(node)


def _along(axis: ast.Axis, node: Node) -> Iterator[Node]:
    match axis:
        case "child":
            if isinstance(node, _PARENTS):
                yield from node.children
        case "attribute":
            if isinstance(node, Element):
                yield from node.attributes
        case "parent":
            if node.parent is not None:
                yield node.parent
        case "self":
            yield node
        case "descendant":
            if isinstance(node, _PARENTS):
                yield from descendants(node)
        case "descendant-or-self":
            yield from _with_descendants(node)
        case _:
            assert_never(axis)


def fulfils(node: Node, test: ast.NameTest | ast.KindTest, axis: ast.Axis, namespaces: Namespaces) -> bool:
    """Whether a node passes a name or kind test."""
    match test:
        case ast.KindTest(kind):
            return kind == "node" or isinstance(node, Text)
        case ast.NameTest(local, prefix):
            principal = Attribute if axis == "attribute" else Element
            if not isinstance(node, principal):
                return False
            return _name_fits(node.name, local, prefix, axis, namespaces)


def _name_fits(name: Name, local: str, prefix: str | None, axis: ast.Axis, namespaces: Namespaces) -> bool:
    if local not in ("*", name.local):
        return False
    if prefix is None:
        return local == "*" or name.uri == ("" if axis == "attribute" else namespaces.get("", ""))
    return prefix == "*" or name.uri == namespaces[prefix]
