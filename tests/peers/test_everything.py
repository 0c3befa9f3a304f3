"""Everything at once: networks of any shape, streams out of order that evolve, queries that come and go, and kills."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from anabranch.network.description import RegisteredStream
from anabranch.network.needs import QueryNeeds
from anabranch.network.options import Option, Options
from anabranch.sharing.forest import PropertyForest
from anabranch.spark.answers.log import empty_answer
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from mass import Mass
from network.making import SCHEMA, some_query, some_topology
from peers.some import STREAMS, some_items, with_sayings
from peers.test_running import deadly
from peers.working import Alone, GrowingStream, Killed, bare_network, network_of

COUNTS = (
    '<c>{{ for $w in stream("{}")/photons/photon[en >= 1]|count {}| '
    "return <n>{{ count($w) }}{{ max($w/phc) }}</n> }}</c>"
)


@pytest.mark.mass
def test_answers_are_those_of_one_engine(tmp_path: Path, mass: Mass, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes together, and wherever the network is killed meanwhile, no answer shows it."""
    countdown = deadly(monkeypatch)
    runs = [check(tmp_path / f"{number}", Random(number), monkeypatch, countdown) for number in mass.cases(300)]
    assert sum(died for died, _ in runs) or mass.done < 10, "nobody was killed"


def check(folder: Path, random: Random, monkeypatch: pytest.MonkeyPatch, countdown: list[int]) -> tuple[int, int]:
    """Try one network, in which plans are taken at random; gives how often it was killed, and how many joins travelled.

    Its description changes while it is away, or it is killed while it takes up a change, and is started again.
    """
    topology, accents = some_topology(random), random.random() < 0.7
    slack, time = Fraction(random.choice((0, 0, 30))), ItemPath.parse("det_time")
    grown, streams = [], []
    for seed, name in enumerate(STREAMS):
        items = some_items(random, seed + random.randrange(90), 60, disorder=random.choice((0, 0.1)))
        grown.append(GrowingStream(folder / name, with_sayings(random, items, 3 * accents)))
        at = random.choice(topology.peers)
        source = Source(name, folder / name, "lines", SCHEMA, time=time, slack=slack)
        streams.append(RegisteredStream(source, at, at, None, accents))
    alone = Alone(folder / "alone", [each.source for each in streams], random)
    asked: dict[str, tuple[str, str, str]] = {}
    died = joined = 0
    real = Options.of

    def at_random(options: Options, need: QueryNeeds, at: str) -> list[Option]:
        found = list(real(options, need, at))
        return [random.choice(found)] if random.random() < 0.4 else found

    with monkeypatch.context() as patched:
        patched.setattr(Options, "of", at_random)
        for step in range(random.randrange(4, 7)):
            alone.drain()
            if len(asked) > 1 and random.random() < 0.4:
                gone = random.choice(list(asked))
                del asked[gone], alone.queries[gone]
            text = some_query(random, STREAMS)
            if random.random() < 0.2:
                text = COUNTS.format(random.choice(STREAMS), random.choice((2, 3, 4, 6)))
            name = f"q{step}"
            asked[name] = (name, text, random.choice(topology.peers))
            alone.queries[name] = text
            network = network_of(topology, streams, "widening", asked.values())
            is_done = False
            while not is_done:
                countdown[0] = random.choice((0, *range(2, 60, 3)))
                try:
                    with bare_network(network, folder / "network", random) as running:
                        joined += sum(isinstance(each.form, PropertyForest) for each in running.catalogue.hops)
                        for each in grown:
                            each.grow(random.randrange(12))
                        running.drain()
                        is_done = True
                except Killed:
                    died += 1
                    is_done = False
            countdown[0] = 0
            alone.drain()
        for each in grown:
            each.grow(60)
        with bare_network(network, folder / "network", random) as running:
            running.drain()
            alone.drain()
            for name, (_, text, _) in asked.items():
                due = alone.answer(name) if alone.log.subscription(name) else empty_answer(text, alone.sources)
                assert running.answer(name) == due, asked[name]
    return died, joined
