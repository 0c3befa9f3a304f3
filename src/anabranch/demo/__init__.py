"""The demo: photons and one pass over them, sensors that evolve, a corrected ticker, a river, topics, and the page."""

from __future__ import annotations

from rich.console import Console

from anabranch.demo import page, photons, river, sensors, ticker, topics


def show(count: int, console: Console | None = None, *, port: int | None = None, seconds: float | None = None) -> None:
    """Show all acts, the first with so many photons.

    With a `port`, the page is the last of them, and stays for so many seconds, or as long as somebody looks.
    """
    console = console or Console()
    photons.show(count, console)
    console.line()
    sensors.show(console)
    console.line()
    ticker.show(console)
    console.line()
    river.show(console)
    if topics.is_possible():
        console.line()
        topics.show(console)
    if port is not None:
        console.line()
        page.show(console, port, seconds)
