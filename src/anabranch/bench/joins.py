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

`self_vs_q5`: the windows and the condition of q5 where both loops read the first stream, against q5, as a ratio of
photons a second; it has about as many pairs in half as many photons, so `self_vs_q5_per_pair` says more.
`three_vs_q5`: a join of three streams, of which each photon meets those of two others within a few seconds, against q5,
as a ratio of photons a second; and `three_vs_q5_per_pair` of answers a second.
Both are compared with the law over a few photons before they are timed.

`interval_vs_spark`: a join without windows, of photons within a minute of each other and with the same key, on a trunk
that goes on, against plain Spark's join of the same (`parts/near_joins.py`); `hundred_intervals_vs_one`: a hundred such
joins, which want other energies, against one.

`table_vs_spark`: orders that look their product up in a document of 100,000 rows (`workloads/orders.py`), against the
join of a stream with a static table of plain Spark, its rows appended to Parquet: the orders as XML, and as JSON for
`table_vs_spark_json`.
The table is read before the epochs that are timed; Spark reads its own, in Parquet, in every one of them.
`thousand_tables_vs_one`: a thousand such queries, each for the orders of one group of products, against the one.
Before they are timed, both sides are seen to give the same rows.

`--only` takes parts: q5, self, three, interval, table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from shutil import rmtree
from statistics import median

from anabranch.bench.harness.epochs import Trials, check_with_law, of_spark, of_trunk, workshop
from anabranch.bench.harness.parts import chosen_parts
from anabranch.bench.harness.timing import Figures, Rounds, compare
from anabranch.bench.parts.near_joins import NearJoins
from anabranch.bench.workloads.orders import (
    LOOKED_UP,
    group_queries,
    orders_source,
    spark_join,
    write_orders,
    write_products,
)
from anabranch.bench.workloads.photons import Q5, Rows, Spark, photons_streamed, source, write_files
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source

_SPARK_Q5 = """
    select x.en as x_en, x.phc as x_phc, y.en as y_en, y.phc as y_phc
    from x join y on x.bucket = y.bucket and x.en >= y.en + 0.5
    and y.time >= x.time - interval 20 seconds and y.time <= x.time + interval 10 seconds"""
_BUCKETS = {
    "photon1": "explode(array_distinct(array(floor((det_time - 20) / 30), floor((det_time + 10) / 30))))",
    "photon2": "floor(det_time / 30)",
}
_NAMES = ("photon1", "photon2", "photon3")
SELF = Q5.replace("photon2", "photon1")
THREE = """\
<photons>
{ for $x in stream("photon1")/photons/photon
    |det_time diff 4 step 2|
  for $y in stream("photon2")/photons/photon
    |det_time diff 4 step 2|
  for $z in stream("photon3")/photons/photon
    |det_time diff 4 step 2|
  where $x/en >= $y/en + 0.2 and $y/en >= $z/en + 0.2
  return
    <result>
      { $x/en } { $x/phc }
      { $y/en } { $z/en }
    </result> }
</photons>
"""
_FILES = 3
_CHECKED = 150
"""The photons of a file for the comparison with the law, which is slow."""


@dataclass(frozen=True, slots=True)
class JoinsScale:
    """How much is measured: photons of each stream to an epoch, and rounds."""

    items: int
    rounds: Rounds
    few_rounds: Rounds
    """The rounds of comparisons that no goal depends on."""
    products: int
    """The rows of the table."""


_FULL = JoinsScale(50_000, Rounds.of(quick=False), Rounds(2, 4), 100_000)
_QUICK = JoinsScale(4_000, Rounds.of(quick=True), Rounds(1, 1), 2_000)


def measure(quick: bool, only: Sequence[str] = ()) -> Figures:
    """Run the bench, or some of its parts."""
    parts = chosen_parts(_PARTS, only)
    with workshop() as (spark, folder):
        bench = JoinsBench(spark, folder, _QUICK if quick else _FULL)
        for part in parts:
            _PARTS[part](bench)
    return {"items": 2 * bench.scale.items, "ratios": bench.ratios, **bench.found}


@dataclass(slots=True)
class JoinsBench:
    """The figures of the parts that were measured; each of these adds to them."""

    spark: Spark
    folder: Path
    scale: JoinsScale
    ratios: dict[str, float] = field(default_factory=dict)
    found: dict[str, float | Figures] = field(default_factory=dict)
    _runs: count[int] = field(default_factory=count)

    def q5(self) -> None:
        """Compare q5 with plain Spark."""
        folder = self._photons(2)
        ours, theirs = count_pairs(self.spark, folder, self._fresh())
        trials = Trials(self.spark, self._fresh())
        found = compare(
            lambda: trials.ours(_sources(folder), {"q5": Q5}),
            lambda: trials.theirs(spark_q5(self.spark, folder), _FILES),
            self.scale.rounds,
            "q5",
        )
        self.ratios |= {"q5_vs_spark": found.ratio, "q5_vs_spark_per_pair": found.ratio * ours / theirs}
        self.found |= {"pairs": ours, "pairs_other": theirs, "q5_vs_spark": found.figures(2 * self.scale.items)}

    def with_itself(self) -> None:
        """Compare the join of a stream with itself with q5."""
        self._compare_with_q5("self", SELF, 1, self._photons(2))

    def of_three(self) -> None:
        """Compare the join of three streams with q5."""
        self._compare_with_q5("three", THREE, 3, self._photons(3))

    def interval(self) -> None:
        """Compare a join by an interval with plain Spark's, and a hundred with one."""
        near = NearJoins(self.spark, self._fresh(), self.scale.items)
        for name, found in (
            ("interval_vs_spark", near.beside_spark(self.scale.few_rounds)),
            ("hundred_intervals_vs_one", near.many(100, self.scale.few_rounds)),
        ):
            self.ratios[name] = found.ratio
            self.found[name] = found.figures(self.scale.items)

    def table(self) -> None:
        """Compare lookups in a document with plain Spark's join, and a thousand such queries with one."""
        path = write_products(self.spark, self._fresh(), self.scale.products)
        documents = {"products": DocumentSource(path)}
        items = 2 * self.scale.items
        trials = Trials(self.spark, self._fresh())
        for form, suffix in _FORMS.items():
            check_table(self.spark, form, self._fresh())
            folder = self._fresh()
            write_orders(folder, form, _FILES, items, self.scale.products)
            sources = [orders_source(folder, form)]
            found = compare(
                lambda: trials.ours(sources, {"one": LOOKED_UP}, documents=documents),  # noqa: B023, called at once
                lambda: trials.theirs(spark_join(self.spark, folder, form, path), _FILES),  # noqa: B023
                self.scale.rounds,
                f"table, {form}",
            )
            self.ratios[f"table_vs_spark{suffix}"] = found.ratio
            self.found[f"table_vs_spark{suffix}"] = found.figures(items)
        queries = group_queries()
        found = compare(
            lambda: trials.ours(sources, queries, documents=documents),
            lambda: trials.ours(sources, {"one": LOOKED_UP}, documents=documents),
            self.scale.few_rounds,
            "a thousand against one",
        )
        self.ratios["thousand_tables_vs_one"] = found.ratio
        self.found["thousand_tables_vs_one"] = found.figures(items)

    def _compare_with_q5(self, name: str, query: str, streams: int, folder: Path) -> None:
        """Compare a join of streams in a folder with q5, both rates in photons and in answers a second."""
        check_join(self.spark, query, streams, self._fresh())
        q5_folder = self._photons(2)
        sources, q5_sources = _sources(folder, streams), _sources(q5_folder)
        answers, q5_answers = self._count(sources, query), self._count(q5_sources, Q5)
        trials = Trials(self.spark, self._fresh())
        found = compare(
            lambda: trials.ours(sources, {name: query}),
            lambda: trials.ours(q5_sources, {"q5": Q5}),
            self.scale.few_rounds,
            f"{name} against q5",
        )
        self.ratios[f"{name}_vs_q5"] = found.ratio * streams / 2
        self.ratios[f"{name}_vs_q5_per_pair"] = found.ratio * answers / q5_answers
        self.found[f"{name}_vs_q5"] = {
            "answers": answers,
            "answers_other": q5_answers,
            "ratio_least": min(found.ratios) * streams / 2,
            "ratio_most": max(found.ratios) * streams / 2,
            "items_per_second": streams * self.scale.items / median(found.first),
            "items_per_second_other": 2 * self.scale.items / median(found.second),
        }

    def _count(self, sources: Sequence[Source], query: str) -> int:
        folder = self._fresh()
        _, outcome = of_trunk(self.spark, sources, {"counted": query}, folder)
        found = outcome.progress.answers["counted"]
        rmtree(folder)
        return found

    def _photons(self, streams: int) -> Path:
        """A folder with one folder of photons for each stream."""
        folder = self.folder / f"of-{streams}"
        if not folder.exists():
            write_files([folder / name for name in _NAMES[:streams]], _FILES, self.scale.items)
        return folder

    def _fresh(self) -> Path:
        return self.folder / f"run-{next(self._runs)}"


_PARTS: Mapping[str, Callable[[JoinsBench], None]] = {
    "q5": JoinsBench.q5,
    "self": JoinsBench.with_itself,
    "three": JoinsBench.of_three,
    "interval": JoinsBench.interval,
    "table": JoinsBench.table,
}
_FORMS: Mapping[Format, str] = {"lines": "", "json": "_json"}
"""The formats of orders, each with the suffix of its figures' names."""


def count_pairs(spark: Spark, folder: Path, work: Path) -> tuple[int, int]:
    """How many pairs a trunk gives and how many Spark does; an error where they are not nearly as many."""
    _, outcome = of_trunk(spark, _sources(folder), {"q5": Q5}, work / "ours")
    of_spark(spark_q5(spark, folder), work / "theirs", _FILES)
    ours = outcome.progress.answers["q5"]
    theirs: int = spark.read.parquet(str(work / "theirs" / "out")).count()
    rmtree(work)
    assert abs(ours / theirs - 1) < 0.1, f"{ours:,} pairs here, {theirs:,} there"
    return ours, theirs


def check_join(spark: Spark, query: str, streams: int, work: Path) -> int:
    """The number of answers of a join over a few photons; an error where they are not those of the law."""
    write_files([work / name for name in _NAMES[:streams]], _FILES, _CHECKED)
    found = check_with_law(spark, _sources(work, streams), query, work / "run").count("<result>")
    rmtree(work)
    assert found > _CHECKED, f"{found} answers"
    return found


def check_table(spark: Spark, form: Format, work: Path) -> int:
    """How many orders find a product among a few; an error where a trunk, or a thousand queries, and Spark differ."""
    few = 3 * _CHECKED
    path = write_products(spark, work / "table", few)
    write_orders(work / "orders", form, _FILES, few, few + _CHECKED)  # some find nothing
    sources, documents = [orders_source(work / "orders", form)], {"products": DocumentSource(path)}
    queries = {"one": LOOKED_UP, **group_queries()}
    _, outcome = of_trunk(spark, sources, queries, work / "ours", documents=documents)
    of_spark(spark_join(spark, work / "orders", form, path), work / "theirs", _FILES)
    theirs = sorted(tuple(map(str, each)) for each in spark.read.parquet(str(work / "theirs" / "out")).collect())
    (one, *others) = ("".join(outcome.answers[name]) for name in queries)
    for found in one, "".join(others):
        assert sorted(_SOLD.findall(found)) == theirs, f"{found[:200]}..., and Spark says {theirs[:2]}..."
    rmtree(work)
    assert few < len(theirs) < _FILES * few, f"{len(theirs)} orders"
    return len(theirs)


_SOLD = re.compile("<sold><id>(.*?)</id><name>(.*?)</name><price>(.*?)</price><amount>(.*?)</amount></sold>")


def spark_q5(spark: Spark, folder: Path) -> Rows:
    """The query of plain Spark that comes nearest to q5."""
    for name, (stream, bucket) in zip("xy", _BUCKETS.items(), strict=True):
        rows = photons_streamed(spark, folder / stream)
        rows = rows.selectExpr("en", "phc", "timestamp_seconds(det_time) as time", f"{bucket} as bucket")
        rows.withWatermark("time", "0 seconds").createOrReplaceTempView(name)
    return spark.sql(_SPARK_Q5)


def _sources(folder: Path, streams: int = 2) -> list[Source]:
    return [source(name, folder / name) for name in _NAMES[:streams]]
