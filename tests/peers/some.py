"""Random networks at work: streams that come out of order, queries of all kinds, and what happens meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from random import Random

from anabranch.network.description import RegisteredStream, Strategy
from anabranch.peers.running import RunningNetwork
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.photons import photons
from anabranch.stream.reading.source import Source
from disk import on_disk
from network.making import SCHEMA, some_query, some_topology
from peers.working import Alone, GrowingStream, bare_network, network_of

STREAMS = ("photons", "others")


def some_items(random: Random, seed: int, count: int, *, disorder: float) -> list[str]:
    """Photons, some of which come too late."""
    items = [each.strip() for each in photons(count, seed)]
    for place in range(1, len(items)):
        if random.random() < disorder:
            other = max(0, place - random.randrange(1, 6))
            items[place], items[other] = items[other], items[place]
    return items


_SAID = (
    '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="en" by=". * 2"/></s:accent>',
    '<s:accent xmlns:s="urn:anabranch:stream" where="phc &gt; 100"><s:alter path="en" by=". + 1"/></s:accent>',
    '<s:accent xmlns:s="urn:anabranch:stream" where="phc &lt; 150"><s:add path="note" type="string"/></s:accent>',
    '<s:accent xmlns:s="urn:anabranch:stream"><s:drop path="coord/det/dy"/></s:accent>',
    '<s:punctuation xmlns:s="urn:anabranch:stream" where="det_time &lt; 1"/>',
    '<s:punctuation xmlns:s="urn:anabranch:stream" at="3"/>',
    "<photon><en>bad",
    "<photon><phc>120</phc><en>much</en><det_time>20</det_time></photon>",
    "<flare><det_time>1000</det_time><en>4</en></flare>",
)
"""What a stream may say beside its usual items."""


def with_sayings(random: Random, items: list[str], count: int) -> list[str]:
    """The items with something else between them."""
    found = list(items)
    for _ in range(count):
        found.insert(random.randrange(len(found)), random.choice(_SAID))
    return found


@dataclass(frozen=True)
class Made:
    """What one random run has come to: the answers in the network, and those of a single engine."""

    network: dict[str, str]
    alone: dict[str, str]


WHEN = (
    'for $p in stream("photons")/photons/photon where $p/en >= 1 return <r>{ $p/en }{ count(stream("others")/photons'
    "/photon?[0.5]) }</r>",
    'for $p in stream("others")/photons/photon where $p/phc > 120 return <r>{ $p/phc }{ count(stream("others")/photons'
    "/photon?[0.3]) }</r>",
    'for $p in stream("photons")/photons/photon|count 3|, $q in stream("others")/photons/photon|count 2 step 1| '
    "where $p/en >= $q/en return <r>{ $p/en }{ $q/en }</r>",
)

"""Queries that depend on when items came, where these do not say it themselves (LAWS 1.2, 1.3)."""


class Came:
    """Streams as the peers have found them where they come in, with the times at which they did (LAWS 1.3)."""

    def __init__(self, folder: Path, registered: list[RegisteredStream]) -> None:
        self._at = {each.source.name: each.at for each in registered}
        self.sources = [replace(each.source, path=folder / each.source.name) for each in registered]
        self._grown = {each.name: GrowingStream(on_disk(each.path), ()) for each in self.sources}
        self._seen = dict.fromkeys(self._at, 0)

    def follow(self, network: RunningNetwork) -> None:
        """Have what has come since the last time."""
        for name, at in self._at.items():
            texts = [text for _, text in network.peers[at].sender.elements_so_far(name)]
            self._grown[name].bring(texts[self._seen[name] :])
            self._seen[name] = len(texts)


def some_run(
    random: Random,
    folder: Path,
    strategy: Strategy,
    *,
    accents: bool,
    disorder: float,
    sayings: int = 0,
    timed: bool = True,
) -> Made:
    """Streams grow, subscriptions come and go between portions of them, at any peer; items say their time, or not."""
    topology = some_topology(random)
    slack = Fraction(random.choice((0, 0, 30)))
    grown, registered = [], []
    for seed, name in enumerate(STREAMS):
        items = some_items(random, seed + random.randrange(90), 60, disorder=disorder)
        grown.append(GrowingStream(folder / name, with_sayings(random, items, sayings)))
        time = ItemPath.parse("det_time") if timed else None
        source = Source(name, folder / name, "lines", SCHEMA, time=time, slack=slack)
        at = random.choice(topology.peers)
        registered.append(RegisteredStream(source, at, at, None, accents))
    came = None if timed else Came(folder / "came", registered)
    alone = Alone(folder / "alone", came.sources if came else [each.source for each in registered], random)
    answers: dict[str, str] = {}
    with bare_network(network_of(topology, registered, strategy), folder / "network", random) as network:
        for number in range(random.randrange(3, 7)):
            name, text = f"q{number}", some_query(random, STREAMS)
            if not timed and random.random() < 0.6:
                text = random.choice(WHEN)
            network.register(name, text, random.choice(topology.peers))
            if came:
                came.follow(network)
            alone.drain()  # a plan is changed when everything that was there has been read
            alone.queries[name] = text
            if random.random() < 0.2:
                gone = random.choice(list(alone.queries))
                network.cancel(gone)
                del alone.queries[gone]
            for each in (*grown, *grown):
                each.grow(random.randrange(7))
            if random.random() < 0.8:
                network.drain()
                if came:
                    came.follow(network)
                alone.drain()
        for each in grown:
            each.grow(60)
        network.drain()
        if came:
            came.follow(network)
        alone.drain()
        answers = {name: network.answer(name) for name in alone.queries}
    return Made(answers, {name: alone.answer(name) for name in alone.queries})
