"""The trunk: one streaming query that reads all streams once and answers all subscriptions.

The life of an epoch: Spark asks the intake how far it may go and hands the ranges to `_Trunk.epoch`; one Spark job
runs `task.work` on them, where each item is parsed once and shown to every subscription of its stream; the tasks
write segments and return small reports; the driver adds the reports to the answer log, in stream order.
Nothing else is done with the batch, since every further action would read the source again.

Here a run goes to the end of finite inputs and lives in a folder that belongs to it alone.
The order of an answer is that of its stream, whatever the number of epochs, ranges and cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import sleep

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from anabranch.language import check, parse, print_query
from anabranch.reference.calls import PythonFunction
from anabranch.reference.per_item import ItemQuery, per_item
from anabranch.spark import intake
from anabranch.spark.answers import Answer, AnswerLog, Frame
from anabranch.spark.faults import translated
from anabranch.spark.plan import Plan, PlanFile, StreamPlan
from anabranch.spark.segments import Chunk, read_chunk
from anabranch.spark.task import REPORTS, Job, Report, answer_ranges
from anabranch.stream.elements import DeadLetter
from anabranch.stream.limits import Limits
from anabranch.stream.source import Source

EPOCH_BYTES = 16 << 20
"""How much an epoch reads unless told otherwise: a few seconds of work, so that a run shows how it gets on."""
_SAMPLE = 400
_PATIENCE = 0.1
_SPARKS = (PySparkException, Py4JError)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come, told after each epoch; answers and samples by subscription."""

    epochs: int
    bytes_read: int
    bytes_total: int
    items: int
    dead_letters: int
    answers: Mapping[str, int]
    samples: Mapping[str, str]
    """The beginning of one answer of the latest epoch that had any."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run gave; answers and dead letters are read from the run's folder, which must still be there."""

    answers: Mapping[str, Answer]
    progress: Progress
    _log: AnswerLog

    def dead_letters(self) -> Iterator[DeadLetter]:
        """What was set aside, in stream order within each epoch."""
        return self._log.dead_letters()


def run_queries(
    spark: SparkSession,
    sources: Sequence[Source],
    queries: Mapping[str, str],
    work: Path,
    limits: Limits | None = None,
    *,
    epoch_bytes: int = EPOCH_BYTES,
    functions: Mapping[str, PythonFunction] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Answer the queries, given by name, over the streams to their end; `work` is an empty folder for this run.

    Raises `QueryError` for a query that is wrong, `Unsupported` for one that Spark cannot answer yet, and `StreamError`
    for a stream that cannot be read or that carries control elements; nothing is answered in part.
    `on_progress` is called on another thread than the caller's.
    """
    inputs = {source.name: source.schema for source in sources}
    registered = dict(functions or {})
    checked = {
        name: check(parse(text, name), text, inputs=inputs, functions=registered, name=name).query
        for name, text in queries.items()
    }
    compiled = {name: per_item(query, registered, queries[name]) for name, query in checked.items()}
    needed = {query.stream for query in compiled.values()}
    limits = limits or Limits()
    plan = Plan(
        streams=tuple(StreamPlan.of(source, limits) for source in sources if source.name in needed),
        subscriptions=tuple((name, print_query(query)) for name, query in checked.items()),
        limits=limits,
        epoch_bytes=epoch_bytes,
        cores=spark.sparkContext.defaultParallelism,
    )
    trunk = _Trunk(plan, compiled, tuple(registered.items()), work.absolute(), on_progress)
    trunk.run(spark)
    return trunk.outcome()


class _Trunk:
    """The driver's side of one run; its state changes only in `epoch`, which Spark calls once at a time."""

    def __init__(
        self,
        plan: Plan,
        queries: Mapping[str, ItemQuery],
        functions: tuple[tuple[str, PythonFunction], ...],
        work: Path,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self._queries = queries
        self._functions = functions
        self._work = work
        self._on_progress = on_progress
        segments = work / "segments"
        segments.mkdir(parents=True)
        self._plan = PlanFile.save(plan, work)
        self._log = AnswerLog(segments, len(queries))
        self._carries: dict[str, str] = {}
        total = sum(file.size for stream in plan.streams for file in stream.partition.files)
        self._progress = Progress(0, 0, total, 0, 0, dict.fromkeys(queries, 0), {})
        self._failure: Exception | None = None

    def run(self, spark: SparkSession) -> None:
        """Start the streaming query, wait for its end, and say in our words what went wrong."""
        try:
            query = self._start(spark)
            try:
                while query.isActive:
                    sleep(_PATIENCE)  # rather than in a call of Spark, which a signal would break noisily
                query.awaitTermination()
            finally:
                query.stop()
        except _SPARKS as error:
            if self._failure is None or isinstance(self._failure, _SPARKS):
                raise translated(self._failure or error) from error
            raise self._failure from None

    def _start(self, spark: SparkSession) -> StreamingQuery:
        spark.dataSource.register(intake.RangeSource)
        ranges = (
            spark.readStream.format(intake.NAME)
            .option("plan", str(self._plan.path))
            .option("digest", self._plan.digest)
            .load()
        )
        return (
            ranges.writeStream.foreachBatch(self.epoch)
            .option("checkpointLocation", str(self._work / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )

    def epoch(self, batch: DataFrame, number: int) -> None:
        """Run one epoch. All exceptions go on to Spark: an epoch that hides one would count as done."""
        try:
            job = Job(self._plan, self._log.folder, number, dict(self._carries), self._functions)
            rows = batch.mapInArrow(partial(answer_ranges, job), REPORTS).collect()
            self._take([Report.from_json(row["report"]) for row in sorted(rows, key=lambda row: row["sequence"])])
        except Exception as error:
            self._failure = error
            raise

    def _take(self, reports: Sequence[Report]) -> None:
        """Add what the tasks report, or raise the first of their errors."""
        for report in reports:
            if report.fault is not None:
                raise report.fault.error()
        chunks = [chunk for report in reports for chunk in report.chunks]
        self._log.extend(chunks)
        for report in reports:
            for path, carry in report.carries.items():
                if carry is None:
                    self._carries.pop(path, None)
                else:
                    self._carries[path] = carry
        self._progress = self._advanced(reports, chunks)
        if self._on_progress is not None:
            self._on_progress(self._progress)

    def _advanced(self, reports: Sequence[Report], chunks: Sequence[Chunk]) -> Progress:
        before = self._progress
        names = list(self._queries)
        answers = dict(before.answers)
        samples = dict(before.samples)
        sampled: set[str] = set()
        for chunk in chunks:
            if chunk.subscription < 0:
                continue
            name = names[chunk.subscription]
            answers[name] += chunk.entries
            if self._on_progress is not None and name not in sampled:
                samples[name] = read_chunk(self._log.folder, chunk, min(chunk.first, _SAMPLE))
                sampled.add(name)
        return Progress(
            before.epochs + 1,
            before.bytes_read + sum(report.bytes_read for report in reports),
            before.bytes_total,
            before.items + sum(report.items for report in reports),
            before.dead_letters + sum(chunk.entries for chunk in chunks if chunk.subscription < 0),
            answers,
            samples,
        )

    def outcome(self) -> Outcome:
        """What the run gave, once it is over."""
        answers: dict[str, Answer] = {}
        for number, (name, query) in enumerate(self._queries.items()):
            frame = Frame(query.opening, query.closing, query.empty)
            answers[name] = Answer(name, frame, self._log.folder, self._log.chunks(number))
        return Outcome(answers, self._progress, self._log)
