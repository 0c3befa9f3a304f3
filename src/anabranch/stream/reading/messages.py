"""What goes with the elements of a message: its key and its headers (LAWS 1.6).

They are bytes, and stay so on their way beside an element's own bytes; queries see them as text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from anabranch.stream.elements import Item, Region, StreamElement, Update
from anabranch.stream.reading.lines import Cut
from anabranch.stream.tree import Element, MessageNotes

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
        case Region(_, content) | Update(_, _, _, content):
            for each in content:
                if isinstance(each, Element):
                    each.message = notes


def notes_of(cut: Cut) -> MessageNotes:
    """The key and the headers of a cut."""
    headers = () if cut.headers is None else _unpacked(cut.headers)
    named = tuple((name, text_of(value)) for name, value in headers if value is not None)
    return MessageNotes(None if cut.key is None else text_of(cut.key), named)
