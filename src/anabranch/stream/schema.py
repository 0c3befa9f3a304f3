"""Schemas: the paths that the items of a stream may have, from a DTD or learned from the items themselves.

A schema is a set of declarations, each for one kind of element, and every child refers to its own declaration.
A DTD declares by name, wherever the element stands, so its declarations are keyed by name and may form a cycle; learned
declarations are keyed by path and form a tree.
Callers follow the references and need not know the difference.

A DTD is read by lxml's own class, which would open files and sockets for external entities.
So every entity declaration is checked before: only entities whose text stands there in quotes pass, and the text of
a parameter entity must be too plain to build another declaration.

Regions and updates inside an item are transparent: the content of `s:mutable` counts as content of its parent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, TypeAlias

from lxml import etree

from anabranch.errors import StreamError
from anabranch.storage import Location, Where
from anabranch.stream.path import Path
from anabranch.stream.tree import STREAM_NAMESPACE, Element, Text

MAX_DTD = 1 << 20

_ENTITY = re.compile(r"<!ENTITY")
_HARMLESS_ENTITY = re.compile(
    r"""<!ENTITY\s+(?:%\s+[\w.:-]+\s+(?:"[^"'<>&]*"|'[^"'<>&]*')|[\w.:-]+\s+(?:"[^"]*"|'[^']*'))\s*>"""
)
_TEXT_DECLARATION = re.compile(r"\ufeff?\s*<\?xml\s[^>]*\?>")


@dataclass(frozen=True, slots=True)
class Part:
    """A child in a declaration: its name, the key of its own declaration, and how often it may occur."""

    name: str
    declared: str
    optional: bool
    repeated: bool


@dataclass(frozen=True, slots=True)
class Declaration:
    """The content of one kind of element; children are in declared order, or as first seen."""

    children: Mapping[str, Part]
    attributes: tuple[str, ...] = ()
    text: bool = False


_TEXT_ONLY = Declaration({}, (), True)


@dataclass(frozen=True, slots=True)
class Schema:
    """The root's name, and all declarations by key; the root's own key is its name."""

    root: str
    declarations: Mapping[str, Declaration]

    @staticmethod
    def from_dtd(text: str, root: str | None = None) -> Schema:
        """Read a DTD; the root is the one element that stands in no other, unless it is given."""
        elements = _elements(text)
        models = _models(elements)
        anything = {name: Part(name, name, optional=True, repeated=True) for name in elements}
        declarations = {
            name: Declaration(
                anything if each.type == "any" else models[name],
                tuple(sorted(_full_name(attribute) for attribute in each.iterattributes())),
                each.type in ("any", "mixed"),
            )
            for name, each in elements.items()
        }
        return Schema(_root(models, root), declarations)

    @staticmethod
    def read_dtd(file: Where) -> Schema:
        """Read a DTD from a file, in UTF-8."""
        try:
            text = Location.of(file).read().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise StreamError(f"cannot read the DTD '{file}': {reason}") from None
        return Schema.from_dtd(text)

    @property
    def items(self) -> tuple[str, ...]:
        """The names of the items: the root's children."""
        return tuple(self.declarations[self.root].children)

    def child(self, item: str, *steps: str) -> Part | None:
        """The part of an item, or of an element below it; None where it is not declared."""
        part = self.declarations[self.root].children.get(item)
        for step in steps:
            if part is None:
                return None
            part = self.declaration(part).children.get(step)
        return part

    def declaration(self, part: Part) -> Declaration:
        """The content of a part; an element that a DTD uses and does not declare may hold text."""
        return self.declarations.get(part.declared, _TEXT_ONLY)

    def has(self, path: Path, item: str) -> bool:
        """Whether the path is declared for items of this name."""
        if not path.steps:
            return self.child(item) is not None
        *above, last = path.steps
        if not last.startswith("@"):
            return self.child(item, *path.steps) is not None
        part = self.child(item, *above)
        return part is not None and last[1:] in self.declaration(part).attributes

    def declares(self, path: Path) -> bool:
        """Whether the path is declared for items of some name; `.` always is."""
        return not path.steps or any(self.has(path, item) for item in self.items)

    def paths(self, item: str) -> Iterator[Path]:
        """All paths of an item, in declared order; recursion into an element of the same name is not followed."""
        start = self.child(item)
        if start is not None:
            yield from self._below(start, (), frozenset())

    def _below(self, part: Part, steps: tuple[str, ...], above: frozenset[str]) -> Iterator[Path]:
        declaration = self.declaration(part)
        for attribute in declaration.attributes:
            yield Path((*steps, f"@{attribute}"))
        above = above | {part.declared}
        for child in declaration.children.values():
            yield Path((*steps, child.name))
            if child.declared not in above:
                yield from self._below(child, (*steps, child.name), above)

    def undeclared(self, tree: Element, known: Callable[[Path], bool] = lambda path: False) -> Path | None:
        """The first path of an item that is neither declared nor `known`, or None; an unknown item gives its name."""
        item = str(tree.name)
        pending: list[tuple[Element, Part | None, tuple[str, ...]]] = [(tree, self.child(item), ())]
        while pending:
            element, part, steps = pending.pop()
            if part is None:
                if steps and known(Path(steps)):
                    continue
                return Path(steps or (item,))
            declaration = self.declaration(part)
            for attribute in element.attributes:
                if str(attribute.name) not in declaration.attributes:
                    path = Path((*steps, f"@{attribute.name}"))
                    if not known(path):
                        return path
            for child in reversed(list(children_of(element))):
                name = str(child.name)
                pending.append((child, declaration.children.get(name), (*steps, name)))
        return None


def children_of(element: Element) -> Iterator[Element]:
    """The child elements, including those in regions and updates."""
    pending = list(reversed(element.children))
    while pending:
        child = pending.pop()
        if isinstance(child, Element):
            if child.name.uri == STREAM_NAMESPACE:
                pending.extend(reversed(child.children))
            else:
                yield child


# --- from a DTD ---------------------------------------------------------------------------------------------


def _elements(text: str) -> dict[str, Any]:
    """lxml's element declarations by name, from a text that was checked."""
    if len(text) > MAX_DTD:
        raise StreamError(f"a DTD may have at most {MAX_DTD:,} characters")
    for entity in _ENTITY.finditer(text):
        if not _HARMLESS_ENTITY.match(text, entity.start()):
            line = text.count("\n", 0, entity.start()) + 1
            raise StreamError(
                f"line {line} of the DTD declares an entity that is external or too complex",
                hint="nothing is fetched from outside: write the entity's text in place",
            )
    text = _TEXT_DECLARATION.sub("", text, count=1)  # it could declare an encoding that defeats the check
    try:
        dtd: Any = etree.DTD(StringIO(text))
    except etree.DTDParseError as error:
        last: Any = error.error_log.last_error
        detail = f", line {last.line}: {last.message}" if last is not None else ""
        raise StreamError(f"not a DTD{detail}") from None
    return {_full_name(each): each for each in dtd.iterelements()}


def _full_name(declared: Any) -> str:
    return f"{declared.prefix}:{declared.name}" if declared.prefix else str(declared.name)


def _models(elements: Mapping[str, Any]) -> dict[str, dict[str, Part]]:
    """The children that each element's content model names; those that ANY allows are not named."""
    # lxml gives the names in a content model without their prefixes
    full = {each.name: name for name, each in elements.items()} | {name: name for name in elements}
    models: dict[str, dict[str, Part]] = {}
    for name, each in elements.items():
        inside = {} if each.content is None else _occurrences(each.content)
        children = {full.get(child, child): occurrence for child, occurrence in inside.items()}
        models[name] = {child: Part(child, child, *occurrence) for child, occurrence in children.items()}
    return models


def _root(models: Mapping[str, Mapping[str, Part]], chosen: str | None) -> str:
    if chosen is not None:
        if chosen not in models:
            raise StreamError(f"the DTD does not declare the root '{chosen}'")
        return chosen
    inside = {child for name, model in models.items() for child in model if child != name}
    candidates = [name for name in models if name not in inside]
    match candidates:
        case [root]:
            return root
        case []:
            what = "every element stands in another" if models else "it declares no elements"
            raise StreamError(f"the DTD has no root: {what}")
        case _:
            shown = ", ".join(f"'{name}'" for name in candidates[:10])
            raise StreamError(f"the DTD has several possible roots: {shown}", hint="say which one is meant with 'root'")


_Occurrences: TypeAlias = dict[str, tuple[bool, bool]]
"""Each name in a content model with (optional, repeated)."""


def _occurrences(content: Any) -> _Occurrences:
    match content.type:
        case "element":
            found = {content.name: (False, False)}
        case "seq":
            found = _of_sequence(content)
        case "or":
            found = _of_choice(content)
        case _:  # text
            found = {}
    may_lack, may_repeat = content.occur in ("opt", "mult"), content.occur in ("plus", "mult")
    return {name: (optional or may_lack, repeated or may_repeat) for name, (optional, repeated) in found.items()}


def _of_sequence(content: Any) -> _Occurrences:
    found: _Occurrences = {}
    for branch in _branches(content):
        for name, (optional, repeated) in _occurrences(branch).items():
            found[name] = (optional and found[name][0], True) if name in found else (optional, repeated)
    return found


def _of_choice(content: Any) -> _Occurrences:
    found: _Occurrences = {}
    certain: Counter[str] = Counter()
    branches = _branches(content)
    for branch in branches:
        for name, (optional, repeated) in _occurrences(branch).items():
            found[name] = (True, repeated or (name in found and found[name][1]))
            certain[name] += not optional
    return {name: (certain[name] < len(branches), repeated) for name, (_, repeated) in found.items()}


def _branches(content: Any) -> list[Any]:
    """The branches of a sequence or choice, which libxml2 keeps as a chain to the right."""
    branches = [content.left]
    rest = content.right
    while rest is not None and rest.type == content.type and rest.occur == "once":
        branches.append(rest.left)
        rest = rest.right
    return branches if rest is None else [*branches, rest]


# --- learned from data, for streams that come without a DTD -----------------------------------------------------------

MAX_PATHS = 10_000
"""The most paths that are learned; further ones are left out, so that a stream cannot fill the memory."""


@dataclass(slots=True)
class _Seen:
    """The elements seen at one path; only `Learner` changes it."""

    elements: int = 0
    parents: int = 0
    """In how many parents it was seen."""
    repeated: bool = False
    text: bool = False
    attributes: dict[str, None] = field(default_factory=dict)
    children: dict[str, _Seen] = field(default_factory=dict)


class Learner:
    """Learns a schema from items, one by one; `schema()` gives the schema so far."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._items: dict[str, _Seen] = {}
        self._size = 0

    def add(self, item: Element) -> None:
        """Learn the paths of one more item."""
        seen = self._below(self._items, str(item.name))
        pending = [(item, seen)] if seen is not None else []
        while pending:
            element, seen = pending.pop()
            seen.elements += 1
            seen.text = seen.text or any(isinstance(child, Text) and child.value.strip() for child in element.children)
            for attribute in element.attributes:
                if str(attribute.name) not in seen.attributes and self._grow():
                    seen.attributes[str(attribute.name)] = None
            times: Counter[str] = Counter()
            for child in children_of(element):
                below = self._below(seen.children, str(child.name))
                if below is not None:
                    times[str(child.name)] += 1
                    pending.append((child, below))
            for name, number in times.items():
                seen.children[name].parents += 1
                seen.children[name].repeated |= number > 1

    def schema(self) -> Schema:
        """The schema of the items so far; the root may hold any number of each."""
        items = {name: Part(name, f"{self._root}/{name}", optional=True, repeated=True) for name in self._items}
        declarations = {self._root: Declaration(items)}
        pending = [(f"{self._root}/{name}", seen) for name, seen in self._items.items()]
        while pending:
            key, seen = pending.pop()
            parts = {
                name: Part(name, f"{key}/{name}", optional=below.parents < seen.elements, repeated=below.repeated)
                for name, below in seen.children.items()
            }
            declarations[key] = Declaration(parts, tuple(seen.attributes), seen.text)
            pending.extend((f"{key}/{name}", below) for name, below in seen.children.items())
        return Schema(self._root, declarations)

    def _below(self, known: dict[str, _Seen], name: str) -> _Seen | None:
        if name not in known and self._grow():
            known[name] = _Seen()
        return known.get(name)

    def _grow(self) -> bool:
        if self._size >= MAX_PATHS:
            return False
        self._size += 1
        return True
