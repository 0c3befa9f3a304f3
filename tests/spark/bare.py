"""A trunk without Spark: the same survey, tasks, shards and manifests, one after the other in this process.

What Spark adds is who does what at which moment, and no answer may depend on that; so it is left to chance here.
Tests over thousands of queries can afford it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from random import Random
from unittest import mock

from anabranch.algebra.plans.written import is_plan
from anabranch.algebra.reactions.signature import Policy
from anabranch.branch import cache
from anabranch.language import check, parse, print_query
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.answers.segments import late_places
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests, remove_former, sweep
from anabranch.spark.checkpoint.recovery import rebuild, write_end
from anabranch.spark.epoch import task
from anabranch.spark.epoch.job import Job, Outbox, Report, ShardRow
from anabranch.spark.epoch.stages import answer_at_once, manifest_of
from anabranch.spark.epoch.waits import Lookout, Wait
from anabranch.spark.evolution.log import EvolutionLogs
from anabranch.spark.evolution.progress import ProgressAxis
from anabranch.spark.evolution.rerun import run_evolving, search
from anabranch.spark.intake.heartbeats import Pulse
from anabranch.spark.intake.order_logs import OrderLogs
from anabranch.spark.intake.ranges import Offset, Range
from anabranch.spark.intake.reached import write_reached
from anabranch.spark.intake.settings import IntakeSettings
from anabranch.spark.intake.survey import Survey
from anabranch.spark.plan.branches import branches_of
from anabranch.spark.plan.documents import DocumentCopies
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.spark.plan.files import PlanFile, Plans, folder_of
from anabranch.spark.plan.joining import joined
from anabranch.spark.plan.membership import strands_for, subscriptions_of
from anabranch.spark.state import shard
from anabranch.storage import Where
from anabranch.stream.limits import NO_CAPS, CostCaps, Limits
from anabranch.stream.reading.documents import DocumentSource
from anabranch.stream.reading.source import KnownStream, Source


class BareTrunk:
    """A checkpoint with its streams; each epoch has another size, another number of shards, and may be run twice."""

    def __init__(
        self,
        folder: Where,
        sources: Sequence[Source],
        random: Random,
        *,
        finite: bool,
        sharing: bool = True,
        accents: bool = True,
        policies: Mapping[str, Policy] | None = None,
    ) -> None:
        self._checkpoint = Checkpoint.make(folder)
        self._sources = sources
        self._random = random
        self._finite = finite
        self._sharing = sharing
        self.accents = accents
        self.policies = policies
        self.timed = False
        self.limits = Limits()
        self.caps: Mapping[str, CostCaps] = {}
        self.strands: int | None = 0
        self.courses: Mapping[str, tuple[ProgressAxis, ...]] = {}
        self.held: Mapping[str, int] = {}
        self.pulse: Pulse | None = None
        self.documents: Mapping[str, DocumentSource] = {}
        rebuild(self._checkpoint, None)
        self._survey = Survey(self._checkpoint)
        self._run = 1
        self._orders = OrderLogs(self._checkpoint)
        self._at: Offset = {}
        self._last: Manifest | None = None
        self.plan: Plan | None = None
        self.epochs = self.jobs = self.searches = 0
        self._processes = [cache.ProcessCache() for _ in range(2)]

    def resume(self) -> None:
        """Go on where another trunk in the same folder has ended."""
        manifests = Manifests(self._checkpoint.manifests)
        self.epochs = manifests.epochs().stop
        if self.epochs:
            self._last = manifests.load(self.epochs - 1)
            self._at = self.offset(self.epochs - 1)
            self.plan = Plans(self._checkpoint).newest()
            self._run = self._last.run + 1
            self._orders = OrderLogs(self._checkpoint, self._run)
            sweep(self._checkpoint, self._last, self._run)
            rebuild(self._checkpoint, self._last)

    def run(self, queries: Mapping[str, str], epoch_bytes: Sequence[int], shards: Sequence[int]) -> None:
        """Answer what is there, to its end."""
        known = {**{source.name: source.schema for source in self._sources}, **dict.fromkeys(self.documents)}
        edited = {source.name for source in self._sources if source.updates}
        texts = {
            name: text if is_plan(text) else print_query(check(parse(text), text, inputs=known, edited=edited).query)
            for name, text in queries.items()
        }
        while self._epoch(texts, self._random.choice(epoch_bytes), self._random.choice(shards)):
            self.epochs += 1

    def _epoch(self, texts: Mapping[str, str], epoch_bytes: int, shards: int) -> bool:
        streams = tuple(self._sources)
        IntakeSettings(streams, epoch_bytes, None, 2, self._finite, held=self.held).save(self._checkpoint)
        if not self.held:  # it is lost and made again, unless it must remember how far streams are held
            self._survey = Survey(self._checkpoint, self.pulse)
        survey = self._survey
        end = survey.latest(self._at)
        if end == self._at:
            return False
        ranges = survey.ranges(self._at, end)
        write_end(self._checkpoint, self.epochs, end)  # as Spark does
        for source in self._sources:
            self._orders.follow(source, None, None)
        list(self._orders.warnings())
        plan = self.plan = self._planned(texts, shards)
        file = PlanFile.save(plan, folder_of(self._checkpoint, self._run))
        job = Job.behind(self._last, file, self._checkpoint, self.epochs, (), self._run)
        logs = EvolutionLogs(self._checkpoint.evolution, self._run)
        for _ in range(2 if self._random.random() < 0.2 else 1):  # the first may be killed before it was told
            job, reports = run_evolving(job, partial(self._search, ranges), partial(self._reports, ranges, shards))
            manifest = manifest_of(job, self._last, reports, logs, self._orders)
        assert Manifests(self._checkpoint.manifests).publish(manifest)
        self._orders.committed()
        remove_former(self._checkpoint, self._run, manifest.kept, self._last.kept if self._last else set())
        if job.epoch_events is not None:
            job.epoch_events.remove()
        self._last = manifest
        write_reached(self._checkpoint, manifest.intake.reached)
        self._at = end
        return True

    def _planned(self, texts: Mapping[str, str], shards: int) -> Plan:
        begun = self._last.begun if self._last else ()
        found: list[KnownStream] = []
        rooted: list[str] = []
        for source in self._sources:
            form = self._orders.forms[source.name]
            found.append(KnownStream.of(source.counting(self._orders.counts[source.name]), form))
            rooted += [] if form is None else [source.name]
        aborted = self._last.aborted if self._last else {}
        if self.plan is not None and self._last is not None:
            self.plan = joined(self.plan, self._last, self._checkpoint.evolution, ())
        subscriptions, following = subscriptions_of(
            self.plan,
            texts,
            self.epochs,
            begun,
            found,
            endless=not self._finite,
            sharing=self._sharing,
            aborted=aborted,
            policies=self.policies,
            caps=lambda name: self.caps.get(name, NO_CAPS),
            timed=self.timed,
            strands=partial(strands_for, self.strands, shards),
            rooted=rooted,
        )
        last = Plans(self._checkpoint).file(self._last) if self._last else None
        copies = DocumentCopies(folder_of(self._checkpoint, self._run), last, lambda message: None)
        documents = copies.look(self.documents)
        rest = shards, documents, self._finite, self._sharing, self.accents, tuple(self.courses.items())
        return Plan(tuple(found), subscriptions, self.limits, following, *rest)

    def _search(self, ranges: Sequence[Range], job: Job) -> list[Report]:
        self.searches += 1
        return [search(job, group) for group in self._groups(ranges)]

    def _reports(self, ranges: Sequence[Range], shards: int, job: Job) -> list[Report]:
        """What Spark's stages do, or its one task where an epoch is small."""
        self.jobs += 1
        if ranges and self._random.random() < 0.3:
            strands = any(each.is_braid for each in branches_of(job.plan, job.functions))
            with mock.patch.object(cache, "here", self._random.choice(self._processes)):
                found = sorted(answer_at_once(job, strands, [ranges]))
            return [Report.from_json(text) for _, text in found]
        rows: list[ShardRow] = []
        reports: list[Report] = []
        for group in self._groups(ranges):
            outbox = Outbox()
            reports.append(task.work(job, group, outbox))
            rows += outbox.rows
        while rows:
            outbox = Outbox()
            for number in range(shards):
                mine = sorted((row for row in rows if row.shard == number), key=lambda row: row.sequence)
                if mine:
                    with mock.patch.object(cache, "here", self._random.choice(self._processes)):
                        reports.append(shard.work(job, number, mine, outbox))
            rows = outbox.rows
        return reports

    def _groups(self, ranges: Sequence[Range]) -> list[Sequence[Range]]:
        """The ranges as some tasks get them, each some that follow one another."""
        borders = sorted({0, len(ranges), *(self._random.randint(0, len(ranges)) for _ in range(2))})
        return [ranges[first:last] for first, last in pairwise(borders)]

    @property
    def aborted(self) -> Mapping[int, str]:
        """Why subscriptions have ended, by their numbers."""
        return self._last.aborted if self._last else {}

    @property
    def checkpoint(self) -> Checkpoint:
        return self._checkpoint

    def offset(self, epoch: int) -> Offset:
        """How far an epoch went; -1 stands for the beginning."""
        return {} if epoch < 0 else Manifests(self._checkpoint.manifests).load(epoch).intake.end

    @property
    def log(self) -> AnswerLog:
        return AnswerLog(self._checkpoint)

    def answer(self, name: str) -> str:
        found = self.log.subscription(name)
        assert found is not None, f"'{name}' never ran"
        return self.log.answer(found).text()

    def waits(self) -> list[Wait]:
        """What it waits for."""
        return Lookout(self._checkpoint).waits(self._sources, self._last, self.plan)

    def late(self) -> set[str]:
        """All places that were noted as late."""
        manifests = self.log.manifests.since(0)
        return {line for each in manifests for line in late_places(self._checkpoint.segments, each.segments)}
