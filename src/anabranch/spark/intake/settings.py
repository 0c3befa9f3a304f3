"""What the driver tells the survey, by way of a file: the streams, and the size of epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source


@dataclass(frozen=True, slots=True)
class IntakeStream:
    """A stream as the survey needs it; its partitions are its paths, by number."""

    name: str
    paths: tuple[str, ...]
    format: Format | None
    """None: to be told from its first bytes."""
    implied_root: str
    schema_root: str | None
    timed: bool = False
    """Whether its items carry their time; then its partitions are merged later on, and read side by side."""
    ended: bool = False
    """Whether nothing more comes than what is there."""
    heartbeat: float | None = None
    """After how many seconds without anything new a partition gets a heartbeat; None for never."""

    @staticmethod
    def of(source: Source) -> IntakeStream:
        form = None if source.format == "auto" else source.format
        schema_root = source.schema.root if source.schema else None
        paths = tuple(str(path.absolute()) for path in source.partitions)
        timed = source.time is not None
        beats = None if source.heartbeat is None else float(source.heartbeat)
        return IntakeStream(source.name, paths, form, source.implied_root, schema_root, timed, source.ended, beats)

    @property
    def keys(self) -> dict[str, str]:
        """Its paths by the keys of its partitions."""
        return {f"{self.name}/{number}": path for number, path in enumerate(self.paths)}


@dataclass(frozen=True, slots=True)
class IntakeSettings:
    """What the driver tells the survey, by way of a file."""

    streams: tuple[IntakeStream, ...]
    epoch_bytes: int
    epoch_files: int | None
    cores: int
    finite: bool
    """The files are complete: what is there now is all, to the last byte."""
    former: tuple[IntakeStream, ...] = ()
    """Streams that are wanted no more; an epoch that was begun with one of them may still come again."""
    held: Mapping[str, int] = field(default_factory=dict)
    """By name, streams that are read for now only as far as they reach when this number is met for the first time; with
    0 not at all."""

    def save(self, checkpoint: Checkpoint) -> None:
        durable.replace(checkpoint.intake, durable.sealed(asdict(self)))

    @staticmethod
    def load(checkpoint: Checkpoint) -> IntakeSettings:
        fields = durable.unsealed(checkpoint.intake)
        for key in ("streams", "former"):
            fields[key] = tuple(IntakeStream(**{**each, "paths": tuple(each["paths"])}) for each in fields[key])
        return IntakeSettings(**fields)

    @property
    def reading(self) -> tuple[IntakeStream, ...]:
        """The streams of which something may be read now."""
        return tuple(each for each in self.streams if self.held.get(each.name) != 0)

    def followed_by(self, streams: tuple[IntakeStream, ...]) -> tuple[IntakeStream, ...]:
        """The streams that will be former ones when these are wanted."""
        wanted = {each.name for each in streams}
        return tuple(each for each in (*self.former, *self.streams) if each.name not in wanted)
