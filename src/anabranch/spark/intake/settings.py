"""What the driver tells the survey, by way of a file: the streams, and the size of epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.stream.reading.source import Source


@dataclass(frozen=True, slots=True)
class IntakeSettings:
    """What the driver tells the survey, by way of a file."""

    streams: tuple[Source, ...]
    epoch_bytes: int
    epoch_files: int | None
    cores: int
    finite: bool
    """The files are complete: what is there now is all, to the last byte."""
    former: tuple[Source, ...] = ()
    """Streams that are wanted no more; an epoch that was begun with one of them may still come again."""
    held: Mapping[str, int] = field(default_factory=dict)
    """By name, streams that are read for now only as far as they reach when this number is met for the first time; with
    0 not at all."""

    def save(self, checkpoint: Checkpoint) -> None:
        durable.write_record(checkpoint.intake, self)

    @staticmethod
    def load(checkpoint: Checkpoint) -> IntakeSettings:
        return durable.read_record(IntakeSettings, checkpoint.intake)

    @property
    def reading(self) -> tuple[Source, ...]:
        """The streams of which something may be read now."""
        return tuple(each for each in self.streams if self.held.get(each.name) != 0)

    def followed_by(self, streams: tuple[Source, ...]) -> tuple[Source, ...]:
        """The streams that will be former ones when these are wanted."""
        wanted = {each.name for each in streams}
        return tuple(each for each in (*self.former, *self.streams) if each.name not in wanted)
