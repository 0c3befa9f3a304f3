"""The order logs of a trunk's streams, as its driver reads them, and where the intake was at the end of an epoch.

The intake writes them (`order.py`); the driver checks by them that a stream has not changed, learns its format, warns
of files that came out of order, and makes what they have gained durable with each epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from anabranch.errors import UsageError
from anabranch.spark.answers.segments import Segment
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import IntakeRecord, Manifest, Manifests
from anabranch.spark.checkpoint.parts import LogPart, grown, written
from anabranch.spark.checkpoint.recovery import end_of
from anabranch.spark.intake.order import OrderLog
from anabranch.spark.intake.ranges import Position, Range, spans
from anabranch.spark.intake.reached import reached_by
from anabranch.spark.intake.survey import Survey, is_unfinished
from anabranch.spark.plan.epoch_plan import Plan
from anabranch.stream.reading.source import Source, StreamForm


class OrderLogs:
    """The logs of the streams that a trunk reads."""

    def __init__(self, checkpoint: Checkpoint, run: int = 1) -> None:
        self._checkpoint = checkpoint
        self._run = run
        self._logs: dict[str, OrderLog] = {}
        self._survey = Survey(checkpoint, logs=self._logs)
        """A survey that only computes ranges."""
        self._durable: dict[str, int] = {}
        """By stream: how much of what its log has gained in this run is durable."""

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
            self._logs[source.name] = OrderLog.of(self._checkpoint, source.name)
            self._logs[source.name].refresh()  # an earlier run gave the warnings in it
        log = self._logs[source.name]
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
        reached, document = last.intake.end, log.form.format == "document"
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
                match stretch.note:
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

    def record(self, epoch: int, last: Manifest | None, plan: Plan, segments: tuple[Segment, ...]) -> IntakeRecord:
        """Where the intake is at the end of an epoch with these segments; call `warnings` first, which reads the logs.

        What the logs have gained is durable when their folders are settled.
        """
        before = last.intake if last else IntakeRecord()
        orders = dict(before.orders)
        for stream, log in self._logs.items():
            gained = log.gained(self._durable.get(stream, 0), log.read)
            if gained:
                orders[stream] = grown(self._checkpoint.order(stream), orders.get(stream, ()), gained, self._run)
        end = end_of(self._checkpoint, epoch)
        reached = reached_by(self._checkpoint, segments, plan, before.reached)
        return IntakeRecord(end, orders, self._sight() if is_unfinished(end) else None, reached)

    def _sight(self) -> LogPart:
        """The sight that the intake has not finished, durable."""
        return written(self._checkpoint.sights, durable.read(self._checkpoint.sight), self._run)

    def committed(self) -> None:
        """Tell that what was recorded last is committed."""
        self._durable = {stream: log.read for stream, log in self._logs.items()}

    def ranges(self, epoch: int) -> list[Range]:
        """The ranges of an epoch that has begun; call `warnings` first, which reads the logs."""
        return self._survey.ranges(end_of(self._checkpoint, epoch - 1), end_of(self._checkpoint, epoch))


def position_read(last: Manifest | None, stream: str) -> int:
    """The position up to which a pushed stream, which is one file, was read in committed epochs."""
    return last.offsets.get(f"{stream}/0", {}).get("position", 0) if last else 0


def epoch_ranges(checkpoint: Checkpoint, epoch: int) -> list[Range]:
    """The ranges of a committed epoch."""
    manifests = Manifests(checkpoint.manifests)
    start = manifests.load(epoch - 1).intake.end if epoch else {}
    return Survey(checkpoint).ranges(start, manifests.load(epoch).intake.end)
