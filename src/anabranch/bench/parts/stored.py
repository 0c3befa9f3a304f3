"""The same stream in an object store and on a disk; q3 answers both, on Spark.

The server is on this machine and has its data on the same disk (`harness/s3.py`), so the figure is what the way through
a store costs: requests, and that bytes pass a process more; it says nothing about a network.
The time is that of an epoch that is not the first, with a file to read and the checkpoint on a disk, or in the store.
Both sides are checked to answer the same.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import mean
from uuid import uuid4

from anabranch.bench.harness.epochs import Trials, of_trunk
from anabranch.bench.harness.timing import Rounds, Timings, compare
from anabranch.bench.workloads.photons import Spark
from anabranch.storage import Location
from anabranch.stream.reading.source import Source

_PIECE = 8 << 20


def stored_vs_disk(
    spark: Spark, bucket: Location, stream: Source, query: str, folder: Path, rounds: Rounds, *, state: bool
) -> Timings:
    """Compare a stream in a bucket with the same on a disk; with `state`, the checkpoints are there, too."""
    stored = replace(stream, path=_copied(stream, bucket / "in"))
    trials = Trials(spark, folder)

    def store() -> float:
        if not state:
            return trials.ours([stored], {"q3": query})
        where = bucket / f"state-{uuid4().hex}"
        seconds, _ = of_trunk(spark, [stored], {"q3": query}, where)
        where.delete_all(where.names(below=True))
        return mean(seconds)

    there, here = (
        "".join(of_trunk(spark, [each], {"q3": query}, folder / name)[1].answers["q3"])
        for name, each in (("there", stored), ("here", stream))
    )
    assert there == here, "both must answer the same"
    return compare(store, lambda: trials.ours([stream], {"q3": query}), rounds, "a store against a disk")


def _copied(stream: Source, to: Location) -> Location:
    """A copy of the files of a stream; where it is."""
    for file in stream.files:
        if not (to / file.name).exists():
            with file.open() as opened, (to / file.name).writer() as writer:
                while piece := opened.read(_PIECE):
                    writer.write(piece)
    return to
