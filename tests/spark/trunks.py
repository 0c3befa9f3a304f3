"""A checkpoint with its streams and subscriptions, for tests that are lists of actions: write, run, want, look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anabranch.language import check, parse, print_query
from anabranch.law import evaluate, stream_input
from anabranch.spark.answers.log import AnswerLog
from anabranch.spark.checkpoint.folder import Checkpoint
from anabranch.spark.epoch.trunk import Trunk
from anabranch.spark.hosts.local_host import LocalHost
from anabranch.spark.hosts.spark_host import SparkHost
from anabranch.spark.plan.wanted import Epoch, Listener, Workload
from anabranch.stream.limits import Limits
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source
from anabranch.stream.settings import Settings
from partitions import read_partitions

ALL = '<all>{ for $p in stream("s")/root/p return $p }</all>'


class Killed(Exception):
    """Stands for kill -9 in tests that cannot afford a process."""


def spark_for(request: pytest.FixtureRequest) -> SparkSession | None:
    """The shared Spark for a test that is marked `spark`; the others do without."""
    return request.getfixturevalue("spark") if request.node.get_closest_marker("spark") else None


def printed(text: str, *streams: str) -> str:
    return print_query(check(parse(text), text, inputs=dict.fromkeys(streams or ("s",))).query)


class Site:
    """A checkpoint, its streams and subscriptions; each `run` is a trunk of its own, to the end of what is there.

    Without Spark this process is the host; all but who runs which task, and when, is the same.
    """

    def __init__(self, spark: SparkSession | None, top: Path) -> None:
        self.host, self.top = LocalHost() if spark is None else SparkHost(spark), top
        self.wanted = Workload({}, {})
        self.settings = Settings(trigger_ms=20)
        self.seen: list[Epoch] = []
        self.warnings: list[str] = []

    def stream(self, name: str, path: str, *more: str, form: str = "lines", time: str | None = None) -> None:
        """A new stream: its partitions are folders."""
        paths = [self.top / each for each in (path, *more)]
        for each in paths:
            each.mkdir(exist_ok=True)
        fresh = Source(
            name,
            paths[0],
            form,  # type: ignore[arg-type]  # a format
            time=ItemPath.parse(time) if time else None,
            more=tuple(paths[1:]),
        )
        self.wanted = replace(self.wanted, streams={**self.wanted.streams, name: fresh})

    def set_slack(self, name: str, slack: int) -> None:
        fresh = replace(self.wanted.streams[name], slack=Fraction(slack))
        self.wanted = replace(self.wanted, streams={**self.wanted.streams, name: fresh})

    def subscribe(self, **queries: str) -> None:
        texts = {name: printed(text, *self.wanted.streams) for name, text in queries.items()}
        self.wanted = replace(self.wanted, subscriptions={**self.wanted.subscriptions, **texts})

    def cancel(self, *names: str) -> None:
        left = {name: text for name, text in self.wanted.subscriptions.items() if name not in names}
        self.wanted = replace(self.wanted, subscriptions=left)

    def write(self, path: str, text: str | bytes) -> None:
        (self.top / path).write_bytes(text.encode() if isinstance(text, str) else text)

    def append(self, path: str, text: str) -> None:
        with (self.top / path).open("a") as file:
            file.write(text)

    def trunk(self) -> Trunk:
        listener = Listener(self.seen.append, self.warnings.append)
        return Trunk(self.host, self.top / "state", self.settings, listener=listener)

    def run(self, **changes: int) -> None:
        with self.trunk() as trunk:
            trunk.want(replace(self.wanted, **changes))  # type: ignore[arg-type]  # sizes of epochs
            trunk.start(once=True)
            trunk.wait()

    @contextmanager
    def at_work(self) -> Iterator[Trunk]:
        """A trunk that follows its streams."""
        with self.trunk() as trunk:
            trunk.want(self.wanted)
            trunk.start(once=False)
            yield trunk

    @property
    def log(self) -> AnswerLog:
        return AnswerLog(Checkpoint.open(self.top / "state"))

    def answer(self, name: str) -> str:
        found = self.log.subscription(name)
        assert found is not None, f"'{name}' never ran"
        return self.log.answer(found).text()

    def law(self, name: str) -> str:
        """What the reference answers to a subscription over all that is there."""
        query = parse(self.wanted.subscriptions[name])
        inputs = {}
        for source in self.wanted.streams.values():
            root, partitions = read_partitions(source, Limits())
            inputs[source.name], _ = stream_input(root, partitions, time=source.time, slack=source.slack, endless=True)
        return evaluate(query, inputs).text


def lines(start: int, end: int) -> str:
    return "".join(f"<p>{n}</p>\n" for n in range(start, end))


def items(start: int, end: int) -> str:
    return f"<all>{lines(start, end)}</all>".replace("\n", "") if start < end else "<all/>"
