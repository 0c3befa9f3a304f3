"""What joins cost: q5 of the sharing paper, photons of two instruments of which one is half a keV above the other.

`q5_vs_spark`: q5 on a trunk, its answers committed, against a join of two streams of plain Spark on the same
condition, its rows appended to Parquet; the time is that of a whole trigger, without the start of the query.

How near the two are: q5 is a step join, whose pairs depend on how windows of 10 seconds every 5 and of 20 seconds
every 10 move past each other; Spark can only say how far apart two times may be.
`y` from 20 seconds before `x` to 10 seconds after it comes nearest: seven in eight of the pairs are the same, and their
numbers, which are given as `pairs` and `pairs_other`, differ by less than one in a hundred.
Spark joins streams on an equation only, so the time is cut into buckets of the interval's length and each `x` is
looked for in the buckets it reaches: without that, each photon would meet all others of its epoch.

What is compared: the same photons, so `q5_vs_spark` is a ratio of seconds for an item.
`q5_vs_spark_per_pair` is a ratio of seconds for a pair that is given, which is fairer where their numbers differ.
"""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

from anabranch.bench.harness.epochs import Trials, of_spark, of_trunk, workshop
from anabranch.bench.harness.timing import Figures, Rounds, compare
from anabranch.bench.workloads.photons import Q5, Rows, Spark, photons_streamed, source, write_files
from anabranch.stream.reading.source import Source

_SPARK_Q5 = """
    select x.en as x_en, x.phc as x_phc, y.en as y_en, y.phc as y_phc
    from x join y on x.bucket = y.bucket and x.en >= y.en + 0.5
    and y.time >= x.time - interval 20 seconds and y.time <= x.time + interval 10 seconds"""
_BUCKETS = {
    "photon1": "explode(array_distinct(array(floor((det_time - 20) / 30), floor((det_time + 10) / 30))))",
    "photon2": "floor(det_time / 30)",
}
_FILES = 3
_ITEMS, _QUICK_ITEMS = 50_000, 4_000
"""Of each stream, to an epoch."""


def measure(quick: bool) -> Figures:
    """Run the bench."""
    items = _QUICK_ITEMS if quick else _ITEMS
    with workshop() as (spark, folder):
        write_files([folder / name for name in _BUCKETS], _FILES, items)
        ours, theirs = count_pairs(spark, folder, folder / "check")
        trials = Trials(spark, folder / "runs")
        found = compare(
            lambda: trials.ours(_sources(folder), {"q5": Q5}),
            lambda: trials.theirs(spark_q5(spark, folder), _FILES),
            Rounds.of(quick),
            "q5",
        )
    return {
        "items": 2 * items,
        "pairs": ours,
        "pairs_other": theirs,
        "ratios": {"q5_vs_spark": found.ratio, "q5_vs_spark_per_pair": found.ratio * ours / theirs},
        "q5_vs_spark": found.figures(2 * items),
    }


def count_pairs(spark: Spark, folder: Path, work: Path) -> tuple[int, int]:
    """How many pairs a trunk gives and how many Spark does; an error where they are not nearly as many."""
    _, outcome = of_trunk(spark, _sources(folder), {"q5": Q5}, work / "ours")
    of_spark(spark_q5(spark, folder), work / "theirs", _FILES)
    ours = outcome.progress.answers["q5"]
    theirs: int = spark.read.parquet(str(work / "theirs" / "out")).count()
    rmtree(work)
    assert abs(ours / theirs - 1) < 0.1, f"{ours:,} pairs here, {theirs:,} there"
    return ours, theirs


def spark_q5(spark: Spark, folder: Path) -> Rows:
    """What comes nearest to q5 in plain Spark."""
    for name, (stream, bucket) in zip("xy", _BUCKETS.items(), strict=True):
        rows = photons_streamed(spark, folder / stream)
        rows = rows.selectExpr("en", "phc", "timestamp_seconds(det_time) as time", f"{bucket} as bucket")
        rows.withWatermark("time", "0 seconds").createOrReplaceTempView(name)
    return spark.sql(_SPARK_Q5)


def _sources(folder: Path) -> list[Source]:
    return [source(name, folder / name) for name in _BUCKETS]
