"""The trunk: one streaming query that reads all streams once and answers all subscriptions.

The life of an epoch: Spark asks the intake how far it may go and hands the ranges to `Trunk.epoch`.
What the epoch runs with is written down; one Spark job runs `task.work` on the ranges, where each item is parsed once
and shown to every subscription of its stream, and `shard.work` on what goes on to branches; the tasks write segments
and states and return small reports; the driver publishes the manifest, which makes the epoch true; then sinks move.
Nothing else is done with the batch, since every further action would read the source again, but where accents come in
the midst of it (`evolving.py`).

Killed at any point, the next run is handed the same epoch with the same ranges: a plan that was written is used again,
an epoch whose manifest exists is passed over, a sink goes on from where it was.
The order of an answer is that of its stream, whatever the number of epochs, ranges and cores.

Streams and subscriptions are wanted by whoever calls `want`, from any thread and at any time; they take effect with the
next epoch, and the streaming query never restarts for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Condition, Lock
from time import monotonic, sleep
from types import TracebackType

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from anabranch.errors import UsageError
from anabranch.reference.calls import PythonFunction
from anabranch.spark import durable, intake, states
from anabranch.spark.checkpoint import Checkpoint, RunLock
from anabranch.spark.crash import point
from anabranch.spark.evolution_log import EvolutionLogs
from anabranch.spark.faults import translated
from anabranch.spark.intake_settings import IntakeSettings, IntakeStream
from anabranch.spark.job import Job
from anabranch.spark.manifest import Manifest, Manifests
from anabranch.spark.membership import subscriptions_of
from anabranch.spark.metrics import Metrics
from anabranch.spark.order import OrderLog
from anabranch.spark.plan import Plan, StreamPlan
from anabranch.spark.plans import PlanFile, Plans
from anabranch.spark.recovery import check_spark, sweep_spark
from anabranch.spark.retention import Retention
from anabranch.spark.segments import read_index
from anabranch.spark.session import jvm_of
from anabranch.spark.sinks.delivery import Sinks
from anabranch.spark.stages import manifest_of, run_epoch
from anabranch.spark.wanted import Epoch, Listener, Settings, Wanted
from anabranch.stream.source import Source

_PATIENCE = 0.1
_SPARKS = (PySparkException, Py4JError, ConnectionError)
"""What calls of Spark raise; the last of them when its JVM is gone."""


class Trunk:
    """A trunk on its checkpoint; as a context it holds the checkpoint's lock.

    `epoch` is called by Spark, one at a time, and is the only one to change what epochs have led to.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        settings: Settings,
        functions: Mapping[str, PythonFunction] | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._functions = dict(functions or {})
        self._shards = settings.shards or spark.sparkContext.defaultParallelism
        self._listener = listener or Listener()
        self._folder = folder
        self._held = ExitStack()
        self.query: StreamingQuery | None = None
        """Spark's side of it, once it is started; it is never another."""
        self._turn = Lock()
        """Held by an epoch, and by whoever must not meet one half done."""
        self._wishes = Lock()
        """Held while what is wanted changes."""
        self._moved = Condition()
        self._stopping = False
        self._failure: Exception | None = None

    # --- from outside -------------------------------------------------------------------------------------

    def __enter__(self) -> Trunk:
        checkpoint = self.checkpoint = Checkpoint.make(self._folder)
        self.run = self._held.enter_context(RunLock(checkpoint, jvm_of(self._spark))).run
        with ExitStack() as on_error:
            on_error.callback(self._held.close)
            self._manifests = Manifests(checkpoint.manifests)
            self._plans = Plans(checkpoint.plans)
            sweep_spark(checkpoint)
            self._last = check_spark(checkpoint, self._manifests)
            self._told = self._last.epoch if self._last else -1
            self._plan = self._plans.newest()
            self._retention = Retention(checkpoint, self._settings.keep)
            self._retention.sweep()
            states.sweep(checkpoint.states, self._last.states.values() if self._last else ())
            self._logs = EvolutionLogs(checkpoint.evolution)
            self._logs.sweep(self._last.evolution if self._last else {})
            self._sinks = Sinks(checkpoint, self._functions, self._listener.warning)
            self._orders: dict[str, OrderLog] = {}
            self._wanted = Wanted({}, {})
            self._planned: tuple[Wanted, tuple[StreamPlan, ...], PlanFile] | None = None
            """The plan of the last epoch, and for which wishes and streams it was made."""
            on_error.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._held.close()

    def want(self, wanted: Wanted) -> None:
        """Do this from the next epoch on; waits for the epoch at work."""
        with self._turn:
            for source in wanted.streams.values():
                self._follow(source)
            self._sinks.set(wanted.sinks, wanted.dead_letters, wanted.late_items)
            streams = tuple(IntakeStream.of(source) for source in wanted.streams.values())
            before = IntakeSettings.load(self.checkpoint) if self.checkpoint.intake.exists() else None
            IntakeSettings(
                streams,
                wanted.epoch_bytes,
                wanted.epoch_files,
                self._spark.sparkContext.defaultParallelism,
                self._settings.finite,
                before.followed_by(streams) if before else (),
            ).save(self.checkpoint)
            with self._wishes:
                self._wanted = wanted

    def want_more(self, subscriptions: Mapping[str, str]) -> None:
        """Answer these too, by name, from the next epoch on; waits for nothing."""
        with self._wishes:
            self._wanted = replace(self._wanted, subscriptions={**self._wanted.subscriptions, **subscriptions})

    def start(self, *, once: bool) -> None:
        """Begin: to the end of what is there (`once`), or until stopped."""
        self._spark.dataSource.register(intake.RangeSource)
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", f"trunk {self.checkpoint.folder}")
        ranges = self._spark.readStream.format(intake.NAME).option("checkpoint", str(self.checkpoint.folder)).load()
        writer = ranges.writeStream.foreachBatch(self.epoch).option("checkpointLocation", str(self.checkpoint.spark))
        trigger = {"availableNow": True} if once else {"processingTime": f"{self._settings.trigger_ms} milliseconds"}
        try:
            self.query = writer.trigger(**trigger).start()
        except _SPARKS as error:
            raise translated(error) from error

    @property
    def active(self) -> bool:
        """Whether epochs may still come."""
        if self.query is None or self._stopping:
            return False
        try:
            return bool(self.query.isActive)
        except _SPARKS as error:
            self._failure = self._failure or error
            return False

    def wait(self, until: Callable[[], bool] = lambda: False) -> None:
        """Wait for the end, or for something else, and say in our words what went wrong."""
        while self.active and not until():
            sleep(_PATIENCE)  # rather than in a call of Spark, which a signal would break noisily
        if not self.active:
            self.raise_failure()

    def stop(self) -> None:
        """End after the epoch at work; it may be called again."""
        with self._turn:
            self._stopping = True
        if self.query is not None:
            try:
                self.query.stop()
            except _SPARKS as error:
                raise translated(error) from error
        with self._moved:
            self._moved.notify_all()

    def raise_failure(self) -> None:
        """Raise what ended the trunk, if it was an error."""
        failure = self._failure
        if failure is None and self.query is not None and not self._stopping:
            failure = self.query.exception()
        if failure is None or isinstance(failure, _Stopped):
            return
        if isinstance(failure, _SPARKS):
            raise translated(failure) from failure
        raise failure

    def beyond(self, epoch: int, unless: Callable[[], bool] = lambda: False) -> bool:
        """Wait until an epoch after this one is committed; False if none will come, or `unless` has become true."""
        with self._moved:
            while self.last <= epoch and self.active and not unless():
                self._moved.wait(_PATIENCE)
        return self.last > epoch

    @property
    def last(self) -> int:
        """The newest epoch that is committed and of which the listener has heard, -1 if there is none."""
        return self._told

    @property
    def plan(self) -> Plan | None:
        """What the newest epoch runs or ran with."""
        return self._plan

    # --- epochs -------------------------------------------------------------------------------------------

    def epoch(self, batch: DataFrame, number: int) -> None:
        """Run one epoch. All exceptions go on to Spark: an epoch that hides one would count as done."""
        try:
            with self._turn:
                if self._stopping:
                    raise _Stopped
                point("epoch-begun", number)
                if not self._manifests.has(number):
                    self._run_epoch(batch, number)
        except Exception as error:
            self._failure = self._failure or error
            raise
        finally:
            with self._moved:
                self._moved.notify_all()

    def _run_epoch(self, batch: DataFrame, number: int) -> None:
        begun = monotonic()
        self._warn()
        file = self._begun_plan(number)
        plan = self._plan = file.load()
        point("plan-written", number)
        planned = monotonic()
        carries = self._last.carries if self._last else {}
        before = self._last.epoch if self._last else None
        evolution = self._last.evolution if self._last else {}
        given = Job(file, self.checkpoint, number, carries, tuple(self._functions.items()), before, evolution)
        job, reports = run_epoch(batch, given, plan.shards)
        point("job-done", number)
        worked = monotonic()
        manifest = manifest_of(job, self.run, self._last, reports, self._logs)
        point("changes-logged", number)
        self._settle(manifest)
        self._manifests.publish(manifest)
        self._last = manifest
        point("manifest-published", number)
        states.sweep(self.checkpoint.states, manifest.states.values())
        if manifest.evolution != evolution:
            self._logs.sweep(manifest.evolution)
        point("states-swept", number)
        self._tell_ended(plan, manifest)
        published = monotonic()
        self._sinks.deliver(manifest, plan)
        point("sinks-moved", number)
        self._retention.add(number, manifest.size)
        answers = read_index(self.checkpoint.segments, manifest.segments).entries()
        seconds = (planned - begun, worked - planned, published - worked, monotonic() - published)
        cpu = sum(each.cpu for each in reports)
        self._listener.epoch(Epoch(manifest, plan, Metrics.of(manifest, plan, answers, seconds), cpu))
        self._told = number

    def _tell_ended(self, plan: Plan, manifest: Manifest) -> None:
        """Say which subscriptions an accent has ended in an epoch; the next plan is another one then."""
        for each in plan.subscriptions:
            if each.id in manifest.aborted and not each.aborted:
                self._planned = None
                self._listener.warning(f"the subscription '{each.name}' has ended: {manifest.aborted[each.id]}")

    def _begun_plan(self, epoch: int) -> PlanFile:
        """The plan that an epoch runs with, which is durable from then on."""
        if (written := self._plans.of(epoch)) is not None:
            self._planned = None
            return written
        wanted = self._wanted
        streams = tuple(
            StreamPlan.of(source, self._orders[name].form, wanted.courses.get(name))
            for name, source in wanted.streams.items()
        )
        if self._planned is not None and self._planned[0] is wanted and self._planned[1] == streams:
            self._plans.again(epoch, self._planned[2])
            return self._planned[2]
        file = self._plans.begin(epoch, self._next_plan(epoch, wanted, streams))
        self._planned = wanted, streams, file
        return file

    def _next_plan(self, epoch: int, wanted: Wanted, streams: tuple[StreamPlan, ...]) -> Plan:
        begun = self._last.begun if self._last else ()
        documents = tuple((name, str(path.absolute())) for name, path in wanted.documents.items())
        settings = self._settings
        functions = tuple(self._functions.items())
        subscriptions, following = subscriptions_of(
            self._plan,
            wanted.subscriptions,
            epoch,
            begun,
            streams,
            functions,
            endless=not settings.finite,
            sharing=settings.sharing,
            aborted=self._last.aborted if self._last else {},
            policies=wanted.policies,
        )
        rest = documents, settings.finite, settings.sharing, settings.accents
        return Plan(streams, subscriptions, settings.limits, following, self._shards, *rest)

    def _settle(self, manifest: Manifest) -> None:
        """Make durable what a manifest relies on: its segments' names, and Spark's offsets, which Spark syncs never."""
        segments = self.checkpoint.segments
        if manifest.segments:
            with durable.writing(segments):
                durable.sync(segments / f"{manifest.epoch:08}")
                durable.sync(segments)
        fresh = self.checkpoint.states / f"{manifest.epoch:08}"
        if fresh.exists():
            with durable.writing(fresh):
                durable.sync(fresh)
                durable.sync(fresh.parent)
        durable.settle(self.checkpoint.spark / "offsets" / str(manifest.epoch))

    # --- streams ------------------------------------------------------------------------------------------

    def _follow(self, source: Source) -> None:
        """Know the order log of a stream, and that it is still written as it was."""
        if source.name not in self._orders:
            self._orders[source.name] = OrderLog(self.checkpoint.order(source.name))
            self._orders[source.name].refresh()  # what is noted there was told by an earlier run
        log = self._orders[source.name]
        for key, at in self._last.offsets.items() if self._last else ():
            stream, _, partition = key.rpartition("/")
            if stream == source.name:
                log.check(partition, **at)
        if log.form is not None and source.format not in ("auto", log.form.format):
            raise UsageError(
                f"the stream '{source.name}' was read as '{log.form.format}' until now, not as '{source.format}'",
                hint="give the stream another name",
            )
        known = self._plan.streams if self._plan else ()
        if any(each.stream == source.name and each.updates is not source.updates for each in known):
            kinds = ("updates", "items") if source.updates else ("items", "updates")
            raise UsageError(
                f"the stream '{source.name}' was one of {kinds[1]} until now, not of {kinds[0]}",
                hint="give the stream another name",
            )
        before = max((each.partitions for each in known if each.stream == source.name), default=0)
        if len(source.partitions) < before:  # their numbers are those of the list, and branches wait for them
            raise UsageError(
                f"the stream '{source.name}' had {before} partitions until now, and has {len(source.partitions)}",
                hint="new ones may be added behind the others; for fewer, give the stream another name",
            )

    def _warn(self) -> None:
        """Say which files came out of order since the last epoch."""
        for name, log in self._orders.items():
            for stretch in log.refresh():
                match stretch.note:
                    case "late":
                        warning = f"the file '{stretch.file}' came after files with larger names"
                        self._listener.warning(f"stream '{name}': {warning}; it is read next")
                    case "grown":
                        warning = f"the file '{stretch.file}' has grown after a later one was begun"
                        self._listener.warning(f"stream '{name}': {warning}; the new part is read next")


class _Stopped(Exception):
    """Keeps an epoch from beginning when the trunk is to stop."""
