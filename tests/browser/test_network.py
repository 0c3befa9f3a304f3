"""The view Network: a calm word where a site runs by itself, and the map where there is a network.

The network is that of docs/network.md, a hypercube of super-peers with thin peers beside them, at work on Spark
(`anabranch network run --serve`); the page is its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from anabranch.cli import main
from anabranch.stream.photons import photons_dtd
from browser.conftest import opened
from browser.site import PageSite, serving
from browser.tab import Tab

pytestmark = [pytest.mark.spark, pytest.mark.browser]

QUERIES = Path(__file__).parents[2] / "docs" / "queries"
THIN = {"P0": "SP4", "P1": "SP1", "P2": "SP7", "P3": "SP3", "P4": "SP2"}
ASKED = {"q1": "P1", "q2": "P2", "q3": "P3", "q4": "P4"}
NETWORK = """
[network]
topology = "hypercube"
peers = 8
checkpoint = "state"
log = "log.jsonl"

[streams.photons]
at = "P0"
path = "in"
dtd = "photons.dtd"
time = "det_time"
accents = false
"""


@dataclass
class NetworkSite(PageSite):
    """A network that runs and is served: eight super-peers and five thin ones on one Spark."""

    def write(self) -> None:
        """Write NETWORK.toml, its queries and its first photons."""
        (self.folder / "in").mkdir(parents=True)
        (self.folder / "photons.dtd").write_text(photons_dtd())
        peers = "".join(f'[peers.{name}]\nat = "{at}"\n' for name, at in THIN.items())
        asked = "".join(f'[subscriptions.{name}]\nat = "{at}"\nquery = "{name}.xq"\n' for name, at in ASKED.items())
        (self.folder / "NETWORK.toml").write_text(NETWORK + peers + asked)
        for name in ASKED:
            copy(QUERIES / f"{name}.xq", self.folder)
        self.seen(600)

    def seen(self, count: int) -> None:
        """So many more photons, of another seed each time."""
        file = self.folder / "made.xml"
        seed = str(len(list((self.folder / "in").iterdir())) + 1)
        assert main(["generate", "photons", "--count", str(count), "--seed", seed, "--out", str(file)]) == 0
        self.append("in", file.read_text())

    def map(self) -> dict[str, Any]:
        """The map, as the service tells it now."""
        found: dict[str, Any] = self.ask("GET", "/network")["network"]
        return found


@pytest.fixture(scope="module")
def network_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkSite]:
    """A network at work, until its links have carried something."""
    site = NetworkSite(tmp_path_factory.mktemp("network"))
    site.write()
    with serving(site.folder, "network", "run", "--serve", "NETWORK.toml") as site.address:
        site.until(lambda: len(busy(site.map())) == 5, "the five flows of docs/network.md are measured", 180)
        yield site


@pytest.fixture
def network_tab(browser: Browser, network_site: NetworkSite) -> Iterator[Tab]:
    """A fresh tab on the network's own page."""
    with opened(browser, network_site) as found:
        yield found


@pytest.fixture
def network(network_site: NetworkSite) -> dict[str, Any]:
    """The map by now; nothing flows meanwhile."""
    return network_site.map()


def busy(network: dict[str, Any]) -> list[dict[str, Any]]:
    """The links on which something was measured, the busiest first."""
    return sorted((each for each in network["links"] if each["measured"]), key=lambda each: -each["measured"])


def _answered(body: str, route: Route) -> None:
    route.fulfill(body=body, content_type="application/json")


def seen(page: Page) -> None:
    """Wait for the map."""
    expect(page.locator(".network-map text").first).to_be_visible()


def test_a_site_by_itself_says_how_to_get_a_network(tab: Tab) -> None:
    """The service has no network: the page says so, what one is, and with which commands one gets it."""
    page = tab.go("#/network")
    expect(page.get_by_text("This site runs by itself")).to_be_visible()
    expect(page.get_by_text("anabranch network run NETWORK.toml")).to_be_visible()
    tab.portraits("network-alone")


def test_the_page_of_a_network_opens_with_its_map(network_tab: Tab) -> None:
    """There are no streams and subscriptions of a site to look at, so there is no way to them either."""
    page = network_tab.go("")
    seen(page)
    expect(page).to_have_url(re.compile("#/network$"))
    links = page.get_by_role("navigation").get_by_role("link")
    assert [text.strip() for text in links.all_text_contents()] == ["Network"]


def test_the_map_has_every_peer_and_link(network_tab: Tab, network: dict[str, Any]) -> None:
    """Each peer is a node with its name, each link a line; those that carry something have a width by it, the more the
    wider, and the others none."""
    page = network_tab.go("#/network")
    seen(page)
    assert {each["name"] for each in network["peers"]} == {*THIN, *(f"SP{number}" for number in range(8))}
    names = page.locator(".network-map text").all_text_contents()
    assert sorted(names) == sorted(each["name"] for each in network["peers"])
    expect(page.locator(".net-link")).to_have_count(len(network["links"]))
    measured = busy(network)
    assert len(measured) == 5, "the five flows of docs/network.md"
    widths = {}
    for each in measured:
        link = page.locator(".net-link").filter(has_text=f"{each['from']} → {each['to']}:")
        widths[each["from"], each["to"]] = float(link.locator(".net-measured").get_attribute("stroke-width") or 0)
    assert list(widths.values()) == sorted(widths.values(), reverse=True)
    assert min(widths.values()) < max(widths.values())
    expect(page.locator(".net-measured")).to_have_count(len(measured))
    network_tab.portraits("network")


def test_the_table_tells_planned_and_measured_and_what_flows(network_tab: Tab, network: dict[str, Any]) -> None:
    """The table has a row for each link, the busiest first; one opens with what flows on it, by the keyboard, and the
    map shows which it is."""
    page = network_tab.go("#/network")
    table = page.get_by_role("table", name="Links of the network")
    expect(table.locator("tbody tr")).to_have_count(len(network["links"]))
    first = busy(network)[0]
    expect(table.locator("tbody tr").first).to_contain_text(f"{first['from']} → {first['to']}")
    table.get_by_role("button", name=f"{first['from']} → {first['to']}").focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("region", name=f"{first['from']} → {first['to']}")
    for flow in first["flows"]:
        expect(panel).to_contain_text(flow["stream"])
        expect(panel).to_contain_text(flow["carries"])
    expect(page.locator(".net-chosen")).to_have_count(1)
    flows = sum(len(each["flows"]) for each in network["links"])
    expect(page.locator(".network-numbers")).to_contain_text(re.compile(rf"flows\s*{flows}"))


def test_the_map_is_alive(network_tab: Tab, network_site: NetworkSite) -> None:
    """Photons come, and the numbers of the busiest link change under the reader's eyes."""
    page = network_tab.go("#/network")
    first = page.get_by_role("table", name="Links of the network").locator("tbody tr").first
    expect(first).to_be_visible()
    before, told = busy(network_site.map()), first.inner_text()
    network_site.seen(3000)
    network_site.until(lambda: busy(network_site.map()) != before, "more was measured", 120)
    expect(first).not_to_have_text(told, use_inner_text=True)


def test_peers_without_places_stand_apart(network_tab: Tab, network: dict[str, Any]) -> None:
    """Where no peer has a place all are put around, where some have none those are put beside whom they are joined to;
    no two stand on each other, and all on the map."""
    super_peers = {each["name"] for each in network["peers"] if each["super"]}
    nowhere = [{**each, "x": None, "y": None} for each in network["peers"]]
    some = [each if each["name"] in super_peers else {**each, "x": None, "y": None} for each in network["peers"]]
    for peers in (nowhere, some):
        answer = json.dumps({"network": {**network, "peers": peers}})  # the real map, but for the places
        network_tab.page.unroute_all()
        network_tab.page.route("**/api/network", partial(_answered, answer))
        page = network_tab.go("#/network")
        page.reload()
        seen(page)
        frame = page.locator(".network-map").bounding_box()
        boxes = [each.bounding_box() for each in page.locator(".network-map text").all()]
        assert frame is not None
        middles = []
        for box in boxes:
            assert box is not None
            middles.append((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2))
        for number, (x, y) in enumerate(middles):
            assert frame["x"] < x < frame["x"] + frame["width"]
            assert frame["y"] < y < frame["y"] + frame["height"]
            assert all(abs(x - other) + abs(y - more) > 24 for other, more in middles[:number])
