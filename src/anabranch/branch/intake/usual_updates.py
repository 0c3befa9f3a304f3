"""Updates of a usual look, read by a pattern instead of a parser.

Most updates of a stream differ from one another in values only: what they are about, their time, a text.
A look is learned from an update with content that the parser has read: its bytes become a pattern with a group for
each value, and its tree a plan by which the next tree is built.
A pattern takes nothing that would have to be resolved, normalised or refused: no references, no white space other than
blanks, no character that XML does not have.
So what matches is read as the parser would read it, and everything else is left to the parser.

Most readers need no tree of an update: who routes it needs no content, and who keeps it makes nodes of its own from the
plan (`branch/document/usual_content.py`).
So the tree of the content is built when it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from anabranch.stream.elements import Place, Update
from anabranch.stream.tree import STREAM_NAMESPACE, Child, Element, Name, Text

_ATTRIBUTE = r'[A-Za-z_][\w.:-]*="[^"<&]*"'
_TAG = re.compile(rf"<(/?)([A-Za-z_][\w.:-]*)((?: {_ATTRIBUTE})*)(/?)>", re.ASCII)
_PARTS = re.compile(r' ([A-Za-z_][\w.:-]*)="([^"<&]*)"', re.ASCII)
_VALUE = r"([ !#-%'-;=?-~\u00a0-\ud7ff]*)"
_TEXT = r"([ -%'-;=?-~\u00a0-\ud7ff]+)"
_TIME = r"([0-9]{1,30}(?:\.[0-9]{1,30})?)"
_NAME = r"([!#-%'-;=?-~][ !#-%'-;=?-~\u00a0-\ud7ff]*)"
"""The name of a region: it begins with a character that is no white space."""
_KINDS: Mapping[str, Literal["replace", "before", "after", "upsert"]] = {
    "replace": "replace",
    "before": "before",
    "after": "after",
    "upsert": "upsert",
}
_LONGEST = 2_000
_MOST_LOOKS = 8
_MOST_TRIES = 64


@dataclass(frozen=True, slots=True)
class ElementPlan:
    """How an element is built: its attributes and children have the numbers of their groups."""

    name: Name
    namespaces: Mapping[str, str]
    attributes: tuple[tuple[Name, int], ...]
    children: tuple[NodePlan, ...]

    @property
    def height(self) -> int:
        """How deep elements stand in one another, this one counted."""
        return 1 + max((each.height for each in self.children if isinstance(each, ElementPlan)), default=0)


NodePlan: TypeAlias = "ElementPlan | int"
"""An element, or the number of a text's group."""


@dataclass(frozen=True, slots=True, eq=False)
class UpdateLook:
    """The look of an update: its pattern, and what its groups are."""

    pattern: re.Pattern[str]
    plan: ElementPlan
    kind: Literal["replace", "before", "after", "upsert"]
    target: int
    id: int | None
    at: int | None
    height: int
    """How deep elements stand in one another in its content, which has no regions."""

    def update(self, values: Sequence[str], place: Place) -> UsualUpdate:
        """The update with these values."""
        found = UsualUpdate.__new__(UsualUpdate)
        _set(found, "kind", self.kind)
        _set(found, "target", values[self.target])
        _set(found, "id", None if self.id is None else values[self.id])
        _set(found, "place", place)
        _set(found, "at", None if self.at is None else _time(values[self.at]))
        _set(found, "mark", None)
        _set(found, "look", self)
        _set(found, "values", values)
        return found

    def content(self, values: Sequence[str]) -> tuple[Child, ...]:
        """The content of an update, below an element that stands for the update."""
        tree = Element(self.plan.name, dict(self.plan.namespaces))
        for child in self.plan.children:
            tree.append(_built(child, values))
        return tuple(tree.children)


_set = object.__setattr__


class UsualUpdate(Update):
    """An update of a look, whose content is built when it is first asked for."""

    __slots__ = ("look", "values")

    look: UpdateLook
    values: Sequence[str]

    @property
    def content(self) -> tuple[Child, ...]:
        try:
            return _CONTENT.__get__(self)  # type: ignore[no-any-return]
        except AttributeError:
            _CONTENT.__set__(self, self.look.content(self.values))
            return _CONTENT.__get__(self)  # type: ignore[no-any-return]


_CONTENT: Any = Update.__dict__["content"]
"""The slot of an update's content."""


@lru_cache(maxsize=1_024)
def _time(text: str) -> Decimal:
    """The time that an update says; many say the same."""
    return Decimal(text)


def _built(plan: NodePlan, values: Sequence[str]) -> Child:
    if isinstance(plan, int):
        return Text(values[plan])
    element = Element(plan.name, dict(plan.namespaces) if plan.namespaces else None)
    for name, group in plan.attributes:
        element.set(name, values[group])
    for child in plan.children:
        element.append(_built(child, values))
    return element


class UsualUpdates:
    """The looks of updates that were read below one root element, those seen last in front."""

    def __init__(self) -> None:
        self._looks: list[UpdateLook] = []
        self._tries = 0
        self._root: bytes | None = None
        self._longest = 0
        """The most bytes that were accepted: how many there may be is for the parser to say."""

    @property
    def is_learned(self) -> bool:
        """Whether it knows a look."""
        return bool(self._looks)

    def read(self, raw: bytes, place: Place, root: bytes | None) -> UsualUpdate | None:
        """The update of a known look that some bytes are; None where the parser has to read them."""
        if not self._looks or len(raw) > self._longest or root != self._root:
            return None
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            return None
        for number, look in enumerate(self._looks):
            if (found := look.pattern.fullmatch(text)) is not None:
                if number:
                    self._looks.insert(0, self._looks.pop(number))
                return look.update(found.groups(), place)
        return None

    def learn(self, raw: bytes, update: Update, root: bytes | None) -> None:
        """Learn the look of an update that the parser has read and the stream accepts; `root` is the tag around it."""
        tree = update.content[0].parent if update.content else None
        if len(raw) > _LONGEST or not isinstance(tree, Element):
            return
        if root != self._root:
            self._looks, self._tries, self._root, self._longest = [], 0, root, 0
        self._longest = max(self._longest, len(raw))
        if self._tries >= _MOST_TRIES or self.read(raw, update.place, root) is not None:
            return
        self._tries += 1
        look = _Learning(raw.decode(), tree).look() if tree.name.local in _KINDS else None
        if look is not None:
            self._looks = [look, *self._looks][:_MOST_LOOKS]


class _Learning:
    """Makes a look of the text of an update."""

    def __init__(self, text: str, tree: Element) -> None:
        self._text = text
        self._tree = tree
        self._pattern: list[str] = []
        self._groups = 0
        self._named: dict[str, int] = {}
        """The groups of the update's own attributes."""

    def look(self) -> UpdateLook | None:
        at, opened = 0, [0]
        trees: list[tuple[Element, list[NodePlan]]] = []
        plan: ElementPlan | None = None
        attributes: list[tuple[tuple[Name, int], ...]] = []
        while at < len(self._text):
            tag = _TAG.match(self._text, at)
            if tag is None:
                end = self._text.find("<", at)
                if end <= at or not trees or not re.fullmatch(_TEXT, self._text[at:end]):
                    return None
                self._pattern.append(_TEXT)
                trees[-1][1].append(self._groups)
                self._groups += 1
                at, opened[-1] = end, opened[-1] + 1
                continue
            at = tag.end()
            closes, name, given, is_empty = tag.groups()
            if not closes:
                tree = self._child(trees, opened[-1])
                if tree is None or str(tree.name) != name:
                    return None
                self._pattern.append(f"<{re.escape(name)}")
                found = self._attributes(tree, given, is_top=not trees)
                if found is None:
                    return None
                self._pattern.append(f"{is_empty}>")
                opened[-1] += 1
                trees.append((tree, []))
                attributes.append(found)
                opened.append(0)
            else:
                self._pattern.append(re.escape(f"</{name}>"))
            if closes or is_empty:
                opened.pop()
                tree, children = trees.pop()
                if len(children) != len(tree.children):
                    return None
                plan = ElementPlan(tree.name, tree.namespaces, attributes.pop(), tuple(children))
                if trees:
                    trees[-1][1].append(plan)
        return None if plan is None or trees else self._made(plan)

    def _made(self, plan: ElementPlan) -> UpdateLook | None:
        kind = _KINDS[plan.name.local]
        target = self._named.get("id" if kind == "upsert" else "target")
        own = None if kind == "upsert" else self._named.get("id")
        if target is None:
            return None
        pattern = re.compile("".join(self._pattern))
        return UpdateLook(pattern, plan, kind, target, own, self._named.get("at"), plan.height - 1)

    def _child(self, trees: list[tuple[Element, list[NodePlan]]], number: int) -> Element | None:
        """The element that the next tag begins: content that is a region or an update itself has no usual look."""
        if not trees:
            return self._tree if number == 0 else None
        children = trees[-1][0].children
        child = children[number] if number < len(children) else None
        return child if isinstance(child, Element) and child.name.uri != STREAM_NAMESPACE else None

    def _attributes(self, tree: Element, given: str, *, is_top: bool) -> tuple[tuple[Name, int], ...] | None:
        found: list[tuple[Name, int]] = []
        known = {str(each.name): each.name for each in tree.attributes}
        for name, value in _PARTS.findall(given):
            if name == "xmlns" or name.startswith("xmlns:"):
                self._pattern.append(f' {name}="{re.escape(value)}"')
                continue
            if known[name].uri == STREAM_NAMESPACE:
                return None
            pattern = _VALUE
            if is_top:
                pattern = _TIME if name == "at" else _NAME
                self._named[name] = self._groups
            self._pattern.append(f' {name}="{pattern}"')
            found.append((known[name], self._groups))
            self._groups += 1
        return tuple(found)
