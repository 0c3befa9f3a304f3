"""Lookups: what `.`, `[[ ]]`, `[]` and `$m(k)` find in objects and arrays (LAWS 7.1, 7.2).

The mark of an element that was read from JSON says what it stands for: a number keeps its spelling, text is a string,
and objects and arrays are views.
An XML element can be looked into as well: its children are its keys, one after the other, and their text has no type.
A key leads to the children whose name is that of the key (`stream/reading/json_names.py`), and one with a prefix to the
children that are written so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anabranch.errors import DynamicError
from anabranch.stream.reading.json_names import key_of_step, step_of_key
from anabranch.stream.tree import Attribute, Element, Text, string_value, texts
from anabranch.values.atomic import NULL, Atomic, JsonNumber, Measured, Untyped, as_number, kind_of, spell
from anabranch.values.objects.json_text import json_text
from anabranch.values.objects.maps import JsonArray, JsonObject
from anabranch.values.sequences import Value, Values, atomize, untyped


def looked_up(values: Iterable[Value], key: str) -> Values:
    """What a key has in each of some values, one after the other; what is no object has no keys."""
    found: Values = []
    for value in values:
        match value:
            case JsonObject(element=Element() as element) | (Element() as element):
                found += _in_element(element, key)
            case JsonObject():
                found += value.entries.get(key, ())
    return found


def members(values: Iterable[Value]) -> Values:
    """The members of all arrays among some values; what is no array has none."""
    return [each for value in values if isinstance(value, JsonArray) for member in value.members for each in member]


def member(values: Sequence[Value], place: Sequence[Value]) -> Values:
    """The member at a place, from 1 on, of each array among some values; beyond the end there is none."""
    number = _whole(place)
    found: Values = []
    for value in values:
        if isinstance(value, JsonArray) and 0 < number <= len(value.members):
            found += value.members[number - 1]
    return found


def called(values: Sequence[Value], argument: Sequence[Value]) -> Values:
    """`$m(k)`: the value of a key, or the member at a place, which must be there."""
    match values:
        case [JsonObject() | Element() as found]:
            match atomize(argument):
                case [key]:
                    return looked_up([found], spell(key))
            raise DynamicError("an object is asked for one key", code="XPTY0004")
        case [JsonArray() as array]:
            if not 0 < _whole(argument) <= len(array.members):
                raise DynamicError(f"the array has no member {_whole(argument)}", code="FOAY0001")
            return member([array], argument)
    raise DynamicError("only an object or an array can be called", code="XPTY0004")


def _whole(place: Sequence[Value]) -> int:
    match atomize(place):
        case [number]:
            found = as_number(number)
            if found == found // 1:
                return int(found)
    raise DynamicError("the place of a member is one whole number", code="XPTY0004")


def made_array(members: Sequence[Values]) -> JsonArray:
    """The array of some members."""
    found = JsonArray(list(members))
    return JsonArray(found.members, json_text(found))


def made_object(entries: Sequence[Values]) -> JsonObject:
    """The object of keys and values, which come in turns."""
    found: dict[str, Values] = {}
    for key, value in zip(entries[::2], entries[1::2], strict=True):
        match atomize(key):
            case [str() as name] if not isinstance(name, JsonNumber):
                if str(name) in found:
                    raise DynamicError(f"the key '{name}' is given twice", code="XQDY0137")
                found[str(name)] = value
            case [other]:
                raise DynamicError(f"a key is a string, not a {kind_of(other)}", code="XPTY0004")
            case atoms:
                raise DynamicError(f"a key is one string, not {len(atoms)} values", code="XPTY0004")
    return JsonObject(found, json_text(JsonObject(found, "")))


# --- what was read --------------------------------------------------------------------------------------------


def _in_element(element: Element, key: str) -> Values:
    step = step_of_key(key)
    if step.startswith("@"):
        return [_attribute(element, each) for each in element.attributes if _is_called(each, step[1:], key[1:])]
    children = [each for each in element.children if isinstance(each, Element) and _is_called(each, step, key)]
    if element.mark is None:
        return [_value(each) for each in children]
    if any(step == name for _, name in element.mark.empty):
        return [JsonArray([])]
    return _together(children)


def _is_called(node: Element | Attribute, name: str, prefixed: str) -> bool:
    """Whether a node has a name, or a prefix and a name as they are written."""
    return str(node.name) == (prefixed if node.name.prefix else name)


def _together(children: Sequence[Element]) -> Values:
    """The value of one key of an object: an array where it was read as one, or where several children have the key."""
    if len(children) > 1 or any(each.mark is not None and each.mark.listed for each in children):
        return [JsonArray([[_value(each)] for each in children])]
    return [_value(each) for each in children]


def _value(element: Element) -> Value:
    """What an element stands for."""
    mark = element.mark
    if mark is None:
        if not element.attributes and all(isinstance(each, Text) for each in element.children):
            return untyped(element)
        json_text(element)  # what JSON cannot say is no object
        return JsonObject.view(element, _entries)
    match mark.kind:
        case "object":
            return JsonObject.view(element, _entries)
        case "array":
            return JsonArray([[_value(each)] for each in element.children if isinstance(each, Element)])
        case "number":
            (text,) = texts(element)
            return _number(text)
        case kind:
            return _scalar(kind, string_value(element))


def _number(node: Text | Attribute) -> Atomic:
    return JsonNumber(node.value) if node.measure is None else Measured(node.value, node.measure)


def _attribute(element: Element, attribute: Attribute) -> Atomic:
    if element.mark is None:
        return Untyped(attribute.value)
    kind = dict(element.mark.types).get(f"@{attribute.name}", "string")
    return _number(attribute) if kind == "number" else _scalar(kind, attribute.value)


def _scalar(kind: str, text: str) -> Atomic:
    return NULL if kind == "null" else text == "true" if kind == "boolean" else text


def _entries(element: Element) -> dict[str, Values]:
    """All keys of an element with their values, in order."""
    found: dict[str, Values] = {_key(f"@{each.name}"): [_attribute(element, each)] for each in element.attributes}
    empty = list(element.mark.empty if element.mark else ())
    by_name: dict[str, list[Element]] = {}
    for place, child in enumerate(element.children):
        while empty and empty[0][0] <= place:
            by_name[empty.pop(0)[1]] = []
        if isinstance(child, Element):
            by_name.setdefault(str(child.name), []).append(child)
    by_name.update({name: [] for _, name in empty})
    for name, children in by_name.items():
        found[_key(name)] = _together(children) if children else [JsonArray([])]
    return found


def _key(step: str) -> str:
    key = key_of_step(step)
    assert key is not None, "an element that is no object was written as JSON, to see that it can be"
    return key
