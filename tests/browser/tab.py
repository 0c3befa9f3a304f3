"""A tab of the browser that is watched, and looked at in both themes and two widths.

A request to anywhere but the service, an error in the console or an exception that nobody catches fails the test,
unless it has said beforehand which refusals it provokes.
Pictures are kept in `build/screenshots`, for people to look at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import ConsoleMessage, Error, Page, Request, expect

from browser.site import PageSite

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
SIZES = {1440: 900, 390: 844}
THEMES = ("light", "dark")
TIMEOUT = 30_000.0
"""Milliseconds for what a page shows: the machine also runs Spark."""


@dataclass
class Tab:
    """A page of the browser that is watched; `go` opens a view."""

    page: Page
    site: PageSite
    allowed: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._told)
        self.page.on("pageerror", self._thrown)
        self.page.on("request", self._asked)

    def _told(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.faults.append(f"console: {message.text}")

    def _thrown(self, error: Error) -> None:
        self.faults.append(f"exception: {error}")

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.hostname != "127.0.0.1":
            self.faults.append(f"left this machine: {request.url}")

    def allow(self, text: str) -> None:
        """Expect errors in the console with this text, as browsers write them for a refusal: 'status of 422'."""
        self.allowed.append(text)

    def go(self, route: str) -> Page:
        """Open a view by its route, as in `#/now`."""
        self.page.goto(f"{self.site.address}/{route}")
        return self.page

    def blameless(self) -> None:
        """Nothing has happened that must not."""
        left = [fault for fault in self.faults if not any(text in fault for text in self.allowed)]
        assert not left, "\n".join(left)

    def accessible(self) -> None:
        """Nothing on the page is a serious or critical obstacle to somebody."""
        found = Axe().run(self.page).response["violations"]
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        told = [f"{one['id']}: {one['help']}\n  {node['html'][:300]}" for one in serious for node in one["nodes"][:3]]
        assert not told, "\n".join(told)

    def portraits(self, name: str) -> None:
        """Look at the page in both themes and two widths: accessible, nothing beside the screen, a picture of each."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        for width, height in SIZES.items():
            self.page.set_viewport_size({"width": width, "height": height})
            for theme in THEMES:
                self.page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
                expect(self.page.locator(f'html[data-theme="{theme}"]')).to_be_attached()
                beyond = self.page.evaluate(
                    "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                )
                assert beyond <= 0, f"{name} is {beyond} pixels wider than a screen of {width}"
                self.page.screenshot(path=SCREENSHOTS / f"{name}-{theme}-{width}.png", full_page=True)
                self.accessible()
        self.page.set_viewport_size({"width": 1440, "height": SIZES[1440]})
        self.page.emulate_media(color_scheme="light")
