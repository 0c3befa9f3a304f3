"""Names in paths: any name is one part of a path, also one with a slash in it, which is sent as %2F.

A server decodes a path before routes see it, and would take such a slash for one between two parts.
So a path is decoded again here, part by part, with half a character in place of a slash within a part: no name has one
(`check_name`). Routes give it back by the convertor `name`, as in "/{name:name}/answers".
"""

from __future__ import annotations

from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import Scope

_SLASH = "\udc2f"


class NameConvertor(Convertor[str]):
    """A part of a path as the name that it is."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return value.replace(_SLASH, "/")

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("name", NameConvertor())


def with_names(scope: Scope) -> Scope:
    """A request whose path has slashes between its parts only."""
    raw: bytes = scope.get("raw_path") or b""
    if b"%2f" not in raw.lower() or not scope["path"].startswith("/api/"):
        return scope
    parts = raw.partition(b"?")[0].decode("latin-1").split("/")
    return {**scope, "path": "/".join(unquote(each).replace("/", _SLASH) for each in parts)}
