"""Objects and arrays: XQuery's maps and arrays as far as JSON has them, with strings for keys (LAWS 7.2).

An object that was read is a view of its element (`stream/tree.py`), so it costs nothing until it is looked into; one
that a query has made has its entries, and is written when it is made: what JSON cannot say fails there, in the round of
its item, and not when an answer leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anabranch.stream.tree import Element


class JsonObject:
    """An object: keys with values, in order. It is not changed once it is made."""

    __slots__ = ("_entries", "_read", "element", "text")

    def __init__(self, entries: dict[str, list[Any]], text: str) -> None:
        self.text = text
        """As JSON; that of a view is its element's."""
        self._entries: dict[str, list[Any]] | None = entries
        self._read: Callable[[Element], dict[str, list[Any]]] | None = None
        self.element: Element | None = None
        """What it is a view of, if it was read."""

    @staticmethod
    def view(element: Element, read: Callable[[Element], dict[str, list[Any]]]) -> JsonObject:
        """What an element stands for; `read` gives its entries when they are asked for."""
        self = JsonObject({}, "")
        self._entries, self._read, self.element = None, read, element
        return self

    @property
    def entries(self) -> dict[str, list[Any]]:
        """Its values by key."""
        if self._entries is None:
            assert self._read is not None
            assert self.element is not None
            self._entries = self._read(self.element)
        return self._entries


class JsonArray:
    """An array: its members, each a sequence. It is not changed once it is made."""

    __slots__ = ("members", "text")

    def __init__(self, members: list[list[Any]], text: str | None = None) -> None:
        self.members = members
        self.text = text
        """As JSON, where a query has made it."""
