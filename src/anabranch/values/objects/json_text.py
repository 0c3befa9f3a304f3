"""Values as JSON, one line each: the form in which objects, arrays and JSON items leave (LAWS 7.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

from anabranch.errors import DynamicError, StreamError
from anabranch.stream.reading.json_items import write_object, write_string, write_untyped, write_value
from anabranch.stream.tree import Attribute, Comment, Document, Element, Instruction, Text
from anabranch.values.atomic import JsonNull, JsonNumber, Untyped, spell
from anabranch.values.function_items import FunctionItem
from anabranch.values.objects.maps import JsonArray, JsonObject
from anabranch.values.sequences import Value, Values, atom


def is_record(value: Value) -> bool:
    """Whether a value is an item of a JSON stream, or a record of a JSON document."""
    return isinstance(value, Element) and value.mark is not None and value.mark.record


def json_lines(values: Sequence[Value]) -> str:
    """Values as JSON, each on a line of its own; of nodes only JSON items and records can be written so."""
    for each in values:
        if isinstance(each, Element | Text | Attribute | Document | Comment | Instruction) and not is_record(each):
            raise not_both()
    return "".join([f"{json_text(each)}\n" for each in values])


def refuse_json(values: Sequence[Value]) -> None:
    """Raise where one of the values of an answer in XML can leave as JSON only."""
    if any(isinstance(each, JsonObject | JsonArray) for each in values):
        raise not_both()


def not_both() -> DynamicError:
    """The error of a result that is of the other kind than its answer (LAWS 7.3)."""
    hint = "give objects only, or elements only"
    return DynamicError("an answer is JSON or XML, not both", code="SERE0022", hint=hint)


def _sequence(values: Values, what: str) -> str:
    """A value of an object or array; none is `null`."""
    match values:
        case []:
            return "null"
        case [value]:
            return json_text(value)
        case _:
            message = f"{what} has {len(values)} values, and JSON takes one"
            raise DynamicError(message, code="SERE0023", hint="put them into an array: array { ... }")


def json_text(value: Value) -> str:
    """One value as JSON."""
    match value:
        case JsonObject(text=str(text)) | JsonArray(text=str(text)) if text:
            return text
        case JsonObject(element=Element() as element) | (Element() as element):
            try:
                return write_value(element)
            except StreamError as error:
                raise DynamicError(error.message, code="SERE0022") from None
        case JsonObject():
            written = [(key, _sequence(found, f"the key '{key}'")) for key, found in value.entries.items()]
            return write_object(written)
        case JsonArray():
            return f"[{', '.join([_sequence(each, 'a member of an array') for each in value.members])}]"
        case Document() | Comment() | Instruction():
            raise DynamicError("JSON cannot say what is no element, text or attribute", code="SERE0022")
        case Text() | Attribute():
            return write_untyped(str(atom(value)))
        case FunctionItem():
            raise DynamicError("JSON cannot say a function", code="SERE0021")
        case JsonNull():
            return "null"
        case JsonNumber():
            return str(value)
        case Untyped():
            return write_untyped(value)
        case str():
            return write_string(value)
        case bool():
            return spell(value)
        case float() if not math.isfinite(value):
            raise DynamicError(f"JSON has no {spell(value)}", code="SERE0020")
        case int() | Decimal() | float():
            return spell(value)
        case _:
            return write_string(spell(value))
