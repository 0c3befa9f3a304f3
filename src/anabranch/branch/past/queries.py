"""Which queries about the past of items can be answered as they come, and what each needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.branch.ports import Output
from anabranch.language import ast
from anabranch.reference.arrivals.asked import Asked, asked_of, only_past
from anabranch.reference.arrivals.past import named
from anabranch.reference.arrivals.recall import asks
from anabranch.reference.arrivals.remember import shape_of
from anabranch.reference.calls import PythonFunction
from anabranch.reference.standing import Standing


@dataclass(frozen=True, slots=True)
class RecalledQuery:
    """A checked query about the past of items that can be answered as they come."""

    query: ast.Query
    text: str
    streams: tuple[str, ...]
    asked: tuple[Asked, ...]
    standing: Standing | None
    """How its results stand, one round after the other; None where it is on display."""


def recalled_query(
    query: ast.Query, functions: Mapping[str, PythonFunction] | None = None, text: str | None = None
) -> RecalledQuery | None:
    """A query about the past, where it is known beforehand how much of it is needed; None for any other."""
    if not asks(query):
        return None
    shape = shape_of(query, functions, text)
    if shape is not None:
        return RecalledQuery(query, shape.standing.text, shape.standing.streams, shape.asked, shape.standing)
    asked = asked_of(query) if only_past(query) else None
    return None if asked is None else RecalledQuery(query, text or "", named(query), asked, None)


@dataclass(frozen=True, slots=True)
class RecalledMember:
    """A query that a branch serves."""

    key: str
    name: str
    query: RecalledQuery
    out: Output
