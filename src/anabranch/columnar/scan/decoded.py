"""Texts whose bytes are not their characters: with character references, or with signs that attributes escape.

    <name a="&lt;5">AT&amp;T says "hello"</name>

Columns of texts are for values, so a scanner decodes such a text into room of its own behind the bytes, and conditions
and functions see its characters.
A text that is copied into an answer has to be escaped again, by the rules of elements or of attributes.
So entries with such texts are *marked*, and answers that copy or compute texts of them are left to the law, one item
and one query at a time; elements that are copied whole are not, since their bytes are canonical.
An entry whose bytes are not canonical, `<a></a>` for `<a/>`, is marked, too; nothing at all is copied from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.kernels import Bytes, Indices, compiled_lean
from anabranch.stream.serialize import escape_attribute, escape_text

CANONICAL, WITH_SIGNS, NOT_CANONICAL = range(3)
"""The marks of an entry: all its texts are plain, some are not, or its bytes differ from their serialisation."""
COPIES_NOTHING, COPIES_ELEMENTS, TAKES_TEXTS = range(3)
"""The content of an answer: text of the query alone, also elements of the item, or also its texts and values
computed from them."""

AMPERSAND = ord("&")
REFERENCES = {"amp;": "&", "lt;": "<", "gt;": ">", "quot;": '"', "apos;": "'", "#x9;": "\t", "#xA;": "\n"}
_NAMES = np.array([list(name.encode().ljust(5, b"\0")) for name in REFERENCES], np.uint8)
_SIZES = np.array([*map(len, REFERENCES)])
_CHARACTERS = np.array([*map(ord, REFERENCES.values())], np.uint8)
NO_REFERENCE = -1
IS_CANONICAL = np.array(
    [[escape(each) == f"&{name}" for name, each in REFERENCES.items()] for escape in (escape_text, escape_attribute)]
)
"""By whether it is in an attribute, and by number: whether the serialiser writes this reference."""


class DecodedTexts(NamedTuple):
    """The decoded texts that scanners have written, and the marks of entries."""

    data: Bytes
    size: Indices
    """The number of bytes written, as an array of one."""
    base: int
    """The place of the first byte in columns: behind all bytes that were read or written."""
    marks: Bytes
    """By entry."""


def is_left_to_law(marks: NDArray[np.uint8], parts: Indices) -> NDArray[np.bool_]:
    """By entry: whether its mark and the content of an answer, `parts`, leave the answer to the law."""
    return marks + parts > TAKES_TEXTS


@compiled_lean
def reference_at(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """The number of the reference whose ampersand is at `at`, and the place behind it; `NO_REFERENCE` for none."""
    for number in range(len(_SIZES)):
        size = _SIZES[number]
        if at + size >= stop:
            continue
        same = True
        for place in range(size):
            if data[at + 1 + place] != _NAMES[number, place]:
                same = False
                break
        if same:
            return number, at + 1 + size
    return NO_REFERENCE, at


@compiled_lean
def decode(data: Bytes, begin: int, end: int, decoded: DecodedTexts, entry: int) -> tuple[int, int]:
    """Decode `data[begin:end]`, which has only known references, and mark the entry.

    Gives the start and end of its characters, -1 for both where there is no room.
    """
    first = write = decoded.size[0]
    at = begin
    while at < end:
        if write == len(decoded.data):
            return -1, -1
        if data[at] == AMPERSAND:
            number, at = reference_at(data, at, end)
            decoded.data[write] = _CHARACTERS[number]
        else:
            decoded.data[write] = data[at]
            at += 1
        write += 1
    decoded.size[0] = write
    decoded.marks[entry] = max(decoded.marks[entry], WITH_SIGNS)
    return decoded.base + first, decoded.base + write
