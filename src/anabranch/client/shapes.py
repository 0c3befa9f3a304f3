"""Replies of a service taken apart: an entry that is missing or of another type is the service's fault, and said so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from anabranch.client.refusals import RemoteError

Value = TypeVar("Value")


def entry(reply: Any, name: str, kind: type[Value]) -> Value:
    """An entry of an object in JSON, of this type."""
    value = reply.get(name) if isinstance(reply, dict) else None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise RemoteError(f"the service has answered without '{name}'", hint="is it of another version?")
    return value


def record(reply: Any) -> dict[str, Any]:
    """An object in JSON."""
    if not isinstance(reply, dict):
        raise RemoteError("the service has answered with something else than an object")
    return reply


def records(reply: Any, name: str) -> list[dict[str, Any]]:
    """A list of objects."""
    return [record(each) for each in entry(reply, name, list)]


def pages(
    ask: Callable[[str | int | None], Any], name: str, after: str | int | None = None
) -> Iterator[dict[str, Any]]:
    """The objects of all pages, each page asked for when it is needed, by the cursor of the one before."""
    while True:
        reply = ask(after)
        yield from records(reply, name)
        following = reply.get("next")
        if following is None or reply.get("more") is False:
            return
        if not isinstance(following, str | int) or following == after:
            raise RemoteError("the service has answered with a page that leads nowhere")
        after = following
