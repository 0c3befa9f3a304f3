"""Operators over windows and tuples as text: one line of JSON, which a trunk accepts as a subscription's text.

    {"windows":"make","query":"<photons>{ for $w in stream(\\"photons\\")/photons/photon |...| ... }</photons>"}
    {"tuples":"send","query":"<r_r>{ for $p1 in stream(\\"s\\")/r/i |...| ... return <i_i>...</i_i> }</r_r>"}

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
from anabranch.sharing.match import matches
from anabranch.sharing.remote import CombineWindows, MakeWindows, OverWindows, ReadWindows, SendTuples, SentOperator
from anabranch.sharing.render import render
from anabranch.sharing.restructure import sent_windows
from anabranch.sharing.rules.derive import derive
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


def write_tuples(query: str) -> str:
    """The text of a subscription that sends the tuples of a query."""
    return _json({"tuples": "send", "query": query})


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
        case {"tuples": "send", "query": str(query), **others} if not others:
            check(parse(query), query)
            return SendTuples(query)
        case _:
            raise ValueError("it is none that is known")


def _tree(text: str) -> PropertyTree:
    tree = derive(check(parse(text), text).query)
    if tree.window is None or tree.window.reference is None or tree.outputs:
        raise ValueError("windows that are sent are of time, and have values only")
    return tree
