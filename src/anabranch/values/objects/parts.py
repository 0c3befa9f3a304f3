"""Items of JSON with some of their members only, in the types that they have (LAWS 7.1).

A member that is asked for stays as it is, with all that it holds.
One on the way to it keeps what it is: of an object, also one in an array, the members asked for are left, maybe none;
anything else, a text, a number, `null` or an array without members, has nothing to leave out and stays, and so does an
array that is a member of an array, with all that it holds.
So a path or a lookup that leads to members asked for finds the same values, with the same spellings, in the same places
of the same arrays, and fails for the same reason where it does.

    >>> from anabranch.stream.limits import Limits
    >>> from anabranch.stream.reading.json_items import parse_records, write_value
    >>> [item] = parse_records(b'{"a": {"b": 1.50, "c": 2}, "d": [], "e": null}', Limits(), "i")
    >>> write_value(with_members(item, members_at([("a", "b"), ("d",)])))
    '{"a": {"b": 1.50}, "d": []}'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from anabranch.stream.tree import Child, Element

Members: TypeAlias = Mapping[str, "Members | None"]
"""By the name of a member: those of its own that are asked for, or None for all that it holds."""


def members_at(paths: Iterable[tuple[str, ...]]) -> Members | None:
    """The members at some paths; None where the whole is asked for."""
    inner: dict[str, list[tuple[str, ...]]] = {}
    for path in paths:
        if not path:
            return None
        inner.setdefault(path[0], []).append(path[1:])
    return {name: members_at(each) for name, each in inner.items()}


def with_members(element: Element, members: Members | None) -> Element:
    """An element of JSON with these members only, which may be written but has no place in a tree."""
    mark = element.mark
    if members is None or mark is None or mark.kind != "object":
        return element
    kept: list[Child] = []
    empty: list[tuple[int, str]] = []
    ahead = list(mark.empty)
    for place, child in enumerate((*element.children, None)):
        while ahead and (ahead[0][0] <= place or child is None):
            _, name = ahead.pop(0)
            empty += [(len(kept), name)] if name in members else []
        if isinstance(child, Element) and str(child.name) in members:
            kept.append(with_members(child, members[str(child.name)]))
    found = Element(element.name, mark=replace(mark, empty=tuple(empty), types=()))
    found.children = kept
    return found
