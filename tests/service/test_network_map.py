"""The map of a network: a site by itself has none, and a network at work shows its own, for who may read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest

import papers
from anabranch import network_run
from anabranch.cli import main
from anabranch.network.description import Network
from anabranch.peers.running import RunningNetwork
from anabranch.service.settings import ServiceSettings
from anabranch.spark.plan.wanted import Epoch
from anabranch.stream.photons import photons
from peers.working import bare_network
from service.local_service import LocalService, address_of
from service.sites import ENGINE, LINES, served_site, wait_until

pytestmark = pytest.mark.service

NETWORK = """\
[network]
topology = "line"
peers = 3
checkpoint = "state"
log = "log.jsonl"

[peers.P0]
at = "SP0"
[peers.P2]
at = "SP2"

[streams.photons]
at = "P0"
path = "in"
root = "photons"
format = "lines"
time = "det_time"
accents = false

[subscriptions.vela]
at = "P2"
query = "vela.xq"
"""
TOKEN = "read-0123456789abcdef"


def bare(
    network: Network, folder: Path, on_epoch: Callable[[str, Epoch], None] = lambda peer, epoch: None
) -> RunningNetwork:
    """Peers that run in this process."""
    return bare_network(network, folder, Random(1), (1 << 20,))


@contextmanager
def served_network(folder: Path, text: str = NETWORK, **settings: Any) -> Iterator[LocalService]:
    """A network at work in a thread, and its service."""
    (folder / "in").mkdir()
    (folder / "in" / "1").write_text("".join(f"{each}\n" for each in photons(120, 1)))
    (folder / "vela.xq").write_text(papers.Q4)
    (folder / "NETWORK.toml").write_text(text)
    found, stop = LocalService(folder), Event()

    def work() -> None:
        try:
            serve = ServiceSettings(port=0, **settings)
            network_run.run(folder / "NETWORK.toml", opens=bare, stop=stop, serve=serve)
        except BaseException as error:
            found.failures.append(error)

    thread = Thread(target=work, name="network under test", daemon=True)
    thread.start()
    try:
        found.url = address_of(folder, lambda: not found.failures)
        yield found
    finally:
        stop.set()
        thread.join()
    assert not found.failures


def test_a_site_by_itself_is_in_no_network(tmp_path: Path) -> None:
    """It says so, both in its map and of itself."""
    with served_site(tmp_path, ENGINE + LINES) as site:
        assert site.get("/api/network") == {"network": None}
        assert site.get("/api")["network"] is False


def test_a_network_at_work_shows_its_map(tmp_path: Path) -> None:
    """All peers are on it, super-peers with their places; each link has what is planned, and what was measured once
    something has flowed; a stream comes from its thin peer, and an answer goes to one."""
    with served_network(tmp_path) as network:
        about = network.ask("GET", "/api").content
        assert (about["site"], about["network"], about["streams"]) == ("NETWORK.toml", True, 1)

        def flowing() -> Any:
            found = network.ask("GET", "/api/network").content["network"]
            return found if any(each["measured"] for each in found["links"]) else None

        found = wait_until(flowing)
        assert [(each["name"], each["super"]) for each in found["peers"]] == [
            *((f"SP{number}", True) for number in range(3)),
            ("P0", False),
            ("P2", False),
        ]
        assert all((each["x"] is not None) == each["super"] for each in found["peers"])
        ways = {(each["from"], each["to"]): each for each in found["links"]}
        assert set(ways) == {("SP0", "SP1"), ("SP1", "SP2"), ("P0", "SP0"), ("SP2", "P2")}
        for way in (("SP0", "SP1"), ("SP1", "SP2")):
            assert ways[way]["planned"] > 0
            assert ways[way]["measured"] == pytest.approx(ways[way]["planned"], rel=0.5)
            (flow,) = ways[way]["flows"]
            assert " where " in flow["carries"]
        assert ways["P0", "SP0"]["flows"] == [{"stream": "photons", "carries": "the stream itself"}]
        assert ways["SP2", "P2"]["flows"] == [{"stream": "vela", "carries": "its answer"}]


def test_a_change_of_the_file_changes_the_map(tmp_path: Path) -> None:
    """A thin peer that leaves the network leaves the map, too."""
    with served_network(tmp_path) as network:
        (tmp_path / "NETWORK.toml").write_text(NETWORK.replace("[peers.P2]", "[peers.P9]").replace('"P2"', '"P9"'))

        def peers() -> set[str]:
            found = network.ask("GET", "/api/network").content["network"]
            return {each["name"] for each in found["peers"]}

        wait_until(lambda: peers() == {"SP0", "SP1", "SP2", "P0", "P9"})


def test_the_page_of_a_network_begins_with_its_map(tmp_path: Path) -> None:
    """The root leads to the view; what a site has besides is not there, and health needs no token."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read {TOKEN}\n")
    with served_network(tmp_path, token_file=tokens) as network:
        first = network.ask("GET", "/")
        assert (first.status, first.headers["location"]) == (307, "/page/index.html#/network")
        assert b'<div id="app">' in network.ask("GET", "/page/index.html").body
        assert network.ask("GET", "/healthz").content == {"status": "ok"}
        assert network.ask("GET", "/readyz").status == 200
        for path in ("/api", "/api/network"):
            assert network.ask("GET", path).status == 401
            assert network.ask("GET", path, headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
        assert network.ask("GET", "/api/streams", headers={"Authorization": f"Bearer {TOKEN}"}).status == 404


def test_a_run_that_ends_with_its_input_is_not_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line says so before anything begins, and so it does of a port that nobody serves at."""
    assert main(["network", "run", str(tmp_path / "NETWORK.toml"), "--once", "--serve"]) == 2
    assert "give one of them" in capsys.readouterr().err
    assert main(["network", "run", str(tmp_path / "NETWORK.toml"), "--port", "1"]) == 2
    assert "goes with '--serve'" in capsys.readouterr().err
