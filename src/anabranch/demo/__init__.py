"""The demo, in two acts: many photons and one pass over them, then sensors that evolve under queries that run on."""

from __future__ import annotations

from rich.console import Console

from anabranch.demo import photons, sensors


def show(count: int, console: Console | None = None) -> None:
    """Show both acts, the first with so many photons; ends by itself."""
    console = console or Console()
    photons.show(count, console)
    console.line()
    sensors.show(console)
