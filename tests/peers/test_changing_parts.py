"""A network in parts whose subscriptions and streams come and go: answers are those of one engine, whoever dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import monotonic

import pytest

from anabranch.errors import UsageError
from anabranch.kafka import KafkaCluster
from anabranch.network.description import FolderLinks, Network, RegisteredQuery, RegisteredStream, TopicLinks
from anabranch.network.topology import Topology, line, star
from anabranch.peers import parts as parting
from anabranch.peers import running as running_network
from anabranch.peers import transport
from anabranch.peers.carriers import FolderCarrier
from anabranch.peers.links import Link
from anabranch.peers.parts import NetworkPart
from anabranch.peers.peer import Peer
from anabranch.peers.records import SavedPlan
from anabranch.peers.running import RunningNetwork
from anabranch.peers.sending import Sender
from anabranch.spark.answers.log import empty_answer
from anabranch.storage import Location
from brokers import PATIENCE, Broker
from mass import Mass
from network.making import some_query
from peers.some import WHEN, some_items, with_sayings
from peers.test_running import ITEMS, WIDER, WINDOW, photon_items, photon_stream
from peers.working import Alone, BareRunner, GrowingStream, Killed, dying, network_of


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long before looking again."""
    for module, name in (
        (transport, "_POLL_SECONDS"),
        (transport, "_PAUSE_SECONDS"),
        (parting, "_POLL_SECONDS"),
        (running_network, "_POLL_SECONDS"),
        (running_network, "_QUICK_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 0.01)


class PartedNetwork:
    """A network in parts, each with a disk of its own, and one engine with the same streams and queries beside it.

    Whoever has died is started again, with the description as it is then.
    """

    def __init__(
        self, folder: Path, topology: Topology, parts: list[list[str]], seed: int, link: TopicLinks | None = None
    ) -> None:
        """Without topics, there is a folder between the parts."""
        self._folder = folder
        self._parts = parts
        self._random = Random(seed)
        between = link or FolderLinks(Location.of(folder / "between"))
        self.network: Network = replace(network_of(topology, []), link=between)
        self._running: dict[int, RunningNetwork] = {}
        self.alone = Alone(folder / "alone", [], Random(seed))
        self.died = 0
        self.told: list[str] = []
        self.described: Callable[[], Network] = lambda: self.network

    def start(self, *numbers: int) -> None:
        """Start some parts, the leader first; all of them unless some are named."""
        for number in numbers or range(len(self._parts)):
            while number not in self._running:
                self._open(number)

    def _open(self, number: int) -> None:
        def opened(name: str, where: Path) -> BareRunner:
            return BareRunner(where, self._random, (1_500, 9_000))

        found = RunningNetwork(
            self.network,
            self._folder / f"part-{number}",
            runner=opened,
            here=self._parts[number],
            on_warning=self.told.append,
            describe=lambda: self.described(),
        )
        try:
            found.__enter__()
        except Killed:
            self.died += 1
            return
        try:
            found.start()
        except Killed:
            self.died += 1
            with suppress(Killed):
                found.__exit__()
            return
        self._running[number] = found

    def stop(self, *numbers: int) -> None:
        """Stop some parts, or all of them; also such as have died."""
        for number in numbers or list(self._running):
            found = self._running.pop(number, None)
            if found is not None:
                try:
                    found.__exit__()
                except Killed:
                    self.died += 1

    @property
    def leader(self) -> RunningNetwork:
        return self._running[0]

    def _bury(self, *, leader: bool) -> None:
        """Start again whoever has died."""
        for number, each in list(self._running.items()):
            if not each.running and (leader or number):
                self.stop(number)
                self.start(number)

    def change(self, what: Callable[[RunningNetwork], object]) -> None:
        """Let the leader do something, and start again whoever dies meanwhile, until all of it is done."""
        patience, never = monotonic() + PATIENCE, Event()
        is_done = False
        while not is_done:
            failed: list[Exception] = []
            worker = Thread(target=self._attempt, args=(what, failed))
            worker.start()
            while worker.is_alive():
                never.wait(0.01)
                if self.leader.running or not worker.is_alive():
                    self._bury(leader=False)
                assert monotonic() < patience, "a change does not end"
            is_done = not failed
            if failed and not isinstance(failed[0], Killed):
                raise failed[0]
            if failed:
                self.died += 1
                self.stop(0)
                self.start(0)
                what = RunningNetwork.drain  # the description says what is wanted
        self._bury(leader=True)

    def _attempt(self, what: Callable[[RunningNetwork], object], failed: list[Exception]) -> None:
        try:
            what(self.leader)
        except Exception as error:
            failed.append(error)

    # --- changes ------------------------------------------------------------------------------------------------

    def register(self, name: str, text: str, at: str) -> None:
        self.alone.drain()
        self.alone.queries[name] = text
        asked = {**self.network.subscriptions, name: RegisteredQuery(name, text, Path(name), at, at)}
        self.network = replace(self.network, subscriptions=asked)
        self.change(lambda leader: leader.register(name, text, at))

    def cancel(self, name: str) -> None:
        self.alone.drain()
        del self.alone.queries[name]
        asked = {known: each for known, each in self.network.subscriptions.items() if known != name}
        self.network = replace(self.network, subscriptions=asked)
        self.change(lambda leader: leader.cancel(name))

    def bring(self, stream: RegisteredStream, path: Path | None = None) -> None:
        """A stream comes; the leader may know another path of it."""
        self.alone.drain()
        self.alone._trunk._sources = (*self.alone._trunk._sources, stream.source)
        self.network = replace(self.network, streams={**self.network.streams, stream.source.name: stream})
        source = replace(stream.source, path=path or stream.source.path)
        self.change(
            lambda leader: leader.register_stream(source, stream.at, stream.by, stream.rate, accents=stream.accents)
        )

    def end(self, name: str) -> dict[str, str]:
        """End a stream; gives the answers of a single engine to all who read nothing else."""
        self.alone.drain()
        sources = self.alone._trunk._sources
        self.alone._trunk._sources = tuple(replace(each, ended=each.ended or each.name == name) for each in sources)
        self.alone.drain()
        over = [each for each, text in self.alone.queries.items() if f'stream("{name}")' in text]
        complete = {each: self.alone.answer(each) for each in over if self.alone._trunk.log.subscription(each)}
        streams = {known: each for known, each in self.network.streams.items() if known != name}
        asked = {known: each for known, each in self.network.subscriptions.items() if known not in over}
        self.network = replace(self.network, streams=streams, subscriptions=asked)
        for each in over:
            del self.alone.queries[each]
        self.change(lambda leader: leader.end_stream(name))
        self.alone._trunk._sources = tuple(each for each in self.alone._trunk._sources if each.name != name)
        return complete

    def drain(self) -> None:
        self.alone.drain()
        self.change(RunningNetwork.drain)

    def answer(self, name: str) -> str:
        """The answer where it is, also of a subscription that has ended."""
        for each in self._running.values():
            for peer in each.peers.values():
                found = peer.log.subscription(name)
                if found is not None:
                    return peer.log.answer(found).text()
        at = self.network.subscriptions[name].at
        return next(each.answer(name) for each in self._running.values() if at in each.peers)

    def check(self) -> None:
        """All answers are those of the one engine."""
        for name, text in self.alone.queries.items():
            has_begun = self.alone.log.subscription(name) is not None
            due = self.alone.answer(name) if has_begun else empty_answer(text, self.alone.sources)
            assert self.answer(name) == due, name
        assert list(self.leader.catalogue.subscriptions) == list(self.alone.queries)


@pytest.fixture
def three(tmp_path: Path) -> Iterator[PartedNetwork]:
    """A line of three super-peers, each in a part of its own."""
    found = PartedNetwork(tmp_path, line(3), [["SP0"], ["SP1"], ["SP2"]], 1)
    yield found
    found.stop()


@pytest.mark.mass
@pytest.mark.parametrize("accents", [False, True])
def test_subscriptions_come_and_go(three: PartedNetwork, tmp_path: Path, accents: bool) -> None:
    """A flow is widened for who comes, over parts that hand it on or read it; who goes leaves the others alone."""
    come_and_go(three, tmp_path, accents=accents)


def test_subscriptions_come_and_go_over_topics(broker: Broker, tmp_path: Path) -> None:
    """Orders, reports and what new readers have missed travel in topics, too."""
    link = TopicLinks(KafkaCluster(broker.address), broker.topic("links").replace("-", "_"))
    network = PartedNetwork(tmp_path, line(3), [["SP0"], ["SP1"], ["SP2"]], 1, link)
    try:
        come_and_go(network, tmp_path, accents=True)
    finally:
        network.stop()


def come_and_go(network: PartedNetwork, folder: Path, *, accents: bool) -> None:
    """Subscriptions to one stream come and go."""
    items = photon_items(120)
    grown = GrowingStream(folder / "photons", with_sayings(Random(2), items, 3) if accents else items)
    network.start()
    network.bring(photon_stream(folder, "photons", "SP0", accents=accents))
    network.register("window", WINDOW, "SP2")
    grown.grow(40)
    network.drain()
    network.check()
    network.register("items", ITEMS, "SP1")
    grown.grow(20)
    network.register("wider", WIDER, "SP2")
    grown.grow(20)
    network.drain()
    network.check()
    network.cancel("window")
    grown.grow(20)
    network.register("again", WINDOW, "SP1")
    grown.grow(30)
    network.drain()
    network.check()
    assert "<p>" in network.answer("wider")


@pytest.mark.mass
def test_a_stream_comes_and_goes_in_another_part(three: PartedNetwork, tmp_path: Path) -> None:
    """The part where it comes in waits for its own description, and reads it there; when it ends, windows close."""
    grown = GrowingStream(tmp_path / "photons", photon_items(60))
    three.start()
    known = three.network
    three.described = lambda: known
    stream = photon_stream(tmp_path, "photons", "SP2")
    bringing = Thread(target=three.bring, args=(stream, tmp_path / "elsewhere"))
    bringing.start()
    patience, never = monotonic() + PATIENCE, Event()
    while not any("waiting for the stream 'photons'" in each for each in three.told):
        assert monotonic() < patience
        never.wait(0.01)
    three.described = lambda: three.network
    bringing.join()
    three.register("window", WINDOW, "SP0")
    three.register("items", ITEMS, "SP1")
    grown.grow(50)
    three.drain()
    three.check()
    grown.grow(10)
    complete = three.end("photons")
    assert {name: three.answer(name) for name in complete} == complete
    assert list(three.leader.catalogue.flows) == []


def test_only_the_leader_changes_the_plan(three: PartedNetwork, tmp_path: Path) -> None:
    """Another part refuses; so does the leader what parts cannot do, and then nothing has changed."""
    GrowingStream(tmp_path / "photons", photon_items(10)).grow(10)
    three.start()
    with pytest.raises(UsageError, match="is changed where 'SP0' runs"):
        three._running[1].register("items", ITEMS, "SP0")
    stream = photon_stream(tmp_path, "photons", "SP1")
    three.bring(replace(stream, source=replace(stream.source, time=None)))
    three.register("items", ITEMS, "SP2")
    when = WHEN[1].replace('"others"', '"photons"')
    with pytest.raises(UsageError, match="which parts of a network cannot compare"):
        three.leader.register("when", f"<m>{{ {when} }}</m>", "SP2")
    three.drain()
    three.check()


@pytest.mark.mass
def test_a_part_that_is_away(three: PartedNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change waits for it, which is said, and streams are read on meanwhile; it is made when the part is back."""
    monkeypatch.setattr(parting, "_UNTIL_SAID", 0.1)
    grown = GrowingStream(tmp_path / "photons", photon_items(80))
    three.start()
    three.bring(photon_stream(tmp_path, "photons", "SP0"))
    three.register("items", ITEMS, "SP1")
    grown.grow(30)
    three.drain()
    three.stop(2)
    registering = Thread(target=three.register, args=("wider", WIDER, "SP2"))
    registering.start()
    patience, never = monotonic() + PATIENCE, Event()
    while not any("a change of the plan waits for SP2" in each for each in three.told):
        assert monotonic() < patience
        never.wait(0.01)
    before = three.answer("items")
    grown.grow(30)
    while three.answer("items") == before:
        assert monotonic() < patience, "streams are not read on"
        never.wait(0.01)
    del three.alone.queries["wider"]
    three.alone.drain()
    three.alone.queries["wider"] = WIDER
    while three.answer("items") != three.alone.answer("items"):
        assert monotonic() < patience
        never.wait(0.01)
    three.start(2)
    registering.join()
    grown.grow(20)
    three.drain()
    three.check()


def deadly(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Whatever a part makes durable or sends may be the last thing it does; it is, when the countdown has come to 0."""
    places = (
        *((Link, each) for each in ("append", "begin", "hand_on", "forget", "take")),
        *((FolderCarrier, each) for each in ("write", "publish_order", "report", "release")),
        (Sender, "_save"),
        (SavedPlan, "save"),
        (Peer, "want"),
        (Peer, "run"),
        (NetworkPart, "_carry_out"),
        (NetworkPart, "_carry"),
    )
    return dying(monkeypatch, places)


def some_parts(random: Random, topology: Topology) -> list[list[str]]:
    """The super-peers, in two or more parts at random; the first part is the leader."""
    others = list(topology.peers[1:])
    random.shuffle(others)
    found: list[list[str]] = [[topology.peers[0]]]
    for each in others:
        if len(found) == 1 or random.random() < 0.5:
            found.append([each])
        else:
            random.choice(found).append(each)
    return found


def random_changes(folder: Path, random: Random, countdown: list[int] | None) -> int:
    """Streams and subscriptions come and go at random, and parts are stopped and killed; gives how often."""
    topology = random.choice((line(3), line(4), star(4)))
    network = PartedNetwork(folder, topology, some_parts(random, topology), random.randrange(99))
    grown: dict[str, GrowingStream] = {}
    places = {"photons": random.choice(topology.peers), "others": random.choice(topology.peers)}
    complete: dict[str, str] = {}

    def bring(name: str) -> None:
        accents = random.random() < 0.5
        items = some_items(random, random.randrange(90), 80, disorder=0.05)
        grown[name] = GrowingStream(folder / f"{name}-in", with_sayings(random, items, 2 * accents))
        stream = photon_stream(folder, name, places[name], accents=accents)
        network.bring(replace(stream, source=replace(stream.source, path=folder / f"{name}-in")))

    try:
        network.start()
        bring("photons")
        for number in range(random.randrange(6, 10)):
            if countdown is not None:
                countdown[0] = random.choice((0, *range(2, 60, 3)))
            match random.randrange(8):
                case 0 | 1 | 2:
                    network.register(
                        f"q{number}", some_query(random, tuple(sorted(grown))), random.choice(topology.peers)
                    )
                case 3 if len(network.alone.queries) > 1:  # a description without any keeps what there is
                    network.cancel(random.choice(list(network.alone.queries)))
                case 4 if "others" not in grown:
                    bring("others")
                case 5 if len(grown) > 1 and not is_joined(network):
                    del grown["others"]
                    complete |= network.end("others")
                    for name, due in complete.items():
                        assert network.answer(name) == due
                    places = {name: at for name, at in places.items() if name != "others"}
                case 6:
                    some = random.randrange(1, len(network._parts))
                    network.stop(some)
                    network.start(some)
                case _:
                    network.stop(0)
                    network.start(0)
            if countdown is not None:
                countdown[0] = 0
            for each in grown.values():
                each.grow(random.randrange(12))
            if random.random() < 0.7:
                network.drain()
                network.check()
            if "others" not in places:
                break
        for each in grown.values():
            each.grow(100)
        network.drain()
        network.check()
    finally:
        network.stop()
    return network.died


def is_joined(network: PartedNetwork) -> bool:
    return any("others" in each and "photons" in each for each in network.alone.queries.values())


@pytest.mark.mass
def test_random_changes(mass: Mass, tmp_path: Path) -> None:
    """Parts are stopped and started again between changes of all kinds."""
    for number in mass.cases(60):
        random_changes(tmp_path / f"{number}", Random(number), None)


@pytest.mark.mass
def test_parts_killed_anywhere(mass: Mass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any part, the leader among them, dies at any step of a change, and takes it up again."""
    countdown = deadly(monkeypatch)
    died = sum(random_changes(tmp_path / f"{number}", Random(number), countdown) for number in mass.cases(60))
    assert died or mass.done < 10
