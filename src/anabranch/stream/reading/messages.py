"""What goes with the elements of a message: its key and its headers (LAWS 1.6).

They are bytes, and stay so on their way beside an element's own bytes; queries see them as text.

In a stream of upserts, messages are updates of their keys (LAWS 5.9), which may come in Debezium's envelope:

    {"before": null, "after": {"id": 7, "n": 1.50}, "op": "c", "source": {...}, "ts_ms": 1767225600000}
    {"schema": {...}, "payload": {"before": {"id": 7, "n": 1.50}, "after": null, "op": "d", ...}}

Of it only `after` counts: the row as it is now, and nothing where it was deleted.
The row is written again as it came, its numbers in their spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from anabranch.errors import BadItem
from anabranch.stream.elements import Item, Place, Region, StreamElement, StreamToken, Update
from anabranch.stream.limits import Limits
from anabranch.stream.reading.json_items import Digits, Json, parse_value, write_object
from anabranch.stream.reading.lines import Cut
from anabranch.stream.tree import Element, MessageNotes

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
TOMBSTONE = b"\0"
"""The bytes that stand for a message without a value in a stream of upserts; no item is written so."""
_WRITES = ("c", "r", "u")
"""Debezium's operations behind which a row is there: it was created, read for a first snapshot, or updated."""


def pack_headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Headers, in their order, as bytes."""
    return msgspec.msgpack.encode([(name, value) for name, value in headers])


@lru_cache(maxsize=1_024)
def _unpacked(packed: bytes) -> tuple[tuple[str, bytes | None], ...]:
    return msgspec.msgpack.decode(packed, type=tuple[tuple[str, bytes | None], ...])


def text_of(data: bytes) -> str:
    """A key or a header as queries see it: its text, or hexadecimal digits where it is none."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data.hex().upper()
    return data.hex().upper() if _NOT_XML.search(text) else text


def note(element: StreamElement, cut: Cut) -> None:
    """Note on an element's trees the message that it came in."""
    if cut.key is None and cut.headers is None:
        return
    notes = notes_of(cut)
    match element:
        case Item(tree):
            tree.message = notes
        case Region(_, content) | Update(_, _, _, content) | StreamToken(_, _, content):
            for each in content:
                if isinstance(each, Element):
                    each.message = notes


def notes_of(cut: Cut) -> MessageNotes:
    """The key and the headers of a cut."""
    headers = () if cut.headers is None else _unpacked(cut.headers)
    named = tuple((name, text_of(value)) for name, value in headers if value is not None)
    return MessageNotes(None if cut.key is None else text_of(cut.key), named)


def upserted_key(key: bytes | None) -> str:
    """The id of the region that a message is an upsert of; BadItem where it has no key."""
    name = "" if key is None else text_of(key)
    if not name.strip():
        raise BadItem("a message without a key in a stream of upserts")
    return name


def upsert(key: bytes | None, place: Place, item: Item | None) -> Update:
    """The upsert that a message with an item is, or a tombstone with none; BadItem where it has no key."""
    content, at = ((), None) if item is None else ((item.tree,), item.at)
    return Update("upsert", upserted_key(key), None, content, place, at)


def unwrapped(raw: bytes, limits: Limits) -> bytes | None:
    """The row in Debezium's envelope as it is now; None where it was deleted; BadItem where it is no envelope."""
    try:
        return _row(parse_value(raw, limits))
    except RecursionError:  # where the cap on depth exceeds Python's own
        raise BadItem("nested too deep") from None


def _row(found: Json) -> bytes | None:
    if isinstance(found, dict) and "op" not in found and "payload" in found:
        found = found["payload"]
    if not isinstance(found, dict) or "op" not in found:
        raise BadItem("no envelope of Debezium: it has no 'op'")
    operation, after = found["op"], found.get("after")
    match operation:
        case "d":
            return None
        case "t":
            raise BadItem("the table was truncated, which no upsert can say")
    if not isinstance(operation, str) or operation not in _WRITES:
        raise BadItem(f"no upsert: the operation is {json.dumps(operation)[:40]}")
    if not isinstance(after, dict):
        raise BadItem("no envelope of Debezium: what the row is after it was written is no object")
    try:
        return _written(after).encode()
    except UnicodeEncodeError:
        raise BadItem("half of a surrogate pair is no character") from None


def _written(value: Json) -> str:
    """A parsed value as JSON, its numbers in their spelling."""
    match value:
        case list():
            return f"[{', '.join(map(_written, value))}]"
        case dict():
            return write_object([(key, _written(each)) for key, each in value.items()])
        case Digits():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)
