"""Spark's part of a checkpoint, judged before a trunk goes on from it.

Spark keeps two logs of its own, offsets before an epoch and commits after it, and begins afresh, without a word, where
it finds none.
The manifests are the truth, so what Spark would do must follow from them: hand the epoch behind the newest manifest out
again, or the newest one itself, if it was killed before its commit.
Anything else means that parts of two copies were mixed or that something is lost, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anabranch.errors import StateError
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.checkpoint.manifest import Manifest, Manifests


def check_spark(checkpoint: Checkpoint, manifests: Manifests) -> Manifest | None:
    """Make sure that Spark's checkpoint belongs to the manifests; gives the newest of them."""
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
    """Remove what a JVM that was killed had begun to write; Spark takes it for a sign that epoch 0 was there before."""
    for folder in (checkpoint.spark / "offsets", checkpoint.spark / "commits"):
        for path in folder.glob(".*"):
            _, number, *rest = path.name.split(".")
            if rest != ["crc"] or not (folder / number).exists():
                path.unlink()


def _numbers(folder: Path) -> Iterator[int]:
    if folder.is_dir():
        yield from (int(each.name) for each in folder.iterdir() if each.name.isdecimal())
