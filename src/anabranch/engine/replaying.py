"""Subscriptions that begin with what their streams' sources still hold, however long the site has run.

A late subscription sees what comes from its first epoch on (LAWS 3.6).
One that says `from = "beginning"` reads streams of its own: the same sources under names of their own,
`orders@mine.3fa2`; another query under its name has others.
Such a copy has the order log of the stream, and begins and ends no file or partition by itself, so it reads the same in
the same order, from the first file or offset of the stream on, and comes as far as the stream has come.
So its answer is that of a subscription which was there from the start, whatever others have seen, and no state of
theirs has to be made up for; the price is that its streams are read once more, for it alone, for good.

What an answer depends on and no source holds is refused: the moments at which elements came, where these are their
times and partitions, streams or lives are ordered by them, heartbeats, and what was pushed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from anabranch.errors import QueryError, UsageError
from anabranch.language import ast, parse, print_query
from anabranch.language.rewrite import parts, rebuild
from anabranch.stream.reading.source import Source


def replayed(name: str, text: str, streams: Mapping[str, Source]) -> tuple[str, dict[str, Source]]:
    """A checked query that reads streams of its own, from their beginnings, and these streams."""
    if text.startswith("{"):
        raise UsageError(f"'{name}' is a plan of operators, which cannot be read from the beginning")
    query = parse(text)
    read = _streams(query)
    mine = f"{name}.{sha256(text.encode()).hexdigest()[:4]}"
    alone = len(read) == 1
    own = {each: _own(name, mine, streams[each], streams, alone=alone) for each in sorted(read & streams.keys())}

    def visit(node: Any) -> Any:
        if isinstance(node, ast.Source) and node.kind == "stream" and node.name in own:
            return replace(node, name=own[node.name].name)
        return rebuild(node, visit)

    printed = print_query(visit(query))
    if not _reads(printed, (read - own.keys()) | {each.name for each in own.values()}):
        raise UsageError(
            f"'{name}' cannot begin with the beginning: the name cannot stand in a query",
            hint="choose one without control characters",
        )
    return printed, {each.name: each for each in own.values()}


def _streams(query: ast.Query) -> set[str]:
    """The streams that a query reads."""
    return {each.name for each in parts(query) if isinstance(each, ast.Source) and each.kind == "stream"}


def _reads(text: str, streams: Collection[str]) -> bool:
    """Whether a text is that of a query over just these streams."""
    try:
        return _streams(parse(text)) == streams
    except QueryError:
        return False


def _own(name: str, mine: str, source: Source, known: Collection[str], *, alone: bool) -> Source:
    """A stream once more, from its beginning, for one subscription; `alone` says that it reads no other."""
    if reason := _not_held(source, alone=alone):
        what, hint = reason
        raise UsageError(f"'{name}' cannot begin with the beginning: the stream '{source.name}' {what}", hint=hint)
    own = f"{source.name}@{mine}"
    if own in known:
        raise UsageError(f"there is a stream '{own}' already, which '{name}' needs to read from the beginning")
    return replace(source, name=own, replays=name, copies=source.name)


def _not_held(source: Source, *, alone: bool) -> tuple[str, str] | None:
    """What an answer depends on and the source of a stream does not hold, and what to do about it."""
    if source.answer:
        return "is an answer, which is not kept", "let it read the streams that the answer is made of"
    if source.http is not None:
        return "is pushed, and what was read of it is not kept", "subscribe before it is pushed"
    if source.heartbeat is not None:
        return "has heartbeats, which are not kept", "subscribe before it is read"
    if not source.is_timed and (source.is_divided or source.updates or not alone):
        return "declares no time, and when its elements came is not kept", "declare a 'time'"
    return None
