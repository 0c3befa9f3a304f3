"""What a subscription costs that is not the only one: up to ten thousand of them over one stream of photons.

What they select stands in `bench/workloads/subscriptions.py`, how rounds are timed in `bench/harness/live.py`.
At one answer per photon each of N selects 1/N of the photons, at ten answers 10/N; so one (or ten) that select all of
them have as many answers to write, and a ratio shows what the number of subscriptions costs.

`n10000_vs_n1_equal`: ten thousand against one, at one answer per photon; likewise for fewer.
`n10000_vs_n10_equal`: ten thousand against ten, at ten answers per photon; likewise for a thousand.
`n10000_vs_spark_one`: ten thousand at ten answers per photon against one query of plain Spark: `from_xml`, a filter
that a hundredth of the photons pass, and Parquet.
`n32_vs_spark_32`: 32 at one answer per photon against 32 queries of plain Spark with the same conditions, all at once.

`registration_p99_ms`: one subscription more, from its text to the subscriptions of the next epoch, where there are ten
thousand.
`bytes_per_idle_subscription`: by how much the driver and its Python workers grow with those that no photon meets.
`paper`: the sharing paper's own workload (`bench/workloads/paper.py`).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from anabranch.bench.harness.epochs import workshop
from anabranch.bench.harness.live import LiveTrunk, SparkQueries
from anabranch.bench.harness.timing import Clock, Figures, Rounds, Timings, compare
from anabranch.bench.memory import resident
from anabranch.bench.workloads import paper as workload
from anabranch.bench.workloads.photons import Spark, source, write_files
from anabranch.bench.workloads.subscriptions import Sky
from anabranch.engine import Inputs
from anabranch.engine.preparing import Checking
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.membership import subscriptions_of
from anabranch.stream.limits import Limits
from anabranch.stream.reading.source import KnownStream, Source, StreamForm

_IDLE = '<hits>{{ for $p in stream("photons")/photons/photon where $p/coord/cel/ra > {}.{:04} return $p/en }}</hits>'
_SMALL = 50_000
"""Photons to get warm with: so many that a few cores have a range each, and Spark a Python worker for each."""


@dataclass(frozen=True, slots=True)
class SharingScale:
    """How much there is of everything."""

    items: int
    one_answer: tuple[int, ...]
    ten_answers: tuple[int, ...]
    """How many subscriptions are compared with one, and with ten."""
    most: int | None
    """How many are tried in a few rounds."""
    together: int = 32
    registered: int = 300
    seeds: int = 10

    @property
    def many(self) -> int:
        return self.one_answer[-1]


_ROUNDS = Rounds(6, 20)
"""More pairs than elsewhere: these ratios are near 1, and rounds of a second differ by a third."""
_BETWEEN, _FAR = Rounds(1, 2), Rounds(0, 1)
"""For what nobody claims; and for what is far from 1, and takes minutes."""
_FULL = SharingScale(200_000, (10, 100, 1_000, 10_000), (1_000, 10_000), 100_000)
_QUICK = SharingScale(20_000, (10, 100), (100,), None, together=4, registered=100, seeds=1)


def measure(quick: bool) -> Figures:
    """Run the bench."""
    with workshop() as (spark, folder):
        return Bench(spark, folder, _QUICK if quick else _FULL, Rounds.of(quick) if quick else _ROUNDS).measure()


@dataclass(slots=True)
class Bench:
    """One run of it; `measure` fills in the rest."""

    spark: Spark
    folder: Path
    scale: SharingScale
    rounds: Rounds
    ratios: dict[str, float] = field(default_factory=dict)
    spreads: dict[str, Figures] = field(default_factory=dict)
    one_answer: dict[int, float] = field(default_factory=dict)
    ten_answers: dict[int, float] = field(default_factory=dict)
    """Photons a second, by how many subscriptions there are."""
    _runs: count[int] = field(default_factory=count)

    def measure(self) -> Figures:
        scale = self.scale
        file, sky = self.photons(scale.items)
        small, _ = self.photons(_SMALL)
        self.compare_with_few(file, sky, 1, scale.one_answer, self.one_answer)
        self.compare_with_few(file, sky, 10, scale.ten_answers, self.ten_answers)
        with self.trunk(file, sky, scale.many, 10) as trunk:
            one = SparkQueries(self.spark, self.folder / "spark-one", sky.subscriptions(1, 0.01), small, file)
            self.compare(f"n{scale.many}_vs_spark_one", sky, partial(trunk.round, small), one.round, self.rounds)
        self.compare_with_as_many(small)
        if scale.most:
            with self.trunk(file, sky, scale.most, 1) as trunk:
                seconds = [trunk.round() for _ in range(5)]
            self.one_answer[scale.most] = sky.items / median(seconds[2:])
        texts = [each.text for each in sky.subscriptions(scale.many + scale.registered, 1 / scale.many)]
        registered = registering(texts[: scale.many], texts[scale.many :])
        return {
            "items": sky.items,
            "ratios": self.ratios,
            "spread": self.spreads,
            "items_per_second": {"one_answer": _in_order(self.one_answer), "ten_answers": _in_order(self.ten_answers)},
            "registration_p99_ms": quantiles(registered, n=100)[-1],
            "registration_ms": median(registered),
            "bytes_per_idle_subscription": self.idle(small, scale.many),
            "paper": workload.figures(range(scale.seeds)),
        }

    def compare_with_as_many(self, small: Path) -> None:
        """Some subscriptions against as many queries of plain Spark, over a file that keeps both busy."""
        number = self.scale.together
        file, sky = self.photons(3 * self.scale.items)
        with self.trunk(file, sky, number, 1) as trunk:
            conditions = sky.subscriptions(number, 1 / number)
            queries = SparkQueries(self.spark, self.folder / "spark-many", conditions, small, file)
            self.compare(f"n{number}_vs_spark_{number}", sky, partial(trunk.round, small), queries.round, _FAR)

    def compare_with_few(
        self, file: Path, sky: Sky, answers: int, numbers: Sequence[int], rates: dict[int, float]
    ) -> None:
        """Some numbers of subscriptions against as many as there are answers, each of which takes everything."""
        with self.trunk(file, sky, answers, answers) as few:
            for number in numbers:
                with self.trunk(file, sky, number, answers) as more:
                    rounds = self.rounds if number == numbers[-1] else _BETWEEN
                    found = self.compare(f"n{number}_vs_n{answers}_equal", sky, more.round, few.round, rounds)
                rates[number] = sky.items / median(found.first)
                rates[answers] = sky.items / median(found.second)

    def compare(self, name: str, sky: Sky, ours: Clock, theirs: Clock, rounds: Rounds) -> Timings:
        """Compare the seconds of reading the same file again."""
        found = compare(ours, theirs, rounds, name)
        self.ratios[name] = found.ratio
        self.spreads[name] = found.figures(sky.items)
        return found

    def idle(self, file: Path, subscriptions: int) -> float:
        """The bytes that one takes which has nothing to do."""
        levels = []
        for number in (1, subscriptions):
            queries = {f"idle-{each}": _IDLE.format(400 + each // 10_000, each % 10_000) for each in range(number)}
            with LiveTrunk(self.spark, self.folder / f"run-{next(self._runs)}", queries, file) as trunk:
                for _ in range(3):
                    trunk.round()
                gc.collect()
                driver, workers, _ = resident(os.getpid())
            levels.append(driver + workers)
        return (levels[1] - levels[0]) * 1e6 / subscriptions

    def photons(self, items: int) -> tuple[Path, Sky]:
        """A file of photons, and what is in it."""
        folder = self.folder / f"photons-{items}"
        write_files([folder], 1, items)
        (file,) = folder.iterdir()
        return file, Sky(file.read_text().splitlines())

    @contextmanager
    def trunk(self, file: Path, sky: Sky, subscriptions: int, answers: int) -> Iterator[LiveTrunk]:
        """A trunk with so many subscriptions, which together give so many answers per photon."""
        found = sky.subscriptions(subscriptions, answers / subscriptions)
        queries = {f"q{number}": each.text for number, each in enumerate(found)}
        with LiveTrunk(self.spark, self.folder / f"run-{next(self._runs)}", queries, file) as trunk:
            trunk.round()
            # where a share is a few photons, those of equal value that come with them are many
            off = 0.02 if answers * sky.items >= 10 * subscriptions else 0.25
            assert abs(trunk.answers / sky.items - answers) < off * answers, f"{trunk.answers:,} answers"
            yield trunk


def _in_order(rates: Mapping[int, float]) -> Figures:
    return {str(number): rates[number] for number in sorted(rates)}


def registering(present: Sequence[str], fresh: Sequence[str]) -> list[float]:
    """The milliseconds that each of some subscriptions takes, from its text to the plan, after those that are there."""
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
