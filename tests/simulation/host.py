"""The simulated host of a trunk: a driver and some workers, whose tasks run in any order, again and twice.

What a task does is what it does on Spark (`spark/hosts/spark_host.py`), the same functions over the same rows; who does
it, and when, is left to the seed.
A task may die with its worker at any step, and is tried again by another; a *twin* of a slow one may be begun, and
the first to end counts.
The other is ended, or goes on as if nobody had told it, at its own pace, until long after its epoch was published.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

from anabranch.errors import AnabranchError
from anabranch.law.calls import PythonFunction
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.job import Job, Report, ShardRow
from anabranch.spark.epoch.stages import answer_at_once
from anabranch.spark.epoch.task import answer_ranges, send_ranges
from anabranch.spark.evolution.rerun import run_evolving, search_ranges
from anabranch.spark.hosts.host import EpochQuery
from anabranch.spark.intake.ranges import Range
from anabranch.spark.plan.branches import branches_of
from anabranch.spark.state.shard import answer_shards, pass_shards
from anabranch.storage import Location
from simulation.world import Fiber, Killed, Process, World

T = TypeVar("T")

_ATTEMPTS = 4
"""As Spark has it: a task that fails so often fails its job."""
_SLOW = 0.02


class JobFailed(Exception):
    """A task has failed too often; the error of Spark, as it were."""


class JobStopped(AnabranchError):
    """The same as users see it."""


@dataclass
class Cluster:
    """The workers of one run."""

    world: World
    driver: Process
    cores: int
    deaths: float
    """The chance of an attempt to die with its worker."""
    twins: float
    """The chance of an attempt to get a twin."""
    free: list[Process] = field(default_factory=list)
    """Workers without a task."""
    all: list[Process] = field(default_factory=list)
    begun: int = 0
    unheard: int = 0
    """How many attempts went on when their task had ended."""

    def worker(self) -> Process:
        """A worker without a task; a new one where there is none, or where the cluster has changed its mind."""
        if self.free and self.world.random.random() < 0.9:
            return self.free.pop(self.world.random.randrange(len(self.free)))
        self.begun += 1
        fresh = Process(f"{self.driver.name} worker {self.begun}", fates=list(self.driver.fates))
        self.all.append(fresh)
        return fresh

    def run(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """Run some tasks, so many at a time; gives their results in order."""
        world, random = self.world, self.world.random
        waiting = random.sample(range(len(tasks)), len(tasks))
        failures = [0] * len(tasks)
        at_work: list[tuple[int, Fiber[Any]]] = []
        results: dict[int, T] = {}
        while len(results) < len(tasks):
            while waiting and len(at_work) < self.cores:
                number = waiting.pop()
                at_work += [(number, self._begin(tasks[number])) for _ in range(1 + (random.random() < self.twins))]
            world.wait(partial(_any_done, at_work))
            ended = [each for each in at_work if each[1].done]
            at_work = [each for each in at_work if each not in ended]
            for number, fiber in ended:
                if fiber.process.alive and fiber.process not in self.free:
                    self.free.append(fiber.process)
                if number in results:
                    continue
                if fiber.error is None:
                    results[number] = fiber.result  # type: ignore[assignment]  # it has ended without an error
                    self._leave_twins([each for other, each in at_work if other == number])
                    at_work = [each for each in at_work if each[0] != number]
                    continue
                failures[number] += not isinstance(fiber.error, Killed)
                if failures[number] >= _ATTEMPTS:
                    raise JobFailed(str(fiber.error)) from fiber.error
                if all(other != number for other, _ in at_work):
                    waiting.append(number)
        return [results[number] for number in range(len(tasks))]

    def _begin(self, task: Callable[[], T]) -> Fiber[T]:
        world, random = self.world, self.world.random
        worker = self.worker()
        if random.random() < self.deaths:
            worker.fates.append(_Countdown(world, worker, random.randint(1, 25)).step)
        return world.spawn(worker, task, _SLOW if random.random() < 0.1 else 1.0)

    def _leave_twins(self, twins: Sequence[Fiber[Any]]) -> None:
        """End the twins of a task that has ended, or let them go on unheard."""
        for each in twins:
            if self.world.random.random() < 0.5:
                self.world.kill(each.process)
            else:
                each.weight = _SLOW
                self.unheard += 1


@dataclass
class _Countdown:
    """Ends a worker after some steps."""

    world: World
    worker: Process
    left: int

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.world.kill(self.worker)
            raise Killed


@dataclass(frozen=True)
class SimulatedHost:
    """A driver with its cluster."""

    cluster: Cluster

    @property
    def cores(self) -> int:
        return self.cluster.cores

    @property
    def process(self) -> int:
        return os.getpid()

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return (JobFailed,)

    def translated(self, error: Exception) -> AnabranchError:
        return JobStopped(str(error))

    def stages(self, record: Location, functions: Iterable[PythonFunction]) -> SimulatedStages:
        return SimulatedStages(self.cluster)

    def enter(self, checkpoint: Checkpoint) -> None:
        """Do nothing: there is one trunk."""

    def start(self, checkpoint: Checkpoint, epoch: Callable[[int], None], trigger_ms: int | None) -> EpochQuery:
        raise AssertionError("its epochs are stepped")


@dataclass(frozen=True)
class SimulatedStages:
    """Runs the jobs of a run on its cluster, in stages as on Spark, or in one task where an epoch is small."""

    cluster: Cluster

    def run(self, job: Job, found: Sequence[Range], shards: int) -> tuple[Job, Sequence[Report]]:
        tasks = self._groups(found)
        return run_evolving(job, partial(self._search, tasks), partial(self._run, tasks))

    def _search(self, tasks: Sequence[Sequence[Range]], job: Job) -> list[Report]:
        found = self.cluster.run([partial(_listed, search_ranges, job, [each]) for each in tasks])
        return [Report.from_json(text) for _, text in sorted(each for part in found for each in part)]

    def _run(self, tasks: Sequence[Sequence[Range]], job: Job) -> list[Report]:
        if not tasks:
            return []
        random, run = self.cluster.world.random, self.cluster.run
        branches = branches_of(job.plan, job.functions)
        strands = any(each.is_braid for each in branches)
        if not branches:
            found = run([partial(_listed, answer_ranges, job, [each]) for each in tasks])
        elif len(tasks) == 1 and random.random() < 0.6:
            found = run([partial(_listed, answer_at_once, job, strands, tasks)])
        else:
            shards = sorted({each.shard(job.plan.load()) for each in branches})
            rows = self._shuffled(run([partial(_listed, send_ranges, job, [each]) for each in tasks]), shards)
            if strands:
                rows = self._shuffled(run([partial(_listed, pass_shards, job, each) for each in rows]), shards)
            found = run([partial(_listed, answer_shards, job, each) for each in rows])
        return [Report.from_json(text) for _, text in sorted(each for part in found for each in part)]

    def _shuffled(
        self, sent: Sequence[list[tuple[int, ShardRow]]], shards: Sequence[int]
    ) -> list[list[tuple[int, ShardRow]]]:
        """The rows by shard; those of the driver go with the first. Who has sent first comes first."""
        parts: list[list[tuple[int, ShardRow]]] = [[] for _ in shards]
        for rows in self.cluster.world.random.sample(list(sent), len(sent)):
            for number, row in rows:
                parts[shards.index(number) if number in shards else 0].append((number, row))
        return parts

    def _groups(self, found: Sequence[Range]) -> list[Sequence[Range]]:
        """The ranges as some tasks get them, each some that follow one another."""
        random = self.cluster.world.random
        borders = sorted({0, len(found), *(random.randint(0, len(found)) for _ in range(random.randint(0, 3)))})
        return [found[first:last] for first, last in pairwise(borders)]


def _any_done(at_work: Sequence[tuple[int, Fiber[Any]]]) -> bool:
    return any(fiber.done for _, fiber in at_work)


def _listed(work: Callable[..., Iterable[T]], *given: Any) -> list[T]:
    return list(work(*given))
