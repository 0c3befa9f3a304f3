"""How fast photons come in: seven leaves of each out of line files, against Spark's own XML.

`fast_path_vs_from_xml`: items of the usual look; byte ranges, shredded in a task, against `from_xml` over text lines;
both hand seven columns of numbers to a sink that does nothing, and both are checked to hand over the same.
`slow_path_vs_from_xml`: the same with a comment in every item, which only a parser can read.
`q3_vs_spark_one`: one subscription through the trunk, its answers committed, against a streaming query of plain Spark
with `from_xml`, a filter and Parquet; the time is that of a whole trigger, without the start of the query.
`one_answer_per_item_vs_q3`: one subscription that gives an answer for each photon, with the values that q3 has, against
q3, both through the trunk: what it costs to write answers.
`http_vs_files`: q3 over photons that are pushed over HTTP, against the same in files (`parts/pushed.py`).
`kafka_lines_vs_files`, `kafka_lines_vs_loop`, `kafka_items_vs_loop`: q3 over photons in messages of a topic, a hundred
in each or one, against the same in files, and against a loop that only counts the messages (`parts/topics.py`).
`s3_vs_disk`: q3 over photons in an S3 server on this machine, against the same on its disk (`parts/stored.py`).
`s3_checkpoint_vs_disk`: the same with the checkpoint there, too.
`limits` has the ratios that are to be reached.

`--only` takes parts: fast, slow, q3, answers, http, kafka, kafka-lines, kafka-items, s3, s3-checkpoint.
The last two need the program of an S3 server, which `scripts/s3.sh` builds: where there is none they are left out, with
a note, or refused if they were asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from shutil import rmtree

import numpy as np
import pyarrow as pa

from anabranch.bench.harness import s3
from anabranch.bench.harness.epochs import Trials, of_trunk, workshop
from anabranch.bench.harness.parts import chosen_parts
from anabranch.bench.harness.timing import Figures, Rounds, Timings, compare, timed
from anabranch.bench.parts.pushed import pushed_vs_files
from anabranch.bench.parts.stored import stored_vs_disk
from anabranch.bench.parts.topics import GOAL, LINES, topics_vs_files, topics_vs_loop
from anabranch.bench.workloads.photons import LEAVES, Rows, Spark, photons_streamed, read_photons, source, write_files
from anabranch.columnar.items import untemplated as guided
from anabranch.columnar.scan.look import Look
from anabranch.columnar.scan.shred import Shredded, Shredder
from anabranch.columnar.scan.wanted import WantedColumns
from anabranch.spark.intake.storage import last_line_end, pieces
from anabranch.storage import Location
from anabranch.stream.limits import Limits
from anabranch.stream.photons import photons
from anabranch.stream.reading.lines import Carry, LineSplitter
from anabranch.stream.reading.parse import parse_item
from anabranch.stream.reading.source import Source
from anabranch.visible import note

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
    parts = _possible(chosen_parts(_PARTS, only), only)
    items = _QUICK_ITEMS if quick else _ITEMS
    with ExitStack() as held:
        # before Spark, whose workers need the keys
        bucket = held.enter_context(s3.served_bucket()) if _STORED.intersection(parts) else None
        spark, folder = held.enter_context(workshop())
        bench = IngestBench(spark, folder, items, Rounds.of(quick), bucket)
        found = {_PARTS[part][0]: _PARTS[part][1](bench) for part in parts}
    return {
        "items": items,
        "ratios": {name: each.ratio for name, each in found.items()},
        "limits": {name: limit for name, limit in _LIMITS.items() if name in found},
        **{name: each.figures(items) for name, each in found.items()},
    }


def _possible(parts: Sequence[str], only: Sequence[str]) -> list[str]:
    """The parts without those whose server is missing; an error if they were asked for."""
    left_out = [each for each in parts if each in _STORED] if s3.program() is None else []
    if left_out and only:
        raise s3.missing()
    if left_out:
        note(f"without {', '.join(left_out)}: {s3.missing()}")
    return [each for each in parts if each not in left_out]


@dataclass(frozen=True, slots=True)
class IngestBench:
    """The Spark, the folder and the size of the measurements; each part gives its timings."""

    spark: Spark
    folder: Path
    items: int
    rounds: Rounds
    bucket: Location | None = None

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

    def topics(self) -> Timings:
        """Photons in messages of a hundred lines, and photons in files."""
        return topics_vs_files(self.spark, self.folder / "kafka", q3_query(), self.items, self.rounds)

    def lines(self) -> Timings:
        """Photons in messages of a hundred lines, and a loop that counts these messages."""
        given = self.spark, self.folder / "kafka-lines", q3_query(), self.items, self.rounds
        return topics_vs_loop(*given, lines=LINES)

    def messages(self) -> Timings:
        """Photons in messages of their own, and a loop that counts these messages."""
        return topics_vs_loop(self.spark, self.folder / "kafka-items", q3_query(), self.items, self.rounds, lines=1)

    def stored(self) -> Timings:
        """Photons in an object store, and on a disk."""
        return self._stored("s3", state=False)

    def stored_whole(self) -> Timings:
        """Photons and checkpoint in an object store, and on a disk."""
        return self._stored("s3-checkpoint", state=True)

    def _stored(self, name: str, *, state: bool) -> Timings:
        assert self.bucket is not None, "a server was started for this part"
        stream, query = self._epochs(), q3_query()
        return stored_vs_disk(self.spark, self.bucket, stream, query, self.folder / name, self.rounds, state=state)

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
    "kafka": ("kafka_lines_vs_files", IngestBench.topics),
    "kafka-lines": ("kafka_lines_vs_loop", IngestBench.lines),
    "kafka-items": ("kafka_items_vs_loop", IngestBench.messages),
    "s3": ("s3_vs_disk", IngestBench.stored),
    "s3-checkpoint": ("s3_checkpoint_vs_disk", IngestBench.stored_whole),
}
"""By name of the part: the name of its figure, and the method that measures it."""
_LIMITS = {"kafka_lines_vs_files": GOAL}
"""By name of a figure: the ratio that it is to reach."""
_STORED = frozenset({"s3", "s3-checkpoint"})
"""The parts that need an S3 server."""


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
