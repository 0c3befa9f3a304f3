"""Which queries about the past of items can be answered as they come, and what each needs.

Some of them read streams of updates as well, which are documents: a round looks at them as they are when its item
arrives.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anabranch.errors import Unsupported
from anabranch.language import ast
from anabranch.language.rewrite import parts, rebuild
from anabranch.law.arrivals.mixed import mixes
from anabranch.law.arrivals.past import named
from anabranch.law.arrivals.recall import asks
from anabranch.law.calls import PythonFunction
from anabranch.runtime.past.recollection import PastPath, asked_of, only_past
from anabranch.runtime.standing import Standing, standing


@dataclass(frozen=True, slots=True)
class RecalledQuery:
    """A checked query about the past of items that can be answered as they come."""

    query: ast.Query
    text: str
    streams: tuple[str, ...]
    asked: tuple[PastPath, ...]
    standing: Standing | None
    """How its results stand, one round after the other; None where it is on display."""
    edited: tuple[str, ...] = ()
    """The streams of updates among those that it reads."""


def recalled_query(
    query: ast.Query,
    functions: Mapping[str, PythonFunction] | None = None,
    text: str | None = None,
    edited: Collection[str] = (),
) -> RecalledQuery | None:
    """A query about the past, where it is known beforehand how much of it is needed; None for any other.

    One that reads streams of updates, which are given by name, is one only where results stand or arrivals count.
    """
    streams = named(query)
    beside = tuple(each for each in streams if each in edited)
    if beside:
        return _mixed(query, functions, text, streams, beside)
    if not asks(query):
        return None
    whole = standing(query, functions, text, past=True)
    asked = asked_of(query)
    if asked is None:
        return None
    if whole.kind == "items":
        return RecalledQuery(query, whole.text, whole.streams, asked, whole)
    return RecalledQuery(query, text or "", streams, asked, None) if only_past(query) else None


def refuse_mixture(query: ast.Query, past: RecalledQuery | None, edited: Collection[str], text: str, name: str) -> None:
    """Refuse a query over streams of items and of updates of which it is not known how much of the items it needs.

    Of others that is known, and `past` tells it.
    """
    items = [each for each in named(query) if each not in edited]
    if past is None and len(items) < len(named(query)) and mixes(query, items):
        sources = (part for part in parts(query) if isinstance(part, ast.Source))
        raise Unsupported(
            "how much of a stream of items this needs, beside a stream of updates, is not known beforehand",
            text=text,
            span=next(each.span for each in sources if each.name in items),
            name=name,
            hint="put '#[v]' or '?[t]' behind its path, or have one 'for' over it around all else",
        )


def _mixed(
    query: ast.Query,
    functions: Mapping[str, PythonFunction] | None,
    text: str | None,
    streams: tuple[str, ...],
    beside: tuple[str, ...],
) -> RecalledQuery | None:
    items = [each for each in streams if each not in beside]
    asked = asked_of(query, beside) if mixes(query, items) else None
    if asked is None:
        return None
    whole = standing(_turned(query, "stream", "doc", beside), functions, text, past=True)
    if whole.kind == "items" and isinstance(whole.hole, ast.Flwor):
        hole = _turned(whole.hole, "doc", "stream", beside)
        return RecalledQuery(
            query, whole.text, streams, asked, replace(whole, query=query, hole=hole, streams=streams), beside
        )
    return RecalledQuery(query, text or "", streams, asked, None, beside) if only_past(query, beside) else None


def _turned(node: Any, kind: str, other: str, names: Collection[str]) -> Any:
    """A part of a query with some of its inputs taken for what they are not: a document is there as a whole."""

    def visit(part: Any) -> Any:
        if isinstance(part, ast.Source) and part.kind == kind and part.name in names:
            return replace(part, kind=other)  # type: ignore[arg-type]  # one of the two kinds
        return rebuild(part, visit)

    return visit(node)
