"""Values as plain data that can be saved as JSON and read back: lists, whose first element names the kind of value.

Nothing that a query can ask of a value is lost: a number that a change of unit has made, or that was rounded, keeps
its exact value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from anabranch.stream.affine import Affine
from anabranch.stream.tree import (
    Attribute,
    Comment,
    Document,
    Element,
    Instruction,
    JsonMark,
    Measure,
    MessageNotes,
    Name,
    Text,
)
from anabranch.values.atomic import NULL, Atomic, JsonNull, JsonNumber, Measured, Rounded, Untyped, WrittenDouble
from anabranch.values.function_items import FunctionItem
from anabranch.values.numbers import read_fraction, write_fraction
from anabranch.values.objects.json_text import json_text
from anabranch.values.objects.maps import JsonArray, JsonObject
from anabranch.values.sequences import Value
from anabranch.values.times import TIMES, TimeValue, read_time

_TYPES: Mapping[str, type[TimeValue]] = {each.name: each for each in TIMES}


def write_atom(atom: Atomic) -> list[str]:
    """An atomic value as plain data."""
    match atom:
        case bool():
            return ["boolean", str(int(atom))]
        case Measured():
            return ["measured", str(atom), *write_measure(atom.measure)]
        case JsonNumber():
            return ["json number", str(atom)]
        case Untyped():
            return ["untyped", str(atom)]
        case JsonNull():
            return ["null", ""]
        case str():
            return ["string", atom]
        case int():
            return ["integer", f"{atom:x}"]
        case Decimal():
            return ["decimal", str(atom)]
        case Rounded():
            return ["rounded", repr(float(atom)), write_fraction(atom.exact)]
        case WrittenDouble():
            return ["written", repr(float(atom)), str(atom.exact)]
        case float():
            return ["double", repr(float(atom))]
        case _:
            return [atom.name, str(atom)]


def read_atom(data: Sequence[str]) -> Atomic:
    """What `write_atom` has written."""
    kind, text, *more = data
    match kind:
        case "boolean":
            return text == "1"
        case "measured":
            return Measured(text, read_measure(more))
        case "json number":
            return JsonNumber(text)
        case "null":
            return NULL
        case "untyped":
            return Untyped(text)
        case "string":
            return text
        case "integer":
            return int(text, 16)
        case "decimal":
            return Decimal(text)
        case "rounded":
            return Rounded(float(text), read_fraction(more[0]))
        case "written":
            return WrittenDouble(more[0])
        case "double":
            return float(text)
        case _:
            return read_time(_TYPES[kind], text)


def write_value(value: Value) -> list[Any]:
    """An atomic value, or a node that is the root of its own tree, as plain data."""
    match value:
        case Element():
            attributes = [write_value(each) for each in value.attributes]
            children = [write_value(each) for each in value.children]
            more: list[Any] = [] if value.mark is None else [write_mark(value.mark)]
            if value.message is not None:
                more = [*(more or [None]), [value.message.key, value.message.headers]]
            return ["element", _name(value.name), value.namespaces, attributes, children, *more]
        case Document():
            return ["document", [write_value(each) for each in value.children]]
        case Attribute():
            return ["attribute", _name(value.name), value.value, _measured(value)]
        case Text():
            return ["text", value.value, _measured(value)]
        case Comment():
            return ["comment", value.value]
        case Instruction():
            return ["instruction", value.target, value.value]
        case JsonObject():
            entries = [[key, [write_value(each) for each in several]] for key, several in value.entries.items()]
            return ["object", entries, json_text(value)]
        case JsonArray():
            return ["array", [[write_value(each) for each in several] for several in value.members], value.text]
        case FunctionItem():
            raise AssertionError("no state holds functions")
        case _:
            return write_atom(value)


def read_value(data: Sequence[Any]) -> Value:
    """What `write_value` has written."""
    match data:
        case ["element", name, namespaces, attributes, children, *more]:
            mark, message = (*more, None, None)[:2]
            element = Element(Name(*name), dict(namespaces), None if mark is None else read_mark(mark))
            if message is not None:
                key, headers = message
                element.message = MessageNotes(key, tuple((own, text) for own, text in headers))
            for _, own, text, measure in attributes:
                element.set(Name(*own), text, None if measure is None else read_measure(measure))
            _fill(element, children)
            return element
        case ["document", children]:
            document = Document()
            _fill(document, children)
            return document
        case ["attribute", name, text, measure]:
            return Attribute(Name(*name), text, None if measure is None else read_measure(measure))
        case ["text", text, measure]:
            return Text(text, None if measure is None else read_measure(measure))
        case ["comment", text]:
            return Comment(text)
        case ["instruction", target, text]:
            return Instruction(target, text)
        case ["object", entries, text]:
            return JsonObject({key: [read_value(each) for each in several] for key, several in entries}, text)
        case ["array", members, text]:
            return JsonArray([[read_value(each) for each in several] for several in members], text)
        case _:
            return read_atom(data)


def _fill(parent: Element | Document, children: Sequence[Any]) -> None:
    for each in children:
        child = read_value(each)
        assert isinstance(child, Element | Text | Comment | Instruction)
        parent.append(child)


def _name(name: Name) -> list[str]:
    return [name.local, name.uri, name.prefix]


def _measured(node: Attribute | Text) -> list[str] | None:
    return None if node.measure is None else write_measure(node.measure)


def write_mark(mark: JsonMark) -> list[Any]:
    """What an element was in JSON, as plain data."""
    return [mark.kind, mark.listed, mark.record, mark.empty, mark.types]


def read_mark(data: Sequence[Any]) -> JsonMark:
    """What `write_mark` has written."""
    kind, listed, record, *pairs = data
    empty, types = (tuple((first, second) for first, second in each) for each in pairs)
    return JsonMark(kind, listed, record, empty, types)


def write_measure(measure: Measure) -> list[str]:
    """An exact number behind a text, as plain data."""
    by = measure.by
    exact = (write_fraction(each) for each in (by.a, by.b, measure.number))
    return [measure.raw, *exact, "computed" if measure.computed else ""]


def read_measure(data: Sequence[str]) -> Measure:
    """What `write_measure` has written."""
    raw, a, b, number, computed = data
    by = Affine(read_fraction(a), read_fraction(b))
    return Measure(raw, by, Fraction(read_fraction(number)), bool(computed))
