"""The shell of the page: its views, the keyboard, the theme, tokens, and what it does when something is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.site import PageSite
from browser.tab import TIMEOUT, Tab
from service.local_service import served

pytestmark = [pytest.mark.spark, pytest.mark.browser]

VIEWS = ("Now", "Subscriptions", "Sharing", "Evolution", "Past", "Network")


def test_every_view_is_a_click_away(tab: Tab) -> None:
    """The navigation leads to each view: it is marked there, has a heading with the focus and a title of its own."""
    page = tab.go("")
    expect(page.get_by_role("heading", level=1, name="Now")).to_be_visible()
    for name in VIEWS[1:]:
        page.get_by_role("navigation", name="Views").get_by_role("link", name=name).click()
        expect(page.locator(".views [aria-current=page]")).to_have_text(name)
        heading = page.get_by_role("heading", level=1)
        expect(heading).to_be_visible()
        expect(heading).to_be_focused()
        expect(page).to_have_title(re.compile(r"· anabranch$"))
        expect(page.get_by_text("could not be loaded")).to_have_count(0)


def test_the_first_content_is_there_within_a_second(tab: Tab) -> None:
    """Of three times that the page is opened, the fastest shows its first content in less than a second."""
    took = []
    for _ in range(3):
        page = tab.go("#/now")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Infinity"
        took.append(float(page.evaluate(paint)))
        page.goto("about:blank")
    assert min(took) < 1000, took


def test_the_keyboard_alone_is_enough(tab: Tab) -> None:
    """The first Tab offers a way past the navigation; behind it the focus is in the content; links go by Enter."""
    page = tab.go("#/subscriptions")
    expect(page.get_by_role("link", name="vela")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_role("link", name="average").focus()
    page.keyboard.press("End")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="doubled")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="doubled")).to_be_focused()


def test_a_theme_is_chosen_and_kept(tab: Tab) -> None:
    """The page follows the system until a theme is chosen; the choice outlasts a reload, and can be taken back."""
    page = tab.go("#/now")
    shown = page.locator("html")
    page.emulate_media(color_scheme="dark")
    expect(shown).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Theme: as the system").click()
    expect(shown).to_have_attribute("data-theme", "light")
    page.reload()
    expect(shown).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Theme: light").click()
    page.get_by_role("button", name="Theme: dark").click()
    page.emulate_media(color_scheme="light")
    expect(shown).to_have_attribute("data-theme", "light")
    page.emulate_media(color_scheme="dark")
    expect(shown).to_have_attribute("data-theme", "dark")


def test_a_view_that_does_not_load_leaves_the_others_alone(tab: Tab) -> None:
    """Where the file of a view is missing, the page says so in its place, tries again on demand, and the rest works."""
    tab.allow("net::ERR_FAILED")
    tab.page.route("**/views/network.js", lambda route: route.abort())
    page = tab.go("#/network")
    expect(page.get_by_role("alert")).to_contain_text("the view could not be loaded")
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Subscriptions").click()
    expect(page.get_by_role("link", name="vela")).to_be_visible()


def test_an_unknown_route_says_so(tab: Tab) -> None:
    """A route that is no view is told as that, with a way on; a name that is none likewise."""
    tab.allow("status of 404")
    page = tab.go("#/constructor")
    expect(page.get_by_role("heading", level=1, name="Not found")).to_be_visible()
    page.get_by_role("link", name="To what happens now").click()
    expect(page.get_by_role("heading", level=1, name="Now")).to_be_visible()
    tab.go("#/subscriptions/no%20such%2Fname")
    expect(page.get_by_text("There is no subscription of this name")).to_be_visible()


def test_a_token_is_asked_for_and_kept_in_the_tab(browser: Browser, tmp_path: Path) -> None:
    """A service with tokens lets the page in with one: a wrong one is asked for again, a reload keeps the right one,
    and a role that may only look is offered nothing else."""
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
        page = tab.go("#/subscriptions")
        dialog = page.get_by_role("dialog", name="This service asks for a token")
        for wrong in ("fedcba9876543210", "0123456789abcdef"):
            expect(dialog).to_be_visible()
            dialog.get_by_label("Token").fill(wrong)
            dialog.get_by_role("button", name="Use it").click()
        expect(page.get_by_role("link", name="all")).to_be_visible()
        expect(dialog).to_be_hidden()
        page.reload()
        expect(page.get_by_role("link", name="all")).to_be_visible()
        expect(page.get_by_role("link", name="New subscription")).to_have_count(0)
        context.close()
        tab.blameless()
