"""The peers of a network, which are run together and switch together from one plan to the next.

Spark triggers the peers' epochs, or peers are run in rounds, each to the end of its input.
For a change all streams are held at their present end, and rounds go on until nothing is left to read anywhere
(`quiet`).
Then every peer stands at the same place of every stream, and the next plan may begin; what has come meanwhile is read
when it is in force.
Where times of arrival matter, for streams that declare none (LAWS 1.3), peers are run in turn, and the results of each
are everywhere before the next looks at its clock; so peers that merge streams have had everything that came before.

A change is a sequence of orders (`orders.py`).
A team carries each out by itself; where other peers of the network run elsewhere, all of them do (`parts.py`).
The next plan is durable before anything else of it; what a kill has interrupted is done again:

1. the next plan is saved;
2. peers begin to read the flows that are new to them; such a flow starts with what the reader has missed: that the
stream has begun (LAWS 3.6), where it has evolved its accents and punctuations, and where it is edited all of it;
3. all peers switch to their programs of the new plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from anabranch.network.catalogue import Catalogue, Flow
from anabranch.network.description import RegisteredStream
from anabranch.peers.links import Link
from anabranch.peers.orders import PlanOrder, ReadSoFar
from anabranch.peers.peer import Peer
from anabranch.peers.programs import PeerProgram, Sources, identity, is_items, programs
from anabranch.peers.records import SavedPlan
from anabranch.peers.transport import CarriedLinks, OutgoingLink

_BEGUN = '<s:punctuation xmlns:s="urn:anabranch:stream" at="0"/>'
"""An element that says only that a stream has begun."""
_BEGUN_IN_JSON = '{"$punctuation": {"at": 0}}\n'


class Team:
    """The peers, and their plan in force; only one caller at a time."""

    def __init__(
        self,
        folder: Path,
        peers: Mapping[str, Peer],
        streams: MutableMapping[str, RegisteredStream],
        pool: Executor,
        elsewhere: Collection[str] = (),
        functions: Collection[str] = (),
    ) -> None:
        """Peers are run by the threads of a pool; `streams` may change in between, and lose what no plan has any more.

        Super-peers `elsewhere` are run by other processes (`transport.py`); queries may call `functions`.
        """
        self.peers = peers
        self.everywhere: Callable[[PlanOrder], None] = self._alone
        """Has an order carried out by all peers of the network, and everything read."""
        self.everyone: Callable[[], ReadSoFar] = self.read_so_far
        """What all peers of the network have read."""
        self._elsewhere = tuple(elsewhere)
        self._folder = folder
        self._streams = streams
        self._functions = functions
        self._pool = pool
        self.ended: set[str] = set()
        """Flows that have ended."""
        self._told: frozenset[str] = frozenset()
        """Flows whose readers are being told what they have missed."""
        self._holds = 0
        self.planned = SavedPlan(0, 0, Catalogue({}, {}))
        self._started = False
        self.by_itself = False
        """Whether epochs are triggered by Spark, and have to be handed on; otherwise peers have to be run."""

    @property
    def record(self) -> Path:
        """The file of the plan."""
        return self._folder / "plan.json"

    def read_so_far(self) -> ReadSoFar:
        """What the peers here have read."""
        last = {name: peer.last() for name, peer in self.peers.items()}
        known = [(name, found) for name, each in self._streams.items() if (found := last.get(each.at)) is not None]
        return ReadSoFar(
            {name: tuple(peer.program.streams) for name, peer in self.peers.items()},
            tuple(name for name, found in known if name in found.begun),
            tuple(name for name, found in known if name in found.evolution),
            any(each is not None for each in last.values()),
            self.alike(),
        )

    def alike(self) -> tuple[tuple[str, ...], ...]:
        """The flows of windows or tuples that are made here, and carry the same from here on."""
        return tuple(names for peer in self.peers.values() for names in peer.alike())

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
        self.everywhere(PlanOrder("hold"))
        try:
            yield
        finally:
            self.everywhere(PlanOrder("go"))

    def _alone(self, order: PlanOrder) -> None:
        """Carry out an order where there are no other peers."""
        try:
            self.carry_out(order)
            if order.kind in ("hold", "end", "plan"):
                self.drain()
        except BaseException:
            self.release()
            raise

    def carry_out(self, order: PlanOrder) -> None:
        """Carry out an order, or what is left of it; before the next one, everything is to be read."""
        match order:
            case PlanOrder(kind="hold"):
                self._holds += 1
                for peer in self.peers.values():
                    peer.hold(self._holds)
            case PlanOrder(kind="end", flows=flows):
                self.ended.update(flows)
                self._want(self.planned.now, self.planned.number)
            case PlanOrder(kind="plan", flows=flows, planned=planned) if planned is not None:
                self._prepare(planned, flows)
            case PlanOrder(kind="use"):
                self._switch()
            case PlanOrder(kind="go"):
                self.release()

    def release(self) -> None:
        """Let all streams be read on."""
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

    def advance(self, committed: Collection[str] | None = None) -> bool:
        """Let the peers read on; where they do so by themselves, send what some, or all, of them have committed.

        Gives whether there may be anything new.
        """
        if not self.by_itself:
            return self.round()
        self.pass_on(self.peers if committed is None else committed)
        return committed is None or bool(committed)

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
        return Sources(self._streams, self._folder / "links", frozenset(self.ended), self._functions)

    # --- plans ----------------------------------------------------------------------------------------------

    def take_up(self, planned: SavedPlan, ended: Collection[str] = ()) -> None:
        """Restore the plan of an earlier run, or the one before, if not all peers have switched; streams are held."""
        self.ended.update(ended)
        for peer in self.peers.values():
            peer.hold(0)  # the start of a new flow may have been written already
        self.planned = planned
        self._want(planned.before or planned.now, planned.number - (planned.before is not None))
        for peer in self.peers.values():
            peer.send()
        if planned.before is None and planned.streams != (streams := self._read_in(planned.now)):
            self.planned = replace(planned, streams=streams)  # their paths may have changed
            self.planned.save(self.record)

    def switch(self, catalogue: Catalogue, flows: int) -> None:
        """Switch to another plan, now that all is quiet; `flows` is the largest flow number."""
        self.change_over(self.next_plan(catalogue, flows))

    def next_plan(self, catalogue: Catalogue, flows: int) -> SavedPlan:
        """The plan behind the present one."""
        before = self.planned.now
        return SavedPlan(self.planned.number + 1, flows, catalogue, before, self._read_in(catalogue, before))

    def change_over(self, planned: SavedPlan) -> None:
        """Switch to a plan, or finish that."""
        self.everywhere(PlanOrder("plan", self._missed(planned, self.everyone()), planned))
        self.everywhere(PlanOrder("use"))

    def end(self, stream: str) -> None:
        """End a stream where it comes in, then all flows made only from it, from peer to peer."""
        with self.quiet():
            ended, depths = set(self.ended), dict[str, int]()
            for flow in self.planned.now.downwards():
                if flow.name == stream or (flow.inputs and ended.issuperset(flow.inputs)):
                    ended.add(flow.name)
                    depths[flow.name] = 1 + max((depths.get(each, 0) for each in flow.inputs), default=0)
            for depth in sorted(set(depths.values())):
                self.everywhere(PlanOrder("end", tuple(name for name, found in depths.items() if found == depth)))

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

    def _want(self, catalogue: Catalogue, number: int, before: Catalogue | None = None) -> None:
        """Set the programs of a plan; subscriptions that were not in the plan before begin with it."""
        known = catalogue if before is None else before
        asked, had = (set(map(identity, each.subscriptions.values())) for each in (catalogue, known))
        found = self._programs(catalogue)
        in_turn = any(each.in_turn for each in found.values())
        for name, program in found.items():
            if in_turn:
                self.peers[name].runner.stop()
            self.peers[name].want(program, number, asked - had)

    def _missed(self, planned: SavedPlan, read: ReadSoFar) -> tuple[str, ...]:
        """The flows whose readers have to be told what they have missed, by what all peers have read."""
        assert planned.before is not None, "a change knows the plan before"
        every = programs(planned.now, self._sources, (*self.peers, *self._elsewhere))
        return tuple(
            flow.name
            for flow in planned.now.hops
            if is_items(flow)
            and flow.streams[0] in read.begun
            and (
                flow.name not in planned.before.flows
                or (flow.name in every[flow.at].streams and flow.name not in read.reads[flow.at])
            )
        )

    def _prepare(self, planned: SavedPlan, missed: Collection[str]) -> None:
        """Save a plan, and let peers begin to read the flows that are new to them."""
        if self.planned.number == planned.number and self.planned.before is None:
            return  # it is in force
        planned.save(self.record)
        self.planned, self._told = planned, frozenset(missed)
        for flow in planned.now.logged:
            self._sources.link(flow).make()
            if flow.name in missed:
                self._tell_missed(flow, planned.number)
        self.catch_up()

    def catch_up(self) -> None:
        """Let peers read what they have missed of the flows that are new to them, as far as it has come."""
        if self.planned.before is None:
            return
        new, links = self._programs(self.planned.now), {each.name: each for each in self.planned.now.logged}
        for name, peer in self.peers.items():
            behind = {
                each
                for each in new[name].streams.keys() - peer.program.streams.keys()
                if each in links and self._is_there(links[each])
            }
            if behind:
                peer.want(peer.program.reading({each: new[name].streams[each] for each in behind}), peer.plan)

    def _is_there(self, flow: Flow) -> bool:
        """Whether what its new reader has missed of a flow has come, or anything if it need not be told."""
        link = self._sources.link(flow)
        return link.is_begun(self.planned.number) if flow.name in self._told else not link.is_empty

    def _switch(self) -> None:
        """Switch to the plan that is prepared, unless it is in force."""
        planned, before = self.planned, self.planned.before
        if before is None:
            return
        self._want(planned.now, planned.number, before)
        self.planned = replace(planned, before=None, streams=self._read_in(planned.now))
        self.planned.save(self.record)
        for flow in before.logged:
            now = planned.now.flows.get(flow.name)
            is_elsewhere = now is not None and not {now.made_at, now.at} & self.peers.keys()
            if now is None or (is_elsewhere and flow.made_at in self.peers):
                self._sources.link(flow).remove()
        for name in self._told:
            self._outbox(planned.now.flows[name]).remove()
        self._told = frozenset()
        for name in self._streams.keys() - planned.now.flows.keys():
            del self._streams[name]
        self.ended &= planned.now.flows.keys()
        self._let_go()

    def carried(self, channel: Callable[[str, str], str]) -> CarriedLinks:
        """The links to peers elsewhere and from there; `channel` names that from a maker to a reader."""
        leaving: list[OutgoingLink] = []
        coming: dict[str, dict[str, Link]] = {}
        plans = [each for each in (self.planned.before, self.planned.now) if each is not None]
        for flow in {each.name: each for plan in plans for each in plan.logged}.values():
            link = self._sources.link(flow)
            if flow.made_at in self.peers and flow.at not in self.peers:
                leaving.append(OutgoingLink(flow.name, link, channel(flow.made_at, flow.at)))
            elif flow.at in self.peers and flow.made_at not in self.peers:
                coming.setdefault(channel(flow.made_at, flow.at), {})[flow.name] = link
            if flow.name in self._told:
                origin = self._sources.origin(flow).at
                if origin in self.peers and flow.at not in self.peers:
                    leaving.append(OutgoingLink(flow.name, self._outbox(flow), channel(origin, flow.at), is_told=True))
                elif flow.at in self.peers and origin not in self.peers:
                    coming.setdefault(channel(origin, flow.at), {})[flow.name] = link
        return CarriedLinks(self.planned.number, tuple(leaving), coming)

    def _outbox(self, flow: Flow) -> Link:
        """What a new reader elsewhere has missed of a flow, until it was sent there."""
        return Link.of(self._folder / "told", flow.name, self._sources.link(flow).partitions)

    def _tell_missed(self, flow: Flow, plan: int) -> None:
        """Start a flow with what its new reader must know of what it has missed, if its stream comes in here."""
        (stream,) = flow.streams
        origin = self._streams[stream]
        if origin.at not in self.peers:
            return
        peer = self.peers[origin.at]
        last = peer.last()
        assert last is not None, "a stream that has begun was read"
        link = self._sources.link(flow) if flow.at in self.peers else self._outbox(flow)
        link.make()
        begun = _BEGUN_IN_JSON if origin.source.format == "json" else _BEGUN
        partitions: dict[int, list[str]] = {number: [begun] for number in range(link.partitions)}
        if origin.source.updates or stream in last.evolution:
            for number, text in peer.sender.elements_so_far(stream, items=origin.source.updates):
                partitions[number].append(text)
        link.begin(plan, peer.sender.root(stream), list(partitions.values()))
