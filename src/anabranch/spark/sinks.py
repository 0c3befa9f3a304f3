"""File sinks: answers and dead letters in files that grow, by whole epochs and exactly once.

A sink reads from the answer log and remembers how far it came: the epoch, and the length of its file then.
Bytes go to the file first and the position is moved afterwards; whoever was killed in between cuts the file back to the
position and writes the same bytes again.

The file is the front of the subscription's answer, without the closing part, which an endless answer never reaches;
`anabranch answer` gives it closed.
When a query is changed, the answer so far is moved aside (`vela.3`, after the old subscription's number) and the new
one begins.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from anabranch.errors import StateError
from anabranch.reference.calls import PythonFunction
from anabranch.spark import durable
from anabranch.spark.answers import AnswerLog, Frame
from anabranch.spark.checkpoint import Checkpoint
from anabranch.spark.manifest import Manifest
from anabranch.spark.plan import Plan, Plans
from anabranch.spark.segments import DEAD_LETTERS


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a sink has come: whose answer it holds, the epoch that comes next, the length of the file."""

    owner: int
    next: int
    length: int


class GrowingFile:
    """A file that grows by whole epochs; `record` is where its position is kept."""

    def __init__(self, path: Path, record: Path) -> None:
        self.path = path
        self._record = record
        self.reached = Reached(**durable.unsealed(record)) if record.exists() else None
        if self.reached is None and path.exists() and path.stat().st_size:
            raise StateError(f"'{path}' exists, and another checkpoint or program wrote it")
        self.next = self.reached.next if self.reached else 0
        """The epoch that is to be delivered next; those that add nothing are not recorded."""

    def append(self, owner: int, epoch: int, texts: Iterable[str]) -> None:
        """Write what an epoch adds to the answer of `owner`."""
        with durable.writing(self.path):
            start = self._prepared(owner, epoch)
            with self.path.open("ab") as file:
                file.truncate(start)
                for text in texts:
                    file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
                length = file.tell()
        self._move(Reached(owner, epoch + 1, length))

    def _prepared(self, owner: int, epoch: int) -> int:
        """The length up to which the file is good; the answer of an earlier query moves aside."""
        before = self.reached
        if before is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._move(Reached(owner, epoch, 0))  # from here on the file is known as ours
            return 0
        if before.owner != owner:
            aside = self.path.with_name(f"{self.path.name}.{before.owner}")
            if self.path.exists() and not aside.exists():
                self.path.rename(aside)
            return 0
        size = self.path.stat().st_size if self.path.exists() else 0
        if size < before.length:
            raise StateError(f"'{self.path}' has become shorter than what was written to it")
        return before.length

    def _move(self, reached: Reached) -> None:
        durable.replace(self._record, durable.sealed(asdict(reached)))
        self.reached = reached


class Sinks:
    """The file sinks of a trunk, by subscription name; only the trunk delivers."""

    def __init__(self, checkpoint: Checkpoint, functions: Mapping[str, PythonFunction]) -> None:
        self._checkpoint = checkpoint
        self._functions = functions
        self._log = AnswerLog(checkpoint)
        self._plans = Plans(checkpoint.plans)
        self._files: dict[str, GrowingFile] = {}
        self._dead: GrowingFile | None = None

    def set(self, paths: Mapping[str, Path], dead_letters: Path | None) -> None:
        """Deliver to these files from now on, beginning with what each of them has missed."""
        before = {file.path: file for file in self._all()}
        wanted = {*paths.values(), *((dead_letters,) if dead_letters is not None else ())}
        files = {path: before.get(path) or GrowingFile(path, self._checkpoint.sink(path)) for path in wanted}
        self._files = {name: files[path] for name, path in paths.items()}
        self._dead = None if dead_letters is None else files[dead_letters]
        missed = min((file.next for file in files.values()), default=None)
        for epoch in () if missed is None else self._log.manifests.epochs():
            if epoch >= (missed or 0):
                plan = self._plans.of(epoch)
                assert plan is not None, "an epoch with a manifest has a plan"
                self.deliver(self._log.manifests.load(epoch), plan.load())

    def deliver(self, manifest: Manifest, plan: Plan) -> None:
        """Write what an epoch adds to each file that has not got it yet."""
        found = manifest.by_subscription()
        for each in plan.subscriptions:
            file = self._files.get(each.name)
            if file is not None and file.next <= manifest.epoch and each.id in found:
                begins = file.reached is None or file.reached.owner != each.id or not file.reached.length
                opening = (Frame.of(each.text, self._functions).opening,) if begins else ()
                file.append(each.id, manifest.epoch, (*opening, *map(self._log.text, found[each.id])))
        if self._dead is not None and self._dead.next <= manifest.epoch and manifest.dead_letters:
            lines = (f"{letter.to_json()}\n" for letter in self._log.buried(manifest))
            self._dead.append(DEAD_LETTERS, manifest.epoch, lines)
        for held in self._all():
            held.next = max(held.next, manifest.epoch + 1)

    def _all(self) -> Iterator[GrowingFile]:
        yield from self._files.values()
        if self._dead is not None:
            yield self._dead
