"""Texts between tags: what an element with elements in it has as its text, and how such a text is written again.

    <name>AT&amp;T <b>Wireless</b></name>   has the text   AT&T Wireless

Scanners decode texts of elements without elements only; this is done from the bytes of the whole element, once for each
different one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from anabranch.columnar.expressions import texts
from anabranch.columnar.expressions.functions.function import TEXTUAL, Body, ColumnFunction, taking, text_of
from anabranch.columnar.expressions.spots import TEXT_INSIDE
from anabranch.columnar.expressions.tree import Kind
from anabranch.columnar.expressions.values import ColumnValue
from anabranch.columnar.scan.decoded import REFERENCES
from anabranch.stream.serialize import escape_attribute, escape_text

_TAG = re.compile(r'<(?:[^>"]|"[^"]*")*>')
_REFERENCE = re.compile(r"&([^;]*;)")


def text_inside(element: str) -> str:
    """All text in an element as scanners read it: without comments and sections, and with known references only."""
    return _REFERENCE.sub(lambda found: REFERENCES[found[1]], _TAG.sub("", element))


def _changed(change: Callable[[str], str]) -> Body:
    """Each text changed; equal ones are changed once."""

    def body(kind: Kind, values: Sequence[ColumnValue], count: int) -> ColumnValue:
        known: dict[str, str] = {}

        def once(text: str) -> str:
            if text not in known:
                known[text] = change(text)
            return known[text]

        found, state = text_of(values[0], count)
        made = texts.changed(found, np.ones(len(found.starts), np.bool_), once)
        return ColumnValue(kind, state, _no_numbers(kind, len(made.starts)), made)

    return body


def _no_numbers(kind: Kind, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    """What is not a simple number, or not known to be one, is read as a number where one is needed."""
    return np.full(count, np.nan) if kind is Kind.UNTYPED else None


ESCAPING: Mapping[Callable[[str], str], str] = {escape_text: "escaped-text", escape_attribute: "escaped-attribute"}
"""The functions that write a text as the serialiser does, by what each does with one."""

MARKUP_FUNCTIONS: Mapping[str, ColumnFunction] = {
    TEXT_INSIDE: ColumnFunction(taking((Kind.CONTENT,), (1,), Kind.UNTYPED), _changed(text_inside)),
    **{name: ColumnFunction(taking(TEXTUAL, (1,), Kind.STRING), _changed(escape)) for escape, name in ESCAPING.items()},
}
