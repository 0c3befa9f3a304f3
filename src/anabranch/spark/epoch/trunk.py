"""The trunk: one streaming query that reads all streams once and answers all subscriptions.

The life of an epoch: Spark asks the intake how far it may go, logs that offset and calls `Trunk.epoch`.
The plan of the epoch is made durable; one Spark job runs `task.work` on the ranges, where each item is parsed once
for all subscriptions of its stream, and `shard.work` on the rows for branches; the tasks write segments
and states and return small reports; the driver publishes the manifest, which makes the epoch true; then sinks deliver.
Where accents come within an epoch, the job may be run again (`spark/evolution/rerun.py`).

Killed at any point, the next run goes on from the newest manifest: what was begun behind it is begun anew, an epoch
whose manifest exists is never run again, and a sink continues from its position.
The order of an answer is that of its stream, whatever the number of epochs, ranges and cores.

Any thread may call `want` at any time to set the streams and subscriptions; they take effect with the next epoch,
without a restart of the streaming query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Condition, Lock
from time import monotonic, sleep, time
from types import TracebackType

from anabranch.algebra.reactions.signature import Policy
from anabranch.errors import AnabranchError, SourceUnavailable
from anabranch.law.calls import PythonFunction
from anabranch.law.steps import allow
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.answers.segments import read_index
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.crash import point
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests, remove_former, settle, sweep
from anabranch.spark.checkpoint.recovery import rebuild
from anabranch.spark.checkpoint.retention import Retention
from anabranch.spark.checkpoint.runs import RunLock, TakenRun, overtaken, record, take_over
from anabranch.spark.epoch.background import Background
from anabranch.spark.epoch.job import Job, Report
from anabranch.spark.epoch.metrics import EpochTimes, Metrics
from anabranch.spark.epoch.silence import SilentSubscriptions
from anabranch.spark.epoch.stages import manifest_of
from anabranch.spark.epoch.waits import Lookout, Wait, told_if_overlong
from anabranch.spark.epoch.workload_checks import check_workload
from anabranch.spark.evolution.log import EvolutionLogs
from anabranch.spark.evolution.rerun import drop_attempt
from anabranch.spark.hosts.host import EpochQuery, Host
from anabranch.spark.intake.order_logs import OrderLogs, position_read
from anabranch.spark.intake.ranges import Range
from anabranch.spark.intake.reached import write_reached
from anabranch.spark.intake.settings import IntakeSettings
from anabranch.spark.intake.weights import write_weights
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.files import PlanFile, Plans, folder_of
from anabranch.spark.plan.planning import Planning
from anabranch.spark.plan.wanted import Epoch, Listener, Workload
from anabranch.spark.sinks.delivery import Sinks
from anabranch.spark.spool.spool import WritingRun
from anabranch.spark.spool.spools import Spools
from anabranch.storage import Where
from anabranch.storage.scratch import ScratchFolder
from anabranch.stream.limits import CostCaps
from anabranch.stream.settings import Settings

_POLL_SECONDS = 0.1


class Trunk:
    """A trunk on its checkpoint; as a context it holds the checkpoint's lock.

    `epoch` is called by Spark, one at a time, and alone changes the state that epochs lead to.
    Sinks deliver in the background of the next epoch, and the listener is told of an epoch when they have; `finish`
    waits for both.
    """

    def __init__(
        self,
        host: Host,
        folder: Where,
        settings: Settings,
        functions: Mapping[str, PythonFunction] | None = None,
        listener: Listener | None = None,
    ) -> None:
        allow(settings.limits.steps)
        self.host = host
        self._settings = settings
        self._functions = dict(functions or {})
        self._listener = listener or Listener()
        self._folder = folder
        self._held = ExitStack()
        self.query: EpochQuery | None = None
        """The host's query, set once the trunk is started."""
        self._epoch_lock = Lock()
        """Held by an epoch, and by callers that must not run during one."""
        self._workload_lock = Lock()
        """Held while the workload changes."""
        self._restarting = Lock()
        """Held while checking whether there is more to read."""
        self._once, self._streamed = False, 0
        """Whether the trunk ends with the present input, and the number of answer-stream documents at its start."""
        self._progressed = Condition()
        self._stopping = self._leaving = False
        """Whether no epoch may begin any more, and whether that was asked for."""
        self._failure: Exception | None = None

    # --- from outside -------------------------------------------------------------------------------------

    def __enter__(self) -> Trunk:
        with ExitStack() as on_error:
            on_error.callback(self._held.close)
            checkpoint = self.checkpoint = self._begun()
            self._manifests, plans = Manifests(checkpoint.manifests), Plans(checkpoint)
            newest = plans.file(self._last) if self._last else None
            sweep(checkpoint, self._last, self.run)
            rebuild(checkpoint, self._last)
            self._kept: Set[str] = self._last.kept if self._last else frozenset()
            """What the newest manifest keeps, by name."""
            self._reported = self._last.epoch if self._last else -1
            self._cores = self.host.cores
            saved = folder_of(checkpoint, self.run), checkpoint.evolution, newest
            self._planning = Planning(*saved, self._settings, self._functions, self._cores, self._listener.warning)
            self._retention = Retention(checkpoint, self._settings.keep)
            self._retention.sweep()
            self._logs = EvolutionLogs(checkpoint.evolution, self.run)
            self._sinks = Sinks(checkpoint, self._functions, self._listener.warning, self._fail, self.run)
            alone = None if checkpoint.folder.path else WritingRun(self.run, partial(overtaken, checkpoint), self._fail)
            self.spools = Spools(self._listener.warning, alone)
            """What was pushed into streams."""
            self._held.callback(self.spools.close)
            self._silence = SilentSubscriptions(self._listener.warning, self._functions)
            self._orders = OrderLogs(checkpoint, self.run)
            self._stages = self.host.stages(record(checkpoint, self.run), self._functions.values())
            self._lookout = Lookout(checkpoint)
            self._background = Background()
            self._delivery_failed = False
            self._wanted = Workload({}, {})
            self._holds: dict[str, int] = {}
            on_error.pop_all()
        return self

    def _begun(self) -> Checkpoint:
        """Begin a run: take its number, keep others out, and find the epoch that it goes on from."""
        checkpoint = Checkpoint.make(self._folder)
        if checkpoint.local is not None:
            self.run = self._held.enter_context(RunLock(checkpoint, self.host.process)).run
            self._last = Manifests(checkpoint.manifests).newest()
            return checkpoint
        self.run = TakenRun.take(checkpoint, self.host.process).run
        empty = PlanFile.save(Plan((), (), self._settings.limits, 0), folder_of(checkpoint, self.run))
        self._last = take_over(checkpoint, self.run, empty.name)
        return checkpoint.with_scratch(Path(self._held.enter_context(ScratchFolder())))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop(lambda: kind is not None and issubclass(kind, KeyboardInterrupt))
        finally:
            self._held.close()

    def want(self, wanted: Workload) -> None:
        """Set the workload from the next epoch on; waits for the epoch at work."""
        with self._epoch_lock:
            self._background.finish()
            self.check(wanted)
            self._planning.documents.look(wanted.documents)
            for source in wanted.streams.values():
                self._orders.follow(source, self._last, self.plan)
            with self.spools.changed(wanted.streams.values(), partial(position_read, self._last)):
                self._sinks.set(wanted.sinks, wanted.dead_letters, wanted.late_items, wanted.streams.values())
                streams, settings = tuple(wanted.streams.values()), self._settings
                before = IntakeSettings.load(self.checkpoint) if self.checkpoint.intake.exists() else None
                IntakeSettings(
                    streams,
                    wanted.epoch_bytes or settings.epoch_bytes,
                    wanted.epoch_files or settings.epoch_files,
                    self._cores,
                    settings.finite,
                    before.followed_by(streams) if before else (),
                    self._holds,
                ).save(self.checkpoint)
            with self._workload_lock:
                self._wanted = wanted

    def check(self, wanted: Workload) -> None:
        """Refuse a workload whose streams and sinks cannot be had together, or not by this trunk."""
        check_workload(wanted, self.checkpoint, self._functions, self.plan)
        self._orders.check_replays(wanted.streams.values(), wanted.subscriptions, self._last, self.plan)

    def hold(self, holds: Mapping[str, int]) -> None:
        """Hold these streams, by name, for now (`IntakeSettings.held`), and read all others on."""
        with self._epoch_lock:
            self._holds = dict(holds)
            if self.checkpoint.intake.exists():
                replace(IntakeSettings.load(self.checkpoint), held=self._holds).save(self.checkpoint)

    def want_more(
        self,
        subscriptions: Mapping[str, str],
        *,
        policies: Mapping[str, Policy] | None = None,
        caps: Mapping[str, CostCaps] | None = None,
        without: Collection[str] = (),
    ) -> None:
        """Add subscriptions, by name, from the next epoch on, `without` some others; returns at once.

        None of them has a sink, or streams of its own.
        """
        with self._workload_lock:
            wanted = self._wanted
            texts = {**wanted.subscriptions, **subscriptions}
            chosen, capped = {**wanted.policies, **(policies or {})}, {**wanted.caps, **(caps or {})}
            for name in set(without) - subscriptions.keys():
                texts.pop(name, None)
                chosen.pop(name, None)
                capped.pop(name, None)
            self._wanted = replace(wanted, subscriptions=texts, policies=chosen, caps=capped)

    def start(self, *, once: bool) -> None:
        """Start: to the end of the present input (`once`), or until stopped."""
        trigger_ms = None if once else self._settings.trigger_ms
        self._once, self._streamed = once, self._sinks.streamed
        self.query = self.host.start(self.checkpoint, self.epoch, trigger_ms)

    @property
    def active(self) -> bool:
        """Whether epochs may still come."""
        if self.query is None or self._stopping or self._failure is not None:
            return False
        try:
            return bool(self.query.isActive) or self._goes_on()
        except self.host.errors as error:
            self._failure = error
            return False

    def _goes_on(self) -> bool:
        """Whether, at the end of the input, there is more: in streams that are answers, or for topics."""
        with self._restarting:
            assert self.query is not None
            if self.query.isActive:  # another thread has restarted it
                return True
            if not self._once or self.query.exception() is not None:
                return False
            self._background.finish()
            if self._stopping or self._failure is not None:
                return False
            if self._sinks.streamed == self._streamed:
                return self._sinks.behind
            self.start(once=True)
            return True

    def wait(self, until: Callable[[], bool] = lambda: False) -> None:
        """Wait for the end, or until `until` holds, and raise failures as our errors."""
        begun = monotonic()
        while self.active and not until():
            # not in a call of Spark, which a signal would break noisily; who waits for little waits little longer
            sleep(min(_POLL_SECONDS, 0.001 + (monotonic() - begun) / 20))
        if not self.active:
            self.finish()
            self.raise_failure()

    def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """Stop after the epoch at work; in a `hurry` abandon it, and the next run repeats it. Idempotent.

        An epoch that waits for a source is abandoned, too.
        Topics are given what they have not got yet, if their brokers answer.
        """
        self._stop_epochs(hurry)
        self._sinks.end(hurry)
        with self._progressed:
            self._progressed.notify_all()

    def _stop_epochs(self, hurry: Callable[[], bool] = lambda: False) -> None:
        self._leaving = True
        while not self._epoch_lock.acquire(timeout=_POLL_SECONDS):
            if hurry():
                self._failure = self._failure or _Stopped()  # so that an interrupted epoch counts as no failure
                self._stopping = True
                break
        else:
            self._stopping = True
            self._epoch_lock.release()
        if self.query is not None:
            try:
                self.query.stop()
            except self.host.errors as error:
                raise self.host.translated(error) from error
            finally:
                self._background.finish()
        with self._progressed:
            self._progressed.notify_all()

    def halt(self) -> None:
        """Stop after the epoch at work; the trunk may be started again, or driven by hand."""
        self._stop_epochs()
        self.query = None
        self._stopping = self._leaving = False
        if isinstance(self._failure, _Stopped):
            self._failure = None

    def catch_up(self) -> None:
        """Wait until the present input has been read; the trunk must be started."""
        assert self.query is not None
        try:
            self.query.processAllAvailable()
        except self.host.errors as error:
            self._failure = self._failure or error
        self.finish()
        self.raise_failure()

    def finish(self) -> None:
        """Wait until sinks and listener have got all committed epochs."""
        self._background.finish()

    def raise_failure(self) -> None:
        """Raise the error that ended the trunk, if there was one."""
        failure = self._failure
        if failure is None and self.query is not None and not self._stopping:
            failure = self.query.exception()
        if failure is None or isinstance(failure, _Stopped):
            return
        if isinstance(failure, self.host.errors):
            raise self.host.translated(failure) from failure
        raise failure

    def beyond(self, epoch: int, unless: Callable[[], bool] = lambda: False) -> bool:
        """Wait until an epoch after this one is committed; False if none will come, or once `unless` holds."""
        while self.last <= epoch and self.active and not unless():
            with self._progressed:
                if self.last <= epoch:
                    self._progressed.wait(_POLL_SECONDS)
        if not self.active:
            self.finish()
        return self.last > epoch

    @property
    def last(self) -> int:
        """The newest epoch that is committed and reported to the listener, -1 if there is none."""
        return self._reported

    @property
    def epochs_behind(self) -> Mapping[str, int]:
        """By kind of sink: the number of committed epochs that some sink of this kind has not got yet."""
        return self._sinks.epochs_behind(self._last.epoch if self._last else -1, self._reported)

    def announce(self, endpoint: str) -> None:
        """Write down where the endpoint of this run listens."""
        durable.replace(self.checkpoint.endpoint, durable.sealed({"run": self.run, "address": endpoint}))

    def waits(self) -> list[Wait]:
        """Input that cannot be read yet, and why; looked up anew."""
        return self._lookout.waits(self._wanted.streams.values(), self._last, self.plan)

    @property
    def plan(self) -> Plan | None:
        """The plan of the newest epoch."""
        return self._planning.newest

    # --- epochs -------------------------------------------------------------------------------------------

    def epoch(self, number: int) -> None:
        """Run one epoch. All exceptions go on to Spark: if one were hidden, Spark would take the epoch for done."""
        try:
            with self._epoch_lock:
                if self._stopping:
                    raise _Stopped
                if self._failure is not None:  # a sink failed in the background
                    raise self._failure
                point("epoch-begun", number)
                if self._last is None or number > self._last.epoch:  # Spark may have missed that it was committed
                    with told_if_overlong(number, self._listener.warning):
                        self._run_epoch(number)
        except Exception as error:
            explained = self._explained(error)
            self._failure = self._failure or explained
            if explained is error:
                raise
            raise explained from error
        finally:
            with self._progressed:
                self._progressed.notify_all()

    def _explained(self, error: Exception) -> Exception:
        """An error, or that another run has taken over and removed what this one has missed."""
        following = self._last.epoch + 1 if self._last else 0
        if self.checkpoint.folder.path is None and isinstance(error, AnabranchError):
            with suppress(AnabranchError):
                return overtaken(self.checkpoint, self._manifests.load(following).run)
        return error

    def _run_epoch(self, number: int) -> None:
        begun, began = monotonic(), time()
        for warning in self._orders.warnings():
            self._listener.warning(warning)
        file = self._planning.begin(number, self._wanted, self._orders.forms, self._last, self._orders.counts)
        plan = file.load()
        point("plan-written", number)
        planned = monotonic()
        known = self._last.aborted if self._last else {}
        given = Job.behind(self._last, file, self.checkpoint, number, tuple(self._functions.items()), self.run)
        job, reports = self._run_tasks(given, self._orders.ranges(number), plan.shards)
        point("job-done", number)
        worked = monotonic()
        manifest = manifest_of(job, self._last, reports, self._logs, self._orders)
        point("changes-logged", number)
        former = self._publish(manifest)
        point("manifest-published", number)
        self._clean_up(job, plan, former)
        point("states-swept", number)
        write_weights(self.checkpoint, (each.messages for each in reports))
        self._report_ended(plan, manifest, known)
        times = EpochTimes(began, planned - begun, worked - planned, monotonic() - worked)
        if self._sinks:
            self._background.begin(partial(self._report_in_background, manifest, plan, reports, times))
        else:
            self._deliver_and_report(manifest, plan, reports, times)

    def _publish(self, manifest: Manifest) -> Set[str]:
        """Commit an epoch; gives what the manifest before it has kept."""
        kept, before = manifest.kept, self._kept
        settle(self.checkpoint, manifest.segments, kept, before)
        if not self._manifests.publish(manifest):
            raise overtaken(self.checkpoint, self._manifests.load(manifest.epoch).run)
        reached = self._last.intake.reached if self._last else {}
        self._last, self._kept = manifest, kept
        self._orders.committed()
        if manifest.intake.reached != reached:
            write_reached(self.checkpoint, manifest.intake.reached)
        return before

    def _clean_up(self, job: Job, plan: Plan, former: Set[str]) -> None:
        """Remove what only the epoch itself needed, and what no epoch needs any more."""
        remove_former(self.checkpoint, self.run, self._kept, former)
        if job.epoch_events is not None:
            job.epoch_events.remove()
        self._planning.documents.sweep(plan)

    def _fail(self, error: Exception) -> None:
        """End the trunk because of an error on another thread."""
        self._failure = self._failure or error
        with self._progressed:
            self._progressed.notify_all()

    def _run_tasks(self, given: Job, ranges: Sequence[Range], shards: int) -> tuple[Job, Sequence[Report]]:
        """Run the tasks of an epoch, again and again as long as they cannot reach a source; `waits` tells users."""
        while True:
            job, reports = self._stages.run(given, ranges, shards)
            faults = [report.fault.error() for report in reports if report.fault is not None]
            if not faults or not all(isinstance(each, SourceUnavailable) for each in faults):
                return job, reports
            drop_attempt(job, reports)
            if self._leaving:
                raise _Stopped

    def _report_in_background(
        self, manifest: Manifest, plan: Plan, reports: Sequence[Report], times: EpochTimes
    ) -> None:
        """Deliver and report an epoch in the background; an error there ends the trunk.

        Nothing is delivered behind an epoch that was not: sinks would go on from there, and never get it.
        """
        try:
            if not self._delivery_failed:
                self._deliver_and_report(manifest, plan, reports, times)
        except Exception as error:
            self._delivery_failed = True
            self._fail(self._explained(error))
        with self._progressed:
            self._progressed.notify_all()

    def _deliver_and_report(self, manifest: Manifest, plan: Plan, reports: Sequence[Report], times: EpochTimes) -> None:
        """Deliver a committed epoch to sinks, then report it to the listener."""
        waited, begun = time() - times.began, monotonic()
        self._sinks.deliver(manifest, plan)
        self._sinks.forget(lambda stream: self._orders.reading(stream, manifest))
        self.spools.forget(partial(position_read, manifest))
        point("sinks-moved", manifest.epoch)
        self._retention.add(manifest, self._sinks.needed)
        answers = read_index(self.checkpoint.segments, manifest.segments).entries()
        items = sum((Counter(each.items) for each in reports), Counter[str]())
        self._silence.take(plan, items, answers.numbers, partial(AnswerLog(self.checkpoint).buried, manifest))
        times = replace(times, delivered=waited, deliver=monotonic() - begun)
        metrics = Metrics.of(manifest, plan, answers, times, reports)
        self._listener.epoch(Epoch(manifest, plan, metrics, sum(each.cpu for each in reports), answers))
        self._reported = manifest.epoch

    def _report_ended(self, plan: Plan, manifest: Manifest, known: Collection[int]) -> None:
        """Report the subscriptions that ended in an epoch and are not `known` as ended; the next plan drops them."""
        for number, reason in manifest.aborted.items():
            if number not in known:
                self._planning.renew()
                self._listener.warning(f"the subscription '{plan.by_id[number].name}' has ended: {reason}")


class _Stopped(Exception):
    """Keeps an epoch from starting while the trunk stops."""
