"""Which run may work on a checkpoint: one at a time, and the others are told.

On a disk a run holds a lock, and a second one is refused.
A driver that was killed leaves its JVM behind for a moment; the next run waits for its end.

In an object store nobody can hold a lock, and nobody can tell whether the run before has ended or only pauses.
There the newest run wins (`TakenRun`, `take_over`):

1. It takes the next number, by an exclusive create.
2. It publishes an epoch of its own that has read nothing, as the next one, by an exclusive create.
   Where another run was quicker, it tries the one after; where that was a run with a higher number, it gives up.
3. Only then does it read anything else.

From then on the epoch that any earlier run has at work cannot be published, because its number is taken, and that run
ends with an error that names the new one.
The numbers of the runs that published epochs never decrease.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests
from anabranch.storage import Location

_JVM_SECONDS = 60.0
_KNOWN_RUNS = 100
"""How many records of earlier runs are kept in an object store."""


class RunLock:
    """The exclusive lock of a run on its checkpoint, held from `__enter__` to `__exit__`, or to the process's end."""

    def __init__(self, checkpoint: Checkpoint, jvm: int) -> None:
        folder = checkpoint.folder.path
        assert folder is not None, "there are locks on a disk only"
        self._path = folder / "lock"
        self.run = 1
        """The number of this run, from 1."""
        self._about = record(checkpoint, self.run)
        self._jvm = jvm

    def __enter__(self) -> RunLock:
        with durable.writing(self._path):
            self._file = self._path.open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise StateError(
                f"another run is at work on the checkpoint '{self._path.parent}'{self._holder()}",
                hint="stop it first, or name another checkpoint",
            ) from None
        try:
            self._follow()
        except BaseException:
            self._file.close()
            raise
        return self

    def _follow(self) -> None:
        """Take the number after the last run's."""
        if self._about.exists():
            before = durable.unsealed(self._about)
            self.run = before["run"] + 1
            self._await_end(before["jvm"], before["jvm_started"])
        for name in ("", "manifest", "plans", "sinks"):
            (self._about.parent / name if name else self._about.parent).sweep()
        with durable.writing(self._path):
            # a run that was killed may have given names that it had not synced: what goes on from them needs them
            self._about.parent.settle("manifest", "plans", "sinks", "registry")
        about = {"run": self.run, "pid": os.getpid(), "jvm": self._jvm, "jvm_started": _started(self._jvm)}
        durable.replace(self._about, durable.sealed(about))

    def _holder(self) -> str:
        try:
            return f" (process {json.loads(self._about.read().split(bytes([10]))[0])['pid']})"
        except (OSError, ValueError, KeyError):
            return ""

    def _await_end(self, jvm: int, started: str | None) -> None:
        """Wait for the end of the last run's JVM, unless it is ours or long gone."""
        patience = monotonic() + _JVM_SECONDS
        while jvm != self._jvm and started is not None and _started(jvm) == started:
            if monotonic() > patience:
                hint = "it should have ended with the run before; end it"
                raise StateError(f"the JVM of an earlier run is still alive (process {jvm})", hint=hint)
            sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class TakenRun:
    """A run in an object store: its number, and how others find out whose it is."""

    run: int

    @staticmethod
    def take(checkpoint: Checkpoint, jvm: int) -> TakenRun:
        """Take the next number; of several runs that start at once, each gets its own."""
        folder = checkpoint.folder / "runs"
        known = [int(name.removesuffix(".json")) for name in durable.names(folder)]
        run = max(known, default=0) + 1
        about = {"host": socket.gethostname(), "pid": os.getpid(), "jvm": jvm}
        while not durable.create(record(checkpoint, run), durable.sealed({"run": run, **about, "token": _token()})):
            run += 1
        durable.delete(folder, [f"{each:08}.json" for each in known if each < run - _KNOWN_RUNS])
        return TakenRun(run)


def take_over(checkpoint: Checkpoint, run: int, plan: str) -> Manifest:
    """Publish an epoch of a new run that has read nothing; gives it, as what the run goes on from.

    `plan` names an empty plan, for the first run of all.
    """
    manifests = Manifests(checkpoint.manifests)
    while True:
        newest = manifests.newest()
        if newest is not None and newest.run > run:
            raise overtaken(checkpoint, newest.run)
        fresh = Manifest.first(run, plan) if newest is None else newest.handed_on(run)
        if manifests.publish(fresh):
            return fresh


def record(checkpoint: Checkpoint, run: int) -> Location:
    """Where a run says whose it is: on a disk there is only one."""
    if checkpoint.folder.path is not None:
        return checkpoint.folder / "run.json"
    return checkpoint.folder / "runs" / f"{run:08}.json"


def overtaken(checkpoint: Checkpoint, run: int) -> StateError:
    """The error for a run that another one has overtaken."""
    who = f"number {run}"
    with suppress(StateError, KeyError):
        about = durable.unsealed(record(checkpoint, run))
        who += f" on {about['host']}, process {about['pid']}"
    return StateError(
        f"another run ({who}) has taken over the checkpoint '{checkpoint.folder}'",
        hint="nothing is lost: that run goes on where this one was",
    )


def _token() -> str:
    """Tells two runs of one process apart."""
    return os.urandom(8).hex()


def _started(process: int) -> str | None:
    """When a process was started, to tell it from another with the same number; None if there is none."""
    try:
        fields: Any = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else str(fields[19])
