"""Which queries over a stream of updates can be answered in strands, and in how many they are.

A query that has no strands belongs to one shard, so one task evaluates all its entries.
In strands it needs a stage more, and each strand reads and judges all updates; so it pays where there are many shards,
and more than such queries.
No answer depends on it, and a query stays as it has begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from anabranch.branch.display.branch import DisplayQuery
from anabranch.branch.display.continuous import ContinuousQuery
from anabranch.branch.display.strands import spreads
from anabranch.language import ast, parse
from anabranch.language.rewrite import parts
from anabranch.spark.plan.epoch_plan import StreamPlan
from anabranch.spark.plan.roles import MOST_STRANDS, Functions, Role
from anabranch.stream.reading.parse import parse_root

_MANY = 4
"""With fewer shards, to read all updates in each of them costs what it saves."""


def strands_for(asked: int | None, shards: int, others: int) -> int:
    """In how many strands a new query is answered if it can be, where there are others over updates; 0 for none.

    Without a number that was asked for, shards are shared out among such queries.
    """
    found = shards // (others + 1) if asked is None and shards >= _MANY else asked or 0
    return min(found, MOST_STRANDS) if found > 1 else 0


def can_be_divided(role: Role, streams: Mapping[str, StreamPlan], functions: Functions) -> bool:
    """Whether a query reads one stream of updates, entry by entry."""
    if not isinstance(role.query, DisplayQuery) or len(role.streams) != 1 or not streams.keys() >= set(role.streams):
        return False
    stream = streams[role.streams[0]]
    return stream.updates and _splits(role.query.text, stream.stream, stream.root, functions)


@lru_cache(maxsize=1 << 10)
def _splits(text: str, stream: str, root: str, functions: Functions) -> bool:
    query = parse(text)
    if any(isinstance(each, ast.Source) and each.kind == "doc" for each in parts(query)):
        return False  # what it says is not known before it is read
    return spreads(
        ContinuousQuery(query, {stream: parse_root(root.encode())}, functions=dict(functions), text=text).part
    )
