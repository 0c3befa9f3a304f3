"""`path()` and `generate-id()`: where a node stands in its item, in a document or in a tree of a query (LAWS 2.8)."""

from __future__ import annotations

from hashlib import sha256
from itertools import takewhile

from anabranch.law.library.analysis import FUNCTIONS_NAMESPACE
from anabranch.stream.tree import Attribute, Comment, Document, Element, Instruction, Node, Text

_ID_DIGITS = 32


def path_to(node: Node, top: Node) -> str:
    """The steps that lead from the outermost node around one to it, as XQuery writes them."""
    steps: list[str] = []
    at = node
    while at is not top:
        assert at.parent is not None, "the outermost node is above it"
        steps.append(_step(at, at.parent))
        at = at.parent
    start = "" if isinstance(top, Document) else f"Q{{{FUNCTIONS_NAMESPACE}}}root()"
    return start + "".join(f"/{each}" for each in reversed(steps)) or "/"


def id_of(node: Node, top: Node) -> str:
    """A name for a node that no other node has below the same outermost one, and that depends on its place alone."""
    return f"n{sha256(path_to(node, top).encode()).hexdigest()[:_ID_DIGITS]}"


def _step(node: Node, parent: Document | Element) -> str:
    match node:
        case Attribute(name=name):
            return f"@{name.expanded}"
        case Element(name=name):
            test = f"Q{{{name.uri}}}{name.local}"
        case Instruction(target=target):
            test = f"processing-instruction({target})"
        case Text():
            test = "text()"
        case Comment():
            test = "comment()"
        case Document():
            raise AssertionError("a document is in nothing")
    return (
        f"{test}[{1 + sum(_alike(each, node) for each in takewhile(lambda each: each is not node, parent.children))}]"
    )


def _alike(one: Node, other: Node) -> bool:
    """Whether one test of a step finds both."""
    match one, other:
        case (Element(name=name), Element(name=same)) | (Instruction(target=name), Instruction(target=same)):
            return name == same
        case _:
            return type(one) is type(other) and not isinstance(one, Element | Instruction)
