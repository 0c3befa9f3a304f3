"""The checkpoint: one folder with all durable state of a trunk, and the lock that keeps a second run out.

    format.json          kind, version and site; a folder without it is not ours
    lock, run.json       the run at work: its lock; its number, process, JVM, and where its endpoint listens
    intake.json          the streams and the size of epochs, which the intake reads for every epoch
    sight.json           files that the intake saw and that epochs have not read to the end
    reached.json         the largest times of items by stream, for heartbeats (`spark/intake/reached.py`)
    weights.json         the bytes of messages by stream, for the size of epochs (`spark/intake/weights.py`)
    order/<stream>.jsonl in which order the files of a stream were begun (`spark/intake/order.py`)
    plans/               the plans of epochs, durable before an epoch runs (`spark/plan/files.py`)
    manifest/<epoch>     the record that commits an epoch (`manifest.py`)
    segments/<epoch>/    the answers
    state/<epoch>/       the states of branches (`spark/state/files.py`)
    evolution/           the events that elements announced, for streams that have some (`spark/evolution/log.py`)
    sinks/<name>.json    the position of a sink; .topics: what is known of topics (`spark/sinks/topics/record.py`)
    answers/<stream>/    documents not yet read by streams that are answers (`spark/sinks/answer_streams.py`)
    spool/<stream>/      what was pushed into streams and is not read yet (`spark/spool/`)
    spark/               Spark's own checkpoint, which follows the manifests

A folder that is not ours, or that is damaged, is refused by name and never silently replaced.
So is the checkpoint of another site: its streams and subscriptions would be taken for changes of this one.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.storage import Location, Where

_KIND = "anabranch checkpoint"
_VERSION = 4
_FOLDERS = ("order", "plans", "manifest", "segments", "state", "sinks")
_JVM_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The locations of a checkpoint's parts; reading them needs no lock."""

    folder: Location

    @staticmethod
    def at(where: Where) -> Checkpoint:
        """The checkpoint in a folder, which need not exist yet."""
        return Checkpoint(Location.of(where))

    @staticmethod
    def open(where: Where, site: Path | None = None) -> Checkpoint:
        """A checkpoint that exists; `StateError` if it is none, or belongs to another site."""
        found = Checkpoint.at(where)
        if not found.identity.exists():
            raise StateError(f"'{where}' is not a checkpoint", hint="nothing has run with it yet, or it is damaged")
        found._check(site)
        return found

    @staticmethod
    def make(where: Where, site: Path | None = None) -> Checkpoint:
        """A checkpoint that exists, or a new one in a folder that is new or empty; `site` is its site file."""
        found = Checkpoint.at(where)
        folder = found.scratch
        with durable.writing(where):
            folder.mkdir(parents=True, exist_ok=True)
            if not found.identity.exists():
                if any(not _begun(each.name) for each in folder.iterdir()):
                    raise StateError(f"'{where}' holds other files and is not a checkpoint", hint="name a new folder")
                for name in _FOLDERS:
                    (folder / name).mkdir(exist_ok=True)
                owner = None if site is None else os.path.relpath(site, folder)  # both may move together
                durable.publish(found.identity, durable.sealed({"kind": _KIND, "version": _VERSION, "site": owner}))
        found._check(site)
        return found

    def _check(self, site: Path | None) -> None:
        identity = durable.unsealed(self.identity)
        match identity:
            case {"kind": kind, "version": version} if (kind, version) == (_KIND, _VERSION):
                self._check_owner(identity.get("site"), site)
            case {"kind": kind, "version": version} if kind == _KIND:
                hint = f"this one reads version {_VERSION}"
                raise StateError(f"the checkpoint '{self.folder}' has version {version}", hint=hint)
            case _:
                raise StateError(f"'{self.folder}' is not a checkpoint of this engine")
        missing = [name for name in _FOLDERS if not (self.scratch / name).is_dir()]
        if missing:
            raise StateError(f"the checkpoint '{self.folder}' is damaged: '{missing[0]}' is missing")

    def _check_owner(self, owner: str | None, site: Path | None) -> None:
        """Refuse another site; from Python no site is named, and such a checkpoint belongs to none."""
        if site is not None and owner is not None and os.path.relpath(site, self.scratch) != owner:
            here = site.absolute().parent
            made = os.path.relpath(self.scratch / owner, here)
            raise StateError(
                f"the checkpoint '{os.path.relpath(self.scratch, here)}' belongs to the site '{made}', "
                f"not to '{site.name}'",
                hint=f'name another checkpoint; if the file was renamed, add name = "{made}" to its [engine]',
            )

    @property
    def scratch(self) -> Path:
        """The folder on the driver's disk for what the driver, its survey and Spark tell each other."""
        found = self.folder.path
        assert found is not None, "a checkpoint is on a disk"
        return found

    @property
    def identity(self) -> Location:
        return self.folder / "format.json"

    @property
    def run_record(self) -> Location:
        """The record of the run at work."""
        return self.folder / "run.json"

    @property
    def intake(self) -> Path:
        return self.scratch / "intake.json"

    @property
    def sight(self) -> Path:
        return self.scratch / "sight.json"

    @property
    def reached(self) -> Path:
        return self.scratch / "reached.json"

    @property
    def weights(self) -> Path:
        return self.scratch / "weights.json"

    @property
    def states(self) -> Location:
        return self.folder / "state"

    @property
    def plans(self) -> Location:
        return self.folder / "plans"

    @property
    def manifests(self) -> Location:
        return self.folder / "manifest"

    @property
    def segments(self) -> Location:
        return self.folder / "segments"

    @property
    def spark(self) -> Path:
        return self.scratch / "spark"

    def order(self, stream: str) -> Path:
        return self.scratch / "order" / f"{_file_name(stream)}.jsonl"

    @property
    def evolution(self) -> Location:
        return self.folder / "evolution"

    def evolution_name(self, stream: str) -> str:
        """The prefix of the file names of a stream's evolution log."""
        return _file_name(stream)

    def answer_stream(self, stream: str) -> Path:
        """The folder with the documents of a stream that is the answer of a subscription."""
        return self.scratch / "answers" / _file_name(stream)

    def spool(self, stream: str) -> Path:
        """The folder with what was pushed into a stream."""
        return self.scratch / "spool" / _file_name(stream)

    def sink(self, path: Path, suffix: str = ".json") -> Location:
        """The position record of the sink that writes to a file; the site may move as a whole."""
        return self.folder / "sinks" / f"{_file_name(os.path.relpath(path, self.scratch))}{suffix}"

    def topics(self, *names: str) -> Location:
        """The file for what is known of topics: of all, of those of a cluster, or of one subscription there."""
        return self.folder / "sinks" / f"{_file_name(json.dumps(['kafka', *names]))}.topics"

    def reader(self, subscription: str, name: str) -> Location:
        """The position file of a named reader of a subscription."""
        # joined by a blank, two other names could look the same
        both = json.dumps([subscription, name]) if " " in subscription + name else f"{subscription} {name}"
        return self.folder / "sinks" / f"{_file_name(both)}.reader"


class RunLock:
    """The exclusive lock of a run on its checkpoint, held from `__enter__` to `__exit__`, or to the process's end.

    A driver that was killed leaves its JVM behind for a moment; the next run waits for its end.
    """

    def __init__(self, checkpoint: Checkpoint, jvm: int) -> None:
        self._path = checkpoint.scratch / "lock"
        self._about = checkpoint.run_record
        self._jvm = jvm
        self.run = 1
        """The number of this run, from 1."""

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
        for each in (self._about.parent, *(self._about.parent / name for name in _FOLDERS)):
            each.sweep()
        self.record()

    def record(self, endpoint: str | None = None) -> None:
        """Write down what this run is, and where its endpoint listens, if it has one."""
        about = {"run": self.run, "pid": os.getpid(), "jvm": self._jvm, "jvm_started": _started(self._jvm)}
        durable.replace(self._about, durable.sealed(about | ({"endpoint": endpoint} if endpoint else {})))

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


def _file_name(name: str) -> str:
    """A file name for any name of a stream or sink: readable, short, and unique."""
    return f"{quote(name, safe=' ')[:80]}-{durable.digest(name.encode())[:8]}"


def _begun(name: str) -> bool:
    """Whether a checkpoint whose creation was interrupted may contain this name."""
    return name in _FOLDERS or name.startswith(".format.json.")


def _started(process: int) -> str | None:
    """When a process was started, to tell it from another with the same number; None if there is none."""
    try:
        fields: Any = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else str(fields[19])
