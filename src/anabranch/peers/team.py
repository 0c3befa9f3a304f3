"""The peers of a network, which are run together and go over together from one plan to the next.

Peers are run in rounds, each to the end of what has reached it, until nothing is left to read anywhere (`drain`).
Then every peer stands at the same place of every stream, and the next plan may begin.

A change takes three steps, and the first is durable before the others begin; whoever is killed in between does them
again:

1. the next plan is written down;
2. peers begin to read the flows that are new to them; these are told first what they have missed: that the stream has
   begun (LAWS 3.6), and where it has evolved or is edited, all of it;
3. all peers go over to what the plan wants of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from anabranch.network.catalogue import Catalogue, Flow
from anabranch.network.description import RegisteredStream
from anabranch.peers.links import Link
from anabranch.peers.peer import Peer
from anabranch.peers.programs import Sources, is_items, programs
from anabranch.peers.records import Planned

_BEGUN = '<s:punctuation xmlns:s="urn:anabranch:stream" at="0"/>'
"""Says nothing but that a stream has begun."""


class Team:
    """The peers, and the plan that is in force among them; one at a time may tell them what to do."""

    def __init__(
        self,
        folder: Path,
        peers: Mapping[str, Peer],
        streams: Mapping[str, RegisteredStream],
        run: Callable[[Iterable[Peer]], None],
    ) -> None:
        """`run` runs some peers, one after the other or side by side; `streams` may change in between."""
        self.peers = peers
        self._folder = folder
        self._streams = streams
        self._run = run
        self._ended: set[str] = set()
        """Flows of which nothing more comes."""
        self.planned = Planned(0, 0, Catalogue({}, {}))

    @property
    def record(self) -> Path:
        """Where the plan is written down."""
        return self._folder / "plan.json"

    @property
    def has_begun(self) -> bool:
        """Whether anything was read."""
        return any(peer.last() is not None for peer in self.peers.values())

    def drain(self) -> None:
        """Run all peers until nothing is left to read anywhere."""
        while True:
            busy = [peer for peer in self.peers.values() if peer.has_news()]
            self._run(busy)
            handed_on = [peer.hand_on(self._link) for peer in self.peers.values()]
            if not busy and not any(handed_on):
                return

    def _link(self, flow: str) -> Link:
        now, before = self.planned.now, self.planned.before
        found = before.flows[flow] if before and flow in before.flows else now.flows[flow]
        return self._sources.link(found)

    @property
    def _sources(self) -> Sources:
        return Sources(self._streams, self._folder / "links", frozenset(self._ended))

    # --- plans ----------------------------------------------------------------------------------------------

    def take_up(self, planned: Planned) -> None:
        """Be where a run before was, and finish what it had begun."""
        self._want(planned.before or planned.now, planned.number - (planned.before is not None))
        for peer in self.peers.values():
            peer.send()
        self.planned = planned
        if planned.before is not None:
            self._change_over(planned, planned.before)

    def switch(self, catalogue: Catalogue, flows: int) -> None:
        """Go over to another plan, now that everything has been read; so many flows have had a number."""
        before = self.planned.now
        planned = Planned(self.planned.number + 1, flows, catalogue, before)
        planned.save(self.record)
        self._change_over(planned, before)

    def end(self, stream: str) -> None:
        """Let a stream end where it comes in, then all that is made of it, from peer to peer."""
        self.drain()
        for flow in self.planned.now.downwards():
            if flow.streams == (stream,):
                self._ended.add(flow.name)
                self._want(self.planned.now, self.planned.number)
                self.drain()

    def _want(self, catalogue: Catalogue, number: int) -> None:
        for name, program in programs(catalogue, self._sources, tuple(self.peers)).items():
            self.peers[name].want(program, number)

    def _change_over(self, planned: Planned, before: Catalogue) -> None:
        for flow in planned.now.hops:
            self._sources.link(flow).make()
            if flow.name not in before.flows and is_items(flow):
                self._tell_missed(flow, planned.number)
        self._catch_up(planned)
        self._want(planned.now, planned.number)
        self.planned = replace(planned, before=None)
        self.planned.save(self.record)
        for flow in before.hops:
            if flow.name not in planned.now.flows:
                self._sources.link(flow).remove()
        self._ended &= planned.now.flows.keys()

    def _catch_up(self, planned: Planned) -> None:
        """Have peers read what has been sent of flows that are new to them, before they ask anything of it."""
        new = programs(planned.now, self._sources, tuple(self.peers))
        sent = {each.name for each in planned.now.hops if self._sources.link(each).bytes}
        behind = {
            name: sent & new[name].streams.keys() - peer.program.streams.keys() for name, peer in self.peers.items()
        }
        if any(behind.values()):
            for name, peer in self.peers.items():
                peer.want(peer.program.reading({each: new[name].streams[each] for each in behind[name]}), peer.plan)
            self.drain()

    def _tell_missed(self, flow: Flow, plan: int) -> None:
        """Have a new flow begin with what its reader must know of what it has missed."""
        (stream,) = flow.streams
        origin = self._streams[stream]
        peer = self.peers[origin.at]
        last = peer.last()
        if last is None or stream not in last.begun:
            return
        link = self._sources.link(flow)
        partitions: dict[int, list[str]] = {number: [_BEGUN] for number in range(link.partitions)}
        if origin.source.updates or stream in last.evolution:
            for number, text in peer.sender.history(stream):
                partitions[number].append(text)
        for number, texts in partitions.items():
            link.append(plan, 0, peer.sender.root(stream), texts, number)
