"""The look that most items of a stream share: fixed bytes with texts between them.

    <photon><coord><cel><ra> text </ra><dec> text </dec></cel></coord> ... </photon>

A template is learned from items and not from a schema: a schema leaves order, white space and optional parts open, and
the fast path must know every byte.
The gaps are the texts of elements that hold nothing else, and the values of attributes.
An item fits a template if its bytes are the fixed ones with *plain* texts in the gaps (see `PLAIN`), none of them
empty; then it is well-formed without being parsed, each text stands where the template says, and its bytes are what
`serialize` would write, so copying bytes is copying nodes.

Guarantees: two items that fit one template differ in those texts only, so what was judged of one (limits, schema,
namespaces) holds for the other.

The tree of an item that fits is the template's tree with other texts in its gaps: one match of a regular expression
tells whether an item fits, and its texts.
That is several times faster than parsing, and gives the same tree as a parser.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from anabranch.errors import StreamError
from anabranch.stream.limits import DOCUMENT
from anabranch.stream.reading.parse import parse_item, parse_root
from anabranch.stream.serialize import escape_text, serialize
from anabranch.stream.tree import STREAM_NAMESPACE, Comment, Element, Instruction, Text, descendants

PLAIN = bytes(32 <= byte < 127 and byte not in b'<>&"' for byte in range(256))
"""By byte, 1 for those that mean themselves in text and attributes; the rest is left to a parser."""


Declarations: TypeAlias = tuple[tuple[str, str], ...]
"""Prefixes with their namespaces, sorted by prefix; the empty prefix is that of elements without one."""
_MOST_DECLARATIONS = 16
"""A bound, so that time is linear in bytes: a start tag may be searched once for each declaration."""


@lru_cache(maxsize=8)
def scope_around(root: bytes | None, encoding: str) -> Declarations | None:
    """The declarations around items below this root, if with their own bytes they decide whether an item is good.

    None where more decides: all items are bad where the root cannot be read (`ElementReader`).
    """
    if encoding != "utf-8":
        return None
    try:
        found = None if root is None else parse_root(root)
    except StreamError:
        return None
    if found is None:
        return ()
    return None if found.name.uri == STREAM_NAMESPACE else scope_of(found)


def scope_of(root: Element) -> Declarations:
    """The declarations of a root that hold for the names of items, and for nodes that are copied from below it.

    A prefix for control elements is not copied along (LAWS 2.1); an item that uses it fits no look.
    """
    found = ((prefix, uri) for prefix, uri in root.namespaces.items() if uri and prefix != "xml")
    return tuple(sorted((prefix, uri) for prefix, uri in found if not prefix or uri != STREAM_NAMESPACE))


def is_plain_around(root: bytes | None, encoding: str) -> bool:
    """Whether the bytes of items below this root alone decide what they mean and whether they are good."""
    return scope_around(root, encoding) == ()


def is_plain_root(root: Element) -> bool:
    """Whether this root has no namespace, and declares none for nodes that are copied from below it."""
    return not root.name.uri and not scope_of(root)


def declarations(item: Element) -> Declarations | None:
    """The declarations of an item, if columns can represent its names: only its own element declares, in usual ways.

    None for items in which elements inside declare namespaces, or that have a name for control elements.
    """
    if len(item.namespaces) > _MOST_DECLARATIONS or not all(map(_is_usual_declaration, item.namespaces.items())):
        return None
    for element in (item, *(each for each in descendants(item) if isinstance(each, Element))):
        names = element.name, *(attribute.name for attribute in element.attributes)
        if (element.namespaces and element is not item) or any(name.uri == STREAM_NAMESPACE for name in names):
            return None
    return tuple(sorted(item.namespaces.items()))


def _is_usual_declaration(declared: tuple[str, str]) -> bool:
    """Whether a declaration has a plain URI, binds a prefix, and is copied along with nodes."""
    prefix, uri = declared
    return bool(uri) and all(PLAIN[byte] for byte in uri.encode()) and prefix != "xml" and uri != STREAM_NAMESPACE


def declaring(prefix: str) -> str:
    """The name of the attribute that declares a prefix."""
    return f"xmlns:{prefix}" if prefix else "xmlns"


class Anchor(NamedTuple):
    """A place in every item that fits: `offset` bytes behind the end of a gap, or of the item's begin for -1."""

    gap: int
    offset: int


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """An element of the template, or an attribute, whose name has an `@` in front."""

    name: str
    parent: int
    """Its number among the parts; -1 for that of the item itself."""
    gap: int | None
    """The gap that is its text, where it holds nothing else."""
    begin: Anchor
    end: Anchor
    """Where it begins and ends; of an attribute, its value."""


@dataclass(frozen=True, slots=True)
class Template:
    """Fixed bytes, one piece more than there are gaps, and their elements and attributes, in document order."""

    pieces: tuple[bytes, ...]
    parts: tuple[TemplatePart, ...]

    @staticmethod
    def of(item: Element) -> Template | None:
        """The template of an item, its comments and instructions left out; None for an item without a template."""
        reading, declared = _Reading(), declarations(item)
        if declared is None:
            return None
        return (
            Template(tuple(map(bytes, reading.pieces)), tuple(reading.parts))
            if reading.take(item, -1, declared)
            else None
        )

    @staticmethod
    def learn(items: Iterable[tuple[bytes, Element]]) -> Template | None:
        """The template that most of the items fit, each given as bytes and tree; None where they fit none."""
        fitting: Counter[Template] = Counter()
        for raw, item in items:
            if b"<!" not in raw and b"<?" not in raw and serialize(item).encode() == raw:
                template = Template.of(item)
                if template is not None:
                    fitting[template] += 1
        return fitting.most_common(1)[0][0] if fitting else None

    @property
    def gaps(self) -> int:
        return len(self.pieces) - 1

    @property
    def shortest(self) -> int:
        """The number of bytes of the smallest item that fits."""
        return sum(map(len, self.pieces)) + self.gaps

    @property
    def paths(self) -> list[tuple[str, ...]]:
        """By part: the names that lead to it, from the item's own on."""
        found: list[tuple[str, ...]] = []
        for part in self.parts:
            found.append((*(found[part.parent] if part.parent >= 0 else ()), part.name))
        return found


@dataclass(slots=True)
class _Reading:
    """The pieces and parts of an item so far; the last piece is open."""

    pieces: list[bytearray] = field(default_factory=lambda: [bytearray()])
    parts: list[TemplatePart] = field(default_factory=list)

    def write(self, text: str) -> None:
        self.pieces[-1] += text.encode()

    @property
    def place(self) -> Anchor:
        """The place of the next byte."""
        return Anchor(len(self.pieces) - 2, len(self.pieces[-1]))

    def open_gap(self) -> int:
        self.pieces.append(bytearray())
        return len(self.pieces) - 2

    def take(self, element: Element, parent: int, declared: Declarations = ()) -> bool:
        """Add an element with its content; False if it has mixed content, which no template has."""
        name, children = str(element.name), [each for each in element.children if not isinstance(each, _REMARKS)]
        number, begin = len(self.parts), self.place
        self.parts.append(TemplatePart(name, parent, None, begin, begin))
        self.write(f"<{name}")
        for prefix, uri in declared:
            self.write(f' {declaring(prefix)}="{uri}"')
        for attribute in element.attributes:
            self.write(f' {attribute.name}="')
            before, own = self.place, self.open_gap()
            self.parts.append(TemplatePart(f"@{attribute.name}", number, own, before, self.place))
            self.write('"')
        self.write(">" if children else "/>")
        gap = self.open_gap() if children and all(isinstance(each, Text) for each in children) else None
        for child in children if gap is None else ():
            match child:
                case Element():
                    if not self.take(child, number):
                        return False
                case Text() if child.value.isspace():
                    self.write(escape_text(child.value))
                case _:
                    return False
        if children:
            self.write(f"</{name}>")
        self.parts[number] = TemplatePart(name, parent, gap, begin, self.place)
        return True


_REMARKS = (Comment, Instruction)


# --- trees -----------------------------------------------------------------------------------------------------


LONGEST = 1 << 14
"""Items of more bytes than this are left to the parser: patterns so long cost more to make than they save."""
_PLAIN = re.escape("".join(chr(byte) for byte in range(256) if PLAIN[byte]))


class TemplateTrees:
    """Makes the trees of items that fit one template."""

    def __init__(self, template: Template) -> None:
        fixed = [piece.decode("latin-1") for piece in template.pieces]  # a character per byte, as below
        self._look = re.compile(f"([{_PLAIN}]++)".join(map(re.escape, fixed)))
        self._model = parse_item(b"-".join(template.pieces), DOCUMENT)

    def tree(self, raw: bytes) -> Element | None:
        """The tree of an item; None where it does not fit."""
        found = self._look.fullmatch(raw.decode("latin-1"))
        return None if found is None else _filled(self._model, iter(found.groups()))


def _filled(model: Element, texts: Iterator[str]) -> Element:
    """A copy of an element with the next texts in its gaps, which come in the order in which `Template` has them."""
    fresh = Element(model.name, dict(model.namespaces))
    for attribute in model.attributes:
        fresh.set(attribute.name, next(texts))
    children = model.children
    if len(children) == 1 and isinstance(children[0], Text):
        fresh.append(Text(next(texts)))
        return fresh
    for child in children:
        if isinstance(child, Element):
            fresh.append(_filled(child, texts))
        elif isinstance(child, Text):
            fresh.append(Text(child.value))
    return fresh


class UsualTrees:
    """Makes trees of items that fit the template learned last; learns from items that do not fit."""

    def __init__(self) -> None:
        self._trees: TemplateTrees | None = None
        self._missed = 0

    def tree(self, raw: bytes) -> Element | None:
        """The tree of an item; None where a parser has to read it."""
        return self._trees.tree(raw) if self._trees else None

    def learn(self, raw: bytes, tree: Element) -> None:
        """Learn from a parsed item that did not fit; ever fewer of them, for learning costs more than parsing."""
        self._missed += 1
        if self._missed & (self._missed - 1) or len(raw) > LONGEST:
            return
        if template := Template.learn([(raw, tree)]):
            trees = TemplateTrees(template)
            self._trees = trees if trees.tree(raw) else self._trees
