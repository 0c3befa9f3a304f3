"""The wire format in XML: trees become stream elements, and stream elements become trees again.

Control elements stand in the namespace `urn:anabranch:stream`, under any prefix; every other tree is an item.
All checking of control elements is here and nowhere else: JSON builds the same trees and passes them to this module.
A malformed control element is a bad item, never an ignored one, because a stream that lost an accent or an update
would lead to wrong answers; the readable paths of a malformed accent are in doubt (`BadAccent`).

Where regions and updates may stand: between items, inside items, and inside one another (history paper, section 2).
Accents and punctuations are about the items that follow, so they stand between items only, and so do upserts and the
tokens of what comes piece by piece (LAWS 5.11):

    <s:start kind="mutable" id="1"/> <s:open in="1"><stock/></s:open> <s:append in="1">ACME</s:append>
    <s:close in="1" name="stock"/> <s:end id="1"/> <s:start kind="replace" target="1" id="2"/>

Guarantees: `element_of(tree_of(e), e.place)` is equivalent to `e`; both functions are linear in the tree.
"""

from __future__ import annotations

import re
from contextlib import suppress
from decimal import Decimal

from anabranch.errors import BadItem, StreamError
from anabranch.logic import EVERYTHING
from anabranch.stream import affine, description
from anabranch.stream.description import Description
from anabranch.stream.elements import (
    Accent,
    Add,
    Alter,
    Doubt,
    Drop,
    Item,
    Place,
    Punctuation,
    Region,
    StreamElement,
    StreamToken,
    Update,
)
from anabranch.stream.path import Path
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import (
    STREAM_NAMESPACE,
    Child,
    Comment,
    Element,
    Instruction,
    JsonMark,
    Name,
    Text,
    copy,
    descendants,
    namespaces_in_scope,
)

_ATTRIBUTES = {
    "accent": ("where", "at"),
    "add": ("path", "type"),
    "drop": ("path",),
    "alter": ("path", "by"),
    "punctuation": ("where", "at"),
    "mutable": ("id", "at"),
    "replace": ("target", "id", "at"),
    "before": ("target", "id", "at"),
    "after": ("target", "id", "at"),
    "upsert": ("id", "at"),
    "open": ("in", "at"),
    "append": ("in", "at"),
    "close": ("in", "name", "at"),
    "start": ("kind", "in", "target", "id", "at"),
    "end": ("id", "at"),
}
_REQUIRED = {
    "add": ("path",),
    "drop": ("path",),
    "alter": ("path", "by"),
    "mutable": ("id",),
    "replace": ("target",),
    "before": ("target",),
    "after": ("target",),
    "upsert": ("id",),
    "start": ("kind", "id"),
    "end": ("id",),
}
_NOT_EMPTY = ("id", "target", "type", "in", "name")
_INSIDE_ITEMS = ("mutable", "replace", "before", "after")
_AT = Name("at", STREAM_NAMESPACE)
_CAME = "anabranch-came"
"""The prefix for an item's time of arrival; no item uses it, so that it hides none of theirs."""
_OPENING = re.compile(r"<[^\s/>]+")
_TIME = re.compile(r"\s*([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})\s*\Z")


class BadAccent(BadItem):
    """An accent that cannot be read; the paths that it would have altered or dropped are in doubt (LAWS 4.5)."""

    def __init__(self, cause: BadItem, doubts: tuple[Doubt, ...]) -> None:
        super().__init__(cause.message, hint=cause.hint)
        self.doubts = doubts


def refused(accent: Accent, reason: str) -> BadAccent:
    """The error for a readable accent that is bad."""
    evolution = accent.evolution
    return BadAccent(BadItem(reason), () if isinstance(evolution, Add) else (Doubt(evolution.path, accent.where),))


def element_of(tree: Element, place: Place) -> StreamElement:
    """Parse one child of the root; it takes the tree over, and removes an item's `s:at`; BadItem if malformed."""
    try:
        return _element(tree, place)
    except BadItem as error:
        if doubts := _doubts(tree):
            raise BadAccent(error, doubts) from None
        raise


def _element(tree: Element, place: Place) -> StreamElement:
    if tree.name.uri != STREAM_NAMESPACE:
        at = _item_time(tree)
        _check_inside(tree)
        return Item(tree, place, at)
    given = _attributes(tree)
    at = _time(given["at"]) if "at" in given else None
    match tree.name.local:
        case "accent":
            where = _description(given.get("where", ""))
            return Accent(where, _evolution(tree, where), place, at)
        case "punctuation":
            if not given:
                raise BadItem(f"'{tree.name}' needs 'where' or 'at'")
            if _elements(tree):
                raise BadItem(f"'{tree.name}' must be empty")
            return Punctuation(_description(given["where"]) if "where" in given else None, place, at)
        case "mutable":
            _check_inside(tree)
            return Region(given["id"], tuple(tree.children), place, at, tree.mark)
        case "replace" | "before" | "after" as kind:
            _check_inside(tree)
            return Update(kind, given["target"], given.get("id"), tuple(tree.children), place, at, tree.mark)
        case "upsert":
            _check_inside(tree)
            return Update("upsert", given["id"], None, tuple(tree.children), place, at, tree.mark)
        case "open" | "append" | "close" | "start" | "end":
            return _token(tree, given, place, at)
        case _:
            raise BadItem(f"'{tree.name}' cannot stand between items", hint="add, drop and alter belong in an accent")


def tree_of(element: StreamElement) -> Element:
    """The tree that `element_of` would read as this element; content is copied where it gets a new parent."""
    match element:
        case Item(tree, _, None):
            return tree
        case Item(tree, _, at):
            return _stamped(tree, f"{at:f}")
        case Accent(where, evolution, _, at):
            text = None if where == EVERYTHING else str(where)
            accent = _control("accent", where=text, at=_written(at))
            match evolution:
                case Add(path, type_):
                    accent.append(_control("add", path=str(path), type=type_))
                case Drop(path):
                    accent.append(_control("drop", path=str(path)))
                case Alter(path, by):
                    accent.append(_control("alter", path=str(path), by=str(by)))
            return accent
        case Punctuation(closed, _, at):
            return _control("punctuation", where=None if closed is None else str(closed), at=_written(at))
        case Region(id_, content, _, at, mark):
            return _filled(_control("mutable", id=id_, at=_written(at)), content, mark)
        case Update("upsert", target, _, content, _, at, mark):
            return _filled(_control("upsert", id=target, at=_written(at)), content, mark)
        case Update(kind, target, id_, content, _, at, mark):
            return _filled(_control(kind, target=target, id=id_, at=_written(at)), content, mark)
        case StreamToken("start", region, content, _, at, _, starts, target):
            outer = {"in" if starts == "mutable" else "target": target}
            return _control("start", kind=starts, **outer, id=region, at=_written(at))
        case StreamToken("end", region, content, _, at):
            return _control("end", id=region, at=_written(at))
        case StreamToken(kind, region, content, _, at, name):
            return _filled(_control(kind, **{"in": region}, name=name, at=_written(at)), content)


def write(element: StreamElement) -> str:
    """The element's text on the wire."""
    return serialize(tree_of(element))


def write_came(item: Item, at: Decimal) -> str:
    """An item with its time, or its time of arrival, which the reader removes again."""
    text = serialize(item.tree)
    opening = _OPENING.match(text)
    assert opening is not None, "an item is an element"
    front = opening.group()
    return f'{front} xmlns:{_CAME}="{STREAM_NAMESPACE}" {_CAME}:at="{_written(at)}"{text[len(front) :]}'


def write_doubt(doubt: Doubt, at: Decimal | None = None) -> str:
    """The text of an unreadable accent that leaves exactly this path in doubt, for these items."""
    return serialize(doubt_tree(doubt, at))


def doubt_tree(doubt: Doubt, at: Decimal | None = None) -> Element:
    """An unreadable accent that leaves exactly this in doubt."""
    accent = _control("accent", where=str(doubt.where), at=_written(at))
    accent.append(_control("alter", path=str(doubt.path), by="?"))
    return accent


# --- reading ------------------------------------------------------------------------------------------------


def _item_time(tree: Element) -> Decimal | None:
    text = tree.get(_AT.local, _AT.uri)
    if text is None:
        return None
    tree.attributes = [each for each in tree.attributes if each.name != _AT]
    return _time(text)


def _time(text: str) -> Decimal:
    found = _TIME.match(text)
    if not found:
        raise BadItem(f"'{_short(text)}' is not a time", hint="a time is a decimal number of seconds, 0 or more")
    return Decimal(found[1])


def _attributes(control: Element) -> dict[str, str]:
    """The attributes of a control element: all known, required ones present, names not empty."""
    known = _ATTRIBUTES.get(control.name.local)
    if known is None:
        raise BadItem(f"unknown control element '{control.name}'")
    given: dict[str, str] = {}
    for attribute in control.attributes:
        if attribute.name.uri or attribute.name.local not in known:
            raise BadItem(f"'{control.name}' has no attribute '{_short(str(attribute.name))}'")
        given[attribute.name.local] = attribute.value
    for name in known:
        if name in _REQUIRED.get(control.name.local, ()) and name not in given:
            raise BadItem(f"'{control.name}' needs '{name}'")
        if name in _NOT_EMPTY and not given.get(name, "-").strip():
            raise BadItem(f"'{name}' of '{control.name}' is empty")
    return given


def _token(token: Element, given: dict[str, str], place: Place, at: Decimal | None) -> StreamToken:
    """A token; what it holds is nodes and mutable regions, since an update acts elsewhere and has tokens of its own."""
    local = token.name.local
    if local in ("open", "append"):
        _check_inside(token, allowed=("mutable",))
        content = tuple(token.children) if local == "append" else (_opened(token),)
        return StreamToken("append" if local == "append" else "open", given.get("in"), content, place, at)
    if _elements(token):
        raise BadItem(f"'{token.name}' must be empty")
    if local == "close":
        return StreamToken("close", given.get("in"), (), place, at, given.get("name"))
    if local == "end":
        return StreamToken("end", given["id"], (), place, at)
    match given["kind"]:
        case "mutable":
            if "target" in given:
                raise BadItem(f"'{token.name}' of a mutable region has no 'target', but may have 'in'")
            return StreamToken("start", given["id"], (), place, at, None, "mutable", given.get("in"))
        case "replace" | "before" | "after" as kind:
            if "in" in given or "target" not in given:
                raise BadItem(f"'{token.name}' of an update needs 'target', and has no 'in'")
            return StreamToken("start", given["id"], (), place, at, None, kind, given["target"])
        case other:
            raise BadItem(f"'{_short(other)}' is none of mutable, replace, before and after")


def _opened(token: Element) -> Element:
    """The element that a token opens."""
    found = _elements(token)
    if len(found) != 1 or found[0].name.uri == STREAM_NAMESPACE:
        raise BadItem(f"'{token.name}' needs exactly one element, which it opens")
    return found[0]


def _description(text: str) -> Description:
    try:
        return description.parse(text)
    except StreamError as error:
        raise BadItem(f"bad 'where': {_short(error.message)}", hint=error.hint) from None


def _evolution(accent: Element, where: Description) -> Add | Drop | Alter:
    primitives = _elements(accent)
    if len(primitives) != 1:
        raise BadItem(f"'{accent.name}' needs exactly one of add, drop and alter, this has {len(primitives)}")
    primitive = primitives[0]
    if primitive.name.uri != STREAM_NAMESPACE or primitive.name.local not in ("add", "drop", "alter"):
        raise BadItem(f"'{_short(str(primitive.name))}' is none of add, drop and alter")
    if _elements(primitive):
        raise BadItem(f"'{primitive.name}' must be empty")
    given = _attributes(primitive)
    try:
        path = Path.parse(given["path"], itself=True)
        by = affine.parse(given["by"]) if "by" in given else None
    except StreamError as error:
        raise BadItem(f"bad '{primitive.name}': {_short(error.message)}", hint=error.hint) from None
    # accents paper, section 3: a description of the evolving path itself would be ambiguous
    if any(named.steps[: len(path.steps)] == path.steps for named in description.paths(where)):
        raise BadItem(f"the description names '{path}', the path that evolves")
    if by is not None:
        return Alter(path, by)
    return Drop(path) if primitive.name.local == "drop" else Add(path, given.get("type"))


def _doubts(tree: Element) -> tuple[Doubt, ...]:
    """The doubts of an unreadable tree, if it seems to be an accent: the paths it would have altered or dropped."""
    if tree.name != Name("accent", STREAM_NAMESPACE):
        return ()
    try:
        where = description.parse(tree.get("where") or "")
    except StreamError:
        where = EVERYTHING
    found: list[Doubt] = []
    for child in tree.children:
        if isinstance(child, Element) and child.name.uri == STREAM_NAMESPACE and child.name.local in ("alter", "drop"):
            with suppress(StreamError):
                found.append(Doubt(Path.parse(child.get("path") or "", itself=True), where))
    return tuple(found)


def _elements(control: Element) -> list[Element]:
    """The child elements of a control element that otherwise has only white space and comments."""
    found: list[Element] = []
    for child in control.children:
        match child:
            case Element():
                found.append(child)
            case Text() if child.value.strip():
                raise BadItem(f"'{control.name}' must not hold text")
            case Text() | Comment() | Instruction():
                pass
    return found


def _check_inside(tree: Element, allowed: tuple[str, ...] = _INSIDE_ITEMS) -> None:
    """Check the content of an item, a region or an update: ordinary elements, and further regions and updates."""
    if tree.name.uri != STREAM_NAMESPACE:
        _check_plain(tree)
    for node in descendants(tree):
        if not isinstance(node, Element):
            continue
        if node.name.uri != STREAM_NAMESPACE:
            _check_plain(node)
            continue
        given = _attributes(node)
        if node.name.local not in allowed:
            raise BadItem(f"'{node.name}' cannot stand inside '{_short(str(tree.name))}'")
        if "at" in given:
            _time(given["at"])


def _check_plain(element: Element) -> None:
    for attribute in element.attributes:
        if attribute.name.uri == STREAM_NAMESPACE:
            raise BadItem(
                f"'{_short(str(element.name))}' has no attribute '{_short(str(attribute.name))}'",
                hint="only an item itself has a time",
            )


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."


# --- writing ------------------------------------------------------------------------------------------------


def _control(local: str, **attributes: str | None) -> Element:
    element = Element(Name(local, STREAM_NAMESPACE, "s"), {"s": STREAM_NAMESPACE})
    for name, value in attributes.items():
        if value is not None:
            element.set(Name(name), value)
    return element


def _filled(element: Element, content: tuple[Child, ...], mark: JsonMark | None = None) -> Element:
    element.mark = mark
    for child in content:
        element.append(copy(child))
    return element


def _stamped(tree: Element, at: str) -> Element:
    """A copy of an item with its time; the caller ensures that the prefix is bound correctly."""
    fresh = Element(tree.name, namespaces_in_scope(tree))
    for attribute in tree.attributes:
        fresh.set(attribute.name, attribute.value)
    fresh.set(Name(_AT.local, _AT.uri, "s"), at)
    return _filled(fresh, tuple(tree.children), tree.mark)


def _written(at: Decimal | None) -> str | None:
    return None if at is None else f"{at:f}"
