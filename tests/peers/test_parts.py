"""A network in parts, each with some super-peers, which send one another what they make, in topics or in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from threading import Event
from time import monotonic

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from anabranch.errors import StateError, UsageError
from anabranch.kafka import KafkaCluster
from anabranch.kafka import documents as pieces
from anabranch.kafka.documents import DocumentReceiver, TopicDocument, pieces_of
from anabranch.kafka.faults import KafkaFault, Remedy
from anabranch.kafka.transactions import write_once
from anabranch.network.description import FolderLinks, Network, TopicLinks, read_network
from anabranch.network.topology import line
from anabranch.peers.carriers import FolderCarrier, Parcel
from anabranch.peers.parts import ChangeInterrupted
from anabranch.peers.running import RunningNetwork
from anabranch.storage import Location
from anabranch.storage.interface import Data
from brokers import PATIENCE, Broker, started, stop
from kafka.producing import await_markers
from peers.test_running import ITEMS, WIDER, WINDOW, photon_items, photon_stream
from peers.working import Alone, BareRunner, GrowingStream, network_of

ASKED = (("items", ITEMS, "SP1"), ("wider", WIDER, "SP2"), ("window", WINDOW, "SP2"))


def part(network: Network, folder: Path, here: Sequence[str], warn: Callable[[str], None]) -> RunningNetwork:
    """Some peers of a network, in this process and without Spark, in a folder of their own."""

    def opened(name: str, where: Path) -> BareRunner:
        return BareRunner(where, Random(3), (1_500, 9_000))

    return RunningNetwork(network, folder, runner=opened, here=here, on_warning=warn)


@contextmanager
def parts(network: Network, folder: Path, *names: Sequence[str]) -> Iterator[list[RunningNetwork]]:
    """All parts of a network at work; each has a disk of its own."""
    with ExitStack() as held:
        found = []
        for number, here in enumerate(names):
            found.append(held.enter_context(part(network, folder / f"part-{number}", here, lambda message: None)))
        for each in found:
            each.start()
        yield found


def until(holds: Callable[[], bool], *running: RunningNetwork) -> None:
    """Wait until something holds; a part that has failed says why."""
    patience, never = monotonic() + PATIENCE, Event()
    while not holds():
        for each in running:
            each._raise_failure()
        assert monotonic() < patience, "nothing comes any more"
        never.wait(0.05)


def linked(network: Network, broker: Broker) -> Network:
    prefix = broker.topic("links").replace("-", "_")
    return replace(network, link=TopicLinks(KafkaCluster(broker.address), prefix))


def through_folder(network: Network, folder: Path | str) -> Network:
    return replace(network, link=FolderLinks(Location.of(folder)))


STORES = pytest.mark.parametrize("store", ["", "file+object://"], ids=["disk", "object store"])
"""A folder on a disk, and in an object store, by the client that speaks to S3."""


def test_answers_over_topics_are_those_of_one_engine(broker: Broker, tmp_path: Path) -> None:
    """Three parts with topics between them."""
    check_answers(lambda network: linked(network, broker), tmp_path)


@STORES
@pytest.mark.mass
def test_answers_over_a_folder_are_those_of_one_engine(tmp_path: Path, store: str) -> None:
    """Three parts with a folder between them, in which nothing is left that was read."""
    between = f"{store}{tmp_path}/between"
    check_answers(lambda network: through_folder(network, between), tmp_path)
    left = Location.of(between).names(below=True)
    assert not [each for each in left if each.startswith("channels/")]
    assert any(each.startswith("orders/") for each in left)


def check_answers(link: Callable[[Network], Network], tmp_path: Path) -> None:
    """Parts with disks of their own, stopped and started again in between: answers are as if there were one."""
    items = photon_items(120)
    stream, grown = photon_stream(tmp_path, "photons", "SP0"), GrowingStream(tmp_path / "photons", items)
    alone = Alone(tmp_path / "alone", [stream.source], Random(1))
    alone.queries = {name: text for name, text, _ in ASKED}
    network = link(network_of(line(3), [stream], "widening", ASKED))
    for count in (50, 40, 30):
        with parts(network, tmp_path, ["SP0"], ["SP1"], ["SP2"]) as (first, second, third):
            grown.grow(count)
            alone.drain()
            for name, _, at in ASKED:
                running = second if at == "SP1" else third
                due = alone.answer(name)
                until(lambda asked=name, at_work=running, due=due: at_work.answer(asked) == due, first, second, third)  # type: ignore[misc]
    assert "<n>" in alone.answer("window")


@pytest.mark.spark
def test_a_broker_that_is_killed_between_parts(tmp_path: Path) -> None:
    """What was made meanwhile is sent when it is back, once."""
    own = started(tmp_path / "broker")
    try:
        stream, grown = photon_stream(tmp_path, "photons", "SP0"), GrowingStream(tmp_path / "photons", photon_items(90))
        alone = Alone(tmp_path / "alone", [stream.source], Random(1))
        alone.queries = {name: text for name, text, _ in ASKED}
        network = linked(network_of(line(3), [stream], "widening", ASKED), own)
        with parts(network, tmp_path, ["SP0"], ["SP1", "SP2"]) as (first, second):
            grown.grow(40)
            alone.drain()
            until(lambda: second.answer("wider") == alone.answer("wider"), first, second)
            own.kill()
            grown.grow(50)
            alone.drain()
            until(lambda: not first.peers["SP0"].has_news(), first, second)
            started(own.folder)
            for name, _, _ in ASKED:
                until(lambda asked=name: second.answer(asked) == alone.answer(asked), first, second)  # type: ignore[misc]
    finally:
        stop(own.folder)


def test_answers_elsewhere(tmp_path: Path) -> None:
    """What is answered elsewhere cannot be asked for here."""
    stream = photon_stream(tmp_path, "photons", "SP0")
    (tmp_path / "photons").mkdir()
    network = through_folder(network_of(line(2), [stream], "widening", [("items", ITEMS, "SP1")]), tmp_path / "between")
    with (
        part(network, tmp_path / "part", ["SP0"], lambda message: None) as running,
        pytest.raises(UsageError, match="'items' is answered at 'SP1', which is not run here"),
    ):
        running.answer("items")


def test_parts_need_links_and_known_peers(tmp_path: Path) -> None:
    """Without a folder or topics between them there is no way to other processes."""
    network = network_of(line(2), [photon_stream(tmp_path, "photons", "SP0")])
    with pytest.raises(UsageError, match="parts of a network need links that reach other processes"):
        part(network, tmp_path / "part", ["SP0"], lambda message: None)
    with pytest.raises(UsageError, match="'SP9' is no super-peer"):
        part(network, tmp_path / "part", ["SP9"], lambda message: None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('link = "pigeons"', "the link 'pigeons' is unknown"),
        ('topics = "t"', "'topics' and [kafka] go with link"),
        ('link = "folder"', "'folder' is missing"),
        ('folder = "f"', "'folder' goes with link"),
        ('link = "folder"\nfolder = "state"\ncheckpoint = "state"', "by the folder of links and by the checkpoint"),
        ('link = "kafka"', "'brokers' is missing"),
        ('link = "kafka"\n[kafka]\nbrokers = "a:1"', "'topics' is the prefix of the topics of links"),
        ('link = "kafka"\ntopics = "t"\n[kafka]\nbrokers = "a"', "the broker 'a' is no host with a port"),
    ],
)
def test_links_that_cannot_be(tmp_path: Path, settings: str, message: str) -> None:
    """What is wrong with links is told with its place in the file."""
    (tmp_path / "NETWORK.toml").write_text(f'[network]\ntopology = "line"\npeers = 2\n{settings}\n')
    with pytest.raises(UsageError) as caught:
        read_network(tmp_path / "NETWORK.toml")
    assert message in caught.value.message


@STORES
def test_a_folder_between_parts(tmp_path: Path, store: str) -> None:
    """What is sent again is known; what was read is removed; a list that misses a file is not believed."""
    warned: list[str] = []
    links = FolderLinks(Location.of(f"{store}{tmp_path}/between"))
    maker, reader = (FolderCarrier(links, each, warned.append) for each in ("SP0", "SP1"))
    assert list(reader.orders(0)) == []
    for number in (1, 2, 3):
        maker.publish_order(number, b"%d" % number, 0)
    assert list(reader.orders(1)) == [(2, b"2"), (3, b"3")]
    maker.publish_order(4, b"4", 2)
    assert list(reader.orders(2)) == [(3, b"3"), (4, b"4")]
    with pytest.raises(StateError, match="the order 2 of the network's plan is no longer in"):
        list(reader.orders(1))
    reader.report(b"idle")
    assert maker.reports() == {"SP1": b"idle"}
    channel = maker.channel("SP0", "SP1")
    first, second = (Parcel("photons.1", 0, f"000001-{number:010}.xml", b"%d" % number) for number in (1, 2))
    other = Parcel("another/flow", 1, "000001-0000000001.xml", b"")
    for _ in range(2):
        maker.write({channel: [first, second, other]})
    flows = [("photons.1", 1), ("another/flow", 2)]
    assert sorted(reader.read(channel, flows, 0)) == [other, first, second]
    assert list(reader.read(channel, [("photons.1", 1)], 0)) == [first, second]
    reader.release(channel)
    assert list(reader.read(channel, flows, 0)) == [other], "which was not known, and may be later"
    maker.write({channel: [first]})  # which a kill has kept from being noted as sent
    assert list(reader.read(channel, [("photons.1", 1)], 1)) == [first]
    reader.release(channel)
    assert list(reader.read(channel, flows, 1)) == [], "what has lost its reader is removed, too"
    maker.write({channel: [first]})
    with pytest.raises(StateError, match="another run of the super-peer 'SP0' has taken over"):
        maker.write({channel: [first._replace(data=b"other")]})
    assert warned == []


def test_a_list_that_misses_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes while a list is made may be missing in it; it is read in its place nevertheless."""
    links = FolderLinks(Location.of(tmp_path))
    carrier = FolderCarrier(links, "SP0", lambda message: None)
    given = [Parcel("f", 0, f"000001-{number:010}.xml", b"") for number in range(1, 5)]
    channel = carrier.channel("SP0", "SP1")
    carrier.write({channel: given})
    whole = Location.names
    missing = iter([0, 3])  # of the first list the second file, of the second list the last one

    def names(self: Location, *, below: bool = False, after: str = "") -> list[str]:
        found, left_out = list(whole(self, below=below, after=after)), next(missing, None)
        return [each for number, each in enumerate(found) if number != left_out]

    monkeypatch.setattr(Location, "names", names)
    assert list(carrier.read(channel, [("f", 1)], 1)) == given[:3]
    assert list(carrier.read(channel, [("f", 1)], 1)) == given


@pytest.mark.mass
def test_a_folder_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for, which is said once; then all goes on."""
    created, is_away = Location.create, Event()

    def create(self: Location, data: Data) -> None:
        if is_away.is_set() and "between" in self.key:
            raise OSError("the server does not answer")
        created(self, data)

    monkeypatch.setattr(Location, "create", create)
    stream, grown = photon_stream(tmp_path, "photons", "SP0"), GrowingStream(tmp_path / "photons", photon_items(40))
    alone = Alone(tmp_path / "alone", [stream.source], Random(1))
    alone.queries = {"items": ITEMS}
    network = network_of(line(2), [stream], "widening", [("items", ITEMS, "SP1")])
    network = through_folder(network, tmp_path / "between")
    told: list[str] = []
    with ExitStack() as held:
        first, second = (
            held.enter_context(part(network, tmp_path / each, [each], told.append)) for each in ("SP0", "SP1")
        )
        is_away.set()
        for each in (first, second):
            each.start()
        grown.grow(40)
        alone.drain()
        until(lambda: any("waiting for" in each for each in told), first, second)
        is_away.clear()
        until(lambda: second.answer("items") == alone.answer("items"), first, second)
    assert sum("waiting for" in each for each in told) == sum("answers again" in each for each in told) == 1


def test_a_part_is_stopped_before_its_folder_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that plans looks for its orders first; stopped while it waits for them, it has not failed."""
    stop = Event()

    def begin(self: FolderCarrier) -> None:
        stop.set()
        raise OSError("the server does not answer")

    monkeypatch.setattr(FolderCarrier, "begin", begin)
    stream = photon_stream(tmp_path, "photons", "SP0")
    (tmp_path / "photons").mkdir()
    network = through_folder(network_of(line(2), [stream], "widening", [("items", ITEMS, "SP1")]), tmp_path / "between")
    running = RunningNetwork(
        network,
        tmp_path / "part",
        runner=lambda name, where: BareRunner(where, Random(3), (1_500,)),
        here=["SP0"],
        wanted=lambda: not stop.is_set(),
    )
    with pytest.raises(ChangeInterrupted):
        running.__enter__()


def test_a_second_run_over_a_folder(tmp_path: Path) -> None:
    """The run that began later goes on; the other one ends, and says why."""
    stream, grown = photon_stream(tmp_path, "photons", "SP0"), GrowingStream(tmp_path / "photons", photon_items(2_000))
    network = network_of(line(2), [stream], "widening", [("items", ITEMS, "SP1")])
    network = through_folder(network, tmp_path / "between")

    def grow_on() -> bool:
        grown.grow(1)
        return False

    with parts(network, tmp_path / "first", ["SP0"]) as (first,):
        until(lambda: grow_on() or (tmp_path / "first/part-0/links-sent.json").exists(), first)
        with (
            suppress(
                StateError
            ),  # what the first has written in another way, and nobody has read, ends the second, too
            parts(network, tmp_path / "second", ["SP0"]),
            pytest.raises(StateError, match="another run of the super-peer 'SP0' has taken over"),
        ):
            until(grow_on, first)


def test_documents_in_pieces(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents of any size arrive whole and in order; what was not committed never does."""
    monkeypatch.setattr(pieces, "_PIECE", 10)
    cluster, topic = KafkaCluster(broker.address), broker.topic()
    given = [TopicDocument("empty", b""), TopicDocument("ten", b"0123456789"), TopicDocument("more", bytes(range(35)))]
    write_once(cluster, list(pieces_of(topic, given)))
    await_markers(broker, topic)
    receiver = DocumentReceiver(cluster, topic, 0)
    assert list(receiver.receive()) == given
    assert list(receiver.receive()) == []
    cut = Producer({"bootstrap.servers": broker.address, "transactional.id": topic})
    cut.init_transactions(PATIENCE)
    cut.begin_transaction()
    for each in islice(TopicDocument("cut", bytes(30)).messages(topic), 2):
        cut.produce(each.topic, each.value, each.key, 0, headers=list(each.headers))
    cut.flush(PATIENCE)
    cut.abort_transaction(PATIENCE)
    write_once(cluster, list(TopicDocument("cut", bytes(30)).messages(topic)))
    await_markers(broker, topic)
    assert list(receiver.receive()) == [TopicDocument("cut", bytes(30))]
    assert [each.name for each in DocumentReceiver(cluster, topic, None).receive()] == ["empty", "ten", "more", "cut"]


def test_documents_that_are_gone(broker: Broker) -> None:
    """A topic that no longer holds what was not received yet, or is another one under its name, ends the receiver."""
    cluster, topic = KafkaCluster(broker.address), broker.topic()
    write_once(cluster, list(pieces_of(topic, [TopicDocument(f"{number}", b"x") for number in range(3)])))
    await_markers(broker, topic)
    admin = AdminClient({"bootstrap.servers": broker.address})
    for each in admin.delete_records([TopicPartition(topic, 0, 2)], request_timeout=PATIENCE).values():
        each.result()
    with pytest.raises(KafkaFault, match="was read to offset 1, and begins at 2 now"):
        list(DocumentReceiver(cluster, topic, 1).receive())
    with pytest.raises(KafkaFault, match="was read to offset 99, and ends at 4 now"):
        list(DocumentReceiver(cluster, topic, 99).receive())


def test_a_second_run_of_a_part(broker: Broker, tmp_path: Path) -> None:
    """The run that began later goes on; the other one ends, and says why."""
    stream, grown = photon_stream(tmp_path, "photons", "SP0"), GrowingStream(tmp_path / "photons", photon_items(2_000))
    network = linked(network_of(line(2), [stream], "widening", [("items", ITEMS, "SP1")]), broker)

    def grow_on() -> bool:
        grown.grow(1)
        return False

    with parts(network, tmp_path / "first", ["SP0"]) as (first,):
        until(lambda: grow_on() or (tmp_path / "first/part-0/links-sent.json").exists(), first)
        with parts(network, tmp_path / "second", ["SP0"]):
            with pytest.raises(KafkaFault) as caught:
                until(grow_on, first)
            assert caught.value.remedy is Remedy.FENCED
