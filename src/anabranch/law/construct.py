"""Element constructors: nodes are copied in, values become text (XQuery 3.1, section 3.9.1).

A text or attribute that one value makes up alone keeps the measure of that value (`stream/tree.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import TypeAlias

from anabranch.errors import DynamicError
from anabranch.language import ast
from anabranch.language.parsing.cursor import NCNAME
from anabranch.law.steps import made_here
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import (
    LETTERS,
    STREAM_NAMESPACE,
    XML_NAMESPACE,
    Attribute,
    Child,
    Comment,
    Document,
    Element,
    Instruction,
    Measure,
    Name,
    Text,
    copy,
)
from anabranch.values.atomic import Atomic, measure_of, spell
from anabranch.values.numbers import shown
from anabranch.values.objects.json_text import json_lines, refuse_json
from anabranch.values.objects.maps import JsonArray, JsonObject
from anabranch.values.sequences import NODES, Value, Values, atomize, operands

_QNAME = re.compile(rf"{NCNAME}(?::{NCNAME})?")
Namespaces: TypeAlias = Mapping[str, str]
Evaluate: TypeAlias = Callable[[ast.Expression, Namespaces], Values]


def construct(
    constructor: ast.ElementConstructor,
    namespaces: Namespaces,
    evaluate: Evaluate,
    count: Callable[[int], None] | None = None,
) -> Element:
    """The element that a constructor makes; `evaluate` gives the values of what stands in braces.

    `count` receives the steps that copying them takes, except for nodes that were made in those braces.
    """
    declared = dict(constructor.namespaces)
    scope = {**namespaces, **declared}
    name = _name(constructor.name, scope, is_attribute=False)
    attributes = [
        (_name(each.name, scope, is_attribute=True), _attribute_value(each, scope, evaluate, count))
        for each in constructor.attributes
    ]
    for used in (name, *(each for each, _ in attributes)):
        if used.prefix != "xml" and (used.prefix or used.uri):
            declared[used.prefix] = used.uri
    fresh = Element(name, declared)
    for attribute, (value, measure) in attributes:
        _set(fresh, attribute, value, measure)
    for part in constructor.content:
        match part:
            case ast.Characters(value):
                _append(fresh, Text(value))
            case ast.CommentConstructor(value):
                _append(fresh, Comment(value))
            case ast.ElementConstructor():
                _append(fresh, construct(part, scope, evaluate, count))
            case ast.Enclosed(expression):
                append_values(fresh, evaluate(expression, scope), None if made_here(expression) else count)
    return fresh


def computed(
    kind: str, arguments: list[Values], namespaces: Namespaces, count: Callable[[int], None]
) -> Document | Attribute | Child:
    """The node that a computed constructor makes; the first of two arguments is its name."""
    content = arguments[-1]
    name = "" if len(arguments) == 1 else _given_name(arguments[0], kind)
    match kind:
        case "element":
            named = _resolved(name, namespaces, is_attribute=False)
            fresh = Element(named, {named.prefix: named.uri} if named.prefix or named.uri else None)
            append_values(fresh, content, count)
            return fresh
        case "document":
            inside = Element(Name("document"))
            append_values(inside, content, count)
            if inside.attributes:
                raise DynamicError("a document has no attributes", code="XPTY0004")
            document = Document()
            for child in inside.children:
                document.append(child)
            return document
    text, measure = _written(operands(content))
    count(len(text) >> LETTERS)
    match kind:
        case "attribute":
            if name == "xmlns" or name.startswith("xmlns:"):
                raise DynamicError("a namespace is no attribute", code="XQDY0044")
            return Attribute(_resolved(name, namespaces, is_attribute=True), text, measure)
        case "comment":
            if "--" in text or text.endswith("-"):
                raise DynamicError("'--' cannot stand in a comment", code="XQDY0072")
            return Comment(text)
        case "processing-instruction":
            code = "XQDY0026" if "?>" in text else "XQDY0041" if ":" in name else "XQDY0064"
            if code != "XQDY0064" or name.lower() == "xml":
                raise DynamicError("that is no processing instruction", code=code)
            return Instruction(name, text.lstrip(" \t\r\n"))
        case _:
            return Text(text, measure)


def _given_name(values: Values, kind: str) -> str:
    """The name that a computed constructor is given."""
    match atomize(values):
        case [str() as text] if _QNAME.fullmatch(text.strip(" \t\r\n")):
            return text.strip(" \t\r\n")
        case [str() as text]:
            code = "XQDY0041" if kind == "processing-instruction" else "XQDY0074"
            raise DynamicError(f"'{shown(text)}' is no name", code=code)
        case _:
            raise DynamicError(f"the name of an {kind} is one text", code="XPTY0004")


def _resolved(name: str, namespaces: Namespaces, is_attribute: bool) -> Name:
    """A computed name; a control element is none that a query may make (`language/checks/refusals.py`)."""
    prefix = name.rpartition(":")[0]
    if prefix and prefix != "xml" and prefix not in namespaces:
        raise DynamicError(f"prefix '{prefix}' is not declared", code="XQDY0074")
    found = _name(name, namespaces, is_attribute)
    if found.uri == STREAM_NAMESPACE:
        raise DynamicError("a control element cannot stand in an answer", code="XQDY0096")
    return found


def _name(text: str, scope: Namespaces, is_attribute: bool) -> Name:
    prefix, _, local = text.rpartition(":")
    if prefix == "xml":
        return Name(local, XML_NAMESPACE, prefix)
    if is_attribute and not prefix:
        return Name(local)
    return Name(local, scope.get(prefix, ""), prefix)


def _attribute_value(
    attribute: ast.AttributeConstructor, scope: Namespaces, evaluate: Evaluate, count: Callable[[int], None] | None
) -> tuple[str, Measure | None]:
    parts: list[tuple[str, Measure | None]] = []
    for part in attribute.value:
        match part:
            case ast.Characters(value):
                parts.append((value, None))
            case ast.Enclosed(expression):
                parts.append(_written(operands(evaluate(expression, scope))))
    written = parts[0] if len(parts) == 1 else ("".join([text for text, _ in parts]), None)
    if count is not None:
        count(len(written[0]) >> LETTERS)
    return written


def _written(values: list[Atomic]) -> tuple[str, Measure | None]:
    """Values that stand side by side as one text, with spaces between."""
    return " ".join(map(spell, values)), measure_of(values[0]) if len(values) == 1 else None


def append_values(element: Element, values: Values, count: Callable[[int], None] | None = None) -> None:
    """Add the content of one pair of braces to an element; `count` receives the steps of copying it."""
    for value in _spaced(values):
        match value:
            case Attribute():
                if element.children:
                    raise DynamicError(f"attribute '{value.name}' comes behind other content", code="XQTY0024")
                name = _with_free_prefix(value.name, element.namespaces)
                _set(element, name, value.value, value.measure)
                if name.prefix not in ("", "xml"):
                    element.namespaces.setdefault(name.prefix, name.uri)
            case Document():
                for child in value.children:
                    _append(element, copy(child, count))
            case _:
                _append(element, copy(value, count))


def _with_free_prefix(name: Name, namespaces: Namespaces) -> Name:
    """The name of an attribute, with another prefix where its own means something else."""
    prefix, number = name.prefix, 0
    while prefix not in ("", "xml") and namespaces.get(prefix, name.uri) != name.uri:
        number += 1
        prefix = f"{name.prefix}_{number}"
    return name if prefix == name.prefix else Name(name.local, name.uri, prefix)


def _spaced(values: Values) -> list[Attribute | Document | Child]:
    """Nodes as they are, and values as texts: those that stand side by side become one, with spaces between."""
    parts: list[Attribute | Document | Child] = []
    pending: list[Value] = []
    for value in (*values, None):
        if _holds_object(value):
            hint = "look its values up, as in $o.key, or give an object instead of the element"
            raise DynamicError("an object cannot stand in an element", code="XQTY0105", hint=hint)
        if value is not None and not isinstance(value, NODES):
            pending.append(value)
            continue
        if pending:
            parts.append(Text(*_written(operands(pending))))
            pending = []
        if value is not None:
            parts.append(value)
    return parts


def _holds_object(value: Value | None) -> bool:
    """Whether a value is an object, or an array, which stands for its members, with an object among them."""
    if isinstance(value, JsonArray):
        return any(map(_holds_object, chain.from_iterable(value.members)))
    return isinstance(value, JsonObject)


def _set(element: Element, name: Name, value: str, measure: Measure | None) -> None:
    if any(each.name == name for each in element.attributes):
        raise DynamicError(f"attribute '{name}' is given twice", code="XQDY0025")
    element.set(name, value, measure)


def _append(element: Element, child: Child) -> None:
    """Append, joining texts that meet, which are then no one value any more; an empty text is none."""
    last = element.children[-1] if element.children else None
    if isinstance(child, Text) and isinstance(last, Text):
        if child.value:
            last.value, last.measure = last.value + child.value, None
    elif not isinstance(child, Text) or child.value:
        element.append(child)


def answer_text(values: Values, *, json: bool) -> str:
    """A sequence as an answer, lines of JSON or XML; values of the other kind are an error (LAWS 7.3)."""
    if json:
        return json_lines(values)
    refuse_json(values)
    return content_text(values)


def content_text(values: Values) -> str:
    """A sequence as XML content: serialised nodes, and a space between values that stand side by side."""
    parts: list[str] = []
    for value in _spaced(values):
        if isinstance(value, Attribute):
            raise DynamicError(
                f"attribute '{value.name}' stands outside of any element", code="SENR0001", hint="construct an element"
            )
        parts.append(serialize(value))
    return "".join(parts)
