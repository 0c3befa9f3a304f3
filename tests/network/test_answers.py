"""Whatever is planned, every subscriber gets the answer that a single engine would give, to the byte (LAWS 3.7)."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.network.description import STRATEGIES, Strategy
from anabranch.network.planner import Planner
from anabranch.network.topology import line
from mass import some
from network.making import (
    FIGURE_1,
    RARE,
    STATISTICS,
    check_plan,
    document,
    figure_1,
    planner,
    some_query,
    some_topology,
)
from network.simulation import alone, answers


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_figure_1(strategy: Strategy) -> None:
    """q1 to q4 have the same answers under every strategy, and some."""
    found = figure_1(strategy)
    check_plan(found)
    streams = {"photons": document(5, 70)}
    given = answers(found.catalogue, streams)
    assert given == {name: alone(text, streams) for name, text, _ in FIGURE_1}
    assert all(len(each) > len("<photons></photons>") for each in given.values())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_medians_beside_windows_on_the_way(strategy: Strategy) -> None:
    """Where other windows travel as sums, those that need their items are answered of items, exactly."""
    found = planner(line(4), {"photons": "SP0"}, strategy)
    average = STATISTICS.replace("median", "avg").replace("stddev", "max")
    asked = {"a": average, "m": STATISTICS, "b": average.replace("0.5", "0.7"), "n": STATISTICS.replace("20", "40")}
    for number, (name, text) in enumerate(asked.items()):
        found.register(name, text, f"SP{3 - number % 2}")
    check_plan(found)
    streams = {"photons": document(6, 80)}
    given = answers(found.catalogue, streams)
    assert given == {name: alone(text, streams) for name, text in asked.items()}
    assert all("<m n=" in each for each in given.values())


@pytest.mark.mass
def test_joins_on_the_way() -> None:
    """Tuples that are made between the inputs and the subscribers are shared and widened, and answers stay."""
    found = planner(line(5), {"photon1": "SP0", "photon2": "SP1"})
    wider = RARE.replace("{ $x/det_time }", "{ $x/det_time } { $x/phc }")
    asked = {"j1": RARE, "j2": RARE.replace("<result>", "<pair>").replace("</result>", "</pair>"), "j3": wider}
    decisions = [found.register(name, text, f"SP{5 - n}") for n, (name, text) in enumerate(asked.items(), 1)]
    check_plan(found)
    first, second, third = (each.chosen for each in decisions)
    assert first is not None
    assert first.words.startswith("joined at SP1: ")
    assert second is not None
    assert second.words.startswith("joined already: photon1+photon2.")
    assert not second.changes
    assert third is not None
    assert third.words.startswith("joined already: ")
    assert third.changes, "the tuples lack phc"
    streams = {"photon1": document(3, 40), "photon2": document(4, 40)}
    given = answers(found.catalogue, streams)
    assert given == {name: alone(text, streams) for name, text in asked.items()}
    assert "<pair>" in given["j2"]


@pytest.mark.parametrize("seed", some(range(3)))
@pytest.mark.mass
def test_random_networks(seed: int) -> None:
    """Random shapes, places and orders, with subscriptions that end on the way and flows that are narrowed."""
    random = Random(seed)
    found = some_planner(random)
    streams = {name: document(seed + number, 24) for number, name in enumerate(("photons", "others"))}
    asked: dict[str, str] = {}
    for number in range(random.randrange(5, 10)):
        name, text = f"q{number}", some_query(random, ("photons", "others"))
        found.register(name, text, random.choice(found.topology.peers))
        asked[name] = text
        if random.random() < 0.3:
            gone = random.choice(list(asked))
            found.cancel(gone)
            del asked[gone]
        if random.random() < 0.2:
            found.narrow(set(found.catalogue.flows))
        check_plan(found)
    given = answers(found.catalogue, streams, arrived=bool(seed % 2))
    assert given == {name: alone(text, streams) for name, text in asked.items()}


def some_planner(random: Random) -> Planner:
    """Two streams somewhere in a network of some shape."""
    topology = some_topology(random)
    strategy: Strategy = random.choice(("sharing", "widening", "widening", "widening"))
    return planner(topology, {name: random.choice(topology.peers) for name in ("photons", "others")}, strategy)
