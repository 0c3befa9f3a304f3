"""Times in doubt: a query over an edited stream ends where nobody knows any more when its elements came (LAWS 4.9)."""

from __future__ import annotations

from anabranch.law.evolution.vantage import Change
from anabranch.stream.elements import DeadLetter
from anabranch.stream.path import Path
from anabranch.stream.reading.source import Source


def doubted_time(source: Source, change: Change) -> str | None:
    """Why a query over a stream ends with a change of it that leaves its times in doubt; None for another change."""
    if source.time is None or not isinstance(change, DeadLetter):
        return None
    for doubt in change.doubts:
        if _meet(source.time, doubt.path):
            told = f"the elements of stream '{source.name}' have their times at '{source.time}'"
            return f"{told}, which is unknown from here on: {change.reason}"
    return None


def _meet(one: Path, other: Path) -> bool:
    """Whether one of two paths leads on from the other."""
    common = min(len(one.steps), len(other.steps))
    return one.steps[:common] == other.steps[:common]
