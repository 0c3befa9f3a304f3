"""The view Sharing: the shared plan as a picture that follows the service, groups that open, and what sharing saves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.site import PageSite, served
from browser.tab import Tab

pytestmark = [pytest.mark.spark, pytest.mark.browser]

MOST_DRAWN = 40
"""Groups that the picture draws."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageSite]:
    """A site of its own: thousands of subscriptions more would be in the way of others."""
    with served(tmp_path_factory.mktemp("site")) as found:
        yield found


def rows(page: Page) -> Locator:
    """The groups that are drawn, and the row for the others."""
    return page.get_by_role("list", name="Groups").locator("> li")


def group_of(site: PageSite, name: str) -> Any:
    """The group that a subscription is in, as the service tells it; None before it is in one."""
    for group in site.ask("GET", "/sharing")["groups"]:
        if name in group["names"]:
            return group
    return None


def alike(site: PageSite, name: str, amount: int, query: Callable[[int], str]) -> Any:
    """Register queries that differ in a number, and wait until they are one group; gives the group."""
    names = [f"{name}-{number:05d}" for number in range(amount)]
    known = site.ask("GET", f"/subscriptions?search={name}-&limit=1")["total"]
    if not known:
        bodies = [{"name": each, "query": query(number)} for number, each in enumerate(names)]
        site.ask("POST", "/subscriptions", bodies)
        site.photons(1)
    site.until(lambda: (group_of(site, names[0]) or {"subscriptions": 0})["subscriptions"] >= amount, f"{name} runs")
    return group_of(site, names[0])


def bright(number: int) -> str:
    """One of a shape that no other test asks for."""
    photons = 'stream("photons")/photons/photon'
    return f"for $p in {photons} where $p/phc = {number + 2000} return <bright>{{ $p/phc }}</bright>"


def test_the_picture_has_all_streams_and_groups_of_the_plan(tab: Tab, site: PageSite) -> None:
    """Every stream stands left; every group is a row with its kind, what it asks for, and how many subscribe."""
    page = tab.go("#/sharing")
    expect(rows(page).first).to_be_visible()
    told = site.ask("GET", "/sharing")
    for stream in told["streams"]:
        expect(page.get_by_role("list", name="Streams").get_by_role("link", name=stream["name"])).to_be_visible()
    largest = sorted(told["groups"], key=lambda each: -each["subscriptions"])[:MOST_DRAWN]
    expect(rows(page)).to_have_count(len(largest) + (len(told["groups"]) > MOST_DRAWN))
    group = group_of(site, "vela")
    shown = rows(page).filter(has=page.get_by_title(group["label"], exact=True))
    expect(shown).to_contain_text(group["kind"])
    expect(shown).to_contain_text("subscription")
    tab.portraits("sharing")


def test_what_sharing_saves_is_told_in_numbers(tab: Tab, site: PageSite) -> None:
    """The passes with and without sharing are those of the service, and the longer bar is the one without."""
    page = tab.go("#/sharing")
    section = page.get_by_role("region", name=re.compile("Sharing reads|What sharing saves"))
    expect(section).to_contain_text(re.compile(r"read in \d+ pass"))
    site.until(lambda: _passes(section) == _told_passes(site), "the page shows the passes of the service")
    site.until(lambda: _bars(section, site)[1] > 0, "there is something to compare")
    shared, apart = _bars(section, site)
    assert apart > shared > 0


def _bars(section: Locator, site: PageSite) -> list[float]:
    """The widths of both bars, while photons flow."""
    site.photons(50)
    width = "one => one.getBoundingClientRect().width"
    return [float(section.locator(f".compare-{kind}").evaluate(width)) for kind in ("with", "without")]


def _passes(section: Locator) -> list[int]:
    return [int(each.replace(",", "")) for each in re.findall(r"read in ([\d,]+) pass", section.inner_text())]


def _told_passes(site: PageSite) -> list[int]:
    told = site.ask("GET", "/sharing")
    return [told["with"]["passes"], told["without"]["passes"]]


def test_bands_follow_what_is_measured(tab: Tab, site: PageSite) -> None:
    """The band of a stream is a surface where the service has measured items of it, as of photons that flow, and a
    dotted line where it has not."""
    page = tab.go("#/sharing")
    expect(rows(page).first).to_be_visible()
    site.until(lambda: _drawn_as_told(page, site), "the bands are those of the answer that the page has got")


def _drawn_as_told(page: Page, site: PageSite) -> bool:
    """Whether the page has got an answer with photons that flow, and drawn its bands by it."""
    with page.expect_response(re.compile(r"/api/sharing$")) as got:
        site.photons(50)
    told = {each["name"]: each["items_per_second"] for each in got.value.json()["streams"] if each["groups"]}
    cards = page.get_by_role("list", name="Streams").get_by_role("listitem")
    flowing = {}
    for name in told:
        tint = re.findall(r"tint-\d", cards.filter(has_text=name).get_attribute("class") or "")[0]
        bands = page.locator(f".band-items.{tint}")
        assert bands.count() > 0, f"no band leads from '{name}'"
        flowing[name] = bands.count() > page.locator(f".band-items.{tint}.band-still").count()
    return told["photons"] > 0 and flowing == {name: rate > 0 for name, rate in told.items()}


def test_a_group_opens_its_members_page_by_page_and_stays_open(tab: Tab, site: PageSite) -> None:
    """A group opens by the keyboard; its members come fifty at a time, and a renewal of the numbers closes nothing."""
    group = alike(site, "bright", 130, bright)
    page = tab.go("#/sharing")
    row = rows(page).filter(has=page.get_by_title(group["label"], exact=True))
    head = row.get_by_role("button").first
    head.focus()
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-expanded", "true")
    expect(row.get_by_role("link", name="bright-00000")).to_be_visible()
    expect(row.locator("tbody tr")).to_have_count(50)
    row.get_by_role("button", name="Next").click()
    expect(row.get_by_role("link", name="bright-00050")).to_be_visible()
    names = [each.inner_text() for each in row.locator("tbody a").all()]
    second = site.ask("GET", f"/sharing/{group['id']}?limit=50&after=bright-00049")
    assert names == [each["name"] for each in second["subscriptions"]]
    for _ in range(2):
        with page.expect_response(re.compile(r"/api/sharing$")):
            site.photons(5)
    expect(head).to_have_attribute("aria-expanded", "true")
    expect(row.get_by_role("link", name="bright-00050")).to_be_visible()
    tab.portraits("sharing-open")


def test_the_table_has_the_same_numbers_and_sorts(tab: Tab, site: PageSite) -> None:
    """The table lists the groups with the most subscriptions first, the fewest after a click, and can be filtered."""
    group = alike(site, "bright", 130, bright)
    page = tab.go("#/sharing")
    table = page.get_by_role("table", name="Groups of subscriptions")
    counts = table.locator("tbody tr td:nth-child(2)")
    expect(counts.first).to_be_visible()

    def shown() -> list[int]:
        return [int(each.replace(",", "")) for each in counts.all_inner_texts()]

    assert shown() == sorted(shown(), reverse=True)
    table.get_by_role("button", name="Members").click()
    expect(table.locator("th[aria-sort=ascending]")).to_have_text(re.compile("Members"))
    assert shown() == sorted(shown())
    page.get_by_label("Filter groups").fill("<bright>")
    expect(table.locator("tbody tr")).to_have_count(1)
    assert shown() == [group["subscriptions"]]


def test_ten_thousand_subscriptions_of_many_shapes_stay_a_picture(tab: Tab, site: PageSite) -> None:
    """With ten thousand subscriptions in some sixty groups forty are drawn, the others are one row that leads to the
    table, and the page has no more elements than a small one."""
    shapes = 60

    def query(number: int) -> str:
        shape = number % shapes
        return (
            f'for $p in stream("photons")/photons/photon where $p/phc = {number + 3000} '
            f"return <shape{shape}>{{ $p/en }}</shape{shape}>"
        )

    if not site.ask("GET", "/subscriptions?search=crowd-&limit=1")["total"]:
        for first in range(0, 10_000, 5_000):
            numbers = range(first, first + 5_000)
            site.ask(
                "POST", "/subscriptions", [{"name": f"crowd-{each:05d}", "query": query(each)} for each in numbers]
            )
        site.photons(1)
    site.until(lambda: len(site.ask("GET", "/sharing")["groups"]) > shapes, "all of them run")
    page = tab.go("#/sharing")
    expect(rows(page)).to_have_count(MOST_DRAWN + 1)
    groups = len(site.ask("GET", "/sharing")["groups"])
    last = rows(page).last
    expect(last).to_contain_text(f"{groups - MOST_DRAWN} more groups")
    assert page.evaluate("document.querySelectorAll('*').length") < 3000
    last.get_by_role("button").click()
    expect(page.get_by_role("checkbox", name="only those not drawn")).to_be_checked()
    expect(page.get_by_text(re.compile(rf"of {groups - MOST_DRAWN} groups|1 to 25"))).to_have_count(
        1 if groups - MOST_DRAWN > 25 else 0
    )
    table = page.get_by_role("table", name="Groups of subscriptions")
    expect(table.locator("tbody tr")).to_have_count(min(25, groups - MOST_DRAWN))
    table.locator("tbody button").first.click()
    expect(page.locator(".sharing-panel-free tbody tr").first).to_be_visible()
    tab.portraits("sharing-crowd")
