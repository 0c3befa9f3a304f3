"""Operators over windows and tuples as text: one line of JSON, which a trunk accepts as a subscription's text.

    {"windows":"make","query":"<photons>{ for $w in stream(\\"photons\\")/photons/photon |...| ... }</photons>"}
    {"tuples":"send","query":"<r_r>{ for $p1 in stream(\\"s\\")/r/i |...| ... return <i_i>...</i_i> }</r_r>"}
    {"tuples":"read","query":"...","of":"<r_r>...</r_r>","stream":"s+u.3"}

A property tree is written as its abstract query, from which the same tree is derived again (`sharing/render.py`); so
reading uses the parser and checks of all queries, and nothing is executed.
The text is canonical, and no query begins like it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import Any

from anabranch.errors import AnabranchError, StateError, UsageError
from anabranch.language import check, parse
from anabranch.sharing.forest import PropertyForest
from anabranch.sharing.match import matches
from anabranch.sharing.remote import (
    CombineWindows,
    MakeWindows,
    OverWindows,
    ReadTuples,
    ReadWindows,
    SendTuples,
    SentOperator,
)
from anabranch.sharing.render import render, render_join
from anabranch.sharing.restructure import sent_windows
from anabranch.sharing.rules.derive import derive, derive_forest
from anabranch.sharing.tree import PropertyTree

_BEGINS = ('{"windows":', '{"tuples":')


def is_sent(text: str) -> bool:
    """Whether a subscription's text is that of an operator over windows or tuples."""
    return text.startswith(_BEGINS)


def stream_of(operator: OverWindows) -> str:
    """The stream that an operator over windows reads."""
    match operator:
        case MakeWindows(tree):
            return tree.stream
        case CombineWindows(_, source) | ReadWindows(CombineWindows(_, source)):
            return source.stream


def write_tuples(query: str, *, evolving: bool) -> str:
    """The text of a subscription that sends the tuples of a query, whose streams may evolve."""
    return _json({"tuples": "send with accents" if evolving else "send", "query": query})


def write_reading(operator: ReadTuples) -> str:
    """The text of an operator over tuples that may have accents between them."""
    how = "select" if operator.sends else "read"
    return _json({"tuples": how, "query": operator.text, "of": render_join(operator.tuples), "stream": operator.stream})


def write_sent(operator: OverWindows, stream: str) -> str:
    """The text of an operator over windows that reads a stream of this name."""
    match operator:
        case MakeWindows(tree):
            fields = {"windows": "make", "query": _tree_text(tree, stream)}
        case CombineWindows(tree, source):
            query = _tree_text(tree, stream)
            fields = {"windows": "put together", "query": query, "of": _tree_text(source, stream)}
        case ReadWindows(CombineWindows(_, source), text):
            fields = {"windows": "read", "query": text, "of": _tree_text(source, stream)}
    return _json(fields)


def _json(fields: dict[str, str]) -> str:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def _tree_text(tree: PropertyTree, stream: str) -> str:
    named = replace(tree, stream=stream)
    text = render(named)
    if not matches(_tree(text), named):
        raise UsageError("these windows cannot be written down", hint="send the items")
    return text


@lru_cache(maxsize=1 << 10)
def read_sent(text: str) -> SentOperator:
    """The operator of a text, parsed once per process; StateError where it is damaged."""
    try:
        return _read(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError, AnabranchError) as error:
        raise StateError(f"the text of an operator over windows or tuples is damaged: {error}") from None


def _read(found: Any) -> SentOperator:
    match found:
        case {"windows": "make", "query": str(query), **others} if not others:
            return MakeWindows(_tree(query))
        case {"windows": "put together", "query": str(query), "of": str(source), **others} if not others:
            return CombineWindows(_tree(query), _tree(source))
        case {"windows": "read", "query": str(text), "of": str(source), **others} if not others:
            return ReadWindows(CombineWindows(sent_windows(check(parse(text), text).query), _tree(source)), text)
        case {"tuples": "send" | "send with accents" as how, "query": str(query), **others} if not others:
            check(parse(query), query)
            return SendTuples(query, how != "send")
        case {
            "tuples": "read" | "select" as how,
            "query": str(query),
            "of": str(tuples),
            "stream": str(stream),
            **others,
        } if not others:
            check(parse(query), query)
            return ReadTuples(query, _forest(tuples), stream, how == "select")
        case _:
            raise ValueError("it is none that is known")


def _forest(text: str) -> PropertyForest:
    forest = derive_forest(check(parse(text), text).query)
    if forest.kind == "apart":
        raise ValueError("tuples are those of a join")
    return forest


def _tree(text: str) -> PropertyTree:
    tree = derive(check(parse(text), text).query)
    if tree.window is None or tree.outputs:
        raise ValueError("windows that are sent have values only")
    return tree
