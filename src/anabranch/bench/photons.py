"""What benches work on: photons in files of lines, and the way in which plain Spark reads them.

Times go on from file to file as in one long observation, so that a file is an epoch and none of it is late.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

from anabranch.stream.path import Path as ItemPath
from anabranch.stream.photons import photons
from anabranch.stream.source import Source

Spark: TypeAlias = Any
"""A session of Spark, whose types only `spark/` knows."""
Rows: TypeAlias = Any
"""A data frame of Spark."""

LEAVES = ("ra", "dec", "dx", "dy", "phc", "en", "det_time")
_SCHEMA = """coord struct<cel: struct<ra: double, dec: double>, det: struct<dx: double, dy: double>>,
    phc double, en double, det_time double"""


def write_files(folder: Path, seed: int, files: int, items: int, start_tag: str = "<photon>") -> None:
    """Write the photons of a seed, so many to a file."""
    folder.mkdir(parents=True)
    stream = photons(files * items, seed)
    for number in range(files):
        with (folder / f"photons-{number:05}").open("w") as file:
            file.writelines(photon.replace("<photon>", start_tag) + "\n" for photon in islice(stream, items))


def write_streams(folders: list[Path], files: int, items: int) -> None:
    """Write several streams, each of a seed and in a process of its own: photons are made, not read."""
    # Forked processes would share the threads of a JVM that may run.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        works = [pool.submit(write_files, folder, seed, files, items) for seed, folder in enumerate(folders, 1)]
        for work in works:
            work.result()


def source(name: str, folder: Path) -> Source:
    """The stream that such files are, with their own time."""
    return Source(name, folder, root="photons", format="lines", time=ItemPath.parse("det_time"))


def read_photons(lines: Rows) -> Rows:
    """Photons out of lines of text, by Spark's own XML; nested as they are written."""
    return lines.selectExpr(f"from_xml(value, '{_SCHEMA}') as p").selectExpr("p.*")


def photons_streamed(spark: Spark, folder: Path) -> Rows:
    """Files of photons as a stream of plain Spark, one file to a trigger."""
    return read_photons(spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder)))
