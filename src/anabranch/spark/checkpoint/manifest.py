"""Manifests: the record that commits an epoch.

An epoch counts from the moment its manifest exists, and not before: answers, dead letters and carries that no
manifest names do not exist, and an epoch that was begun and has none is begun anew, perhaps with another end.
So a manifest has all that the next epoch goes on from, and a run that has nothing but the checkpoint goes on where the
last one was: Spark's own checkpoint is made from it (`recovery.py`).
It is published by an exclusive create, when all that it names is durable.

After that, what the manifest before named and this one does not is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache

from anabranch.errors import StateError
from anabranch.spark.answers.segments import Segment
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint, file_name
from anabranch.spark.checkpoint.parts import LogPart, Parts, run_of
from anabranch.spark.evolution.log import Logged
from anabranch.spark.intake.ranges import Offset
from anabranch.spark.state.files import SavedState
from anabranch.storage import Location
from anabranch.stream.plain import to_plain


@dataclass(frozen=True, slots=True)
class Carried:
    """Where an unfinished file is read on: the number of its stretch, and the splitter's carry as JSON."""

    number: int
    carry: str


@dataclass(frozen=True, slots=True)
class IntakeRecord:
    """Where the intake was at the end of an epoch."""

    end: Offset = field(default_factory=dict)
    """The offset that it gave."""
    orders: Mapping[str, Parts] = field(default_factory=dict)
    """By stream: the log of the order in which its files were begun."""
    sight: LogPart | None = None
    """The files that were seen and not yet read, where the epoch did not read all that it saw."""
    reached: Mapping[str, float] = field(default_factory=dict)
    """By stream with heartbeats: the largest time of its items, in its own unit."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The result of an epoch."""

    epoch: int
    run: int
    """The run that published it."""
    plan: str
    """The name of the plan it ran with (`spark/plan/files.py`)."""
    offsets: Offset
    """The position of every partition up to which it was read, for streams that were not taken out meanwhile."""
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
    intake: IntakeRecord = field(default_factory=IntakeRecord)
    overruns: Mapping[int, int] = field(default_factory=dict)
    """By subscription that is answered item by item: its evaluations so far that took too many steps (LAWS 2.9)."""

    @staticmethod
    def first(run: int, plan: str) -> Manifest:
        """The first epoch of a checkpoint, if it reads nothing."""
        return Manifest(0, run, plan, {}, {}, (), 0, 0)

    def handed_on(self, run: int) -> Manifest:
        """The next epoch, in which a run reads nothing."""
        return replace(self, epoch=self.epoch + 1, run=run, segments=(), items=0, bytes_read=0, late=0)

    @property
    def dead_letters(self) -> int:
        return sum(segment.letters for segment in self.segments)

    @property
    def size(self) -> int:
        """The bytes of its answers."""
        return sum(segment.index for segment in self.segments)

    @property
    def named(self) -> Set[str]:
        """All that it names, by the names in the checkpoint."""
        return self.kept | {f"segments/{each.name}" for each in self.segments}

    @property
    def kept(self) -> Set[str]:
        """What the next epoch needs: states and logs, by their names in the checkpoint."""
        named = {f"state/{file}" for each in self.states.values() for file in each.files}
        named |= {f"evolution/{part.file}" for logged in self.evolution.values() for part in logged.parts}
        for stream, parts in self.intake.orders.items():
            named |= {f"order/{file_name(stream)}/{part.file}" for part in parts}
        return named | ({f"sight/{self.intake.sight.file}"} if self.intake.sight else set())


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests of all retained epochs, which have no gaps."""

    folder: Location

    def publish(self, manifest: Manifest) -> bool:
        """Commit an epoch; False if another run has published one of this number."""
        return durable.create(self._at(manifest.epoch), durable.sealed(to_plain(manifest)))

    def load(self, epoch: int) -> Manifest:
        found = self._at(epoch)
        with durable.reading(found):
            stat = found.stat()
        return _load(found, stat.version if stat else ())

    def epochs(self) -> range:
        """The epochs that are retained."""
        found = [int(name.removesuffix(".json")) for name in durable.names(self.folder) if name[:1].isdecimal()]
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
        durable.delete(self.folder, [self._at(epoch).name])

    def _at(self, epoch: int) -> Location:
        return self.folder / f"{epoch:08}.json"


@lru_cache(maxsize=4)
def _load(at: Location, version: tuple[int | str, ...]) -> Manifest:
    """Load a manifest; a checkpoint may be restored from a copy while workers cache manifests, hence its version."""
    return durable.read_record(Manifest, at)


# --- what manifests name, before and after they are published ---------------------------------------------------------


def settle(checkpoint: Checkpoint, segments: Sequence[Segment], kept: Set[str], before: Set[str]) -> None:
    """Make durable the segments of an epoch, and what its manifest keeps and the one before it did not."""
    fresh = {*(kept - before), *(f"segments/{each.name}" for each in segments)}
    folders = {"/".join(parts[:size]) for name in fresh for parts in [name.split("/")] for size in range(1, len(parts))}
    with durable.writing(checkpoint.folder):
        checkpoint.folder.settle(*sorted(folders))


def remove_former(checkpoint: Checkpoint, run: int, kept: Set[str], before: Set[str]) -> None:
    """Remove what the manifest before kept and this one does not.

    Order logs as they were when the run began stay: the intake may have to read them again.
    """
    former = (name for name in before - kept if not (name.startswith("order/") and run_of(name) < run))
    durable.delete(checkpoint.folder, list(former))


def sweep(checkpoint: Checkpoint, newest: Manifest | None, run: int) -> None:
    """Remove what earlier runs have written and no manifest names, when a run begins.

    Nothing is removed where something is missing that the newest manifest names: perhaps it is not the newest, and what
    nobody seems to need is needed by one that was lost.
    """
    kept = newest.kept if newest else set()
    there = {
        f"{folder}/{name}"
        for folder in ("state", "order", "sight", "evolution")
        for name in durable.names(checkpoint.folder / folder, below=True)
    }
    for name in sorted(kept - there):
        hint = "restore the checkpoint from a copy, or begin with a new one"
        raise StateError(f"the checkpoint '{checkpoint.folder}' is damaged: '{name}' is missing", hint=hint)
    durable.delete(checkpoint.folder, [name for name in there - kept if run_of(name) < run])
    first = newest.epoch + 1 if newest else 0
    begun = durable.names(checkpoint.segments, below=True, after=f"{first:08}")
    durable.delete(checkpoint.segments, [name for name in begun if run_of(name) < run])
    for epoch in range(max(0, first - _UNSWEPT), first):
        with suppress(StateError):  # it was dropped
            remove_attempts(checkpoint, Manifests(checkpoint.manifests).load(epoch))


_UNSWEPT = 3
"""The last epoch of a run, the one before, and the one with which its successor has taken over."""


def remove_attempts(checkpoint: Checkpoint, manifest: Manifest) -> None:
    """Remove what attempts of tasks have left in the folders of a committed epoch without having been reported."""
    named = manifest.named
    for folder in ("segments", "state"):
        at = checkpoint.folder / folder / f"{manifest.epoch:08}"
        left = [name for name in durable.names(at) if f"{folder}/{manifest.epoch:08}/{name}" not in named]
        durable.delete(at, left)
