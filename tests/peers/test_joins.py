"""Joins that are made on the way: their tuples travel, and no answer shows it (LAWS 3.7)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.network.catalogue import Flow
from anabranch.network.description import RegisteredStream
from anabranch.network.needs import QueryNeeds
from anabranch.network.options import Option, Options
from anabranch.network.planner import Planner
from anabranch.network.topology import built, line
from anabranch.peers.running import RunningNetwork
from anabranch.sharing.forest import PropertyForest
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from network.making import RARE
from network.simulation import alone as by_law
from peers.test_running import ITEMS, deadly, killed_run, photon_items, photon_stream
from peers.working import Alone, GrowingStream, bare_network, dead_letters_of, network_of
from sharing.joining import joining
from spark.test_sent_tuples import asked, items

JOIN = RARE.replace("photon1", "photons").replace("photon2", "others")
"""Few photons meet, so it is made near its streams."""
NEAR = (
    '<r>{ for $x in stream("photons")/photons/photon for $y in stream("others")/photons/photon '
    "where $x/det_time >= $y/det_time - 1 and $x/det_time <= $y/det_time + 1 return <p>{ $x/en }</p> }</r>"
)
SELF = JOIN.replace('"others"', '"photons"')


def tuple_flows(running: RunningNetwork) -> list[Flow]:
    """The flows over links that carry tuples."""
    return [each for each in running.catalogue.hops if isinstance(each.form, PropertyForest)]


@pytest.mark.mass
def test_a_join_near_its_streams(tmp_path: Path) -> None:
    """Tuples go over links from where the streams meet, and end when both streams have; who leaves frees them."""
    items = {"photons": photon_items(45, 1), "others": photon_items(45, 2)}
    grown = {name: GrowingStream(tmp_path / name, each) for name, each in items.items()}
    streams = [photon_stream(tmp_path, "photons", "SP0"), photon_stream(tmp_path, "others", "SP1")]
    with bare_network(network_of(line(4), streams), tmp_path / "network", Random(1)) as running:
        chosen = running.register("a", JOIN, "SP3").chosen
        running.register("b", JOIN.replace("result", "pair"), "SP2")
        assert [(each.before, each.at) for each in tuple_flows(running)] == [("SP1", "SP2"), ("SP2", "SP3")]
        assert chosen is not None
        assert chosen.words.startswith("joined at SP1: ")
        running.register("self", SELF, "SP3")
        for each in grown.values():
            each.grow(30)
        running.drain()
        before = len(tuple_flows(running))
        with running.together():
            running.register("late", JOIN, "SP3")
            running.register("with it", JOIN, "SP3")
        assert len(tuple_flows(running)) == before + 2, "who comes later gets tuples of its own"
        running.cancel("late", "with it")
        assert len(tuple_flows(running)) == before
        for each in grown.values():
            each.grow(20)
        running.end_stream("photons")
        running.end_stream("others")
        whole = {name: "".join(("<photons>", *each, "</photons>")) for name, each in items.items()}
        assert running.answer("a") == by_law(JOIN, whole)
        assert len(running.answer("a")) > 200, "nothing has met"
        assert running.answer("b") == by_law(JOIN, whole).replace("result", "pair")
        assert running.answer("self") == by_law(SELF, whole)
        assert not running.catalogue.flows


@pytest.mark.parametrize(
    ("text", "partitions", "domains", "time", "reason"),
    [
        (JOIN, 1, True, "det_time", "stream 'photons' may have accents, and has declared domains"),
        (JOIN, 2, False, "det_time", "stream 'photons' has several partitions"),
        (NEAR, 1, False, None, "it has to wait for the end of its streams"),
        (NEAR.replace("return", "order by $x/en return"), 1, False, "det_time", "it has to wait for the end"),
        (NEAR.replace("$x/en }", "$x/en }{ $x/en#1 }"), 1, False, "det_time", "nothing is known of how its inputs"),
    ],
)
def test_joins_that_stay(
    tmp_path: Path, text: str, partitions: int, domains: bool, time: str | None, reason: str
) -> None:
    """Where tuples would not be exact the join is made where it is asked for, and the plan says why."""
    paths = tuple(tmp_path / str(number) for number in range(partitions))
    for path in (*paths, tmp_path / "others"):
        path.mkdir()
    streams = [photon_stream(tmp_path, name, "SP0", accents=domains) for name in ("photons", "others")]
    declared = None if time is None else ItemPath.parse(time)
    first = replace(streams[0].source, path=paths[0], more=paths[1:], time=declared)
    if domains:
        first = replace(first, domains=((ItemPath.parse("phc"), ("1", "2")),))
    streams[0] = replace(streams[0], source=first)
    planner = Planner.over(network_of(line(3), streams))
    chosen = planner.register("a", text, "SP2").chosen
    assert chosen is not None
    assert chosen.words.startswith(f"joined at SP2, for {reason}")
    assert not any(isinstance(each.form, PropertyForest) for each in planner.catalogue.flows.values())


def test_what_fails_for_a_tuple(tmp_path: Path) -> None:
    """It goes on to the subscriber and fails there; what fails for an item, where the join is made (LAWS 2.4)."""
    windows = "for $x in stream('s')/r/i[w > 0]|count 3| for $y in stream('u')/r/i|count 1|"
    text = f"<r>{{ {windows} where $x/v >= 2 and $x/k = $y/k return <o>{{ $x/v }}{{ $y/v }}</o> }}</r>"
    given = {"s": ("1", "much", "3", "4"), "u": ("7",)}
    streams = []
    for name, values in given.items():
        lines = [f"<i><t>{place}</t><k>1</k><v>{each}</v><w>1</w></i>" for place, each in enumerate(values)]
        GrowingStream(tmp_path / name, [*lines, "<i><t>9</t><k>1</k><v>5</v><w>no</w></i>"]).grow(9)
        source = Source(name, tmp_path / name, "lines", root="r", time=ItemPath.parse("t"))
        streams.append(RegisteredStream(source, "SP0", "SP0", None, accents=False))
    network = network_of(line(2), streams, "widening", [("a", text, "SP1")])
    with bare_network(network, tmp_path / "network", Random(1)) as running:
        (flow,) = tuple_flows(running)
        running.drain()
        assert running.answer("a") == "<r><o><v>3</v><v>7</v></o></r>"
        letters = {(each.subscription, each.code, each.raw[:5]) for each in dead_letters_of(running, "a")}
        assert letters == {("a", "FORG0001", "<i_i>"), (f"flow {flow.name}", "FORG0001", "<i><t")}


@pytest.mark.mass
def test_killed_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuples are sent once, whatever is cut off in between."""
    asked = (("a", JOIN, "SP2"), ("b", ITEMS, "SP2"), ("c", JOIN, "SP1"))
    streams = [photon_stream(tmp_path, name, "SP0") for name in ("photons", "others")]
    planned = killed_run(tmp_path, Random(4), deadly(monkeypatch), streams, asked)
    assert sum(isinstance(each.form, PropertyForest) for each in planned.hops) >= 2


@pytest.mark.parametrize("seed", [1])
@pytest.mark.mass
def test_random_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Joins are made anywhere, shared and widened as it comes, and answer as a single engine does."""
    assert check_joins(tmp_path, monkeypatch, seed), "no tuples have travelled"


def check_joins(folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> int:
    """Try random joins in a random network, in which plans are taken at random; gives how many have read tuples."""
    random = Random(seed)
    real = Options.of

    def at_random(options: Options, need: QueryNeeds, at: str) -> list[Option]:
        found = list(real(options, need, at))
        return [random.choice(found)] if random.random() < 0.7 else found

    monkeypatch.setattr(Options, "of", at_random)
    topology = built(random.choice(("line", "star", "grid", "random")), random.randrange(3, 6), random.randrange(99))
    time, slack, odd = ItemPath.parse("t"), Fraction(random.choice((0, 0, 3))), random.choice((0.0, 0.1))
    grown, streams = [], []
    for name in "su":
        grown.append(GrowingStream(folder / name, items(random, 40, odd=odd)))
        at = random.choice(topology.peers)
        source = Source(name, folder / name, "lines", root="r", time=time, slack=slack)
        streams.append(RegisteredStream(source, at, at, None, accents=False))
    alone = Alone(folder / "alone", [each.source for each in streams], random)
    read = 0
    with bare_network(network_of(topology, streams), folder / "network", random) as running:
        first = iter(asked(random))
        for number in range(5):
            if number > 2:  # the first three come together
                running.drain()
                for each in (*grown, *grown):
                    each.grow(random.randrange(9))
            name, text = f"q{number}", next(first, joining(random)).text
            running.register(name, text, random.choice(topology.peers))
            alone.drain()
            alone.queries[name] = text
            read += sum(running.catalogue.flows[each] in tuple_flows(running) for each in reads(running, name))
            if random.random() < 0.2:
                gone = random.choice(list(alone.queries))
                running.cancel(gone)
                del alone.queries[gone]
        for each in grown:
            each.grow(40)
        running.drain()
        alone.drain()
        for name, text in alone.queries.items():
            assert running.answer(name) == alone.answer(name), f"{seed}: {text}"
    return read


def reads(running: RunningNetwork, name: str) -> tuple[str, ...]:
    return running.catalogue.subscriptions[name].reads
