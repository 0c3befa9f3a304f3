"""How fast photons come in: seven leaves of each out of line files, against Spark's own XML.

`fast_path_vs_from_xml`: items of the usual look; byte ranges, shredded in a task, against `from_xml` over text lines;
both hand seven columns of numbers to a sink that does nothing, and both are checked to hand over the same.
`slow_path_vs_from_xml`: the same with a comment in every item, which only a parser can read.
`q3_vs_spark_one`: one subscription through the trunk, its answers committed, against a streaming query of plain Spark
with `from_xml`, a filter and Parquet; the time is that of a whole trigger, without the start of the query.
`one_answer_per_item_vs_q3`: one subscription that gives an answer for each photon, with the values that q3 has, against
q3, both through the trunk: what it costs to write answers.
`http_vs_files`: q3 over photons that are pushed over HTTP, against the same in files (`parts/pushed.py`).

`--only` takes parts: fast, slow, q3, answers, http.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from shutil import rmtree

import numpy as np
import pyarrow as pa

from anabranch.bench.harness.epochs import Trials, of_trunk, workshop
from anabranch.bench.harness.parts import chosen_parts
from anabranch.bench.harness.timing import Figures, Rounds, Timings, compare, timed
from anabranch.bench.parts.pushed import pushed_vs_files
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
from anabranch.stream.reading.source import Source

_ITEMS, _QUICK_ITEMS = 800_000, 20_000
_RANGE = 16 << 20
_EPOCHS = 3
_COLUMNS = ("coord.cel.*", "coord.det.*", "phc", "en", "det_time")
_Q3 = """en >= 1.3 and coord.cel.ra >= 130.5 and coord.cel.ra <= 135.5
    and coord.cel.dec >= -48.0 and coord.cel.dec <= -45.0"""
_EVERY = """\
<photons>
{ for $p in stream("photons")/photons/photon
  where $p/en >= 0
  return
    <rxj>
      { $p/coord/cel/ra }
      { $p/coord/cel/dec }
      { $p/en } { $p/det_time }
    </rxj> }
</photons>
"""


def measure(quick: bool, only: Sequence[str] = ()) -> Figures:
    """Run the bench, or some of its parts."""
    parts = chosen_parts(_PARTS, only)
    items = _QUICK_ITEMS if quick else _ITEMS
    with workshop() as (spark, folder):
        bench = IngestBench(spark, folder, items, Rounds.of(quick))
        found = {_PARTS[part][0]: _PARTS[part][1](bench) for part in parts}
    return {
        "items": items,
        "ratios": {name: each.ratio for name, each in found.items()},
        **{name: each.figures(items) for name, each in found.items()},
    }


@dataclass(frozen=True, slots=True)
class IngestBench:
    """The Spark, the folder and the size of the measurements; each part gives its timings."""

    spark: Spark
    folder: Path
    items: int
    rounds: Rounds

    def usual(self) -> Timings:
        """Items of the usual look."""
        return self._leaves("usual", "<photon>")

    def unusual(self) -> Timings:
        """Items with a comment."""
        return self._leaves("unusual", "<photon><!-- seen -->")

    def q3(self) -> Timings:
        """One subscription with its answers on the disk, by us and by Spark: an epoch that is not the first."""
        stream, trials = self._epochs(), Trials(self.spark, self.folder / "q3")
        query = q3_query()
        rows = read_photons(self.spark.read.text(str(stream.path))).where(_Q3).count()
        answers = self._answers(query)
        assert answers == rows, f"{answers:,} answers, {rows:,} of Spark"

        def theirs() -> float:
            found = photons_streamed(self.spark, self.folder / "epochs").where(_Q3)
            return trials.theirs(found.selectExpr("coord.cel.ra", "coord.cel.dec", "en", "det_time"), _EPOCHS)

        return compare(lambda: trials.ours([stream], {"q3": query}), theirs, self.rounds, "q3")

    def answers(self) -> Timings:
        """A subscription that answers each photon, and q3."""
        stream, trials = self._epochs(), Trials(self.spark, self.folder / "answers")
        answers = self._answers(_EVERY)
        assert answers == _EPOCHS * self.items, f"{answers:,} answers for {_EPOCHS * self.items:,} photons"
        query = q3_query()
        return compare(
            lambda: trials.ours([stream], {"every": _EVERY}),
            lambda: trials.ours([stream], {"q3": query}),
            self.rounds,
            "an answer for each item against q3",
        )

    def pushed(self) -> Timings:
        """Photons that are pushed over HTTP, and photons in files."""
        return pushed_vs_files(self.spark, self.folder / "http", q3_query(), self.items, self.rounds)

    def _epochs(self) -> Source:
        folder = self.folder / "epochs"
        if not folder.exists():
            write_files([folder], _EPOCHS, self.items)
        return source("photons", folder)

    def _answers(self, query: str) -> int:
        """How many answers a query gives, each of them checked to be one of its own."""
        folder = self.folder / "counted"
        _, outcome = of_trunk(self.spark, [self._epochs()], {"counted": query}, folder)
        found = outcome.progress.answers["counted"]
        assert sum(each.count("<rxj>") for each in outcome.answers["counted"]) == found, "what is counted is answers"
        rmtree(folder)
        return found

    def _leaves(self, name: str, start_tag: str) -> Timings:
        """Seven leaves to nowhere, by us and by Spark."""
        write_files([self.folder / name], 1, self.items, start_tag)
        (path,) = source("photons", self.folder / name).files
        ours = self._shredded(Path(str(path)))
        theirs = read_photons(self.spark.read.text(str(path))).selectExpr(*_COLUMNS)
        assert _sums(ours) == _sums(theirs), "both must read the same"
        first, second = (partial(timed, partial(_drop, rows)) for rows in (ours, theirs))
        return compare(first, second, self.rounds, f"{name} items")

    def _shredded(self, path: Path) -> Rows:
        ranges = _ranges(path)
        task = partial(_shred, str(path), ranges, _wanted(next(photons(1, 1))))
        rows = self.spark.range(0, len(ranges), 1, len(ranges))
        return rows.mapInArrow(task, ", ".join(f"{leaf} double" for leaf in LEAVES))


_PARTS: Mapping[str, tuple[str, Callable[[IngestBench], Timings]]] = {
    "fast": ("fast_path_vs_from_xml", IngestBench.usual),
    "slow": ("slow_path_vs_from_xml", IngestBench.unusual),
    "q3": ("q3_vs_spark_one", IngestBench.q3),
    "answers": ("one_answer_per_item_vs_q3", IngestBench.answers),
    "http": ("http_vs_files", IngestBench.pushed),
}
"""By name of the part: the name of its figure, and the method that measures it."""


def q3_query() -> str:
    """Query 3 of the sharing paper."""
    return files("anabranch").joinpath("examples", "rxj.xq").read_text("utf-8")


def _ranges(path: Path) -> list[tuple[int, int]]:
    """The pieces of a file of lines as the intake would cut it."""
    size = path.stat().st_size
    ends = [last_line_end(str(path), 0, end) for end in range(_RANGE, size, _RANGE)]
    return list(zip([0, *ends], [*ends, size], strict=True))


def _wanted(item: str) -> WantedColumns:
    """The columns of all numbers in items that look like this one."""
    raw = item.encode()
    look = Look.learn([(raw, parse_item(raw, Limits()))])
    assert look is not None, "photons are plain"
    leaves = [number for number, part in enumerate(look.parts) if part.has_text]
    return WantedColumns.of(look, leaves, leaves)


def _shred(
    path: str, ranges: list[tuple[int, int]], wanted: WantedColumns, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The work of a task: shred the leaves in the ranges whose numbers it is given."""
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
