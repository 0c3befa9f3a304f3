"""The order logs of a trunk's streams, as its driver reads them.

The intake writes them (`order.py`); the driver checks by them that a stream has not changed, learns its format, and
warns of files that came out of order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from anabranch.errors import StateError, StreamError, UsageError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.intake import storage
from anabranch.spark.intake.folders import PartitionFiles
from anabranch.spark.intake.order import OrderLog
from anabranch.spark.intake.ranges import Offset, Position, Range, spans
from anabranch.spark.intake.survey import Survey
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.stream.reading.source import Source, StreamForm


class OrderLogs:
    """The logs of the streams that a trunk reads."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._logs: dict[str, OrderLog] = {}
        self._copies: set[str] = set()
        """The streams that are others once more, whose warnings were given."""
        self._survey = Survey(checkpoint, logs=self._logs)
        """A survey that only computes ranges."""

    @property
    def forms(self) -> Mapping[str, StreamForm | None]:
        """The formats of the streams, where they are known."""
        return {name: log.form for name, log in self._logs.items()}

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of partitions of the streams that were begun."""
        return {name: log.count for name, log in self._logs.items()}

    def follow(self, source: Source, last: Manifest | None, plan: Plan | None) -> None:
        """Load the order log of a stream, and check that the stream is declared as before."""
        if source.name not in self._logs:
            self._logs[source.name] = OrderLog(self._checkpoint.order(source.logged_as))
            self._logs[source.name].refresh()  # an earlier run gave the warnings in it
        log = self._logs[source.name]
        if source.copies:
            self._copies.add(source.name)
        for key, at in last.offsets.items() if last else ():
            stream, _, partition = key.rpartition("/")
            if stream == source.name:
                log.check(partition, **at)
        if last is not None and self._was_skipped(source.name, log, last):
            raise UsageError(
                f"the stream '{source.name}' was taken out while an epoch was under way, which went on without it",
                hint="what stood there is answered to nobody: give the stream another name",
            )
        begun = log.stretches("0")
        if begun and bool(begun[0].head) is not (source.http is None):
            kinds = ("pushed", "read from files") if source.http is None else ("read from files", "pushed")
            raise UsageError(
                f"the stream '{source.name}' was {kinds[0]} until now, not {kinds[1]}",
                hint="give the stream another name",
            )
        if log.form is not None and source.format not in ("auto", log.form.format):
            raise UsageError(
                f"the stream '{source.name}' was read as '{log.form.format}' until now, not as '{source.format}'",
                hint="give the stream another name",
            )
        known = [each for each in plan.streams if each.name == source.name] if plan else []
        if any(each.source.updates is not source.updates for each in known):
            kinds = ("updates", "items") if source.updates else ("items", "updates")
            raise UsageError(
                f"the stream '{source.name}' was one of {kinds[1]} until now, not of {kinds[0]}",
                hint="give the stream another name",
            )
        self._check_place(source, [each.source for each in known])
        before = max((len(each.source.partitions) for each in known), default=0)
        # branches know partitions by number and wait for each
        if source.topic is None and len(source.partitions) < before:
            raise UsageError(
                f"the stream '{source.name}' had {before} partitions until now, and has {len(source.partitions)}",
                hint="new ones may be added behind the others; for fewer, give the stream another name",
            )

    def check_held(self, source: Source) -> None:
        """Refuse to begin with the beginning of a stream in files if some that it has begun are gone."""
        if source.topic is not None:
            return
        log = OrderLog(self._checkpoint.order(source.logged_as))
        log.refresh()
        document = log.form is not None and log.form.format == "document"
        for number, folder in enumerate(source.keys.values()):
            files = PartitionFiles(folder, document)
            for stretch in log.stretches(str(number)):
                if not _is_held(files.path(stretch.file), stretch.head):
                    raise UsageError(
                        f"'{source.replays}' cannot begin with the beginning of '{source.copies}': the file "
                        f"'{stretch.file}' is not there any more, or another",
                        hint="without it, a stream of another name begins with the files that are there",
                    )

    def _check_place(self, source: Source, known: Sequence[Source]) -> None:
        """Refuse a stream that came from another place until now, where its positions mean something else."""
        for each in known:
            before, now = ((one.topic.name, one.topic.lines) if one.topic else None for one in (each, source))
            if before != now:
                names = [f"the topic '{one.topic.name}'" if one.topic else "files" for one in (each, source)]
                raise UsageError(
                    f"the stream '{source.name}' came from {names[0]} until now, not from {names[1]}"
                    if names[0] != names[1]
                    else f"the messages of the stream '{source.name}' were read another way until now",
                    hint="give the stream another name",
                )

    def _was_skipped(self, stream: str, log: OrderLog, last: Manifest) -> bool:
        """Whether Spark's offset of a stream is ahead of what was read, so that accents may be lost (LAWS 4.5)."""
        if log.form is None:
            return False
        reached, document = end_of(self._checkpoint, last.epoch), log.form.format == "document"
        for key in reached:
            name, _, partition = key.rpartition("/")
            between = Position.of(last.offsets, key), Position.of(reached, key)
            if name == stream and list(spans(log.stretches(partition), *between, document)):
                return True
        return False

    def warnings(self) -> Iterator[str]:
        """Read on in the logs, and warn of files that came out of order since."""
        for name, log in self._logs.items():
            for stretch in log.refresh():
                match stretch.note if name not in self._copies else None:
                    case "late":
                        warning = f"the file '{stretch.file}' came after files with larger names"
                        yield f"stream '{name}': {warning}; it is read next"
                    case "grown":
                        warning = f"the file '{stretch.file}' has grown after a later one was begun"
                        yield f"stream '{name}': {warning}; the new part is read next"

    def reading(self, stream: str, last: Manifest) -> str:
        """The name of the file that the first partition of a stream reads or will read next; empty before the first."""
        begun, at = self._logs[stream].stretches("0"), last.offsets.get(f"{stream}/0")
        return begun[min(at["file"], len(begun) - 1)].file if at and begun else ""

    def ranges(self, epoch: int) -> list[Range]:
        """The ranges of an epoch that has begun; call `warnings` first, which reads the logs."""
        return self._survey.ranges(end_of(self._checkpoint, epoch - 1), end_of(self._checkpoint, epoch))


def _is_held(path: str, head: str) -> bool:
    """Whether a file is there and has the same first bytes."""
    try:
        return storage.has_head(path, head)
    except StreamError:
        return False


def position_read(last: Manifest | None, stream: str) -> int:
    """The position up to which a pushed stream, which is one file, was read in committed epochs."""
    return last.offsets.get(f"{stream}/0", {}).get("position", 0) if last else 0


# --- the offsets of epochs, which Spark logs before an epoch runs -----------------------------------------------------


def offset_file(checkpoint: Checkpoint, epoch: int) -> Path:
    """The file with the end offset of an epoch."""
    return checkpoint.spark / "offsets" / str(epoch)


def end_of(checkpoint: Checkpoint, epoch: int) -> Offset:
    """The end offset of an epoch that has begun; -1 stands for the beginning of all streams."""
    if epoch < 0:
        return {}
    file = offset_file(checkpoint, epoch)
    try:
        found: Offset = json.loads(file.read_text(encoding="utf-8").splitlines()[-1])
    except OSError as error:
        raise StateError(f"cannot read '{file}': {error.strerror}") from None
    except (IndexError, ValueError):
        raise StateError(f"'{file}' is damaged") from None
    return found


def write_end(checkpoint: Checkpoint, epoch: int, end: Offset) -> None:
    """Write the end offset of an epoch, in Spark's form."""
    durable.replace(offset_file(checkpoint, epoch), f"v1\n{{}}\n{json.dumps(end)}".encode())


def epoch_ranges(checkpoint: Checkpoint, epoch: int) -> list[Range]:
    """The ranges of an epoch that has begun."""
    return Survey(checkpoint).ranges(end_of(checkpoint, epoch - 1), end_of(checkpoint, epoch))
