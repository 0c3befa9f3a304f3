"""Networks of the sharing paper's experiment, run with one strategy after another.

Photons come in at one peer, an epoch's worth at a time, and all of it is carried to its end before more comes; so
epochs are equal and large at all peers.
All answers are compared: a strategy that answers otherwise than another ends the bench.

Peers run on Spark, or in this process, one after the other, without a JVM; epochs, links and answers are the same, and
so are the bytes over links, which the bench checks for one seed.
A peer's processor time is that of the process inside its tasks, and of sending, and on Spark also the CPU time of the
executor in its pool.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from time import perf_counter, process_time
from typing import Literal, TypeAlias

from anabranch.bench.harness.timing import Figures
from anabranch.bench.workloads.paper import join_workload, placed, window_workload, workload
from anabranch.bench.workloads.photons import Spark
from anabranch.network.description import STRATEGIES, Network, RegisteredQuery, RegisteredStream, Strategy
from anabranch.network.planner import Planner
from anabranch.network.topology import hypercube
from anabranch.peers.peer import in_process
from anabranch.peers.running import RunningNetwork
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.photons import photons, photons_dtd
from anabranch.stream.reading.source import Source
from anabranch.stream.schema import Schema
from anabranch.stream.settings import Settings

Asked: TypeAlias = Literal["items", "windows", "joins"]
SOURCE = "SP0"
"""The peer where the photons come in, as in the paper."""
_ALL_AT_ONCE = 1 << 30


@dataclass(frozen=True, slots=True)
class NetworkScale:
    """How large an experiment is: a hypercube, its queries and its photons."""

    dimensions: int
    queries: int
    epochs: int
    items: int
    """In each epoch."""
    seed: int = 1
    """The seed of the queries, of their peers, and of the photons."""
    spread: str = "1"
    """How far the constants of queries lie apart (`bench/workloads/paper.py`)."""
    asked: Asked = "items"
    """What queries ask for."""


@dataclass(frozen=True, slots=True)
class StrategyCost:
    """The cost of one strategy: bytes by link, and CPU seconds by peer."""

    links: Mapping[tuple[str, str], int]
    peers: Mapping[str, float]
    answers: Mapping[str, str]
    """By query, the digest of its answer."""
    shared: int
    """How many queries are answered out of streams that are there for others."""

    @property
    def traffic(self) -> int:
        return sum(self.links.values())

    @property
    def cpu(self) -> float:
        return sum(self.peers.values())


StrategyCosts: TypeAlias = Mapping[Strategy, StrategyCost]


@lru_cache(maxsize=2)
def _lines(count: int, seed: int) -> tuple[str, ...]:
    return tuple(f"{each}\n" for each in photons(count, seed))


class PhotonNetwork:
    """One network, its queries, and its photons; without a session, its peers run in this process."""

    def __init__(self, spark: Spark | None, folder: Path, scale: NetworkScale) -> None:
        self.spark = spark
        self.folder = folder
        self.scale = scale
        self.topology = hypercube(scale.dimensions)
        places = placed(scale.seed, scale.queries, self.topology.peers)
        match scale.asked:
            case "items":
                texts = workload(scale.seed, scale.queries, scale.spread)
            case "windows":
                texts = window_workload(scale.seed, scale.queries)
            case "joins":
                texts = join_workload(scale.seed, scale.queries)
        self.queries = {f"q{number}": each for number, each in enumerate(zip(texts, places, strict=True))}
        self.lines = _lines(scale.epochs * scale.items, scale.seed)

    def run_all(self) -> dict[Strategy, StrategyCost]:
        """Run all strategies, and compare their answers."""
        ran = {strategy: self.run(strategy, self.scale.items) for strategy in STRATEGIES}
        for strategy, each in ran.items():
            assert each.answers == ran["shipping"].answers, f"{strategy} answers otherwise"
        return ran

    def run(self, strategy: Strategy, items: int) -> StrategyCost:
        """Send `items` photons an epoch through the network with a strategy."""
        begin = perf_counter()
        portions = [self.lines[number * items : (number + 1) * items] for number in range(self.scale.epochs)]
        stream = self._stream(portions[0])  # from which the planner takes its sample
        with ExitStack() as held:
            running = self._open(held, self.network(stream, strategy))
            running.drain()
            for number, lines in enumerate(portions[1:], 1):
                (stream / f"{number:03}").write_text("".join(lines))
                running.drain()
            measured, decisions = running.measured(), running.decisions
            answers = {name: sha256(running.answer(name).encode()).hexdigest() for name in self.queries}
        rmtree(self.folder)
        words = f"{strategy}, {self.scale.queries} queries of seed {self.scale.seed}, spread {self.scale.spread}"
        print(f"network: {words}, {items:,} items an epoch, {perf_counter() - begin:.1f} s", file=sys.stderr)
        return StrategyCost(
            measured.links,
            {name: each.cpu_s + each.executor_cpu_s for name, each in measured.peers.items()},
            answers,
            sum(each.chosen is not None and each.chosen.shares for each in decisions),
        )

    def traffic(self, portions: Sequence[Sequence[str]], *, accents: bool) -> list[int]:
        """The bytes over all links, with widening, of one portion of the stream after the other."""
        stream = self._stream(portions[0])
        found: list[int] = []
        with ExitStack() as held:
            running = self._open(held, self.network(stream, "widening", accents=accents))
            for number, lines in enumerate(portions):
                (stream / f"{number:03}").write_text("".join(lines))
                running.drain()
                found.append(sum(running.measured().links.values()) - sum(found))
        rmtree(self.folder)
        return found

    def plan(self, strategy: Strategy) -> list[float]:
        """For each query, the CPU seconds to plan it, behind those before it; nothing is run."""
        stream = self._stream(self.lines)
        _, decisions = Planner.of(self.network(stream, strategy), clock=process_time)
        rmtree(self.folder)
        return [each.seconds for each in decisions]

    def network(self, stream: Path, strategy: Strategy, *, accents: bool = False) -> Network:
        """The description of the network."""
        source = Source("photons", stream, "lines", Schema.from_dtd(photons_dtd()), time=ItemPath.parse("det_time"))
        return Network(
            self.topology,
            {},
            {"photons": RegisteredStream(source, SOURCE, SOURCE, accents=accents)},
            {
                name: RegisteredQuery(name, text, Path(f"{name}.xq"), at, at)
                for name, (text, at) in self.queries.items()
            },
            strategy,
            budget=60.0,
        )

    def _stream(self, first: Sequence[str]) -> Path:
        """The folder of the stream, with its first photons."""
        stream = self.folder / "in"
        stream.mkdir(parents=True)
        (stream / "000").write_text("".join(first))
        return stream

    def _open(self, held: ExitStack, network: Network) -> RunningNetwork:
        runner = in_process(Settings(shards=1), held) if self.spark is None else None
        state = self.folder / "state"
        opened = RunningNetwork(network, state, session=self.spark, epoch_bytes=_ALL_AT_ONCE, runner=runner)
        return held.enter_context(opened)


def by_place(ran: StrategyCosts) -> Figures:
    """The paper's figure 14: bytes by link, and CPU seconds by peer."""
    return {
        "links": {each: {f"{one}-{two}": n for (one, two), n in ran[each].links.items()} for each in STRATEGIES},
        "peers": {each: dict(ran[each].peers) for each in STRATEGIES},
    }


def compared(ran: StrategyCosts) -> dict[str, dict[str, float]]:
    """The paper's Table 1: sharing and widening as parts of shipping, in per cent, and how many queries share."""
    shipped = ran["shipping"]
    return {
        "traffic_percent": {each: 100 * ran[each].traffic / shipped.traffic for each in STRATEGIES[1:]},
        "cpu_percent": {each: 100 * ran[each].cpu / shipped.cpu for each in STRATEGIES[1:]},
        "shared_queries": {each: float(ran[each].shared) for each in STRATEGIES[1:]},
    }


def spread_of(found: Sequence[dict[str, dict[str, float]]]) -> Figures:
    """Of each figure of several seeds the mean, the least and the most."""
    return {
        key: {name: _spread([each[key][name] for each in found]) for name in names} for key, names in found[0].items()
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"mean": sum(values) / len(values), "least": min(values), "most": max(values)}
