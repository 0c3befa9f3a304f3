"""Conjunctions of two ranges over JSON, by us and by Event Ruler, the engine behind EventBridge.

The same items, and rules that are equivalent (`workloads/ranges.py`), one match per item: each rule is checked to match
as many items as its subscription has answers, which are as many as there are.

`json_vs_ruler_10000`: ten thousand subscriptions, by the seconds of a whole trigger: finding and reading the file,
matching, answers on the disk and the logs; against matching alone, with the items in memory, by two threads.
Likewise for fewer.

It needs Maven and a JDK, so it is not among those of `make bench`; `make bench-peers` runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from anabranch.bench.harness.epochs import workshop
from anabranch.bench.harness.ruler_process import RulerProcess, compiled, require_tools
from anabranch.bench.harness.timing import Figures, Rounds, Timings, compare
from anabranch.bench.parts.shared_readings import SharedReadings
from anabranch.bench.workloads.ranges import rectangles, selected
from anabranch.bench.workloads.readings import JSON_LINES, readings


@dataclass(frozen=True, slots=True)
class RulerScale:
    """How much is measured: readings of a file, numbers of subscriptions, and rounds."""

    items: int
    numbers: tuple[int, ...]
    rounds: Rounds


_FULL = RulerScale(200_000, (100, 1_000, 10_000), Rounds(3, 3))
_QUICK = RulerScale(20_000, (100, 1_000), Rounds(1, 1))


def measure(quick: bool) -> Figures:
    """Run the bench."""
    require_tools()
    scale = _QUICK if quick else _FULL
    with workshop() as (spark, folder):
        ours = SharedReadings(spark, folder / "ours", scale.items)
        classpath = compiled(folder / "ruler")
        found = {number: _compare(ours, classpath, folder, number, scale.rounds) for number in scale.numbers}
    return {
        "items": scale.items,
        "ratios": {f"json_vs_ruler_{number}": each.ratio for number, each in found.items()},
        "spread": {str(number): each.figures(scale.items) for number, each in found.items()},
        "items_per_second": {
            "json": {str(number): scale.items / median(each.first) for number, each in found.items()},
            "ruler": {str(number): scale.items / median(each.second) for number, each in found.items()},
        },
    }


def _compare(ours: SharedReadings, classpath: str, folder: Path, number: int, rounds: Rounds) -> Timings:
    wanted = rectangles(number)
    expected = selected(wanted, readings(ours.items))
    rules, file = [each.rule() for each in wanted], ours.ranges_file(JSON_LINES)
    with (
        ours.ranges(number, JSON_LINES) as trunk,
        RulerProcess(classpath, file, rules, folder / f"rules-{number}") as ruler,
    ):
        assert ruler.counts() == expected, "Event Ruler must match the same items"
        found = compare(trunk.round, ruler.round, rounds, f"{number:,} conjunctions, and Event Ruler")
        assert ruler.matches == sum(expected) == trunk.answers, "... in each round"
    return found
