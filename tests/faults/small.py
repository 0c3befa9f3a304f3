"""A small engine, on the shared Spark or without: two streams, four subscriptions with sinks, a few epochs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anabranch import Engine
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.spark.epoch import trunk as epochs
from anabranch.stream.reading.source import Source

QUERIES = {
    "all": '<all>{ for $p in stream("lines")/root/p return $p }</all>',
    "odd": '<odd>{ for $p in stream("lines")/root/p where $p mod 2 = 1 return <n>{ $p/text() }</n> }</odd>',
    "threes": '<threes>{ for $w in stream("lines")/root/p |count 3 step 2| return <w>{ $w }</w> }</threes>',
    "doc": '<doc>{ for $p in stream("document")/ps/p where $p > 2 return $p }</doc>',
}
EPOCH_BYTES = 120


class Killed(Exception):
    """Stands for kill -9, which ends an epoch just so."""


@dataclass(frozen=True, slots=True)
class Small:
    """A folder with streams, sinks and a checkpoint; each `run` is an engine of its own, in this process without Spark.

    What is written, and how it is read again, is the same on both hosts.
    """

    spark: SparkSession | None
    folder: Path

    @staticmethod
    def make(spark: SparkSession | None, folder: Path) -> Small:
        """Streams that are good for a few epochs."""
        small = Small(spark, folder)
        (folder / "document").write_text("<ps>")
        small.grow(0, 20)
        return small

    def grow(self, start: int, end: int) -> None:
        """Let items of these numbers come into both streams."""
        for name in ("lines", "document"):
            with (self.folder / name).open("a") as file:
                file.write("".join(f"<p>{number}</p>\n" for number in range(start, end)))

    @property
    def checkpoint(self) -> Path:
        return self.folder / "state"

    def run(self, epoch_bytes: int = EPOCH_BYTES, warned: Callable[[str], None] | None = None) -> dict[str, str]:
        """Read to the end of what is there; gives the answers."""
        local, folder = self.spark is None, self.checkpoint
        with Engine(
            self.spark, local=local, checkpoint=folder, once=True, epoch_bytes=epoch_bytes, on_warning=warned
        ) as engine:
            for name in ("lines", "document"):
                engine.stream(name, self.folder / name)
            found = [engine.subscribe(text, name, sink=self.folder / "out" / name) for name, text in QUERIES.items()]
            engine.wait()
            return {each.name: each.answer() for each in found}

    def run_until(self, point: str, epoch: int) -> None:
        """Run, and be killed at a point of an epoch."""

        def die(found: str, number: int) -> None:
            if (found, number) == (point, epoch):
                raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(epochs, "point", die)
            with pytest.raises(Killed):
                self.run()

    def sinks(self) -> dict[str, str]:
        """What the sinks hold."""
        return {path.name: path.read_text() for path in (self.folder / "out").iterdir()}

    def law(self) -> dict[str, str]:
        """What the reference answers over all that is there."""
        inputs = Inputs([Source(name, self.folder / name) for name in ("lines", "document")])
        queries = [prepare(name, text, inputs, "reference") for name, text in QUERIES.items()]
        with answering(queries, inputs) as run:
            return {name: "".join(pieces) for name, pieces in run.answers.items()}
