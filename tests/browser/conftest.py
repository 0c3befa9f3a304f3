"""What the tests in a browser share: one run of a site on Spark, one chromium, and a watched tab for each test.

The browser cannot leave this machine: it resolves no name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from browser.site import NoBrowser, PageSite, chromium, served
from browser.tab import SIZES, TIMEOUT, Tab


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageSite]:
    """One site on Spark for all tests of the run."""
    with served(tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One chromium for all tests of the run; a machine without one fails them, and says how to get it."""
    try:
        path = chromium()
    except NoBrowser as missing:
        pytest.fail(f"the page was NOT tested: {missing}", pytrace=False)
    with sync_playwright() as playwright, launched(playwright, path) as found:
        yield found


@contextmanager
def launched(playwright: Playwright, path: str | None = None) -> Iterator[Browser]:
    """A chromium that resolves no name, until the end."""
    options = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--disable-background-networking"]
    if os.geteuid() == 0:
        options.append("--no-sandbox")  # chromium refuses to have one as root
    found = playwright.chromium.launch(executable_path=path or chromium(), args=options)
    yield found
    found.close()


@pytest.fixture
def tab(browser: Browser, site: PageSite) -> Iterator[Tab]:
    """A fresh tab on the site, with nothing remembered of earlier ones."""
    with opened(browser, site) as found:
        yield found


@contextmanager
def opened(browser: Browser, site: PageSite) -> Iterator[Tab]:
    """A fresh tab on a site, which is blameless at the end."""
    context = browser.new_context(viewport={"width": 1440, "height": SIZES[1440]}, color_scheme="light")
    context.set_default_timeout(TIMEOUT)
    expect.set_options(timeout=TIMEOUT)
    found = Tab(context.new_page(), site)
    yield found
    context.close()
    found.blameless()
