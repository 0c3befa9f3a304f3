"""The peers of a network, which are run together and go over together from one plan to the next.

Epochs of peers come by themselves, or peers are run in rounds, each to the end of what has reached it.
For a change all streams are held where they are, and rounds go on until nothing is left to read anywhere (`quiet`).
Then every peer stands at the same place of every stream, and the next plan may begin; what has come meanwhile is read
when it is in force.
Where it counts when something came, of streams that do not say it themselves (LAWS 1.3), peers are run in turn, and
what each of them has brought is everywhere before the next looks at its clock; so whoever merges streams has had
everything that came before.

A change takes three steps, and the first is durable before the others begin; whoever is killed in between does them
again:

1. the next plan is written down;
2. peers begin to read the flows that are new to them; these are told first what they have missed: that the stream has
   begun (LAWS 3.6), and where it has evolved or is edited, all of it;
3. all peers go over to what the plan wants of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from anabranch.network.catalogue import Catalogue, Flow
from anabranch.network.description import RegisteredStream
from anabranch.peers.links import Link
from anabranch.peers.peer import Peer
from anabranch.peers.programs import PeerProgram, Sources, is_items, programs
from anabranch.peers.records import SavedPlan

_BEGUN = '<s:punctuation xmlns:s="urn:anabranch:stream" at="0"/>'
"""Says nothing but that a stream has begun."""


class Team:
    """The peers, and the plan that is in force among them; one at a time may tell them what to do."""

    def __init__(
        self, folder: Path, peers: Mapping[str, Peer], streams: Mapping[str, RegisteredStream], pool: Executor
    ) -> None:
        """Peers are run by the threads of a pool; `streams` may change in between."""
        self.peers = peers
        self._folder = folder
        self._streams = streams
        self._pool = pool
        self._ended: set[str] = set()
        """Flows of which nothing more comes."""
        self._holds = 0
        self.planned = SavedPlan(0, 0, Catalogue({}, {}))
        self._started = False
        self.by_itself = False
        """Whether epochs come by themselves now, and have to be passed on; otherwise peers have to be run."""

    @property
    def record(self) -> Path:
        """Where the plan is written down."""
        return self._folder / "plan.json"

    @property
    def has_begun(self) -> bool:
        """Whether anything was read."""
        return any(peer.last() is not None for peer in self.peers.values())

    def drain(self) -> None:
        """Run peers until nothing is left to read anywhere."""
        while self.round():
            pass

    def round(self) -> bool:
        """Run the peers for which something has come; whether there was anything."""
        busy = [peer for peer in self.peers.values() if peer.has_news()]
        apart = [peer for peer in busy if not peer.program.in_turn]
        for _ in self._pool.map(Peer.run, apart):
            pass  # what one of them raises is raised here
        handed_on = self._hand_on(apart)
        for peer in busy:
            if peer.program.in_turn:
                peer.run()
                self._hand_on_all([peer])
        return bool(busy or handed_on)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Have all read that is there now, everywhere; until the end of this context nothing more is."""
        self._holds += 1
        try:
            for peer in self.peers.values():
                peer.hold(self._holds)
            self.drain()
            yield
        finally:
            self._release()

    def _release(self) -> None:
        for peer in self.peers.values():
            peer.release()

    def start(self) -> None:
        """Let epochs come by themselves, where peers can do that and none has to be run in turn."""
        self._started = True
        self._let_go()

    def _let_go(self) -> None:
        peers = self.peers.values()
        self.by_itself = self._started and not any(peer.program.in_turn for peer in peers)
        if self.by_itself:  # said beforehand: their first epochs come before the last of them has begun
            self.by_itself = all(peer.runner.start() for peer in peers)
            if not self.by_itself:
                self._halt()

    def pass_on(self, committed: Collection[str]) -> None:
        """Send what some peers have committed by themselves; raises what has kept others from it."""
        for peer in self.peers.values():
            peer.runner.check()
        made = [self.peers[name] for name in committed]
        for peer in made:
            peer.send()
        self._hand_on_all(made)

    def stop(self) -> None:
        """Have no epochs come by themselves."""
        self._started = self.by_itself = False
        self._halt()

    def _halt(self) -> None:
        for peer in self.peers.values():
            peer.runner.stop()
        self.pass_on(self.peers)

    def _hand_on_all(self, made: Sequence[Peer]) -> None:
        """Hand on what is only passed on as far as it goes."""
        while made:
            made = self._hand_on(made)

    def _hand_on(self, made: Sequence[Peer]) -> list[Peer]:
        """Hand on what is only passed on, now that some peers have made something; gives those that had anything."""
        handed_on = [peer for peer in self.peers.values() if peer.hand_on(self._link)]
        for peer in (*made, *handed_on):
            peer.forget(self._link)
        return handed_on

    def _link(self, flow: str) -> Link:
        now, before = self.planned.now, self.planned.before
        found = before.flows[flow] if before and flow in before.flows else now.flows[flow]
        return self._sources.link(found)

    @property
    def _sources(self) -> Sources:
        return Sources(self._streams, self._folder / "links", frozenset(self._ended))

    # --- plans ----------------------------------------------------------------------------------------------

    def take_up(self, planned: SavedPlan) -> None:
        """Be where a run before was, and finish what it had begun."""
        for peer in self.peers.values():
            peer.hold(0)  # what flows are told of a stream may have been written down already
        self._want(planned.before or planned.now, planned.number - (planned.before is not None))
        for peer in self.peers.values():
            peer.send()
        self.planned = planned
        if planned.before is not None:
            self._change_over(planned, planned.before)
        elif planned.streams != (streams := self._read_in(planned.now)):
            self.planned = replace(planned, streams=streams)  # they may lie elsewhere now
            self.planned.save(self.record)
        self._release()

    def switch(self, catalogue: Catalogue, flows: int) -> None:
        """Go over to another plan, now that all is quiet; so many flows have had a number."""
        before = self.planned.now
        planned = SavedPlan(self.planned.number + 1, flows, catalogue, before, self._read_in(catalogue, before))
        planned.save(self.record)
        self._change_over(planned, before)

    def end(self, stream: str) -> None:
        """Let a stream end where it comes in, then all that is made of nothing else, from peer to peer."""
        with self.quiet():
            for flow in self.planned.now.downwards():
                if flow.name == stream or (flow.inputs and self._ended.issuperset(flow.inputs)):
                    self._ended.add(flow.name)
                    self._want(self.planned.now, self.planned.number)
                    self.drain()

    def _read_in(self, *catalogues: Catalogue) -> dict[str, RegisteredStream]:
        """The streams that are read in some plans."""
        return {name: each for name, each in self._streams.items() if any(name in plan.flows for plan in catalogues)}

    def _programs(self, catalogue: Catalogue) -> dict[str, PeerProgram]:
        """What peers do.

        A peer that has begun to read a flow with accents or updates reads on while no subscription needs the flow:
        otherwise it would miss what changed meanwhile.
        """
        found = programs(catalogue, self._sources, tuple(self.peers))
        for flow in catalogue.hops:
            last = self.peers[flow.at].last() if is_items(flow) and flow.name not in found[flow.at].streams else None
            if last is not None and (
                flow.name in last.evolution
                or (self._sources.origin(flow).source.updates and f"{flow.name}/0" in last.offsets)
            ):
                found[flow.at] = found[flow.at].reading({flow.name: self._sources.source(flow)})
        return found

    def _want(self, catalogue: Catalogue, number: int) -> None:
        found = self._programs(catalogue)
        in_turn = any(each.in_turn for each in found.values())
        for name, program in found.items():
            if in_turn:
                self.peers[name].runner.stop()
            self.peers[name].want(program, number)

    def _change_over(self, planned: SavedPlan, before: Catalogue) -> None:
        new = self._programs(planned.now)
        for flow in planned.now.hops:
            self._sources.link(flow).make()
            reads, read = (each.streams.keys() for each in (new[flow.at], self.peers[flow.at].program))
            if is_items(flow) and (flow.name not in before.flows or flow.name in reads - read):
                self._tell_missed(flow, planned.number)
        self._catch_up(planned, new)
        self._want(planned.now, planned.number)
        self.planned = replace(planned, before=None, streams=self._read_in(planned.now))
        self.planned.save(self.record)
        for flow in before.hops:
            if flow.name not in planned.now.flows:
                self._sources.link(flow).remove()
        self._ended &= planned.now.flows.keys()
        self._let_go()

    def _catch_up(self, planned: SavedPlan, new: Mapping[str, PeerProgram]) -> None:
        """Have peers read what has been sent of flows that are new to them, before they ask anything of it."""
        sent = {each.name for each in planned.now.hops if not self._sources.link(each).is_empty}
        behind = {
            name: sent & new[name].streams.keys() - peer.program.streams.keys() for name, peer in self.peers.items()
        }
        if any(behind.values()):
            for name, peer in self.peers.items():
                peer.want(peer.program.reading({each: new[name].streams[each] for each in behind[name]}), peer.plan)
            self.drain()

    def _tell_missed(self, flow: Flow, plan: int) -> None:
        """Have a flow that is new to its reader begin with what that must know of what it has missed."""
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
        link.begin(plan, peer.sender.root(stream), list(partitions.values()))
