"""The sharing paper's experiment (section 6), executed: peers in a hypercube, one stream of photons, random queries.

The same queries (`bench/workloads/paper.py`) are asked at the same peers under three strategies, each in a network of
its own: `shipping`, `sharing` and `widening`.
Photons come in at one peer, an epoch's worth at a time, and all of it is carried to its end before more comes; so
epochs are equal and large at all peers.
All answers are compared: a strategy that answers otherwise than another ends the bench.

`traffic_percent`: bytes over all links, with shipping as 100; `links` has the bytes of each.
`cpu_percent`: CPU seconds of all peers, with shipping as 100; `peers` has those of each.
A peer's are the time of the process inside its tasks and the CPU time of the executor in its pool.
`floor_s` are the seconds of as many epochs that hold the planner's sample and nothing else: the fixed cost of epochs,
which is a part of both sides.
`shared_queries`: how many are answered out of streams that are there for others.
`planning_s`: the seconds to plan one query, with widening.
Each has the paper's figure beside it, and `large` has the same for 16 peers and 100 queries.

The picture shows the two tables of section 6: traffic and CPU of the three strategies, ours beside the paper's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from time import perf_counter
from typing import Any

from anabranch.bench.harness.epochs import workshop
from anabranch.bench.harness.timing import Figures
from anabranch.bench.workloads.paper import placed, workload
from anabranch.bench.workloads.photons import Spark
from anabranch.network.description import STRATEGIES, Network, RegisteredQuery, RegisteredStream, Strategy
from anabranch.network.estimates import MOST_ITEMS
from anabranch.network.topology import hypercube
from anabranch.peers.running import RunningNetwork
from anabranch.sharing.explain.svg import document, element, text, width
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.photons import photons, photons_dtd
from anabranch.stream.reading.source import Source
from anabranch.stream.schema import Schema

SEED = 1
"""The seed of the queries, of their peers, and of the photons."""
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
class NetworkScale:
    """How large an experiment is."""

    dimensions: int
    queries: int
    epochs: int
    items: int
    """In each epoch."""


_FULL = (NetworkScale(3, 32, 2, 100_000), NetworkScale(4, 100, 1, 50_000))
_QUICK = (NetworkScale(2, 6, 1, 2_000), NetworkScale(3, 8, 1, 2_000))


@dataclass(frozen=True, slots=True)
class StrategyCost:
    """The cost of one strategy: bytes by link, and CPU seconds by peer."""

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


class Experiment:
    """One network, its queries, and its photons."""

    def __init__(self, spark: Spark, folder: Path, scale: NetworkScale) -> None:
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
        ran: dict[Strategy, StrategyCost] = {}
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

    def run(self, strategy: Strategy, items: int) -> StrategyCost:
        """Send `items` photons an epoch through a network with a strategy."""
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
        return StrategyCost(
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


_INK, _PALE, _RULE = "#2b2b2b", "#77736b", "#e4dfd4"
_SERIES = (("paper", "#c9c2b3"), ("ours", "#3b6ea5"), ("large", "#2f8f95"))
_PANELS = (("traffic_percent", "network traffic"), ("cpu_percent", "CPU"))
_SIDE, _TOP, _HIGH, _BAR, _BETWEEN, _GROUP = 44.0, 110.0, 190.0, 34.0, 6.0, 34.0
_ACROSS = 3 * (3 * _BAR + 2 * _BETWEEN) + 2 * _GROUP
_SIZE = (2 * _ACROSS + 4 * _SIDE, _TOP + _HIGH + 86)


def draw(figures: Any) -> str:
    """The picture of the figures for the README."""
    parts = [text(_SIDE, 36, "Data shipping, stream sharing, stream widening", size=15, fill=_INK, bold=True)]
    parts += _legend(figures)
    for number, (key, title) in enumerate(_PANELS):
        left = _SIDE + number * (_ACROSS + 2 * _SIDE)
        series = {"paper": figures["paper"], "ours": figures, "large": figures["large"]}
        parts += _panel(left, title, {name: {"shipping": 100.0, **each[key]} for name, each in series.items()})
    parts += _footer(figures)
    return document(_SIZE, "traffic and CPU of the three strategies", parts)


def _panel(left: float, title: str, series: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    yield text(left, _TOP - 16, f"{title}, % of shipping", size=12, fill=_PALE)
    for level in (0, 25, 50, 75, 100):
        y = _TOP + _HIGH * (1 - level / 100) + 12
        yield element("line", x1=left, y1=y, x2=left + _ACROSS, y2=y, stroke=_RULE, stroke_width=1)
    for place, strategy in enumerate(STRATEGIES):
        x = left + place * (3 * _BAR + 2 * _BETWEEN + _GROUP)
        for number, (name, colour) in enumerate(_SERIES):
            value, left_side = series[name][strategy], x + number * (_BAR + _BETWEEN)
            high = _HIGH * min(value, 100.0) / 100
            top = _TOP + _HIGH - high + 12
            yield element("rect", x=left_side, y=top, width=_BAR, height=max(high, 1.0), rx=3, fill=colour)
            label = "100" if value == 100 else f"{value:.1f}"
            yield text(left_side + _BAR / 2, top - 5, label, size=11, fill=_INK, anchor="middle")
        middle = x + (3 * _BAR + 2 * _BETWEEN) / 2
        yield text(middle, _TOP + _HIGH + 32, strategy, size=12, fill=_INK, anchor="middle")


def _legend(figures: Any) -> Iterator[str]:
    counts = (figures["queries"], figures["large"]["queries"])
    words = ("the paper, 32 queries", *(f"Anabranch, {number:.0f} queries" for number in counts))
    x = _SIDE
    for label, (_, colour) in zip(words, _SERIES, strict=True):
        yield element("rect", x=x, y=51, width=14, height=10, rx=3, fill=colour)
        yield text(x + 20, 60, label, size=12, fill=_INK)
        x += 20 + width(label, 12) + 18


def _footer(figures: Any) -> Iterator[str]:
    shared = (figures["shared_queries"], figures["paper"]["shared_queries"])
    ours, theirs = (f"{each['sharing']:.0f} and {each['widening']:.0f}" for each in shared)
    words = (
        f"queries that share, without and with widening: {ours} (paper: {theirs}); "
        f"one is planned in {figures['planning_s']['max']:.2f} s at most (paper: 45 s)"
    )
    yield text(_SIDE, _SIZE[1] - 20, words, size=12, fill=_PALE)
