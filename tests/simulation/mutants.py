"""Faults that the simulation must find: each takes one thing out of production on which a promise stands."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from anabranch.kafka import clients, reading, transactions
from anabranch.kafka.faults import KafkaFault, Remedy
from anabranch.kafka.transactions import Mark, OutgoingMessage, TransactionalWriter
from anabranch.peers.carriers import FolderCarrier, Parcel, TopicCarrier
from anabranch.peers.transport import OutgoingLink, Transport
from anabranch.spark.answers import segments
from anabranch.spark.answers.segments import Segment
from anabranch.spark.checkpoint import durable, folder, manifest, recovery
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests
from anabranch.spark.epoch import trunk
from anabranch.spark.sinks import growing
from anabranch.storage import disk
from anabranch.storage.disk import DiskStorage, FileWriter

Mutant = Callable[[pytest.MonkeyPatch], None]


def files_unsynced(patch: pytest.MonkeyPatch) -> None:
    """A file gets its name before its bytes are synced."""
    written = DiskStorage._written
    patch.setattr(DiskStorage, "_written", lambda self, path, data: written(DiskStorage(synced=False), path, data))


def names_unsynced(patch: pytest.MonkeyPatch) -> None:
    """The folder in which a file was put or created is not synced."""
    patch.setattr(DiskStorage, "_sync", lambda self, folder: None)


def segments_unsynced(patch: pytest.MonkeyPatch) -> None:
    """What tasks write piece by piece is not synced."""
    begin = FileWriter.__init__
    patch.setattr(FileWriter, "__init__", lambda self, path, storage: begin(self, path, DiskStorage(synced=False)))


def never_settled(patch: pytest.MonkeyPatch) -> None:
    """The folders of segments and states are not synced before the manifest names what is in them."""

    def settle(self: DiskStorage, folders: Collection[str]) -> None:
        pass

    patch.setattr(DiskStorage, "settle", settle)


def manifest_first(patch: pytest.MonkeyPatch) -> None:
    """The manifest is published before the segments and states that it names are durable."""
    settle, publish = manifest.settle, Manifests.publish
    held: list[tuple[Any, ...]] = []

    def later(self: Manifests, published: Manifest) -> bool:
        found = publish(self, published)
        while held:
            settle(*held.pop())
        return found

    patch.setattr(trunk, "settle", lambda *given: held.append(given))
    patch.setattr(Manifests, "publish", later)


def former_removed_first(patch: pytest.MonkeyPatch) -> None:
    """The states of the epoch before are removed before the next epoch is published."""
    settle = manifest.settle

    def early(checkpoint: Checkpoint, fresh: Sequence[Segment], kept: Set[str], before: Set[str]) -> None:
        settle(checkpoint, fresh, kept, before)
        durable.delete(checkpoint.folder, sorted(before - kept))

    patch.setattr(trunk, "settle", early)


def sink_unsynced(patch: pytest.MonkeyPatch) -> None:
    """The position of a sink is moved before its bytes are synced."""
    append = durable.append
    unsynced = _Replaced(durable, append=lambda path, data, at: append(path, data, at, synced=False))
    patch.setattr(growing, "durable", unsynced)


def position_first(patch: pytest.MonkeyPatch) -> None:
    """A sink believes the length of its file, not its position."""
    prepared = growing.GrowingFile._prepared

    def at_end(self: growing.GrowingFile, owner: int, epoch: int) -> int:
        at = prepared(self, owner, epoch)
        return self._path.stat().st_size if self._path.exists() else at

    patch.setattr(growing.GrowingFile, "_prepared", at_end)


def new_folders_unsynced(patch: pytest.MonkeyPatch) -> None:
    """The names on the path of a new checkpoint or sink are not synced."""

    def make(path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    for module in (disk, durable, folder):
        patch.setattr(module, "make_folder", make)


def one_name(patch: pytest.MonkeyPatch) -> None:
    """All attempts of a task write the same file."""
    patch.setattr(segments, "unique_name", lambda run, more="": f"{run:06}-{more}")


def manifest_replaced(patch: pytest.MonkeyPatch) -> None:
    """A manifest replaces that of another run with its number."""

    def put(self: Manifests, published: Manifest) -> bool:
        durable.write_record(self._at(published.epoch), published)
        return True

    patch.setattr(Manifests, "publish", put)


def scratch_left(patch: pytest.MonkeyPatch) -> None:
    """What an earlier run had begun and not committed is not forgotten."""
    patch.setattr(recovery, "shutil", _Replaced(shutil, rmtree=lambda *given, **more: None))


def uncommitted_read(patch: pytest.MonkeyPatch) -> None:
    """Messages of a topic are read before it is known what becomes of their transaction."""
    made = clients.consumer
    patch.setattr(reading, "consumer", lambda *given, **role: made(*given, **role | {"isolation_level": "none"}))


def unfenced(patch: pytest.MonkeyPatch) -> None:
    """Each writer of a site has an identity of its own, so none before it is fenced."""
    made = clients.producer

    def apart(*given: Any, transactional_id: str, **role: Any) -> Any:
        return made(*given, transactional_id=f"{transactional_id}-{uuid4().hex}", **role)

    patch.setattr(transactions, "producer", apart)


def marks_apart(patch: pytest.MonkeyPatch) -> None:
    """How far a topic is, is written in a transaction behind that of its messages."""
    write = TransactionalWriter.write

    def twice(self: TransactionalWriter, messages: Iterable[OutgoingMessage], marks: Mapping[str, Mark]) -> int:
        count = write(self, messages, {})
        write(self, (), marks)
        return count

    patch.setattr(TransactionalWriter, "write", twice)


def sent_first(patch: pytest.MonkeyPatch) -> None:
    """A part notes that the documents of its links were sent before they are."""
    send = Transport._send_documents

    def early(self: Transport, leaving: tuple[OutgoingLink, ...]) -> bool:
        newest = {each.key(at): name for each in leaving for at, name in enumerate(each.link.newest())}
        durable.replace(self._record, durable.sealed(newest))
        return send(self, leaving)

    patch.setattr(Transport, "_send_documents", early)


def released_first(patch: pytest.MonkeyPatch) -> None:
    """A part lets go of what has come for it before it has written that down."""

    def early(read: Callable[..., Iterable[Parcel]]) -> Callable[..., list[Parcel]]:
        def released(self: TopicCarrier | FolderCarrier, channel: str, *given: Any) -> list[Parcel]:
            found = list(read(self, channel, *given))
            self.release(channel)
            return found

        return released

    patch.setattr(TopicCarrier, "read", early(TopicCarrier.read))
    patch.setattr(FolderCarrier, "read", early(FolderCarrier.read))


def commit_believed(patch: pytest.MonkeyPatch) -> None:
    """A transaction whose end nobody has confirmed is taken for committed."""
    write = TransactionalWriter.write

    def believed(self: TransactionalWriter, messages: Iterable[OutgoingMessage], marks: Mapping[str, Mark]) -> int:
        try:
            return write(self, messages, marks)
        except KafkaFault as error:
            if error.remedy is not Remedy.WAIT:
                raise
            return 0

    patch.setattr(TransactionalWriter, "write", believed)


class _Replaced:
    """A module with something else under some of its names."""

    def __init__(self, module: Any, **names: Any) -> None:
        self._module = module
        self._names = names

    def __getattr__(self, name: str) -> Any:
        return self._names[name] if name in self._names else getattr(self._module, name)


MUTANTS: Mapping[str, Mutant] = {
    each.__name__: each
    for each in (
        files_unsynced,
        names_unsynced,
        segments_unsynced,
        never_settled,
        manifest_first,
        former_removed_first,
        sink_unsynced,
        position_first,
        new_folders_unsynced,
        one_name,
        manifest_replaced,
        scratch_left,
        uncommitted_read,
        unfenced,
        marks_apart,
        commit_believed,
        sent_first,
        released_first,
    )
}
