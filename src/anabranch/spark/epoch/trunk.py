"""The trunk: one streaming query that reads all streams once and answers all subscriptions.

The life of an epoch: Spark asks the intake how far it may go, writes that down and calls `Trunk.epoch`.
What the epoch runs with is written down; one Spark job runs `task.work` on the ranges, where each item is parsed once
and shown to every subscription of its stream, and `shard.work` on what goes on to branches; the tasks write segments
and states and return small reports; the driver publishes the manifest, which makes the epoch true; then sinks move.
Where accents come in the midst of it, the job may be run again (`spark/evolution/rerun.py`).

Killed at any point, the next run is handed the same epoch with the same ranges: a plan that was written is used again,
an epoch whose manifest exists is passed over, a sink goes on from where it was.
The order of an answer is that of its stream, whatever the number of epochs, ranges and cores.

Streams and subscriptions are wanted by whoever calls `want`, from any thread and at any time; they take effect with the
next epoch, and the streaming query never restarts for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Condition, Lock
from time import monotonic, sleep
from types import TracebackType

from anabranch.law.calls import PythonFunction
from anabranch.law.steps import allow
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.answers.segments import read_index
from anabranch.spark.checkpoint.crash import point
from anabranch.spark.checkpoint.folder import Checkpoint, RunLock
from anabranch.spark.checkpoint.manifest import Manifest, Manifests, check_spark, settle, sweep_spark
from anabranch.spark.checkpoint.retention import Retention
from anabranch.spark.epoch.background import Background
from anabranch.spark.epoch.job import Job, Report
from anabranch.spark.epoch.metrics import Metrics
from anabranch.spark.epoch.silence import SilentSubscriptions
from anabranch.spark.epoch.stages import manifest_of
from anabranch.spark.epoch.waits import Lookout, Wait
from anabranch.spark.evolution.log import EvolutionLogs
from anabranch.spark.hosts.host import EpochQuery, Host
from anabranch.spark.intake.heartbeats import write_reached
from anabranch.spark.intake.order_logs import OrderLogs
from anabranch.spark.intake.settings import IntakeSettings
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.files import Plans
from anabranch.spark.plan.kinds import not_begun
from anabranch.spark.plan.kinds.kind import QueryContext
from anabranch.spark.plan.planning import Planning
from anabranch.spark.plan.wanted import Epoch, Listener, Workload
from anabranch.spark.sinks.answer_streams import check_answers
from anabranch.spark.sinks.claims import check_sinks
from anabranch.spark.sinks.delivery import Sinks
from anabranch.spark.state import files as states
from anabranch.stream.files import DEAD_LETTERS, LATE_ITEMS, document_claims
from anabranch.stream.settings import Settings

_PATIENCE = 0.1


class Trunk:
    """A trunk on its checkpoint; as a context it holds the checkpoint's lock.

    `epoch` is called by Spark, one at a time, and is the only one to change what epochs have led to.
    Where there are sinks, they move in the background of the next epoch, and the listener hears of an epoch when they
    have; `finish` waits for it.
    """

    def __init__(
        self,
        host: Host,
        folder: Path,
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
        """The host's side of it, once it is started; it is never another while it lasts."""
        self._turn = Lock()
        """Held by an epoch, and by whoever must not meet one half done."""
        self._wishes = Lock()
        """Held while what is wanted changes."""
        self._restarting = Lock()
        """Held while it is seen whether there is more to read."""
        self._once, self._streamed = False, 0
        """Whether it ends with what is there, and what of answers that are streams had been there when it began."""
        self._moved = Condition()
        self._stopping = False
        self._failure: Exception | None = None

    # --- from outside -------------------------------------------------------------------------------------

    def __enter__(self) -> Trunk:
        checkpoint = self.checkpoint = Checkpoint.make(self._folder)
        self.run = self._held.enter_context(RunLock(checkpoint, self.host.process)).run
        with ExitStack() as on_error:
            on_error.callback(self._held.close)
            self._manifests = Manifests(checkpoint.manifests)
            sweep_spark(checkpoint)
            self._last = check_spark(checkpoint, self._manifests)
            self._told = self._last.epoch if self._last else -1
            self._cores = self.host.cores
            self._planning = Planning(
                Plans(checkpoint.plans), self._settings, self._functions, self._cores, self._listener.warning
            )
            self._retention = Retention(checkpoint, self._settings.keep)
            self._retention.sweep()
            states.sweep(checkpoint.states, self._last.states.values() if self._last else ())
            self._logs = EvolutionLogs(checkpoint.evolution)
            self._logs.sweep(self._last.evolution if self._last else {})
            self._sinks = Sinks(checkpoint, self._functions, self._listener.warning)
            self._silence = SilentSubscriptions(self._listener.warning, self._functions)
            self._orders = OrderLogs(checkpoint)
            self._stages = self.host.stages()
            self._lookout = Lookout(checkpoint)
            self._behind = Background()
            self._wanted = Workload({}, {})
            self._holds: dict[str, int] = {}
            on_error.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop(lambda: kind is not None and issubclass(kind, KeyboardInterrupt))
        finally:
            self._held.close()

    def want(self, wanted: Workload) -> None:
        """Do this from the next epoch on; waits for the epoch at work."""
        with self._turn:
            self._behind.finish()
            check_sinks(
                wanted.streams,
                wanted.subscriptions,
                wanted.sinks,
                checkpoint=self.checkpoint.folder,
                files={DEAD_LETTERS: wanted.dead_letters, LATE_ITEMS: wanted.late_items},
                read=document_claims(wanted.documents),
            )
            self._check_answers(wanted)
            self._planning.documents.look(wanted.documents)
            for source in wanted.streams.values():
                self._orders.follow(source, self._last, self.plan)
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
            with self._wishes:
                self._wanted = wanted

    def _check_answers(self, wanted: Workload) -> None:
        """Refuse streams that cannot be the answers they are said to be."""
        streams = wanted.streams.values()
        asked, known = {each.answer for each in streams}, QueryContext.of(streams, self._functions)
        found = {name: not_begun(name, text, known) for name, text in wanted.subscriptions.items() if name in asked}
        check_answers(wanted.streams, found, self.plan)

    def hold(self, holds: Mapping[str, int]) -> None:
        """Read these streams, by name, no further for now (`IntakeSettings.held`), and all others again."""
        with self._turn:
            self._holds = dict(holds)
            if self.checkpoint.intake.exists():
                replace(IntakeSettings.load(self.checkpoint), held=self._holds).save(self.checkpoint)

    def want_more(self, subscriptions: Mapping[str, str]) -> None:
        """Answer these too, by name, from the next epoch on; waits for nothing."""
        with self._wishes:
            self._wanted = replace(self._wanted, subscriptions={**self._wanted.subscriptions, **subscriptions})

    def start(self, *, once: bool) -> None:
        """Begin: to the end of what is there (`once`), or until stopped."""
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
        """Whether there is more to read at the end of what was there: answers, which are streams themselves."""
        with self._restarting:
            assert self.query is not None
            if self.query.isActive:  # somebody else has seen to it
                return True
            if not self._once or self.query.exception() is not None:
                return False
            self._behind.finish()
            if self._sinks.streamed == self._streamed or self._stopping or self._failure is not None:
                return False
            self.start(once=True)
            return True

    def wait(self, until: Callable[[], bool] = lambda: False) -> None:
        """Wait for the end, or for something else, and say in our words what went wrong."""
        while self.active and not until():
            sleep(_PATIENCE)  # rather than in a call of Spark, which a signal would break noisily
        if not self.active:
            self.finish()
            self.raise_failure()

    def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """End after the epoch at work; in a `hurry` without it, so the next run repeats it. It may be called again."""
        while not self._turn.acquire(timeout=_PATIENCE):
            if hurry():
                self._failure = self._failure or _Stopped()  # what the epoch at work ends with is no failure
                self._stopping = True
                break
        else:
            self._stopping = True
            self._turn.release()
        if self.query is not None:
            try:
                self.query.stop()
            except self.host.errors as error:
                raise self.host.translated(error) from error
            finally:
                self._behind.finish()
        with self._moved:
            self._moved.notify_all()

    def halt(self) -> None:
        """Have no epoch come by itself after the one at work; it may be started again, or driven by hand."""
        self.stop()
        self.query = None
        self._stopping = False
        if isinstance(self._failure, _Stopped):
            self._failure = None

    def catch_up(self) -> None:
        """Wait until all that is there now has been read; it must have been started."""
        assert self.query is not None
        try:
            self.query.processAllAvailable()
        except self.host.errors as error:
            self._failure = self._failure or error
        self.finish()
        self.raise_failure()

    def finish(self) -> None:
        """Wait until sinks have got, and the listener has heard of, all that is committed."""
        self._behind.finish()

    def raise_failure(self) -> None:
        """Raise what ended the trunk, if it was an error."""
        failure = self._failure
        if failure is None and self.query is not None and not self._stopping:
            failure = self.query.exception()
        if failure is None or isinstance(failure, _Stopped):
            return
        if isinstance(failure, self.host.errors):
            raise self.host.translated(failure) from failure
        raise failure

    def beyond(self, epoch: int, unless: Callable[[], bool] = lambda: False) -> bool:
        """Wait until an epoch after this one is committed; False if none will come, or `unless` has become true."""
        while self.last <= epoch and self.active and not unless():
            with self._moved:
                if self.last <= epoch:
                    self._moved.wait(_PATIENCE)
        if not self.active:
            self.finish()
        return self.last > epoch

    @property
    def last(self) -> int:
        """The newest epoch that is committed and of which the listener has heard, -1 if there is none."""
        return self._told

    def waits(self) -> list[Wait]:
        """What is there and cannot be read yet, and what keeps it; looked for anew."""
        return self._lookout.waits(self._wanted.streams.values(), self._last, self.plan)

    @property
    def plan(self) -> Plan | None:
        """What the newest epoch runs or ran with."""
        return self._planning.newest

    # --- epochs -------------------------------------------------------------------------------------------

    def epoch(self, number: int) -> None:
        """Run one epoch. All exceptions go on to Spark: an epoch that hides one would count as done."""
        try:
            with self._turn:
                if self._stopping:
                    raise _Stopped
                if self._failure is not None:  # sinks could not follow
                    raise self._failure
                point("epoch-begun", number)
                if not self._manifests.has(number):
                    self._run_epoch(number)
        except Exception as error:
            self._failure = self._failure or error
            raise
        finally:
            with self._moved:
                self._moved.notify_all()

    def _run_epoch(self, number: int) -> None:
        begun = monotonic()
        for warning in self._orders.warnings():
            self._listener.warning(warning)
        file = self._planning.begin(number, self._wanted, self._orders.forms, self._last)
        plan = file.load()
        point("plan-written", number)
        planned = monotonic()
        carries = self._last.carries if self._last else {}
        before = self._last.epoch if self._last else None
        evolution = self._last.evolution if self._last else {}
        known = self._last.aborted if self._last else {}
        given = Job(file, self.checkpoint, number, carries, tuple(self._functions.items()), before, evolution)
        job, reports = self._stages.run(given, self._orders.ranges(number), plan.shards)
        point("job-done", number)
        worked = monotonic()
        manifest = manifest_of(job, self.run, self._last, reports, self._logs)
        point("changes-logged", number)
        settle(manifest, self.checkpoint)
        self._manifests.publish(manifest)
        self._last = manifest
        point("manifest-published", number)
        states.sweep(self.checkpoint.states, manifest.states.values())
        self._planning.documents.sweep(plan)
        if manifest.evolution != evolution:
            self._logs.sweep(manifest.evolution)
        point("states-swept", number)
        write_reached(self.checkpoint, manifest, plan)
        self._tell_ended(plan, manifest, known)
        seconds = (planned - begun, worked - planned, monotonic() - worked)
        if self._sinks:
            self._behind.begin(partial(self._follow, manifest, plan, reports, seconds))
        else:
            self._tell(manifest, plan, reports, seconds)

    def _follow(
        self, manifest: Manifest, plan: Plan, reports: Sequence[Report], seconds: tuple[float, float, float]
    ) -> None:
        """Tell of an epoch in the background; what fails there ends the trunk."""
        try:
            self._tell(manifest, plan, reports, seconds)
        except Exception as error:
            self._failure = self._failure or error
        with self._moved:
            self._moved.notify_all()

    def _tell(
        self, manifest: Manifest, plan: Plan, reports: Sequence[Report], seconds: tuple[float, float, float]
    ) -> None:
        """Let an epoch that is committed out: to sinks, then to the listener."""
        begun = monotonic()
        self._sinks.deliver(manifest, plan)
        self._sinks.forget(lambda stream: self._orders.reading(stream, manifest))
        point("sinks-moved", manifest.epoch)
        self._retention.add(manifest.epoch, manifest.size)
        answers = read_index(self.checkpoint.segments, manifest.segments).entries()
        cpu = sum(each.cpu for each in reports)
        items = sum((Counter(each.items) for each in reports), Counter[str]())
        self._silence.take(plan, items, answers.numbers, partial(AnswerLog(self.checkpoint).buried, manifest))
        metrics = Metrics.of(manifest, plan, answers, (*seconds, monotonic() - begun), reports)
        self._listener.epoch(Epoch(manifest, plan, metrics, cpu))
        self._told = manifest.epoch

    def _tell_ended(self, plan: Plan, manifest: Manifest, known: Collection[int]) -> None:
        """Say which subscriptions have ended in an epoch, and are not `known` to have; the next plan is another one."""
        for number, reason in manifest.aborted.items():
            if number not in known:
                self._planning.renew()
                self._listener.warning(f"the subscription '{plan.by_id[number].name}' has ended: {reason}")


class _Stopped(Exception):
    """Keeps an epoch from beginning when the trunk is to stop."""
