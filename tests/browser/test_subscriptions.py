"""The view Subscriptions and the editor: found among very many, watched, paused, written, registered, changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from time import monotonic

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.site import HOSTILE, PageSite, served
from browser.tab import Tab

pytestmark = [pytest.mark.spark, pytest.mark.browser]

MANY = 5_000
VERY_MANY = 100_000
VELA = 'for $p in stream("photons")/photons/photon where $p/coord/cel/ra > 120 return <found>{ $p/en }</found>'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageSite]:
    """A site of its own: thousands of subscriptions more would be in the way of others."""
    with served(tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(scope="module")
def crowd(site: PageSite) -> PageSite:
    """The site with 5,000 more subscriptions."""
    site.subscribe_many("crowd", MANY)
    site.photons(1)
    site.until(lambda: site.subscription(f"crowd-{MANY - 1:06d}")["state"] == "running", "all of them run")
    return site


def rows(page: Page) -> Locator:
    """The rows of the list."""
    return page.get_by_role("table", name="Subscriptions").locator("tbody tr")


def write(tab: Tab, text: str) -> None:
    """Type a query into the editor, in place of what is there, and wait until the editor has read it."""
    page = tab.page
    page.locator(".CodeMirror").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)
    tab.site.until(lambda: written(page) == text, "the editor has read the text")


def written(page: Page) -> str:
    """What stands in the editor."""
    return str(page.evaluate("document.querySelector('.CodeMirror').CodeMirror.getValue()"))


def shown(page: Page) -> list[str]:
    """The positions of the answers that are on the page."""
    return page.locator(".answers-box .answer-position").all_inner_texts()


def followed(tab: Tab, name: str) -> Page:
    """The page of a subscription whose answers are followed."""
    page = tab.go(f"#/subscriptions/{name}")
    expect(page.locator(".answers .badge").filter(has_text="live")).to_be_visible()
    return page


# the list


def test_one_is_found_among_thousands(tab: Tab, crowd: PageSite) -> None:
    """The search finds a name, and a text in a query; how many is told; the list never holds more than a page."""
    page = tab.go("#/subscriptions")
    expect(rows(page)).to_have_count(100)
    search = page.get_by_role("searchbox", name="Search")
    search.fill("crowd-00417")
    expect(rows(page)).to_have_count(10)
    expect(page.get_by_text("10 found")).to_be_visible()
    search.fill(f"> {1000 + 4321} ")
    expect(rows(page)).to_have_count(1)
    expect(rows(page).get_by_role("link")).to_have_text("crowd-004321")
    assert "search=" in page.url
    page.get_by_role("button", name="Show all").click()
    expect(rows(page)).to_have_count(100)


def test_filters_sorting_and_pages(tab: Tab, crowd: PageSite) -> None:
    """The service filters and sorts; pages follow each other without a gap, forth and back."""
    page = tab.go("#/subscriptions")
    page.get_by_label("Origin").select_option("site")
    expect(rows(page)).to_have_count(7)
    page.get_by_label("Stream").select_option("sensors")
    expect(rows(page)).to_have_count(2)
    page.get_by_role("button", name="Show all").click()
    page.get_by_role("button", name="Answers").click()
    expect(page.get_by_role("columnheader", name="Answers")).to_have_attribute("aria-sort", "descending")
    most = crowd.ask("GET", "/subscriptions?sort=answers&order=desc&limit=1")["subscriptions"][0]["name"]
    expect(rows(page).first.get_by_role("link")).to_have_text(most)
    page.get_by_role("button", name="Name").click()
    page.get_by_role("searchbox", name="Search").fill("crowd-")
    expect(rows(page).first.get_by_role("link")).to_have_text("crowd-000000")
    page.get_by_role("button", name="Next").click()
    expect(rows(page).first.get_by_role("link")).to_have_text("crowd-000100")
    expect(page.get_by_role("navigation", name="Pages of subscriptions")).to_contain_text("101 to 200 of 5,000")
    page.get_by_role("button", name="Previous").click()
    expect(rows(page).first.get_by_role("link")).to_have_text("crowd-000000")


def test_typing_quickly_shows_what_was_typed_last(tab: Tab, crowd: PageSite) -> None:
    """A search that is typed letter by letter ends with the rows of the whole text, whichever answer comes last."""
    page = tab.go("#/subscriptions")
    expect(rows(page)).to_have_count(100)
    page.get_by_role("searchbox", name="Search").press_sequentially("crowd-004999")
    expect(rows(page)).to_have_count(1)
    expect(rows(page).get_by_role("link")).to_have_text("crowd-004999")


@pytest.mark.mass
def test_a_hundred_thousand_are_listed_without_lag(tab: Tab, site: PageSite) -> None:
    """Among 100,000 that run, a search and a page further each take less than a second and a half."""
    site.subscribe_many("mass", VERY_MANY)
    site.photons(1)
    last = f"/subscriptions?search=mass-{VERY_MANY - 1:06d}"
    site.until(lambda: site.ask("GET", last)["subscriptions"][0]["state"] == "running", "all of them run", 400)
    first = site.ask("GET", last)["subscriptions"][0]["first_epoch"]
    site.until(lambda: site.ask("GET", "")["epoch"] >= first, "the epoch with which they begin is over", 200)
    page = tab.go("#/subscriptions?search=mass-")
    expect(page.get_by_text("100,000 found")).to_be_visible()
    for text in ("mass-099999", "mass-050000", "mass-000000"):
        began = monotonic()
        page.get_by_role("searchbox", name="Search").fill(text)
        expect(rows(page)).to_have_count(1)
        assert monotonic() - began < 1.5
    page.get_by_role("searchbox", name="Search").fill("mass-")
    expect(rows(page)).to_have_count(100)
    began = monotonic()
    page.get_by_role("button", name="Next").click()
    expect(rows(page).first.get_by_role("link")).to_have_text("mass-000100")
    assert monotonic() - began < 1.5
    tab.portraits("subscriptions-100000")


def test_the_list_in_both_themes_and_two_widths(tab: Tab, site: PageSite) -> None:
    """Nothing is beside the screen, nothing keeps somebody out; pictures are kept."""
    page = tab.go("#/subscriptions?origin=site")
    expect(rows(page)).to_have_count(7)
    tab.portraits("subscriptions")


# one


def test_one_subscription_is_shown_whole(tab: Tab, site: PageSite) -> None:
    """Its query has colours and is the text that was written; plan, sink and what it shares stand beside it."""
    site.until(lambda: site.subscription("vela")["state"] == "running", "vela runs")
    page = tab.go("#/subscriptions/vela")
    query = page.get_by_role("region", name="Query", exact=True).locator("pre")
    expect(query.locator(".cm-keyword").first).to_be_visible()
    assert query.inner_text().strip() == site.subscription("vela")["query"].strip()
    expect(page.get_by_role("region", name="Plan").first).to_contain_text("photon")
    expect(page.get_by_role("region", name="Shared")).to_contain_text("one pass")
    expect(page.get_by_text("out/vela.xml")).to_be_visible()
    expect(page.get_by_text("of SITE.toml, and read-only here")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel it")).to_have_count(0)
    tab.portraits("subscription")


def test_answers_come_as_they_are_found(tab: Tab, site: PageSite) -> None:
    """Answers appear while the page is open, in order, each once, and what is shown is the end of the answer."""
    site.catch_up("photons")
    page = followed(tab, "vela")
    before = len(site.answers("vela"))
    site.photons(50)
    site.until(lambda: len(site.answers("vela")) >= before + 10, "ten photons of Vela are answered")
    newest = site.answers("vela")
    expect(page.locator(".answers-box .answer").last).to_contain_text(newest[-1][0])
    positions = shown(page)
    assert positions == [position for position, _ in newest][-len(positions) :]


def test_a_pause_skips_and_a_resume_loses_nothing(tab: Tab, site: PageSite) -> None:
    """While it is paused nothing moves and what comes is counted as skipped; then all of it follows, in its place."""
    site.catch_up("photons")
    known = len(site.answers("vela"))
    site.photons(50)
    site.catch_up("photons")
    assert len(site.answers("vela")) > known
    page = followed(tab, "vela")
    expect(page.locator(".answers-box .answer").last).to_contain_text(site.answers("vela")[-1][0])
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("0 skipped", exact=True)).to_be_visible()
    kept, before = shown(page), len(site.answers("vela"))
    site.photons(100)
    site.until(lambda: len(site.answers("vela")) >= before + 20, "twenty more are answered")
    expect(page.get_by_text("20 skipped", exact=True)).to_be_visible()
    assert shown(page) == kept
    page.get_by_role("button", name="Resume").click()
    everything = [position for position, _ in site.answers("vela")]
    expect(page.locator(".answers-box .answer").last).to_contain_text(everything[-1])
    now = shown(page)
    assert now == everything[-len(now) :]
    assert now[-len(kept) - 20 : -20] == kept


def test_a_pause_can_be_left_by_a_jump_and_read_page_by_page(tab: Tab, site: PageSite) -> None:
    """What was skipped is read page by page; a jump shows the newest; earlier answers can be read back to."""
    site.photons(500)
    page = followed(tab, "vela")
    page.get_by_role("button", name="Pause").click()
    last, before = shown(page)[-1], len(site.answers("vela"))
    site.photons(1000)
    site.until(lambda: len(site.answers("vela")) >= before + 200, "two hundred more are answered")
    page.get_by_role("button", name="next page of").click()
    everything = [position for position, _ in site.answers("vela")]
    following = everything[everything.index(last) + 1 :]
    expect(page.locator(".answers-box .answer").last).to_contain_text(following[99])
    page.get_by_role("button", name="Jump to the newest").click()
    expect(page.locator(".answers-box .answer").last).to_contain_text(everything[-1])
    first = shown(page)[0]
    page.get_by_role("button", name="earlier answers").click()
    expect(page.locator(".answers-box .answer").first).not_to_contain_text(re.compile(rf"^{first}\b"))
    earlier = shown(page)
    start = everything.index(earlier[0])
    assert earlier == everything[start : start + len(earlier)]


def test_very_many_answers_are_not_all_kept(tab: Tab, site: PageSite) -> None:
    """However many answers come, at most 200 of them are elements of the page."""
    page = followed(tab, "doubled")
    site.photons(5000)
    site.catch_up("photons")
    site.until(lambda: site.answers("doubled")[-1:] != [], "photons are answered")
    site.until(lambda: site.answers("doubled")[-1][0] == (shown(page) or [""])[-1], "the newest answer is shown")
    assert len(shown(page)) <= 200


def test_what_is_in_the_data_does_nothing(tab: Tab, site: PageSite) -> None:
    """Markup in an answer is text, and characters that hide or turn text around are visible."""
    site.until(lambda: len(site.answers("notes")) >= 2, "the orders are answered")
    page = followed(tab, "notes")
    expect(page.locator(".answers-box")).to_contain_text(HOSTILE.split(" \u202e")[0].replace('"', '\\"'))
    expect(page.locator(".answers-box")).to_contain_text("\\u202eback\\x85")
    expect(page.locator("main img")).to_have_count(0)


def test_a_display_is_shown_as_it_stands(tab: Tab, site: PageSite) -> None:
    """A query over a stream that is edited shows what it displays now, with a way to its past."""
    site.until(lambda: "Initech" in site.ask("GET", "/subscriptions/movers/display")["text"], "it is displayed")
    page = tab.go("#/subscriptions/movers")
    display = page.get_by_role("region", name="On display")
    expect(display).to_contain_text("<mover><name>Initech</name><quote>80</quote></mover>")
    expect(display.get_by_role("link", name="its past")).to_have_attribute("href", "#/past/movers")


def test_what_was_set_aside_for_one(tab: Tab, site: PageSite) -> None:
    """Dead letters of one subscription are found among all, with reason, code and raw text."""
    site.until(lambda: site.ask("GET", "/now")["totals"]["dead_letters"] > 1, "something is set aside")
    page = tab.go("#/subscriptions/doubled")
    page.get_by_role("button", name="look for dead letters").click()
    letter = page.locator(".letter").first
    expect(letter).to_contain_text("FORG0001")
    expect(letter.locator(".raw")).to_contain_text("<en>faint</en>")


# the editor


def test_a_query_is_registered_through_the_editor(tab: Tab, site: PageSite) -> None:
    """A query that was typed and checked is registered under a name, and its answers come; then it is cancelled."""
    page = tab.go("#/new")
    write(tab, VELA)
    expect(page.get_by_text("it can be answered")).to_be_visible()
    page.get_by_label("Name").fill("typed")
    tab.portraits("editor")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", level=1, name="typed")).to_be_visible()
    site.photons(50)
    expect(page.locator(".answers-box .answer").first).to_contain_text("<found>")
    assert site.subscription("typed")["query"] == VELA
    page.get_by_role("button", name="Cancel it").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the subscription").click()
    expect(page.get_by_role("heading", level=1, name="Subscriptions")).to_be_visible()
    expect(page.get_by_role("link", name="typed", exact=True)).to_have_count(0)
    assert "typed" not in {one["name"] for one in site.ask("GET", "/subscriptions?search=typed")["subscriptions"]}


def test_an_error_is_underlined_at_its_place(tab: Tab, site: PageSite) -> None:
    """A misspelt word is underlined and told with line and column, which leads there; nothing wrong is registered."""
    page = tab.go("#/new")
    write(tab, 'for $p in stream("photons")/photons/photon\nwhere $p/en > 1\nretrun $p')
    place = page.get_by_role("button", name="line 3, column 1")
    expect(place).to_be_visible()
    expect(page.locator(".editor-error")).to_have_text("retrun")
    page.get_by_label("Name").fill("wrong")
    expect(page.get_by_role("button", name="Register")).to_be_disabled()
    tab.accessible()
    place.click()
    expect(page.locator(".CodeMirror-focused")).to_be_visible()
    for _ in range(6):
        page.keyboard.press("Delete")
    page.keyboard.type("return")
    expect(page.get_by_text("it can be answered")).to_be_visible()
    expect(page.locator(".editor-error")).to_have_count(0)


def test_a_name_that_is_taken_is_refused_in_place(tab: Tab, site: PageSite) -> None:
    """What the service refuses is told beside the button, and the text stays as it was."""
    tab.allow("status of 409")
    page = tab.go("#/new")
    write(tab, VELA)
    page.get_by_label("Name").fill("vela")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("alert")).to_contain_text("It was not registered")
    assert written(page) == VELA


def test_streams_and_paths_are_completed(tab: Tab, site: PageSite) -> None:
    """Names of streams and steps of paths are offered from what the newest items hold, and taken by Enter."""
    page = tab.go("#/new")
    write(tab, "")
    page.keyboard.type('for $p in stream("ph')
    page.keyboard.press("Control+Space")
    expect(page.locator(".CodeMirror-hint")).to_have_text([re.compile("^photons")])
    page.keyboard.press("Enter")
    page.keyboard.type('")/photons/photon where $p/coord/cel/')
    expect(page.locator(".CodeMirror-hint")).to_have_text([re.compile("^ra"), re.compile("^dec")])
    page.keyboard.type("d")
    expect(page.locator(".CodeMirror-hint")).to_have_text([re.compile("^dec")])
    page.keyboard.press("Enter")
    assert written(page).endswith("$p/coord/cel/dec")


def test_a_query_is_tried_and_explained_before(tab: Tab, site: PageSite) -> None:
    """Its answers over the newest items and what it would share are shown, and nothing is registered for it."""
    total = site.ask("GET", "/subscriptions?limit=1")["total"]
    page = tab.go("#/new")
    write(tab, VELA)
    page.get_by_role("button", name="Try it on the newest items").click()
    preview = page.get_by_role("region", name="Preview")
    expect(preview.locator(".answer").first).to_contain_text("<found><en>")
    expect(preview).to_contain_text(re.compile(r"items? of photons"))
    page.get_by_role("button", name="Explain").click()
    cost = page.get_by_role("region", name="What it would cost")
    expect(cost).to_contain_text("none: the stream is read already")
    expect(cost).to_contain_text("one pass")
    tab.portraits("editor-tried")
    assert site.ask("GET", "/subscriptions?limit=1")["total"] == total


def test_one_query_in_three_spellings(tab: Tab, site: PageSite) -> None:
    """The switch writes the query with dots and in SQL and back; where SQL has no words for it, the page says so."""
    tab.allow("status of 422")
    page = tab.go("#/new")
    write(tab, 'for $o in stream("orders") where $o.id > 1 return { "id": $o.id }')
    spelling = page.get_by_role("group", name="Spelling")
    expect(page.get_by_text("it can be answered")).to_be_visible()
    spelling.get_by_role("button", name="SQL").click()
    expect(spelling.get_by_role("button", name="SQL")).to_have_attribute("aria-pressed", "true")
    sql = re.compile(r"select\s+id\s+from\s+orders\s+where\s+id\s*>\s*1\s*$", re.IGNORECASE)
    site.until(lambda: sql.match(written(page)) is not None, "it is SQL")
    expect(page.get_by_text("it can be answered")).to_be_visible()
    spelling.get_by_role("button", name="XQuery").click()
    expect(spelling.get_by_role("button", name="XQuery")).to_have_attribute("aria-pressed", "true")
    site.until(lambda: "stream(" in written(page), "it is XQuery")
    write(tab, 'for $w in stream("photons")/photons/photon|det_time diff 60| return <w>{ $w/en, <x/> }</w>')
    spelling.get_by_role("button", name="SQL").click()
    expect(page.get_by_role("alert")).to_contain_text("It cannot be written in SQL")
    expect(spelling.get_by_role("button", name="XQuery")).to_have_attribute("aria-pressed", "true")


def test_a_subscription_gets_another_query(tab: Tab, site: PageSite) -> None:
    """Change opens the editor with the query that is there; another one takes its place under the same name."""
    site.subscribe("turning", VELA)
    page = tab.go("#/subscriptions/turning")
    page.get_by_role("link", name="Change").click()
    expect(page.get_by_role("heading", level=1, name="Change turning")).to_be_visible()
    expect(page.locator(".CodeMirror")).to_be_visible()
    assert written(page) == VELA
    write(tab, VELA.replace("found", "other"))
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_role("heading", level=1, name="turning", exact=True)).to_be_visible()
    site.photons(50)
    expect(page.locator(".answers-box .answer").last).to_contain_text("<other>")
