"""What benches work on: photons in files of lines, and the way in which plain Spark reads them.

Times go on from file to file as in one long observation, so that a file is an epoch and none of it is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

from anabranch.stream.path import Path as ItemPath
from anabranch.stream.photons import photons
from anabranch.stream.reading.source import Source

Spark: TypeAlias = Any
"""A session of Spark, whose types only `spark/` knows."""
Rows: TypeAlias = Any
"""A data frame of Spark."""

LEAVES = ("ra", "dec", "dx", "dy", "phc", "en", "det_time")
_SCHEMA = """coord struct<cel: struct<ra: double, dec: double>, det: struct<dx: double, dy: double>>,
    phc double, en double, det_time double"""


def write_files(folders: Sequence[Path], files: int, items: int, start_tag: str = "<photon>", seed: int = 1) -> None:
    """Write so many files of so many photons of a seed into each folder.

    Several folders get photons in turn, as instruments that look at the same sky: all different, and none ahead of the
    others, which would have to wait in a join.
    """
    stream = (photon.replace("<photon>", start_tag) + "\n" for photon in photons(len(folders) * files * items, seed))
    for folder in folders:
        folder.mkdir(parents=True)
    for number in range(files):
        with ExitStack() as held:
            opened = [held.enter_context((folder / f"photons-{number:05}").open("w")) for folder in folders]
            for _ in range(items):
                for file in opened:
                    file.write(next(stream))


def source(name: str, folder: Path) -> Source:
    """The stream that such files are, with their own time."""
    return Source(name, folder, root="photons", format="lines", time=ItemPath.parse("det_time"))


def read_photons(lines: Rows) -> Rows:
    """Photons out of lines of text, by Spark's own XML; nested as they are written."""
    return lines.selectExpr(f"from_xml(value, '{_SCHEMA}') as p").selectExpr("p.*")


def photons_streamed(spark: Spark, folder: Path) -> Rows:
    """Files of photons as a stream of plain Spark, one file to a trigger."""
    return read_photons(spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder)))
