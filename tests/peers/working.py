"""Networks for tests: peers without Spark, streams that grow, and the single engine that answers are held against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from anabranch.network.description import Network, RegisteredQuery, RegisteredStream, Strategy
from anabranch.network.operators import arriving
from anabranch.network.topology import Topology
from anabranch.peers.programs import FLOW_PREFIX, over
from anabranch.peers.running import RunningNetwork
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.intake.settings import IntakeSettings
from anabranch.spark.plan.wanted import Workload
from anabranch.stream.elements import DeadLetter
from anabranch.stream.reading.source import Source
from spark.bare import BareTrunk


class BareRunner:
    """Runs the epochs of a peer in this process."""

    def __init__(self, folder: Path, random: Random, epoch_bytes: Sequence[int]) -> None:
        self.checkpoint = Checkpoint.make(folder)
        self._trunk = BareTrunk(folder, (), random, finite=False)
        self._trunk.resume()
        self._epoch_bytes = epoch_bytes
        self._queries: Mapping[str, str] = {}

    def want(self, wanted: Workload) -> None:
        self._trunk._sources = tuple(wanted.streams.values())
        self._trunk.courses = wanted.courses
        self._trunk.documents = wanted.documents
        self._queries = wanted.subscriptions
        settings = IntakeSettings(self._trunk._sources, self._epoch_bytes[0], None, 2, False, held=self._trunk.held)
        settings.save(self.checkpoint)  # whoever sends an epoch again reads them

    def hold(self, holds: Mapping[str, int]) -> None:
        self._trunk.held = holds

    def start(self) -> bool:
        return False

    def check(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def run(self) -> None:
        self._trunk.run(self._queries, self._epoch_bytes, (1, 2))


def bare_network(
    network: Network, folder: Path, random: Random, epoch_bytes: Sequence[int] = (1_500, 9_000)
) -> RunningNetwork:
    """A network whose peers run in this process."""

    def opened(name: str, where: Path) -> BareRunner:
        return BareRunner(where, random, epoch_bytes)

    return RunningNetwork(network, folder, runner=opened)


def dead_letters_of(network: RunningNetwork, name: str) -> list[DeadLetter]:
    """What was set aside for a subscription: by it and of the streams that it reads, and by who makes its windows
    and tuples on the way."""
    catalogue = network.catalogue
    subscription = catalogue.subscriptions[name]
    streams = arriving(catalogue, subscription)
    flows = {flow for each in subscription.reads for flow in (each, *catalogue.above(each))}
    found: list[DeadLetter] = []
    for peer in network.peers.values():
        is_last = peer.name == subscription.at
        makers = {
            FLOW_PREFIX + each.flow for each in peer.program.made if each.kind == "results" and each.flow in flows
        }
        for letter in peer.log.dead_letters() if is_last or makers else ():
            of_stream = letter.subscription is None and letter.place.stream in streams
            if letter.subscription in makers or (is_last and (letter.subscription == name or of_stream)):
                found.append(letter)
    return found


def network_of(
    topology: Topology,
    streams: Iterable[RegisteredStream],
    strategy: Strategy = "widening",
    queries: Iterable[tuple[str, str, str]] = (),
) -> Network:
    """A network with streams, and queries that are asked from the beginning: name, text, and where."""
    asked = {name: RegisteredQuery(name, text, Path(name), at, at) for name, text, at in queries}
    return Network(topology, {}, {each.source.name: each for each in streams}, asked, strategy, 60.0)


class Alone:
    """The same queries on a single engine, registered at the same places of the same streams."""

    def __init__(self, folder: Path, sources: Sequence[Source], random: Random) -> None:
        self._trunk = BareTrunk(folder, sources, random, finite=False)
        self.queries: dict[str, str] = {}

    def drain(self) -> None:
        """Read what is there."""
        names = {each.name: each.name for each in self._trunk._sources}
        edited = [each.name for each in self._trunk._sources if each.updates]
        self._trunk.run(
            {name: over(text, names, edited) for name, text in self.queries.items()}, (1_200, 8_000), (1, 2)
        )

    def end(self) -> None:
        """End all streams."""
        self._trunk._sources = [replace(each, ended=True) for each in self._trunk._sources]
        self.drain()

    @property
    def sources(self) -> Sequence[Source]:
        """The streams that it reads."""
        return self._trunk._sources

    @property
    def log(self) -> AnswerLog:
        """The log of its answers."""
        return self._trunk.log

    def answer(self, name: str) -> str:
        """What has been answered so far."""
        return self._trunk.answer(name)


class GrowingStream:
    """A stream whose items come in portions, each a file, or in one file that grows."""

    def __init__(self, folder: Path, items: Sequence[str], *, one_file: bool = False) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._items = list(items)
        self._one_file = one_file
        self._files = 0

    def grow(self, count: int) -> None:
        """Bring some more items."""
        portion, self._items = self._items[:count], self._items[count:]
        self.bring(portion)

    def bring(self, portion: Sequence[str]) -> None:
        """Bring these."""
        if portion:
            end = "" if self._one_file else "\n"
            with (self._folder / f"{self._files:04}.xml").open("a", encoding="utf-8") as file:
                file.write("".join(each + end for each in portion))
            self._files += not self._one_file


class Killed(Exception):
    """Stands for kill -9."""


def dying(monkeypatch: pytest.MonkeyPatch, places: Iterable[tuple[type, str]]) -> list[int]:
    """Any of these calls may be the last; it is, when the countdown has come to 0."""
    countdown = [0]
    for owner, name in places:
        real = getattr(owner, name)

        def counting(*given: object, real: Callable[..., object] = real, name: str = name) -> object:
            countdown[0] -= 1
            if countdown[0] == 0:
                raise Killed(name)
            return real(*given)

        monkeypatch.setattr(owner, name, counting)
    return countdown
