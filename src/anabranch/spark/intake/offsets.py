"""The offsets of epochs, as Spark writes them down before an epoch runs."""

from __future__ import annotations

import json
from pathlib import Path

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.intake.ranges import Offset, Range
from anabranch.spark.intake.survey import Survey


def offset_file(checkpoint: Checkpoint, epoch: int) -> Path:
    """Where it is written down how far an epoch goes."""
    return checkpoint.spark / "offsets" / str(epoch)


def end_of(checkpoint: Checkpoint, epoch: int) -> Offset:
    """How far an epoch goes that has begun; -1 stands for the beginning of all streams."""
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
    """Write down how far an epoch goes, in Spark's form."""
    durable.replace(offset_file(checkpoint, epoch), f"v1\n{{}}\n{json.dumps(end)}".encode())


def epoch_ranges(checkpoint: Checkpoint, epoch: int) -> list[Range]:
    """The ranges of an epoch that has begun."""
    return Survey(checkpoint).ranges(end_of(checkpoint, epoch - 1), end_of(checkpoint, epoch))
