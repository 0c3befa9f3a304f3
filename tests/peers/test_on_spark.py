"""Networks on Spark: figure 1 with its nine arrows and its five, a plan that changes under way, and a second run."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from anabranch.network.description import Strategy
from anabranch.network.topology import hypercube, line
from anabranch.peers.running import RunningNetwork
from anabranch.spark.manifest import Manifests
from network.making import FIGURE_1
from network.simulation import alone as by_law
from peers.test_running import ARROWS, ITEMS, WIDER, WINDOW, photon_items, photon_stream
from peers.working import GrowingStream, network_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("strategy", ["sharing", "widening"])
def test_figure_1(spark: SparkSession, tmp_path: Path, strategy: Strategy) -> None:
    """The answers are those of the law, and what went over links and what it cost was measured."""
    items = photon_items(400)
    grown = GrowingStream(tmp_path / "photons", items)
    grown.grow(300)
    network = network_of(hypercube(3), [photon_stream(tmp_path, "photons", "SP4")], strategy, FIGURE_1)
    with RunningNetwork(network, tmp_path / "network", session=spark) as running:
        assert len(list(running.catalogue.hops)) == ARROWS[strategy]
        running.drain()
    with RunningNetwork(network, tmp_path / "network", session=spark) as running:
        grown.grow(100)
        running.drain()
        running.end_stream("photons")
        streams = {"photons": "".join(("<photons>", *items, "</photons>"))}
        expected = {name: by_law(text, streams) for name, text, _ in FIGURE_1}
        assert {name: running.answer(name) for name in expected} == expected
        found = running.measured()
        assert all(each.bytes for each in found.flows.values())
        assert found.peers["SP4"].cpu_s > 0
        assert found.peers["SP4"].executor_cpu_s > 0
        assert found.peers["SP6"].epochs == 0, "nobody asks there, and nothing passes"


def test_plans_change_under_way(spark: SparkSession, tmp_path: Path) -> None:
    """Subscriptions come and go while the network runs by itself."""
    items = photon_items(200)
    grown = GrowingStream(tmp_path / "photons", items)
    network = network_of(line(3), [photon_stream(tmp_path, "photons", "SP0")])
    with RunningNetwork(network, tmp_path / "network", session=spark) as running:
        running.register("items", ITEMS, "SP2")
        running.register("windows", WINDOW, "SP1")
        running.start()
        grown.grow(100)
        running.register("wider", WIDER, "SP2")
        grown.grow(100)
        running.cancel("windows")
        until = monotonic() + 60
        document = {"photons": "".join(("<photons>", *items, "</photons>"))}
        while running.answer("items") != by_law(ITEMS, document):
            assert monotonic() < until, "it has not read everything"
        running.stop()
        rest = {"photons": "".join(("<photons>", *items[100:], "</photons>"))}
        assert running.answer("wider") == by_law(WIDER, rest)
        assert by_law(WINDOW, document).startswith(running.answer("windows").removesuffix("</w>"))


def test_killed_in_an_epoch(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch that was begun and not committed is run again with the same ranges, whatever has come since."""
    grown = GrowingStream(tmp_path / "photons", photon_items(60))
    network = network_of(line(2), [photon_stream(tmp_path, "photons", "SP0")], "widening", [("a", ITEMS, "SP1")])
    grown.grow(40)

    def killed(*_: object) -> None:
        raise KeyError("killed")

    with RunningNetwork(network, tmp_path / "network", session=spark) as running, monkeypatch.context() as patch:
        patch.setattr(Manifests, "publish", killed)
        with pytest.raises(KeyError):
            running.drain()
    grown.grow(20)
    with RunningNetwork(network, tmp_path / "network", session=spark) as running:
        running.drain()
        document = {"photons": "".join(("<photons>", *photon_items(60), "</photons>"))}
        assert running.answer("a") == by_law(ITEMS, document)
        assert running.measured().peers["SP0"].epochs == 2
