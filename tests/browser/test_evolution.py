"""The view Evolution: lanes and marks as the service tells them, what subscriptions did, and publishing an accent.

The sensors are read by `average` and `warm`; sensor 2 has changed to Celsius before the page is opened.
What a test publishes stays, so each is about a path or about items of its own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.site import PageSite
from browser.tab import TIMEOUT, Tab
from service.local_service import served

pytestmark = [pytest.mark.spark, pytest.mark.browser]


def evolution(site: PageSite) -> Any:
    """The evolution of the sensors, as the service tells it."""
    return site.ask("GET", "/streams/sensors/evolution")


def begun(site: PageSite) -> None:
    """Wait until the first accent of the sensors was read."""
    site.until(lambda: evolution(site)["accents"], "sensor 2 has changed its unit")


def form(page: Page, kind: str, **fields: str) -> None:
    """Fill in the form for an accent."""
    page.get_by_role("group", name="What changes").get_by_role("button", name=kind).click()
    for name, text in fields.items():
        page.locator(f'form [name="{name}"]').fill(text)


def test_lanes_and_marks_are_those_of_the_service(tab: Tab, site: PageSite) -> None:
    """Each path and described subset has a row; its stretches have the states and units of the service, and each accent
    has a mark, whether the axis goes by epochs or by changes."""
    begun(site)
    page = tab.go("#/evolution/sensors")
    lanes = page.get_by_role("table", name="Paths and their units over time")
    expect(lanes.get_by_role("row").nth(1)).to_be_visible()
    told = evolution(site)
    for lane in told["lanes"]:
        for stretch in lane["stretches"]:
            words = stretch["unit"] or stretch["state"]
            shown = lanes.get_by_role("row").filter(has_text=stretch["items"]).get_by_title(words)
            expect(shown.first).to_be_attached()
    for axis in ("By epoch", "By change"):
        page.get_by_role("button", name=axis).click()
        expect(page.get_by_role("button", name=axis)).to_have_attribute("aria-pressed", "true")
        expect(lanes.get_by_role("button", name=re.compile("alter t by .* 5 div 9")).first).to_be_visible()
    page.get_by_label("Filter paths").fill("no such path")
    expect(lanes.get_by_text("no path is like that")).to_be_visible()


def test_a_mark_tells_its_accent_and_what_subscriptions_did(tab: Tab, site: PageSite) -> None:
    """A click on the mark shows the change, its items and its place; each deed has its count and its names, which lead
    to the subscriptions; the table leads there, too."""
    begun(site)
    accent = evolution(site)["accents"][0]
    page = tab.go("#/evolution/sensors")
    page.get_by_role("table", name="Accents of the stream").get_by_role("button", name=accent["change"]).last.click()
    detail = page.get_by_role("region", name=f"Accent {accent['number']}")
    expect(detail).to_contain_text(accent["change"])
    expect(detail).to_contain_text(accent["items"])
    expect(detail).to_contain_text(accent["file"])
    for reaction in accent["reactions"]:
        head = detail.get_by_role("button", name=re.compile(f"{reaction['count']} (pass|reckon|end)"))
        expect(head.first).to_be_visible()
        for name in reaction["subscriptions"]:
            expect(detail.get_by_role("link", name=name, exact=True)).to_be_visible()
    page.reload()
    expect(detail).to_be_visible()  # the address has the accent
    tab.portraits("evolution")


def test_an_accent_is_previewed_then_published_and_followed(tab: Tab, site: PageSite) -> None:
    """The preview tells whom the accent concerns, as the service does, and changes nothing; after the question is
    confirmed it is published, read with the next items, and is a mark with the reactions that were foretold."""
    begun(site)
    before = evolution(site)["accents"]
    site.subscribe("page-seen", 'for $r in stream("sensors")/sensors/reading return <seen>{ $r/s, $r/t }</seen>')
    page = tab.go("#/evolution/sensors")
    form(page, "Alter", path="t", by="(. - 32) * 5 div 9", where="s = 1")
    page.get_by_role("button", name="Preview").click()
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("pass it on")
    text = '<s:accent where="s = 1"><s:alter path="t" by="(. - 32) * 5 div 9"/></s:accent>'
    foretold = site.ask("POST", "/streams/sensors/accents", {"accent": text, "preview": True})
    for reaction in foretold["reactions"]:
        for name in reaction["subscriptions"]:
            expect(preview.get_by_role("link", name=name, exact=True)).to_be_visible()
    assert evolution(site)["accents"] == before, "a preview changes nothing"
    tab.portraits("evolution-preview")
    preview.get_by_role("button", name="Publish into sensors").click()
    dialog = page.get_by_role("dialog", name="Publish into sensors?")
    expect(dialog).to_contain_text("s = 1")
    assert evolution(site)["accents"] == before, "a question changes nothing"
    dialog.get_by_role("button", name="Publish it").click()
    expect(page.get_by_text("Published", exact=True)).to_be_visible()
    expect(dialog).to_be_hidden()
    site.readings(10)
    site.until(lambda: len(evolution(site)["accents"]) == len(before) + 1, "the accent was read")
    accent = evolution(site)["accents"][-1]
    assert accent["items"] == "s = 1"
    lanes = page.get_by_role("table", name="Paths and their units over time")
    lane = lanes.get_by_role("row").filter(has_text="s = 1")
    lane.get_by_role("button", name=f"accent {accent['number']}").click()
    detail = page.get_by_role("region", name=f"Accent {accent['number']}")
    expect(detail.get_by_role("link", name="page-seen", exact=True)).to_be_visible()
    did = {name: each["deed"] for each in accent["reactions"] for name in each["subscriptions"]}
    would = {name: each["deed"] for each in foretold["reactions"] for name in each["subscriptions"]}
    assert {name: did.get(name) for name in would} == would
    site.until(lambda: any("accent" in text for _, text in site.answers("page-seen")), "its answer says so, too")


def test_a_fault_stands_at_its_field(tab: Tab, site: PageSite) -> None:
    """What is missing or wrong is told at the field that it is about, with its hint, and nothing can be published."""
    tab.allow("status of 4")
    begun(site)
    page = tab.go("#/evolution/sensors")

    def fault(field: str) -> str:
        box = page.locator(f'form [name="{field}"]')
        expect(box).to_have_attribute("aria-invalid", "true")
        return page.locator(f'form .field:has([name="{field}"]) [role=alert]').inner_text()

    page.get_by_role("button", name="Preview").click()
    assert "which path" in fault("path")
    form(page, "Alter", path="t", by=". * .")
    page.keyboard.press("Enter")
    expect(page.locator('form [name="by"][aria-invalid="true"]')).to_be_visible()
    assert "multiplied by itself" in fault("by")
    form(page, "Alter", path="t", by=". * 2", where="t > 30")
    page.keyboard.press("Enter")
    expect(page.locator('form [name="where"][aria-invalid="true"]')).to_be_visible()
    assert "the path that evolves" in fault("where")
    form(page, "As text", text="<s:accent>")
    page.get_by_role("button", name="Preview").click()
    assert fault("text")
    expect(page.get_by_role("button", name=re.compile("^Publish into"))).to_have_count(0)


def test_a_preview_is_taken_back_when_the_accent_changes(tab: Tab, site: PageSite) -> None:
    """Only what was previewed can be published: a change in a field takes the preview away; a path that no item has
    had is warned of, and what it would end is told with the reason."""
    begun(site)
    page = tab.go("#/evolution/sensors")
    form(page, "Drop", path="tt")
    page.get_by_role("button", name="Preview").click()
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("no item has had 'tt'")
    page.locator('form [name="path"]').fill("t")
    expect(preview).to_be_hidden()
    page.get_by_role("button", name="Preview").click()
    expect(preview).to_contain_text("ends")
    expect(preview).to_contain_text("'where' cannot do without 't'")


def test_what_is_typed_and_read_is_text_never_markup(tab: Tab, site: PageSite) -> None:
    """A description full of markup is shown as it is, in the preview and on the lanes once it was published."""
    begun(site)
    hostile = "<img src=x onerror=alert(1)>"
    page = tab.go("#/evolution/sensors")
    form(page, "Add", path="odd", where=f'note = "{hostile}"')
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("region", name="Preview")).to_be_visible()
    where = "note = &quot;&lt;img src=x onerror=alert(1)>&quot;"
    accent = f'<s:accent where="{where}"><s:add path="odd"/></s:accent>'
    site.ask("POST", "/streams/sensors/accents", {"accent": accent, "preview": False})
    site.readings(2)
    expect(page.get_by_role("table", name="Accents of the stream")).to_contain_text(hostile)
    assert page.locator("main img").count() == 0


def test_the_form_explains_itself_to_whoever_may_not_publish(browser: Browser, tmp_path: Path) -> None:
    """With a token that may only read, the form says which role it takes, and offers nothing."""
    tokens = tmp_path / "tokens"
    tokens.write_text("read 0123456789abcdef reader\n")
    tokens.chmod(0o600)
    folder = tmp_path / "site"
    folder.mkdir()
    with served(folder, token_file=tokens) as service:
        context = browser.new_context()
        context.set_default_timeout(TIMEOUT)
        tab = Tab(context.new_page(), PageSite(folder, service.url))
        tab.allow("status of 401")
        page = tab.go("#/evolution/s")
        dialog = page.get_by_role("dialog", name="This service asks for a token")
        dialog.get_by_label("Token").fill("0123456789abcdef")
        dialog.get_by_role("button", name="Use it").click()
        page.reload()
        expect(page.get_by_text("Publishing needs another role")).to_be_visible()
        expect(page.get_by_role("button", name="Preview")).to_have_count(0)
        context.close()
        tab.blameless()
