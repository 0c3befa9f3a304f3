"""The cost of one among many subscriptions: up to a hundred thousand of them over one stream.

What they select stands in `bench/workloads/subscriptions.py`, how rounds are timed in `bench/harness/live.py`.
At one answer per photon each of N selects 1/N of the photons, at ten answers 10/N; so one (or ten) that select all of
them have as many answers to write, and a ratio shows what the number of subscriptions costs.

`n10000_vs_n1_equal`: ten thousand against one, at one answer per photon; likewise for fewer.
`n10000_vs_n10_equal`: ten thousand against ten, at ten answers per photon; likewise for a thousand.
`n10000_vs_spark_one`: ten thousand at ten answers per photon against one query of plain Spark: `from_xml`, a filter
that a hundredth of the photons pass, and Parquet.
`n32_vs_spark_32`: 32 at one answer per photon against 32 queries of plain Spark with the same conditions, all at once.
`n100000_vs_n10000`: a hundred thousand against ten thousand, both at one answer per photon.

`n10000_mixed_vs_n1`: ten thousand of fourteen forms over readings written as XML elements against one that gives as
many answers; `n10000_mixed_json_vs_n1` is the same over JSON.
`n10000_ranges_json_vs_xml`: ten thousand conjunctions of two ranges over JSON against the same over XML elements, one
match per reading; likewise for fewer (both in `parts/shared_readings.py`).

`n1000000_vs_n10000`: a million conjunctions of two ranges against ten thousand, over elements, one match per reading
(`parts/shared_readings.py`); `million` has how many a second are registered, from their texts to the plan on the disk,
and by how much the driver and its Python workers grow for each; the goals are 0.7 and 20,000.

`registration_p99_ms`: one more subscription beside ten thousand, from its text to the subscriptions of the next epoch.
`bytes_per_idle_subscription`: by how much the driver and its Python workers grow with a subscription that no photon
matches.
`paper`: the sharing paper's own workload (`bench/workloads/paper.py`).

`--only` takes parts: one_answer, ten_answers, spark, most, mixed, ranges, million, registration, idle, paper.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from anabranch.bench.harness.epochs import workshop
from anabranch.bench.harness.live import LiveTrunk, SparkQueries
from anabranch.bench.harness.parts import chosen_parts
from anabranch.bench.harness.timing import Clock, Figures, Rounds, Timings, compare
from anabranch.bench.memory import resident
from anabranch.bench.parts.shared_readings import SharedReadings
from anabranch.bench.workloads import paper as workload
from anabranch.bench.workloads.photons import Spark, source, write_files
from anabranch.bench.workloads.readings import ELEMENTS, JSON_LINES
from anabranch.bench.workloads.subscriptions import Sky
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import Checking
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.membership import subscriptions_of
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import KnownStream, Source, StreamForm

_IDLE = '<hits>{{ for $p in stream("photons")/photons/photon where $p/coord/cel/ra > {}.{:04} return $p/en }}</hits>'
_SMALL = 50_000
"""Photons to warm up with: enough that every core has a range, and Spark a Python worker for each."""


@dataclass(frozen=True, slots=True)
class SharingScale:
    """How much is measured: photons, and numbers of subscriptions."""

    items: int
    one_answer: tuple[int, ...]
    ten_answers: tuple[int, ...]
    """How many subscriptions are compared with one, and with ten."""
    most: int
    """How many are compared with ten thousand, in a few rounds."""
    ranges: tuple[int, ...]
    """How many conjunctions of two ranges are tried over JSON and over elements."""
    million: int = 1_000_000
    together: int = 32
    registered: int = 300
    seeds: int = 10

    @property
    def many(self) -> int:
        return self.one_answer[-1]


_ROUNDS = Rounds(6, 20)
"""More pairs than elsewhere: these ratios are near 1, and rounds of a second differ by a third."""
_BETWEEN, _FAR, _MOST, _READINGS = Rounds(1, 2), Rounds(0, 1), Rounds(2, 3), Rounds(3, 8)
"""For ratios without a goal; for those far from 1, which take minutes; for rounds of seconds; and over readings."""
_FULL = SharingScale(200_000, (10, 100, 1_000, 10_000), (1_000, 10_000), 100_000, (100, 1_000, 10_000))
_QUICK = SharingScale(20_000, (10, 100), (100,), 400, (10, 100), 2_000, together=4, registered=100, seeds=1)


def measure(quick: bool, only: Sequence[str] = ()) -> Figures:
    """Run the bench, or some of its parts."""
    parts = chosen_parts(_PARTS, only)
    with workshop() as (spark, folder):
        scale, rounds = (_QUICK, (Rounds.of(quick),) * 2) if quick else (_FULL, (_ROUNDS, _READINGS))
        bench = SharingBench(spark, folder, scale, *rounds)
        for part in parts:
            print(f"part '{part}'", file=sys.stderr)
            _PARTS[part](bench)
        return bench.figures()


@dataclass(slots=True)
class SharingBench:
    """The figures of the parts that were measured; each of these adds to them."""

    spark: Spark
    folder: Path
    scale: SharingScale
    rounds: Rounds
    rounds_of_readings: Rounds
    ratios: dict[str, float] = field(default_factory=dict)
    spreads: dict[str, Figures] = field(default_factory=dict)
    rates: dict[str, dict[int, float]] = field(default_factory=dict)
    """Items a second, by kind of workload and number of subscriptions."""
    found: dict[str, float | Figures] = field(default_factory=dict)
    _runs: count[int] = field(default_factory=count)
    _skies: dict[int, tuple[Path, Sky]] = field(default_factory=dict)

    def figures(self) -> Figures:
        """The figures of all parts that were measured."""
        rates = {name: {str(number): each[number] for number in sorted(each)} for name, each in self.rates.items()}
        figures: Figures = {"ratios": self.ratios, "spread": self.spreads, "items_per_second": rates}
        return {"items": self.scale.items, **figures, **self.found}

    def with_one(self) -> None:
        """Compare some numbers of subscriptions with one, at one answer per photon."""
        self.compare_with_few(1, self.scale.one_answer, "one_answer")

    def with_ten(self) -> None:
        """Compare some numbers of subscriptions with ten, at ten answers per photon."""
        self.compare_with_few(10, self.scale.ten_answers, "ten_answers")

    def with_spark(self) -> None:
        """Compare many with one query of plain Spark, and some with as many."""
        file, sky = self.photons(self.scale.items)
        small, _ = self.photons(_SMALL)
        with self.trunk(file, sky, self.scale.many, 10) as trunk:
            one = SparkQueries(self.spark, self.folder / "spark-one", sky.subscriptions(1, 0.01), small, file)
            name = f"n{self.scale.many}_vs_spark_one"
            self.compare(name, sky.items, partial(trunk.round, small), one.round, self.rounds)
        self.compare_with_as_many(small)

    def most(self) -> None:
        """Compare the most subscriptions with many, at one answer per photon."""
        file, sky = self.photons(self.scale.items)
        most, many = self.scale.most, self.scale.many
        with self.trunk(file, sky, most, 1) as more, self.trunk(file, sky, many, 1) as fewer:
            found = self.compare(f"n{most}_vs_n{many}", sky.items, more.round, fewer.round, _MOST)
        rates = self.rates.setdefault("one_answer", {})
        rates[most] = sky.items / median(found.first)
        rates.setdefault(many, sky.items / median(found.second))

    def mixed(self) -> None:
        """Compare subscriptions of all forms with one, over elements and over JSON."""
        many = self.scale.many
        for wire, kind in ((ELEMENTS, "mixed"), (JSON_LINES, "mixed_json")):
            readings = SharedReadings(self.spark, self.folder / kind, self.scale.items)
            found = readings.compare_mixture(many, wire, self.rounds_of_readings)
            self.note(f"n{many}_{kind}_vs_n1", self.scale.items, found)
            self.rates[kind] = {
                many: self.scale.items / median(found.first),
                1: self.scale.items / median(found.second),
            }

    def ranges(self) -> None:
        """Compare conjunctions over JSON with those over elements."""
        readings = SharedReadings(self.spark, self.folder / "ranges", self.scale.items)
        for number in self.scale.ranges:
            rounds = self.rounds_of_readings if number == self.scale.ranges[-1] else _BETWEEN
            found = readings.compare_ranges(number, rounds)
            self.note(f"n{number}_ranges_json_vs_xml", self.scale.items, found)
            for kind, seconds in (("ranges_json", found.first), ("ranges_xml", found.second)):
                self.rates.setdefault(kind, {})[number] = self.scale.items / median(seconds)

    def million(self) -> None:
        """Register, hold and match a million subscriptions, and compare their rate with that of many."""
        readings = SharedReadings(self.spark, self.folder / "million", self.scale.items)
        million, many = self.scale.million, self.scale.many
        with readings.ranges(1, ELEMENTS) as one:
            before = _resident_after(one)
        with readings.ranges(million, ELEMENTS) as more:
            self.found["million"] = {
                "registered_per_second": more.registered_per_second,
                "bytes_per_subscription": (_resident_after(more) - before) * 1e6 / million,
            }
            print(f"million: {self.found['million']}", file=sys.stderr)
            with readings.ranges(many, ELEMENTS) as fewer:
                self.compare(f"n{million}_vs_n{many}", self.scale.items, more.round, fewer.round, _MOST)

    def registration(self) -> None:
        """Time subscriptions that come one by one, where there are many."""
        _, sky = self.photons(self.scale.items)
        many = self.scale.many
        texts = [each.text for each in sky.subscriptions(many + self.scale.registered, 1 / many)]
        registered = registering(texts[:many], texts[many:])
        self.found["registration_p99_ms"] = quantiles(registered, n=100)[-1]
        self.found["registration_ms"] = median(registered)

    def idle(self) -> None:
        """Measure the memory of subscriptions that match nothing."""
        small, _ = self.photons(_SMALL)
        self.found["bytes_per_idle_subscription"] = self.bytes_per_idle(small, self.scale.many)

    def paper(self) -> None:
        """Share the workload of the sharing paper."""
        self.found["paper"] = workload.figures(range(self.scale.seeds))

    def compare_with_as_many(self, small: Path) -> None:
        """Compare some subscriptions with as many queries of plain Spark, over a file that keeps both busy."""
        number = self.scale.together
        file, sky = self.photons(3 * self.scale.items)
        with self.trunk(file, sky, number, 1) as trunk:
            conditions = sky.subscriptions(number, 1 / number)
            queries = SparkQueries(self.spark, self.folder / "spark-many", conditions, small, file)
            name = f"n{number}_vs_spark_{number}"
            self.compare(name, sky.items, partial(trunk.round, small), queries.round, _FAR)

    def compare_with_few(self, answers: int, numbers: Sequence[int], kind: str) -> None:
        """Compare some numbers of subscriptions with `answers` of them, each of which selects all photons."""
        file, sky = self.photons(self.scale.items)
        rates = self.rates.setdefault(kind, {})
        with self.trunk(file, sky, answers, answers) as few:
            for number in numbers:
                with self.trunk(file, sky, number, answers) as more:
                    rounds = self.rounds if number == numbers[-1] else _BETWEEN
                    name = f"n{number}_vs_n{answers}_equal"
                    found = self.compare(name, sky.items, more.round, few.round, rounds)
                rates[number] = sky.items / median(found.first)
                rates[answers] = sky.items / median(found.second)

    def compare(self, name: str, items: int, ours: Clock, theirs: Clock, rounds: Rounds) -> Timings:
        """Compare the seconds of reading the same file again."""
        return self.note(name, items, compare(ours, theirs, rounds, name))

    def note(self, name: str, items: int, found: Timings) -> Timings:
        """Keep the ratio of a comparison, and its spread."""
        self.ratios[name] = found.ratio
        self.spreads[name] = found.figures(items)
        return found

    def bytes_per_idle(self, file: Path, subscriptions: int) -> float:
        """The bytes of memory that a subscription takes which matches nothing."""
        levels = []
        for number in (1, subscriptions):
            queries = {f"idle-{each}": _IDLE.format(400 + each // 10_000, each % 10_000) for each in range(number)}
            with LiveTrunk(self.spark, self.folder / f"run-{next(self._runs)}", queries, file) as trunk:
                levels.append(_resident_after(trunk))
        return (levels[1] - levels[0]) * 1e6 / subscriptions

    def photons(self, items: int) -> tuple[Path, Sky]:
        """A file of photons, and these photons as columns."""
        if items not in self._skies:
            folder = self.folder / f"photons-{items}"
            write_files([folder], 1, items)
            (file,) = folder.iterdir()
            self._skies[items] = file, Sky(file.read_text().splitlines())
        return self._skies[items]

    @contextmanager
    def trunk(self, file: Path, sky: Sky, subscriptions: int, answers: int) -> Iterator[LiveTrunk]:
        """A trunk with this many subscriptions, which together give `answers` answers per photon."""
        found = sky.subscriptions(subscriptions, answers / subscriptions)
        queries = {f"q{number}": each.text for number, each in enumerate(found)}
        with LiveTrunk(self.spark, self.folder / f"run-{next(self._runs)}", queries, file) as trunk:
            trunk.round()
            # where a share is a few photons, equal values at its bounds add many to it
            off = 0.02 if answers * sky.items >= 10 * subscriptions else 0.25
            assert abs(trunk.answers / sky.items - answers) < off * answers, f"{trunk.answers:,} answers"
            yield trunk


_PARTS: Mapping[str, Callable[[SharingBench], None]] = {
    "one_answer": SharingBench.with_one,
    "ten_answers": SharingBench.with_ten,
    "spark": SharingBench.with_spark,
    "most": SharingBench.most,
    "mixed": SharingBench.mixed,
    "ranges": SharingBench.ranges,
    "million": SharingBench.million,
    "registration": SharingBench.registration,
    "idle": SharingBench.idle,
    "paper": SharingBench.paper,
}


def _resident_after(trunk: LiveTrunk) -> float:
    """The megabytes of the driver and its Python workers behind some rounds, when all of them have worked."""
    for _ in range(3):
        trunk.round()
    gc.collect()
    driver, workers, _ = resident(os.getpid())
    return driver + workers


def registering(present: Sequence[str], fresh: Sequence[str]) -> list[float]:
    """The milliseconds from text to plan of each `fresh` subscription, beside those that are `present`."""
    streams = (KnownStream(Source("photons", Path("photons"), item="photon"), StreamForm("lines", "<photons>")),)
    checking = Checking(Inputs((source("photons", Path("in")),)))
    wanted = {f"q{number}": checking.printed(f"q{number}", text) for number, text in enumerate(present)}
    found, following = subscriptions_of(None, wanted, 0, (), streams)
    plan = Plan(streams, found, Limits(), following)
    milliseconds = []
    for number, text in enumerate(fresh):
        name = f"fresh-{number}"
        begin = perf_counter()
        subscriptions_of(plan, {**wanted, name: checking.printed(name, text)}, 1, ("photons",), streams)
        milliseconds.append(1_000 * (perf_counter() - begin))
    return milliseconds
