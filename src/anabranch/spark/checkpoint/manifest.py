"""Manifests: the record that commits an epoch.

An epoch counts from the moment its manifest exists, and not before: answers, dead letters and carries that no
manifest names do not exist.
Spark's commit log only follows: an epoch that Spark hands out again although its manifest exists is skipped.
A manifest is published by an exclusive create, when all that it names is on the disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from anabranch.errors import StateError
from anabranch.spark.answers.segments import Segment
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.evolution.log import Logged
from anabranch.spark.intake.ranges import Offset
from anabranch.spark.state.files import SavedState
from anabranch.storage import Location
from anabranch.storage.disk import sync
from anabranch.stream.plain import to_plain


@dataclass(frozen=True, slots=True)
class Carried:
    """Where an unfinished file is read on: the number of its stretch, and the splitter's carry as JSON."""

    number: int
    carry: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The result of an epoch."""

    epoch: int
    run: int
    """The run that published it."""
    plan: str
    """The digest of the plan it ran with."""
    offsets: Offset
    """The position of every partition at its end."""
    carries: Mapping[str, Carried]
    """By partition, for those that stopped within a document or a gzip file."""
    segments: tuple[Segment, ...]
    """All answers and dead letters, in the order of their streams."""
    items: int
    bytes_read: int
    begun: tuple[str, ...] = ()
    """The streams of which an element has been read, in this epoch or before."""
    states: Mapping[int, SavedState] = field(default_factory=dict)
    """By the number of its subscription: the state of each branch."""
    late: int = 0
    """Items too late for time windows (LAWS 3.2)."""
    noted: tuple[str, ...] = ()
    """Late items that are logged already, though a branch has still to reach them in its spill."""
    aborted: Mapping[int, str] = field(default_factory=dict)
    """By subscription: why it has ended, of those that are still there (LAWS 4.6)."""
    evolution: Mapping[str, Logged] = field(default_factory=dict)
    """By stream: the log of its events (`spark/evolution/log.py`)."""

    @property
    def dead_letters(self) -> int:
        return sum(segment.letters for segment in self.segments)

    @property
    def size(self) -> int:
        """The bytes of its answers."""
        return sum(segment.index for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests of all retained epochs, which have no gaps."""

    folder: Location

    def publish(self, manifest: Manifest) -> None:
        durable.publish(self._at(manifest.epoch), durable.sealed(to_plain(manifest)))

    def has(self, epoch: int) -> bool:
        return self._at(epoch).exists()

    def load(self, epoch: int) -> Manifest:
        found = self._at(epoch)
        stat = found.stat()
        return _load(found, stat.version if stat else ())

    def epochs(self) -> range:
        """The epochs that are retained."""
        found = [int(name.removesuffix(".json")) for name in self.folder.names() if name[:1].isdecimal()]
        kept = range(min(found), max(found) + 1) if found else range(0)
        if len(kept) != len(found):
            raise StateError(f"'{self.folder}' is damaged: a manifest between the first and the last is missing")
        return kept

    def newest(self) -> Manifest | None:
        """The manifest of the newest epoch; None if no epoch was committed."""
        kept = self.epochs()
        return self.load(kept[-1]) if kept else None

    def since(self, epoch: int) -> Iterator[Manifest]:
        """The manifests from an epoch on."""
        for each in self.epochs():
            if each >= epoch:
                yield self.load(each)

    def drop(self, epoch: int) -> None:
        """Remove the manifest of an epoch, the first of those retained."""
        self._at(epoch).delete()

    def _at(self, epoch: int) -> Location:
        return self.folder / f"{epoch:08}.json"


def settle(manifest: Manifest, checkpoint: Checkpoint) -> None:
    """Make durable what a manifest refers to: segments and states, and offsets, which Spark never syncs."""
    epoch, offsets = f"{manifest.epoch:08}", checkpoint.spark / "offsets"
    with durable.writing(checkpoint.folder):
        sync(offsets / str(manifest.epoch))
        checkpoint.folder.settle("spark/offsets", "segments", f"segments/{epoch}", "state", f"state/{epoch}")


@lru_cache(maxsize=4)
def _load(at: Location, version: tuple[int | str, ...]) -> Manifest:
    """Load a manifest; a checkpoint may be restored from a copy while workers cache manifests, hence its version."""
    return durable.read_record(Manifest, at)


# --- Spark's part of a checkpoint, checked before a trunk recovers from it --------------------------------------------


def check_spark(checkpoint: Checkpoint, manifests: Manifests) -> Manifest | None:
    """Check that Spark's checkpoint belongs to the manifests; gives the newest manifest."""
    kept = manifests.epochs()
    offsets, commits = (max(_numbers(checkpoint.spark / each), default=-1) for each in ("offsets", "commits"))
    last = kept[-1] if kept else -1
    if offsets < last or commits > last or offsets > last + 1:
        hint = "restore the whole folder from one copy, or begin with a new one"
        raise StateError(
            f"the checkpoint '{checkpoint.folder}' is damaged: Spark's part does not belong to the manifests", hint=hint
        )
    return manifests.load(last) if kept else None


def sweep_spark(checkpoint: Checkpoint) -> None:
    """Remove partial files of a killed JVM, which Spark would take for a sign that epoch 0 has run."""
    for folder in (checkpoint.spark / "offsets", checkpoint.spark / "commits"):
        for path in folder.glob(".*"):
            _, number, *rest = path.name.split(".")
            if rest != ["crc"] or not (folder / number).exists():
                path.unlink()


def _numbers(folder: Path) -> Iterator[int]:
    if folder.is_dir():
        yield from (int(each.name) for each in folder.iterdir() if each.name.isdecimal())
