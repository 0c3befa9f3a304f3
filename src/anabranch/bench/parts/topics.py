"""How fast photons come in from a topic of Kafka; q3 answers them, on Spark, with its answers committed.

`kafka_lines_vs_files`: messages of a hundred lines, against the same lines in files; the goal is 0.7.
`kafka_lines_vs_loop` and `kafka_items_vs_loop`: messages of a hundred photons and of one, against a bare loop of
confluent-kafka that reads the same messages and only counts them: no answer can be had in less.
Spark's own connector is not to be had for the release that we run on, so it is no judge.

An engine stays at work on each side.
It holds the stream while messages are written, and a round is the time from when it lets go, or from the moment at
which the file is there, until an epoch has committed the last photon.
Both sides are checked to answer the same, or to read as many messages.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from time import perf_counter

from anabranch.bench.harness.broker import BenchTopic, broker
from anabranch.bench.harness.timing import Rounds, Timings, compare, timed
from anabranch.bench.parts.pushed import BenchSide
from anabranch.bench.workloads.photons import Spark, write_files
from anabranch.stream.reading.topic import Topic

LINES = 100
GOAL = 0.7
"""How fast messages of many lines have to come in, against files."""
_ONE_ITEM_PART = 4
"""Messages of one photon take so many times as long, so there are fewer of them."""


class _TopicSide:
    """An engine that reads a topic, and lets go of it when all of a round is written."""

    def __init__(self, spark: Spark, folder: Path, query: str, address: str, values: list[bytes], form: str) -> None:
        self.topic = BenchTopic(address, folder.name)
        source = Topic.of(address, self.topic.name, partitions=1)
        self.side = BenchSide(spark, folder, query, source, form)
        self._values = values

    def close(self) -> None:
        """End the engine and the clients."""
        self.side.engine.close()
        self.topic.close()

    def write(self) -> None:
        """Write the messages of a round, which nobody reads yet."""
        self.side.engine.trunk.hold({"photons": 0})
        self.topic.write(self._values)

    def read(self, items: int) -> float:
        """The seconds that the engine takes for what was written."""
        begin = perf_counter()
        self.side.engine.trunk.hold({})
        self.side.wait(items)
        return perf_counter() - begin


def topics_vs_files(spark: Spark, folder: Path, query: str, items: int, rounds: Rounds) -> Timings:
    """Compare messages of many lines with files."""
    write_files([folder / "once"], 1, items)
    (file,) = (folder / "once").iterdir()
    (folder / "in").mkdir()
    with ExitStack() as held:
        address = held.enter_context(broker(folder / "broker"))
        topic = _TopicSide(spark, folder / "lines", query, address, messages(file, LINES), "lines")
        held.callback(topic.close)
        files = BenchSide(spark, folder / "files", query, folder / "in")
        held.callback(files.engine.close)
        numbers = count()

        def consume() -> float:
            topic.write()
            return topic.read(items)

        def read() -> float:
            begin = perf_counter()
            os.link(file, folder / "in" / f"{next(numbers):05}")
            files.wait(items)
            return perf_counter() - begin

        found = compare(consume, read, rounds, f"messages of {LINES} photons against files")
        assert topic.side.answers == files.answers > 0, f"{topic.side.answers:,} answers, {files.answers:,} over files"
    return found


def topics_vs_loop(spark: Spark, folder: Path, query: str, items: int, rounds: Rounds, *, lines: int) -> Timings:
    """Compare messages of so many lines with a loop that only counts them."""
    items = items if lines > 1 else items // _ONE_ITEM_PART
    write_files([folder / "once"], 1, items)
    (file,) = (folder / "once").iterdir()
    values = messages(file, lines)
    with ExitStack() as held:
        address = held.enter_context(broker(folder / "broker"))
        topic = _TopicSide(spark, folder / "topic", query, address, values, "lines" if lines > 1 else "xml")
        held.callback(topic.close)

        def consume() -> float:
            topic.write()
            return topic.read(items)

        def loop() -> float:
            return timed(lambda: topic.topic.count(len(values)))

        found = compare(consume, loop, rounds, f"messages of {lines} photons against a loop that counts")
        assert topic.side.answers > 0, "some photons are those of q3"
    return replace(found, items=items)


def messages(file: Path, lines: int) -> list[bytes]:
    """The lines of a file as messages of so many each, without the last newline."""
    with file.open("rb") as opened:
        return [found[:-1] for found in iter(lambda: b"".join(islice(opened, lines)), b"")]
