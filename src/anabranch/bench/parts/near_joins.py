"""An interval join on a trunk that goes on, beside plain Spark's: the part `interval` of `anabranch bench joins`.

Pairs of photons (`workloads/near_pairs.py`), in files whose times go on, each of which is an epoch on both sides.
Spark's batches without data, which would only forget and count for nothing here, are turned off.
Before anything is timed, both sides are seen to give the same pairs, as far as ours have been answered.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice, tee
from pathlib import Path

from anabranch.bench.harness.live import LiveSparkQuery, LiveTrunk
from anabranch.bench.harness.timing import Rounds, Timings, compare
from anabranch.bench.workloads.near_pairs import NearPairs, long_files, near_pairs, pairs_in
from anabranch.bench.workloads.photons import Spark, source

_NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
_CHECKED = 3
"""The files of the comparison."""


@dataclass(frozen=True, slots=True)
class NearJoins:
    """Trunks with interval joins, in a folder, over files of so many photons."""

    spark: Spark
    folder: Path
    items: int

    def beside_spark(self, rounds: Rounds) -> Timings:
        """Compare one join with plain Spark's."""
        (asked,) = near_pairs(1)
        self.check(asked, min(2_000, self.items))
        ours, theirs = tee(long_files(self.folder / "near", self.items))
        with (
            self._trunk({"near": asked.query}, "ours") as trunk,
            self._spark(asked, "theirs") as other,
        ):
            return compare(lambda: trunk.feed(next(ours)), lambda: other.feed(next(theirs)), rounds, "interval")

    def many(self, number: int, rounds: Rounds) -> Timings:
        """Compare so many joins, which want other energies, with one."""
        files, again = tee(long_files(self.folder / "many", self.items))
        queries = {f"near{each}": asked.query for each, asked in enumerate(near_pairs(number))}
        with self._trunk(queries, "many-ours") as many, self._trunk({"one": queries["near0"]}, "one-ours") as one:
            label = f"{number} intervals against one"
            return compare(lambda: many.feed(next(files)), lambda: one.feed(next(again)), rounds, label)

    def check(self, asked: NearPairs, items: int) -> int:
        """How many pairs both sides give in some files; an error where they differ."""
        files = long_files(self.folder / "few", items)
        found: Counter[tuple[float, ...]] = Counter()
        with (
            self._trunk({"near": asked.query}, "few-ours") as trunk,
            self._spark(asked, "few-theirs") as other,
        ):
            for each in islice(files, _CHECKED):
                trunk.feed(each)
                found += pairs_in(trunk.texts()["near"])
                other.feed(each)
            rows = other.rows()
        known = max((time for _, _, time, _ in found), default=0.0)
        expected = Counter(tuple(map(float, each)) for each in rows if each[2] <= known)
        assert found == expected, f"{found.total():,} pairs here, {expected.total():,} of Spark"
        assert found.total() > items / 4, f"{found.total()} pairs"
        return found.total()

    def _trunk(self, queries: dict[str, str], name: str) -> LiveTrunk:
        folder = self.folder / name
        return LiveTrunk(self.spark, folder, queries, folder, source("photons", folder))

    def _spark(self, asked: NearPairs, name: str) -> LiveSparkQuery:
        self.spark.conf.set(_NO_DATA, "false")
        folder = self.folder / name
        return LiveSparkQuery(self.spark, folder, folder, asked.in_spark)
