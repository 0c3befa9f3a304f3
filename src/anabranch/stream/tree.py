"""XML trees: the nodes that items are made of and that queries construct.

The model is XQuery's, as far as the language can see it: documents, elements, attributes, text, comments and
processing instructions, with identity, parents and document order.
Nodes are numbered when they are created, and trees are created in document order, so comparing `order` compares
document order; this is the one assumption to keep when building trees.
A tree is not changed once it is complete.

A text or an attribute may be *measured*: its value was converted into another unit, or computed, and it still knows the
original (LAWS 4.3).
Its `value` is then only the nearest double in XQuery's spelling; the exact number is in the measure.
Copies stay measured.

An element that was read from JSON is *marked* with what stood there (LAWS 7.1); copies stay marked.
One that came in a message knows the message's key and headers (LAWS 1.6); so do copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Literal, TypeAlias, overload

from anabranch.stream.affine import Affine

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
STREAM_NAMESPACE = "urn:anabranch:stream"
"""The namespace of control elements (accents, punctuations, regions and updates) in a stream."""

_numbers = count()


@dataclass(frozen=True, slots=True)
class Name:
    """An expanded name; the prefix is kept for writing and does not count in comparisons."""

    local: str
    uri: str = ""
    prefix: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.prefix}:{self.local}" if self.prefix else self.local

    @property
    def expanded(self) -> str:
        """The name as XQuery writes it without a declaration: `Q{uri}local`, and `local` alone in no namespace."""
        return f"Q{{{self.uri}}}{self.local}" if self.uri else self.local


@dataclass(frozen=True, slots=True)
class Measure:
    """An exact number: the text it was written as, and the map from there to its present unit.

    A computed number, such as an average, is the text `0` with the map that adds it.
    """

    raw: str
    by: Affine
    number: Fraction
    """The number written, mapped by `by`."""
    computed: bool = False

    def then(self, by: Affine) -> Measure:
        """The same value in another unit."""
        return Measure(self.raw, self.by.then(by), by(self.number), self.computed)


ScalarKind: TypeAlias = Literal["string", "number", "boolean", "null"]


@dataclass(frozen=True, slots=True)
class JsonMark:
    """What an element was in JSON; arrays are repeated children, so each member says that it is one."""

    kind: Literal["object", "array", "mutable"] | ScalarKind
    """An `array` is a member of an array, and its own members are all its children.
    A `mutable` value is what its region holds, from one version to the next (LAWS 7.5), or what has come of it so
    far (LAWS 7.6).
    """
    listed: bool = False
    """Whether it is a member of an array."""
    record: bool = False
    """Whether it is an item, or a record of a document, and no part of one."""
    empty: tuple[tuple[int, str], ...] = ()
    """The keys of an object that have arrays without members, each with the number of children in front of it."""
    types: tuple[tuple[str, str], ...] = ()
    """The kinds of the values that attributes have, keys with `@`, where they are no strings."""


def is_array(element: Element) -> bool:
    """Whether an element was an array in JSON: one that is a member of an array."""
    return element.mark is not None and element.mark.kind == "array"


@dataclass(frozen=True, slots=True)
class MessageNotes:
    """The key and the headers of a message, as queries see them (LAWS 1.6)."""

    key: str | None
    headers: tuple[tuple[str, str], ...] = ()


class _Node:
    __slots__ = ("order", "parent")

    def __init__(self) -> None:
        self.order: int = next(_numbers)
        self.parent: Document | Element | None = None


class Text(_Node):
    __slots__ = ("kind", "measure", "value")

    def __init__(self, value: str, measure: Measure | None = None, kind: ScalarKind | None = None) -> None:
        super().__init__()
        self.value = value
        self.measure = measure
        self.kind = kind
        """What it is in JSON, where it came by itself, as a piece of a value (LAWS 7.6)."""


class Comment(_Node):
    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        super().__init__()
        self.value = value


class Instruction(_Node):
    """A processing instruction."""

    __slots__ = ("target", "value")

    def __init__(self, target: str, value: str) -> None:
        super().__init__()
        self.target = target
        self.value = value


class Attribute(_Node):
    __slots__ = ("measure", "name", "value")

    def __init__(self, name: Name, value: str, measure: Measure | None = None) -> None:
        super().__init__()
        self.name = name
        self.value = value
        self.measure = measure


class Element(_Node):
    """An element; `namespaces` are the declarations written on it (prefix to URI, `""` undeclares).

    The top of what came in a message knows the key and the headers of the message.
    """

    __slots__ = ("attributes", "children", "mark", "message", "name", "namespaces")

    def __init__(self, name: Name, namespaces: dict[str, str] | None = None, mark: JsonMark | None = None) -> None:
        super().__init__()
        self.name = name
        self.namespaces: dict[str, str] = namespaces or {}
        self.mark = mark
        self.message: MessageNotes | None = None
        self.attributes: list[Attribute] = []
        self.children: list[Child] = []

    def set(self, name: Name, value: str, measure: Measure | None = None) -> None:
        """Add an attribute; to be called before children are appended."""
        attribute = Attribute(name, value, measure)
        attribute.parent = self
        self.attributes.append(attribute)

    def get(self, local: str, uri: str = "") -> str | None:
        """The value of an attribute, or None."""
        for attribute in self.attributes:
            if attribute.name.local == local and attribute.name.uri == uri:
                return attribute.value
        return None

    def append(self, child: Child) -> None:
        child.parent = self
        self.children.append(child)


class Document(_Node):
    """A document node; a stream is one, whose single child is the root element of the items."""

    __slots__ = ("children",)

    def __init__(self) -> None:
        super().__init__()
        self.children: list[Child] = []

    def append(self, child: Child) -> None:
        child.parent = self
        self.children.append(child)


Child: TypeAlias = Element | Text | Comment | Instruction
Node: TypeAlias = Document | Element | Attribute | Text | Comment | Instruction


def string_value(node: Node) -> str:
    """The concatenated text below a node, without comments and instructions."""
    match node:
        case Element() | Document():
            return "".join([each.value for each in texts(node)])
        case _:
            return node.value


def texts(node: Element | Document) -> list[Text]:
    """All texts below a node, in document order."""
    children = node.children
    if len(children) == 1 and isinstance(children[0], Text):
        return [children[0]]
    return [each for each in descendants(node) if isinstance(each, Text)]


def descendants(node: Element | Document) -> Iterator[Child]:
    """All nodes below `node`, without attributes, in document order."""
    pending: list[Child] = list(reversed(node.children))
    while pending:
        each = pending.pop()
        yield each
        if isinstance(each, Element):
            pending.extend(reversed(each.children))


def namespaces_in_scope(element: Element) -> dict[str, str]:
    """Prefix to URI for all declarations in scope for `element`, the nearest winning.

    That of control elements is left out: it is not copied into answers (LAWS 2.1), and written where a name needs it.
    """
    chain: list[Element] = []
    at: Document | Element | None = element
    is_declared = False
    while isinstance(at, Element):
        chain.append(at)
        if at.namespaces and not is_declared:
            is_declared = any(uri != STREAM_NAMESPACE for uri in at.namespaces.values())
        at = at.parent
    scope: dict[str, str] = {}
    if not is_declared:
        return scope
    for each in reversed(chain):
        scope.update(each.namespaces)
        if not each.name.uri:
            scope.pop("", None)  # moved below a default namespace, it stays in no namespace
    return {prefix: uri for prefix, uri in scope.items() if uri and uri != STREAM_NAMESPACE}


LETTERS = 8
"""As a power of 2: the characters of text that count as much as a node."""


@overload
def copy(node: Element, count: Callable[[int], None] | None = None) -> Element: ...
@overload
def copy(node: Child, count: Callable[[int], None] | None = None) -> Child: ...
def copy(node: Child, count: Callable[[int], None] | None = None) -> Child:
    """A deep copy without parent; an element takes the namespaces in scope along, as XQuery copies do.

    `count` receives the amount copied, step by step: each node counts 1, and more with a long text.
    """
    if count is not None:
        count(1)
    if isinstance(node, Element):
        fresh = Element(node.name, namespaces_in_scope(node), node.mark)
        fresh.message = node.message
        _fill(fresh, node, count)
        return fresh
    return _copy_inner(node, count)


def _fill(fresh: Element, source: Element, count: Callable[[int], None] | None) -> None:
    if count is not None:
        count(len(source.attributes) + len(source.children))
    for attribute in source.attributes:
        if count is not None:
            count(len(attribute.value) >> LETTERS)
        fresh.set(attribute.name, attribute.value, attribute.measure)
    for child in source.children:
        fresh.append(_copy_inner(child, count))


def _copy_inner(node: Child, count: Callable[[int], None] | None) -> Child:
    if isinstance(node, Element):
        fresh = Element(node.name, dict(node.namespaces) if node.namespaces else None, node.mark)
        fresh.message = node.message
        _fill(fresh, node, count)
        return fresh
    if count is not None and len(node.value) >> LETTERS:
        count(len(node.value) >> LETTERS)
    match node:
        case Text():
            return Text(node.value, node.measure, node.kind)
        case Comment():
            return Comment(node.value)
        case Instruction():
            return Instruction(node.target, node.value)


def renumber(tree: Element | Document, numbers: Iterator[int] = _numbers) -> None:
    """Renumber a tree: with new numbers, behind all nodes, or with those given."""
    for node in (tree, *descendants(tree)):
        node.order = next(numbers)
        if isinstance(node, Element):
            for attribute in node.attributes:
                attribute.order = next(numbers)


def in_document_order(nodes: Sequence[Node]) -> list[Node]:
    """The nodes in document order, without duplicates."""
    if len(nodes) < 2:  # as nearly always
        return list(nodes)
    return sorted(dict.fromkeys(nodes), key=lambda node: node.order)
