"""Followers: the accents in the output of queries of one lineage, as their streams evolve (LAWS 4).

The accents that come out depend on a query's lineage and policy, and on when it began, not on its constants; so queries
that agree in these share a follower, and thousands of subscriptions have a few.
Every host drives followers in the same way: it passes them the announced events of their streams in order, and writes
the accents that come out into the answers at that place.

When the drop of a path comes out, the items that a branch holds lose that path (LAWS 4.2 c, g).
The held items are not changed: the follower knows how many items had been taken then, and readers of these items see
them without the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from anabranch.algebra.accents.events import Announced, Event
from anabranch.algebra.accents.evolution import Evolution
from anabranch.algebra.accents.sets import UNDECLARED, Domains
from anabranch.algebra.reactions.readings import Reading, holds
from anabranch.algebra.reactions.signature import Policy
from anabranch.errors import Aborted
from anabranch.logic import EVERYTHING
from anabranch.runtime.evolution.lineage import Lineage
from anabranch.runtime.evolution.outlet import Outlet, Purge, exact
from anabranch.stream.elements import Accent, DeadLetter, Doubt, Drop, Punctuation
from anabranch.stream.path import Path
from anabranch.stream.reading.source import Source
from anabranch.stream.tree import Element


class Follower:
    """The accents that have come out so far; `hear` alone changes it."""

    def __init__(
        self,
        lineage: Lineage,
        policy: Policy,
        streams: Mapping[str, Source],
        *,
        sends: bool = False,
        passes: bool = False,
    ) -> None:
        """`sends` says that the output is tuples for other peers, in the units of their streams' beginning.

        With `passes` events are passed on between them, so nothing comes out here, and nothing is dropped.
        """
        self.lineage = lineage
        read = [[streams[name] for name in names] for names in lineage.streams]
        domains = [_common([Evolution.of(each).domains for each in given]) for given in read]
        partitions = [sum(len(each.partitions) for each in given) for given in read]
        self._first = [_first_partitions(names, streams) for names in lineage.streams]
        """By input and stream: the number of the stream's first partition among all of the input."""
        self.outlet = Outlet(lineage, policy=policy, domains=domains, partitions=partitions)
        self._sends = sends
        self._passes = passes
        self.purges: list[Purge] = []
        """What state must drop because of the latest event."""
        self._purged: list[tuple[int, Purge]] = []
        """All purges, with the number of items that had been taken then."""
        self.aborted: str | None = None
        """Why it has ended."""

    def hear(self, announced: Announced) -> tuple[Accent | Doubt, ...]:
        """Apply an event; gives the accents of the output, for each `for` over its stream in turn.

        For tuples that are sent to other peers, it gives the doubts from there on: the reader ends the queries that
        need the path.
        """
        self.purges = []
        if self.aborted is not None or self._passes:
            return ()
        found: list[Accent | Doubt] = []
        try:
            for input, first in enumerate(self._first):
                if announced.stream in first:
                    at = replace(announced, partition=first[announced.stream] + announced.partition)
                    found += self._doubts(input, announced.event) if self._sends else self._accents(input, at)
        except Aborted as error:
            self.aborted = error.message
            return ()
        self._purged += [(announced.taken, each) for each in self.purges]
        return tuple(found)

    def _accents(self, input: int, announced: Announced) -> tuple[Accent, ...]:
        found: tuple[Accent, ...] = ()
        match announced.event:
            case Accent() as accent:
                found = self.outlet.accent(input, accent, announced.partition)
            case Punctuation(where, place) if where is not None:
                found = self.outlet.punctuation(input, where, place, announced.partition)
            case DeadLetter(doubts=doubts, reason=reason):
                for doubt in doubts:
                    self.outlet.doubt(input, doubt.path, reason)
                return ()
            case _:
                return ()
        self.purges += self.outlet.purges
        return found

    def _doubts(self, input: int, event: Event) -> Iterator[Doubt]:
        """The doubts about the tuples; where they cannot be made any more, about all of them."""
        match event:
            case Accent(_, evolution, place):
                paths, reason = [evolution.path], f"tuples that travel have no accents ({place})"
            case DeadLetter(doubts=doubts, reason=why):
                paths, reason = [each.path for each in doubts], why
            case _:
                return
        for path in paths:
            if not self.lineage.reads(input, path):
                continue
            targets = self.lineage.targets(input, Drop(path)) if self.lineage.need(input, path) is None else ()
            if not targets:
                self.aborted = f"'{path}' is unknown from here on: {reason}"
                yield Doubt(Path(()), EVERYTHING)
                return
            yield from (Doubt(each.at, EVERYTHING) for each in targets)

    def reads(self, announced: Announced) -> bool:
        """Whether a query reads a path that an event is about."""
        return any(self.lineage.looks_at(announced.stream, path) for path in announced.paths)

    @property
    def has_purged(self) -> bool:
        """Whether items may have lost paths."""
        return bool(self._purged)

    def lost(self, number: int, input: int, tree: Element) -> frozenset[Path]:
        """The paths that an input's item has lost since it was taken, as the branch's item of this number."""
        found = [each for taken, each in self._purged if number < taken and each.input == input]
        return frozenset(each.path for each in found if holds(each.items, Reading(exact(tree))))


def _common(domains: Sequence[Domains]) -> Domains:
    """The domains of a Union: those that all its streams declare alike."""
    first, *others = domains
    shared = {path: each for path, each in first.items() if all(other.get(path) == each for other in others)}
    return shared or UNDECLARED


def _first_partitions(names: Sequence[str], streams: Mapping[str, Source]) -> dict[str, int]:
    found: dict[str, int] = {}
    before = 0
    for name in names:
        found[name] = before
        before += len(streams[name].partitions)
    return found
