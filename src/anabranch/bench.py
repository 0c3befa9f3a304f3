"""Measurements: `anabranch bench NAME`.

Each bench repeats its work after a warm-up and reports the median with its spread, as figures and as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from importlib.resources import files
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

from anabranch.language import check, parse

Figures: TypeAlias = Mapping[str, float]

_NUMBER = re.compile(r"(?<= )\d+(\.\d+)?")
_WARM_UP, _ROUNDS, _QUICK_ROUNDS = 2, 10, 3


def run(name: str, *, quick: bool = False, json_file: Path | None = None) -> None:
    """Run one bench, show its figures, and write them to a file if asked to."""
    figures = BENCHES[name](_QUICK_ROUNDS if quick else _ROUNDS)
    table = Table("figure", "value", title=f"bench {name}")
    for key, value in figures.items():
        table.add_row(key, f"{value:.4g}")
    Console().print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def _parse(rounds: int) -> Figures:
    """Parsing (and, as a second figure, parsing and checking) a thousand typical queries."""
    texts = _typical_queries(1_000)
    parsing = _timed(lambda: [parse(text) for text in texts], rounds)
    checking = _timed(lambda: [check(parse(text), text) for text in texts], rounds)
    return {
        "queries": len(texts),
        "characters": sum(map(len, texts)),
        "parse_1000_s": median(parsing),
        "parse_1000_s_worst": max(parsing),
        "parse_and_check_1000_s": median(checking),
    }


def _typical_queries(count: int) -> list[str]:
    """Variations of the shipped examples: other sky, other energies, other windows."""
    folder = files("anabranch").joinpath("examples")
    originals = sorted((each.name, each.read_text("utf-8")) for each in folder.iterdir() if each.name.endswith(".xq"))
    return [_NUMBER.sub(partial(_moved, number % 97), originals[number % len(originals)][1]) for number in range(count)]


def _moved(by: int, number: re.Match[str]) -> str:
    return str(Decimal(number.group()) + by)


def _timed(work: Callable[[], object], rounds: int) -> list[float]:
    seconds: list[float] = []
    for number in range(_WARM_UP + rounds):
        begin = perf_counter()
        work()
        if number >= _WARM_UP:
            seconds.append(perf_counter() - begin)
    return seconds


BENCHES: Mapping[str, Callable[[int], Figures]] = {"parse": _parse}
