"""The histories that queries over one stream of updates have in common: matched, merged and widened.

What a query needs of the past of its streams (`retention.py`) is matched, merged and widened as its windows are.
A history serves another query where it lacks nothing: whoever keeps three versions has the two that another asks for.
The merged history of several queries reaches just as far back, path by path, as the farthest of them: it is of minimal
length for all, and it is narrower again when one of them leaves.

Queries share one history if they see the same *entries*, the children of the stream's root: then an entry has the same
number for each of them, and its answers name the same regions on the wire, whoever else asks.
Whether regions between entries have a past is part of that: without one, their content stands among the entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from anabranch.sharing.retention import CURRENT, Lookback, Needs, PathNeed, needed


@dataclass(frozen=True, slots=True)
class SharedHistory:
    """What a query needs of one stream that it reads entry by entry, and so may share with others."""

    stream: str
    needs: Needs
    root: str
    """The name of the stream's root."""

    @property
    def entries(self) -> list[Any]:
        """Equal for queries that share one history."""
        return [self.stream, *entries_seen(self.needs.streams[self.stream], self.root)]

    def lines(self) -> list[str]:
        """What is retained, in words, path by path."""
        return [line for _, line in self.needs.lines()]

    def added_to(self, other: SharedHistory) -> list[str]:
        """The paths that another one does not cover, with what this one needs of them in words."""
        return [f"{each.path}: {each.words}" if each.words else each.path for each in lacks(other.needs, self.needs)]


def merged(several: Iterable[Needs]) -> Needs:
    """What some queries need together; a stream is needed if one of them reads it."""
    streams: dict[str, PathNeed] = {}
    for needs in several:
        for stream, tree in needs.streams.items():
            _widen(streams.setdefault(stream, PathNeed(tree.label)), tree)
    return Needs(streams)


def _widen(tree: PathNeed, other: PathNeed) -> None:
    """Let a tree reach as far as another one does."""
    pending = [(tree, other)]
    while pending:
        into, given = pending.pop()
        into.reaches |= given.reaches
        into.below |= given.below
        into.touched = into.touched or given.touched
        pending += [(into.step(axis, label), step) for (axis, label), step in given.steps.items()]


def lacks(wide: Needs, narrow: Needs) -> Iterator[PathNeed]:
    """The steps of a query that the history of others does not cover: it reaches less far back there, or not at all."""
    pending = [(wide.streams.get(stream), tree) for stream, tree in narrow.streams.items()]
    while pending:
        has, asks = pending.pop(0)
        if has is None or not _reach(has.reaches, asks.reaches) or not _reach(has.below, asks.below):
            yield asks
        if has is not None:
            pending += [(has.steps.get(step), each) for step, each in asks.steps.items()]


def _reach(wide: Iterable[Lookback], narrow: Iterable[Lookback]) -> bool:
    farthest = needed(wide)
    return all(any(has.covers(each) for has in farthest) for each in narrow)


def entries_seen(tree: PathNeed, root: str) -> list[Any]:
    """Which entries of its stream a query sees below a root of this name, as plain data.

    It is equal for queries that can share one history.
    """
    found: list[Any] = [_past(tree.below)]
    for step in _steps(tree):
        found.append([*_seen(step)])
        if step.axis == "child" or step.label in (root, "*", "node()"):  # it may find the root
            found[-1] += [_past(step.below), sorted(map(_seen, _steps(step)))]
    return [found[0], *sorted(found[1:], key=repr)]


def _steps(tree: PathNeed) -> list[PathNeed]:
    return [step for step in tree.steps.values() if step.axis != "attribute"]


def _seen(step: PathNeed) -> tuple[str, str, int]:
    return step.axis, step.label, _past(step.reaches)


def _past(lookbacks: Iterable[Lookback]) -> int:
    """Whether something is looked at in no version, in the current one, or in earlier ones as well."""
    found = needed(lookbacks)
    return 0 if not found else 1 if found == {CURRENT} else 2
