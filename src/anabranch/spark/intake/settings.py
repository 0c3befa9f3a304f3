"""The settings of the survey, which the driver writes to a file: the streams, and the size of epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.stream.reading.source import Source


@dataclass(frozen=True, slots=True)
class IntakeSettings:
    """The settings that the driver writes for the survey."""

    streams: tuple[Source, ...]
    epoch_bytes: int
    epoch_files: int | None
    cores: int
    finite: bool
    """The files are complete: nothing will be added."""
    former: tuple[Source, ...] = ()
    """Streams that were removed; an epoch that was begun with one of them may still be run again."""
    held: Mapping[str, int] = field(default_factory=dict)
    """By name, streams on hold: each is read only up to its size when this number is first seen; with 0 not at
    all."""

    def save(self, checkpoint: Checkpoint) -> None:
        durable.write_record(checkpoint.intake, self)

    @staticmethod
    def load(checkpoint: Checkpoint) -> IntakeSettings:
        return durable.read_record(IntakeSettings, checkpoint.intake)

    @property
    def reading(self) -> tuple[Source, ...]:
        """The streams that may be read now."""
        return tuple(each for each in self.streams if self.held.get(each.name) != 0)

    def followed_by(self, streams: tuple[Source, ...]) -> tuple[Source, ...]:
        """The former streams once `streams` are the present ones."""
        wanted = {each.name for each in streams}
        return tuple(each for each in (*self.former, *self.streams) if each.name not in wanted)
