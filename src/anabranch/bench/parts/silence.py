"""How long output stops where a stream evolves: a trunk that runs on, and a Spark job that is restarted.

Two sensors write a file every few hundred milliseconds, and a query selects the readings from 71 °F on.
Halfway sensor 2 changes to Celsius, and its readings, 25 °C and more, still belong to the answer.
The trunk finds an accent in front of the first of them.
The job of plain Spark needs an operator who notices the change: a second later it is stopped, and restarted on the same
checkpoint, with a `case` that converts the readings of sensor 2 since then.
Spark itself stays up, and the other job is written already; in practice all of this takes longer.

The *silence* is the longest time between two outputs from the last one before the evolution on.
A row is *lost* where a reading that belongs to the answer is missing, and *wrong* where one is there with another
temperature, or twice, or does not belong there; temperatures are compared in Fahrenheit.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from threading import Event, Thread
from time import sleep, time
from typing import Any, TypeAlias

from anabranch.bench.harness.timing import Figures
from anabranch.bench.workloads.photons import Spark
from anabranch.engine.live import Engine
from anabranch.spark.epoch.metrics import Metrics

_EVERY = 0.25
"""Seconds between files."""
_FILES, _QUICK_FILES = 64, 32
_READINGS = 20
"""Readings of each sensor in a file."""
_WARM, _FROM = 4, 71
"""Files that are there at the beginning; degrees from which on readings are selected."""
_NOTICED = 1.0
"""Seconds until the operator has changed the job of Spark."""
_TRIGGER_MS = 100
_PATIENCE = 0.01
_ACCENT = (
    '<s:accent xmlns:s="urn:anabranch:stream" where="s = 2"><s:alter path="t" by="(. - 32) * 5 div 9"/></s:accent>\n'
)
_QUERY = f"""
    for $r in stream("sensors")/sensors/reading where $r/t >= {_FROM}
    return <warm>{{ $r/ts }}{{ $r/s }}{{ $r/t }}</warm>"""
_RESULT = re.compile(r"<s:alter|<warm><ts>(.*?)</ts><s>(.*?)</s><t>(.*?)</t></warm>")

Row: TypeAlias = tuple[int, int, float]
"""A reading: its time, its sensor, and its degrees Fahrenheit."""


def figures(spark: Spark, folder: Path, *, quick: bool) -> Figures:
    """The silences of both, in seconds, and what went wrong meanwhile; medians of some runs, and the sum of rows."""
    runs = 1 if quick else 5
    number = _QUICK_FILES if quick else _FILES
    ours: list[SilenceRun] = []
    theirs: list[SilenceRun] = []
    for run in range(runs):
        print(f"silence: run {run + 1} of {runs}", file=sys.stderr)
        ours.append(of_trunk(spark, folder / f"ours-{run}", number))
        theirs.append(of_spark(spark, folder / f"spark-{run}", number))
    return {
        "silence_s": median(each.silence for each in ours),
        "spark_restart_silence_s": median(each.silence for each in theirs),
        "silence": {"rows": sum(each.rows for each in ours), **_sums("", ours), **_sums("spark_", theirs)},
    }


def _sums(prefix: str, found: list[SilenceRun]) -> Figures:
    return {
        f"{prefix}rows_wrong": sum(each.wrong for each in found),
        f"{prefix}rows_lost": sum(each.lost for each in found),
        f"{prefix}steady_s": median(each.steady for each in found),
    }


@dataclass(frozen=True, slots=True)
class SilenceRun:
    """The output of one run: its longest silences, and how many of its rows are wrong or lost."""

    silence: float
    steady: float
    """The longest time between two outputs before the evolution."""
    rows: int
    wrong: int
    lost: int

    @staticmethod
    def of(outputs: Iterable[float], evolved: float, found: Iterable[Row], files: int) -> SilenceRun:
        """The figures of a run, from the times of its outputs, the time of the evolution, and all its rows."""
        times = sorted(outputs)
        gaps = list(pairwise(times))
        before = [end - begin for begin, end in gaps if end < evolved]
        after = [end - begin for begin, end in gaps if end >= evolved]
        truth = Counter(row for file in range(files) for row in readings(file) if row[2] >= _FROM)
        seen = Counter((at, sensor, round(degrees, 6)) for at, sensor, degrees in found)
        wrong, lost = seen - truth, truth - seen
        return SilenceRun(max(after), max(before, default=0.0), truth.total(), wrong.total(), lost.total())


# --- the sensors ------------------------------------------------------------------------------------------------


def readings(file: int) -> Iterator[Row]:
    """The readings of a file, in Fahrenheit."""
    for number in range(file * _READINGS, (file + 1) * _READINGS):
        for sensor in (1, 2):
            yield number, sensor, 68.0 + (7 * number + 5 * sensor) % 10


@dataclass(slots=True)
class _Sensors:
    """Writes files into a folder, some at once, the others on a thread of its own once it has begun."""

    folder: Path
    files: int
    accent: bool
    evolved: Event = field(default_factory=Event)
    when: float = 0.0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        for number in range(_WARM):
            self._write(number)

    @property
    def middle(self) -> int:
        """The number of the file with which sensor 2 changes to Celsius."""
        return self.files // 2

    def begin(self) -> Thread:
        thread = Thread(target=self._run)
        thread.start()
        return thread

    def _run(self) -> None:
        for number in range(_WARM, self.files):
            self._write(number)
            if number == self.middle:
                self.when = time()
                self.evolved.set()
            sleep(_EVERY)

    def _write(self, number: int) -> None:
        fresh = self.folder / f".{number:05}"
        lines = [_ACCENT] if self.accent and number == self.middle else []
        for at, sensor, degrees in readings(number):
            value = (degrees - 32) * 5 / 9 if sensor == 2 and number >= self.middle else degrees
            lines.append(f"<reading><ts>{at}</ts><s>{sensor}</s><t>{value:.9f}</t></reading>\n")
        fresh.write_text("".join(lines))
        fresh.rename(self.folder / f"{number:05}")


# --- both sides -------------------------------------------------------------------------------------------------


def of_trunk(spark: Spark, folder: Path, files: int) -> SilenceRun:
    """A run of ours; an output is an epoch that was committed."""
    sensors = _Sensors(folder / "in", files, accent=True)
    outputs: list[float] = []
    read: list[int] = []

    def note(epoch: Metrics) -> None:
        read.append(epoch.items)
        outputs.append(time())

    with Engine(spark, checkpoint=folder / "state", trigger_ms=_TRIGGER_MS, on_epoch=note) as engine:
        engine.stream("sensors", folder / "in", format="lines", root="sensors", time="ts")
        answer = engine.subscribe(_QUERY)
        engine.start()
        while not outputs and engine.trunk.active:
            sleep(_PATIENCE)
        sensors.begin().join()
        while sum(read) < 2 * _READINGS * files and engine.trunk.active:
            sleep(_PATIENCE)
        engine.trunk.raise_failure()
        return SilenceRun.of(outputs, sensors.when, _rows(answer.answer()), files)


def _rows(answer: str) -> Iterator[Row]:
    """The rows of an answer, in Fahrenheit."""
    altered = False
    for each in _RESULT.finditer(answer):
        if each[1] is None:
            altered = True
        else:
            degrees = float(each[3])
            yield int(each[1]), int(each[2]), degrees * 9 / 5 + 32 if altered and each[2] == "2" else degrees


def of_spark(spark: Spark, folder: Path, files: int) -> SilenceRun:
    """A run of plain Spark; an output is a batch that was committed to its folder of Parquet files."""
    sensors = _Sensors(folder / "in", files, accent=False)
    job = _job(spark, folder, "t")
    job.processAllAvailable()
    thread = sensors.begin()
    sensors.evolved.wait()
    sleep(_NOTICED)
    job.stop()
    job = _job(spark, folder, f"case when s = 2 and ts >= {sensors.middle * _READINGS} then t * 9 / 5 + 32 else t end")
    thread.join()
    job.processAllAvailable()
    job.stop()
    outputs = [each.stat().st_mtime for each in (folder / "out" / "_spark_metadata").iterdir() if each.name[0] != "."]
    rows = spark.read.parquet(str(folder / "out")).collect()
    return SilenceRun.of(outputs, sensors.when, ((row["ts"], row["s"], row["t"]) for row in rows), files)


def _job(spark: Spark, folder: Path, degrees: str) -> Any:
    lines = spark.readStream.text(str(folder / "in"))
    read = lines.selectExpr("from_xml(value, 'ts int, s int, t double') as r").selectExpr("r.*")
    rows = read.selectExpr("ts", "s", f"{degrees} as t").where(f"t >= {_FROM}")
    answer = rows.writeStream.format("parquet").option("path", str(folder / "out"))
    answer = answer.option("checkpointLocation", str(folder / "checkpoint"))
    return answer.trigger(processingTime=f"{_TRIGGER_MS} milliseconds").start()
