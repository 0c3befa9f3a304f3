"""The names of the root and the items of a stream, as far as its first bytes show them.

Lines have no root, and JSON has no names for its objects: there the names are *agreed*, which means declared with the
stream or implied, and never change.
In a document they are read from the first items, and later items may have other names.
"""

from __future__ import annotations

from typing import NamedTuple

from anabranch.errors import AnabranchError
from anabranch.stream.elements import Item
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Contents, Source

_FIRST = 100
"""The number of elements that are looked at."""


class FirstNames(NamedTuple):
    """The name of the root, those of the items as far as they are known, and whether both are agreed on."""

    root: str
    items: tuple[str, ...]
    agreed: bool


def first_names(source: Source) -> FirstNames | None:
    """The names in a stream; None where a schema has them, or where nothing can be read yet."""
    if source.schema is not None or source.answer or source.updates:
        return None
    if source.http is not None and source.format == "document":
        return None  # what was pushed is read by the run alone
    try:
        return _names(source)
    except AnabranchError:
        return None  # the reader of the stream reports the error


def _names(source: Source) -> FirstNames | None:
    if source.format == "auto" and not source.size:
        return None
    if source.topic is not None:
        items = (source.item_name,) if source.format == "json" else ()
        return FirstNames(source.implied_root, items, agreed=True)
    contents = Contents(source, Limits())
    if contents.format == "json":
        return FirstNames(source.implied_root, (source.item_name,), agreed=True)
    if contents.format == "lines":
        # that XML comes in lines may be a guess, and wrong where bytes are broken
        return FirstNames(source.implied_root, (), agreed=source.format == "lines")
    found: dict[str, None] = {}
    for _, element in zip(range(_FIRST), contents, strict=False):
        if isinstance(element, Item) and not element.tree.name.uri:
            found[element.tree.name.local] = None
    return FirstNames(contents.root.name.local, tuple(found), agreed=False) if found else None
