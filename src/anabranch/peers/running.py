"""A network at work: subscriptions, streams and thin peers come and go while everything runs.

Each change is planned when everything that was sent has been read, and carried out before anything else is
(`team.py`).
So a subscription begins at one place in all that it reads, flows are widened and narrowed under their readers, and
nothing is lost or comes twice.
A subscription is never answered out of other flows than those it began with, since it would lose what it remembers;
before anything was read at all, plans are free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event, RLock, Thread
from types import TracebackType
from typing import TypeAlias

from anabranch.errors import UsageError
from anabranch.network.catalogue import Catalogue, Subscription
from anabranch.network.description import Network, RegisteredQuery, RegisteredStream, Strategy, ThinPeer
from anabranch.network.operators import arriving
from anabranch.network.planner import Decision, Planner
from anabranch.network.sample import sample_of
from anabranch.network.steps import step_text
from anabranch.peers.peer import Peer, Worked, Workings, checkpoint_of, record_of
from anabranch.peers.programs import FLOW
from anabranch.peers.records import Planned
from anabranch.peers.sending import Sent
from anabranch.peers.team import Team
from anabranch.peers.trunks import TrunkWorkings
from anabranch.spark.answers import Frame
from anabranch.spark.session import Session, local_session
from anabranch.spark.wanted import EPOCH_BYTES, Epoch, Settings
from anabranch.stream.elements import DeadLetter
from anabranch.stream.source import Source

_PAUSE = 0.2
_AT_ONCE = 4
"""So many peers are run at the same time, at most."""

Open: TypeAlias = Callable[[str, Path], Workings]
"""Gives a peer, by name, what runs its epochs in a folder."""


@dataclass(frozen=True)
class Measured:
    """What a network has done."""

    flows: Mapping[str, Sent]
    """By flow over a link, also those that have ended."""
    ways: Mapping[str, tuple[str, str]]
    """From where to where each of them goes; those that have ended are left out."""
    links: Mapping[tuple[str, str], int]
    """Bytes by direction."""
    peers: Mapping[str, Worked]


class RunningNetwork:
    """A network on this machine; as a context it holds the checkpoints of its peers."""

    def __init__(
        self,
        network: Network,
        folder: Path,
        *,
        session: Session | None = None,
        strategy: Strategy | None = None,
        epoch_bytes: int = EPOCH_BYTES,
        shards: int = 1,
        on_event: Callable[[str], None] | None = None,
        on_epoch: Callable[[str, Epoch], None] | None = None,
        workings: Open | None = None,
    ) -> None:
        """`workings` run the epochs of peers; without them, trunks on Spark do."""
        self.topology = network.topology
        self.thin = dict(network.thin)
        self.streams = dict(network.streams)
        self._network = network
        self._folder = folder.absolute()
        self._session = session
        self._settings = Settings(shards=shards)
        self._epoch_bytes = epoch_bytes
        self._strategy: Strategy = strategy or network.strategy
        self._tell = on_event or (lambda message: None)
        self._on_epoch = on_epoch or (lambda peer, epoch: None)
        self._open = workings
        self.decisions: list[Decision] = []
        """Those of the first start."""
        self._held = ExitStack()
        self._turn = RLock()
        """Held by whoever runs peers or changes plans."""
        self._deciding = False
        """Whether a change is under way, which others may join."""
        self._thread: Thread | None = None
        self._stopping = Event()
        self._failure: Exception | None = None

    # --- opening and closing --------------------------------------------------------------------------------

    def __enter__(self) -> RunningNetwork:
        with ExitStack() as held:
            held.callback(self._held.close)
            (self._folder / "sent").mkdir(parents=True, exist_ok=True)
            self.peers = {name: self._peer(name) for name in self.topology.peers}
            self._team = Team(self._folder, self.peers, self.streams, self._runner())
            self._plan()
            held.pop_all()
        return self

    def _peer(self, name: str) -> Peer:
        folder = checkpoint_of(self._folder, name)
        if self._open is None:
            if self._session is None:
                self._session = local_session()
            opened: Workings = self._held.enter_context(
                TrunkWorkings(self._session, folder, self._settings, partial(self._on_epoch, name))
            )
        else:
            opened = self._open(name, folder)
        return Peer(name, opened, self._folder / "links", record_of(self._folder, name), self._epoch_bytes)

    def _runner(self) -> Callable[[Iterable[Peer]], None]:
        """Runs peers, on Spark side by side: the epoch of one seldom keeps all cores at work."""
        pool = self._held.enter_context(ThreadPoolExecutor(1 if self._open else _AT_ONCE, "peer"))

        def run(peers: Iterable[Peer]) -> None:
            for _ in pool.map(Peer.run, peers):
                pass  # what one of them raises is raised here

        return run

    def _plan(self) -> None:
        """Go on with the plan that was in force, or begin with all that is registered."""
        self.planner = Planner.over(replace(self._network, streams=self.streams), self._strategy)
        path = self._team.record
        if path.exists():
            places = {name: each.at for name, each in self.streams.items()}
            planned = Planned.load(path, places, self.planner.schemas, self.planner.need_of)
            self.planner.resume(planned.now, planned.flows)
            self._team.take_up(planned)
            self._reconcile()
            return
        self.decisions = [
            self.planner.register(each.name, each.text, each.at, by=each.by)
            for each in self._network.subscriptions.values()
        ]
        self._team.switch(self.catalogue, self.planner.numbered)

    def _reconcile(self) -> None:
        """Cancel and register what was written down otherwise since the last run.

        A network that names no subscription has got them otherwise, and keeps them.
        """
        wanted = self._network.subscriptions
        known = self.catalogue.subscriptions
        gone = [name for name, each in known.items() if name in wanted and (each.text, each.at) != _asked(wanted[name])]
        gone += [name for name in known if wanted and name not in wanted]
        if gone:
            self.cancel(*gone)
        for stream in [each for each in self.streams if each not in self.catalogue.flows]:
            known_as = self.streams.pop(stream)
            self.register_stream(known_as.source, known_as.at, known_as.by, known_as.rate, accents=known_as.accents)
        for name, each in wanted.items():
            if name not in self.catalogue.subscriptions:
                self.register(name, each.text, each.at, each.by)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._held.close()

    # --- what can be seen -----------------------------------------------------------------------------------

    @property
    def catalogue(self) -> Catalogue:
        """What flows where, and who asks for what."""
        return self.planner.catalogue

    def answer(self, name: str) -> str:
        """What has been answered to a subscription so far."""
        known = self.catalogue.subscriptions.get(name)
        peers = [self.peers[known.at]] if known else list(self.peers.values())
        for peer in peers:
            found = peer.log.subscription(name)
            if found is not None:
                return peer.log.answer(found).text()
        if known is None:
            raise UsageError(f"there is no subscription '{name}'")
        return Frame.of(self.peers[known.at].program.answers[name]).empty

    def dead_letters(self, name: str) -> list[DeadLetter]:
        """What was set aside where a subscription is answered: by it, and of the streams that it reads there."""
        subscription = self._subscription(name)
        streams = arriving(self.catalogue, subscription)
        return [
            each
            for each in self.peers[subscription.at].log.dead_letters()
            if each.subscription == name or (each.subscription is None and each.place.stream in streams)
        ]

    def measured(self) -> Measured:
        """What has been sent and worked so far."""
        flows = {flow: sent for peer in self.peers.values() for flow, sent in peer.sender.reached.sent.items()}
        ways = {each.name: (each.made_at, each.at) for each in self.catalogue.hops}
        links: dict[tuple[str, str], int] = {}
        for flow, sent in flows.items():
            if flow in ways:
                links[ways[flow]] = links.get(ways[flow], 0) + sent.bytes
        worked = {
            name: replace(peer.workings.worked, cpu_s=peer.workings.worked.cpu_s + peer.sending_s)
            for name, peer in self.peers.items()
            if isinstance(peer.workings, TrunkWorkings)
        }
        return Measured(flows, ways, links, worked)

    # --- subscriptions and streams come and go --------------------------------------------------------------

    def register(self, name: str, text: str, at: str, by: str | None = None) -> Decision:
        """Answer a query at a super-peer from here on."""
        if name.startswith(FLOW):
            raise UsageError(f"a subscription cannot be called '{name}'")
        return self._decide(lambda: self.planner.register(name, text, at, by=by))

    def cancel(self, *names: str) -> Decision:
        """Answer these no more."""
        return self._decide(lambda: self.planner.cancel(*names))

    def join(self, thin: str, at: str) -> None:
        """A thin peer has come to a super-peer."""
        if at not in self.topology.places:
            raise UsageError(f"'{at}' is no super-peer")
        with self._turn:
            if thin in self.thin or thin in self.peers:
                raise UsageError(f"there is a peer '{thin}' already")
            self.thin[thin] = ThinPeer(thin, at)

    def leave(self, thin: str) -> Decision:
        """A thin peer has gone: its subscriptions end, and so do its streams."""
        with self._turn:
            if self.thin.pop(thin, None) is None:
                raise UsageError(f"there is no thin peer '{thin}'")
            decision = self._decide(lambda: self.planner.leave(thin))
            for name, each in list(self.streams.items()):
                if each.by == thin:
                    self.end_stream(name)
            return decision

    def register_stream(
        self, source: Source, at: str, by: str | None = None, rate: float | None = None, *, accents: bool = True
    ) -> Decision:
        """A stream comes in at a super-peer from now on."""
        with self._turn:
            if source.name in self.streams or source.name in self.catalogue.flows:
                raise UsageError(f"there is a stream '{source.name}' already")
            sample = sample_of(source, rate)

            def decide() -> Decision:
                decision = self.planner.register_stream(source.name, sample, at, source.schema)
                self.planner.edited |= {source.name} if source.updates else set()
                self.streams[source.name] = RegisteredStream(source, at, by or at, rate, accents)
                return decision

            return self._decide(decide)

    def end_stream(self, name: str) -> Decision:
        """A stream has ended: its windows close, everywhere, and whoever reads nothing else has had all."""
        with self._turn:
            if name not in self.streams:
                raise UsageError(f"there is no stream '{name}'")
            if self._deciding:
                raise UsageError("a stream cannot end together with other changes")
            self._team.end(name)
            decision = self._decide(lambda: self.planner.end_stream(name))
            if name not in self.catalogue.flows:
                del self.streams[name]
            return decision

    def _decide(self, decide: Callable[[], Decision]) -> Decision:
        """Change the plan at a moment when everything sent has been read."""
        with self._turn:
            if not self._deciding:
                with self.together():
                    return self._decide(decide)
            decision = decide()
            for step in decision.steps:
                self._tell(step_text(step))
            return decision

    @contextmanager
    def together(self) -> Iterator[None]:
        """Have what is registered and cancelled in this context begin and end at the same place of all streams.

        So a subscription that comes with its stream sees it from its first element (LAWS 3.6).
        """
        with self._turn:
            self._raise_failure()
            self._team.drain()
            self.planner.moves = not self._team.has_begun
            self._deciding = True
            try:
                yield
            finally:
                self._deciding = False
                if self.catalogue is not self._team.planned.now:
                    self._team.switch(self.catalogue, self.planner.numbered)

    def _subscription(self, name: str) -> Subscription:
        found = self.catalogue.subscriptions.get(name)
        if found is None:
            raise UsageError(f"there is no subscription '{name}'")
        return found

    # --- running --------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Run all peers until nothing is left to read anywhere."""
        with self._turn:
            self._team.drain()

    def start(self) -> None:
        """Run until stopped, on a thread; everything else may be called meanwhile."""
        if self._thread is None:
            self._stopping.clear()
            self._thread = Thread(target=self._run, name="network", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.drain()
            except Exception as error:
                self._failure = error
                return
            self._stopping.wait(_PAUSE)

    def stop(self) -> None:
        """End after the round at work; raises what has gone wrong."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None
        self._raise_failure()

    @property
    def running(self) -> bool:
        """Whether it runs on its own."""
        return self._thread is not None and self._failure is None

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


def _asked(query: RegisteredQuery) -> tuple[str, str]:
    return query.text, query.at
