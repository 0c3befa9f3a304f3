"""The checkpoint: one folder with all durable state of a trunk, on a disk or in an object store.

    format.json          kind, version and site; a folder without it is not ours
    lock, run.json       on a disk, the run at work: its lock; its number, process and JVM (`runs.py`)
    runs/<run>.json      in an object store, the runs so far
    endpoint.json        where the endpoint of the latest run listens, if it had one
    service.json         where the service of the latest run listens, if it had one
    registry/            the subscriptions that were registered through the service (`registry.py`)
    manifest/<epoch>     the record that commits an epoch, and the truth (`manifest.py`)
    plans/<run>/         the plans of epochs, with the documents they read (`spark/plan/files.py`)
    segments/<epoch>/    the answers
    state/<epoch>/       the states of branches (`spark/state/files.py`)
    order/<stream>/      in which order the files of a stream were begun (`spark/intake/order.py`)
    sight/               files that were seen at one moment and not read to the end (`spark/intake/survey.py`)
    evolution/           the events that elements announced, for streams that have some (`spark/evolution/log.py`)
    sinks/<name>.json    the position of a sink; .topics: what is known of topics (`spark/sinks/topics/record.py`)
    answers/<stream>/    documents not yet read by streams that are answers (`spark/sinks/answer_streams.py`)
    spool/<stream>/      what was pushed into streams and is not read yet (`spark/spool/`)

Of states, orders, sights and events, only what the newest manifest names counts.

Beside it every run has a *scratch* folder on the driver's own disk, which it makes anew from the newest manifest
(`recovery.py`): Spark's own checkpoint, and what the driver and the intake tell each other.
For a checkpoint on a disk it is the folder `scratch` in it.

    spark/               Spark's own checkpoint, which follows the manifests
    intake.json          the streams and the size of epochs, which the intake reads for every epoch
    orders.json, order/  the order logs as they were when the run began, and what they have gained since
    sight.json           the files that the intake saw and that epochs have not read to the end
    reached.json         the largest times of items by stream, for heartbeats (`spark/intake/reached.py`)
    weights.json         the bytes of messages by stream, for the size of epochs (`spark/intake/weights.py`)

A folder that is not ours, or that is damaged, is refused by name and never silently replaced.
So is the checkpoint of another site: its streams and subscriptions would be taken for changes of this one.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.storage import Location, Where
from anabranch.storage.disk import make_folder

_KIND = "anabranch checkpoint"
_VERSION = 5
_MANIFESTS = "manifest"
_WRITTEN = ("segments", "state")
"""What epochs write before the first manifest that names it, and not before the manifest of the run's beginning."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The locations of a checkpoint's parts; reading them needs no lock."""

    folder: Location
    local: Path | None = None
    """The scratch folder of a run; None for who only reads what is committed, in an object store."""

    @staticmethod
    def at(where: Where) -> Checkpoint:
        """The checkpoint in a folder, which need not exist yet."""
        folder = Location.of(where)
        return Checkpoint(folder, None if folder.path is None else folder.path / "scratch")

    @staticmethod
    def open(where: Where, site: Path | None = None) -> Checkpoint:
        """A checkpoint that exists; `StateError` if it is none, or belongs to another site."""
        found = Checkpoint.at(where)
        if not found.is_made():
            raise StateError(f"'{where}' is not a checkpoint", hint="nothing has run with it yet, or it is damaged")
        found._check(site)
        return found

    @staticmethod
    def make(where: Where, site: Path | None = None) -> Checkpoint:
        """A checkpoint that exists, or a new one in a folder that is new or empty; `site` is its site file."""
        found = Checkpoint.at(where)
        if not found.is_made():
            found._refuse_others()
            if (path := found.folder.path) is not None:
                with durable.writing(where):
                    make_folder(path / _MANIFESTS)
            identity = {"kind": _KIND, "version": _VERSION, "site": None if site is None else found._seen(site)}
            durable.create(found.identity, durable.sealed(identity))
        found._check(site)
        return found

    def is_made(self) -> bool:
        """Whether there is a checkpoint, or what looks like one."""
        return durable.exists(self.identity)

    def with_scratch(self, local: Path) -> Checkpoint:
        """The same for a run with a scratch folder."""
        return replace(self, local=local)

    def _refuse_others(self) -> None:
        """Refuse a folder that holds something else."""
        path = self.folder.path
        there = durable.names(self.folder, below=path is None)
        folders = [each.name for each in path.iterdir() if each.is_dir()] if path is not None and path.is_dir() else []
        if any(not name.startswith(".format.json.") for name in there) or set(folders) - {_MANIFESTS}:
            raise StateError(f"'{self.folder}' holds other files and is not a checkpoint", hint="name a new folder")

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
        if self._lacks_manifests():
            raise StateError(f"the checkpoint '{self.folder}' is damaged: '{_MANIFESTS}' is missing")

    def _lacks_manifests(self) -> bool:
        """Whether the manifests are lost: their folder on a disk; in an object store, all before what they name."""
        if self.folder.path is not None:
            return not (self.folder.path / _MANIFESTS).is_dir()
        written = any(durable.names(self.folder / each, below=True) for each in _WRITTEN)
        return written and not durable.names(self.manifests)

    def _check_owner(self, owner: str | None, site: Path | None) -> None:
        """Refuse another site; from Python no site is named, and such a checkpoint belongs to none."""
        if site is None or owner is None or self._seen(site) == owner:
            return
        named, made = str(self.folder), owner
        if (path := self.folder.path) is not None:
            here = site.absolute().parent
            named, made = os.path.relpath(path, here), os.path.relpath(path / owner, here)
        raise StateError(
            f"the checkpoint '{named}' belongs to the site '{made}', not to '{site.name}'",
            hint=f'name another checkpoint; if the file was renamed, add name = "{made}" to its [engine]',
        )

    def _seen(self, path: Path) -> str:
        """A path as the checkpoint knows it: both may move together on a disk, and a run may move between machines."""
        return path.name if self.folder.path is None else os.path.relpath(path, self.folder.path)

    # --- what is durable ----------------------------------------------------------------------------------

    @property
    def identity(self) -> Location:
        return self.folder / "format.json"

    @property
    def endpoint(self) -> Location:
        """Where the endpoint of the latest run that had one listens."""
        return self.folder / "endpoint.json"

    @property
    def service(self) -> Location:
        """Where the service of the latest run that had one listens."""
        return self.folder / "service.json"

    @property
    def registry(self) -> Location:
        return self.folder / "registry"

    @property
    def states(self) -> Location:
        return self.folder / "state"

    @property
    def plans(self) -> Location:
        return self.folder / "plans"

    @property
    def manifests(self) -> Location:
        return self.folder / _MANIFESTS

    @property
    def segments(self) -> Location:
        return self.folder / "segments"

    @property
    def sights(self) -> Location:
        return self.folder / "sight"

    def order(self, stream: str) -> Location:
        """The folder with the parts of a stream's order log."""
        return self.folder / "order" / file_name(stream)

    @property
    def evolution(self) -> Location:
        return self.folder / "evolution"

    def answer_stream(self, stream: str) -> Location:
        """The folder with the documents of a stream that is the answer of a subscription."""
        return self.folder / "answers" / file_name(stream)

    def spool(self, stream: str) -> Location:
        """The folder with what was pushed into a stream."""
        return self.folder / "spool" / file_name(stream)

    def sink(self, where: Where, suffix: str = ".json") -> Location:
        """The position record of the sink that writes to a file; the site may move as a whole."""
        at = Location.of(where)
        near = at.storage == self.folder.storage
        name = os.path.relpath(f"/{at.key}", f"/{self.folder.key}") if near else str(at)
        return self.folder / "sinks" / f"{file_name(name)}{suffix}"

    def topics(self, *names: str) -> Location:
        """The file for what is known of topics: of all, of those of a cluster, or of one subscription there."""
        return self.folder / "sinks" / f"{file_name(json.dumps(['kafka', *names]))}.topics"

    def reader(self, subscription: str, name: str) -> Location:
        """The position file of a named reader of a subscription."""
        # joined by a blank, two other names could look the same
        both = json.dumps([subscription, name]) if " " in subscription + name else f"{subscription} {name}"
        return self.folder / "sinks" / f"{file_name(both)}.reader"

    # --- what is made anew by each run --------------------------------------------------------------------

    @property
    def scratch(self) -> Path:
        assert self.local is not None, "a run has a scratch folder"
        return self.local

    @property
    def intake(self) -> Location:
        return Location.unsynced(self.scratch / "intake.json")

    @property
    def sight(self) -> Location:
        return Location.unsynced(self.scratch / "sight.json")

    @property
    def reached(self) -> Location:
        return Location.unsynced(self.scratch / "reached.json")

    @property
    def weights(self) -> Location:
        return Location.unsynced(self.scratch / "weights.json")

    @property
    def spark(self) -> Path:
        return self.scratch / "spark"

    @property
    def orders(self) -> Location:
        return Location.unsynced(self.scratch / "orders.json")

    def gained(self, stream: str) -> Path:
        """What the order log of a stream has gained in this run."""
        return self.scratch / "order" / f"{file_name(stream)}.jsonl"


def file_name(name: str) -> str:
    """A file name for any name of a stream or sink: readable, short, and unique."""
    return f"{quote(name, safe=' ')[:80]}-{durable.digest(name.encode())[:8]}"
