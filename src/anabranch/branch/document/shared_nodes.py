"""Nodes of documents that are the same object wherever they look the same.

A document keeps each node without what is in it (`law/history/chains.py`), and never changes it; so elements that have
no attributes differ in their names only, and a million entries need a few of them.
"""

from __future__ import annotations

from functools import lru_cache

from anabranch.law.history.admission import declared_on
from anabranch.law.history.chains import bare
from anabranch.stream.tree import Child, Element, Name

NO_NAMESPACES: dict[str, str] = {}
"""The declarations on a node without any; nobody adds to them."""


@lru_cache(maxsize=4_096)
def shared_element(local: str, uri: str, prefix: str) -> Element:
    """The element of a name that has nothing in it."""
    return Element(Name(local, uri, prefix))


def shared_node(node: Child) -> Child:
    """A node by itself: one of its own, or the shared one of its name."""
    if type(node) is not Element or node.attributes or node.mark is not None or node.message is not None:
        return bare(node)
    name = node.name
    return shared_element(name.local, name.uri, name.prefix)


def shared_declarations(node: Child, between: bool) -> dict[str, str]:
    """The namespaces to declare on a node (`declared_on`); those of a node without any are shared."""
    return declared_on(node, between) or NO_NAMESPACES
