"""Networks drawn from a seed, whose super-peers run in processes of their own, and one engine with the same queries.

Drawn are the shape, where streams come in and what of, and what they say: items out of order, late or bad, accents,
as XML or as JSON; and the queries that are asked meanwhile, and where.
Each process has a folder of its own, as on a machine of its own.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from xml.etree.ElementTree import Element, fromstring

from anabranch.network.topology import Topology, built
from anabranch.spark.answers.log import empty_answer
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from network.making import SCHEMA, some_query
from peers.some import STREAMS, some_items, with_sayings
from peers.test_json_parts import letters_of
from peers.test_what_fails import told_by
from peers.working import Alone, GrowingStream

PORTION = 40
"""The items of each stream that come between two changes, at most."""
_BAD = (
    "<photon><en>bad",
    "<photon><phc>120</phc><en>much</en><det_time>20</det_time></photon>",
    "<flare><det_time>1000</det_time><en>4</en></flare>",
)
_BAD_JSON = ('{"en": 3, "phc"', "[1]", '{"phc": 120, "en": "much", "det_time": 20}')
_JSON_SAYINGS = (
    '{"$accent": {"alter": {"path": "en", "by": ". * 2"}}}',
    '{"$accent": {"where": "phc > 100", "alter": {"path": "en", "by": ". + 1"}}}',
    '{"$accent": {"drop": {"path": "coord/det/dy"}}}',
    '{"$punctuation": {"where": "det_time < 1"}}',
)
COUNTED = '<n>{{ for $p in stream("{0}")/photons/photon return <a>{{ $p/det_time }}</a> }}</n>'
"""Has a result for each item of a stream, so it tells when all of it was read."""


@dataclass
class DrawnStream:
    """A stream: where it comes in, and what it says."""

    name: str
    at: str
    is_json: bool
    accents: bool
    slack: int
    items: list[str]

    @staticmethod
    def of(random: Random, name: str, at: str, count: int) -> DrawnStream:
        """A stream with so many items."""
        is_json, accents = random.random() < 0.3, random.random() < 0.6
        items = some_items(random, random.randrange(90), count, disorder=random.choice((0, 0.1)))
        if is_json:
            items = list(map(as_json, items))
            said = _JSON_SAYINGS if accents else ()
            for each in (*random.sample(said, min(2, len(said))), random.choice(_BAD_JSON)):
                items.insert(random.randrange(len(items)), each)
        else:
            items = with_sayings(random, items, 3) if accents else items
            items.insert(random.randrange(len(items)), random.choice(_BAD))
        return DrawnStream(name, at, is_json, accents, random.choice((0, 0, 30)), items)

    def source(self, folder: Path) -> Source:
        """As one engine reads it."""
        if self.is_json:
            found = Source(self.name, folder, "json", root="photons", item="photon")
        else:
            found = Source(self.name, folder, "lines", SCHEMA)
        return replace(found, time=ItemPath.parse("det_time"), slack=Fraction(self.slack), evolves=self.accents)

    def table(self) -> str:
        """Its table in the description."""
        form = 'format = "lines"\ndtd = "photons.dtd"'
        if self.is_json:
            form = 'format = "json"\nroot = "photons"\nitem = "photon"'
        accents = "" if self.accents else "accents = false\n"
        return (
            f'[streams.{self.name}]\nat = "{self.at}"\npath = "{self.name}-in"\n{form}\ntime = "det_time"\n'
            f"slack = {self.slack}\n{accents}"
        )


def as_json(photon: str) -> str:
    """A photon as an item of JSON, with its numbers as they are spelled."""

    def value(element: Element) -> str:
        members = ", ".join(f'"{each.tag}": {value(each)}' for each in element)
        return f"{{{members}}}" if members else str(element.text)

    return value(fromstring(photon))


@dataclass
class DrawnNetwork:
    """A shape with streams and subscriptions, and the one engine that answers are held against."""

    folder: Path
    random: Random
    shape: str = field(init=False)
    number: int = field(init=False)
    """What a random shape is drawn from."""
    topology: Topology = field(init=False)
    streams: list[DrawnStream] = field(init=False)
    asked: dict[str, tuple[str, str]] = field(init=False)
    """By subscription: its query, and the super-peer that answers it."""
    alone: Alone = field(init=False)
    grown: dict[str, GrowingStream] = field(init=False)

    def __post_init__(self) -> None:
        random = self.random
        self.shape, self.number = random.choice(("line", "star", "grid", "random")), random.randrange(99)
        self.topology = built(self.shape, random.choice((2, 3, 3, 4)), self.number)
        names = random.choice((STREAMS, STREAMS, STREAMS[:1]))
        self.streams = [DrawnStream.of(random, each, random.choice(self.topology.peers), 6 * PORTION) for each in names]
        self.grown = {each.name: GrowingStream(self.brought(each), each.items) for each in self.streams}
        sources = [each.source(self.brought(each)) for each in self.streams]
        self.alone = Alone(self.folder / "alone", sources, random)
        self.asked = {}
        for each in self.streams:
            self.ask(f"all-{each.name}", COUNTED.format(each.name), each.at)

    def brought(self, stream: DrawnStream) -> Path:
        """Where a stream comes in: on the machine of its super-peer."""
        return self.folder / stream.at / f"{stream.name}-in"

    def ask(self, name: str, text: str, at: str) -> None:
        """Register a query with the one engine, which has read all that was there; the description has it, too."""
        self.alone.drain()
        self.asked[name] = text, at
        self.alone.queries[name] = text

    def change(self, step: int) -> None:
        """Some subscriptions come, and perhaps one goes."""
        mine = [name for name in self.asked if not name.startswith("all-")]
        if len(mine) > 1 and self.random.random() < 0.5:
            gone = self.random.choice(mine)
            self.alone.drain()
            del self.asked[gone], self.alone.queries[gone]
        for number in range(self.random.choice((1, 1, 2))):
            text = some_query(self.random, tuple(each.name for each in self.streams))
            self.ask(f"q{step}{number}", text, self.random.choice(self.topology.peers))

    def grow(self) -> None:
        """Let some items of each stream come."""
        for each in self.grown.values():
            each.grow(self.random.randrange(PORTION))

    def description(self, link: str) -> str:
        """The NETWORK.toml, with a way of links."""
        head = f'[network]\ntopology = "{self.shape}"\npeers = {len(self.topology.peers)}\nseed = {self.number}\n'
        files = 'checkpoint = "state"\ndead_letters = "dead.jsonl"\nepoch_bytes = 4000\n'
        asked = (f'[subscriptions.{name}]\nat = "{at}"\nquery = "{name}.xq"\n' for name, (_, at) in self.asked.items())
        return "\n".join((head + files + link, *(each.table() for each in self.streams), *asked))

    def due(self, name: str) -> str:
        """What the one engine has answered."""
        is_there = self.alone.log.subscription(name) is not None
        return self.alone.answer(name) if is_there else empty_answer(self.asked[name][0], self.alone.sources)

    def letters_due(self) -> Counter[tuple[object, ...]]:
        """What the one engine has set aside."""
        return told_by(json.loads(each.to_json()) for each in letters_of(self.alone.log))
