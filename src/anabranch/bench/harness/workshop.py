"""What benches against Spark have in common: a session, a folder that goes away, and how many rounds they take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from anabranch.bench.workloads.photons import Spark
from anabranch.spark.session import local_session


@dataclass(frozen=True, slots=True)
class Rounds:
    """Rounds to warm up with, then pairs of turns."""

    warm_up: int
    pairs: int

    @staticmethod
    def of(quick: bool) -> Rounds:
        return Rounds(1, 2) if quick else Rounds(6, 10)


@contextmanager
def workshop() -> Iterator[tuple[Spark, Path]]:
    """A Spark of the bench's own, and an empty folder."""
    spark = local_session(memory="2g", name="bench")
    try:
        with TemporaryDirectory(prefix="anabranch-bench-") as folder:
            yield spark, Path(folder)
    finally:
        spark.stop()
