"""How fast photons come in: seven leaves of each out of line files, against Spark's own XML.

`fast_path_vs_from_xml`: items of the usual look; byte ranges, shredded in a task, against `from_xml` over text lines;
both hand seven columns of numbers to a sink that does nothing, and both are checked to hand over the same.
`slow_path_vs_from_xml`: the same with a comment in every item, which only a parser can read.
`q3_vs_spark_one`: one subscription through the trunk, its answers committed, against a streaming query of plain Spark
with `from_xml`, a filter and Parquet; the time is that of a whole trigger, without the start of the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa

from anabranch.bench.harness.epochs import Trials, workshop
from anabranch.bench.harness.timing import Figures, Rounds, Timings, compare, timed
from anabranch.bench.workloads.photons import LEAVES, Rows, Spark, photons_streamed, read_photons, source, write_files
from anabranch.columnar.items import untemplated as guided
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.shred import Shredded, Shredder
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.spark.intake.storage import last_line_end, pieces
from anabranch.stream.limits import Limits
from anabranch.stream.photons import photons
from anabranch.stream.reading.lines import Carry, LineSplitter
from anabranch.stream.reading.parse import parse_item

_ITEMS, _QUICK_ITEMS = 800_000, 20_000
_RANGE = 16 << 20
_EPOCHS = 3
_COLUMNS = ("coord.cel.*", "coord.det.*", "phc", "en", "det_time")
_Q3 = """en >= 1.3 and coord.cel.ra >= 130.5 and coord.cel.ra <= 135.5
    and coord.cel.dec >= -48.0 and coord.cel.dec <= -45.0"""


def measure(quick: bool) -> Figures:
    """Run the bench."""
    items = _QUICK_ITEMS if quick else _ITEMS
    rounds = Rounds.of(quick)
    with workshop() as (spark, folder):
        bench = _Bench(spark, folder, items)
        found = {
            "fast_path_vs_from_xml": bench.leaves("usual", "<photon>", rounds),
            "slow_path_vs_from_xml": bench.leaves("unusual", "<photon><!-- seen -->", rounds),
            "q3_vs_spark_one": bench.q3(rounds),
        }
    return {
        "items": items,
        "ratios": {name: each.ratio for name, each in found.items()},
        **{name: each.figures(items) for name, each in found.items()},
    }


@dataclass(frozen=True, slots=True)
class _Bench:
    spark: Spark
    folder: Path
    items: int

    def leaves(self, name: str, start_tag: str, rounds: Rounds) -> Timings:
        """Seven leaves to nowhere, by us and by Spark."""
        write_files([self.folder / name], 1, self.items, start_tag)
        (path,) = source("photons", self.folder / name).files
        ours, theirs = self._shredded(path), read_photons(self.spark.read.text(str(path))).selectExpr(*_COLUMNS)
        assert _sums(ours) == _sums(theirs), "both must read the same"
        first, second = (partial(timed, partial(_drop, rows)) for rows in (ours, theirs))
        return compare(first, second, rounds, f"{name} items")

    def q3(self, rounds: Rounds) -> Timings:
        """One subscription with its answers on the disk, by us and by Spark: an epoch that is not the first."""
        write_files([self.folder / "epochs"], _EPOCHS, self.items)
        query = files("anabranch").joinpath("examples", "rxj.xq").read_text("utf-8")
        stream = source("photons", self.folder / "epochs")
        trials = Trials(self.spark, self.folder / "runs")

        def theirs() -> float:
            found = photons_streamed(self.spark, self.folder / "epochs").where(_Q3)
            return trials.theirs(found.selectExpr("coord.cel.ra", "coord.cel.dec", "en", "det_time"), _EPOCHS)

        return compare(lambda: trials.ours([stream], {"q3": query}), theirs, rounds, "q3")

    def _shredded(self, path: Path) -> Rows:
        ranges = _ranges(path)
        task = partial(_shred, str(path), ranges, _wanted(next(photons(1, 1))))
        rows = self.spark.range(0, len(ranges), 1, len(ranges))
        return rows.mapInArrow(task, ", ".join(f"{leaf} double" for leaf in LEAVES))


def _ranges(path: Path) -> list[tuple[int, int]]:
    """The pieces of a file of lines as the intake would cut it."""
    size = path.stat().st_size
    ends = [last_line_end(str(path), 0, end) for end in range(_RANGE, size, _RANGE)]
    return list(zip([0, *ends], [*ends, size], strict=True))


def _wanted(item: str) -> WantedColumns:
    """All numbers in items like one."""
    raw = item.encode()
    look = Look.learn([(raw, parse_item(raw, Limits()))])
    assert look is not None, "photons are plain"
    leaves = [number for number, part in enumerate(look.parts) if part.has_text]
    return WantedColumns.of(look, leaves, leaves)


def _shred(
    path: str, ranges: list[tuple[int, int]], wanted: WantedColumns, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What a task does: the leaves in the ranges whose numbers it is given."""
    for number in (number for batch in batches for number in batch.column(0).to_pylist()):
        start, end = ranges[number]
        shredder = Shredder(LineSplitter(Limits(), Carry(start)), Limits())
        for piece in pieces(path, start, end):
            for shredded in shredder.feed(piece, wanted):
                yield _columns(shredded)


def _columns(shredded: Shredded) -> pa.RecordBatch:
    known = shredded.fits | guided.fill(shredded, Limits())
    assert np.all(known), "photons are good items"
    assert shredded.wanted is not None, "columns are wanted"
    parts = shredded.wanted.look.parts
    rows = {parts[column].name: shredded.values[row] for row, column in enumerate(shredded.wanted.columns)}
    return pa.RecordBatch.from_arrays([pa.array(rows[leaf]) for leaf in LEAVES], names=list(LEAVES))


def _drop(rows: Rows) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _sums(rows: Rows) -> list[object]:
    """The number of rows and exact sums: all values have four decimals at most."""
    sums = (f"sum(cast(round({leaf} * 10000) as bigint))" for leaf in LEAVES)
    return list(rows.selectExpr("count(1)", *sums).collect()[0])
