"""The sharing paper's experiment (section 6), executed: peers in a hypercube, one stream of photons, random queries.

The same queries (`bench/workloads/paper.py`) are asked at the same peers under three strategies, each in a network of
its own:
`shipping`, `sharing` and `widening`.
Photons come in at one peer, an epoch's worth at a time, and all of it is carried to its end before more comes; so
epochs are equal and large at all peers.
All answers are compared: a strategy that answers otherwise than another ends the bench.

`traffic_percent`: bytes over all links, with shipping as 100; `links` has the bytes of each.
`cpu_percent`: CPU seconds of all peers, with shipping as 100; `peers` has those of each.
A peer's are the time of the process inside its tasks and the CPU time of the executor in its pool.
`floor_s` are the seconds of as many epochs that hold the planner's sample and nothing else: what epochs cost that have
next to nothing in them, a part of both sides.
`shared_queries`: how many are answered out of streams that are there for others.
`planning_s`: the seconds to plan one query, with widening.
Each has the paper's figure beside it, and `large` has the same for 16 peers and 100 queries.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from time import perf_counter

from anabranch.bench.harness.timing import Figures
from anabranch.bench.harness.workshop import workshop
from anabranch.bench.network_plot import plot
from anabranch.bench.workloads.paper import placed, workload
from anabranch.bench.workloads.photons import Spark
from anabranch.network.description import STRATEGIES, Network, RegisteredQuery, RegisteredStream, Strategy
from anabranch.network.sample import MOST_ITEMS
from anabranch.network.topology import hypercube
from anabranch.peers.running import RunningNetwork
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.photons import photons, photons_dtd
from anabranch.stream.reading.source import Source
from anabranch.stream.schema import Schema

SEED = 1
"""Of the queries, where they are asked, and the photons: the first that there is."""
SOURCE = "SP0"
"""The peer where the photons come in, as in the paper."""
_ALL_AT_ONCE = 1 << 30
PAPER: Figures = {
    "traffic_percent": {"sharing": 12.2, "widening": 6.4},
    "cpu_percent": {"sharing": 70.6, "widening": 53.5},
    "shared_queries": {"sharing": 14, "widening": 31},
    "planning_s": {"max": 45},
}


@dataclass(frozen=True, slots=True)
class Scale:
    """How large an experiment is."""

    dimensions: int
    queries: int
    epochs: int
    items: int
    """In each epoch."""


_FULL = (Scale(3, 32, 2, 100_000), Scale(4, 100, 1, 50_000))
_QUICK = (Scale(2, 6, 1, 2_000), Scale(3, 8, 1, 2_000))


@dataclass(frozen=True, slots=True)
class Ran:
    """What one strategy has cost."""

    links: Mapping[tuple[str, str], int]
    peers: Mapping[str, float]
    answers: Mapping[str, str]
    """By query, the digest of its answer."""
    shared: int
    planning: tuple[float, ...]
    """For each query, the seconds that it took to plan it."""

    @property
    def traffic(self) -> int:
        return sum(self.links.values())

    @property
    def cpu(self) -> float:
        return sum(self.peers.values())


def measure(quick: bool) -> Figures:
    """Run the bench."""
    small, large = _QUICK if quick else _FULL
    with workshop() as (spark, folder):
        found = Experiment(spark, folder / "small", small).measure()
        more = Experiment(spark, folder / "large", large).measure()
    return {**found, "paper": PAPER, "large": more}


def draw(figures: Figures) -> str:
    """The picture of it for the README."""
    return plot(figures)


class Experiment:
    """One network, its queries, and its photons."""

    def __init__(self, spark: Spark, folder: Path, scale: Scale) -> None:
        self.spark = spark
        self.folder = folder
        self.scale = scale
        self.topology = hypercube(scale.dimensions)
        places = placed(SEED, scale.queries, self.topology.peers)
        texts = workload(SEED, scale.queries)
        self.queries = {f"q{number}": each for number, each in enumerate(zip(texts, places, strict=True))}
        self.lines = [f"{each}\n" for each in photons(scale.epochs * scale.items, SEED)]

    def measure(self) -> Figures:
        """Run all strategies."""
        self.run("shipping", MOST_ITEMS)  # for processes to be there, and their code to be compiled
        ran: dict[Strategy, Ran] = {}
        floors: dict[str, float] = {}
        for strategy in STRATEGIES:
            floors[strategy] = self.run(strategy, MOST_ITEMS).cpu
            ran[strategy] = self.run(strategy, self.scale.items)
            assert ran[strategy].answers == ran["shipping"].answers, f"{strategy} answers otherwise"
        shipped, widened = ran["shipping"], ran["widening"]
        return {
            "queries": self.scale.queries,
            "items": len(self.lines),
            "traffic_percent": {each: 100 * ran[each].traffic / shipped.traffic for each in STRATEGIES[1:]},
            "cpu_percent": {each: 100 * ran[each].cpu / shipped.cpu for each in STRATEGIES[1:]},
            "shared_queries": {each: ran[each].shared for each in STRATEGIES[1:]},
            "planning_s": {"max": max(widened.planning), "mean": sum(widened.planning) / len(widened.planning)},
            "traffic_bytes": {each: ran[each].traffic for each in STRATEGIES},
            "cpu_s": {each: ran[each].cpu for each in STRATEGIES},
            "floor_s": floors,
            "links": {each: {f"{one}-{two}": n for (one, two), n in ran[each].links.items()} for each in STRATEGIES},
            "peers": {each: dict(ran[each].peers) for each in STRATEGIES},
        }

    def run(self, strategy: Strategy, items: int) -> Ran:
        """Carry so many photons an epoch through a network of a strategy."""
        begin = perf_counter()
        stream = self.folder / "in"
        stream.mkdir(parents=True)
        files = [self.lines[number * items : (number + 1) * items] for number in range(self.scale.epochs)]
        (stream / "000").write_text("".join(files[0]))  # from which the planner takes its sample
        network = self._network(stream, strategy)
        with RunningNetwork(network, self.folder / "state", session=self.spark, epoch_bytes=_ALL_AT_ONCE) as running:
            running.drain()
            for number, lines in enumerate(files[1:], 1):
                (stream / f"{number:03}").write_text("".join(lines))
                running.drain()
            measured, decisions = running.measured(), running.decisions
            answers = {name: sha256(running.answer(name).encode()).hexdigest() for name in self.queries}
        rmtree(self.folder)
        print(f"network: {strategy}, {items:,} items an epoch, {perf_counter() - begin:.0f} s", file=sys.stderr)
        return Ran(
            measured.links,
            {name: each.cpu_s + each.executor_cpu_s for name, each in measured.peers.items()},
            answers,
            sum(each.chosen is not None and each.chosen.shares for each in decisions),
            tuple(each.seconds for each in decisions),
        )

    def _network(self, stream: Path, strategy: Strategy) -> Network:
        source = Source("photons", stream, "lines", Schema.from_dtd(photons_dtd()), time=ItemPath.parse("det_time"))
        return Network(
            self.topology,
            {},
            {"photons": RegisteredStream(source, SOURCE, SOURCE, accents=False)},
            {
                name: RegisteredQuery(name, text, Path(f"{name}.xq"), at, at)
                for name, (text, at) in self.queries.items()
            },
            strategy,
            budget=1.0,
        )
