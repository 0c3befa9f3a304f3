"""The demo: many photons and one pass over them, sensors that evolve, a ticker that is corrected, and topics."""

from __future__ import annotations

from rich.console import Console

from anabranch.demo import photons, sensors, ticker, topics


def show(count: int, console: Console | None = None) -> None:
    """Show all acts, the first with so many photons; ends by itself."""
    console = console or Console()
    photons.show(count, console)
    console.line()
    sensors.show(console)
    console.line()
    ticker.show(console)
    if topics.is_possible():
        console.line()
        topics.show(console)
