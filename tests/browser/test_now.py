"""The view Now, with what a real run does: numbers beside curves, epochs, lateness, and updates that come fast."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import CDPSession, Page, expect

from browser.site import PageSite
from browser.tab import Tab

pytestmark = [pytest.mark.spark, pytest.mark.browser]

FLOOD = """
  // what the service says of now, sent again and again with later times: as many updates as are asked for
  const real = window.fetch;
  window.flood = {sent: 0};
  window.fetch = async (address, options) => {
    if (!String(address).startsWith("/api/now/events")) return real(address, options);
    const now = await (await real("/api/now", {headers: options.headers})).json();
    const text = new TextEncoder();
    const began = Date.parse(now.time);
    let timer = 0;
    const body = new ReadableStream({
      start(stream) {
        timer = setInterval(() => {
          const n = (window.flood.sent += 1);
          const later = {...now, epoch: now.epoch + n, time: new Date(began + n * 1000 / RATE).toISOString()};
          later.rates = {...now.rates, items: n};
          stream.enqueue(text.encode(`id: ${n}\\ndata: ${JSON.stringify(later)}\\n\\n`));
        }, 1000 / RATE);
      },
      cancel() { clearInterval(timer); },
    });
    return new Response(body, {headers: {"Content-Type": "text/event-stream"}});
  };
"""


def first_epochs(site: PageSite) -> None:
    """Wait until the run has read what there is."""
    site.until(lambda: bool(site.ask("GET", "/now")["epochs"]), "there is an epoch")


def test_streams_are_shown_with_their_numbers(tab: Tab, site: PageSite) -> None:
    """Each stream has a row with rate and lag; beside the curve stands a table with the same streams."""
    first_epochs(site)
    page = tab.go("#/now")
    streams = page.get_by_role("table", name="Streams", exact=True)
    for name in ("photons", "sensors", "tickers", "orders"):
        row = streams.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))
        expect(row).to_contain_text(re.compile(r"/s.*\d"))
    curve = page.get_by_role("img", name=re.compile("busiest streams over time"))
    expect(curve.locator("canvas")).to_be_visible()
    beside = page.get_by_role("table", name=re.compile("busiest streams over time"))
    expect(beside.get_by_role("row")).to_have_count(5)
    page.get_by_role("group", name="What the curve shows").get_by_role("button", name="Lag").click()
    expect(page.get_by_role("table", name=re.compile("^Lag of the"))).to_be_visible()
    page.get_by_role("button", name="Partitions of photons").click()
    expect(page.get_by_role("table", name="Partitions of photons").get_by_role("row")).to_have_count(2)


def test_what_comes_is_shown_without_a_reload(tab: Tab, site: PageSite) -> None:
    """Photons that come while the page is open become a new epoch on it, with their number."""
    first_epochs(site)
    page = tab.go("#/now")
    epochs = page.get_by_role("table", name=re.compile("newest epochs, with their phases"))
    expect(epochs.get_by_role("row").nth(1)).to_be_visible()
    site.photons(3210)
    expect(epochs.get_by_role("cell", name="3.21 k")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()


def test_epochs_have_their_phases(tab: Tab, site: PageSite) -> None:
    """A row of the Gantt has a bar for each phase of its epoch, and the time it took; a table sums the phases up."""
    first_epochs(site)
    page = tab.go("#/now")
    told = site.ask("GET", "/now")["epochs"][-1]
    row = page.locator("table.gantt tbody tr").filter(has_text=re.compile(rf"^{told['epoch']:,}(?!\d)"))
    expect(row.locator("rect")).to_have_count(len(told["phases"]))
    said = row.get_by_role("img").get_attribute("aria-label") or ""
    assert [part.split(" ")[0] for part in said.split(", ")] == [phase["name"] for phase in told["phases"]]
    phases = page.get_by_role("table", name=re.compile("^Phases of the newest"))
    for phase in told["phases"]:
        expect(phases.get_by_role("row", name=re.compile(phase["name"]))).to_contain_text(re.compile(r"\d m?s"))


def test_lateness_is_told_with_numbers(tab: Tab, site: PageSite) -> None:
    """The page tells what the service says is late, each with its numbers, or that nothing is."""
    first_epochs(site)
    page = tab.go("#/now")
    panel = page.get_by_role("region", name="Why is it late?")
    expect(panel).to_be_visible()
    told: list[dict[str, Any]] = []

    def agrees() -> bool:
        told[:] = site.ask("GET", "/now")["late"]
        names = panel.locator(".late-line").all_inner_texts()
        if not told:
            return panel.get_by_text("on time").count() == 1
        return len(names) == len(told) and all(one["name"] in line for one, line in zip(told, names, strict=True))

    site.until(agrees, "the page shows what is late")
    if told and told[0]["numbers"]:
        expect(panel.locator(".late-numbers dd").first).to_have_text(re.compile(r"\d"))


def test_what_was_set_aside_is_shown_with_its_raw_text(tab: Tab, site: PageSite) -> None:
    """Dead letters open from their number, with reason and raw text; a control character in it is visible, not sent."""
    site.until(lambda: site.ask("GET", "/now")["totals"]["dead_letters"] > 0, "something is set aside")
    page = tab.go("#/now")
    page.get_by_role("button", name="dead letters").click()
    dialog = page.get_by_role("dialog", name="Dead letters")
    expect(dialog.locator(".letter").first).to_be_visible()
    expect(dialog.locator(".raw").filter(has_text="u001b").first).to_be_visible()
    tab.accessible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="dead letters")).to_be_focused()


def test_now_in_both_themes_and_two_widths(tab: Tab, site: PageSite) -> None:
    """Nothing is beside the screen, nothing keeps somebody out; pictures are kept."""
    first_epochs(site)
    page = tab.go("#/now")
    expect(page.locator(".curve canvas")).to_be_visible()
    for amount in (510, 520, 530, 540):  # so that there is a curve to see
        site.photons(amount)
        expect(page.locator("table.gantt tbody").get_by_role("cell", name=str(amount), exact=True)).to_be_visible()
    tab.portraits("now")


def flooded(tab: Tab, rate: int) -> Page:
    """The view with so many updates a second."""
    tab.page.add_init_script(FLOOD.replace("RATE", str(rate)))
    page = tab.go("#/now")
    expect(page.locator(".curve canvas")).to_be_visible()
    return page


def sent(page: Page) -> int:
    return int(page.evaluate("window.flood.sent"))


def heap(session: CDPSession) -> int:
    """The bytes of the page that are in use, after a collection."""
    session.send("HeapProfiler.collectGarbage")
    return int(session.send("Runtime.getHeapUsage")["usedSize"])


def test_sixty_updates_a_second_do_not_hold_up_input(tab: Tab, site: PageSite) -> None:
    """While 60 updates come a second, clicks are answered at once: half of them within a tenth of a second."""
    first_epochs(site)
    page = flooded(tab, 60)
    took = page.evaluate(
        """async () => {
          const found = [];
          const names = ["Bytes", "Lag", "Items"];
          for (let n = 0; n < 15; n += 1) {
            const buttons = [...document.querySelectorAll(".curves .choice button")];
            const button = buttons.find((one) => one.textContent === names[n % 3]);
            const began = performance.now();
            await new Promise((done) => setTimeout(done, 0));  // behind whatever is being drawn, as a click would be
            button.click();
            while (button.getAttribute("aria-pressed") !== "true") await new Promise((done) => setTimeout(done, 0));
            found.push(performance.now() - began);
            await new Promise((done) => setTimeout(done, 50));
          }
          return found;
        }"""
    )
    assert sorted(took)[len(took) // 2] < 100, json.dumps(took)
    assert max(took) < 1000, json.dumps(took)


def test_memory_stays_flat_under_updates(tab: Tab, site: PageSite) -> None:
    """After a thousand updates the page has the elements and the memory that it had when its curves were full."""
    first_epochs(site)
    page = flooded(tab, 250)
    session = page.context.new_cdp_session(page)
    site.until(lambda: sent(page) > 400, "the curves are full")
    before, elements = heap(session), page.locator("*").count()
    target = sent(page) + 1000
    site.until(lambda: sent(page) > target, "a thousand updates more")
    assert page.locator("*").count() <= elements + 20
    assert heap(session) < before + 3_000_000
