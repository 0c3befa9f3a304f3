"""Subscriptions that begin with what their streams' sources still hold, however long the site has run.

A late subscription sees what comes from its first epoch on (LAWS 3.6).
One that says `from = "beginning"` reads streams of its own: the same sources under names of their own,
`orders@mine.3fa2`, from their first file or message on; another query under its name has others.
So its answer is that of a site which has just begun, whatever others have seen, and no state of theirs has to be made
up for; the price is that its streams are read once more, for it alone, also when it has caught up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from anabranch.errors import UsageError
from anabranch.language import ast, parse, print_query
from anabranch.language.rewrite import parts, rebuild
from anabranch.stream.reading.source import Source


def replayed(name: str, text: str, streams: Mapping[str, Source]) -> tuple[str, dict[str, Source]]:
    """A checked query that reads streams of its own, from their beginnings, and these streams."""
    if text.startswith("{"):
        raise UsageError(f"'{name}' is a plan of operators, which cannot be read from the beginning")
    query = parse(text)
    read = {each.name for each in parts(query) if isinstance(each, ast.Source) and each.kind == "stream"}
    mine = f"{name}.{sha256(text.encode()).hexdigest()[:4]}"
    own = {each: _own(name, mine, streams[each], streams) for each in sorted(read & streams.keys())}

    def visit(node: Any) -> Any:
        if isinstance(node, ast.Source) and node.kind == "stream" and node.name in own:
            return replace(node, name=own[node.name].name)
        return rebuild(node, visit)

    return print_query(visit(query)), {each.name: each for each in own.values()}


def _own(name: str, mine: str, source: Source, known: Collection[str]) -> Source:
    """A stream once more, from its beginning, for one subscription."""
    if source.answer:
        raise UsageError(
            f"'{name}' cannot be read from the beginning: the stream '{source.name}' is an answer, which is not kept",
            hint="let it read the streams that the answer is made of",
        )
    own = f"{source.name}@{mine}"
    if own in known:
        raise UsageError(f"there is a stream '{own}' already, which '{name}' needs to read from the beginning")
    topic = source.topic and replace(source.topic, start="earliest", offsets=())
    return replace(source, name=own, topic=topic, replays=name)
