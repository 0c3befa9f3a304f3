"""Measurements: `anabranch bench NAME`.

Each bench repeats its work after a warm-up and reports medians with their spread, as a table and as JSON.
A figure that compares two things is a ratio of times taken close together in one process: absolute figures move with
the machine, ratios hardly do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

from anabranch.bench.harness.timing import Figures
from anabranch.errors import UsageError


def run(
    name: str,
    *,
    quick: bool = False,
    json_file: Path | None = None,
    svg_file: Path | None = None,
    markdown_file: Path | None = None,
    only: Sequence[str] = (),
) -> None:
    """Run one bench, or the parts of it in `only`, show its figures, and write or draw them, if asked to."""
    if only and name not in IN_PARTS:
        raise UsageError(f"the bench '{name}' has no parts", hint=f"these have: {', '.join(IN_PARTS)}")
    if svg_file is not None and name not in DRAWN:
        raise UsageError(f"the bench '{name}' draws nothing", hint=f"of these there are pictures: {', '.join(DRAWN)}")
    if markdown_file is not None and name not in TABLED:
        raise UsageError(f"the bench '{name}' has no tables", hint=f"of these there are tables: {', '.join(TABLED)}")
    figures = BENCHES[name](quick, only)
    table = Table("figure", "value", title=f"bench {name}")
    for key, value in _flat(figures):
        table.add_row(key, value if isinstance(value, str) else f"{value:.4g}")
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if svg_file is not None:
        svg_file.write_text(import_module(f"{__name__}.{name}").draw(figures), encoding="utf-8")
    if markdown_file is not None:
        markdown_file.write_text(import_module(f"{__name__}.{name}").markdown(figures), encoding="utf-8")


Bench: TypeAlias = Callable[[bool, Sequence[str]], Figures]
"""A bench as a function of whether to be quick, and of the parts to run, if not all."""


def _of(module: str) -> Bench:
    """A bench whose module is loaded when it runs: Spark is not loaded for those that do not need it."""

    def measure(quick: bool, only: Sequence[str]) -> Figures:
        asked = (quick, only) if module in IN_PARTS else (quick,)
        found: Figures = import_module(f"{__name__}.{module}").measure(*asked)
        return found

    return measure


BENCHES: Mapping[str, Bench] = {
    name: _of(name)
    for name in (
        *("start", "parse", "ingest", "forms", "windows", "joins", "sharing", "latency", "peers"),
        *("evolution", "history", "network", "memory"),
    )
}
"""All benches by name."""

IN_PARTS = ("ingest", "forms", "windows", "joins", "sharing", "history", "network", "peers")
"""The benches whose parts can be run alone."""

DRAWN = ("network",)
"""The benches whose figures can be drawn."""

TABLED = ("peers",)
"""The benches whose figures can be written as tables of Markdown."""


def _flat(figures: Figures, prefix: str = "") -> Iterator[tuple[str, float | str]]:
    for key, value in figures.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
