"""One seed: what two parts of a network send each other, through topics or an object store, while both are killed.

Real are the links and their transport, with its carriers and their clients (`peers/`); the seed decides who runs when,
which requests are lost, late or not answered, and when a part is killed, between any two of these and around each file
that it writes for itself.
Disks lose nothing here: what a power cut leaves of such files is tried where the trunk is (`simulation.py`).

A part makes documents of two flows, the second of which the other part hears of late, as it does of a plan.
In the end that one has all documents, each once and in order, as they were made; and so it is at any time before, as
far as they have come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from anabranch.errors import AnabranchError
from anabranch.kafka import KafkaCluster, documents
from anabranch.network.description import FolderLinks, TopicLinks
from anabranch.peers import transport as transports
from anabranch.peers.links import Link
from anabranch.peers.transport import CarriedLinks, OutgoingLink, Transport
from anabranch.spark.checkpoint import durable
from anabranch.storage import Location
from simulation.broker import Broker
from simulation.clients import Wire
from simulation.place import Broken
from simulation.simulation import Outcome, folder_of, forget, inhabited
from simulation.store import BUCKET, SimulatedStore
from simulation.streams import BROKERS
from simulation.world import Killed, Process, World, events_of, threads_of

_FLOWS = {"first": 2, "second": 1}
"""The flows, with their partitions; a plan more has the second."""
_MAKER, _READER = "maker", "reader"
_PREFIX = "net"
_PIECE = 40
"""The bytes of a message, so that documents are several."""
_PATIENCE = 300
"""The seconds of the world in which all that was made has come, once parts are no longer killed."""


@dataclass
class Sending:
    """Two parts at work."""

    world: World
    base: Path
    links: TopicLinks | FolderLinks
    made: Sequence[tuple[str, int, str]]
    """The documents in the order in which they are made: of a flow, in a partition, with a text."""
    rough: bool = True
    """Whether parts are still killed."""
    kills: int = 0
    lives: int = 0
    failures: list[Exception] = field(default_factory=list)

    def run(self) -> None:
        """Let both parts live and die for a while, and then live to the end."""
        world = self.world
        people = Process("people")
        both = [world.spawn(people, partial(self._keep, name)) for name in (_MAKER, _READER)]
        for each in both:
            world.join(each)
        self._check(whole=True)

    def _keep(self, part: str) -> None:
        """Start a part again and again, until it has done all it has to do."""
        for number in range(1_000):
            process = Process(f"{part} {number}")
            rough = self.rough and number < 6
            if rough:
                process.fates.append(Doom(self, process, self.world.random.randint(1, 120)).step)
            self.lives += 1
            fiber = self.world.spawn(process, partial(self._make if part == _MAKER else self._read, rough))
            self.world.wait(partial(_is_done, fiber))
            ended, error = fiber.error is None, fiber.error
            if process.alive:
                self.world.kill(process)
            self._check(whole=False)
            if ended:
                return
            if not isinstance(error, AnabranchError | OSError | Killed):
                assert error is not None
                raise error
        raise Broken(f"the {part} comes to no end")

    # --- parts --------------------------------------------------------------------------------------------

    def _link(self, part: str, flow: str) -> Link:
        return Link.of(self.base / part / "links", flow, _FLOWS[flow])

    def _opened(self, part: str, failed: list[Exception]) -> Transport:
        (self.base / part).mkdir(parents=True, exist_ok=True)
        for flow in _FLOWS:
            self._link(part, flow).make()
        found = Transport(self.links, part, self.base / part, lambda message: None, failed.append, lambda: not failed)
        found.published(0)
        return found

    def _make(self, rough: bool) -> None:
        """Make all documents that are not there yet, and send them."""
        failed: list[Exception] = []
        transport = self._opened(_MAKER, failed)
        channel = transport.channel(_MAKER, _READER)
        leaving = tuple(OutgoingLink(flow, self._link(_MAKER, flow), channel) for flow in _FLOWS)
        transport.carried = CarriedLinks(plan=2, leaving=leaving)
        transport.start()
        numbers = dict.fromkeys(_FLOWS, 0)
        for flow, partition, text in self.made:
            numbers[flow] += 1
            plan = 1 + list(_FLOWS).index(flow)
            if (plan, numbers[flow]) > self._reached(flow, partition):
                self._link(_MAKER, flow).append(plan, numbers[flow], "<r/>", [text], partition)
            self.world.sleep(self.world.random.choice((0.0, 0.1)))
        self._until(transport, failed, lambda: transport.sent() is not None)

    def _reached(self, flow: str, partition: int) -> tuple[int, int]:
        """The plan and the number of the newest document; those that were sent may be gone."""
        name = self._link(_MAKER, flow).newest()[partition]
        return (int(name[:6]), int(name[7:17])) if name else (0, 0)

    def _read(self, rough: bool) -> None:
        """Receive all; the second flow is known when there has been some time for the first."""
        failed: list[Exception] = []
        transport = self._opened(_READER, failed)
        channel = transport.channel(_MAKER, _READER)
        links = {flow: self._link(_READER, flow) for flow in _FLOWS}
        if any(links["second"].newest()) or self.world.random.random() < 0.3:
            transport.carried = CarriedLinks(plan=2, coming={channel: links})
        else:
            transport.carried = CarriedLinks(plan=1, coming={channel: {"first": links["first"]}})
        transport.start()
        self.world.wait(lambda: bool(failed), self.world.random.choice((0.5, 5.0)))
        transport.carried = CarriedLinks(plan=2, coming={channel: links})
        self._until(transport, failed, lambda: all(map(self._has_all, _FLOWS)))

    def _until(self, transport: Transport, failed: Sequence[Exception], done: Callable[[], bool]) -> None:
        patience = self.world.clock.monotonic() + _PATIENCE
        while not (failed or done()):
            if self.world.clock.monotonic() > patience:
                raise Broken("what is to come does not come")
            self.world.sleep(0.5)
        transport.stop()
        if failed:
            raise failed[0]

    # --- checks -------------------------------------------------------------------------------------------

    def _due(self, flow: str, partition: int) -> list[str]:
        return [f"<r>{text}</r>" for name, where, text in self.made if (name, where) == (flow, partition)]

    def _found(self, flow: str, partition: int) -> list[str]:
        return [data.decode() for _, data in self._link(_READER, flow).documents(partition, "", 1 << 30)]

    def _has_all(self, flow: str) -> bool:
        return all(len(self._found(flow, each)) >= len(self._due(flow, each)) for each in range(_FLOWS[flow]))

    def _check(self, *, whole: bool) -> None:
        with self.world.looking():
            for flow, partitions in _FLOWS.items():
                for each in range(partitions):
                    found, due = self._found(flow, each), self._due(flow, each)
                    if found != (due if whole else due[: len(found)]):
                        raise Broken(f"{flow}/{each} has\n{found}\ninstead of\n{due}")

    def die(self, process: Process) -> None:
        """A part is killed."""
        self.kills += 1
        self.world.kill(process)
        raise Killed


@dataclass
class Doom:
    """Ends a part after some steps."""

    sending: Sending
    process: Process
    left: int

    def step(self) -> None:
        self.left -= 1
        if not self.left:
            self.sending.die(self.process)


def _is_done(fiber: Any) -> bool:
    return bool(fiber.done)


def send(seed: int, adapt: Callable[[pytest.MonkeyPatch], None] = lambda patch: None) -> Outcome:
    """Run one seed, on production code as it is or as `adapt` has changed it; raises what it finds."""
    forget()
    with folder_of(seed) as base, pytest.MonkeyPatch.context() as patch:
        world = World(seed)
        random = Random(f"documents {seed}")
        made = [
            (flow, random.randrange(_FLOWS[flow]), f"<i>{number} {'.' * random.randrange(200)}</i>")
            for number, flow in enumerate(random.choices(list(_FLOWS), k=random.randint(5, 40)))
        ]
        links: TopicLinks | FolderLinks
        if random.random() < 0.5:
            topics = TopicLinks(KafkaCluster.of(BROKERS), _PREFIX)
            names = (topics.plan, topics.reports, topics.between(_MAKER, _READER))
            wire = Wire(Broker(dict.fromkeys(names, 1)), world)
            wire.installed(patch)
            links = topics
        else:
            store = SimulatedStore(world, patch)
            store.is_stale = False  # the folder is one whose lists can be trusted
            links = FolderLinks(Location.of(f"{BUCKET}/net"))
        adapt(patch)
        with inhabited(world, patch):
            patch.setattr(transports, "Thread", threads_of(world))
            patch.setattr(transports, "Event", events_of(world))
            patch.setattr(documents, "_PIECE", _PIECE)
            for name in ("publish", "replace"):
                patch.setattr(durable, name, _stepped(world, getattr(durable, name)))
            sending = Sending(world, base, links, made)
            sending.run()
        return Outcome(seed, world.steps, sending.lives, sending.kills, 0, world.trace.hexdigest())


def _stepped(world: World, write: Callable[..., Any]) -> Callable[..., Any]:
    """A write of a part for itself, before and behind which it may be killed."""

    def stepped(path: Any, data: bytes) -> Any:
        world.step("write", Location.of(path).name)
        found = write(path, data)
        world.step("written", Location.of(path).name)
        return found

    return stepped
