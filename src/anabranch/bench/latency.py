"""How long it takes from an event to its answer, beside ten thousand subscriptions: `anabranch bench latency`.

A trunk at work has the subscriptions of `bench sharing`, which give one answer per photon; a small file of photons
comes, and the clock runs from when it is there until its answers are committed and its listener has been told.
The trunk looks for files again at once, so the time is that of the way and not of a pause before it.
In turns with that, blank files come, whose epochs bring nothing: what they take is what an epoch costs anyway.

`p50_over_empty` and `p99_over_empty`: the median and the 99th percentile of small epochs over the median of the empty
ones among them, as ratios of time; the goals are at most 2 and at most 4.
`small_ms` and `empty_ms` have both percentiles, and the phases of the median: `found` until the epoch begins, which is
Spark's own part, `plan`, `job`, `publish` and `deliver`, each the median by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median, quantiles

from anabranch.bench.harness.epochs import workshop
from anabranch.bench.harness.live import FileLatency, LiveTrunk
from anabranch.bench.harness.timing import Figures
from anabranch.bench.workloads.photons import Spark, write_files
from anabranch.bench.workloads.subscriptions import Sky

GOALS = {"p50_over_empty": 2.0, "p99_over_empty": 4.0}
"""The most that a ratio may be."""
_TRIGGER_MS = 10
_SHOWN_EVERY = 25


@dataclass(frozen=True, slots=True)
class LatencyScale:
    """How much is measured: subscriptions, photons of a small epoch, and epochs of each kind after a warm-up."""

    subscriptions: int
    items: int
    warm_up: int
    epochs: int


_FULL = LatencyScale(10_000, 1_000, 60, 200)
_QUICK = LatencyScale(400, 200, 5, 12)


def measure(quick: bool) -> Figures:
    """Run the bench."""
    scale = _QUICK if quick else _FULL
    with workshop() as (spark, folder):
        small, empty = arrivals(spark, folder, scale)
    return {"subscriptions": scale.subscriptions, "items": scale.items, **latency_figures(small, empty)}


def arrivals(spark: Spark, folder: Path, scale: LatencyScale) -> tuple[list[FileLatency], list[FileLatency]]:
    """What small epochs and empty ones took, in turns on one trunk."""
    write_files([folder / "photons"], 1, 5 * scale.subscriptions)  # of which each selects some
    (many,) = (folder / "photons").iterdir()
    lines = many.read_text(encoding="utf-8").splitlines()
    found = Sky(lines).subscriptions(scale.subscriptions, 1 / scale.subscriptions)
    queries = {f"q{number}": each.text for number, each in enumerate(found)}
    few, blank = folder / "few", folder / "blank"
    few.write_text("".join(f"{each}\n" for each in lines[: scale.items]), encoding="utf-8")
    blank.write_text("\n", encoding="utf-8")
    small: list[FileLatency] = []
    empty: list[FileLatency] = []
    with LiveTrunk(spark, folder / "live", queries, few, trigger_ms=_TRIGGER_MS) as trunk:
        for number in range(scale.warm_up + scale.epochs):
            for file, noted in ((few, small), (blank, empty)) if number % 2 else ((blank, empty), (few, small)):
                noted.append(trunk.arrive(file))
                assert (trunk.answers > 0) == (file is few), "small epochs have answers, and empty ones have none"
            if (number + 1) % _SHOWN_EVERY == 0:
                print(f"latency: {number + 1} of {scale.warm_up + scale.epochs} epochs", file=sys.stderr)
    return small[scale.warm_up :], empty[scale.warm_up :]


def latency_figures(small: Sequence[FileLatency], empty: Sequence[FileLatency]) -> Figures:
    """Both ratios, and the percentiles and phases of both kinds."""
    totals = [each.total for each in small]
    nothing = median(each.total for each in empty)
    return {
        "ratios": {"p50_over_empty": median(totals) / nothing, "p99_over_empty": _p99(totals) / nothing},
        "goals": GOALS,
        "small_ms": _percentiles(small),
        "empty_ms": _percentiles(empty),
    }


def _percentiles(of: Sequence[FileLatency]) -> Figures:
    totals = [each.total for each in of]
    phases = {
        each.name: median(getattr(arrival, each.name) for arrival in of)
        for each in fields(FileLatency)
        if each.name != "total"
    }
    return {"p50": median(totals), "p99": _p99(totals), "phases": phases}


def _p99(values: Sequence[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[-1]
