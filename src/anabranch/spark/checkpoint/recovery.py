"""The scratch folder of a run, made from the newest manifest.

Spark's own checkpoint says how far its query came, and nothing that the manifest does not know better: so it is written
anew for each run, with the newest epoch as its last, and a run may begin on a machine that has never seen the one
before.
What an earlier run had begun and not committed is in no manifest, and so it is forgotten here.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from uuid import uuid4

from anabranch.errors import StateError
from anabranch.spark.checkpoint import durable
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest
from anabranch.spark.intake.ranges import Offset
from anabranch.storage import Location

_COMMITTED = b'v1\n{"nextBatchWatermarkMs":0}'


def rebuild(checkpoint: Checkpoint, last: Manifest | None) -> None:
    """Make the scratch folder of a run that goes on after an epoch."""
    with durable.writing(checkpoint.scratch):
        with suppress(FileNotFoundError):  # what is left there would be taken for what this run has begun
            shutil.rmtree(checkpoint.scratch)
        checkpoint.scratch.mkdir(parents=True, exist_ok=True)
    _write(checkpoint, "metadata", json.dumps({"id": str(uuid4())}).encode())  # without it Spark begins from nothing
    if last is None:
        return
    intake = last.intake
    durable.replace(checkpoint.orders, durable.sealed(dict(intake.orders)))
    durable.replace(checkpoint.reached, durable.sealed(dict(intake.reached)))
    if intake.sight is not None:
        where = checkpoint.sights / intake.sight.file
        data = durable.read(where)
        if len(data) != intake.sight.size:
            hint = "restore the checkpoint from a copy, or begin with a new one"
            raise StateError(f"'{where}' is damaged", hint=hint)
        durable.replace(checkpoint.sight, data)
    for epoch in {max(0, last.epoch - 1), last.epoch}:  # Spark wants the one before, too
        write_end(checkpoint, epoch, intake.end)
    write_commit(checkpoint, last.epoch)


# --- the offsets of epochs, which Spark logs before an epoch runs -----------------------------------------------------


def has_begun(checkpoint: Checkpoint, epoch: int) -> bool:
    """Whether an epoch has an end."""
    return (checkpoint.spark / "offsets" / str(epoch)).exists()


def end_of(checkpoint: Checkpoint, epoch: int) -> Offset:
    """The end offset of an epoch that has begun in this run, or was its last; -1 is the beginning of all streams."""
    if epoch < 0:
        return {}
    file = checkpoint.spark / "offsets" / str(epoch)
    try:
        found: Offset = json.loads(durable.read(file).decode().splitlines()[-1])
    except (IndexError, ValueError):
        raise StateError(f"'{file}' is damaged") from None
    return found


def write_end(checkpoint: Checkpoint, epoch: int, end: Offset) -> None:
    """Write the end offset of an epoch, in Spark's form."""
    _write(checkpoint, f"offsets/{epoch}", f"v1\n{{}}\n{json.dumps(end)}".encode())


def write_commit(checkpoint: Checkpoint, epoch: int) -> None:
    """Note that an epoch is done, in Spark's form."""
    _write(checkpoint, f"commits/{epoch}", _COMMITTED)


def last_done(checkpoint: Checkpoint) -> int:
    """The newest epoch that is noted as done, -1 if there is none."""
    folder = Location.unsynced(checkpoint.spark / "commits")
    return max((int(name) for name in durable.names(folder) if name.isdecimal()), default=-1)


def _write(checkpoint: Checkpoint, name: str, data: bytes) -> None:
    durable.replace(Location.unsynced(checkpoint.spark / name), data)
