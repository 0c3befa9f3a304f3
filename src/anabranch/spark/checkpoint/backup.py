"""Backups of a checkpoint, which may be made while a run is at work on it, and checkpoints made of backups.

A backup has the checkpoint as it was at one moment, behind the newest epoch of then.
What an epoch needs is removed only when the next one is committed, and nearly all objects are written once, whole.
So it is enough to take all of them, and to begin again with those that have come since if meanwhile an epoch was
committed, or an object was gone.
On a disk they are taken by links, in moments, and copied from these; in an object store they are copied at once.

    <backup>/backup.json       epoch, run, and by object its size and checksum; written last
    <backup>/checkpoint/       the objects

What belongs to a run on a machine is left out: its scratch folder and lock, and where it listens.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anabranch.errors import StateError, UsageError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests
from anabranch.spark.checkpoint.runs import record
from anabranch.storage import Location
from anabranch.storage.disk import BEGUN

_KIND = "anabranch backup"
_VERSION = 1
_RECORD = "backup.json"
_IDENTITY = "format.json"
_OF_A_RUN = ("scratch", "lock", "run.json", "runs", "endpoint.json", "service.json")
_REPLACED = "sinks"
"""The folder of the records that are replaced; all other objects are written once."""
_TAKEN = ".backup-"
"""What the folder with links to a checkpoint's files begins with."""
_ATTEMPTS = 100
_PIECE = 8 << 20


@dataclass(frozen=True, slots=True)
class Backup:
    """What is in a backup."""

    epoch: int | None
    """The newest epoch in it; None where none was committed."""
    run: int
    """The run that was the newest then."""
    objects: dict[str, tuple[int, str]]
    """By name in the checkpoint: size and checksum."""

    @property
    def size(self) -> int:
        return sum(size for size, _ in self.objects.values())

    def save(self, where: Location) -> None:
        fields = {"kind": _KIND, "version": _VERSION, "epoch": self.epoch, "run": self.run, "objects": self.objects}
        durable.replace(where / _RECORD, durable.sealed(fields))

    @staticmethod
    def load(where: Location) -> Backup:
        """The backup in a folder; `StateError` if there is none, or it is of another version."""
        if not durable.exists(where / _RECORD):
            raise StateError(f"'{where}' is no backup", hint="'anabranch backup' makes one; perhaps it was broken off")
        found: dict[str, Any] = durable.unsealed(where / _RECORD)
        if found.get("kind") != _KIND or found.get("version") != _VERSION:
            version = found.get("version")
            raise StateError(f"the backup '{where}' has version {version}", hint=f"this one reads version {_VERSION}")
        objects = {name: (int(size), str(checksum)) for name, (size, checksum) in found["objects"].items()}
        return Backup(found["epoch"], found["run"], objects)


def back_up(checkpoint: Checkpoint, where: Location, tell: Callable[[str], None]) -> Backup:
    """Make a backup in a new folder; `tell` hears how far it is."""
    _refuse_full(where)
    taker = _copied if checkpoint.folder.path is None else _linked
    with taker(checkpoint, where / "checkpoint", tell) as (objects, newest):
        _settle(where / "checkpoint", objects)
        found = Backup(newest.epoch if newest else None, _run(checkpoint, newest), objects)
        found.save(where)
    return found


def restore(where: Location, checkpoint: Checkpoint, tell: Callable[[str], None]) -> Backup:
    """Make a checkpoint of a backup, where there is none; what is damaged is named, and leaves nothing behind."""
    found = Backup.load(where)
    _refuse_full(checkpoint.folder)
    if (path := checkpoint.folder.path) is not None:
        with durable.writing(path):
            checkpoint.manifests.path.mkdir(parents=True, exist_ok=True)  # type: ignore[union-attr]
    others = [name for name in found.objects if name != _IDENTITY]
    try:
        for number, name in enumerate((*others, _IDENTITY)):  # which makes a checkpoint of it
            _say(tell, number, len(found.objects))
            if name == _IDENTITY:
                _settle(checkpoint.folder, others)
                _begin_behind(checkpoint, found.run)
            copied = _copy(where / "checkpoint" / name, checkpoint.folder / name)
            if copied != found.objects[name]:
                raise StateError(f"'{name}' in the backup '{where}' is damaged", hint="take another backup")
    except BaseException:
        durable.delete(checkpoint.folder, durable.names(checkpoint.folder, below=True))
        raise
    return found


def _begin_behind(checkpoint: Checkpoint, run: int) -> None:
    """Let the next run have the number behind another one's, whose process is not here."""
    about = {"run": run, "pid": 0, "jvm": 0, "jvm_started": None, "host": "the machine of its backup"}
    durable.replace(record(checkpoint, run), durable.sealed(about))


def _run(checkpoint: Checkpoint, newest: Manifest | None) -> int:
    """The largest number of a run so far."""
    found = newest.run if newest else 0
    with suppress(StateError):
        if checkpoint.folder.path is not None:
            return max(found, int(durable.unsealed(record(checkpoint, found))["run"]))
    runs = durable.names(checkpoint.folder / "runs")
    return max([found, *(int(name.removesuffix(".json")) for name in runs)])


# --- taking all objects of one moment ---------------------------------------------------------------------------------


@contextmanager
def _linked(
    checkpoint: Checkpoint, where: Location, tell: Callable[[str], None]
) -> Iterator[tuple[dict[str, tuple[int, str]], Manifest | None]]:
    """Link the files of a checkpoint on a disk, and copy what was linked."""
    folder = checkpoint.folder.path
    assert folder is not None, "it is on a disk"
    _remove_left_over(folder)
    links = folder / f"{_TAKEN}{os.getpid()}"

    def take(name: str) -> None:
        link = links / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        os.link(folder / name, link)

    try:
        names, newest = _taken(checkpoint, take)
        objects: dict[str, tuple[int, str]] = {}
        for number, name in enumerate(names):
            _say(tell, number, len(names))
            objects[name] = _copy(Location.of(links / name), where / name)
        yield objects, newest
    finally:
        shutil.rmtree(links, ignore_errors=True)


@contextmanager
def _copied(
    checkpoint: Checkpoint, where: Location, tell: Callable[[str], None]
) -> Iterator[tuple[dict[str, tuple[int, str]], Manifest | None]]:
    """Copy the objects of a checkpoint in an object store."""
    objects: dict[str, tuple[int, str]] = {}

    def take(name: str) -> None:
        _say(tell, len(objects), None)
        objects[name] = _copy(checkpoint.folder / name, where / name)

    names, newest = _taken(checkpoint, take)
    former = objects.keys() - set(names)
    durable.delete(where, sorted(former))
    yield {name: objects[name] for name in names}, newest


def _taken(checkpoint: Checkpoint, take: Callable[[str], None]) -> tuple[list[str], Manifest | None]:
    """Take all objects that are there at one moment; gives their names, and the newest manifest among them."""
    manifests, taken = Manifests(checkpoint.manifests), set[str]()
    for _ in range(_ATTEMPTS):
        newest, names = manifests.newest(), list(_names(checkpoint))
        try:
            for name in names:
                if name not in taken or name.startswith(f"{_REPLACED}/"):
                    take(name)
                    taken.add(name)
        except FileNotFoundError:
            continue
        now = manifests.newest()
        if (now and now.epoch) == (newest and newest.epoch):
            return names, newest
    hint = "try again, or stop the site for a moment"
    raise StateError("epochs were committed faster than the checkpoint could be copied", hint=hint)


def _names(checkpoint: Checkpoint) -> Iterable[str]:
    """The objects that belong to no single run; not those that are being written."""
    for name in durable.names(checkpoint.folder, below=True):
        first, last = name.partition("/")[0], name.rpartition("/")[2]
        if first not in _OF_A_RUN and not first.startswith(_TAKEN) and not BEGUN.fullmatch(last):
            yield name


def _remove_left_over(folder: Path) -> None:
    """Remove the links of backups that were killed."""
    for each in folder.glob(f"{_TAKEN}*"):
        if not Path(f"/proc/{each.name.removeprefix(_TAKEN)}").exists():
            shutil.rmtree(each, ignore_errors=True)


# --- objects ----------------------------------------------------------------------------------------------------------


def _refuse_full(where: Location) -> None:
    if durable.names(where, below=True):
        raise UsageError(f"'{where}' is not empty", hint="name a new folder")


def _copy(source: Location, target: Location) -> tuple[int, str]:
    """Copy an object, piece by piece; gives its size and checksum. `FileNotFoundError` if it is gone."""
    checksum, size = hashlib.sha256(), 0
    piece = source.read(0, _PIECE)
    with durable.writing(target), target.writer() as writer:
        while piece:
            writer.write(piece)
            checksum.update(piece)
            size += len(piece)
            piece = source.read(size, _PIECE) if len(piece) == _PIECE else b""
    return size, checksum.hexdigest()


def _settle(where: Location, names: Iterable[str]) -> None:
    """Make objects durable that were copied to a folder."""
    with durable.writing(where):
        where.settle(*sorted({name.rpartition("/")[0] for name in names} - {""}))


def _say(tell: Callable[[str], None], done: int, of: int | None) -> None:
    if done and done % 1_000 == 0:
        tell(f"{done:,} files copied" if of is None else f"{done:,} of {of:,} files copied")
