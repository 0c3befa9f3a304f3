"""JSON items: one record per line, read into the same trees and elements as XML.

An object is an element and its keys are the children; a key with `@` in front is an attribute; an array is a repeated
child, and in an array an element with each `member` in it; `null` is an empty element; numbers keep their spelling.
Any key has a name, be it a name of XML or not (`json_names.py`).
Elements are marked with what they were (`stream/tree.py`), so that lookups and answers tell `"5"` from `5`, and `[]`,
`["a"]`, `"a"`, `null` and a missing key from one another (LAWS 7.1).
Some keys are reserved: `$at` is an item's time, `$mutable` stands around the mutable part of a value, and an object
whose only key is the name of a control element, as `$accent`, is that:

    {"$at": 12.5, "coord": {"ra": 130.50}, "en": [1.30, 2.1], "phc": {"$mutable": {"id": "1", "content": 7}}}
    {"$accent": {"where": "s = 2", "alter": {"path": "t", "by": "(. - 32) * 5 div 9"}}}
    {"$replace": {"target": "1", "at": 13, "content": 8}}
    {"$mutable": {"id": "end", "content": [{"en": 1.5}, {"en": 2}]}}
    {"$open": {"in": "end", "content": [{"en": 1.7}]}}

Content that is an array holds whole records, each an item (LAWS 7.4); what else stands in a region is a value, or the
keys and values of an object, and the region is marked with what it was.
Texts that come piece by piece are marked one by one, and the value around them follows from them (LAWS 7.6).
A control object is converted to the tree of the XML wire format and checked by `wire.py`, so both formats have one law.

Guarantees: `parse_line(to_json(e))` is equivalent to `e` for what JSON can express, and `to_json` refuses the rest
(mixed content, namespaces, comments, repeated children with others between); nesting is checked before any recursive
code reads the text; time is linear in bytes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Literal, NoReturn, TypeAlias

from anabranch.errors import BadItem, StreamError
from anabranch.stream.elements import LONGEST_RAW, Item, Place, StreamElement
from anabranch.stream.limits import LONGEST_NAME, Limits
from anabranch.stream.reading import wire
from anabranch.stream.reading.json_names import MEMBER, NOT_XML, key_of_step, step_of_key
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import STREAM_NAMESPACE, Child, Element, JsonMark, Name, ScalarKind, Text, string_value


class Digits(str):
    """A number, in the spelling it came in."""

    __slots__ = ()


Json: TypeAlias = bool | str | list["Json"] | dict[str, "Json"] | None
"""A parsed value; numbers are `Digits`."""

_WITH_CONTENT = ("$mutable", "$replace", "$before", "$after", "$upsert", "$open", "$append")
_CONTROLS = ("$accent", "$punctuation", "$close", "$start", "$end", *_WITH_CONTENT)
_RESERVED = (*_CONTROLS, "$at")
_PRIMITIVES = ("add", "drop", "alter")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)  # possessive, so that no string is scanned twice
_BARE = re.compile(r"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false)\Z")


def parse_line(raw: bytes, place: Place, limits: Limits, item_name: str) -> StreamElement:
    """Read one record; it is an item called `item_name` or a control element; BadItem with the reason otherwise."""
    try:
        return wire.element_of(_tree(raw, limits, item_name), place)
    except RecursionError:  # where the cap on depth exceeds Python's own
        raise BadItem("nested too deep") from None


def parse_value(raw: bytes, limits: Limits) -> Json:
    """Any value, as it is written; BadItem where it is not JSON."""
    if len(raw) > limits.item_bytes:
        raise BadItem(f"more than {limits.item_bytes:,} bytes")
    return _loads(_decoded(raw), limits)


def parse_records(data: bytes, limits: Limits, item_name: str) -> Iterator[Element]:
    """The records of a finite document, each as an element called `item_name`: one per line, or all in one array.

    The limits apply to all records together; BadItem names the error and its record.
    """
    if len(data) > limits.item_bytes:
        raise BadItem(f"more than {limits.item_bytes:,} bytes")
    text = _decoded(data)
    grower = _Grower(limits)
    for where, record in _array(text, limits) if text.lstrip().startswith("[") else _lines(text, limits):
        try:
            if not isinstance(record, dict):
                raise BadItem("a record must be a JSON object")
            found = grower.element(Name(item_name))
            grower.fill(found, record)
            _mark_record(found)
        except BadItem as error:
            raise BadItem(f"{where}: {error.message}") from None
        except RecursionError:
            raise BadItem(f"{where}: nested too deep") from None
        yield found


def _array(text: str, limits: Limits) -> Iterator[tuple[str, Json]]:
    records = _loads(text, limits)
    assert isinstance(records, list), "it begins with a bracket"
    yield from ((f"record {number}", record) for number, record in enumerate(records, 1))


def _lines(text: str, limits: Limits) -> Iterator[tuple[str, Json]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                record = _loads(line, limits)
            except BadItem as error:
                raise BadItem(f"line {number}: {error.message}") from None
            yield f"line {number}", record


def to_json(element: StreamElement) -> str:
    """The element as one line of JSON; an item's own name is not written; StreamError if JSON cannot say it."""
    match element:
        case Item(tree, _, at):
            time = [] if at is None else [("$at", f"{at:f}")]
            return write_object(time + _entries(tree))
        case _:
            return write_control(wire.tree_of(element))


def item_text(item: Child) -> str:
    """An item's text for a dead letter: in JSON where it came as a record of JSON, else in XML."""
    if isinstance(item, Element) and item.mark is not None and item.mark.record:
        with suppress(StreamError):  # an update may have put something into it that JSON cannot say
            return write_value(item)[:LONGEST_RAW]
    return serialize(item)[:LONGEST_RAW]


def write_control(control: Element) -> str:
    """A control element as one line of JSON."""
    return write_object([_control_entry(control)])


# --- reading ------------------------------------------------------------------------------------------------


def _tree(raw: bytes, limits: Limits, item_name: str) -> Element:
    record = parse_value(raw, limits)
    if not isinstance(record, dict):
        raise BadItem("a record must be a JSON object")
    grower = _Grower(limits)
    if (control := next((key for key in record if key in _CONTROLS), None)) is not None:
        return grower.control(record, control, item_name)
    item = grower.element(Name(item_name))
    if "$at" in record:
        item.set(Name("at", STREAM_NAMESPACE, "s"), _scalar("$at", record.pop("$at")))
    grower.fill(item, record)
    _mark_record(item)
    return item


def _mark_record(element: Element) -> None:
    """Say that an element is a whole record; one whose content is mutable is marked as such, too."""
    element.mark = replace(element.mark or JsonMark("object"), record=True)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadItem(f"not UTF-8: bad byte at byte {error.start}") from None


def _loads(text: str, limits: Limits) -> Json:
    if text.startswith("\ufeff"):
        raise BadItem("a byte order mark in front of a record")
    _check_nesting(text, 2 * limits.depth)  # an element takes at most an array and an object
    try:
        value: Json = json.loads(
            text, object_pairs_hook=_unique, parse_float=Digits, parse_int=Digits, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise BadItem(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}") from None
    return value


def _check_nesting(text: str, most: int) -> None:
    """Count the brackets before a recursive parser meets them."""
    if text.count("[") + text.count("{") <= most:
        return
    level = 0
    for token in _BRACKETS.finditer(text):
        match token[0]:
            case "[" | "{":
                level += 1
                if level > most:
                    raise BadItem("nested too deep")
            case "]" | "}":
                level -= 1


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise BadItem(f"key {_quoted(twice)} twice in one object")
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise BadItem(f"not JSON: '{text}' is not a number")


def _quoted(key: str) -> str:
    return "'" + NOT_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", key[:80]) + "'"


def _scalar(key: str, value: Json) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            if bad := NOT_XML.search(value):
                raise BadItem(f"character U+{ord(bad[0]):04X} in {_quoted(key)}")
            return value
        case _:
            raise BadItem(f"the value of {_quoted(key)} must not be an object or array")


class _Grower:
    """Creates the nodes of one record and counts them against the caps."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.nodes = 0
        self.depth = 0

    def count(self) -> None:
        self.nodes += 1
        if self.nodes > self.limits.nodes:
            raise BadItem(f"more than {self.limits.nodes:,} nodes")

    def element(self, name: Name) -> Element:
        self.count()
        return Element(name)

    def fill(self, element: Element, value: Json, key: str = "", *, listed: bool = False) -> None:
        """Add the attributes, children or text of a value to an element; `listed` in an array."""
        self.depth += 1
        if self.depth > self.limits.depth:
            raise BadItem("nested too deep")
        match value:
            case list():
                if not listed:
                    raise BadItem(f"an array in the place of the value of {_quoted(key)}")
                element.mark = _MARKS["array", True]
                for each in value:
                    self.add(element, MEMBER, each, key, listed=True)
            case dict():
                self.fill_from_object(element, value, listed=listed)
            case _:
                text = _scalar(key, value)
                element.mark = _MARKS[_kind(value), listed]
                if text:
                    self.count()
                    element.append(Text(text))
        self.depth -= 1

    def add(self, parent: Element, name: str, value: Json, key: str, *, listed: bool) -> Element:
        """Add the element of a value to the one that it is in."""
        child = self.element(Name(name))
        self.fill(child, value, key, listed=listed)
        parent.append(child)
        return child

    def fill_from_object(self, element: Element, record: dict[str, Json], *, listed: bool) -> None:
        if "$mutable" in record:
            element.append(self.control(record, "$mutable"))
            element.mark = _MARKS["mutable", listed]
            return
        empty: list[tuple[int, str]] = []
        attributes = [key for key in record if key.startswith("@")]
        if len(attributes) > self.limits.attributes:
            raise BadItem(f"more than {self.limits.attributes:,} attributes")
        for key in attributes:
            self.count()
            element.set(Name(_step(key)[1:]), _scalar(key, record[key]))
        for key, value in record.items():
            if key.startswith("@"):
                continue
            name = _step(key)
            if value == []:
                empty.append((len(element.children), name))
            for each in value if isinstance(value, list) else [value]:
                self.add(element, name, each, key, listed=isinstance(value, list))
        types = tuple((_step(key), kind) for key in attributes if (kind := _kind(record[key])) != "string")
        plain = not empty and not types
        element.mark = _MARKS["object", listed] if plain else JsonMark("object", listed, False, tuple(empty), types)

    def control(self, record: dict[str, Json], key: str, item_name: str | None = None) -> Element:
        """A control object as the tree of the XML wire format; `wire.py` checks its content.

        One that stands between items may hold some, which are called `item_name`.
        """
        body = record[key]
        if len(record) > 1:
            raise BadItem(f"{_quoted(key)} must be the only key of its object")
        if not isinstance(body, dict):
            raise BadItem(f"the value of {_quoted(key)} must be an object")
        element = self.element(Name(key[1:], STREAM_NAMESPACE, "s"))
        inner = _PRIMITIVES if key == "$accent" else ("content",) if key in _WITH_CONTENT else ()
        for name in [each for each in body if each not in inner]:
            self.count()
            given = _scalar(name, body[name])
            element.set(Name(name), _step(given) if (key, name) == ("$close", "name") else given)
        for name in [each for each in body if each in inner]:
            content = body[name]
            if name in _PRIMITIVES:
                element.append(self.control({f"${name}": content}, f"${name}"))
            elif isinstance(content, dict) and any(each.startswith("@") for each in content):
                raise BadItem(f"an attribute in the content of {_quoted(key)}")
            elif isinstance(content, list) and item_name is not None:
                self.fill_with_items(element, content, item_name)
            else:
                self.fill(element, content, "content")
        if key in ("$open", "$append"):
            _mark_pieces(element)
        return element

    def fill_with_items(self, element: Element, records: list[Json], item_name: str) -> None:
        """Add whole records to a region between items; one may be a value that is no object."""
        for record in records:
            _mark_record(self.add(element, item_name, record, "content", listed=False))


def _mark_pieces(token: Element) -> None:
    """Mark what a token brings, beside which more may come: its texts, and the value that it opens."""
    if token.mark is not None and token.mark.empty:
        raise BadItem(f"the array of {_quoted(token.mark.empty[0][1])} has no members: send it with its object")
    for each in [token, *token.children] if token.name.local == "open" else [token]:
        match each:
            case Element(mark=JsonMark("array")):
                raise BadItem("an array in an array is not opened: append it as a whole")
            case Element(mark=JsonMark("string" | "number" | "boolean" | "null" as kind) as mark):
                each.mark = replace(mark, kind="mutable")
                for text in each.children:
                    assert isinstance(text, Text), "it is a scalar"
                    text.kind = kind


JsonKind: TypeAlias = Literal["object", "array", "mutable"] | ScalarKind
_MARKS: dict[tuple[JsonKind, bool], JsonMark] = {
    (kind, listed): JsonMark(kind, listed)
    for kind in ("object", "array", "string", "number", "boolean", "null", "mutable")
    for listed in (False, True)
}
"""The usual marks, which elements share."""


def _kind(value: Json) -> JsonKind:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case Digits():
            return "number"
        case str():
            return "string"
        case _:
            return "object"


def _step(key: str) -> str:
    """The step of a key that an item may have."""
    if key in _RESERVED:
        raise BadItem(f"key {_quoted(key)} is a reserved key that cannot stand here")
    if bad := NOT_XML.search(key):
        raise BadItem(f"character U+{ord(bad[0]):04X} in key {_quoted(key)}")
    step = step_of_key(key)
    if len(step.removeprefix("@")) > LONGEST_NAME:
        raise BadItem(f"key {_quoted(key)} has a name of more than {LONGEST_NAME:,} characters")
    return step


# --- writing ------------------------------------------------------------------------------------------------


def write_object(entries: list[tuple[str, str]]) -> str:
    """An object of keys and values that are written already."""
    return "{" + ", ".join(f"{write_string(key)}: {value}" for key, value in entries) + "}"


def write_string(text: str) -> str:
    """A string with its quotes."""
    return json.dumps(text, ensure_ascii=False)


def write_untyped(text: str) -> str:
    """Text that has no type: without quotes where the text is as JSON spells a number or a truth value."""
    return text if _BARE.match(text) else write_string(text)


def write_value(element: Element) -> str:
    """The JSON that an element stands for; one that was none is written by its looks. StreamError if JSON cannot."""
    kind = "mutable" if element.mark is None else element.mark.kind
    if kind == "array":
        return f"[{', '.join(map(write_value, _elements(element)))}]"
    if kind not in ("object", "mutable"):
        return _scalar_text(kind, string_value(element))
    if kind != "object" and not element.attributes:
        if not element.children:
            return "null"
        if all(isinstance(child, Text) for child in element.children):
            return _texts(element)
        match element.children:
            case [Element() as only] if only.name.uri == STREAM_NAMESPACE:
                return write_object([_control_entry(only)])
    return write_object(_entries(element))


def _entries(element: Element) -> list[tuple[str, str]]:
    """The keys and values of an element that is an object: attributes, and children grouped by name."""
    mark = element.mark
    types = dict(mark.types) if mark else {}
    entries: list[tuple[str, str]] = []
    for each in element.attributes:
        kind = types.get(f"@{each.name}", "string" if mark else None)
        written = write_untyped(each.value) if kind is None else _scalar_text(kind, each.value)
        entries.append((_key(each.name, "@"), written))
    children = _elements(element)
    empty = [(number, _key(Name(name))) for number, name in (mark.empty if mark else ())]
    place = 0
    for key, group in groupby(children, lambda child: _key(child.name)):
        while empty and empty[0][0] <= place:
            entries.append((empty.pop(0)[1], "[]"))
        members = list(group)
        place += len(members)
        values = [write_value(child) for child in members]
        single = len(values) == 1 and not (members[0].mark is not None and members[0].mark.listed)
        entries.append((key, values[0] if single else f"[{', '.join(values)}]"))
    entries += [(key, "[]") for _, key in empty]
    if len({key for key, _ in entries}) < len(entries):
        raise _inexpressible(f"equal children of '{element.name}' with others between them")
    return entries


def _elements(element: Element) -> list[Element]:
    """The children of what is an object or an array, which has nothing beside them."""
    children = [child for child in element.children if isinstance(child, Element)]
    if len(children) < len(element.children):
        raise _inexpressible(f"text or comments beside the children or attributes of '{element.name}'")
    return children


def _texts(element: Element) -> str:
    """The text of an element that holds nothing else; it may be a piece of a value that has a type."""
    kinds = [child.kind for child in element.children if isinstance(child, Text) and child.kind is not None]
    return _scalar_text(kinds[0], string_value(element)) if len(kinds) == 1 else write_untyped(string_value(element))


def _scalar_text(kind: str, text: str) -> str:
    """A value of a kind, as JSON writes it."""
    return "null" if kind == "null" else write_string(text) if kind == "string" else text


def _key(name: Name, mark: str = "") -> str:
    """The key of a child, or with the mark `@` of an attribute."""
    key = None if name.uri or name.prefix else key_of_step(f"{mark}{name.local}")
    if key is None or key in _RESERVED or (key.startswith("@") and not mark):
        raise _inexpressible(f"the name '{name}'")
    return key


def _control_entry(control: Element) -> tuple[str, str]:
    """A control element as key and value; `at` is a number, all else a string."""
    local = control.name.local
    if local in ("replace", "before", "after", "upsert") and control.parent is not None:
        raise _inexpressible(f"'{control.name}' inside an item or other content")
    given = [
        (each.name.local, _key(Name(each.value)) if each.name.local == "name" else each.value)
        for each in control.attributes
    ]
    body = [(name, write_untyped(text) if name == "at" else write_string(text)) for name, text in given]
    if f"${local}" in _WITH_CONTENT:
        items = [child for child in control.children if isinstance(child, Element) and child.mark and child.mark.record]
        if items and len(items) == len(control.children):
            body.append(("content", f"[{', '.join(map(write_value, items))}]"))
        elif control.children or control.mark is not None:
            content = Element(Name("content"), mark=control.mark)
            content.children = control.children
            body.append(("content", write_value(content)))
    else:
        primitives = [child for child in control.children if isinstance(child, Element)]
        body += [_control_entry(child) for child in primitives]
    key = local if local in _PRIMITIVES else f"${local}"
    return key, write_object(body)


def _inexpressible(what: str) -> StreamError:
    return StreamError(f"JSON cannot say {what}", hint="write the stream as XML")
