"""Networks on Spark: figure 1 with its nine arrows and its five, a plan that changes under way, and a second run.

Peers are driven by hand, or are streaming queries whose epochs come by themselves; each goes on from the other.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from anabranch.network.description import Strategy
from anabranch.network.topology import hypercube, line
from anabranch.peers.running import RunningNetwork
from anabranch.spark.checkpoint.manifest import Manifests
from network.making import FIGURE_1
from network.simulation import alone as by_law
from peers.test_joins import JOIN, tuple_flows
from peers.test_running import ARROWS, ITEMS, WIDER, WINDOW, photon_items, photon_stream
from peers.working import GrowingStream, network_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("strategy", "by_itself"), [("sharing", False), ("widening", True)])
def test_figure_1(spark: SparkSession, tmp_path: Path, strategy: Strategy, by_itself: bool) -> None:
    """The answers are those of the law, and what went over links and what it cost was measured."""
    items = photon_items(400)
    grown = GrowingStream(tmp_path / "photons", items)
    network = network_of(hypercube(3), [photon_stream(tmp_path, "photons", "SP4")], strategy, FIGURE_1)
    streams = {"photons": "".join(("<photons>", *items, "</photons>"))}
    expected = {name: by_law(text, streams) for name, text, _ in FIGURE_1}
    for portions in [[300, 100]] if by_itself else [[300], [100]]:
        with RunningNetwork(network, tmp_path / "network", session=spark) as running:
            assert len(list(running.catalogue.hops)) == ARROWS[strategy]
            if by_itself:
                running.start()
            for portion in portions:
                grown.grow(portion)
                running.drain()
            if portions[-1] == 100:
                running.end_stream("photons")
                assert {name: running.answer(name) for name in expected} == expected
            found = running.measured()
    assert all(each.bytes for each in found.flows.values())
    assert found.peers["SP4"].cpu_s > 0
    assert found.peers["SP4"].executor_cpu_s > 0
    assert found.peers["SP6"].epochs == 0, "nobody asks there, and nothing passes"


def test_plans_change_under_way(spark: SparkSession, tmp_path: Path) -> None:
    """Subscriptions come and go while the network runs by itself; before and after that it is run by hand."""
    items = photon_items(240)
    grown = GrowingStream(tmp_path / "photons", items)
    network = network_of(line(3), [photon_stream(tmp_path, "photons", "SP0")])
    with RunningNetwork(network, tmp_path / "network", session=spark) as running:
        running.register("items", ITEMS, "SP2")
        running.register("windows", WINDOW, "SP1")
        grown.grow(20)
        running.drain()
        running.start()
        grown.grow(100)
        running.register("wider", WIDER, "SP2")
        grown.grow(100)
        running.cancel("windows")
        until = monotonic() + 60
        document = {"photons": "".join(("<photons>", *items[:220], "</photons>"))}
        while running.answer("items") != by_law(ITEMS, document):
            assert monotonic() < until, "it has not read everything"
        running.stop()
        grown.grow(20)
        running.drain()
        document = {"photons": "".join(("<photons>", *items, "</photons>"))}
        assert running.answer("items") == by_law(ITEMS, document), "driven by hand it goes on"
        rest = {"photons": "".join(("<photons>", *items[120:], "</photons>"))}
        assert running.answer("wider") == by_law(WIDER, rest)
        assert by_law(WINDOW, document).startswith(running.answer("windows").removesuffix("</w>"))


def test_a_join_on_the_way(spark: SparkSession, tmp_path: Path) -> None:
    """The peer at which both streams come in joins them, its tuples travel, and end with the streams."""
    items = {"photons": photon_items(120, 1), "others": photon_items(120, 2)}
    grown = [GrowingStream(tmp_path / name, each) for name, each in items.items()]
    streams = [photon_stream(tmp_path, name, "SP0") for name in items]
    network = network_of(line(2), streams, "widening", [("a", JOIN, "SP1")])
    with RunningNetwork(network, tmp_path / "network", session=spark) as running:
        assert [(each.before, each.at) for each in tuple_flows(running)] == [("SP0", "SP1")]
        for each in grown:
            each.grow(120)
        running.drain()
        running.end_stream("others")
        running.end_stream("photons")
        document = {name: "".join(("<photons>", *each, "</photons>")) for name, each in items.items()}
        assert running.answer("a") == by_law(JOIN, document)


def test_killed_in_an_epoch(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch that was begun and not committed is forgotten: the next run reads on from the last manifest."""
    grown = GrowingStream(tmp_path / "photons", photon_items(60))
    network = network_of(line(2), [photon_stream(tmp_path, "photons", "SP0")], "widening", [("a", ITEMS, "SP1")])

    def run(by_itself: bool) -> tuple[str, int]:
        with RunningNetwork(network, tmp_path / "network", session=spark) as running:
            if by_itself:
                running.start()
            running.drain()
            return running.answer("a"), running.measured().peers["SP0"].epochs

    def killed(*_: object) -> None:
        raise KeyError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Manifests, "publish", killed)
        for portion, by_itself in ((40, False), (10, True)):
            grown.grow(portion)
            with pytest.raises(KeyError):
                run(by_itself)
    grown.grow(10)
    document = {"photons": "".join(("<photons>", *photon_items(60), "</photons>"))}
    assert run(by_itself=False) == (by_law(ITEMS, document), 1)
