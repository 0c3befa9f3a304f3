"""The peers of a network, which are run together and switch together from one plan to the next.

Spark triggers the peers' epochs, or peers are run in rounds, each to the end of its input.
For a change all streams are held at their present end, and rounds go on until nothing is left to read anywhere
(`quiet`).
Then every peer stands at the same place of every stream, and the next plan may begin; what has come meanwhile is read
when it is in force.
Where times of arrival matter, for streams that declare none (LAWS 1.3), peers are run in turn, and the results of each
are everywhere before the next looks at its clock; so peers that merge streams have had everything that came before.

A change takes three steps, and the first is durable before the others begin; after a kill in between they are done
again:

1. the next plan is saved;
2. peers begin to read the flows that are new to them; such a flow starts with what the reader has missed: that the
stream has begun (LAWS 3.6), and where it has evolved or is edited, all of it;
3. all peers switch to their programs of the new plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
from anabranch.peers.transport import Coming, Leaving

_BEGUN = '<s:punctuation xmlns:s="urn:anabranch:stream" at="0"/>'
"""An element that says only that a stream has begun."""
_BEGUN_IN_JSON = '{"$punctuation": {"at": 0}}\n'


class Team:
    """The peers, and their plan in force; only one caller at a time."""

    def __init__(
        self,
        folder: Path,
        peers: Mapping[str, Peer],
        streams: Mapping[str, RegisteredStream],
        pool: Executor,
        elsewhere: Collection[str] = (),
    ) -> None:
        """Peers are run by the threads of a pool; `streams` may change in between.

        Super-peers `elsewhere` are run by other processes (`transport.py`).
        """
        self.peers = peers
        self._elsewhere = tuple(elsewhere)
        self._folder = folder
        self._streams = streams
        self._pool = pool
        self._ended: set[str] = set()
        """Flows that have ended."""
        self._holds = 0
        self.planned = SavedPlan(0, 0, Catalogue({}, {}))
        self._started = False
        self.by_itself = False
        """Whether epochs are triggered by Spark, and have to be handed on; otherwise peers have to be run."""

    @property
    def record(self) -> Path:
        """The file of the plan."""
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
        """Run the peers with new input; whether there was any."""
        busy = [peer for peer in self.peers.values() if peer.has_news()]
        apart = [peer for peer in busy if not peer.program.in_turn]
        for _ in self._pool.map(Peer.run, apart):
            pass  # re-raises their exceptions
        handed_on = self._hand_on(apart)
        for peer in busy:
            if peer.program.in_turn:
                peer.run()
                self._hand_on_all([peer])
        return bool(busy or handed_on)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Read all present input, everywhere, and hold further input until the end of this context."""
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
        """Have epochs triggered, where peers can do that and none has to be run in turn."""
        self._started = True
        self._let_go()

    def _let_go(self) -> None:
        peers = self.peers.values()
        self.by_itself = self._started and not any(peer.program.in_turn for peer in peers)
        if self.by_itself:  # set first: their first epochs come before the last peer has started
            self.by_itself = all(peer.runner.start() for peer in peers)
            if not self.by_itself:
                self._halt()

    def pass_on(self, committed: Collection[str]) -> None:
        """Send the new commits of some peers; raises the errors that stopped others."""
        for peer in self.peers.values():
            peer.runner.check()
        made = [self.peers[name] for name in committed]
        for peer in made:
            peer.send()
        self._hand_on_all(made)

    def stop(self) -> None:
        """Trigger no more epochs."""
        self._started = self.by_itself = False
        self._halt()

    def _halt(self) -> None:
        for peer in self.peers.values():
            peer.runner.stop()
        self.pass_on(self.peers)

    def _hand_on_all(self, made: Sequence[Peer]) -> None:
        """Hand flows on as far as they go."""
        while made:
            made = self._hand_on(made)

    def _hand_on(self, made: Sequence[Peer]) -> list[Peer]:
        """Hand flows on after some peers have made something; gives the peers that handed anything on."""
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
        """Restore the plan of an earlier run, and finish a change that it had begun."""
        for peer in self.peers.values():
            peer.hold(0)  # the start of a new flow may have been written already
        self._want(planned.before or planned.now, planned.number - (planned.before is not None))
        for peer in self.peers.values():
            peer.send()
        self.planned = planned
        if planned.before is not None:
            self._change_over(planned, planned.before)
        elif planned.streams != (streams := self._read_in(planned.now)):
            self.planned = replace(planned, streams=streams)  # their paths may have changed
            self.planned.save(self.record)
        self._release()

    def switch(self, catalogue: Catalogue, flows: int) -> None:
        """Switch to another plan, now that all is quiet; `flows` is the largest flow number."""
        before = self.planned.now
        planned = SavedPlan(self.planned.number + 1, flows, catalogue, before, self._read_in(catalogue, before))
        planned.save(self.record)
        self._change_over(planned, before)

    def end(self, stream: str) -> None:
        """End a stream where it comes in, then all flows made only from it, from peer to peer."""
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
        """The programs of the peers.

        A peer that has begun to read a flow with accents or updates reads on while no subscription needs the flow:
        otherwise it would miss the changes meanwhile.
        """
        every = programs(catalogue, self._sources, (*self.peers, *self._elsewhere))
        found = {name: every[name] for name in self.peers}
        for flow in catalogue.hops:
            if flow.at not in self.peers:
                continue
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
            if flow.at not in self.peers:
                continue
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
        """Let peers read what was sent of flows that are new to them, before they query it."""
        sent = {each.name for each in planned.now.hops if not self._sources.link(each).is_empty}
        behind = {
            name: sent & new[name].streams.keys() - peer.program.streams.keys() for name, peer in self.peers.items()
        }
        if any(behind.values()):
            for name, peer in self.peers.items():
                peer.want(peer.program.reading({each: new[name].streams[each] for each in behind[name]}), peer.plan)
            self.drain()

    def carried(self, topic: Callable[[str, str], str]) -> tuple[Leaving, Coming]:
        """The links to peers elsewhere and from there; `topic` names that from a maker to a reader."""
        leaving: dict[str, tuple[Link, str]] = {}
        coming: dict[str, dict[str, Link]] = {}
        for flow in self.planned.now.hops:
            where = topic(flow.made_at, flow.at)
            if flow.made_at in self.peers and flow.at not in self.peers:
                leaving[flow.name] = self._sources.link(flow), where
            elif flow.at in self.peers and flow.made_at not in self.peers:
                coming.setdefault(where, {})[flow.name] = self._sources.link(flow)
        return leaving, coming

    def join(self, planned: SavedPlan) -> None:
        """Begin with a plan that another process has made, for the first time."""
        planned.save(self.record)
        for flow in planned.now.hops:
            self._sources.link(flow).make()
        self.take_up(planned)

    def _tell_missed(self, flow: Flow, plan: int) -> None:
        """Start a flow with what its new reader must know of what it has missed."""
        (stream,) = flow.streams
        origin = self._streams[stream]
        if origin.at not in self.peers:
            return
        peer = self.peers[origin.at]
        last = peer.last()
        if last is None or stream not in last.begun:
            return
        link = self._sources.link(flow)
        begun = _BEGUN_IN_JSON if origin.source.format == "json" else _BEGUN
        partitions: dict[int, list[str]] = {number: [begun] for number in range(link.partitions)}
        if origin.source.updates or stream in last.evolution:
            for number, text in peer.sender.elements_so_far(stream):
                partitions[number].append(text)
        link.begin(plan, peer.sender.root(stream), list(partitions.values()))
