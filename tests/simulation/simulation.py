"""One seed: a site lives through kills, power cuts, errors, lost requests and late twins, and is judged.

A *life* is a run of the trunk, from its start to its death, its failure, or the end of what there is to read.
In each phase there are some lives that fare badly, and then one without any faults, which has to read all.
An object store has runs that stand still, too: the next run takes over, and the one before is waked while it works.

What is checked:

- after every life, right after the power cut if there was one: all epochs that had been reported are there, what had
  been committed is a prefix of what is, and what had been delivered to a sink is a prefix of what the sink holds;
- at the end: answers, sinks, dead letters and late items equal those of an undisturbed run, to the byte, and answers
  those of the law, for subscriptions that were there all the time; positions of streams never moved back; and nothing
  is left in the checkpoint that no manifest names.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from anabranch.errors import AnabranchError
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifests
from anabranch.spark.epoch import background
from anabranch.spark.epoch import trunk as trunks
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.hosts.host import Host
from anabranch.spark.intake import folders, survey
from anabranch.spark.intake import storage as intake_storage
from anabranch.spark.plan import documents, files
from anabranch.spark.plan.wanted import Epoch, Listener
from anabranch.storage import Location
from anabranch.storage import disk as real_disk
from anabranch.storage.objects import ObjectFile
from anabranch.stream.settings import Settings
from simulation.broker import Broker
from simulation.clients import Wire
from simulation.disk import PowerCut, SimulatedDisk
from simulation.host import Cluster, JobFailed, SimulatedHost
from simulation.place import Broken, Findings, Place, delivered_whole, lawful, lay, read_all, undisturbed
from simulation.store import BUCKET, SimulatedStore
from simulation.streams import OUTLETS, TOPICS, Phase, Piece, Script
from simulation.world import Killed, Process, World, pools_of, threads_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a seed has shown."""

    seed: int
    steps: int
    lives: int
    kills: int
    epochs: int
    trace: str


# --- the world --------------------------------------------------------------------------------------------------------


@contextmanager
def inhabited(world: World, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let production code live in the world: its clocks, threads, names and locks."""
    clock = world.clock
    patch.setattr(os, "urandom", world.urandom)
    patch.setattr(real_disk, "get_native_id", lambda: world.current.number)
    patch.setattr(survey, "time_ns", clock.time_ns)
    patch.setattr(trunks, "time", clock.time)
    patch.setattr(trunks, "monotonic", clock.monotonic)
    patch.setattr(background, "Thread", threads_of(world))
    for module in (real_disk, intake_storage):
        patch.setattr(module, "ThreadPoolExecutor", pools_of(world))
    patch.setattr(ObjectFile.__dict__["_size"], "lock", _NoLock())  # it is one for all files, and fibers wait within
    yield


class _NoLock:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


@dataclass
class Simulation:
    """A seed at work."""

    seed: int
    world: World
    script: Script
    place: Place
    disk: SimulatedDisk | None
    store: SimulatedStore | None
    told: dict[str, bytes] = field(default_factory=dict)
    """What sinks held when an epoch was reported."""
    reported: int = -1
    """The newest epoch that was reported."""
    committed: dict[tuple[str, int], str] = field(default_factory=dict)
    """By name and number: what was committed of an answer when it was looked at last."""
    lives: int = 0
    kills: int = 0
    waiting: list[Piece] = field(default_factory=list)
    """What has still to come in this phase."""
    clusters: list[Cluster] = field(default_factory=list)
    """The workers of all runs so far."""
    asleep: list[Process] = field(default_factory=list)
    """Runs that stand still."""

    # --- lives --------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Live through all phases, and judge."""
        random = self.world.random
        self.world.after_step += [self._grow, self._wake]
        for phase in self.script.phases:
            self.waiting = list(phase.pieces)
            for _ in range(random.choice((0, 1, 1, 2, 3, 5))):
                self._live(phase, faulty=True)
            self._live_quietly(phase)
            for each in self.asleep:  # whoever still stands still has subscriptions that may change now
                each.paused = False
            self.world.wait(lambda: not any(map(self.world.fibers, self.asleep)))
        self._live_quietly(self.script.phases[-1])
        with self.world.looking():
            epochs = len(Manifests(Checkpoint.at(self.place.checkpoint).manifests).epochs())
        return Outcome(self.seed, self.world.steps, self.lives, self.kills, epochs, self.world.trace.hexdigest())

    def _live_quietly(self, phase: Phase) -> None:
        """A life without faults of its own, to the end of what there is."""
        loss, stale = (self.store.loss, self.store.is_stale) if self.store else (0.0, False)
        for piece in self.waiting if self.world.random.random() < 0.5 else ():
            self._lay(piece)
            self.waiting = []
        if self.store:
            self.store.loss, self.store.is_stale = 0.0, False
        self.place.wire.calm(True)
        while not (
            self._live(phase, faulty=False) and self._is_read(phase)
        ):  # a run that has waked took over meanwhile
            pass
        self.place.wire.calm(False)
        if self.store:
            self.store.loss, self.store.is_stale = loss, stale

    def _is_read(self, phase: Phase) -> bool:
        """Whether topics were read to their ends; a run that does not hear of an end in time goes no further."""
        with self.world.looking():
            newest, broker = Manifests(Checkpoint.at(self.place.checkpoint).manifests).newest(), self.place.wire.broker
            broker.settle()
            read = newest.offsets if newest else {}
            logs = [log for name in TOPICS.keys() & {*phase.streams} for log in broker.topics[name]]
            return all(read.get(str(each), {"position": 0})["position"] == each.stable for each in logs)

    def _live(self, phase: Phase, *, faulty: bool) -> bool:
        """Run once; whether all was read."""
        world, random = self.world, self.world.random
        self.lives += 1
        driver = Process(f"run {self.lives}")
        cluster = Cluster(world, driver, random.randint(1, 3), 0.0, 0.0)
        self.clusters.append(cluster)
        if faulty:
            fate = Fate(self, cluster, random.randint(1, random.choice((60, 250, 600))))
            cluster.deaths, cluster.twins = random.choice((0.0, 0.0, 0.1)), random.choice((0.0, 0.0, 0.3))
            driver.fates.append(fate.step)
        epoch_bytes = random.choice((60, 300, 1_000, 100_000))
        settings = Settings(shards=random.choice((None, 1, 2, 5)), strands=random.choice((0, 2, None)))
        fiber = world.spawn(driver, lambda: self._work(SimulatedHost(cluster), settings, phase, epoch_bytes))
        world.wait(lambda: fiber.done or driver.paused)
        if not fiber.done:
            self.asleep.append(driver)
        elif not driver.alive:
            world.unwind()
            if self.disk is not None:
                self.disk.restart()
        elif fiber.error is not None and not self._may_fail(fiber.error, faulty):
            raise fiber.error
        else:  # a disk has one machine: what its run has left behind ends with it
            world.kill(driver, *(cluster.all if self.disk is not None else ()))
        self._check(f"after life {self.lives}")
        return fiber.done and fiber.error is None

    def _may_fail(self, error: BaseException, faulty: bool) -> bool:
        """Whether a run may end with an error: where there were faults, by name, or where another has taken over."""
        taken = ("has taken over", "another copy of the checkpoint is at work")
        overtaken = bool(self.asleep) and any(each in str(error) for each in taken)
        return overtaken or (faulty and isinstance(error, AnabranchError | JobFailed))

    def _work(self, host: Host, settings: Settings, phase: Phase, epoch_bytes: int) -> None:
        """A run, to the end of what there is to read."""
        random = self.world.random
        with Trunk(host, self.place.checkpoint, settings, listener=Listener(self._hear)) as trunk:
            trunk.want(self.place.workload(self.script, phase, epoch_bytes))
            while True:
                read_all(trunk, random.choice((1, 3, 1_000)))  # then the process of the intake is lost, and made anew
                if not self.waiting:
                    break
                self._lay(self.waiting.pop(0))
            read_all(trunk)

    def die(self, cluster: Cluster) -> None:
        """The machine of a run ends, or its driver."""
        self.kills += 1
        if self.disk is None:
            ended = [each for each in cluster.all if self.world.random.random() < 0.5]
        else:
            ended = cluster.all
            if self.world.random.random() < 0.5:
                self.disk.kill()
            else:
                self.disk.cut_power(PowerCut.drawn(Random(f"{self.seed} {self.world.steps}")))
        self.world.kill(cluster.driver, *ended)
        raise Killed

    # --- what happens outside -----------------------------------------------------------------------------

    def _grow(self) -> None:
        if self.waiting and self.world.random.random() < 0.01:
            self._lay(self.waiting.pop(0))

    def _lay(self, piece: Piece) -> None:
        if self.store is not None and self.place.objects is not None and piece.file.startswith("s/"):
            self.store.lay(f"in/{piece.file}", piece.data)
        else:
            lay(self.place, piece)

    def _wake(self) -> None:
        for each in self.asleep:
            if each.paused and self.world.random.random() < 0.005:
                each.paused = False

    def _hear(self, epoch: Epoch) -> None:
        """An epoch is reported: it is committed and delivered."""
        with self.world.looking():
            number = epoch.manifest.epoch
            self.reported = max(self.reported, number)
            if self.world.current.process not in self.asleep:
                self.told = delivered_whole(self.place.sinks())

    # --- checks -------------------------------------------------------------------------------------------

    def _check(self, when: str) -> None:
        """What was promised before holds."""
        with self.world.looking():
            checkpoint = Checkpoint.at(self.place.checkpoint)
            if not checkpoint.is_made():
                if self.reported >= 0:
                    raise Broken(f"{when}: the checkpoint is gone")
                return
            kept = Manifests(checkpoint.manifests).epochs()
            if (kept[-1] if kept else -1) < self.reported:
                raise Broken(f"{when}: epoch {self.reported} was reported, and the newest is {kept}")
            there = delivered_whole(self.place.sinks())
            for name, data in self.told.items():
                if not there.get(name, b"").startswith(data):
                    raise Broken(f"{when}: '{name}' has lost what was delivered:\n{data!r}\nnow\n{there.get(name)!r}")
            self._check_committed(checkpoint, when)

    def _check_committed(self, checkpoint: Checkpoint, when: str) -> None:
        log = AnswerLog(checkpoint)
        for name in sorted({name for phase in self.script.phases for name in phase.subscriptions}):
            asked = log.subscription(name)
            if asked is None:
                continue
            chunks = (each for manifest in log.manifests.since(asked.first) for each in log.chunks(manifest, asked.id))
            text = "".join(map(log.text, chunks))
            before = self.committed.get((name, asked.id), "")
            if not text.startswith(before):
                raise Broken(f"{when}: '{name}' had been answered\n{before}\nand now it is\n{text}")
            self.committed[name, asked.id] = text

    def judge(self, due: Findings) -> None:
        """Compare all that was answered with what is due."""
        with self.world.looking():
            found = Findings.of(self.place, self.script)
            for name in sorted({*due.answers, *found.answers}):
                _same(f"the answer of '{name}'", found.answers.get(name), due.answers.get(name))
            ours, theirs = delivered_whole(found.delivered), delivered_whole(due.delivered)
            lines = {"dead.jsonl", "late.jsonl"}  # those of two streams have no order among them
            for name in sorted({*ours, *theirs}):
                if name in lines:
                    sides = [sorted(each.get(name, b"").splitlines()) for each in (ours, theirs)]
                    _same(f"the sink '{name}'", *sides)
                else:
                    _same(f"the sink '{name}'", ours.get(name), theirs.get(name))
            _same("the dead letters", found.dead, due.dead)
            _same("the late items", found.late, due.late)
            for key in sorted({*found.topics, *due.topics}):
                _same(f"what is in the topic {key}", found.topics.get(key), due.topics.get(key))
            self._check_positions()
            self._check_garbage()

    def _check_positions(self) -> None:
        manifests = list(Manifests(Checkpoint.at(self.place.checkpoint).manifests).since(0))
        _same("the numbers of epochs", [each.epoch for each in manifests], list(range(len(manifests))))
        for before, after in pairwise(manifests):
            if after.run < before.run:
                raise Broken(f"epoch {after.epoch} is of run {after.run}, behind one of run {before.run}")
            for key, at in before.offsets.items():
                now = after.offsets.get(key, at)
                if (now["file"], now["position"]) < (at["file"], at["position"]):
                    raise Broken(f"epoch {after.epoch} goes back in {key}: from {at} to {now}")

    def _check_garbage(self) -> None:
        checkpoint = Checkpoint.at(self.place.checkpoint)
        manifests = list(Manifests(checkpoint.manifests).since(0))
        named = set(manifests[-1].kept) | {f"segments/{each.name}" for one in manifests for each in one.segments}
        folders = ("state", "sight", "evolution", "segments")
        there = {f"{each}/{name}" for each in folders for name in (checkpoint.folder / each).names(below=True)}
        left = sorted(name for name in there - named)
        if len(left) > self._unheard():
            raise Broken(f"left behind, by {self._unheard()} attempts that nobody heard: {left}")
        if named - there - {each for each in named if each.startswith("order/")}:
            raise Broken(f"missing: {sorted(named - there)}")

    def _unheard(self) -> int:
        """How many files may have been written when nobody looked for them any more.

        A twin that ends late has a segment and a state; a run that wakes up late has them for each of its tasks, and a
        request that is late puts back what was removed; so does a power cut, since removals are not synced.
        """
        twins = sum(each.unheard for each in self.clusters)
        return 2 * twins + (4 * self.kills if self.store is None else self.store.delayed + 20 * len(self.asleep))


def _same(what: str, found: object, due: object) -> None:
    if found != due:
        raise Broken(f"{what} is\n{found!r}\ninstead of\n{due!r}")


@dataclass
class Fate:
    """What befalls a run, and after how many of its steps."""

    simulation: Simulation
    cluster: Cluster
    left: int

    def step(self) -> None:
        self.left -= 1
        if self.left:
            return
        random = self.simulation.world.random
        driver = self.cluster.driver
        match random.choice(("dies", "dies", "dies", "fails", "sleeps")):
            case "fails":
                number = random.choice((errno.EIO, errno.ENOSPC))
                raise OSError(number, os.strerror(number))
            case "sleeps" if self.simulation.disk is None:
                driver.paused = True
            case _:
                self.simulation.die(self.cluster)


def simulate(seed: int, adapt: Callable[[pytest.MonkeyPatch], None] = lambda patch: None) -> Outcome:
    """Run one seed, on production code as it is or as `adapt` has changed it; raises what it finds."""
    forget()
    with folder_of(seed) as base:
        script = Script.drawn(Random(f"script {seed}"))
        outlets = TOPICS | OUTLETS
        calm = Place.at(base / "calm" / "in", Location.of(base / "calm"), Wire(Broker(outlets)))
        with pytest.MonkeyPatch.context() as patch:
            calm.wire.installed(patch)
            due = undisturbed(calm, script)
        lawful(calm, script, due)
        world = World(seed)
        with pytest.MonkeyPatch.context() as patch:
            wire = Wire(Broker(outlets), world)
            wire.installed(patch)
            adapt(patch)
            disk = store = None
            if world.random.random() < 0.4:
                store = SimulatedStore(world, patch)
                objects = Location.of(f"{BUCKET}/in") if world.random.random() < 0.5 else None
                place = Place.at(base / "in", Location.of(BUCKET), wire, objects)
            else:
                (base / "world").mkdir()
                disk = SimulatedDisk(world, base / "world", patch)
                place = Place.at(base / "in", Location.of(base / "world"), wire)
            with inhabited(world, patch):
                simulation = Simulation(seed, world, script, place, disk, store)
                outcome = simulation.run()
                simulation.judge(due)
        return outcome


def forget() -> None:
    """Forget what this process has cached of checkpoints: those of another seed may have the same names."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("anabranch.spark", "anabranch.storage")):
            for each in vars(module).values():
                if hasattr(each, "cache_clear"):
                    each.cache_clear()
    for cached in (files._written, files._blocks, folders._folders, intake_storage._fronts, documents._loaded):
        cached.clear()


@contextmanager
def folder_of(seed: int) -> Iterator[Path]:
    """A folder in memory, always the same for a seed, since what is written says where it is."""
    memory = Path("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir())
    base = memory / f"anabranch-simulation-{os.getuid()}" / str(seed)
    base.parent.mkdir(exist_ok=True)
    with ExitStack() as held:
        while True:
            lock = held.enter_context(open(base.with_suffix(".lock"), "w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):  # whoever had it before has removed it
                if base.with_suffix(".lock").stat().st_ino == os.fstat(lock.fileno()).st_ino:
                    break
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir()
        try:
            yield base
        finally:
            shutil.rmtree(base)
            base.with_suffix(".lock").unlink()
