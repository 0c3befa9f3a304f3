"""How fast photons come in over HTTP, against the same lines in files; q3 answers both, on Spark.

An engine stays at work on each side.
A round is the time from the first request, or from the moment at which the file is there, until an epoch has committed
the last photon; on the side of HTTP this includes that each request waits for the disk.
The client is a process of its own, with requests of a thousand photons on four connections.
Both sides are checked to answer the same.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from threading import Condition
from time import perf_counter

from anabranch.bench.harness.poster import Poster
from anabranch.bench.harness.timing import Rounds, Timings, compare
from anabranch.bench.workloads.photons import Spark, write_files
from anabranch.engine.live import Engine
from anabranch.spark.epoch.metrics import Metrics
from anabranch.stream.reading.source import Http
from anabranch.stream.reading.topic import Topic

_LINES = 1_000
_CONNECTIONS = 4
_TRIGGER_MS = 100
_BACKLOG = 1 << 30


class BenchSide:
    """An engine with q3 over photons that come in one way or the other."""

    def __init__(
        self, spark: Spark, folder: Path, query: str, source: Path | Http | Topic, form: str = "lines"
    ) -> None:
        self._read, self._moved = 0, Condition()
        self.engine = Engine(spark, checkpoint=folder / "state", trigger_ms=_TRIGGER_MS, on_epoch=self._take)
        self.stream = self.engine.stream("photons", source, format=form, root="photons", time="det_time")
        self._asked = self.engine.subscribe(query, "q3")
        self.engine.start()

    def _take(self, metrics: Metrics) -> None:
        with self._moved:
            self._read += metrics.items
            self._moved.notify_all()

    def wait(self, items: int) -> None:
        """Wait until so many items are committed that came since the last time."""
        with self._moved:
            self._moved.wait_for(lambda: self._read >= items or not self.engine.trunk.active)
            self.engine.trunk.raise_failure()
            self._read -= items

    @property
    def answers(self) -> int:
        return self.engine.tally.of(self._asked.registered)


def pushed_vs_files(spark: Spark, folder: Path, query: str, items: int, rounds: Rounds) -> Timings:
    """Compare photons that are pushed with those in files."""
    write_files([folder / "once"], 1, items)
    (file,) = (folder / "once").iterdir()
    (folder / "in").mkdir()
    with ExitStack() as held:
        pushed = BenchSide(spark, folder / "pushed", query, Http(_BACKLOG))
        held.callback(pushed.engine.close)
        files = BenchSide(spark, folder / "files", query, folder / "in")
        held.callback(files.engine.close)
        assert pushed.stream.url is not None, "it is pushed"
        poster = held.enter_context(Poster(pushed.stream.url, file, _LINES, _CONNECTIONS))
        numbers = count()

        def push() -> float:
            begin = perf_counter()
            poster.send()
            pushed.wait(items)
            return perf_counter() - begin

        def read() -> float:
            begin = perf_counter()
            os.link(file, folder / "in" / f"{next(numbers):05}")
            files.wait(items)
            return perf_counter() - begin

        found = compare(push, read, rounds, "pushed against files")
        assert pushed.answers == files.answers > 0, f"{pushed.answers:,} answers, {files.answers:,} over files"
    return found
