"""What windows cost: the average energy over Vela in windows of 20 seconds every 10, q2 of the sharing paper.

`q2_vs_spark`: q2 on a trunk, its answers committed, against what a user of plain Spark would write: `from_xml` over
text lines, a filter, a watermark on the time of detection, `window` and `groupBy`, appended to Parquet.
The time is that of a whole trigger, without the start of the query.
Both are checked to give the same averages for the windows that both have closed, which are all but the last few: Spark
closes a window only with the next epoch and the last ones never.
Spark adds doubles up where our averages are exact, so they are compared to nine digits.

`w80_vs_w1`: 80 different window aggregates on one trunk (`bench/workloads/photons.py`) against the first of
them alone; the rate is in items, so 1 means that the other 79 cost nothing.
The 80 give some hundred times as many answers as the one, so `w80_vs_fine` compares them with one window that gives
about as many: the average energy of all photons in windows of a fraction of a second.

`groups_vs_spark`: the sales of each of 10,000 shops in a minute, a sum and a count by key (LAWS 3.8), against the same
in plain Spark: JSON read with a schema, a watermark, `window` and the shop in `groupBy`, appended to Parquet.
Both are checked to give the same sums and counts for the windows that both have closed.

`sessions_vs_spark`: the visits of 10,000 users, who have looked at pages less than half an hour apart (LAWS 3.9): the
user, both bounds, a count and a sum for each, against the same in plain Spark: JSON read with a schema, a watermark,
`session_window` and the user in `groupBy`, appended to Parquet.
Both are checked to give the same bounds, counts and sums for the visits that both have closed.

`count_vs_time`: the same average over count windows against q2: as many windows of about as many photons.
`partitions_vs_one`: q2 over a stream of four partitions, which are merged by their time, against the same photons in
one partition.
Count windows and partitions are compared with the law over a few photons before they are timed.

`small_epoch_ms`: the median of whole triggers that bring a thousand photons each to q2.
`small_epoch_over_empty`: such a trigger against one that brings nothing, on one trunk in turns, as a ratio of seconds.
An empty epoch is a file with a blank line: it is found, planned, read and committed as any other, and brings no query
anything, not even a time.

`--only` takes parts: q2, many, fine, groups, sessions, count, partitions, small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import count
from math import exp, isclose
from pathlib import Path
from shutil import rmtree
from statistics import mean, median, quantiles

from anabranch.bench.harness.epochs import Trials, check_with_law, of_spark, of_trunk, workshop
from anabranch.bench.harness.live import LiveTrunk
from anabranch.bench.harness.parts import chosen_parts
from anabranch.bench.harness.timing import Figures, Rounds, Timings, compare
from anabranch.bench.workloads.photons import Q2, Rows, Spark, photons_streamed, source, window_queries, write_files
from anabranch.bench.workloads.sales import BY_SHOP, SHOPS, sales, spark_by_shop, write_sales
from anabranch.bench.workloads.views import USERS, VISITS, spark_visits, views, write_views
from anabranch.stream.reading.source import Source

_SPARK_Q2 = """
    select window.start as start, avg(en) as avg_en from photons
    where coord.cel.ra >= 120.0 and coord.cel.ra <= 138.0 and coord.cel.dec >= -49.0 and coord.cel.dec <= -40.0
    group by window(time, '20 seconds', '10 seconds')"""
_AVERAGE = re.compile(r"<avg_en>([^<]*)</avg_en>")
_GROUP = re.compile(r'<shop t="([^"]*)" name="([^"]*)" n="([^"]*)">([^<]*)</shop>')
_VISIT = re.compile(r'<visit user="([^"]*)" from="([^"]*)" to="([^"]*)" views="([^"]*)">([^<]*)</visit>')
_COUNTED = Q2.replace("|det_time diff 20 step 10|", "|count 28 step 14|")
"""The query q2 over count windows: of the forty photons in ten seconds, fourteen are from Vela."""
_FILES = 3
_MANY = 80
_MEAN_GAP_SECONDS = 0.25
"""How far photons are apart, in the mean."""
_PARTITIONS = 4
_CHECKED = 400
"""The photons of a file for the comparison with the law, which is slow."""
_SMALL_ITEMS = 1_000


@dataclass(frozen=True, slots=True)
class WindowsScale:
    """How much is measured: photons of a file, rounds, and small epochs, of which the first quarter is warm-up."""

    items: int
    rounds: Rounds
    few_rounds: Rounds
    """The rounds of comparisons that no goal depends on."""
    small_files: int
    small_rounds: Rounds


_FULL = WindowsScale(200_000, Rounds.of(quick=False), Rounds(2, 4), 80, Rounds(15, 20))
_QUICK = WindowsScale(20_000, Rounds.of(quick=True), Rounds(1, 1), 20, Rounds(4, 3))


def measure(quick: bool, only: Sequence[str] = ()) -> Figures:
    """Run the bench, or some of its parts."""
    parts = chosen_parts(_PARTS, only)
    with workshop() as (spark, folder):
        bench = WindowsBench(spark, folder, _QUICK if quick else _FULL)
        for part in parts:
            _PARTS[part](bench)
    return {"items": bench.scale.items, "ratios": bench.ratios, **bench.found}


@dataclass(slots=True)
class WindowsBench:
    """The figures of the parts that were measured; each of these adds to them."""

    spark: Spark
    folder: Path
    scale: WindowsScale
    ratios: dict[str, float] = field(default_factory=dict)
    found: dict[str, float | Figures] = field(default_factory=dict)
    _runs: count[int] = field(default_factory=count)

    def q2(self) -> None:
        """Compare q2 with plain Spark."""
        photons = self._photons()
        self.found["windows"] = check_same(self.spark, photons, self._fresh())
        trials, stream = Trials(self.spark, self._fresh()), [source("photons", photons)]
        q2 = compare(
            lambda: trials.ours(stream, {"q2": Q2}),
            lambda: trials.theirs(spark_q2(self.spark, photons), _FILES),
            self.scale.rounds,
            "q2",
        )
        self._note("q2_vs_spark", q2)

    def many(self) -> None:
        """Compare many windows with one of them."""
        queries = window_queries(_MANY)
        many, answered, _ = compare_many(self.spark, self._photons(), self._fresh(), self.scale.rounds, queries)
        self._note("w80_vs_w1", many, items_per_window=_FILES * self.scale.items * _MANY / answered)

    def fine(self) -> None:
        """Compare many windows with one that gives as many answers."""
        stream, queries = source("photons", self._photons()), window_queries(_MANY)
        wanted = sum(_answered(self._answers(stream, query)) for query in queries.values())
        fine = {"fine": fine_query(wanted / (_FILES * self.scale.items))}
        many, answered, alone = compare_many(
            self.spark, self._photons(), self._fresh(), self.scale.rounds, queries, fine
        )
        assert abs(alone / answered - 1) < 0.05, f"{answered:,} answers of {_MANY} windows, {alone:,} of one"
        self._note("w80_vs_fine", many, answers=answered, answers_other=alone)

    def groups(self) -> None:
        """Compare sums by key with plain Spark."""
        folder = self._fresh()
        write_sales(folder, _FILES, self.scale.items, min(SHOPS, self.scale.items // 20))
        groups = check_groups(self.spark, folder, self._fresh())
        trials, stream = Trials(self.spark, self._fresh()), [sales(folder)]
        found = compare(
            lambda: trials.ours(stream, {"groups": BY_SHOP}),
            lambda: trials.theirs(spark_by_shop(self.spark, folder), _FILES),
            self.scale.rounds,
            "groups",
        )
        self._note("groups_vs_spark", found, groups=groups)

    def sessions(self) -> None:
        """Compare sessions by key with plain Spark."""
        folder = self._fresh()
        write_views(folder, _FILES, self.scale.items, min(USERS, self.scale.items // 20))
        visits = check_sessions(self.spark, folder, self._fresh())
        trials, stream = Trials(self.spark, self._fresh()), [views(folder)]
        found = compare(
            lambda: trials.ours(stream, {"visits": VISITS}),
            lambda: trials.theirs(spark_visits(self.spark, folder), _FILES),
            self.scale.rounds,
            "sessions",
        )
        self._note("sessions_vs_spark", found, sessions=visits)

    def counted(self) -> None:
        """Compare count windows with time windows."""
        windows, windows_other = self.check_counted()
        stream, trials = source("photons", self._photons()), Trials(self.spark, self._fresh())
        found = compare(
            lambda: trials.ours([stream], {"counted": _COUNTED}),
            lambda: trials.ours([stream], {"q2": Q2}),
            self.scale.few_rounds,
            "count windows",
        )
        self._note("count_vs_time", found, windows=windows, windows_other=windows_other)

    def check_counted(self) -> tuple[int, int]:
        """How many count windows and time windows there are; an error where the law has other averages."""
        small = self._fresh()
        write_files([small], _FILES, _CHECKED)
        check_with_law(self.spark, [source("photons", small)], _COUNTED, self._fresh())
        stream = source("photons", self._photons())
        counted, timed = (self._answers(stream, query).count("<avg_en>") for query in (_COUNTED, Q2))
        assert abs(counted / timed - 1) < 0.1, f"{counted:,} count windows, {timed:,} time windows"
        return counted, timed

    def partitions(self) -> None:
        """Compare four partitions with one."""
        several, one = self.check_partitions()
        trials = Trials(self.spark, self._fresh())
        found = compare(
            lambda: trials.ours([several], {"q2": Q2}),
            lambda: trials.ours([one], {"q2": Q2}),
            self.scale.few_rounds,
            f"{_PARTITIONS} partitions",
        )
        self._note("partitions_vs_one", found)

    def check_partitions(self) -> tuple[Source, Source]:
        """The same photons in several partitions and in one; an error where their averages differ, or the law's do."""
        check_with_law(self.spark, [self._partitioned(_CHECKED)], Q2, self._fresh())
        several, one = self._partitioned(self.scale.items), source("photons", self._photons())
        assert self._answers(several, Q2) == self._answers(one, Q2), "the same photons have the same averages"
        return several, one

    def small(self) -> None:
        """Time epochs of a few photons, one behind the other, and in turns with empty ones."""
        small = small_epochs(self.spark, self._fresh(), self.scale.small_files, _SMALL_ITEMS)
        self.found["small_epoch_ms"] = median(small)
        self.found["small_epoch_ms_ninth_tenth"] = quantiles(small, n=10)[-1]
        found = compare_with_empty(self.spark, self._fresh(), self.scale.small_rounds, _SMALL_ITEMS)
        self.ratios["small_epoch_over_empty"] = found.ratio
        self.found["small_epoch_over_empty"] = {
            "ratio_least": min(found.ratios),
            "ratio_most": max(found.ratios),
            "empty_epoch_ms": 1_000 * median(found.first),
            "small_epoch_ms": 1_000 * median(found.second),
        }

    def _note(self, name: str, found: Timings, **more: float) -> None:
        self.ratios[name] = found.ratio
        self.found[name] = {**found.figures(self.scale.items), **more}

    def _answers(self, stream: Source, query: str) -> str:
        folder = self._fresh()
        _, outcome = of_trunk(self.spark, [stream], {"asked": query}, folder)
        text = "".join(outcome.answers["asked"])
        rmtree(folder)
        return text

    def _photons(self) -> Path:
        folder = self.folder / "photons"
        if not folder.exists():
            write_files([folder], _FILES, self.scale.items)
        return folder

    def _partitioned(self, items: int) -> Source:
        """Partitions that get photons in turn, so that a file of each has what is in one file of `items`."""
        first, *more = folders = [self._fresh() for _ in range(_PARTITIONS)]
        write_files(folders, _FILES, items // _PARTITIONS)
        return replace(source("photons", first), more=tuple(more))

    def _fresh(self) -> Path:
        return self.folder / f"run-{next(self._runs)}"


_PARTS: Mapping[str, Callable[[WindowsBench], None]] = {
    "q2": WindowsBench.q2,
    "many": WindowsBench.many,
    "fine": WindowsBench.fine,
    "groups": WindowsBench.groups,
    "sessions": WindowsBench.sessions,
    "count": WindowsBench.counted,
    "partitions": WindowsBench.partitions,
    "small": WindowsBench.small,
}


def compare_many(
    spark: Spark,
    photons: Path,
    work: Path,
    rounds: Rounds,
    queries: Mapping[str, str],
    other: Mapping[str, str] | None = None,
) -> tuple[Timings, int, int]:
    """The seconds of an epoch of many windows and of one, by default their first, and how many answers each gave."""
    fresh = (work / str(number) for number in count())
    name = next(iter(queries))
    alone = {name: queries[name]} if other is None else other
    answers: dict[int, dict[str, str]] = {}

    def run(wanted: Mapping[str, str]) -> float:
        folder = next(fresh)
        seconds, outcome = of_trunk(spark, [source("photons", photons)], wanted, folder)
        if len(wanted) not in answers:
            answers[len(wanted)] = {each: "".join(answer) for each, answer in outcome.answers.items()}
        rmtree(folder)
        return mean(seconds)

    found = compare(partial(run, queries), partial(run, alone), rounds, f"{len(queries)} windows")
    if other is None:
        assert answers[1][name] == answers[len(queries)][name], "what others ask must not show"
    many, one = (sum(map(_answered, answers[each].values())) for each in (len(queries), len(alone)))
    return found, many, one


def _answered(text: str) -> int:
    """How many windows an answer has, each an element within one around all of them."""
    return text.count("</") - 1


def fine_query(per_photon: float) -> str:
    """One window aggregate over all photons that gives so many answers for each of them, fewer than one.

    Gaps between photons are exponential, so a window of `x` mean gaps holds a photon with probability `1 - exp(-x)`.
    """
    low, high = 1e-3, 1e3
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if (1 - exp(-middle)) / middle > per_photon else (low, middle)
    step = round(_MEAN_GAP_SECONDS * low, 4)
    return f"""<photons>
{{ for $w in stream("photons")/photons/photon|det_time diff {step:g}|
  let $a := avg($w/en)
  return <avg_en>{{ $a }}</avg_en> }}
</photons>"""


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


def check_groups(spark: Spark, folder: Path, work: Path) -> int:
    """How many groups Spark closes; an error where the sum or count of one differs from ours.

    Our query also gives a time in each window, by which the groups are matched with Spark's.
    """
    query = BY_SHOP.replace("<shop", '<shop t="{ min($s/t) }"')
    _, outcome = of_trunk(spark, [sales(folder)], {"groups": query}, work / "ours")
    of_spark(spark_by_shop(spark, folder), work / "theirs", _FILES)
    groups = _GROUP.findall("".join(outcome.answers["groups"]))
    ours = {(float(time) // 60, shop): (int(times), float(amount)) for time, shop, times, amount in groups}
    rows = spark.read.parquet(str(work / "theirs" / "out")).selectExpr("*", "cast(start as long) as second").collect()
    theirs = {(row["second"] / 60, row["shop"]): (row["n"], row["amount"]) for row in rows}
    rmtree(work)
    last = max(minute for minute, _ in ours)
    assert theirs.keys() >= {each for each in ours if each[0] < last - 1}, "no window is missing there"
    for group, (times, amount) in theirs.items():
        assert ours[group][0] == times, "both must find the same counts"
        assert isclose(ours[group][1], amount, rel_tol=1e-9), "both must find the same sums"
    return len(theirs)


def check_sessions(spark: Spark, folder: Path, work: Path) -> int:
    """How many sessions Spark closes; an error where one differs from ours.

    Spark closes one only with the next epoch; all that ended before the last file are there.
    """
    _, outcome = of_trunk(spark, [views(folder)], {"visits": VISITS}, work / "ours")
    of_spark(spark_visits(spark, folder), work / "theirs", _FILES)
    given = _VISIT.findall("".join(outcome.answers["visits"]))
    ours = {
        (user, _millisecond(begin), _millisecond(end)): (int(n), float(total)) for user, begin, end, n, total in given
    }
    rows = spark.read.parquet(str(work / "theirs" / "out"))
    rows = rows.selectExpr("*", "unix_millis(start) as first", "unix_millis(end) as last")
    theirs = {(row["user"], row["first"], row["last"]): (row["n"], row["seconds"]) for row in rows.collect()}
    rmtree(work)
    closed = max((last for _, _, last in theirs), default=0)
    assert theirs.keys() == {each for each in ours if each[2] <= closed}, "both must find the same sessions"
    for session, (times, seconds) in theirs.items():
        assert ours[session][0] == times, "both must find the same counts"
        assert isclose(ours[session][1], seconds, rel_tol=1e-9), "both must find the same sums"
    return len(theirs)


def _millisecond(text: str) -> int:
    """The milliseconds since 1970 of a dateTime."""
    return round(1_000 * datetime.fromisoformat(text).timestamp())


def small_epochs(spark: Spark, work: Path, epoch_count: int, items: int) -> list[float]:
    """Milliseconds of triggers that bring a few photons each, when the query is warm."""
    write_files([work / "photons"], epoch_count, items)
    seconds, _ = of_trunk(spark, [source("photons", work / "photons")], {"q2": Q2}, work / "run")
    return [1_000 * each for each in seconds[epoch_count // 4 :]]


def compare_with_empty(spark: Spark, work: Path, rounds: Rounds, items: int) -> Timings:
    """The seconds of epochs that bring nothing to q2, and of those that bring a few photons, on one trunk."""
    photons, blank = work / "photons", work / "blank"
    write_files([photons], 2 * (rounds.warm_up + rounds.pairs), items)
    blank.write_text("\n")
    files: Iterator[Path] = iter(sorted(photons.iterdir()))
    with LiveTrunk(spark, work / "live", {"q2": Q2}, blank) as trunk:

        def small() -> float:
            seconds = trunk.feed(next(files))
            assert trunk.epochs[-1].metrics.items == items, "a small epoch has its photons"
            assert trunk.answers > 0, "... and closes windows"
            return seconds

        def empty() -> float:
            seconds = trunk.round()
            assert (trunk.epochs[-1].metrics.items, trunk.answers) == (0, 0), "an empty epoch brings nothing"
            return seconds

        small()
        return compare(empty, small, rounds, "empty epochs and small ones")


def spark_q2(spark: Spark, photons: Path) -> Rows:
    """The query q2 in plain Spark."""
    rows = photons_streamed(spark, photons).selectExpr("*", "timestamp_seconds(det_time) as time")
    rows.withWatermark("time", "0 seconds").createOrReplaceTempView("photons")
    return spark.sql(_SPARK_Q2)
