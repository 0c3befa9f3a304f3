"""A running network: subscriptions, streams and thin peers come and go while it runs.

Each change is planned when everything that was sent has been read, and carried out before anything else (`team.py`).
So a subscription begins at one place in all that it reads, flows are widened and narrowed under their readers, and
nothing is lost or duplicated.
A subscription always stays with the flows it began with, since it would lose its state; before anything was read, plans
are free.

A network may be run in parts, each with some of its super-peers in a process of its own, also on another machine
(`transport.py`); then the part with the first super-peer plans, and all of them change over together (`parts.py`).

A started network runs until it is stopped, on a thread of its own.
Where epochs are triggered by Spark the thread waits for them and sends each on as soon as it is committed; otherwise it
runs the peers in rounds, and lets other callers in between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, RLock, Thread
from typing import Any

from anabranch.errors import UsageError
from anabranch.network.catalogue import Catalogue
from anabranch.network.description import Network, RegisteredStream, ThinPeer
from anabranch.network.estimates import sample_of
from anabranch.network.planner import Decision, Planner
from anabranch.peers.parts import ChangeInterrupted, NetworkPart
from anabranch.peers.peer import Open, Peer, checkpoint_of, on_spark, record_of
from anabranch.peers.programs import FLOW_PREFIX, check_declared_times
from anabranch.peers.records import SavedPlan, streams_of, with_own_paths, written_streams
from anabranch.peers.team import Team
from anabranch.peers.transport import Transport
from anabranch.peers.usage import NetworkUsage
from anabranch.spark.answers.log import empty_answer
from anabranch.spark.epoch.waits import Lookout, Wait
from anabranch.spark.plan.wanted import Epoch
from anabranch.spark.session import Session
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import EPOCH_BYTES, Settings

_MOST_IN_PARALLEL = 4
"""The most peers that are run in parallel."""
_POLL_SECONDS = 0.2
"""Seconds between two polls of a running network, if no peer commits an epoch before."""
_QUICK_SECONDS = 0.05
"""The same, while other parts of the network wait for this one."""


class RunningNetwork:
    """A network on this machine; as a context it holds the checkpoints of its peers."""

    def __init__(
        self,
        network: Network,
        folder: Path,
        *,
        session: Session | None = None,
        epoch_bytes: int = EPOCH_BYTES,
        on_epoch: Callable[[str, Epoch], None] | None = None,
        runner: Open | None = None,
        here: Collection[str] = (),
        on_warning: Callable[[str], None] | None = None,
        wanted: Callable[[], bool] = lambda: True,
        describe: Callable[[], Network] | None = None,
    ) -> None:
        """`runner` opens the peers' epoch runners; by default, trunks on Spark.

        Where only the super-peers `here` are run in this process, the others are elsewhere; they, and brokers, are
        waited for as long as `wanted` holds.
        When it is told of a stream that comes in here, `describe` says where that is, on this machine.
        """
        self._describe = describe or (lambda: network)
        self._wanted = wanted
        self.topology = network.topology
        self._here = network.part(here)
        self._warn = on_warning or (lambda message: None)
        self._transport: Transport | None = None
        self._part: NetworkPart | None = None
        self._is_reconciled = True
        """Whether changes of the description since the last run have been planned."""
        self.thin = dict(network.thin)
        self.streams = dict(network.streams)
        self._network = network
        self._folder = folder.absolute()
        self._session = session
        self._settings = Settings(shards=1, limits=Limits(steps=network.max_steps))
        self._epoch_bytes = epoch_bytes
        self._on_epoch = on_epoch or (lambda peer, epoch: None)
        self._open = runner
        self.decisions: list[Decision] = []
        """The decisions of the first start."""
        self._lookouts: dict[str, Lookout] = {}
        self._held = ExitStack()
        self._turn = RLock()
        """Held while peers are run or plans changed."""
        self._deciding = False
        """Whether a change is under way, which further changes join."""
        self._committed: SimpleQueue[str] = SimpleQueue()
        """The peers with new commits of streaming queries."""
        self._thread: Thread | None = None
        self._stopping = Event()
        self._failure: Exception | None = None

    # --- opening and closing --------------------------------------------------------------------------------

    def __enter__(self) -> RunningNetwork:
        with ExitStack() as held:
            held.callback(self._held.close)
            (self._folder / "sent").mkdir(parents=True, exist_ok=True)
            opened = self._open or on_spark(
                self._session, self._settings, self._hear, self._held, self._network.functions
            )
            self.peers = {
                name: Peer(
                    name,
                    opened(name, checkpoint_of(self._folder, name)),
                    self._folder / "links",
                    record_of(self._folder, name),
                    self._epoch_bytes,
                    self._network.documents,
                )
                for name in self._here
            }
            elsewhere = [name for name in self.topology.peers if name not in self._here]
            # The epoch of a peer on Spark seldom uses all cores.
            pool = self._held.enter_context(ThreadPoolExecutor(1 if self._open else _MOST_IN_PARALLEL, "peer"))
            self._team = Team(self._folder, self.peers, self.streams, pool, elsewhere, self._network.functions)
            if elsewhere:
                assert self._network.link is not None, "a part has links to others"
                links = self._network.link
                self._transport = Transport(links, self._here[0], self._folder, self._warn, self._fail, self._wanted)
                held.callback(self._transport.stop)
                self._plan_in_parts(self._transport)
            else:
                self._plan()
            held.pop_all()
        return self

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error

    def _plan_in_parts(self, transport: Transport) -> None:
        """Take up the plan of an earlier run, or begin: where the first super-peer is, plans are made."""
        part = self._part = NetworkPart(
            self._team,
            transport,
            self.topology.peers,
            self.topology.peers[0] in self._here,
            self._folder,
            self._published_plan,
            self._check_part,
            self._warn,
        )
        planned = self._resume()
        part.take_up(planned)
        if part.leads:
            part.catch_up()
            transport.start()
            if not part.has_begun:
                part.begin(self._first_plan(planned))
            self._team.everywhere, self._team.everyone = part.give, part.read_so_far
            self._is_reconciled = False
        else:
            transport.follow(part.done.number)
            transport.start()
            if planned is None:
                part.await_plan()

    def _first_plan(self, planned: SavedPlan | None) -> SavedPlan:
        """The first plan that is published: with all that is registered, unless there is one."""
        if planned is not None or self._team.planned.number:
            return replace(self._team.planned, before=self._team.planned.before or Catalogue({}, {}))
        self._register_all()
        return self._team.next_plan(self.catalogue, self.planner.numbered)

    def _published_plan(self, written: Mapping[str, Any]) -> SavedPlan | str:
        """A plan that the leader has published, or the name of a stream that comes in here and is not described yet."""
        assert self._part is not None, "a plan is published to parts"
        streams = written_streams(written, self._folder)
        if not self._part.leads:
            known = {name: each for name, each in self.streams.items() if name in self.catalogue.flows}
            streams, unknown = with_own_paths(streams, self.peers, {**self._describe().streams, **known})
            if unknown is not None:
                return unknown
        self.streams |= streams
        self.planner = Planner.over(replace(self._network, streams=self.streams))
        places = {name: each.at for name, each in self.streams.items()}
        planned = SavedPlan.read(written, streams, places, self.planner.schemas, self.planner.need_of)
        self.planner.resume(planned.now, planned.flows)
        return planned

    def _check_part(self) -> None:
        self._raise_failure()
        if self._stopping.is_set() or not self._wanted():
            raise ChangeInterrupted("stopped before all parts of the network had a new plan")

    def _hear(self, peer: str, epoch: Epoch) -> None:
        self._on_epoch(peer, epoch)
        if self._team.by_itself:
            self._committed.put(peer)

    def _resume(self) -> SavedPlan | None:
        """The saved plan, if there is one; a part that follows knows the streams of its plan only."""
        path = self._team.record
        saved = streams_of(path) if path.exists() else {}
        if self._part is not None and not self._part.leads:
            for name in self.streams.keys() - saved.keys():
                del self.streams[name]
        for name, each in saved.items():
            if name not in self.streams or self.streams[name].at != each.at:
                self.streams[name] = each  # as it was registered, so that it can end
            elif self.streams[name].accents is not each.accents:
                had = "" if each.accents else "no "
                message = f"the stream '{name}' was declared to have {had}accents until now"
                raise UsageError(message, hint="give the stream another name")
        self.planner = Planner.over(replace(self._network, streams=self.streams))
        if not path.exists():
            return None
        places = {name: each.at for name, each in self.streams.items()}
        planned = SavedPlan.load(path, places, self.planner.schemas, self.planner.need_of)
        self.planner.resume(planned.now, planned.flows)
        return planned

    def _plan(self) -> None:
        """Continue with the saved plan, or start with all that is registered."""
        planned = self._resume()
        if planned is None:
            self._register_all()
            self._team.switch(self.catalogue, self.planner.numbered)
            return
        self._team.take_up(planned)
        if planned.before is not None:
            self._team.change_over(planned)
        self._team.release()
        self._reconcile()

    def _register_all(self) -> None:
        self.decisions = [
            self.planner.register(each.name, each.text, each.at, by=each.by)
            for each in self._network.subscriptions.values()
        ]
        self._check_times()

    def _check_times(self) -> None:
        if self._part is not None:
            check_declared_times((each.need for each in self.catalogue.subscriptions.values()), self.streams)

    def _reconcile(self) -> None:
        """End, cancel and register what has changed in the description since the last run.

        A network that names no stream, or no subscription, got them through the API, and keeps them.
        """
        streams, wanted = self._network.streams, self._network.subscriptions
        ends = [
            name
            for name, each in self.streams.items()
            if name in self.catalogue.flows
            and (name in self._team.ended or (streams and (name not in streams or streams[name].at != each.at)))
        ]
        for name in ends:
            self.end_stream(name)
        gone = [
            name
            for name, each in self.catalogue.subscriptions.items()
            if (name in wanted and (each.text, each.at) != (wanted[name].text, wanted[name].at))
            or (wanted and name not in wanted)
            or not set(ends).isdisjoint(each.need.streams)
        ]
        come = [each for name, each in streams.items() if name not in self.catalogue.flows or name in ends]
        asked = [each for each in wanted.values() if each.name not in self.catalogue.subscriptions or each.name in gone]
        if gone or come or asked:
            with self.together():
                self.cancel(*gone)
                for stream in come:
                    self.streams.pop(stream.source.name, None)
                    self.register_stream(stream.source, stream.at, stream.by, stream.rate, accents=stream.accents)
                for query in asked:
                    self.register(query.name, query.text, query.at, query.by)

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            if self._transport is not None:
                self._transport.stop()
            self._held.close()

    # --- inspection -----------------------------------------------------------------------------------------

    @property
    def catalogue(self) -> Catalogue:
        """The flows and subscriptions."""
        return self.planner.catalogue

    def answer(self, name: str) -> str:
        """The answer to a subscription so far."""
        known = self.catalogue.subscriptions.get(name)
        if known is not None and known.at not in self.peers:
            raise UsageError(f"the subscription '{name}' is answered at '{known.at}', which is not run here")
        for peer in [self.peers[known.at]] if known else self.peers.values():
            found = peer.log.subscription(name)
            if found is not None:
                return peer.log.answer(found, self._network.functions).text()
        if known is None:
            raise UsageError(f"there is no subscription '{name}'")
        program = self.peers[known.at].program
        return empty_answer(program.answers[name], program.streams.values(), self._network.functions)

    def measured(self) -> NetworkUsage:
        """The traffic and work so far."""
        return NetworkUsage.of(self.peers, self.catalogue)

    def waits(self) -> list[Wait]:
        """Input that cannot be read yet, where it comes in; looked up anew."""
        found: list[Wait] = []
        for each in list(self.streams.values()):
            if each.at not in self.peers:
                continue
            peer = self.peers[each.at]
            lookout = self._lookouts.setdefault(peer.name, Lookout(peer.runner.checkpoint))
            found += lookout.waits([each.source], peer.last(), None)
        return found

    # --- subscriptions and streams come and go --------------------------------------------------------------

    def register(self, name: str, text: str, at: str, by: str | None = None) -> Decision:
        """Answer a query at a super-peer from now on."""
        if name.startswith(FLOW_PREFIX):
            raise UsageError(f"a subscription cannot be called '{name}'")
        return self._decide(lambda: self.planner.register(name, text, at, by=by))

    def cancel(self, *names: str) -> Decision:
        """End subscriptions."""
        return self._decide(lambda: self.planner.cancel(*names))

    def join(self, thin: str, at: str) -> None:
        """Add a thin peer at a super-peer."""
        if at not in self.topology.places:
            raise UsageError(f"'{at}' is no super-peer")
        with self._changing():
            if thin in self.thin or thin in self.peers:
                raise UsageError(f"there is a peer '{thin}' already")
            self.thin[thin] = ThinPeer(thin, at)

    def leave(self, thin: str) -> Decision:
        """Remove a thin peer: its subscriptions and streams end."""
        with self._changing():
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
        """Register a stream at a super-peer."""
        with self._changing():
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
        """End a stream: its windows close, everywhere, and subscriptions that read nothing else are complete."""
        with self._changing():
            if name not in self.streams:
                raise UsageError(f"there is no stream '{name}'")
            if self._deciding:
                raise UsageError("a stream cannot end together with other changes")
            self._team.end(name)
            return self._decide(lambda: self.planner.end_stream(name))

    def _decide(self, decide: Callable[[], Decision]) -> Decision:
        """Change the plan while everything sent has been read."""
        with self._turn:
            if not self._deciding:
                with self.together():
                    return self._decide(decide)
            before = self.catalogue
            decision = decide()
            try:
                self._check_times()
            except UsageError:
                self.planner.catalogue = before
                raise
            return decision

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let changes in this context take effect at the same place of all streams.

        So a subscription that comes with its stream sees it from its first element (LAWS 3.6).
        """
        with self._changing(), self._team.quiet():
            read = self._team.everyone()
            self.planner.take_up(read.has_read, read.evolved, read.alike)
            self._deciding = True
            try:
                yield
            finally:
                self._deciding = False
                if self.catalogue is not self._team.planned.now:
                    self._team.switch(self.catalogue, self.planner.numbered)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Let nobody else in, once the changes of earlier runs are finished."""
        if self._part is not None and not self._part.leads:
            where = f"where '{self.topology.peers[0]}' runs"
            raise UsageError(f"a network that runs in parts is changed {where}", hint="change its file there")
        with self._turn:
            self._raise_failure()
            if not self._is_reconciled and self._part is not None:
                self._is_reconciled = True
                self._part.finish()
                self._reconcile()
            yield

    # --- running --------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Read all present input, everywhere."""
        with self.together():
            """Nothing else is to change."""

    def start(self) -> bool:
        """Run until stopped, on a thread; gives whether epochs are triggered by Spark."""
        if self._thread is None:
            self._stopping.clear()
            with self._turn:
                self._team.start()
            self._thread = Thread(target=self._run, name="network", daemon=True)
            self._thread.start()
        return self._team.by_itself

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                committed: set[str] = set()
                is_held = self._part is not None and self._part.is_held
                with suppress(Empty):
                    committed.add(self._committed.get(timeout=_QUICK_SECONDS if is_held else _POLL_SECONDS))
                    while True:
                        committed.add(self._committed.get_nowait())
                if not self._is_reconciled:
                    with self._changing():
                        """What has changed since the last run is planned."""
                with self._turn:
                    if self._part is not None and not self._part.leads:
                        self._part.follow()
                    is_new = self._team.advance(committed)
                leads = self._part is None or self._part.leads
                if leads and is_new and self.planner.shared(self._team.alike()) is not self.catalogue:
                    self.drain()  # flows that have come to carry the same become one
        except ChangeInterrupted:
            """The change is finished at the next start."""
        except Exception as error:
            self._failure = error

    def stop(self) -> None:
        """Stop after the epochs at work; raises failures."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None
            if self._failure is None:
                with self._turn:
                    self._team.stop()
        self._raise_failure()

    @property
    def running(self) -> bool:
        """Whether it runs on its thread."""
        return self._thread is not None and self._failure is None

    def _raise_failure(self) -> None:
        """Raise a failure, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
