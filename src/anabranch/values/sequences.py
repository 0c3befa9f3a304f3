"""Sequences of nodes and values, as in XQuery: flat lists, and functions on them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

from anabranch.errors import DynamicError
from anabranch.stream.tree import Attribute, Comment, Document, Element, Instruction, Node, Text, texts
from anabranch.values.atomic import NULL, Atomic, JsonNumber, Measured, Untyped, exact_number
from anabranch.values.function_items import FunctionItem
from anabranch.values.objects.maps import JsonArray, JsonObject
from anabranch.values.times import TIMES

Value: TypeAlias = Node | Atomic | JsonObject | JsonArray | FunctionItem
Values: TypeAlias = list[Value]

NODES = (Document, Element, Attribute, Text, Comment, Instruction)


def atomize(values: Iterable[Value]) -> list[Atomic]:
    """Nodes become their text; without a schema it is untyped, except for comments and instructions.

    A node whose text is one measured value becomes that value; a computed value that a query has written into an
    element is plain text.
    """
    atoms: list[Atomic] = []
    for each in values:
        if isinstance(each, JsonArray):  # it stands for its members
            atoms += atomize(member for values in each.members for member in values)
        else:
            atoms.append(atom(each))
    return atoms


def operands(values: Iterable[Value]) -> list[Atomic]:
    """The values that operators and functions compute with: `null` stands for nothing there (LAWS 7.1)."""
    return [each for each in atomize(values) if each is not NULL]


def non_null(values: Iterable[Value]) -> Values:
    """A sequence without its nulls."""
    return [each for each in values if each is not NULL]


def atom(value: Value) -> Atomic:
    """One value of `atomize`."""
    match value:
        case JsonObject() | JsonArray():
            what = "an object" if isinstance(value, JsonObject) else "an array"
            raise DynamicError(f"{what} is no single value", code="FOTY0013", hint="look its values up, as in $o.key")
        case Comment() | Instruction():
            return value.value
        case Document() | Element() | Attribute() | Text():
            return untyped(value)
        case FunctionItem():
            raise DynamicError("a function has no value", code="FOTY0013")
        case _:
            return value


def untyped(node: Document | Element | Attribute | Text) -> Untyped:
    """The value of a node without a schema."""
    if isinstance(node, Element | Document):
        found = texts(node)
        if len(found) != 1:
            return Untyped("".join([each.value for each in found]))
        node = found[0]
    measure = node.measure
    return Untyped(node.value) if measure is None or measure.computed else Measured(node.value, measure)


def at_most_one(values: Iterable[Value], what: str) -> Atomic | None:
    """The single value of an operand, None for none; several are an error."""
    return _single(operands(values), what)


def key_of(values: Iterable[Value], what: str) -> Atomic | None:
    """The single value of a key by which tuples are grouped or ordered, where `null` is a value; None for none."""
    return _single(atomize(values), what)


def _single(atoms: list[Atomic], what: str) -> Atomic | None:
    if len(atoms) > 1:
        raise DynamicError(f"{what} takes one value, not {len(atoms)}", code="XPTY0004")
    return atoms[0] if atoms else None


def truth(values: Values) -> bool:
    """XQuery's effective boolean value."""
    if not values:
        return False
    first = values[0]
    if isinstance(first, NODES):
        return True
    if len(values) > 1:
        raise DynamicError("a sequence of several values is neither true nor false", code="FORG0006")
    match first:
        case float():
            return first != 0 and not math.isnan(first)
        case JsonNumber():
            return bool(exact_number(first))
        case JsonObject() | JsonArray():
            what = "an object" if isinstance(first, JsonObject) else "an array"
            raise DynamicError(f"{what} is neither true nor false", code="FORG0006")
        case _ if isinstance(first, TIMES):
            raise DynamicError(f"a {first.name} is neither true nor false", code="FORG0006")
        case FunctionItem():
            raise DynamicError("a function is neither true nor false", code="FORG0006")
        case _:
            return bool(first)
