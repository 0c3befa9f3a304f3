"""A running super-peer: a trunk that is run to the end of its input, again and again, and the links it fills.

A peer without new input costs nothing: its trunk is not started.
It lets the links that reach it remove documents that it has read in committed epochs and handed on.

On Spark, all trunks of a network share a session, and each has a pool of its own.
A peer's trunk is driven by hand (`spark/epoch/drivers.py`) until it is started: from then on it is a streaming query
(`spark/hosts/streamed.py`), until it is stopped.
Each mode continues from the other's offsets.
A peer that reads nothing has no query, and gets one when it is started with its first stream.
On a machine that is too busy to start the queries, peers are driven by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import thread_time
from types import MappingProxyType, TracebackType
from typing import Protocol, TypeAlias
from urllib.parse import quote

from anabranch.law.calls import PythonFunction
from anabranch.peers.links import Link
from anabranch.peers.programs import FLOW_PREFIX, PeerProgram
from anabranch.peers.sending import Sender
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.epoch.drivers import SteppedTrunk
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.hosts.local_host import LocalHost
from anabranch.spark.hosts.spark_host import SparkHost, pool_of
from anabranch.spark.hosts.streamed import PoolUsage, StreamedTrunk
from anabranch.spark.intake.folders import listing
from anabranch.spark.plan.joining import served_alike
from anabranch.spark.plan.wanted import Epoch, Listener, Workload
from anabranch.spark.session import Session, start_session
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import EPOCH_BYTES, Settings


def checkpoint_of(network: Path, peer: str) -> Path:
    """The checkpoint of a peer, in the folder of its network."""
    return network / "peers" / quote(peer, safe="")


def record_of(network: Path, peer: str) -> Path:
    """The file of a peer's sending position."""
    return network / "sent" / f"{quote(peer, safe='')}.json"


class EpochRunner(Protocol):
    """Runs the epochs of a peer."""

    checkpoint: Checkpoint

    def want(self, wanted: Workload) -> None:
        """Set the workload from the next epoch on."""

    def hold(self, holds: Mapping[str, int]) -> None:
        """Hold these streams for now, and read all others on (`spark/intake/settings.py`)."""

    def run(self) -> None:
        """Read to the end of the present input."""

    def start(self) -> bool:
        """Have epochs triggered, if they are not yet; False where they have to be run by hand."""

    def check(self) -> None:
        """Raise the error that has stopped the epochs."""

    def stop(self) -> None:
        """Trigger no more epochs."""


@dataclass(slots=True)
class Worked:
    """The work of a peer since the network was opened."""

    epochs: int = 0
    items: int = 0
    bytes_read: int = 0
    cpu_s: float = 0.0
    """In its tasks, and for sending."""
    executor_cpu_s: float = 0.0
    """As Spark counts it for its pool."""


@dataclass(slots=True)
class Peer:
    """One super-peer; only its network calls it."""

    name: str
    runner: EpochRunner
    links: Path
    record: Path
    epoch_bytes: int = EPOCH_BYTES
    documents: Mapping[str, DocumentSource] = field(default_factory=dict)
    """The files behind `doc()`."""
    program: PeerProgram = field(init=False)
    plan: int = 0
    sending_s: float = 0.0
    """CPU seconds for sending."""
    _seen: dict[str, dict[str, int]] | None = None
    """The files of its streams when it was run last."""
    _holds: dict[str, int] | None = None
    """While it is held: by stream that comes in here, the number of the hold."""
    _reach: dict[str, dict[str, int]] = field(default_factory=dict)
    """The sizes of these streams then."""
    sender: Sender = field(init=False)

    def __post_init__(self) -> None:
        self.sender = Sender(self.runner.checkpoint, self.record, self.links)
        self.program = PeerProgram()

    def want(self, program: PeerProgram, plan: int, new: Collection[str] = ()) -> None:
        """Set the program, under a plan with a number, with which some subscriptions are new.

        Everything read before has been sent.
        """
        self.program, self.plan = program, plan
        self.sender.begin(program, new)
        if self._holds is not None:
            self._hold({name: self._holds.get(name, 0) for name in self._coming_in()})
        self.runner.want(
            Workload(
                program.streams,
                program.subscriptions,
                epoch_bytes=self.epoch_bytes,
                documents=self.documents,
                courses=program.courses,
            )
        )

    def hold(self, number: int) -> None:
        """Read the streams that come in here only up to their present size, until `release`; with 0, not at all.

        Streams that are new to it meanwhile are not read either.
        """
        self._reach = {
            str(path): listing(str(path))
            for name in self._coming_in()
            for path in self.program.streams[name].partitions
        }
        self._hold(dict.fromkeys(self._coming_in(), number))

    def release(self) -> None:
        """End the hold."""
        self._holds = None
        self.runner.hold({})

    def _hold(self, holds: dict[str, int]) -> None:
        self._holds = holds
        self.runner.hold(holds)

    def _coming_in(self) -> list[str]:
        """The streams that are registered here; one that has ended is read to its end in any case."""
        streams = self.program.streams.items()
        return [name for name, each in streams if not each.ended and not self._is_link(each)]

    def _is_link(self, stream: Source) -> bool:
        """Whether a stream comes from another peer."""
        path = stream.partitions[0].path
        return path is not None and path.is_relative_to(self.links)

    def _look(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for name, source in self.program.streams.items():
            hold = self._holds.get(name) if self._holds is not None else None
            if hold != 0:
                paths = map(str, source.partitions)
                found |= {path: self._reach[path] if hold else listing(path) for path in paths}
                found[name] = {"ended": int(source.ended)} if source.ended else {}
        return found

    def has_news(self) -> bool:
        """Whether there is new input since it was run last; removed files do not count."""
        seen = self._seen or {}
        return any(found.items() - seen.get(path, {}).items() for path, found in self._look().items())

    def run(self) -> None:
        """Read to the end of the present input, and send the results."""
        self._seen = {**(self._seen or {}), **self._look()}
        self.runner.run()
        self.send()

    def send(self) -> None:
        """Send what has not been sent."""
        begun = thread_time()
        self.sender.send(self.program, self.plan)
        self.sending_s += thread_time() - begun

    def hand_on(self, link: Callable[[str], Link]) -> bool:
        """Send the flows that are only handed on; whether there was anything."""
        found = False
        begun = thread_time()
        for flow, source in self.program.handed_on:
            for size in link(flow).hand_on(link(source), self.plan):
                if flow not in self.program.kept:
                    self.sender.note(flow, size, 0)
                found = True
        self.sending_s += thread_time() - begun
        return found

    def forget(self, link: Callable[[str], Link]) -> None:
        """Let links remove what was read and sent on, or handed on: it is never read again."""
        done: dict[Link, list[Sequence[str]]] = {}
        for flow, source in self.program.handed_on:
            done.setdefault(link(source), []).append(link(flow).reached(self.plan))
        for name, stream in self.program.streams.items():
            if self._is_link(stream):
                taken = self.sender.read(name, len(stream.partitions))
                done.setdefault(Link.of(self.links, name, len(taken)), []).append(taken)
        for each, places in done.items():
            each.forget([min(place) for place in zip(*places, strict=True)])

    @property
    def log(self) -> AnswerLog:
        """The log of its answers."""
        return AnswerLog(self.runner.checkpoint)

    def alike(self) -> list[tuple[str, ...]]:
        """The flows with results that carry the same from here on; everything read was sent."""
        made = [each for each in self.program.made if each.kind == "results"]
        if len({each.text for each in made}) == len(made):
            return []
        found = served_alike(self.runner.checkpoint, {FLOW_PREFIX + each.flow: each.flow for each in made})
        return [names for names in found if len(names) > 1]

    def last(self) -> Manifest | None:
        """The manifest of its newest epoch."""
        return self.log.manifests.newest()


Open: TypeAlias = Callable[[str, Path], EpochRunner]
"""Opens the runner of a peer, by name, in a folder."""


def in_process(
    settings: Settings, held: ExitStack, functions: Mapping[str, PythonFunction] = MappingProxyType({})
) -> Open:
    """Peers whose epochs run in this process, without a JVM, as long as `held` is open."""

    def opened(name: str, folder: Path) -> EpochRunner:
        return held.enter_context(TrunkRunner(None, folder, settings, lambda epoch: None, functions))

    return opened


def on_spark(
    session: Session | None,
    settings: Settings,
    on_epoch: Callable[[str, Epoch], None],
    held: ExitStack,
    functions: Mapping[str, PythonFunction],
) -> Open:
    """Peers whose epochs run on Spark, as long as `held` is open; without a session, on one of their own."""
    spark = session or start_session()

    def opened(name: str, folder: Path) -> EpochRunner:
        return held.enter_context(TrunkRunner(spark, folder, settings, partial(on_epoch, name), functions))

    return opened


class TrunkRunner:
    """Runs the epochs of a peer on a trunk; as a context it holds the trunk's checkpoint."""

    def __init__(
        self,
        session: Session | None,
        folder: Path,
        settings: Settings,
        on_epoch: Callable[[Epoch], None],
        functions: Mapping[str, PythonFunction],
    ) -> None:
        """Without a session, epochs run in this process."""
        self.worked = Worked()
        self._tell = on_epoch
        self._session = session
        host = LocalHost() if session is None else SparkHost(session)
        self._trunk = Trunk(host, folder, settings, functions, Listener(self._take))
        self._reads = False

    def __enter__(self) -> TrunkRunner:
        self._trunk.__enter__()
        self.checkpoint = self._trunk.checkpoint
        self._driven: SteppedTrunk | StreamedTrunk = SteppedTrunk(self._trunk)
        pool = pool_of(self.checkpoint)
        self._usage = None if self._session is None else PoolUsage(self._session, pool)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._trunk.__exit__(kind, error, trace)

    def want(self, wanted: Workload) -> None:
        self._trunk.want(wanted)
        self._reads = bool(wanted.streams)

    def hold(self, holds: Mapping[str, int]) -> None:
        self._trunk.hold(holds)

    def run(self) -> None:
        if self._reads:
            self._driven.run()

    def start(self) -> bool:
        if self._session is None:
            return False
        if self._reads and isinstance(self._driven, SteppedTrunk):
            streamed = StreamedTrunk(self._trunk)
            if not streamed.start():
                return False
            self._driven = streamed
        return True

    def check(self) -> None:
        if isinstance(self._driven, StreamedTrunk):
            self._driven.check()

    def stop(self) -> None:
        if isinstance(self._driven, StreamedTrunk):
            self._driven.stop()
            self._driven = SteppedTrunk(self._trunk)  # which knows the present offsets

    def _take(self, epoch: Epoch) -> None:
        worked = self.worked
        worked.epochs += 1
        worked.items += epoch.manifest.items
        worked.bytes_read += epoch.manifest.bytes_read
        worked.cpu_s += epoch.cpu
        worked.executor_cpu_s = 0.0 if self._usage is None else self._usage.seconds()
        self._tell(epoch)
