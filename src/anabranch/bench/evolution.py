"""What evolution costs: ten subscriptions that select photons, one answer per photon, and a window query, q2.

`no_accents_overhead`: the seconds of an epoch without accents, against those of the same trunk with accents switched
off, where a task does nothing for them.

`accent_per_10k_items`: the seconds of an epoch with an accent every 10,000 photons, against one with the same photons
and no accent.
The accents change the unit of energy, which some of the ten and the window query read, to electron volts and back; the
photons behind them are written accordingly, so both must find the same, which is checked.

`silence_s` and `spark_restart_silence_s`: the longest time without output where a stream evolves, with the rows that
are wrong or lost (`bench/parts/silence.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from itertools import count
from math import isclose
from pathlib import Path
from shutil import rmtree

from anabranch.bench.harness.epochs import Trials, of_trunk, workshop
from anabranch.bench.harness.timing import Figures, Rounds, compare
from anabranch.bench.parts import silence
from anabranch.bench.workloads.photons import Q2, Spark, source, write_files
from anabranch.bench.workloads.subscriptions import Sky

_FILES = 3
_ITEMS, _QUICK_ITEMS = 200_000, 20_000
_EVERY = 10_000
_SUBSCRIPTIONS = 10
_UNITS = (". * 1000", ". div 1000")
_FACTOR = 1000
_ACCENT = '<s:accent xmlns:s="urn:anabranch:stream"><s:alter path="en" by="{}"/></s:accent>\n'
_EN = re.compile(r"<en>([^<]*)</en>")
_ENERGY = re.compile(r'<s:alter path="[^"]*" by="(?P<by>[^"]*)"/>|<(?P<path>en|avg_en)>(?P<value>[^<]*)</')


def measure(quick: bool) -> Figures:
    """Run the bench."""
    items, rounds = _QUICK_ITEMS if quick else _ITEMS, Rounds.of(quick)
    with workshop() as (spark, folder):
        plain, accented = folder / "plain", folder / "accented"
        write_files([plain], _FILES, items)
        accents = write_accented(plain, accented, _EVERY)
        queries = queries_of(plain)
        check_same(spark, plain, accented, queries, folder / "check")
        trials = Trials(spark, folder / "runs")

        def seconds(photons: Path, *, follow: bool = True) -> float:
            return trials.ours([source("photons", photons)], queries, accents=follow)

        aware, switched_off = partial(seconds, plain), partial(seconds, plain, follow=False)
        overhead = compare(switched_off, aware, rounds, "no accents")
        often = compare(aware, partial(seconds, accented), rounds, "an accent per 10,000 items")
        return {
            "items": items,
            "accents": accents,
            "ratios": {"no_accents_overhead": overhead.ratio, "accent_per_10k_items": often.ratio},
            "no_accents_overhead": overhead.figures(items),
            "accent_per_10k_items": often.figures(items),
            **silence.figures(spark, folder / "silence", quick=quick),
        }


def queries_of(photons: Path) -> dict[str, str]:
    """The ten subscriptions, each of which selects a tenth of the first file, and the window query."""
    lines = min(photons.iterdir()).read_text(encoding="utf-8").splitlines()
    found = Sky(lines).subscriptions(_SUBSCRIPTIONS, 1 / _SUBSCRIPTIONS)
    return {**{f"q{number}": each.text for number, each in enumerate(found)}, "windows": Q2}


def write_accented(plain: Path, folder: Path, every: int) -> int:
    """Write the same photons with an accent before every `every`th; gives the number of accents."""
    folder.mkdir()
    numbers = count()
    altered = False
    written = 0
    for file in sorted(plain.iterdir()):
        with file.open(encoding="utf-8") as lines, (folder / file.name).open("w", encoding="utf-8") as out:
            for line in lines:
                if next(numbers) % every == 0:
                    out.write(_ACCENT.format(_UNITS[altered]))
                    altered = not altered
                    written += 1
                out.write(_EN.sub(lambda en: f"<en>{Decimal(en[1]) * _FACTOR:f}</en>", line) if altered else line)
    return written


def check_same(spark: Spark, plain: Path, accented: Path, queries: Mapping[str, str], work: Path) -> None:
    """Fail where answers with and without accents differ in more than their units."""
    answers: list[Mapping[str, Iterable[str]]] = []
    for name, photons in (("plain", plain), ("accented", accented)):
        _, outcome = of_trunk(spark, [source("photons", photons)], queries, work / name)
        answers.append({each: "".join(answer) for each, answer in outcome.answers.items()})
    rmtree(work)
    for name in queries:
        first, second = (list(energies("".join(each[name]))) for each in answers)
        assert first, f"'{name}' finds something"
        assert len(first) == len(second), f"'{name}' finds {len(first):,} and {len(second):,}"
        assert all(map(partial(isclose, rel_tol=1e-9), first, second)), f"'{name}' finds other energies"


def energies(answer: str) -> Iterator[float]:
    """The energies of an answer, in the unit of its start."""
    factor = 1.0
    for each in _ENERGY.finditer(answer):
        if each["by"]:
            factor = factor * _FACTOR if each["by"] == _UNITS[0] else factor / _FACTOR
        else:
            yield float(each["value"]) / factor
