"""Which queries about the past of items can be answered incrementally, and what each needs.

Some of them also read streams of updates, which are documents: a round reads them as of the arrival of its item.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anabranch.branch.past.values import reads
from anabranch.errors import Unsupported
from anabranch.language import ast
from anabranch.language.rewrite import parts, rebuild
from anabranch.language.versions import asks_otherwise, is_closed, moves_inside, value_past
from anabranch.law.arrivals.mixed import mixes
from anabranch.law.arrivals.past import named
from anabranch.law.arrivals.recall import asks
from anabranch.law.calls import PythonFunction
from anabranch.law.env import Env
from anabranch.runtime.past.recollection import PastPath, asked_of, only_past
from anabranch.runtime.past.value_histories import histories_of
from anabranch.runtime.standing import Standing, standing
from anabranch.sharing.needs import needs_of


@dataclass(frozen=True, slots=True)
class RecalledQuery:
    """A checked query about the past of items that can be answered incrementally."""

    query: ast.Query
    text: str
    streams: tuple[str, ...]
    asked: tuple[PastPath, ...]
    standing: Standing | None
    """The frame of results that stand, item by item or window by window; None where the answer is a display."""
    edited: tuple[str, ...] = ()
    """The streams of updates that it reads."""

    @property
    def has_windows(self) -> bool:
        """Whether its results are those of windows that close."""
        return self.standing is not None and self.standing.kind != "items"


def recalled_query(
    query: ast.Query,
    functions: Mapping[str, PythonFunction] | None = None,
    text: str | None = None,
    edited: Collection[str] = (),
) -> RecalledQuery | None:
    """A query about the past, where its need of the past is bounded; None for any other.

    A query over the streams of updates `edited` is one only where results stand or arrivals count.
    """
    streams = named(query)
    beside = tuple(each for each in streams if each in edited)
    if beside:
        return _mixed(query, functions, text, streams, beside)
    if not asks(query) or not _knows_values(query, ()):
        return None
    whole = standing(query, functions, text, past=True)
    asked = asked_of(query)
    if asked is None:
        return None
    in_windows = whole.kind in ("windows", "step join") and not any(map(asks, whole.fors))
    if whole.kind == "items" or in_windows:
        return RecalledQuery(query, whole.text, whole.streams, asked, whole)
    return RecalledQuery(query, text or "", streams, asked, None) if only_past(query) else None


def _knows_values(query: ast.Query, beside: Collection[str]) -> bool:
    """Whether the values that a query asks for of what is no path can be kept up to date.

    The streams `beside` are those of updates.
    """
    if needs_of(query).evaluates_back and (beside or any(_looks_around(query, each) for each in parts(query))):
        return False
    for expression, namespaces in histories_of(query):
        own = replace(query, body=expression)
        if namespaces != frozenset(Env.of(query).namespaces.items()):
            return False
        if asks_otherwise(expression) or reads(query, expression, beside):
            items = [each for each in named(own) if each not in beside]
            if items and not only_past(own, beside):
                return False
        elif any(isinstance(each, ast.For) and each.window is not None for each in parts(expression)):
            return False
    return True


def _looks_around(query: ast.Query, part: object) -> bool:
    """Whether a part asks for values of an expression with variables that looks back itself, or reads streams."""
    past = value_past(part)
    if past is None or not past.has_versions or is_closed(past.expression):
        return False
    return asks(past.expression) or bool(named(replace(query, body=past.expression)))


def refuse_unfollowed(
    query: ast.Query, past: RecalledQuery | None, edited: Collection[str], text: str, name: str
) -> None:
    """Refuse a query over updates that cannot be followed moment by moment.

    How much it needs of items beside them may not be known; `past` is the query where it is.
    Or it asks what an expression with variables was before time alone has changed it: only moments are kept at which
    something has come.
    """
    moving = moves_inside(query) if past is None and any(each in edited for each in named(query)) else None
    if moving is not None:
        raise Unsupported(
            "when time has changed the value of an expression with variables is not kept",
            text=text,
            span=moving.span,
            name=name,
            hint="ask for the past by '#' inside of it, or put what looks back by time outside; 'anabranch query' "
            "answers this one",
        )
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
    asked = asked_of(query, beside) if mixes(query, items) and _knows_values(query, beside) else None
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
    """A part of a query with the kind of some inputs replaced: a document is there as a whole."""

    def visit(part: Any) -> Any:
        if isinstance(part, ast.Source) and part.kind == kind and part.name in names:
            return replace(part, kind=other)  # type: ignore[arg-type]  # one of the two kinds
        return rebuild(part, visit)

    return visit(node)
