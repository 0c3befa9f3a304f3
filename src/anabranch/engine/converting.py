"""Answers converted on request: XML as lines of JSON, and lines of JSON as XML (LAWS 7.3).

An element becomes the object that would be read as this element, and text becomes what it looks like; a line of JSON
becomes an element called `item`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Literal

from anabranch.errors import BadItem, StreamError, UsageError
from anabranch.stream.limits import DOCUMENT
from anabranch.stream.reading.json_items import parse_records, write_untyped, write_value
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.serialize import serialize
from anabranch.stream.tree import Element, Text

_AROUND = "answer"


def converted(pieces: Iterable[str], to: Literal["json", "xml"]) -> Iterator[str]:
    """An answer in another form; one that has it already stays as it is."""
    text = "".join(pieces)
    lines = _lines(text)
    if to == "xml":
        yield text if lines is None else "".join(map(_element, lines))
    else:
        yield text if lines is not None else "".join(_written(text))


def _lines(text: str) -> list[str] | None:
    """The lines of an answer that is JSON; None for one that is XML."""
    if not text.endswith("\n"):
        return None
    lines = text.split("\n")[:-1]
    try:
        for each in lines:
            json.loads(each)
    except (ValueError, RecursionError):
        return None
    return lines


def _element(line: str) -> str:
    if line.startswith("{"):
        (record,) = parse_records(line.encode(), DOCUMENT, "item")
        return serialize(record)
    wrapped = f'{{"item": {line}}}'
    try:
        (record,) = parse_records(wrapped.encode(), DOCUMENT, "item")
    except BadItem as error:
        raise UsageError(f"XML cannot say {line[:80]}: {error.message}") from None
    return "".join(serialize(each) for each in record.children)


def _written(text: str) -> Iterator[str]:
    around = parse_item(f"<{_AROUND}>{text}</{_AROUND}>".encode(), DOCUMENT)
    for child in around.children:
        match child:
            case Element():
                try:
                    yield f"{write_value(child)}\n"
                except StreamError as error:
                    raise UsageError(error.message, hint="leave '--as json' out") from None
            case Text(value=value) if value.strip():
                yield f"{write_untyped(value.strip())}\n"
