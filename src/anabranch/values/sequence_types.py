"""Sequence types: whether values are of a type, and the conversion of arguments to the type of a parameter.

A type is its canonical text, `xs:integer?` or `element(a)*` (`language/parsing/types.py`).
Text from items has no schema, so elements and attributes are known by their names, and their values are untyped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import TypeAlias

from anabranch.errors import DynamicError
from anabranch.stream.tree import Attribute, Comment, Document, Element, Instruction, Text
from anabranch.values.atomic import Atomic, JsonNumber, Untyped
from anabranch.values.casts import CASTS
from anabranch.values.function_items import FunctionItem
from anabranch.values.objects.maps import JsonArray, JsonObject
from anabranch.values.sequences import NODES, Value, Values, operands
from anabranch.values.times import (
    DURATIONS,
    TIMES,
    Date,
    DateTime,
    DayTimeDuration,
    Time,
    YearMonthDuration,
)

Namespaces: TypeAlias = Mapping[str, str]


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float | Decimal | JsonNumber) and not isinstance(value, bool)


ATOMIC_TYPES: Mapping[str, Callable[[Value], bool]] = {
    "xs:anyAtomicType": lambda value: not isinstance(value, (*NODES, FunctionItem, JsonObject, JsonArray)),
    "xs:untypedAtomic": lambda value: isinstance(value, Untyped) and not isinstance(value, JsonNumber),
    "xs:string": lambda value: isinstance(value, str) and not isinstance(value, Untyped),
    "xs:boolean": lambda value: isinstance(value, bool),
    "xs:integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "xs:decimal": lambda value: isinstance(value, int | Decimal) and not isinstance(value, bool),
    "xs:double": lambda value: isinstance(value, float | JsonNumber),
    "xs:numeric": _is_number,
    "xs:dateTime": lambda value: isinstance(value, DateTime),
    "xs:date": lambda value: isinstance(value, Date),
    "xs:time": lambda value: isinstance(value, Time),
    "xs:duration": lambda value: isinstance(value, DURATIONS),
    "xs:dayTimeDuration": lambda value: isinstance(value, DayTimeDuration),
    "xs:yearMonthDuration": lambda value: isinstance(value, YearMonthDuration),
}
"""By the name of an atomic type: whether a value is of it."""


@dataclass(frozen=True, slots=True)
class SequenceType:
    """A type taken apart."""

    item: str
    """What each value is; nothing for the empty sequence."""
    name: str
    """The name that a kind test asks for, or the type of the element of a document."""
    least: int
    most: int | None


@cache
def read_type(text: str) -> SequenceType:
    """A type from its canonical text."""
    if text == "empty-sequence()":
        return SequenceType("", "", 0, 0)
    least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(text[-1], (1, 1))
    item = text[:-1] if text[-1] in "?*+" and not text.endswith("(*") else text
    kind, _, inside = item.partition("(")
    return SequenceType(kind, inside.removesuffix(")"), least, most)


def is_of(values: Values, text: str, namespaces: Namespaces) -> bool:
    """Whether values are of a type."""
    wanted = read_type(text)
    fits = len(values) >= wanted.least and (wanted.most is None or len(values) <= wanted.most)
    return fits and all(_item_is_of(each, wanted.item, wanted.name, namespaces) for each in values)


def _item_is_of(value: Value, item: str, name: str, namespaces: Namespaces) -> bool:
    match item:
        case "item":
            return True
        case "node":
            return isinstance(value, NODES)
        case "text":
            return isinstance(value, Text)
        case "comment":
            return isinstance(value, Comment)
        case "element":
            return isinstance(value, Element) and _is_named(value, name, namespaces.get("", ""), namespaces)
        case "attribute":
            return isinstance(value, Attribute) and _is_named(value, name, "", namespaces)
        case "processing-instruction":
            return isinstance(value, Instruction) and name in ("", value.target)
        case "document-node":
            return isinstance(value, Document) and (not name or _holds_one(value, name, namespaces))
        case "function":
            return isinstance(value, FunctionItem)
        case _:
            return ATOMIC_TYPES[item](value)


def _is_named(node: Element | Attribute, name: str, default: str, namespaces: Namespaces) -> bool:
    if not name:
        return True
    prefix, _, local = name.rpartition(":")
    return node.name.local == local and node.name.uri == (namespaces.get(prefix, "") if prefix else default)


def _holds_one(document: Document, element: str, namespaces: Namespaces) -> bool:
    """Whether a document holds one element, which is of a type, and no text."""
    inside = [each for each in document.children if isinstance(each, Element | Text)]
    return is_of(list(inside), element, namespaces)


def typed(values: Values, text: str, namespaces: Namespaces, code: str) -> Values:
    """Values that must be of a type."""
    if not is_of(values, text, namespaces):
        raise DynamicError(f"what is given is no {text}", code=code)
    return values


def converted(values: Values, text: str, namespaces: Namespaces) -> Values:
    """Arguments converted to the type of a parameter: nodes become values, untyped text is cast, numbers promoted."""
    wanted = read_type(text)
    if wanted.item not in ATOMIC_TYPES:
        return typed(values, text, namespaces, "XPTY0004")
    return typed([_converted_value(each, wanted.item) for each in operands(values)], text, namespaces, "XPTY0004")


def _converted_value(value: Atomic, name: str) -> Atomic:
    if isinstance(value, Untyped) and name not in ("xs:anyAtomicType", "xs:untypedAtomic"):
        return CASTS["xs:double" if name == "xs:numeric" else name](value)
    if name == "xs:double" and _is_number(value):
        return CASTS[name](value)
    return value


assert {f"xs:{kind.name}" for kind in TIMES} <= ATOMIC_TYPES.keys()
