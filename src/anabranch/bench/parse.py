"""Parsing (and, as a second figure, parsing and checking) a thousand typical queries."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import partial
from importlib.resources import files
from statistics import median

from anabranch.bench.harness.timing import Figures, Work, timed
from anabranch.language import check, parse

_NUMBER = re.compile(r"(?<= )\d+(\.\d+)?")
_WARM_UP, _ROUNDS, _QUICK_ROUNDS = 2, 10, 3


def measure(quick: bool) -> Figures:
    """Run the bench."""
    rounds = _QUICK_ROUNDS if quick else _ROUNDS
    texts = _typical_queries(1_000)
    parsing = _rounds(lambda: [parse(text) for text in texts], rounds)
    checking = _rounds(lambda: [check(parse(text), text) for text in texts], rounds)
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


def _rounds(work: Work, rounds: int) -> list[float]:
    return [timed(work) for _ in range(_WARM_UP + rounds)][_WARM_UP:]
