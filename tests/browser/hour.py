"""`make page-memory`: the page's memory while its views are open for an hour and items come all the time.

usage: hour.py [MINUTES]

One tab for each view looks at a real run on Spark, to which a few items of every stream are appended every second.
Each minute the heap of every tab is measured after a collection, and the elements of its document are counted.
Curves and lists fill at the beginning, so a view is compared with itself: what it holds at the end with what it held
after half of the time.

Prints a line a minute, and last how many views have passed and failed; the exit status is 1 if any has failed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from threading import Event, Thread
from time import monotonic

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browser.conftest import launched, opened
from browser.site import SPACE, PageSite, served
from browser.tab import Tab

VIEWS = {
    "now": "#/now",
    "list": "#/subscriptions",
    "answers": "#/subscriptions/doubled",
    "sharing": "#/sharing",
    "evolution": "#/evolution/sensors",
    "past": "#/past/movers",
}
GROWTH = 1_000_000
"""Bytes by which a view's heap may differ between its half time and its end: collections do not free all at once."""
MINUTE = 60.0


@contextmanager
def flowing(site: PageSite) -> Iterator[None]:
    """Items come to all streams, every second until the end."""
    ended = Event()

    def flow() -> None:
        second = 0
        while not ended.wait(1):
            second += 1
            site.photons(50)
            site.readings(4)
            site.orders([{"id": second, "note": "plain"}])
            price = 100 + second % 40
            site.append(
                "tickers", f'<s:replace {SPACE} target="a" at="{100 + second}"><quote>{price}</quote></s:replace>\n'
            )

    feeder = Thread(target=flow, daemon=True)
    feeder.start()
    yield
    ended.set()
    feeder.join(10)


def measured(tab: Tab) -> tuple[int, int]:
    """The bytes of a page that are in use, after a collection, and the elements of its document."""
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("HeapProfiler.collectGarbage")
    used = int(session.send("Runtime.getHeapUsage")["usedSize"])
    session.detach()
    return used, tab.page.locator("*").count()


def watch(tabs: dict[str, Tab], minutes: int) -> dict[str, list[int]]:
    """The heap of every tab, minute by minute."""
    heaps: dict[str, list[int]] = {name: [] for name in tabs}
    began = monotonic()
    for minute in range(1, minutes + 1):
        while (left := began + minute * MINUTE - monotonic()) > 0:
            next(iter(tabs.values())).page.wait_for_timeout(min(left, 5) * 1000)  # the pages go on meanwhile
        told = []
        for name, tab in tabs.items():
            used, elements = measured(tab)
            heaps[name].append(used)
            told.append(f"{name} {used / 1e6:.2f} MB, {elements}")
        print(f"minute {minute}: {'; '.join(told)}", flush=True)
    return heaps


def main(minutes: int) -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        site = stack.enter_context(served(folder))
        browser = stack.enter_context(launched(stack.enter_context(sync_playwright())))
        tabs = {name: stack.enter_context(opened(browser, site)) for name in VIEWS}
        for name, tab in tabs.items():
            tab.go(VIEWS[name])
        stack.enter_context(flowing(site))
        heaps = watch(tabs, minutes)
    failed = 0
    for name, found in heaps.items():
        tenth = max(1, len(found) // 10)
        half, end = median(found[len(found) // 2 - tenth : len(found) // 2]), median(found[-tenth:])
        failed += end > half + GROWTH
        print(
            f"{name}: {half / 1e6:.2f} MB at half time, {end / 1e6:.2f} MB at the end, at most {max(found) / 1e6:.2f}"
        )
    print(f"{len(heaps) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 60))
