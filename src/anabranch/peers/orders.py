"""The orders by which the peers of a network change their plan together, and what the parts of a network report.

A change is a sequence of orders, the same in one process and in several:

1. `hold`: each stream is read up to its present end where it comes in, and no further;
2. `end`: some flows have ended, each behind the last that was made of it; one order for each step downwards;
3. `plan`: the next plan is saved, and peers read what they have missed of the flows that are new to them;
4. `use`: all peers switch to their programs of that plan;
5. `go`: streams are read on.

Behind each order but the last everything that was sent is read, everywhere, before the next one is given.
In one process that is seen at once.
A network in parts is *settled* under an order if every part reports that it has carried it out and has nothing left to
do, and if each has taken all that the reports of the others say was sent to it.
One report of each part is enough: after its report a part becomes busy again only by a document that was not taken yet,
and the first such document would have been in its sender's report.

A part that is away cannot carry out orders, so it is asked for first (`call`), while the streams go on.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from anabranch.peers.records import SavedPlan

OrderKind: TypeAlias = Literal["call", "hold", "end", "plan", "use", "go"]
HOLDING: tuple[OrderKind, ...] = ("hold", "end", "plan", "use")
"""The orders under which streams are held."""


@dataclass(frozen=True, slots=True)
class PlanOrder:
    """A step of a change."""

    kind: OrderKind
    flows: tuple[str, ...] = ()
    """Of `end`: the flows that have ended; of `plan`: those whose readers are told what they have missed."""
    planned: SavedPlan | None = None
    """Of `plan`: the next plan, and the one before."""


@dataclass(frozen=True, slots=True)
class ReadSoFar:
    """What some peers have read, which the next plan depends on."""

    reads: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By peer: the flows that it reads, also those that nobody there asks for any more."""
    begun: Collection[str] = ()
    """The streams that come in there and have begun (LAWS 3.6)."""
    evolved: Collection[str] = ()
    """The streams that come in there and have had accents or punctuations."""
    has_read: bool = False
    """Whether anything was read at all."""
    alike: tuple[tuple[str, ...], ...] = ()
    """Flows of windows or tuples that carry the same from here on."""

    @staticmethod
    def together(parts: Iterable[ReadSoFar]) -> ReadSoFar:
        """That of all of them."""
        every = list(parts)
        return ReadSoFar(
            {peer: names for each in every for peer, names in each.reads.items()},
            frozenset(name for each in every for name in each.begun),
            frozenset(name for each in every for name in each.evolved),
            any(each.has_read for each in every),
            tuple(names for each in every for names in each.alike),
        )


@dataclass(frozen=True, slots=True)
class PartReport:
    """What a part of a network reports under an order, as soon as it has nothing left to do."""

    order: int
    """The number of the order."""
    peers: tuple[str, ...]
    """The super-peers of the part."""
    read: ReadSoFar = field(default_factory=ReadSoFar)
    sent: Mapping[str, str] = field(default_factory=dict)
    """The newest document that was sent, by link and partition (`link_key`)."""
    taken: Mapping[str, str] = field(default_factory=dict)
    """The newest document that was received and read, likewise."""


def link_key(flow: str, partition: int) -> str:
    """The name of a partition of a flow in records."""
    return json.dumps([flow, partition])


def missing(reports: Iterable[PartReport], peers: Iterable[str], order: int) -> list[str]:
    """The super-peers of which no report under an order has come."""
    there = {peer for each in reports if each.order == order for peer in each.peers}
    return [peer for peer in peers if peer not in there]


def is_settled(reports: Collection[PartReport], peers: Iterable[str], order: int) -> bool:
    """Whether all peers have carried out an order, and read all that was sent."""
    now = [each for each in reports if each.order == order]
    taken = {key: name for each in now for key, name in each.taken.items()}
    return not missing(now, peers, order) and all(
        taken.get(key, "") >= name for each in now for key, name in each.sent.items()
    )
