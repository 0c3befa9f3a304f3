"""Plans change at one place of all streams, though streams never pause."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from anabranch.network.topology import line
from network.simulation import alone as by_law
from peers.test_running import ITEMS, WIDER, photon_items, photon_stream
from peers.working import BareRunner, GrowingStream, bare_network, network_of


@pytest.mark.mass
def test_streams_that_never_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flows go both ways, and each time a peer is run more has come; who registers sees what comes from then on."""
    items = {"photons": photon_items(90, 1), "others": photon_items(90, 2)}
    grown = {name: GrowingStream(tmp_path / name, each) for name, each in items.items()}
    by_peer = {"SP0": grown["photons"], "SP2": grown["others"]}
    count = 0
    run = BareRunner.run

    def run_while_more_comes(runner: BareRunner) -> None:
        nonlocal count
        run(runner)
        if runner.checkpoint.folder.name in by_peer:
            by_peer[runner.checkpoint.folder.name].grow(1)
            count += 1
            assert count < 60, "it never ends"

    def document(name: str, start: int = 0) -> dict[str, str]:
        return {name: "".join(("<photons>", *items[name][start:], "</photons>"))}

    streams = [photon_stream(tmp_path, "photons", "SP0"), photon_stream(tmp_path, "others", "SP2")]
    queries = {("a", "SP2"): (ITEMS, "photons"), ("b", "SP0"): (ITEMS, "others")}
    late = {("c", "SP1"): (WIDER, "photons"), ("d", "SP0"): (WIDER, "others")}
    began: dict[str, int] = {}
    with bare_network(network_of(line(3), streams), tmp_path / "network", Random(1)) as running:
        for (name, at), (text, stream) in queries.items():
            running.register(name, text.replace('photons")', f'{stream}")'), at)
        for each in grown.values():
            each.grow(20)
        with monkeypatch.context() as patch:
            patch.setattr(BareRunner, "run", run_while_more_comes)
            running.drain()
            for (name, at), (text, stream) in late.items():
                began[name] = len(items[stream]) - len(grown[stream]._items)
                running.register(name, text.replace('photons")', f'{stream}")'), at)
        for each in grown.values():
            each.grow(90)
        running.drain()
        for (name, _), (text, stream) in (queries | late).items():
            text = text.replace('photons")', f'{stream}")')
            assert running.answer(name) == by_law(text, document(stream, began.get(name, 0)))
