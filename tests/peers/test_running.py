"""Networks at work: every answer is that of a single engine, whatever is shared, planned again, ended or killed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from shutil import rmtree

import pytest

from anabranch.errors import UsageError
from anabranch.network.catalogue import Catalogue
from anabranch.network.description import RegisteredStream, Strategy
from anabranch.network.topology import hypercube, line
from anabranch.peers.links import Link
from anabranch.peers.peer import Peer
from anabranch.peers.records import SavedPlan
from anabranch.peers.sending import Sender
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.photons import photons
from anabranch.stream.reading.source import Source
from disk import on_disk
from network.making import FIGURE_1, SCHEMA
from network.simulation import alone as by_law
from peers.some import some_run
from peers.working import Alone, GrowingStream, Killed, bare_network, dying, network_of

ARROWS = {"shipping": 9, "sharing": 9, "widening": 5}
WINDOW = (
    '<w>{ for $w in stream("photons")/photons/photon[en >= 1.3]|det_time diff 20 step 10| '
    "return <n>{ count($w) }{ sum($w/en) }</n> }</w>"
)

ITEMS = '<i>{ for $p in stream("photons")/photons/photon where $p/en >= 1.3 return <p>{ $p/en }</p> }</i>'
WIDER = ITEMS.replace("1.3", "0.9").replace("{ $p/en }", "{ $p/phc }")


def photon_stream(folder: Path, name: str, at: str, *, accents: bool = False) -> RegisteredStream:
    """A stream of photons."""
    source = Source(name, folder / name, "lines", SCHEMA, time=ItemPath.parse("det_time"))
    return RegisteredStream(source, at, at, None, accents)


def photon_items(count: int, seed: int = 5) -> list[str]:
    """So many photons, each on a line."""
    return [each.strip() for each in photons(count, seed)]


@pytest.mark.parametrize("strategy", ["sharing", "widening"])
@pytest.mark.mass
def test_figure_1(tmp_path: Path, strategy: Strategy) -> None:
    """Nine arrows without widening, five with it, and the same answers to q1 to q4 (sharing paper, figure 1)."""
    items = photon_items(120)
    grown = GrowingStream(tmp_path / "photons", items)
    grown.grow(100)
    network = network_of(hypercube(3), [photon_stream(tmp_path, "photons", "SP4")], strategy, FIGURE_1)
    with bare_network(network, tmp_path / "network", Random(1), (6_000,)) as running:
        assert len(list(running.catalogue.hops)) == ARROWS[strategy]
        running.drain()
        grown.grow(20)
        running.drain()
        estimates, sent = running.planner.estimates, running.measured().flows
        for each in running.catalogue.hops:  # what says how far the stream is comes on top, more of it in small epochs
            rate = sent[each.name].bytes * estimates.samples["photons"].rate / len(items)
            assert estimates.rate(each.form) == pytest.approx(rate, rel=0.4, abs=3)
        running.end_stream("photons")
        streams = {"photons": "".join(("<photons>", *items, "</photons>"))}
        expected = {name: by_law(text, streams) for name, text, _ in FIGURE_1}
        assert {name: running.answer(name) for name in expected} == expected


@pytest.mark.parametrize(("seed", "timed"), [(0, True), (1, True), (11, False)])
@pytest.mark.mass
def test_random_networks(tmp_path: Path, seed: int, timed: bool) -> None:
    """Random shapes, places and orders; subscriptions come and go between portions of streams out of order.

    Where items do not say their time, it is the one at which they came, wherever that counts (LAWS 1.3).
    """
    random = Random(seed)
    strategy: Strategy = random.choice(("widening", "widening", "sharing", "shipping"))
    accents = bool(seed)
    made = some_run(random, tmp_path, strategy, accents=accents, disorder=0.1 * seed, sayings=3 * accents, timed=timed)
    assert made.network == made.alone
    assert made.alone, "nobody asked"


def test_a_thin_peer_that_leaves(tmp_path: Path) -> None:
    """Its stream ends, so windows close; its subscriptions are answered no more; nobody else notices."""
    grown = {
        name: GrowingStream(tmp_path / name, photon_items(30, seed)) for seed, name in enumerate(("photons", "other"))
    }
    streams = [replace(photon_stream(tmp_path, "photons", "SP0"), by="P0"), photon_stream(tmp_path, "other", "SP2")]
    with bare_network(network_of(line(3), streams), tmp_path / "network", Random(3)) as running:
        running.join("P0", "SP0")
        running.register("mine", ITEMS, "SP2", "P0")
        running.register("windows", WINDOW, "SP2")
        running.register("others", ITEMS.replace('"photons"', '"other"'), "SP1")
        for each in grown.values():
            each.grow(20)
        running.drain()
        running.leave("P0")
        document = {"photons": "".join(("<photons>", *photon_items(30, 0)[:20], "</photons>"))}
        assert running.answer("windows") == by_law(WINDOW, document)
        assert running.answer("mine") == by_law(ITEMS, document)
        assert list(running.catalogue.subscriptions) == ["others"]
        assert list(running.streams) == ["other"]
        grown["other"].grow(10)
        running.drain()
        document = {"photons": "".join(("<photons>", *photon_items(30, 1), "</photons>"))}
        assert running.answer("others") == by_law(ITEMS, document)
        with pytest.raises(UsageError, match="nobody has registered"):
            running.register("late", ITEMS, "SP1")


def test_another_description_at_the_next_start(tmp_path: Path) -> None:
    """What is no longer written down ends, what is new begins, the rest goes on."""
    grown = {name: GrowingStream(tmp_path / name, photon_items(30, 1)) for name in ("photons", "other", "new")}
    first, second, third = (photon_stream(tmp_path, name, "SP0") for name in grown)
    other = ITEMS.replace('"photons"', '"other"')
    before = network_of(line(3), [first, second], "widening", [("a", ITEMS, "SP2"), ("b", other, "SP2")])
    new = ITEMS.replace('"photons"', '"new"')
    after = network_of(line(3), [first, third], "widening", [("a", ITEMS, "SP2"), ("c", new, "SP1")])
    promising = replace(before, streams={**before.streams, "other": replace(second, accents=True)})
    for network, portion in ((before, 20), (after, 10)):
        with bare_network(network, tmp_path / "network", Random(5)) as running:
            for each in grown.values():
                each.grow(portion)
            running.drain()
            names = list(network.subscriptions)
            assert list(running.catalogue.subscriptions) == names
            found = [running.answer(name) for name in names]
        if network is before:
            with pytest.raises(UsageError, match="'other' was declared to have no accents until now"):
                bare_network(promising, tmp_path / "network", Random(5)).__enter__()
    whole = by_law(ITEMS, {"photons": "".join(("<photons>", *photon_items(30, 1), "</photons>"))})
    assert found == [whole, whole], "who comes together with a stream sees all of it"


@pytest.mark.parametrize("gone", ["", "files", "moved"])
@pytest.mark.mass
def test_a_stream_that_is_no_longer_written_down(tmp_path: Path, gone: str) -> None:
    """It ends at the next start, behind what has come meanwhile, and its windows close, as if the network had run.

    One that comes in elsewhere is another stream from there on.
    """
    grown = GrowingStream(tmp_path / "photons", photon_items(30, 1))
    GrowingStream(tmp_path / "other", photon_items(9, 2)).grow(9)
    first, other = photon_stream(tmp_path, "photons", "SP0"), photon_stream(tmp_path, "other", "SP1")
    asked = [("w", WINDOW, "SP2"), ("b", ITEMS.replace('"photons"', '"other"'), "SP2")]
    before = network_of(line(3), [first, other], "widening", asked)
    with bare_network(before, tmp_path / "network", Random(5)) as running:
        grown.grow(20)
        running.drain()
    count = 20
    if gone == "files":
        rmtree(tmp_path / "photons")
    else:
        grown.grow(10)
        count = 30
    moved = [replace(first, at="SP1", by="SP1")] if gone == "moved" else []
    after = network_of(line(3), [other, *moved], "widening", asked if moved else asked[1:])
    with bare_network(after, tmp_path / "network", Random(6)) as running:
        assert list(running.streams) == ["other", *(each.source.name for each in moved)]
        assert list(running.catalogue.subscriptions) == (["b", "w"] if moved else ["b"])
        whole = by_law(WINDOW, {"photons": "".join(("<photons>", *photon_items(30, 1)[:count], "</photons>"))})
        if moved:
            running.drain()
            running.end_stream("photons")
        assert running.answer("w") == whole


def test_a_stream_and_who_asks_for_it(tmp_path: Path) -> None:
    """A subscription that comes together with its stream sees all of it; one that is wrong changes nothing."""
    grown = GrowingStream(tmp_path / "photons", photon_items(30))
    grown.grow(20)
    late = photon_stream(tmp_path, "photons", "SP0")
    with bare_network(network_of(line(2), []), tmp_path / "network", Random(6)) as running:
        with running.together():
            running.register_stream(late.source, "SP0", accents=False)
            running.register("a", ITEMS, "SP1")
        with pytest.raises(UsageError, match="nobody has registered"):
            running.register("b", ITEMS.replace('"photons"', '"other"'), "SP1")
        grown.grow(10)
        running.drain()
        document = {"photons": "".join(("<photons>", *photon_items(30), "</photons>"))}
        assert running.answer("a") == by_law(ITEMS, document)


ASKED = (("a", ITEMS, "SP2"), ("b", WINDOW, "SP2"), ("c", WIDER, "SP1"), ("d", WINDOW, "SP1"))


def killed_run(
    folder: Path,
    random: Random,
    countdown: list[int],
    streams: Sequence[RegisteredStream],
    asked: Sequence[tuple[str, str, str]] = ASKED,
) -> Catalogue:
    """A network that is killed again and again, with a query more each time it is started; gives its last plan."""
    grown = [GrowingStream(on_disk(each.source.path), photon_items(40, random.randrange(90))) for each in streams]
    alone = Alone(folder / "alone", [each.source for each in streams], random)
    for count, (name, text, _) in enumerate(asked, 1):
        alone.drain()
        alone.queries[name] = text
        network = network_of(line(3), streams, "widening", asked[:count])
        while True:
            countdown[0] = random.choice((0, *range(2, 40, 3)))
            with suppress(Killed), bare_network(network, folder / "network", random) as running:
                for each in grown:
                    each.grow(4)
                running.drain()
                break
        alone.drain()
    countdown[0] = 0
    for each in grown:
        each.grow(40)
    with bare_network(network, folder / "network", random) as running:
        running.drain()
        alone.drain()
        for name, _, _ in asked:
            assert running.answer(name) == alone.answer(name)
        return running.catalogue


def deadly(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Whatever a network makes durable may be the last thing it does; it is, when the countdown has come to 0."""
    links = ((Link, each) for each in ("append", "begin", "hand_on", "forget"))
    places = (*links, (Sender, "_save"), (SavedPlan, "save"), (Peer, "want"), (Peer, "run"))
    return dying(monkeypatch, places)


@pytest.mark.parametrize("accents", [False, True])
@pytest.mark.mass
def test_killed_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accents: bool) -> None:
    """Between a commit and the link, in the midst of a change of plans: what is missing is done at the next start."""
    streams = [photon_stream(tmp_path, "photons", "SP0", accents=accents)]
    killed_run(tmp_path, Random(4), deadly(monkeypatch), streams)
