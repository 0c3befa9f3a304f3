"""The view Past: the slider goes through real moments, shows what the service says, marks what changed, and finds the
versions of a value.

The display is that of `page-quotes`, with all stocks of the tickers; what it shows is compared with what the service
answers, and what was there before with its answer for the moment before.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser.site import SPACE, PageSite
from browser.tab import TIMEOUT, Tab
from service import local_service

pytestmark = [pytest.mark.spark, pytest.mark.browser]

QUOTES = 'for $q in stream("tickers")//ticker return <stock>{ $q/name, $q/quote }</stock>'
JSON_SITE = """
[engine]
checkpoint = "state"
log = "log.jsonl"
trigger_ms = 20

[streams.stock]
source = "files"
path = "updates"
format = "json"
updates = true

[subscriptions.offers]
text = 'for $s in stream("stock") order by $s.of return { "of": $s.of, "left": $s.left }'
"""
STOCK = (
    '{"$at": 1, "of": "tea", "left": {"$mutable": {"id": "t", "content": 7}}}',
    '{"$at": 2, "of": "rice 🏭", "left": {"$mutable": {"id": "r", "content": 12.0}}}',
    '{"$replace": {"target": "t", "at": 5, "content": {"here": 2, "there": []}}}',
    '{"$replace": {"target": "r", "at": 9, "content": "none"}}',
)
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def quotes(site: PageSite) -> str:
    """The name of a display that has had some moments, the last of them with hostile text."""
    name = "page-quotes"
    if not site.ask("GET", f"/subscriptions?search={name}")["total"]:
        site.subscribe(name, QUOTES)
        lines = [
            f'<s:replace {SPACE} target="{target}" at="{60 + number}"><quote>{120 + number}</quote></s:replace>'
            for number, target in enumerate("aiaaiiaiaa" * 2)
        ]
        lines.append(f'<ticker {SPACE} s:at="90"><name>Umbrella 🏭 &lt;img src=x onerror=alert(1)></name></ticker>')
        site.append("tickers", "".join(f"{line}\n" for line in lines))
    site.until(lambda: moments(site, name)[-1]["at"] == "90", "the display has had all its moments")
    return name


def moments(site: PageSite, name: str) -> Any:
    """All moments of a display; one that is none where there are none."""
    return site.ask("GET", f"/subscriptions/{name}/moments?limit=500")["moments"] or [{"at": None}]


def shown(site: PageSite, name: str, moment: int) -> str:
    """What a display has shown at a moment, as the service tells it."""
    text: str = site.ask("GET", f"/subscriptions/{name}/display?moment={moment}")["text"]
    return text


def screen(page: Page) -> Locator:
    """What is shown of the display, line by line."""
    return page.get_by_role("listbox", name="What the display showed")


def texts(page: Page, without: str) -> str:
    """The text of all lines, white space aside, without what has one of the marks `ins` and `del`."""
    lines = (
        screen(page)
        .locator(".line-text")
        .evaluate_all(
            """(lines, without) => lines.map((line) => {
            const copy = line.cloneNode(true);
            copy.querySelectorAll(without).forEach((each) => each.remove());
            return copy.textContent;
        })""",
            without,
        )
    )
    return "".join("".join(lines).split())


def shows(page: Page, text: str) -> bool:
    """Whether the display shows a text."""
    return texts(page, "del") == "".join(text.split())


def at_moment(page: Page, number: int) -> None:
    """Wait until the page shows a moment."""
    expect(page.get_by_role("slider", name="Moment")).to_have_attribute(
        "aria-valuetext", re.compile(rf"^moment {number},")
    )
    expect(page.locator(".past-shown:not(.past-late)")).to_be_visible()


def test_the_slider_goes_through_the_moments_of_the_service(tab: Tab, site: PageSite, quotes: str) -> None:
    """By the keyboard, from the first moment to the last: each shows what the service says, and with the marks undone
    what it says of the moment before."""
    known = moments(site, quotes)
    page = tab.go(f"#/past/{quotes}")
    slider = page.get_by_role("slider", name="Moment")
    at_moment(page, known[-1]["number"])  # the newest, where nothing else was asked for
    slider.focus()
    page.keyboard.press("Home")
    before = ""
    for moment in known:
        at_moment(page, moment["number"])
        expect(slider).to_have_attribute("aria-valuetext", re.compile(rf"at {re.escape(moment['at'])}, epoch"))
        text = shown(site, quotes, moment["number"])
        site.until(partial(shows, page, text), f"moment {moment} shows {text}")
        assert texts(page, "ins") == "".join(before.split())
        before = text
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    at_moment(page, known[-2]["number"])
    page.keyboard.press("End")
    at_moment(page, known[-1]["number"])
    page.keyboard.press("Home")
    at_moment(page, known[0]["number"])


def test_changes_are_told_by_more_than_a_colour(tab: Tab, site: PageSite, quotes: str) -> None:
    """Of a quote that was replaced only the number is marked; the line has a sign, and a word for who cannot see it,
    what came is underlined, what went is struck through, and nothing else need be shown."""
    known = moments(site, quotes)
    page = tab.go(f"#/past/{quotes}?moment={known[-2]['number']}")
    at_moment(page, known[-2]["number"])
    line = screen(page).locator(".line-change")
    expect(line).to_have_count(1)
    expect(line).to_contain_text("changed:")
    expect(line.locator(".line-sign")).to_have_text("±")
    assert re.fullmatch(r"\d+", line.locator("ins").inner_text())
    assert re.fullmatch(r"\d+", line.locator("del").inner_text())
    for mark, decoration in (("ins", "underline"), ("del", "line-through")):
        style = line.locator(mark).evaluate("one => getComputedStyle(one).textDecorationLine")
        assert style == decoration
    lines = screen(page).get_by_role("option").count()
    page.get_by_role("checkbox", name="only what changed").check()
    expect(line).to_have_count(1)
    assert screen(page).get_by_role("option").count() < lines
    tab.portraits("past")


def test_it_plays_and_pauses(tab: Tab, site: PageSite, quotes: str) -> None:
    """Play goes on by itself from the first moment, pause stays where it is, and the address keeps the moment."""
    known = moments(site, quotes)
    page = tab.go(f"#/past/{quotes}?moment={known[0]['number']}")
    at_moment(page, known[0]["number"])
    page.get_by_label("speed").select_option("16")
    page.get_by_role("button", name="Play").click()
    at_moment(page, known[-1]["number"])
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # at the end it stops
    page.get_by_label("speed").select_option("1")
    page.get_by_role("button", name="Play").click()
    at_moment(page, known[1]["number"])
    page.get_by_role("button", name="Pause").click()
    slider = page.get_by_role("slider", name="Moment")
    number = slider.input_value()
    expect(page).to_have_url(re.compile(rf"moment={number}$"))
    page.reload()
    at_moment(page, int(number))


def test_the_versions_of_a_value_are_those_of_the_moments(tab: Tab, site: PageSite, quotes: str) -> None:
    """An element is chosen by the keyboard; its value is followed by the name of its stock, and listed newest first, as
    the displays of the service have it; a version leads to its moment."""
    known = moments(site, quotes)
    page = tab.go(f"#/past/{quotes}?moment={known[-2]['number']}")
    at_moment(page, known[-2]["number"])
    screen(page).focus()
    for key in ("Home", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    panel = page.get_by_role("region", name="Versions of a value")
    expect(panel.locator(".versions-path")).to_have_text("stock[1]/quote")
    expect(panel.get_by_label("Follow it by")).to_have_value("0")
    expect(panel.get_by_role("status")).to_have_text(re.compile(rf"in {len(known)} moments$"))
    expected: list[str] = []
    for moment in known:
        found = re.search(r"<name>ACME</name><quote>(\d+)", shown(site, quotes, moment["number"]))
        value = found[1] if found else "not there"
        if not expected or expected[-1] != value:
            expected.append(value)
    versions = panel.locator(".version > :last-child")
    expect(versions).to_have_text(expected[::-1])
    panel.locator(".version").last.click()
    at_moment(page, known[0]["number"])
    tab.portraits("past-versions")


def test_what_a_display_says_is_text_never_markup(tab: Tab, site: PageSite, quotes: str) -> None:
    """Names full of markup are shown as they are, as a line and as a value."""
    page = tab.go(f"#/past/{quotes}")
    at_moment(page, moments(site, quotes)[-1]["number"])
    line = screen(page).get_by_role("option").filter(has_text="Umbrella")
    expect(line).to_contain_text("&lt;img src=x onerror=alert(1)")
    line.click()
    panel = page.get_by_role("region", name="Versions of a value")
    expect(panel.locator(".version").first).to_contain_text(HOSTILE)
    assert page.locator("main img").count() == 0


def test_the_newest_moment_is_followed(tab: Tab, site: PageSite) -> None:
    """Whoever looks at the newest moment sees the next one as it comes; whoever looks at another stays there."""
    name = "page-live"
    site.subscribe(name, 'for $q in stream("tickers")//ticker return <live>{ $q/quote }</live>')
    site.until(lambda: moments(site, name)[-1]["at"] is not None, "it shows something")
    page = tab.go(f"#/past/{name}")
    last = moments(site, name)[-1]
    at_moment(page, last["number"])
    site.append(
        "tickers", f'<s:replace {SPACE} target="a" at="{float(last["at"]) + 10}"><quote>777</quote></s:replace>\n'
    )
    at_moment(page, last["number"] + 1)
    expect(screen(page)).to_contain_text("777")
    page.get_by_role("slider", name="Moment").focus()
    page.keyboard.press("ArrowLeft")
    site.append(
        "tickers", f'<s:replace {SPACE} target="a" at="{float(last["at"]) + 20}"><quote>778</quote></s:replace>\n'
    )
    expect(page.get_by_role("slider", name="Moment")).to_have_attribute("max", str(last["number"] + 2))
    at_moment(page, last["number"])


def test_what_is_no_display_says_so(tab: Tab) -> None:
    """A subscription whose answer only grows has no moments: the page tells the refusal of the service."""
    tab.allow("status of 4")
    page = tab.go("#/past/vela")
    expect(page.get_by_role("alert")).to_contain_text("vela")
    expect(page.get_by_role("slider")).to_have_count(0)


def test_a_display_of_json_is_read_as_json(browser: Browser, tmp_path: Path) -> None:
    """Members stand on lines of their own, what changed of one is marked, and its versions are followed by another."""
    (tmp_path / "updates").mkdir()
    (tmp_path / "updates" / "1").write_text("".join(f"{line}\n" for line in STOCK))
    with local_service.served(tmp_path, JSON_SITE) as service:
        site = PageSite(tmp_path, service.url)
        site.until(lambda: moments(site, "offers")[-1]["at"] == "9", "it has had its moments")
        context = browser.new_context()
        context.set_default_timeout(TIMEOUT)
        tab = Tab(context.new_page(), site)
        page = tab.go("#/past/offers?moment=3")
        at_moment(page, 3)
        line = screen(page).locator(".line-change")
        expect(line.locator("del")).to_have_text("12.0")
        expect(line.locator("ins")).to_have_text('"none"')
        line.click()
        panel = page.get_by_role("region", name="Versions of a value")
        expect(panel.get_by_label("Follow it by")).to_contain_text('of = "rice 🏭"')
        expect(panel.locator(".version > :last-child")).to_have_text(['"none"', "12.0", "not there"])
        context.close()
        tab.blameless()


def test_a_display_of_thousands_of_lines_keeps_the_page_small(tab: Tab, site: PageSite) -> None:
    """Of ten thousand lines only those in sight are in the page, at its top and at its end."""
    name, amount = "page-large", 2_500
    rows = "".join(f"<ticker><name>row {number}</name><quote>{number}</quote></ticker>" for number in range(amount))
    site.append("tickers", f'<ticker {SPACE} s:at="100000"><name>large</name><s:mutable id="large"/></ticker>\n')
    site.subscribe(name, 'for $q in stream("tickers")//ticker[name = "large"]/rows/ticker return $q')
    site.append("tickers", f'<s:replace {SPACE} target="large" at="100001"><rows>{rows}</rows></s:replace>\n')
    site.until(lambda: moments(site, name)[-1]["at"] == "100001", "it shows all rows")
    page = tab.go(f"#/past/{name}")
    expect(screen(page)).to_contain_text("row 0")
    expect(screen(page).get_by_role("option").first).to_have_attribute("aria-setsize", str(4 * amount))
    assert page.evaluate("document.querySelectorAll('*').length") < 1500
    screen(page).focus()
    page.keyboard.press("End")
    expect(screen(page)).to_contain_text(f"row {amount - 1}")
    assert page.evaluate("document.querySelectorAll('*').length") < 1500


def test_marks_undone_are_the_texts_before_and_after(tab: Tab) -> None:
    """Over random texts and edits in a row, with tags that do not fit and characters of two units: the lines without
    what was removed are the text that was reached, and without what was inserted the text that it began with."""
    page = tab.go("#/network")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    cases = [_edited(Random(number)) for number in range(400)]
    found = page.evaluate(
        """async (cases) => {
            const { markedLines, drawn } = await import("/page/views/parts/past-lines.js");
            return cases.map(([, text, changes]) => {
                const { lines } = markedLines(text, changes);
                const without = (mark) => lines.map((line) => drawn(text, line).filter((part) => part.mark !== mark)
                    .map((part) => part.text).join("")).join("");
                return [without("insert"), without("remove")];
            });
        }""",
        cases,
    )
    for (before, after, changes), (was, now) in zip(cases, found, strict=True):
        assert "".join(was.split()) == "".join(before.split()), changes
        assert "".join(now.split()) == "".join(after.split()), changes
    assert sum(len(changes) > 1 for _, _, changes in cases) > 100


def _edited(random: Random) -> tuple[str, str, list[dict[str, Any]]]:
    """A text, what some edits make of it, and the edits as the service tells them."""
    pieces = (
        "<a>",
        "</a>",
        "<b>12</b>",
        "x",
        "🏭",
        " ",
        "é",
        '{"a": 1}',
        '["b", {"c": []}]',
        ",",
        "<!-- - -->",
        "&lt;",
    )
    before = text = "".join(random.choices(pieces, k=random.randrange(14)))
    changes: list[dict[str, Any]] = []
    for _ in range(random.randrange(7)):
        position = random.randrange(len(text) + 1)
        if random.random() < 0.5 and position < len(text):
            gone = text[position : position + random.randrange(1, len(text) - position + 1)]
            changes.append({"kind": "remove", "position": position, "length": len(gone), "text": gone})
            text = text[:position] + text[position + len(gone) :]
        else:
            come = "".join(random.choices(pieces, k=random.randrange(1, 4)))
            changes.append({"kind": "insert", "position": position, "length": len(come), "text": come})
            text = text[:position] + come + text[position:]
    return before, text, changes
