"""A small engine that writes to topics, without Spark: one stream of lines, epochs of a few items each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from anabranch import Engine, Kafka
from anabranch.engine.finite import answering
from anabranch.engine.inputs import Inputs
from anabranch.engine.preparing import prepare
from anabranch.spark.sinks.pieces import results_in
from anabranch.stream.reading.source import Source
from brokers import Broker

ALL = '<all>{ for $p in stream("s")/root/p return <n>{ $p/text() }</n> }</all>'
ODD = '<odd>{ for $p in stream("s")/root/p where $p mod 2 = 1 return <odd>{ $p/text() }</odd> }</odd>'
COUNT = '<count>{ count(stream("s")/root/p) }</count>'
EPOCH_BYTES = 60
"""Five items or so."""


@dataclass
class Writing:
    """A folder with a stream and a checkpoint; each run is an engine of its own."""

    folder: Path
    broker: Broker
    warnings: list[str] = field(default_factory=list)
    items: int = 0

    def grow(self, count: int) -> None:
        """Let so many items come, with the numbers that follow."""
        with (self.folder / "s").open("a") as file:
            file.write("".join(f"<p>{number}</p>\n" for number in range(self.items, self.items + count)))
        self.items += count

    def run(self, queries: Mapping[str, tuple[str, Kafka | None]], *, keep: int | None = None) -> None:
        """Read to the end of what is there, and write it all."""
        with self.engine(queries, keep=keep) as engine:
            engine.wait()

    @contextmanager
    def engine(
        self, queries: Mapping[str, tuple[str, Kafka | None]], *, once: bool = True, keep: int | None = None
    ) -> Iterator[Engine]:
        """An engine with these subscriptions and their sinks."""
        (self.folder / "s").touch()
        with Engine(
            local=True,
            once=once,
            checkpoint=self.folder / "state",
            epoch_bytes=EPOCH_BYTES,
            trigger_ms=10,
            keep=keep,
            on_warning=self.warnings.append,
        ) as engine:
            engine.stream("s", self.folder / "s", format="lines")
            for name, (text, sink) in queries.items():
                engine.subscribe(text, name, sink=sink)
            yield engine

    def topic(self, partitions: int = 1, **config: str) -> str:
        return self.broker.topic("out", partitions, **config)

    def sink(self, topic: str, *, key: str | None = None, changes: str | None = None) -> Kafka:
        return Kafka(self.broker.address, topic, key=key, changes=changes)

    def values(self, topic: str) -> list[str]:
        """What a topic holds for readers of what is committed."""
        return [(each.value or b"").decode() for each in self.broker.read(topic)]

    def law(self, query: str) -> list[str]:
        """The results that the reference gives over all that is there."""
        inputs = Inputs([Source("s", self.folder / "s", "lines")])
        with answering([prepare("q", query, inputs, "reference")], inputs) as run:
            text = "".join(run.answers["q"])
        name = query[1 : query.index(">")]
        return results_in(text.removeprefix(f"<{name}>").removesuffix(f"</{name}>"))
