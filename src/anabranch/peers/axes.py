"""By what it is told how far a stream is: the references of time windows over it, and its time where that counts."""

from __future__ import annotations

from collections.abc import Iterable

from anabranch.network.description import RegisteredStream
from anabranch.network.needs import Need
from anabranch.network.travelling import asks_when, references
from anabranch.spark.evolution.progress import ProgressAxis


def axes(stream: str, registered: RegisteredStream, needs: Iterable[Need]) -> tuple[ProgressAxis, ...]:
    """By what it is told how far a stream is, for those who need it.

    Where times decide in which order streams are merged, no item may be below those before it.
    """
    source = registered.source
    asking = [each for each in needs if stream in each.streams]
    is_merged = any(map(asks_when, asking))
    found = {path for need in asking for path in (references(need) or {}).get(stream, ())}
    if is_merged and source.time is not None:
        found.add(f"*/{source.time}")
    return tuple(ProgressAxis(path, "0" if is_merged else str(source.slack)) for path in sorted(found))
