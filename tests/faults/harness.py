"""The crash harness: `anabranch run` on one checkpoint, killed again and again, until nothing is left to read.

A chain is a sequence of runs on one site.
Before each run the streams grow by a part; the run is killed with SIGKILL, and the next one goes on, with epochs of
another size and another number of shards.
Some kills come at a named point of an epoch (`anabranch.spark.checkpoint.crash`): the run is told of the point in its
environment and kills itself there, to the instruction; each point is the end of one durable step and the beginning of
the next.
At a point in a task it is the task's process that dies, as often as Spark tries, until the run gives up.
Others come at a random moment from outside.
To be random without a clock such a kill waits until so many new files have shown up in the checkpoint, which happens
all the time: offsets, plans, segments, states, manifests, commits.
The victim is the driver, its JVM, or both at once.

A start costs seconds, most of them for loading Spark's classes.
So the undisturbed run, which comes first, leaves the JVM an archive of its classes, and the others start with it.
This makes starts cheaper and changes nothing else.

Whatever is killed here was started here, and is named by its process id.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic, sleep
from typing import Literal

from anabranch.algebra.display.replay import OPENING, Replay
from anabranch.errors import StateError
from anabranch.spark.checkpoint.crash import POINTS, TASK_POINTS
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.runs import RunLock
from faults.site import BY_ARRIVAL, DISPLAYS, EPOCH_BYTES, Feed, Site, StoredSite, twins_in_order

_PATIENCE = 180.0
"""Seconds after which a run that neither ends nor gets on counts as hung."""
_POLL = 0.002
_NEW_FILES = 20
"""A random kill waits for at most so many new files: those of about three epochs."""

_SIZES = (EPOCH_BYTES // 2, EPOCH_BYTES)
_SHARDS = (1, 2, 5)
LARGE = 4 * EPOCH_BYTES
"""The epochs of runs that nobody kills: few of them, for no part of an answer may depend on it."""

Victim = Literal["driver", "jvm", "group", "task"]


@dataclass(frozen=True, slots=True)
class Kill:
    """Who is killed, and when: at a named point of an epoch, or at a random moment."""

    victim: Victim
    point: str | None = None

    def __str__(self) -> str:
        return self.point or f"{self.victim} at random"


KILLS = (
    *(Kill("driver", point) for point in POINTS),
    *(Kill("task", point) for point in TASK_POINTS),
    *(Kill(victim) for victim in ("driver", "jvm", "group")),
)


@dataclass(slots=True)
class Tally:
    """What a chain went through; only the chain counts."""

    kills: Counter[str] = field(default_factory=Counter)
    epochs: int = 0
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Expected:
    """What an undisturbed run gives, by subscription."""

    answers: Mapping[str, str]
    sinks: Mapping[str, bytes]
    """The answers without their closing parts."""
    empty: Mapping[str, str]
    """The answers before anything was read."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What all runs share."""

    archive: Path
    """Where the JVM keeps its classes ready."""
    scratch: Path | None = None
    """Where runs of sites in an object store have local folders, a new and empty one for each."""

    def start(self, site: Site, crash: str | None = None) -> subprocess.Popen[bytes]:
        """Start `anabranch run --once` in a process group of its own; `crash` is a point and an epoch."""
        use = f"-XX:SharedArchiveFile={self.archive}"
        make = f"-XX:ArchiveClassesAtExit={self.archive}"
        environment = {
            **os.environ,
            **({"TMPDIR": mkdtemp(prefix="anabranch-", dir=self.scratch)} if isinstance(site, StoredSite) else {}),
            "SPARK_SUBMIT_OPTS": f"{os.environ['SPARK_SUBMIT_OPTS']} {use if self.archive.exists() else make}",
            "ANABRANCH_CRASH": crash or "",
        }
        command = Path(sys.executable).with_name("anabranch")
        with (site.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [command, "run", site.file, "--once", "--dead-letter", str(site.dead_letters)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run_to_the_end(self, site: Site) -> None:
        """Run undisturbed, though somebody else tries to, and wait for the JVM too."""
        process = self.start(site)
        if not isinstance(site, StoredSite):
            _watch(process, site, lambda: _pid(site) == process.pid)
            _check_refusal(site, process.pid)
        _watch(process, site)
        assert process.returncode == 0, _story(site, f"the run ended with {process.returncode}")
        await_end(_jvm(site))


def schedule(count: int, seed: int) -> list[Kill]:
    """So many kills, each kind as often as the others, in an order of their own."""
    kinds = random.Random(seed).sample(KILLS, len(KILLS))
    return list(islice(cycle(kinds), count))


def chain(
    machine: Machine, site: Site, feed: Feed, kills: Sequence[Kill], seed: int, expected: Expected
) -> tuple[Site, Tally]:
    """Run a site through all kills and then to its end; gives it as it is then."""
    rng = random.Random(seed)
    tally = Tally()
    jvms: set[int] = set()
    for part, kill in enumerate(kills):
        feed.lay(site.folder, [part])
        site = site.moved() if part else site
        site.configure(rng.choice(_SIZES), rng.choice(_SHARDS))
        before = site.answers()
        _killed_run(machine, site, kill, rng)
        jvms.add(_jvm(site))
        tally.kills[str(kill)] += 1
        _check_so_far(site, expected, before)
    feed.lay(site.folder, range(len(kills), len(feed.parts)))
    site = site.moved()
    site.configure(LARGE, shards=3)
    machine.run_to_the_end(site)
    for jvm in jvms:
        await_end(jvm)
    tally.epochs = len(site.epochs())
    tally.runs = len(kills) + 1
    return site, tally


def _killed_run(machine: Machine, site: Site, kill: Kill, rng: random.Random) -> None:
    """Start a run and see it die."""
    if kill.point is not None:
        taken = isinstance(site, StoredSite)  # the first epoch of a run there reads nothing
        epoch = max(site.epochs(), default=-1) + 1 + taken + rng.randrange(3)
        process = machine.start(site, f"{kill.point}:{epoch}")
        _watch(process, site)
        dead = 1 if kill.victim == "task" else -signal.SIGKILL  # without its tasks a run says so and ends
        assert process.returncode == dead, _story(site, f"{kill.point}:{epoch} was not reached")
        return
    before, count = _files(site), rng.randrange(1, _NEW_FILES)
    process = machine.start(site)
    alive = _watch(process, site, lambda: len(_files(site) - before) >= count and _pid(site) == process.pid)
    assert alive, _story(site, "the run ended before it was killed")
    match kill.victim:
        case "driver":
            process.kill()
        case "jvm":
            os.kill(_jvm(site), signal.SIGKILL)
        case "group":
            os.killpg(process.pid, signal.SIGKILL)
            os.kill(_jvm(site), signal.SIGKILL)  # it has a group of its own
    _watch(process, site)
    dead = 1 if kill.victim == "jvm" else -signal.SIGKILL  # a driver without its JVM says so and ends
    assert process.returncode == dead, _story(site, f"killed ({kill}), the run ended with {process.returncode}")


def _watch(process: subprocess.Popen[bytes], site: Site, until: Callable[[], bool] = lambda: False) -> bool:
    """Wait for something; False if the process ended before."""
    patience = monotonic() + _PATIENCE
    while process.poll() is None:
        if until():
            return True
        if monotonic() > patience:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise AssertionError(_story(site, "the run hangs"))
        sleep(_POLL)
    return False


def await_end(pid: int) -> None:
    """Wait until a process is gone; one that was left behind must end by itself."""
    patience = monotonic() + _PATIENCE
    while Path(f"/proc/{pid}").exists():
        assert monotonic() < patience, f"process {pid} was left behind"
        sleep(_POLL)


def _check_refusal(site: Site, holder: int) -> None:
    """A second run on a checkpoint is refused, and told who holds it."""
    try:
        with RunLock(Checkpoint.open(site.checkpoint), os.getpid()):
            pass
    except StateError as error:
        message = str(error)
    else:
        message = "nobody refused"
    assert f"another run is at work on the checkpoint '{site.checkpoint}' (process {holder})" in message


def _shown(told: str) -> set[str]:
    """What a display has shown, which was told so."""
    replay = Replay()
    return {replay.text for _ in replay.feed(told.removeprefix(OPENING))}


def _check_so_far(site: Site, expected: Expected, before: Mapping[str, str]) -> None:
    """After a kill the epochs have no gap, and answers and sinks are the front of what they will be in the end.

    Of subscriptions by arrival the end is not known beforehand: they go on from what they answered before.
    """
    epochs = site.epochs()
    assert epochs == list(range(len(epochs)))
    for name, data in site.sinks().items():
        if name not in BY_ARRIVAL:
            assert expected.sinks[name].startswith(data), _story(site, f"the sink of '{name}' is wrong")
    answers = site.answers()
    assert twins_in_order(answers, whole=False), _story(site, f"{answers['twins']} or {answers['couples']} is wrong")
    for name in BY_ARRIVAL:
        front = "" if before[name] == expected.empty[name] else before[name].removesuffix("</r>")
        assert answers[name].startswith(front), _story(site, f"'{name}' had answered {front}")
    for name, text in answers.items():
        if name in BY_ARRIVAL:
            continue
        front = expected.sinks.get(name, b"").decode()
        if name in DISPLAYS:
            assert text == expected.empty[name] or text in _shown(front), _story(site, f"'{name}' has shown {text}")
            continue
        closing = expected.answers[name].removeprefix(front)
        right = text.endswith(closing) and front.startswith(text.removesuffix(closing))
        assert right or text == expected.empty[name], _story(site, f"the answer of '{name}' is wrong: {text[:500]}")


def _files(site: Site) -> set[str]:
    """The files of the checkpoint that come and go with epochs."""
    folders = ("order", "plans", "manifest", "segments", "state", "scratch/spark")
    return {f"{each}/{name}" for each in folders for name in (site.checkpoint / each).names(below=True)}


def _pid(site: Site) -> int | None:
    """The process that holds the checkpoint, or held it last."""
    return _about(site).get("pid")


def _jvm(site: Site) -> int:
    return _about(site)["jvm"]


def _about(site: Site) -> dict[str, int]:
    names = (site.checkpoint / "runs").names() if isinstance(site, StoredSite) else ["run.json"]
    file = site.checkpoint / (f"runs/{names[-1]}" if isinstance(site, StoredSite) and names else "run.json")
    found: dict[str, int] = json.loads(file.read().split(b"\n")[0]) if file.exists() else {}
    return found


def _story(site: Site, message: str) -> str:
    log = (site.folder / "log").read_text(errors="replace")
    return f"{message}; the log ends with\n{log[-3000:]}"
