"""Texts that are not written as they are: with references to characters, or with signs that attributes write otherwise.

    <name a="&lt;5">AT&amp;T says "hello"</name>

Columns of texts are for values, so a scanner decodes such a text into room of its own behind the bytes, and conditions
and functions see its characters.
What is written is another matter: a text that is copied into an answer has to be escaped, as an element or an attribute
does it.
So entries with such texts are *marked*, and what an answer copies or computes of them is left to the law, one item and
one query at a time; elements that are copied whole are not, since their bytes are canonical.
An entry whose bytes are not canonical, `<a></a>` for `<a/>`, is marked, too; nothing at all is copied of that one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.columnar.scan.kernels import Bytes, Indices, compiled_lean
from anabranch.stream.serialize import escape_attribute, escape_text

CANONICAL, WITH_SIGNS, NOT_CANONICAL = range(3)
"""The marks of an entry: its texts are plain, some are not, or its very bytes are not what would be serialised."""
COPIES_NOTHING, COPIES_ELEMENTS, TAKES_TEXTS = range(3)
"""What an answer is made of: text of the query alone, elements of the item too, or its texts and what is computed."""

AMPERSAND = ord("&")
_REFERENCES = {"amp;": "&", "lt;": "<", "gt;": ">", "quot;": '"', "apos;": "'", "#x9;": "\t", "#xA;": "\n"}
_NAMES = np.array([list(name.encode().ljust(5, b"\0")) for name in _REFERENCES], np.uint8)
_SIZES = np.array([*map(len, _REFERENCES)])
_CHARACTERS = np.array([*map(ord, _REFERENCES.values())], np.uint8)
NO_REFERENCE = -1
IS_CANONICAL = np.array(
    [[escape(each) == f"&{name}" for name, each in _REFERENCES.items()] for escape in (escape_text, escape_attribute)]
)
"""By whether it is in an attribute, and by number: whether a reference is what would be serialised."""


class DecodedTexts(NamedTuple):
    """Where scanners put decoded texts, and the marks of entries."""

    data: Bytes
    size: Indices
    """How many bytes are there: a single number."""
    base: int
    """The place of the first of them, as columns have it: behind all bytes that were read or written."""
    marks: Bytes
    """By entry."""


def is_left_to_law(marks: NDArray[np.uint8], parts: Indices) -> NDArray[np.bool_]:
    """Whether answers made of such parts can be laid out for entries with such marks."""
    return marks + parts > TAKES_TEXTS


@compiled_lean
def reference_at(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Which reference begins with the ampersand at a place, and the place behind it; `NO_REFERENCE` for none."""
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
    """Put the characters of `data[begin:end]` down, which has no other references, and mark the entry.

    Gives where they begin and end, -1 for both where there is no room.
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
