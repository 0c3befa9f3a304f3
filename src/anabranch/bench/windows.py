"""What windows cost: the average energy over Vela in windows of 20 seconds every 10, q2 of the sharing paper.

`q2_vs_spark`: q2 on a trunk, its answers committed, against what a user of plain Spark would write: `from_xml` over
text lines, a filter, a watermark on the time of detection, `window` and `groupBy`, appended to Parquet.
The time is that of a whole trigger, without the start of the query.
Both are checked to give the same averages for the windows that both have closed, which are all but the last few: Spark
closes a window only with the next epoch and the last ones never.
Spark adds doubles up where our averages are exact, so they are compared to nine digits.

`w80_vs_w1`: 80 different window aggregates on one trunk (`bench/workloads/photons.py`) against the first of
them alone; the rate is in items, so 1 means that the other 79 cost nothing.

`small_epoch_ms`: the median of whole triggers that bring a thousand photons to q2, one behind the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from itertools import count
from math import isclose
from pathlib import Path
from shutil import rmtree
from statistics import mean, median, quantiles

from anabranch.bench.harness.epochs import Trials, of_spark, of_trunk, workshop
from anabranch.bench.harness.timing import Figures, Rounds, Timings, compare
from anabranch.bench.workloads.photons import Q2, Rows, Spark, photons_streamed, source, window_queries, write_files

_SPARK_Q2 = """
    select window.start as start, avg(en) as avg_en from photons
    where coord.cel.ra >= 120.0 and coord.cel.ra <= 138.0 and coord.cel.dec >= -49.0 and coord.cel.dec <= -40.0
    group by window(time, '20 seconds', '10 seconds')"""
_AVERAGE = re.compile(r"<avg_en>([^<]*)</avg_en>")
_FILES = 3
_ITEMS, _QUICK_ITEMS = 200_000, 20_000
_MANY = 80
_SMALL_ITEMS = 1_000
_SMALL_FILES, _QUICK_SMALL_FILES = 80, 20
"""The first quarter is warm-up."""


def measure(quick: bool) -> Figures:
    """Run the bench."""
    items, rounds = _QUICK_ITEMS if quick else _ITEMS, Rounds.of(quick)
    with workshop() as (spark, folder):
        photons = folder / "photons"
        write_files([photons], _FILES, items)
        windows = check_same(spark, photons, folder / "check")
        trials, stream = Trials(spark, folder / "runs"), [source("photons", photons)]
        q2 = compare(
            lambda: trials.ours(stream, {"q2": Q2}),
            lambda: trials.theirs(spark_q2(spark, photons), _FILES),
            rounds,
            "q2",
        )
        many, answered = compare_many(spark, photons, folder / "many", rounds)
        small = small_epochs(spark, folder / "small", _QUICK_SMALL_FILES if quick else _SMALL_FILES, _SMALL_ITEMS)
    return {
        "items": items,
        "windows": windows,
        "ratios": {"q2_vs_spark": q2.ratio, "w80_vs_w1": many.ratio},
        "q2_vs_spark": q2.figures(items),
        "w80_vs_w1": {**many.figures(items), "items_per_window": _FILES * items * _MANY / answered},
        "small_epoch_ms": median(small),
        "small_epoch_ms_ninth_tenth": quantiles(small, n=10)[-1],
    }


def compare_many(spark: Spark, photons: Path, work: Path, rounds: Rounds) -> tuple[Timings, int]:
    """The seconds of an epoch of many windows and of one of them, and how many windows the many have answered."""
    fresh = (work / str(number) for number in count())
    queries = window_queries(_MANY)
    name = next(iter(queries))
    answers: dict[int, dict[str, str]] = {}

    def run(wanted: Mapping[str, str]) -> float:
        folder = next(fresh)
        seconds, outcome = of_trunk(spark, [source("photons", photons)], wanted, folder)
        if len(wanted) not in answers:
            answers[len(wanted)] = {each: "".join(answer) for each, answer in outcome.answers.items()}
        rmtree(folder)
        return mean(seconds)

    alone = {name: queries[name]}
    found = compare(partial(run, queries), partial(run, alone), rounds, f"{_MANY} windows")
    assert answers[1][name] == answers[_MANY][name], "what others ask must not show"
    return found, sum(each.count("</") - 1 for each in answers[_MANY].values())


def check_same(spark: Spark, photons: Path, work: Path) -> int:
    """How many windows Spark closes; an error where their averages differ from ours."""
    _, outcome = of_trunk(spark, [source("photons", photons)], {"q2": Q2}, work / "ours")
    of_spark(spark_q2(spark, photons), work / "theirs", _FILES)
    ours = [float(each) for each in _AVERAGE.findall("".join(outcome.answers["q2"]))]
    rows = spark.read.parquet(str(work / "theirs" / "out"))
    rows = rows.where("start >= timestamp_seconds(0)")  # Spark has a window that begins before the stream
    theirs = [row["avg_en"] for row in rows.orderBy("start").collect()]
    rmtree(work)
    assert len(ours) - 3 <= len(theirs) <= len(ours), f"{len(ours)} windows here, {len(theirs)} there"
    assert all(map(partial(isclose, rel_tol=1e-9), ours, theirs)), "both must find the same averages"
    return len(theirs)


def small_epochs(spark: Spark, work: Path, epoch_count: int, items: int) -> list[float]:
    """Milliseconds of triggers that bring a few photons each, when the query is warm."""
    write_files([work / "photons"], epoch_count, items)
    seconds, _ = of_trunk(spark, [source("photons", work / "photons")], {"q2": Q2}, work / "run")
    return [1_000 * each for each in seconds[epoch_count // 4 :]]


def spark_q2(spark: Spark, photons: Path) -> Rows:
    """The same in plain Spark."""
    rows = photons_streamed(spark, photons).selectExpr("*", "timestamp_seconds(det_time) as time")
    rows.withWatermark("time", "0 seconds").createOrReplaceTempView("photons")
    return spark.sql(_SPARK_Q2)
